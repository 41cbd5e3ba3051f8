"""The fully connected graph of the paper's experiments.

    W_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j)),   W_ii = 0

`bandwidth` is sigma; a number is used for all samples, and 1 gives the paper's kernel
exp(-|f_i - f_j|^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from ..arrays import FloatArray
from ..memory import check_memory
from .adjacency import MatrixLike
from .features import Features, check_features, row_blocks
from .neighbor_graph import (
    SCALE_NEIGHBOR,
    SMALLEST_WEIGHT,
    check_bandwidth,
    kernel_weights,
    local_scales,
    median_scale,
)
from .neighbors import NeighborIndex
from .search import feature_scale

MEDIAN_SAMPLE = 2000


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
    bandwidth = check_bandwidth(bandwidth)
    A = check_features(X)
    n = A.shape[0]
    check_memory(
        np.dtype(dtype).itemsize * float(n) * n,
        f"the full graph of {n} nodes",
        "use neighbor_graph, which is sparse",
    )
    scales = node_scales(A, bandwidth, n_jobs=n_jobs)
    W = np.empty((n, n), dtype=dtype)
    for rows in row_blocks(n, 16 * n):
        apart, unit = distances(A[rows], A)
        near = scales / unit
        W[rows] = kernel_weights(apart, near[rows, None], near, dtype=dtype, floor=False)
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
        apart, unit = distances(chosen, chosen)
        above = apart[np.triu_indices_from(apart, 1)]
        return np.full(n, median_scale(above) * (unit if above.any() else 1.0))
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
    Y, Z = map(sp.csr_array, both)
    norms = [np.asarray(A.power(2).sum(axis=1)).ravel() for A in (Y, Z)]
    # This order of additions rounds (i, j) and (j, i) in the same way.
    squares = -2.0 * (Y @ Z.T).toarray() + (norms[0][:, None] + norms[1])
    return np.sqrt(np.maximum(squares, 0.0)), unit
