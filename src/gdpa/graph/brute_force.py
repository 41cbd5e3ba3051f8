"""Exact search in many dimensions, and of sparse rows, by products of whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..threads import at_most
from .features import Features, row_blocks
from .search import FloatArray, IndexArray, column_moments, pair_distances

__all__ = ["BruteForce"]


class BruteForce:
    """Exact search in many dimensions, and of sparse rows: blocked matrix products.

    ``|q|^2 - 2 q'x + |x|^2`` loses the digits of distances that are tiny against the norms. So a
    few more candidates than asked for are kept, and a query whose last candidate is not beyond
    doubt farther than its k-th neighbour is searched again by differences (dense features).
    """

    def __init__(self, X: Features, scale: float) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.scale = scale
        self.center: FloatArray | None = None
        if isinstance(X, np.ndarray):
            mean, spread = column_moments(X, scale)
            # A common offset only costs digits. Where it is small the features are used in place.
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

    def _placed(self, X: Any) -> Any:
        if not isinstance(X, np.ndarray):
            return X if self.scale == 1.0 else X / self.scale
        if self.center is None:
            return np.ascontiguousarray(X)
        out = np.empty(X.shape, dtype=X.dtype)
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            out[rows] = np.asarray(X[rows], dtype=np.float64) / self.scale - self.center
        return out

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points of each row of Q, and a few more."""
        n = self.points.shape[0]
        more = min(n, k + max(4, k // 4))
        q = self._placed(Q)
        if isinstance(q, np.ndarray):
            q = q.astype(self.points.dtype, copy=False)
        with at_most(_threads(n_jobs, q.shape[0])):
            distances, nearest = self.search.kneighbors(q, more)
        if isinstance(q, np.ndarray) and more < n:
            doubtful = self._doubtful(q, nearest, distances, k)
            if doubtful.size:
                with at_most(_threads(n_jobs, doubtful.size)):
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

        # The standardised metric with unit variances is the one that is evaluated directly.
        search = NearestNeighbors(
            algorithm="brute", metric="seuclidean", metric_params={"V": np.ones(q.shape[1])}
        ).fit(self.points)
        nearest = search.kneighbors(q, k, return_distance=False)
        return np.asarray(nearest, dtype=np.intp)


def _threads(n_jobs: int, n_queries: int) -> int:
    """Threads for an exhaustive search whose answer must not depend on their number.

    With fewer than 1024 queries per thread it would split the points instead of the queries, and
    ties would be broken by where it splits.
    """
    return max(1, min(n_jobs, (n_queries - 1) // 1024))
