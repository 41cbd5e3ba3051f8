"""Exact nearest-neighbour search, choice of the search structure, and distances.

Each search structure has a method ``candidates(Q, k)``, which returns the indices of at least the k
nearest points of every row of Q, and an `order` of its points in which consecutive queries share
memory. Distances are always computed again, in float64 from differences of features
(:func:`pair_distances`). So duplicates have distance exactly 0, distances are symmetric to the last
bit, and the result does not depend on the search structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..errors import unknown_choice
from ..policy import DEFAULT_POLICY, Policy
from ..threads import openmp_threads
from .features import Features, row_blocks

IndexArray = NDArray[np.intp]

STRUCTURES = ("kd-tree", "brute-force", "cells")


def choose_algorithm(
    n_samples: int,
    n_features: int,
    *,
    sparse: bool = False,
    algorithm: str = "auto",
    policy: Policy = DEFAULT_POLICY,
) -> str:
    """Choose the search structure for a number of points and features.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the features.
    sparse : bool, default=False
        Whether the features are sparse; these are always searched exhaustively.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        "exact" is a KD-tree for up to 10 features, and exhaustive search for more.
        "approximate" compares whole cells of points (:class:`~gdpa.graph.cells.CellJoin`). "auto"
        is exact up to 50,000 points (20,000 with more than 10 features; any number with up to 5
        features), else approximate. The name of a search structure is accepted, too.
    policy : Policy, optional
        Size limits.

    Returns
    -------
    str
        "kd-tree", "brute-force" or "cells".
    """
    known = ("auto", "exact", "approximate")
    if algorithm not in (*known, *STRUCTURES):
        raise unknown_choice("algorithm", algorithm, known)
    exact = "kd-tree" if n_features <= policy.tree_features else "brute-force"
    if sparse:
        return "brute-force"
    if algorithm in STRUCTURES:
        return algorithm
    if algorithm == "exact":
        return exact
    limit = policy.tree_points if exact == "kd-tree" else policy.brute_points
    if algorithm == "auto" and (n_samples <= limit or n_features <= policy.low_features):
        return exact
    return "cells"


def feature_scale(X: Features) -> float:
    """Return a power of two that scales features so that their squares do not overflow.

    It is 1 unless the largest magnitude is above 1e100 or below 1e-100.
    """
    if isinstance(X, np.ndarray):
        top = 0.0
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            top = max(top, float(np.abs(X[rows]).max()))
    else:
        top = float(np.abs(X.data).max(initial=0.0))
    if top == 0 or 1e-100 < top < 1e100:
        return 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(top)), -1021, 1022))


def pair_distances(Q: Features, X: Features, indices: IndexArray, scale: float) -> FloatArray:
    """Return the distances between row i of Q and the rows ``indices[i]`` of X, in float64.

    Parameters
    ----------
    Q, X : ndarray or csr_array
        Queries and points.
    indices : ndarray of shape (n_queries, k)
        Rows of X.
    scale : float
        Divides the features before squaring; see :func:`feature_scale`.

    Returns
    -------
    ndarray of shape (n_queries, k)
        The distances.
    """
    m, k = indices.shape
    out = np.empty((m, k))
    if isinstance(X, np.ndarray) and isinstance(Q, np.ndarray):
        for rows in row_blocks(m, 16 * k * X.shape[1]):
            difference = X[indices[rows]].astype(np.float64, copy=False)
            difference /= scale
            difference -= np.asarray(Q[rows], dtype=np.float64)[:, None, :] / scale
            np.einsum("ijk,ijk->ij", difference, difference, out=out[rows])
    else:
        both: tuple[sp.csr_array, ...] = (X, Q)
        width = 1 + max(A.nnz // max(1, A.shape[0]) for A in both)
        for rows in row_blocks(m, 64 * k * width):
            flat = indices[rows].ravel()
            queries = np.repeat(np.arange(rows.start, rows.stop), k)
            difference = (X[flat] - Q[queries]) / scale
            out[rows] = np.asarray(difference.power(2).sum(axis=1)).reshape(-1, k)
    np.sqrt(out, out=out)
    # Distances that overflow become the largest number.
    np.minimum(out, np.finfo(np.float64).max / max(scale, 1.0), out=out)
    out *= scale
    return out


@dataclass(frozen=True)
class NeighborResult:
    """Neighbours of each query, nearest first.

    Parameters
    ----------
    indices : ndarray of shape (n_queries, n_neighbors)
        Rows of the fitted features.
    distances : ndarray of shape (n_queries, n_neighbors)
        Euclidean distances, ascending.
    algorithm : str
        The search structure: "kd-tree", "brute-force" (both exact) or "cells".
    recall : float
        Share of the true neighbours that were found: 1 for exact search, otherwise measured on a
        sample of the fitted points.
    """

    indices: NDArray[Any]
    distances: NDArray[np.float64]
    algorithm: str
    recall: float


class KDTree:
    """Exact search in few dimensions with SciPy's KD-tree."""

    def __init__(self, X: NDArray[Any], scale: float) -> None:
        from scipy.spatial import cKDTree

        self.scale = scale
        self.tree = cKDTree(np.asarray(X, dtype=np.float64) / scale)
        # Points of a leaf are adjacent, so consecutive queries use the same memory.
        self.order = np.asarray(self.tree.indices, dtype=np.intp)

    def candidates(self, Q: Features, k: int) -> IndexArray:
        """Return the indices of the k nearest points of each row of Q."""
        q = np.asarray(Q, dtype=np.float64) / self.scale
        # SciPy's threads would continue after an interrupt and write to freed arrays.
        _, nearest = self.tree.query(q, k=k, workers=1)
        return np.asarray(nearest, dtype=np.intp).reshape(q.shape[0], k)


