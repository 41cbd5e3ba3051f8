"""An RBF kernel machine: regularised least squares on the classes' indicators.

    s(x) = sum_i k(x, x_i) c_i,   c = (K + lambda I)^-1 (Y - 1/n_classes),   shares ~ exp(4 s)

Least squares instead of hinges because every fold is left out in closed form: with
``G = (K + lambda)^-1`` and the labels f of a fold, their scores without them are
``Y_f - G_ff^-1 (G Y)_f``. One inverse per setting judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from ...graph.rescale import Rescaler
from ...threads import one_thread
from .member import Task, Trial, least_loss, scaled, thinned, unlike_units
from .supervised import Supervised

__all__ = ["KernelMachine", "try_kernel"]

FloatArray = NDArray[np.float64]
Setting = tuple[bool, float, float]  # columns scaled or not, width, ridge

# Multiples of 1 / (columns * variance) for the width, and ridges; chosen by left-out labels. On
# real tables a coarser grid of ridges costs nothing, one width alone 0.2 points.
WIDTHS = (0.3, 1.0, 3.0)
RIDGES = (0.03, 0.3, 3.0)
# Labels that are compared at most, and to choose the setting; more are thinned, evenly over the
# classes: an inverse takes the cube of their number.
MOST_LABELS = 1_000
CHOICE_LABELS = 400
STEEPNESS = 4.0
# Comparisons made at a time, and rows from which on they are made in single precision.
BLOCK = 1_000_000
SINGLE_ROWS = 20_000
SINGLE = 1e18  # its square still fits
FARTHEST = 1e300  # a difference of any two numbers, kept finite


@dataclass(frozen=True)
class KernelMachine:
    """A fitted kernel machine.

    Parameters
    ----------
    scaling : Rescaler or None
        Scales of the columns; None leaves them as they are.
    points : ndarray or csr_array of shape (n_labels, n_kept)
        Labelled samples, so scaled.
    coefficients : ndarray of shape (n_labels, n_classes)
        c.
    gamma : float
        Width of the kernel ``exp(-gamma d^2)``.
    """

    scaling: Rescaler | None
    points: Any
    coefficients: FloatArray
    gamma: float

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows."""
        Z = X if self.scaling is None else scaled(self.scaling, X)
        return machine_shares(Z, self.points, self.coefficients, self.gamma)


