"""Linear models and Gaussian classes on standardised columns.

*linear*: multinomial logistic regression. *self-trained*: rows whose class the model is confident
of are added as labels, and it is fitted again, three times. Where classes are clusters with a gap
between them the boundary moves into the gap; where they are not, the held-out labels show it.

*gaussian*: linear or quadratic discriminants,

    log p(c | x) = log pi_c - 1/2 log det S_c - 1/2 (x - mu_c)^T S_c^-1 (x - mu_c) + const

With few labels a covariance is mostly prior: the pooled one of all classes, W, is shrunk towards
that of all rows, labelled or not, half of it with its off-diagonal part and half without; that of a
class towards W,

    W   = (sum_c E_c^T E_c + a T) / (m - k + a),   T = (diag(C) + C) / 2,  C of all rows
    S_c = (E_c^T E_c + b W) / (m_c + b)            (b infinite: one covariance for all)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import softmax

from ...codec import check_numbers, storable
from ...graph.rescale import Rescaler
from ...threads import one_thread
from .base import (
    Features,
    FitData,
    FittedModel,
    Member,
    Model,
    rescale_columns,
    stratified_subsample,
)

FloatArray = NDArray[np.float64]

# Linear and self-trained models are fitted with this many coefficients and labels at most; more
# labels are subsampled, evenly over the classes.
MOST_UNKNOWNS, MOST_LABELS = 2_000, 20_000
BLOCK = 20_000
# Deviations from the mean beyond which a row is shortened: the square still fits.
FAR = 1e100


@storable("linear model")
@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A fitted linear model.

    Parameters
    ----------
    scaling : Rescaler or None
        Scales of the columns; None leaves them as they are.
    coefficients : ndarray of shape (n_kept, n_classes)
        Slopes.
    intercepts : ndarray of shape (n_classes,)
        Constants.
    """

    scaling: Rescaler | None
    coefficients: FloatArray
    intercepts: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        width = None if self.scaling is None else self.scaling.scale.size
        check_numbers("coefficients", self.coefficients, (width, None))
        check_numbers("intercepts", self.intercepts, (self.coefficients.shape[1],))

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows."""
        Z = clip_far_rows(X if self.scaling is None else rescale_columns(self.scaling, X))
        return np.asarray(softmax(Z @ self.coefficients + self.intercepts, axis=1))


def clip_far_rows(Z: Features) -> Features:
    """Shorten rows too long for a product with slopes, in their direction."""
    length = abs(Z).max(axis=1)
    length = np.asarray(length.toarray().ravel() if sp.issparse(Z) else length, dtype=np.float64)
    far = length > FAR
    if not far.any():
        return Z
    factor = np.where(far, FAR / np.where(far, length, 1.0), 1.0)
    return sp.csr_array(sp.diags_array(factor) @ Z) if sp.issparse(Z) else Z * factor[:, None]


def fit_logistic(
    Z: Features, codes: NDArray[np.integer], n_classes: int, C: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and intercepts; a class without a label never wins."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    slopes = np.zeros((Z.shape[1], n_classes))
    constants = np.full(n_classes, -1e3)
    seen = np.unique(codes)
    if seen.size == 1:
        constants[seen] = 0.0
        return slopes, constants
    with warnings.catch_warnings(), one_thread():
        # A rough fit is good enough for a vote.
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows, back = fewer_columns(Z)
        model = LogisticRegression(C=C, max_iter=300, tol=1e-3).fit(rows, codes)
        found = np.asarray(Z.T @ (back @ model.coef_.T)) if rows is not Z else model.coef_.T
    if seen.size == 2:
        slopes[:, seen[1]] = found[:, 0]
        constants[seen] = 0.0, float(model.intercept_[0])
    else:
        slopes[:, seen] = found
        constants[seen] = model.intercept_
    return slopes, constants


def fewer_columns(Z: Features) -> tuple[Features, FloatArray]:
    """Return rows with the same products in no more columns than rows, and the way back.

    Slopes w of a penalised model lie in the span of the rows: ``w = Z^T B v`` with v the slopes of
    ``R = Z Z^T B``, and R has the rows' products, ``R R^T = Z Z^T``.
    """
    if Z.shape[0] >= Z.shape[1]:
        return Z, np.empty((0, 0))
    products = Z @ Z.T
    if not isinstance(products, np.ndarray):
        products = products.toarray()
    K = np.asarray(products, dtype=np.float64)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    if not (np.isfinite(values).all() and kept.any()):
        return Z, np.empty((0, 0))
    B = vectors[:, kept] / np.sqrt(values[kept])
    return K @ B, B


class LinearMember(Member):
    """Logistic regression; the penalty is chosen by held-out labels."""

    name = "linear"
    # Inverse strengths of the penalty; with many unknowns the middle one.
    strengths: ClassVar[tuple[float, ...]] = (0.1, 1.0, 10.0)
    setting = 1.0
    # Rounds of self-training, probability of a confident row (as in scikit-learn), rows that are
    # predicted and predictions that are added at most. More of them changed nothing on real tables.
    rounds, confident, most_rows, most_added = 0, 0.75, 5_000, 1_000

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[float, FloatArray]]:
        """Predict a fold by a model that has not seen its labels."""
        many = data.Z.shape[1] * data.n_classes > MOST_UNKNOWNS
        for C in (1.0,) if many else self.strengths:
            slopes, constants = self.train(data, np.flatnonzero(~held), C)
            yield C, softmax(data.Z[data.labeled[held]] @ slopes + constants, axis=1)

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        kept = stratified_subsample(data.codes, MOST_LABELS)
        slopes, constants = self.train(data, kept, self.setting)
        model = LinearModel(data.scaling, slopes, constants)
        return FittedModel(self.name, model, softmax(data.Z @ slopes + constants, axis=1))

    def train(
        self, data: FitData, kept: NDArray[np.intp], C: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and intercepts from the labels at the positions `kept`."""
        rows, codes, n = data.labeled[kept], data.codes[kept], data.X.shape[0]
        labeled = data.Z[rows]
        fit = fit_logistic(labeled, codes, data.n_classes, C)
        for _ in range(self.rounds):
            spread = np.linspace(0, n - 1, min(n, self.most_rows)).astype(np.intp)
            others = data.Z[np.setdiff1d(spread, rows)]
            shares = softmax(others @ fit[0] + fit[1], axis=1)
            sure = np.flatnonzero(shares.max(axis=1) > self.confident)
            guess = shares[sure].argmax(axis=1).astype(codes.dtype)
            few = stratified_subsample(guess, self.most_added)
            stack = sp.vstack if sp.issparse(labeled) else np.vstack
            Z = stack([labeled, others[sure[few]]])
            fit = fit_logistic(Z, np.concatenate([codes, guess[few]]), data.n_classes, C)
        return fit