class BruteForce:
    """Exact search in many dimensions, and of sparse rows, by blocked matrix products.

    ``|q|^2 - 2 q'x + |x|^2`` is inaccurate for distances that are tiny compared with the norms. So
    a few more than k candidates are kept. If the last of them may be as near as the k-th, the query
    is searched again by differences (dense features only).
    """

    def __init__(self, X: Features, scale: float, n_jobs: int) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.scale = scale
        self.n_jobs = n_jobs
        self.center: FloatArray | None = None
        if isinstance(X, np.ndarray):
            mean, spread = column_moments(X, scale)
            # A large common offset costs accuracy; without one the features need not be copied.
            if scale != 1.0 or float(mean @ mean) > 100 * spread:
                self.center = mean
            self.points: Features = self._placed(X)
            self.norm = max(
                float(np.einsum("ij,ij->i", b, b, dtype=np.float64).max())
                for b in (self.points[rows] for rows in row_blocks(X.shape[0], 8 * X.shape[1]))
            )
        else:
            self.points = X if scale == 1.0 else X / scale
            self.points.indices = self.points.indices.astype(np.int32, copy=False)
            self.points.indptr = self.points.indptr.astype(np.int32, copy=False)
        self.search = NearestNeighbors(algorithm="brute").fit(self.points)
        self.order = np.arange(self.points.shape[0])

    def _placed(self, X: Features) -> Features:
        if not isinstance(X, np.ndarray):
            return X if self.scale == 1.0 else X / self.scale
        if self.center is None:
            return np.ascontiguousarray(X)
        out = np.empty(X.shape, dtype=X.dtype)
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            out[rows] = np.asarray(X[rows], dtype=np.float64) / self.scale - self.center
        return out

    def candidates(self, Q: Features, k: int) -> IndexArray:
        """Return the indices of the k nearest points of each row of Q, and a few more."""
        n = self.points.shape[0]
        more = min(n, k + max(4, k // 4))
        q = self._placed(Q)
        if isinstance(q, np.ndarray):
            q = q.astype(self.points.dtype, copy=False)
        with openmp_threads(self._threads(q.shape[0])):
            distances, nearest = self.search.kneighbors(q, more)
        if isinstance(q, np.ndarray) and more < n:
            doubtful = self._doubtful(q, nearest, distances, k)
            if doubtful.size:
                with openmp_threads(self._threads(doubtful.size)):
                    nearest[doubtful] = self._by_differences(q[doubtful], more)
        return np.asarray(nearest, dtype=np.intp)

    def _doubtful(
        self, q: NDArray[Any], nearest: IndexArray, distances: FloatArray, k: int
    ) -> IndexArray:
        doubtful = []
        for rows in row_blocks(q.shape[0], 32 * nearest.shape[1]):
            part = q[rows]
            norms = np.einsum("ij,ij->i", part, part, dtype=np.float64)
            error = 64 * np.finfo(np.float64).eps * (norms + self.norm)
            near = pair_distances(part, self.points, nearest[rows], 1.0)
            near.sort(axis=1)
            kth = near[:, k - 1] ** 2
            reach = distances[rows, -1].astype(np.float64) ** 2
            wrong = np.flatnonzero((reach - error <= kth) & (error > 1e-9 * kth))
            doubtful.append(wrong + rows.start)
        return np.concatenate(doubtful)

    def _by_differences(self, q: NDArray[Any], k: int) -> IndexArray:
        from sklearn.neighbors import NearestNeighbors

        # scikit-learn evaluates the standardised metric, here with unit variances, by differences.
        search = NearestNeighbors(
            algorithm="brute", metric="seuclidean", metric_params={"V": np.ones(q.shape[1])}
        ).fit(self.points)
        nearest = search.kneighbors(q, k, return_distance=False)
        return np.asarray(nearest, dtype=np.intp)

    def _threads(self, n_queries: int) -> int:
        """Return the number of threads for an exhaustive search.

        With fewer than 1024 queries per thread, scikit-learn would split the points instead of the
        queries, and ties would depend on the number of threads.
        """
        return max(1, min(self.n_jobs, (n_queries - 1) // 1024))


def column_moments(X: NDArray[Any], scale: float) -> tuple[FloatArray, float]:
    """Return the column means and the summed variance of features divided by `scale`."""
    n = X.shape[0]
    mean = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        mean += (np.asarray(X[rows], dtype=np.float64) / scale).sum(axis=0)
    mean /= n
    total = 0.0
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        total += float(np.square(np.asarray(X[rows], dtype=np.float64) / scale - mean).sum())
    return mean, total / n
