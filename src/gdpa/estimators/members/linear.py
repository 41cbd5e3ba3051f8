"""Linear models and Gaussian classes on standardised columns.

*linear*: multinomial logistic regression. *self-trained*: the same, fitted three more times with
its own confident predictions as labels. If the classes are clusters with a gap between them, the
boundary moves into the gap; if they are not, the held-out loss shows it.

*gaussian*: linear or quadratic discriminant analysis,

    log p(c | x) = log pi_c - 1/2 log det S_c - 1/2 (x - mu_c)^T S_c^-1 (x - mu_c) + const

With few labels the covariances depend mostly on their priors. The pooled covariance W of all
classes is shrunk towards T, the mean of the covariance C of all rows, labelled or not, and its
diagonal part. The covariance of each class is shrunk towards a multiple of W: a few labels are
enough to say that one class spreads more than another,

    W   = (sum_c E_c^T E_c + a T) / (m - k + a),   T = (diag(C) + C) / 2
    S_c = (E_c^T E_c + b s_c W) / (m_c + b),       s_c = (tr E_c^T E_c / tr W + 1) / m_c

or S_c = W for all classes (b infinite).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.special import softmax

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.rescale import Rescaler
from ...linalg.row_products import row_products, row_squares
from ...threads import one_thread
from .base import Features, FitData, Rows, ScaledModel, SupervisedMember, stratified_subsample

# With more coefficients, the penalty of linear models is fixed and self-training is not tried.
MOST_COEFFICIENTS = 2_000
BLOCK = 20_000
# Rows with a larger entry are scaled down, so that products with them stay finite.
FAR = 1e100


@storable("linear model")
@dataclass(frozen=True, eq=False)
class LinearModel(ScaledModel):
    """A fitted linear model.

    Parameters
    ----------
    scaling : Rescaler or None
        Scaling of the columns; None leaves them as they are.
    coefficients : ndarray of shape (n_kept, n_classes)
        Coefficients.
    intercepts : ndarray of shape (n_classes,)
        Intercepts.
    """

    scaling: Rescaler | None
    coefficients: FloatArray
    intercepts: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        width = None if self.scaling is None else self.scaling.scale.size
        check_numbers("coefficients", self.coefficients, (width, None))
        check_numbers("intercepts", self.intercepts, (self.coefficients.shape[1],))

    def shares(self, Z: Features) -> FloatArray:
        """Return shares of rescaled rows."""
        if sp.issparse(Z):
            size = abs(Z).max(axis=1).toarray().ravel()
        else:
            size = np.maximum(Z.max(axis=1), -Z.min(axis=1))
        if float(size.max(initial=0.0)) > FAR:
            factor = FAR / np.maximum(size, FAR)
            Z = sp.csr_array(sp.diags_array(factor) @ Z) if sp.issparse(Z) else Z * factor[:, None]
        return np.asarray(softmax(row_products(Z, self.coefficients) + self.intercepts, axis=1))


def fit_logistic(
    Z: Features, codes: NDArray[np.integer], n_classes: int, C: float = 1.0
) -> LinearModel:
    """Fit logistic regression; a class without a label gets probability 0.

    The model is that of scikit-learn's LogisticRegression, whose import takes half a second: if
    there are two classes, the first has no coefficients.
    """
    from scipy.optimize import minimize

    slopes = np.zeros((Z.shape[1], n_classes))
    intercepts = np.full(n_classes, -1e3)
    seen, place = np.unique(codes, return_inverse=True)
    intercepts[seen] = 0.0
    if seen.size == 1:
        return LinearModel(None, slopes, intercepts)
    free = seen[-1:] if seen.size == 2 else seen
    with one_thread():
        rows, back = fewer_columns(Z)
        m, d = rows.shape
        scores, at_label = np.zeros((m, seen.size)), (np.arange(m), place)

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            w = flat.reshape(d + 1, free.size)
            scores[:, -free.size :] = rows @ w[:d] + w[d]
            S = scores - scores.max(axis=1, keepdims=True)
            E = np.exp(S)
            total = E.sum(axis=1, keepdims=True)
            E /= total
            E[at_label] -= 1.0
            errors = E[:, -free.size :] / m
            slope = rows.T @ errors + w[:d] / (C * m)
            value = (0.5 / C * (w[:d] ** 2).sum() + np.log(total).sum() - S[at_label].sum()) / m
            return float(value), np.vstack([slope, errors.sum(axis=0)]).ravel()

        # The settings of scikit-learn, but for the tolerance: a rough fit is good enough.
        options = {"maxiter": 300, "maxls": 50, "gtol": 1e-3, "ftol": 64 * np.finfo(float).eps}
        start = np.zeros((d + 1) * free.size)
        found = minimize(loss, start, method="L-BFGS-B", jac=True, options=options)
        w = found.x.reshape(d + 1, free.size)
        slopes[:, free] = w[:d] if rows is Z else Z.T @ (back @ w[:d])
    intercepts[free] = w[d]
    return LinearModel(None, slopes, intercepts)


def fewer_columns(Z: Features) -> tuple[Features, FloatArray]:
    """Return features R with at most as many columns as rows and ``R R^T = Z Z^T``, and B.

    The coefficients w of a penalised model lie in the span of the rows: ``w = Z^T B v``, where v
    are the coefficients of the model on ``R = Z Z^T B``.
    """
    if Z.shape[0] >= Z.shape[1]:
        return Z, np.empty((0, 0))
    products = Z @ Z.T
    dense = products if isinstance(products, np.ndarray) else products.toarray()
    K = np.asarray(dense, dtype=np.float64)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    if not (np.isfinite(values).all() and kept.any()):
        return Z, np.empty((0, 0))
    B = vectors[:, kept] / np.sqrt(values[kept])
    return K @ B, B


class LinearMember(SupervisedMember):
    """Logistic regression; the penalty is chosen by held-out labels."""

    name = "linear"
    settings: tuple[Any, ...] = (0.1, 1.0, 10.0)  # inverse strengths of the penalty
    most_coefficients = MOST_COEFFICIENTS
    setting = 1.0
    # Rounds of self-training; probability of a confident prediction, as in scikit-learn; limits on
    # the rows predicted and the predictions added. Higher limits changed nothing on real tables.
    rounds, confident, most_rows, most_added = 0, 0.75, 5_000, 1_000

    def train(self, data: FitData, kept: Rows, setting: float) -> LinearModel:
        """Fit to the labels at the positions `kept`, then to confident predictions too."""
        rows, codes, n = data.labeled[kept], data.codes[kept], data.X.shape[0]
        labeled = data.Z[rows]
        model = fit_logistic(labeled, codes, data.n_classes, setting)
        for _ in range(self.rounds):
            spread = np.linspace(0, n - 1, min(n, self.most_rows)).astype(np.intp)
            others = data.Z[np.setdiff1d(spread, rows)]
            shares = model.shares(others)
            sure = np.flatnonzero(shares.max(axis=1) > self.confident)
            guess = shares[sure].argmax(axis=1).astype(codes.dtype)
            few = stratified_subsample(guess, self.most_added)
            stack = sp.vstack if sp.issparse(labeled) else np.vstack
            Z = stack([labeled, others[sure[few]]])
            model = fit_logistic(Z, np.concatenate([codes, guess[few]]), data.n_classes, setting)
        return replace(model, scaling=data.scaling)


class SelfTrainedMember(LinearMember):
    """Logistic regression that learns from its own confident predictions."""

    name = "self-trained"
    needs_folds = True
    settings = (1.0,)
    rounds = 3

    def suits(self, data: FitData) -> bool:
        """Return whether there are few columns."""
        return bool(data.scaling.scale.size * data.n_classes <= MOST_COEFFICIENTS)


@storable("gaussian classes")
@dataclass(frozen=True, eq=False)
class GaussianClasses(ScaledModel):
    """Fitted Gaussian classes.

    Parameters
    ----------
    scaling : Rescaler
        Scaling of the columns.
    means : ndarray of shape (n_classes, n_kept)
        mu.
    roots : ndarray of shape (1 or n_classes, n_kept, n_kept)
        R with ``R R^T = S^-1``, one for all classes or one for each.
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

    def shares(self, Z: Features) -> FloatArray:
        """Return shares of rescaled rows, computed block by block."""
        out = np.empty((Z.shape[0], self.means.shape[0]))
        for start in range(0, Z.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            near = np.clip(Z[rows], -FAR, FAR)
            for c, mean in enumerate(self.means):
                A = row_products(near - mean, self.roots[c % self.roots.shape[0]])
                out[rows, c] = self.constants[c] - 0.5 * row_squares(A)
        return np.asarray(softmax(out, axis=1))


class GaussianMember(SupervisedMember):
    """Gaussian classes; held-out labels choose how far the covariances are shrunk."""

    name = "gaussian"
    needs_folds = True
    # Factors f that give the priors' weights in labels, a and b = f d + 1 for d columns. Chosen on
    # real tables; the last, a multiple of W for each class, on generated classes of different
    # spread (KEEL's ring, 5 and 20 labels a class). The 16 tables do not change by it on average.
    settings = ((0.3, np.inf), (1.0, np.inf), (3.0, np.inf), (1.0, 2.0), (1.0, 0.5), (1.0, 100.0))
    setting = (1.0, np.inf)

    def suits(self, data: FitData) -> bool:
        """Return whether there are few dense columns."""
        d = int(data.scaling.scale.size)
        return not sp.issparse(data.X) and d <= 100 and d * d * data.n_classes <= 300_000

    def train(self, data: FitData, kept: Rows, setting: tuple[float, float]) -> GaussianClasses:
        """Fit means and covariances to the labels at the positions `kept`."""
        if "covariance" not in data.cache:  # T
            C = data.Z.T @ data.Z / data.Z.shape[0]
            C[np.diag_indices_from(C)] += 1e-3  # some columns may be equal
            data.cache["covariance"] = 0.5 * (C + np.diag(np.diag(C)))
        Z, codes, n_classes = data.Z[data.labeled[kept]], data.codes[kept], data.n_classes
        m, d = Z.shape
        counts = np.bincount(codes, minlength=n_classes)
        means = np.zeros((n_classes, d))
        np.add.at(means, codes, Z)
        means /= np.maximum(counts, 1)[:, None]
        E = Z - means[codes]
        a, b = setting[0] * d + 1.0, setting[1] * d + 1.0
        W = (E.T @ E + a * data.cache["covariance"]) / (m - np.count_nonzero(counts) + a)
        pooled, roots, halves = np.isinf(b), [], []
        for c in range(1 if pooled else n_classes):
            e = E[codes == c]
            s = ((e * e).sum() / np.trace(W) + 1.0) / max(e.shape[0], 1)
            S = W if pooled else (e.T @ e + b * s * W) / (e.shape[0] + b)
            L = linalg.cholesky(S, lower=True)
            roots.append(linalg.solve_triangular(L, np.eye(d), lower=True).T)
            halves.append(np.log(np.diag(L)).sum())
        with np.errstate(divide="ignore"):
            constants = np.maximum(np.log(counts / m), -1e3) - np.array(halves)
        return GaussianClasses(data.scaling, means, np.array(roots), constants)
