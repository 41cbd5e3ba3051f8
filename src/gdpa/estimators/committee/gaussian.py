"""Classes as Gaussian clouds: linear or quadratic discriminants, as left-out labels will have it.

    log p(c | x) = log pi_c - 1/2 log det S_c - 1/2 (x - mu_c)^T S_c^-1 (x - mu_c) + const

With few labels a covariance is mostly prior: the pooled one of all classes, W, is shrunk towards
that of all rows, labelled or not, half of it with its off-diagonal part and half without; that of a
class towards W,

    W   = (sum_c E_c^T E_c + a T) / (m - k + a),   T = (diag(C) + C) / 2,  C of all rows
    S_c = (E_c^T E_c + b W) / (m_c + b)            (b infinite: one covariance for all)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from ...graph.rescale import Rescaler
from ...threads import one_thread
from .linear import softmax
from .member import Task, Trial, least_loss, scaled, thinned
from .supervised import Supervised

__all__ = ["GaussianClasses", "try_gaussian"]

FloatArray = NDArray[np.float64]

# Weights of the priors in labels, as multiples of the columns and one more: of all rows' covariance
# in the pooled one, and of the pooled one in that of a class. On real tables each of them is chosen
# somewhere; a finer grid changed nothing.
SETTINGS = (
    (0.3, np.inf),
    (1.0, np.inf),
    (3.0, np.inf),
    (1.0, 2.0),
    (1.0, 0.5),
)
# Covariances of more columns are neither known from few labels nor cheap.
MOST_COLUMNS = 100
MOST_UNKNOWNS = 300_000
MOST_LABELS = 20_000
# Added to variances of 1: columns may be copies of each other.
FLOOR = 1e-3
BLOCK = 20_000
FARTHEST = 1e100  # its square still fits


@dataclass(frozen=True)
class GaussianClasses:
    """Fitted classes.

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

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows."""
        return self.shares(scaled(self.scaling, X))

    def shares(self, Z: FloatArray) -> FloatArray:
        """Shares of rows that are scaled already, a block at a time."""
        out = np.empty((Z.shape[0], self.means.shape[0]))
        for start in range(0, Z.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            near = np.clip(Z[rows], -FARTHEST, FARTHEST)
            for c, mean in enumerate(self.means):
                A = (near - mean) @ self.roots[c % self.roots.shape[0]]
                out[rows, c] = self.constants[c] - 0.5 * np.einsum("ij,ij->i", A, A)
        return softmax(out)


def fitted_classes(
    scaling: Rescaler,
    Z: FloatArray,
    codes: NDArray[Any],
    n_classes: int,
    prior: FloatArray,
    setting: tuple[float, float],
) -> GaussianClasses:
    """Means and covariances of labelled rows; a class without a label has no chance.

    Parameters
    ----------
    scaling : Rescaler
        How the rows were scaled.
    Z : ndarray of shape (n_labels, n_kept)
        Labelled rows.
    codes : ndarray of int of shape (n_labels,)
        Their classes.
    n_classes : int
        Number of classes.
    prior : ndarray of shape (n_kept, n_kept)
        T.
    setting : (float, float)
        Weights of the priors.

    Returns
    -------
    GaussianClasses
        The classes.
    """
    m, d = Z.shape
    counts = np.bincount(codes, minlength=n_classes)
    means = np.zeros((n_classes, d))
    np.add.at(means, codes, Z)
    means /= np.maximum(counts, 1)[:, None]
    E = Z - means[codes]
    a, b = (weight * d + 1.0 for weight in setting)
    W = (E.T @ E + a * prior) / max(m - np.count_nonzero(counts) + a, 1.0)
    if np.isinf(b):
        covariances = [W]
    else:
        parts = [E[codes == c] for c in range(n_classes)]
        covariances = [(e.T @ e + b * W) / (e.shape[0] + b) for e in parts]
    roots = np.empty((len(covariances), d, d))
    halves = np.empty(len(covariances))
    for j, S in enumerate(covariances):
        L = linalg.cholesky(S, lower=True)
        roots[j] = linalg.solve_triangular(L, np.eye(d), lower=True).T
        halves[j] = np.log(np.diag(L)).sum()
    with np.errstate(divide="ignore"):
        constants = np.maximum(np.log(counts / m), -1e3) - halves
    return GaussianClasses(scaling, means, roots, constants)


def try_gaussian(task: Task) -> Trial | None:
    """Judge the weights of the priors.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial or None
        The best of them; None of too many columns.
    """
    d = int(task.scaling.scale.size)
    few = d <= MOST_COLUMNS and d * d * task.n_classes <= MOST_UNKNOWNS
    if sp.issparse(task.X) or not few or task.folds is None:
        return None

    prior = _prior(task.Z)
    kept = thinned(task.codes, MOST_LABELS)
    found: dict[tuple[float, float], FloatArray] = {}
    with one_thread():
        for setting in SETTINGS:
            found[setting] = np.empty((task.codes.size, task.n_classes))
            for f in range(task.n_folds):
                out = task.folds == f
                classes = _fit(task, kept[~out[kept]], prior, setting)
                found[setting][out] = classes.shares(task.Z[task.labeled[out]])
    chosen, left_out = least_loss(found, task.codes, task.folds)

    def build(full: Task) -> Supervised:
        with one_thread():
            classes = _fit(full, thinned(full.codes, MOST_LABELS), _prior(full.Z), chosen)
        return Supervised("gaussian", classes, classes.shares(full.Z))

    return Trial("gaussian", left_out, build)


def _fit(
    task: Task, kept: NDArray[Any], prior: FloatArray, setting: tuple[float, float]
) -> GaussianClasses:
    """The classes as some of the labels have them."""
    rows, codes = task.Z[task.labeled[kept]], task.codes[kept]
    return fitted_classes(task.scaling, rows, codes, task.n_classes, prior, setting)


def _prior(Z: FloatArray) -> FloatArray:
    """T of rows that are scaled, and so of variance 1 or less."""
    C = Z.T @ Z / Z.shape[0]
    C[np.diag_indices_from(C)] += FLOOR
    return np.asarray(0.5 * (C + np.diag(np.diag(C))))