class SelfTrainedMember(LinearMember):
    """Logistic regression that learns from its own confident predictions."""

    name = "self-trained"
    needs_folds = True
    strengths = (1.0,)
    rounds = 3

    def suits(self, data: FitData) -> bool:
        """Return whether there are few columns."""
        return bool(data.Z.shape[1] * data.n_classes <= MOST_UNKNOWNS)


@storable("gaussian classes")
@dataclass(frozen=True, eq=False)
class GaussianClasses(Model):
    """Fitted Gaussian classes.

    Parameters
    ----------
    scaling : Rescaler
        Scales of the columns.
    means : ndarray of shape (n_classes, n_kept)
        mu.
    roots : ndarray of shape (1 or n_classes, n_kept, n_kept)
        R with ``R R^T = S^-1``, of all classes or of each.
    constants : ndarray of shape (n_classes,)
        log pi - 1/2 log det S.
    """

    scaling: Rescaler
    means: FloatArray
    roots: FloatArray
    constants: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        d, k = self.scaling.scale.size, self.constants.size
        check_numbers("means", self.means, (k, d))
        check_numbers("roots", self.roots, (1 if self.roots.shape[:1] == (1,) else k, d, d))
        check_numbers("constants", self.constants, (k,))

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows."""
        return self.shares(rescale_columns(self.scaling, X))

    def shares(self, Z: Features) -> FloatArray:
        """Return shares of rows that are scaled already, a block at a time."""
        out = np.empty((Z.shape[0], self.means.shape[0]))
        for start in range(0, Z.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            near = np.clip(Z[rows], -FAR, FAR)
            for c, mean in enumerate(self.means):
                A = (near - mean) @ self.roots[c % self.roots.shape[0]]
                out[rows, c] = self.constants[c] - 0.5 * np.einsum("ij,ij->i", A, A)
        return np.asarray(softmax(out, axis=1))


class GaussianMember(Member):
    """Gaussian classes; how far covariances are shrunk is chosen by held-out labels."""

    name = "gaussian"
    needs_folds = True
    # Weights of the priors in labels, as multiples of the columns and one more: of all rows'
    # covariance in the pooled one, and of the pooled one in that of a class. On real tables each
    # of them is chosen somewhere; a finer grid changed nothing.
    settings: ClassVar = ((0.3, np.inf), (1.0, np.inf), (3.0, np.inf), (1.0, 2.0), (1.0, 0.5))
    setting = (1.0, np.inf)

    def suits(self, data: FitData) -> bool:
        """Return whether there are few dense columns."""
        d = int(data.scaling.scale.size)
        return not sp.issparse(data.X) and d <= 100 and d * d * data.n_classes <= 300_000

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[tuple[float, float], FloatArray]]:
        """Predict a fold by Gaussian classes that have not seen its labels."""
        kept = stratified_subsample(data.codes, MOST_LABELS)
        for setting in self.settings:
            with one_thread():
                classes = fit_gaussian(data, kept[~held[kept]], setting)
                shares = classes.shares(data.Z[data.labeled[held]])
            yield setting, shares

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        kept = stratified_subsample(data.codes, MOST_LABELS)
        with one_thread():
            classes = fit_gaussian(data, kept, self.setting)
        return FittedModel(self.name, classes, classes.shares(data.Z))


def fit_gaussian(
    data: FitData, kept: NDArray[np.intp], setting: tuple[float, float]
) -> GaussianClasses:
    """Fit means and covariances to the labels at the positions `kept`."""
    if "covariance" not in data.cache:  # T: rows are scaled, and so of variance 1 or less
        C = data.Z.T @ data.Z / data.Z.shape[0]
        C[np.diag_indices_from(C)] += 1e-3  # columns may be copies of each other
        data.cache["covariance"] = 0.5 * (C + np.diag(np.diag(C)))
    prior = data.cache["covariance"]
    Z, codes, n_classes = data.Z[data.labeled[kept]], data.codes[kept], data.n_classes
    m, d = Z.shape
    counts = np.bincount(codes, minlength=n_classes)
    means = np.zeros((n_classes, d))
    np.add.at(means, codes, Z)
    means /= np.maximum(counts, 1)[:, None]
    E = Z - means[codes]
    a, b = setting[0] * d + 1.0, setting[1] * d + 1.0
    W = (E.T @ E + a * prior) / max(m - np.count_nonzero(counts) + a, 1.0)
    covariances = []
    for c in range(1 if np.isinf(b) else n_classes):
        e = E[codes == c]
        covariances.append(W if np.isinf(b) else (e.T @ e + b * W) / (e.shape[0] + b))
    roots = np.empty((len(covariances), d, d))
    halves = np.empty(len(covariances))
    for j, S in enumerate(covariances):
        L = linalg.cholesky(S, lower=True)
        roots[j] = linalg.solve_triangular(L, np.eye(d), lower=True).T
        halves[j] = np.log(np.diag(L)).sum()
    with np.errstate(divide="ignore"):
        constants = np.maximum(np.log(counts / m), -1e3) - halves
    return GaussianClasses(data.scaling, means, roots, constants)
