"""The RBF kernel of features of any size, dense or sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from ..graph.features import Features
from ..linalg.row_products import row_products, row_squares


def rbf(A: Features, B: Features, gamma: float) -> FloatArray:
    """Return the RBF kernel; it is 0 where the distance overflows."""
    A = A.astype(np.float64, copy=False)
    B = B.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(A):  # a shift to the mean keeps the digits of distances
            middle = B.mean(axis=0)
            if np.isfinite(middle).all():
                A = np.clip(A - middle, -1e300, 1e300)
                B = np.clip(B - middle, -1e300, 1e300)
            if np.abs(B).max(initial=0.0) > 1e150:  # squares would overflow
                A = A * np.sqrt(gamma)
                B = B * np.sqrt(gamma)
                gamma = 1.0
        if isinstance(A, np.ndarray):
            squares = -2.0 * row_products(A, B.T)
            squares += row_squares(A)[:, None]
        else:
            squares = -2.0 * (A @ B.T).toarray()
            squares += (A * A).sum(axis=1)[:, None]
        squares += (B * B).sum(axis=1)
        K = np.exp(-gamma * np.maximum(squares, 0.0))
    return np.asarray(np.nan_to_num(K, copy=False, nan=0.0))


def mean_square_distance(points: Features) -> float:
    """Return the number of columns times the variance of all entries; infinite if it overflows."""
    if isinstance(points, sp.csr_array):
        variance = float(points.multiply(points).mean() - points.mean() ** 2)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(np.var(points, dtype=np.float64))
    spread = points.shape[1] * variance
    return spread if spread < np.inf else np.inf


def gamma_of_width(width: float, spread: float) -> float:
    """Return gamma of ``exp(-gamma d^2)`` for a width relative to :func:`mean_square_distance`."""
    if spread == np.inf:
        return 1e-300
    return width / spread if spread > 1e-300 else 1.0
