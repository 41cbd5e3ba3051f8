"""The fully connected graph of the paper's experiments.

    W_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j)),   W_ii = 0

`bandwidth` is sigma; a number is used for all samples, and 1 gives the paper's kernel
exp(-|f_i - f_j|^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .adjacency import MatrixLike
from .features import Features, check_features, row_blocks
from .memory import check_memory
from .neighbor_graph import (
    SCALE_NEIGHBOR,
    SMALLEST_WEIGHT,
    check_bandwidth,
    local_scales,
    median_scale,
)
from .neighbors import NeighborIndex
from .search import feature_scale

MEDIAN_SAMPLE = 2000

FloatArray = NDArray[np.float64]


def full_graph(
    X: MatrixLike,
    *,
    bandwidth: str | float = 1.0,
    n_jobs: int | None = None,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Return the weights between all pairs of samples.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features, finite.
    bandwidth : float, "median" or "self-tuning", default=1.0
        sigma in ``exp(-d^2 / sigma^2)``. "median" is the median positive distance between samples
        (of at most 2000 of them). "self-tuning" is the distance of each sample to its 7th
        neighbour, with sigma_i sigma_j in place of sigma^2.
    n_jobs : int, optional
        Number of threads for the neighbour search of "self-tuning".
    dtype : {float64, float32}, default=float64
        Type of the weights.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        Symmetric weights in [0, 1], zero diagonal; those of distant pairs may underflow to 0.

    Raises
    ------
    MemoryError
        If the matrix does not fit in memory; the message suggests what to use instead.

    Examples
    --------
    >>> from gdpa.graph import full_graph
    >>> full_graph([[0.0], [1.0]]).round(4)
    array([[0.    , 0.3679],
           [0.3679, 0.    ]])
    """
    if np.dtype(dtype) not in SMALLEST_WEIGHT:
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    bandwidth, A = check_bandwidth(bandwidth), check_features(X)
    n = A.shape[0]
    check_memory(
        np.dtype(dtype).itemsize * float(n) * n,
        f"the full graph of {n} nodes",
        "use neighbor_graph, which is sparse",
    )
    unit = feature_scale(A)
    root = np.sqrt(node_scales(A, bandwidth, n_jobs=n_jobs) / unit)
    W = np.empty((n, n), dtype=dtype)
    for rows in row_blocks(n, 16 * n):
        squares = _direct_squares(A, rows, unit)
        W[rows] = _exponential(squares, root[rows, None] * root)
    np.fill_diagonal(W, 0.0)
    return W


def node_scales(A: Features, bandwidth: str | float, *, n_jobs: int | None = None) -> FloatArray:
    """Return the scale sigma_i of each sample.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n_samples, n_features)
        Checked features.
    bandwidth : str or float
        Checked bandwidth.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (n_samples,)
        Positive scales.
    """
    n = A.shape[0]
    if bandwidth == "self-tuning":
        if n == 1:
            return np.ones(1)
        index = NeighborIndex(A, algorithm="exact", n_jobs=n_jobs)
        return local_scales(index.neighbors(min(SCALE_NEIGHBOR, n - 1)).distances)
    if bandwidth == "median":
        chosen = A
        if n > MEDIAN_SAMPLE:
            rng = np.random.default_rng(0)
            chosen = A[np.sort(rng.choice(n, MEDIAN_SAMPLE, replace=False))]
        scale = feature_scale(chosen)
        squares = _direct_squares(chosen, slice(0, chosen.shape[0]), scale)
        above = squares[np.triu_indices(squares.shape[0], 1)]
        return np.full(n, median_scale(np.sqrt(above)) * (scale if above.any() else 1.0))
    return np.full(n, float(bandwidth))


def distances(X: Features, points: Features) -> tuple[FloatArray, float]:
    """Return the distances between rows and points in a unit that avoids overflow.

    Parameters
    ----------
    X, points : ndarray or csr_array
        Checked features.

    Returns
    -------
    ndarray of shape (n_rows, n_points)
        Distances divided by the unit; exactly 0 for equal rows of arrays.
    unit : float
        The unit.
    """
    unit = max(feature_scale(X), feature_scale(points))
    both = [A if unit == 1.0 else A.astype(np.float64) / unit for A in (X, points)]
    if isinstance(X, np.ndarray) and isinstance(points, np.ndarray):
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(*(np.asarray(A, dtype=np.float64) for A in both))), unit
    from sklearn.metrics import pairwise_distances

    return np.asarray(pairwise_distances(both[0], both[1].copy()), dtype=np.float64), unit


def _direct_squares(A: Features, rows: slice, scale: float) -> FloatArray:
    """Return the squared distances of some rows to all, for features divided by `scale`."""
    if isinstance(A, np.ndarray):
        from scipy.spatial.distance import cdist

        Z = np.asarray(A, dtype=np.float64)
        Z = Z if scale == 1.0 else Z / scale
        return np.asarray(cdist(Z[rows], Z, "sqeuclidean"))
    Z = A if scale == 1.0 else A / scale
    norms = np.asarray(Z.power(2).sum(axis=1)).ravel()
    squares = -2.0 * (Z[rows] @ Z.T).toarray()
    # This order of additions rounds (i, j) and (j, i) in the same way.
    squares += norms[rows, None] + norms
    return np.asarray(np.maximum(squares, 0.0))


def _exponential(squares: NDArray[Any], scales: NDArray[Any]) -> NDArray[Any]:
    """Return ``exp(-squares / scales^2)``, in place; divides twice, as scales^2 could underflow."""
    with np.errstate(under="ignore", over="ignore"):
        squares /= scales
        squares /= scales
        np.negative(squares, out=squares)
        return np.asarray(np.exp(squares, out=squares))
