"""Gaussian classes of standardised columns, with a shared covariance or one of their own.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.special import softmax

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.features import Features
from ...linalg.row_products import row_products, row_squares
from ..data import Fold, stratified_subsample
from ..members import FittedModel, Model
from ..trials import Trial
from ..views import PointsView, Views
from .base import Head
from .linear import FAR, MOST_LABELS

BLOCK = 20_000  # rows that are predicted at once
# Limits on the columns, and on the entries of the covariances of all classes.
MOST_COLUMNS = 100
MOST_ENTRIES = 300_000


@storable("gaussian classes")
@dataclass(frozen=True, eq=False)
class GaussianClasses(Model):
    """Fitted Gaussian classes.

    Parameters
    ----------
    means : ndarray of shape (n_classes, n_kept)
        mu.
    roots : ndarray of shape (1 or n_classes, n_kept, n_kept)
        R with ``R R^T = S^-1``, one for all classes or one for each.
    constants : ndarray of shape (n_classes,)
        log pi - 1/2 log det S.
    """

    means: FloatArray
    roots: FloatArray
    constants: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        k = self.constants.size
        check_numbers("means", self.means, (k, None))
        d = self.means.shape[1]
        check_numbers("roots", self.roots, (1 if self.roots.shape[:1] == (1,) else k, d, d))
        check_numbers("constants", self.constants, (k,))

    def predict(self, points: Features) -> FloatArray:
        """Return shares of points, computed block by block."""
        Z = points
        out = np.empty((Z.shape[0], self.means.shape[0]))
        for start in range(0, Z.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            near = np.clip(Z[rows], -FAR, FAR)
            for c, mean in enumerate(self.means):
                A = row_products(near - mean, self.roots[c % self.roots.shape[0]])
                out[rows, c] = self.constants[c] - 0.5 * row_squares(A)
        return np.asarray(softmax(out, axis=1))


def fit_gaussians(
    Z: FloatArray,
    codes: NDArray[np.integer],
    n_classes: int,
    prior: FloatArray,
    setting: tuple[float, float],
) -> GaussianClasses:
    """Fit means and covariances.

    Parameters
    ----------
    Z : ndarray of shape (n_labels, n_columns)
        Points of the labels.
    codes : ndarray of int of shape (n_labels,)
        Their classes.
    n_classes : int
        Number of classes.
    prior : ndarray of shape (n_columns, n_columns)
        T.
    setting : tuple of float
        Factors f that give the weights of the priors in labels, a and b = f d + 1.
    """
    m, d = Z.shape
    counts = np.bincount(codes, minlength=n_classes)
    means = np.zeros((n_classes, d))
    np.add.at(means, codes, Z)
    means /= np.maximum(counts, 1)[:, None]
    E = Z - means[codes]
    a = setting[0] * d + 1.0
    b = setting[1] * d + 1.0
    W = (E.T @ E + a * prior) / (m - np.count_nonzero(counts) + a)
    covariances = [W]
    if np.isfinite(b):
        covariances = [_of_class(E[codes == c], W, b) for c in range(n_classes)]
    factors = [linalg.cholesky(S, lower=True) for S in covariances]
    roots = [linalg.solve_triangular(L, np.eye(d), lower=True).T for L in factors]
    halves = np.array([np.log(np.diag(L)).sum() for L in factors])
    with np.errstate(divide="ignore"):
        constants = np.maximum(np.log(counts / m), -1e3) - halves
    return GaussianClasses(means, np.array(roots), constants)


def _of_class(e: FloatArray, W: FloatArray, b: float) -> FloatArray:
    """Return the covariance of a class with deviations e from its mean."""
    s = ((e * e).sum() / np.trace(W) + 1.0) / max(e.shape[0], 1)
    return np.asarray((e.T @ e + b * s * W) / (e.shape[0] + b))


@dataclass(frozen=True)
class Gaussian(Head):
    """Gaussian classes; held-out labels choose how far the covariances are shrunk.

    Parameters
    ----------
    view : PointsView
        Standardised columns.
    shrinkages : tuple
        Settings of :func:`fit_gaussians` to choose from: one covariance for all classes, one for
        each class, and multiples of one covariance.
    """

    view: PointsView
    shrinkages: tuple[tuple[float, float], ...] = (
        (0.3, np.inf),
        (3.0, np.inf),
        (1.0, 2.0),
        (1.0, 0.5),
        (1.0, 100.0),
        (1.0, np.inf),
    )

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head if there are few dense columns."""
        if sp.issparse(views.data.X):
            return None
        d = views.data.X.shape[1]
        few = d <= MOST_COLUMNS and d * d * views.data.n_classes <= MOST_ENTRIES
        return self if few else None

    def settings(self, views: Views) -> Sequence[tuple[float, float]]:
        """Return the shrinkages."""
        return self.shrinkages

    def _model(
        self, views: Views, setting: tuple[float, float], fold: Fold | None
    ) -> GaussianClasses:
        """Return a model that has not seen a fold."""
        data = views.data
        kept = np.arange(data.codes.size) if fold is None else fold.kept
        kept = kept[stratified_subsample(data.codes[kept], MOST_LABELS)]
        Z = np.asarray(views.standardised.points[data.labeled[kept]])
        return fit_gaussians(Z, data.codes[kept], data.n_classes, views.covariance, setting)

    def held_out(self, views: Views, setting: tuple[float, float], fold: Fold) -> FloatArray:
        """Predict a fold by a model that has not seen its labels."""
        points = views.standardised.points
        return self._model(views, setting, fold).predict(points[views.data.labeled[fold.held]])

    def fit(self, views: Views, setting: tuple[float, float]) -> FittedModel:
        """Fit to all labels."""
        looked_at = views.standardised
        model = self._model(views, setting, None)
        return FittedModel(
            model=model, columns=looked_at.columns, shares=model.predict(looked_at.points)
        )
