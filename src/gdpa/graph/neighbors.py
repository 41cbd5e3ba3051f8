"""Exact or approximate nearest neighbours of fitted and of new points.

:class:`NeighborIndex` chooses a search structure by size and dimension (:func:`choose_algorithm`),
keeps it for later queries, and returns indices and float64 distances. The recall of an approximate
search is measured on a sample, by comparison with an exhaustive search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import get_index_dtype

from .. import memory
from ..codec import storable
from ..policy import DEFAULT_POLICY, Policy
from ..threads import effective_jobs, in_threads
from .adjacency import MatrixLike
from .cell_space import CellSpace
from .cells import CellJoin, enough_probes, true_neighbors
from .features import (
    BoundingBox,
    Features,
    Thinned,
    check_features,
    check_n_neighbors,
    check_seed,
    row_blocks,
    thin_duplicates,
)
from .search import (
    BruteForce,
    KDTree,
    NeighborResult,
    choose_algorithm,
    feature_scale,
    pair_distances,
)

Backend: TypeAlias = KDTree | BruteForce | CellJoin

# Default recall of an approximate search, measured on a sample of points.
TARGET_RECALL = 0.98
RECALL_SAMPLE = 256
# Maximum number of queries per block.
JOIN_BLOCK = 8_192


@storable("neighbor-index")
@dataclass(eq=False, repr=False)
class NeighborIndex:
    """An index of points for neighbour searches.

    Parameters
    ----------
    X : array-like, memory-mapped array or sparse matrix of shape (n_samples, n_features)
        The points.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        See :func:`choose_algorithm`.
    n_jobs : int, optional
        Number of threads; the results do not depend on it.
    random_state : int, default=0
        Random seed of the cells of an approximate search, and of the sample for its recall.
    recall : float, optional
        Share of the true neighbours that an approximate search must find on the sample, in (0, 1].
        By default 0.98; with more than 10 features, however, each query is compared with at most
        3,000 points in the nearest cells, whatever recall that gives.
    policy : Policy, optional
        Size limits of exact search, and of the work of an approximate one.
    prepared_for : int, default=0
        Largest number of neighbours requested so far. With the same number, a copy finds the same
        neighbours.

    Attributes
    ----------
    X : ndarray or csr_array
        The points; a floating-point array is not copied.
    algorithm : str
        The search structure in use.
    measured_recall : float
        1 if exact; otherwise measured at the first search.

    Examples
    --------
    >>> from gdpa.graph.neighbors import NeighborIndex
    >>> index = NeighborIndex([[0.0], [1.0], [3.0]])
    >>> index.neighbors(1).indices.ravel()
    array([1, 0, 1], dtype=int32)
    >>> index.query([[2.9]], 1).indices.ravel()
    array([2], dtype=int32)
    """

    X: Features
    _: KW_ONLY
    algorithm: str = "auto"
    n_jobs: int | None = field(default=None, metadata={"stored": False})
    random_state: int = 0
    recall: float | None = None
    policy: Policy = field(default=DEFAULT_POLICY, metadata={"stored": False})
    prepared_for: int = 0

    def __post_init__(self) -> None:
        r = self.recall
        if r is not None and not (isinstance(r, int | float) and 0 < r <= 1):
            raise ValueError(f"recall must be a number in (0, 1] or None, got {r!r}")
        X = self.X = check_features(self.X)
        n, d = X.shape
        dense = isinstance(X, np.ndarray)
        self.algorithm = choose_algorithm(
            n, d, sparse=not dense, algorithm=self.algorithm, policy=self.policy
        )
        if not 0 <= self.prepared_for <= n:
            raise ValueError(f"prepared_for={self.prepared_for} must be from 0 to {n}")
        self._threads = effective_jobs(self.n_jobs)
        self.random_state = check_seed(self.random_state)
        self.scale = feature_scale(X)
        self.measured_recall = 1.0
        self._box: BoundingBox | None = None
        self._backend: Backend | None = None
        self._order: NDArray[np.intp] = np.arange(0)
        self._thinned = Thinned(None, None)
        self._thinned_for = -1
        per_value = {"kd-tree": 8, "brute-force": X.dtype.itemsize, "cells": 4}[self.algorithm]
        need = float(n * d * per_value + 32 * n)
        if dense and need > memory.MIN_CHECKED_BYTES:
            memory.check_memory(
                need,
                f"a {self.algorithm} search of {n} points with {d} features",
                "use fewer points, float32 features or algorithm='approximate'",
            )

    def __getstate__(self) -> dict[str, Any]:
        # Not all search structures can be pickled; they are rebuilt when needed.
        return self.__dict__ | {"_backend": None}

    def neighbors(self, n_neighbors: int) -> NeighborResult:
        """Find the neighbours of each fitted point among the other fitted points.

        Parameters
        ----------
        n_neighbors : int
            Number of neighbours, at least 1; reduced to the number of other points with a warning.

        Returns
        -------
        NeighborResult
            Neighbours of each row of X.
        """
        n = self.X.shape[0]
        k = check_n_neighbors(n_neighbors, n - 1, "other points")
        if n == 1:
            return NeighborResult(
                np.empty((1, 0), np.int32), np.empty((1, 0)), self.algorithm, self.measured_recall
            )
        backend = self._prepare(k, n)
        indices = np.empty((n, k), dtype=get_index_dtype(maxval=n))
        distances = np.empty((n, k))
        order = self._order
        wanted = min(order.size, k + 1)

        def work(rows: slice) -> None:
            queries = order[rows]
            Q = self.X[queries]
            if isinstance(backend, CellJoin):
                candidates = backend.join(rows, wanted)
            else:
                candidates = backend.candidates(Q, wanted)
            indices[queries], distances[queries] = self._ranked(Q, candidates, k, queries)

        in_threads(work, *self._blocks(backend, order.size))
        if self._thinned.groups is not None:
            self._thinned.fill(indices, distances)
        return NeighborResult(indices, distances, self.algorithm, self.measured_recall)

    def query(self, X: MatrixLike, n_neighbors: int) -> NeighborResult:
        """Find the neighbours of new points among the fitted ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New points. A point that coincides with a fitted point has it as a neighbour. A point
            beyond 10,000 times the extent of the fitted points is moved to that distance.
        n_neighbors : int
            Number of neighbours, at least 1; at most the number of fitted points.

        Returns
        -------
        NeighborResult
            Neighbours of each new point.
        """
        Q = check_features(X, n_features=self.X.shape[1])
        if isinstance(Q, np.ndarray) != isinstance(self.X, np.ndarray):
            raise ValueError("X and the fitted features must both be dense or both be sparse")
        k = check_n_neighbors(n_neighbors, self.X.shape[0], "fitted points")
        if self._box is None:
            self._box = BoundingBox.of(self.X)
        Q = self._box.project(Q)
        backend = self._prepare(k, Q.shape[0])
        indices = np.empty((Q.shape[0], k), dtype=get_index_dtype(maxval=self.X.shape[0]))
        distances = np.empty((Q.shape[0], k))
        kept = self._thinned.kept
        wanted = k if kept is None else min(k, kept.size)

        def work(rows: slice) -> None:
            candidates = backend.candidates(Q[rows], wanted)
            indices[rows], distances[rows] = self._ranked(Q[rows], candidates, k)

        in_threads(work, *self._blocks(backend, Q.shape[0]))
        return NeighborResult(indices, distances, self.algorithm, self.measured_recall)

    def _prepare(self, k: int, n_queries: int) -> Backend:
        """Build and tune the search structure for k neighbours, or reuse the existing one."""
        if 12.0 * n_queries * k > memory.MIN_CHECKED_BYTES:
            memory.check_memory(
                12.0 * n_queries * k,
                f"{k} neighbours of {n_queries} points",
                "ask for fewer neighbours or in parts",
            )
        # A copy, or a stored index, is built for the same number, so that an approximate search
        # finds the same neighbours again.
        self.prepared_for = k = max(k, self.prepared_for)
        if self._backend is not None and k <= self._thinned_for:
            return self._backend
        self._backend, self._thinned = None, thin_duplicates(self.X, k + 2)
        kept = self._thinned.kept
        points = self.X if kept is None else self.X[kept]
        backend: Backend
        if self.algorithm == "cells":
            space = CellSpace.fit(points, self.scale, self.random_state)
            backend = CellJoin.of(points, space, space.home(points, self._threads))
            self._tune(backend, points, k)
        elif self.algorithm == "brute-force":
            backend = BruteForce(points, self.scale, self._threads)
        else:
            backend = KDTree(points, self.scale)
        # Surplus duplicates are not searched; their neighbours are known.
        order = np.asarray(backend.order, dtype=np.intp)
        self._order = order if kept is None else kept[order]
        self._backend = backend
        self._thinned_for = k
        return backend

    def _blocks(self, backend: Backend, n_queries: int) -> tuple[Iterator[slice], int]:
        """Return blocks of queries, and the number of threads."""
        if isinstance(backend, BruteForce) or (isinstance(backend, KDTree) and self._threads == 1):
            return row_blocks(n_queries, 1, 65_536), 1  # exhaustive search has its own threads
        # Comparisons with cells need 3 kB per query; keep that small compared with the graph.
        tree = isinstance(backend, KDTree)
        size = max(512, n_queries // (4 * self._threads)) if tree else max(4_096, n_queries // 24)
        return row_blocks(n_queries, 1, min(JOIN_BLOCK, size)), self._threads

    def _ranked(
        self,
        Q: Features,
        candidates: NDArray[np.intp],
        k: int,
        themselves: NDArray[np.intp] | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the k nearest candidates, sorted, without the queries `themselves`."""
        if self._thinned.kept is not None:
            candidates = self._thinned.kept[candidates]
        distances = pair_distances(Q, self.X, candidates, self.scale)
        if themselves is not None:
            distances[candidates == themselves[:, None]] = np.inf
        # Ties are sorted by number, so the result does not depend on the search structure.
        order = np.lexsort((candidates, distances), axis=1)[:, :k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(distances, order, 1)

    def _tune(self, backend: CellJoin, points: NDArray[Any], k: int) -> None:
        """Choose the number of cells to visit so that a sample reaches the requested recall."""
        kept = self._thinned.kept
        n = points.shape[0]
        rng = np.random.default_rng(self.random_state)
        sample = np.sort(rng.choice(n, min(n, RECALL_SAMPLE), replace=False))
        k = min(k, n - 1)
        if k == 0:
            return
        Q = points[sample]
        numbers = sample if kept is None else kept[sample]
        target = TARGET_RECALL if self.recall is None else self.recall
        many = self.X.shape[1] > self.policy.tree_features
        limit = self.policy.scanned_points if self.recall is None and many else np.inf
        truth = None
        most = backend.n_probe
        while True:
            candidates = backend.candidates(Q, k + 1)
            distances = self._ranked(Q, candidates, k, numbers)[1]
            if truth is None:
                near, truth = true_neighbors(points, sample, distances[:, -1], k, self.scale)
                backend.n_probe, most = enough_probes(
                    *backend.probes_needed(Q, near), target, limit
                )
                continue
            self.measured_recall = float((distances <= truth[:, -1:]).mean())
            if self.measured_recall >= target or backend.n_probe >= most:
                return
            # The estimate assumes that cells are visited exactly in order of distance.
            backend.n_probe = min(most, backend.n_probe + 1 + backend.n_probe // 12)