def machine_shares(Z: Any, points: Any, coefficients: FloatArray, gamma: float) -> FloatArray:
    """Shares from scores, a block of rows at a time; of many rows in single precision."""
    n = Z.shape[0]
    many = n > SINGLE_ROWS and not sp.issparse(Z)
    scores = _single_scores(points, coefficients, gamma) if many else None
    out = np.empty((n, coefficients.shape[1]))
    step = max(1, BLOCK // max(1, points.shape[0]))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        if scores is None:
            out[rows] = to_probabilities(_kernel(Z[rows], points, gamma) @ coefficients)
        else:
            out[rows] = to_probabilities(scores(Z[rows]))
    return out


def _single_scores(
    points: Any, coefficients: FloatArray, gamma: float
) -> Callable[[Any], FloatArray]:
    """Scores of rows in single precision.

    Shifted to the points' mean, squared distances are of the size of ``1 / gamma`` where the kernel
    is not 0, and their rounding does not matter.
    """
    middle = points.mean(axis=0, dtype=np.float64)
    P = np.asarray(points - middle, dtype=np.float32)
    squares = np.float32(gamma) * (P * P).sum(axis=1)
    twice, c = np.float32(2.0 * gamma) * P.T, coefficients.astype(np.float32)

    def scores(rows: Any) -> FloatArray:
        A = np.clip(rows - middle, -SINGLE, SINGLE).astype(np.float32)
        K = A @ twice
        with np.errstate(over="ignore", invalid="ignore"):
            K -= (np.float32(gamma) * (A * A).sum(axis=1))[:, None]
            K -= squares
            np.exp(np.minimum(np.nan_to_num(K, copy=False, nan=-np.inf), 0.0, out=K), out=K)
        return np.asarray(K @ c, dtype=np.float64)

    return scores


def to_probabilities(scores: FloatArray) -> FloatArray:
    """Scores around 0 (1 - 1/k for a sure label) as shares."""
    e = np.exp(STEEPNESS * (scores - scores.max(axis=1, keepdims=True)))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def try_kernel(task: Task) -> Trial:
    """Judge widths and ridges, in the columns as they are and, if their units differ, scaled.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The best of them.
    """
    chosen = (unlike_units(task.X), 1.0, 0.3)
    left_out = None
    if task.folds is not None:
        kept = thinned(task.codes, CHOICE_LABELS)
        found = dict(_left_out(task, kept))
        chosen, left_out = least_loss(found, task.codes[kept], task.folds[kept])
        if kept.size < task.codes.size:
            left_out = _by_fold(task, thinned(task.codes, MOST_LABELS), chosen)

    def build(full: Task) -> Supervised:
        points, gamma = _points(full, chosen)
        kept = thinned(full.codes, MOST_LABELS)
        anchors = points[full.labeled[kept]]
        c = _coefficients(anchors, full.targets[kept], gamma, chosen[2])
        machine = KernelMachine(full.scaling if chosen[0] else None, anchors, c, gamma)
        return Supervised("kernel", machine, machine_shares(points, anchors, c, gamma))

    return Trial("kernel", left_out, build)


def _points(task: Task, setting: Setting) -> tuple[Any, float]:
    """Features and gamma of a setting."""
    points = task.Z if setting[0] else task.X
    spread = points.shape[1] * _variance(points)
    return points, setting[1] / spread if 1e-300 < spread < np.inf else 1.0


def _variance(points: Any) -> float:
    """Variance of all cells, as in ``gamma="scale"`` of scikit-learn's kernel machines."""
    if sp.issparse(points):
        return float(points.multiply(points).mean() - points.mean() ** 2)
    with np.errstate(over="ignore"):
        return float(np.var(points, dtype=np.float64))


def _coefficients(points: Any, targets: FloatArray, gamma: float, ridge: float) -> FloatArray:
    K = _kernel(points, points, gamma)
    K[np.diag_indices_from(K)] += ridge
    with one_thread():
        found = linalg.solve(K, targets - 1.0 / targets.shape[1], assume_a="pos")
    return np.asarray(found)


def _kernel(A: Any, B: Any, gamma: float) -> FloatArray:
    from sklearn.metrics.pairwise import rbf_kernel

    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(A):  # about the points' middle distances keep their digits
            middle = B.mean(axis=0, dtype=np.float64)
            if np.isfinite(middle).all():
                A, B = (np.clip(points - middle, -FARTHEST, FARTHEST) for points in (A, B))
        K = np.asarray(rbf_kernel(A, B, gamma=gamma), dtype=np.float64)
    # Where a square is no number, nor a difference of two, the distance is beyond all widths.
    return np.nan_to_num(K, copy=False, nan=0.0)


def _left_out(task: Task, kept: NDArray[np.intp]) -> Iterator[tuple[Setting, FloatArray]]:
    """Left-out shares of the kept labels for every setting."""
    assert task.folds is not None
    Y = task.targets[kept] - 1.0 / task.n_classes
    groups = [np.flatnonzero(task.folds[kept] == f) for f in range(task.n_folds)]
    for scaling in (False, True) if unlike_units(task.X) else (False,):
        for width in WIDTHS:
            points, gamma = _points(task, (scaling, width, 0.0))
            anchors = points[task.labeled[kept]]
            K = _kernel(anchors, anchors, gamma)
            for ridge in RIDGES:
                A = K.copy()
                A[np.diag_indices_from(A)] += ridge
                scores = np.empty_like(Y)
                with one_thread():
                    G = linalg.inv(A)
                    C = G @ Y
                    for f in groups:
                        if f.size:
                            scores[f] = Y[f] - linalg.solve(G[np.ix_(f, f)], C[f])
                yield (scaling, width, ridge), to_probabilities(scores)


def _by_fold(task: Task, kept: NDArray[np.intp], chosen: Setting) -> FloatArray:
    """Left-out shares of all labels by machines of the kept ones outside their fold."""
    assert task.folds is not None
    out = np.empty((task.codes.size, task.n_classes))
    points, gamma = _points(task, chosen)
    Z = points[task.labeled]
    for f in range(task.n_folds):
        inside = kept[task.folds[kept] != f]
        c = _coefficients(Z[inside], task.targets[inside], gamma, chosen[2])
        asked = task.folds == f
        out[asked] = machine_shares(Z[asked], Z[inside], c, gamma)
    return out
