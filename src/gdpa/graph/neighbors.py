"""Nearest neighbours of feature vectors, exact or approximate, for fitted and for new points.

:class:`NeighborIndex` picks a search structure by size and dimension (:func:`choose_algorithm`),
keeps it for later queries, and answers with indices and float64 distances. Approximate answers come
with their recall, measured against exhaustive search on a sample of the points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.threads import effective_jobs, in_threads, one_thread
from .brute_force import BruteForce
from .cell_space import CellSpace
from .cells import CellJoin
from .duplicates import Thinned, thin_duplicates
from .far_rows import Surroundings
from .features import (
    Features,
    check_features,
    check_n_neighbors,
    check_recall,
    check_seed,
    row_blocks,
)
from .inverted_file import InvertedFile
from .memory import check_memory
from .search import (
    KD_TREE_FEATURES,
    Backend,
    KDTree,
    NeighborResult,
    choose_algorithm,
    enough_probes,
    feature_scale,
    index_dtype,
    pair_distances,
    true_neighbors,
)

__all__ = [
    "NeighborIndex",
    "NeighborResult",
    "nearest_neighbors",
    "query_neighbors",
]

# Recall that an approximate search is tuned to on the sample, with room above 0.97.
TARGET_RECALL = 0.98
# With more features than a tree can take, the search for the last neighbours may visit half of the
# points, and what it finds is hardly nearer than others: by default so many are compared.
SCAN_LIMIT = 3_000
RECALL_SAMPLE = 256
QUERY_BLOCK = 65_536
# Points joined with the cells at a time, a part of all between these: their comparisons take some
# 3 kB each, which should be little beside the graph.
JOIN_BLOCK, JOIN_PARTS, LEAST_JOIN_BLOCK = 8_192, 24, 4_096


class NeighborIndex:
    """Fitted points, ready to be asked for neighbours.

    Parameters
    ----------
    X : array-like, memory-mapped array or sparse matrix of shape (n_samples, n_features)
        The points.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        See :func:`choose_algorithm`.
    n_jobs : int, optional
        Threads; the answers do not depend on it.
    random_state : int, default=0
        Seed of the cells of an approximate search and of the sample that measures its recall.
    recall : float, optional
        Share of the true neighbours that an approximate search must find on the sample, in (0, 1].
        By default 0.98, but with more than 10 features no more than 3,000 points are compared with
        each (the nearest cells of them), whatever share that finds.

    Attributes
    ----------
    X : ndarray or csr_array
        The points; a floating-point array is referred to, not copied.
    algorithm : str
        The search structure in use.
    recall : float
        1 if exact; otherwise measured at the first question about the points themselves.

    Examples
    --------
    >>> from gdpa.graph import NeighborIndex
    >>> index = NeighborIndex([[0.0], [1.0], [3.0]])
    >>> index.neighbors(1).indices.ravel()
    array([1, 0, 1], dtype=int32)
    >>> index.query([[2.9]], 1).indices.ravel()
    array([2], dtype=int32)
    """

    def __init__(
        self,
        X: Any,
        *,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        random_state: int = 0,
        recall: float | None = None,
    ) -> None:
        self.wanted_recall = check_recall(recall)
        self.X = check_features(X)
        n, d = self.X.shape
        self.algorithm = choose_algorithm(
            n, d, sparse=not isinstance(self.X, np.ndarray), algorithm=algorithm
        )
        self.n_jobs = effective_jobs(n_jobs)
        self.random_state = check_seed(random_state)
        self.scale = feature_scale(self.X)
        self._surroundings: Surroundings | None = None
        self.recall = 1.0
        self._backend: Backend | None = None
        self._tuned_for = 0
        self._thinned = Thinned(None, None)
        self._thinned_for = -1
        if isinstance(self.X, np.ndarray):
            per_value = {"kd-tree": 8, "brute-force": self.X.itemsize}.get(self.algorithm, 4)
            check_memory(
                float(n * d * per_value + 32 * n),
                f"a {self.algorithm} search of {n} points with {d} features",
                "use fewer points, float32 features or algorithm='approximate'",
            )

    def __getstate__(self) -> dict[str, Any]:
        # Search structures are rebuilt when needed: they are deterministic and not all of them
        # can be pickled.
        return self.__dict__ | {"_backend": None}

    def neighbors(self, n_neighbors: int) -> NeighborResult:
        """Find the neighbours of the fitted points among themselves, each point itself left out.

        Parameters
        ----------
        n_neighbors : int
            How many, at least 1. At most the number of other points; more are cut to that with a
            warning.

        Returns
        -------
        NeighborResult
            Neighbours in the order of the rows of X. With one point it is of width 0.
        """
        n = self.X.shape[0]
        k = check_n_neighbors(n_neighbors, n - 1, "other points")
        _check_answer(n, k)
        if n == 1:
            return NeighborResult(
                np.empty((1, 0), np.int32), np.empty((1, 0)), self.algorithm, self.recall
            )
        backend = self._prepare(k)
        indices = np.empty((n, k), dtype=index_dtype(n))
        distances = np.empty((n, k))
        order = self._visiting_order(backend)

        def work(rows: slice) -> None:
            queries = order[rows]
            Q = self.X[queries]
            if isinstance(backend, CellJoin):
                candidates = backend.join(rows, min(order.size, k + 1))
            else:
                candidates = self._candidates(backend, Q, k + 1)
            indices[queries], distances[queries] = self._ranked(Q, candidates, k, queries)

        self._in_blocks(backend, work, order.size)
        self._thinned.fill(indices, distances)
        return NeighborResult(indices, distances, self.algorithm, self.recall)

    def query(self, X: Any, n_neighbors: int) -> NeighborResult:
        """Find the neighbours of new points among the fitted ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New points. One that coincides with a fitted point has it as its neighbour; one beyond
            10,000 times the extent of the fitted ones is looked at from there.
        n_neighbors : int
            How many, at least 1; at most the number of fitted points.

        Returns
        -------
        NeighborResult
            Neighbours of each new point.
        """
        Q = check_features(X, n_features=self.X.shape[1])
        if isinstance(Q, np.ndarray) != isinstance(self.X, np.ndarray):
            raise ValueError("X and the fitted features must both be dense or both be sparse")
        k = check_n_neighbors(n_neighbors, self.X.shape[0], "fitted points")
        _check_answer(Q.shape[0], k)
        if self._surroundings is None:
            self._surroundings = Surroundings.of(self.X)
        Q = self._surroundings.bring_near(Q)
        backend = self._prepare(k)
        indices = np.empty((Q.shape[0], k), dtype=index_dtype(self.X.shape[0]))
        distances = np.empty((Q.shape[0], k))

        def work(rows: slice) -> None:
            candidates = self._candidates(backend, Q[rows], k)
            indices[rows], distances[rows] = self._ranked(Q[rows], candidates, k)

        self._in_blocks(backend, work, Q.shape[0])
        return NeighborResult(indices, distances, self.algorithm, self.recall)

    def node_order(self) -> NDArray[np.intp] | None:
        """Order of the points in which neighbours in space are near each other.

        Returns
        -------
        ndarray of shape (n_samples,) or None
            None where the search has none (before the first search, or if it is exhaustive).
        """
        if self._backend is None or isinstance(self._backend, BruteForce):
            return None
        order = self._visiting_order(self._backend)
        if order.size == self.X.shape[0]:
            return order
        left_out = np.ones(self.X.shape[0], dtype=bool)
        left_out[order] = False
        return np.concatenate([order, np.flatnonzero(left_out)])

    def _prepare(self, k: int) -> Backend:
        """Build the search structure for k neighbours, or keep the one there is."""
        if self._backend is None or k > self._thinned_for:
            self._thinned = thin_duplicates(self.X, k + 2)
            self._thinned_for = k
            kept = self._thinned.kept
            points = self.X if kept is None else self.X[kept]
            self._backend = self._build(points)
            self._tuned_for = 0
        if self._tuned_for < k and isinstance(self._backend, CellJoin | InvertedFile):
            self._tune(self._backend, k)
            self._tuned_for = k
        return self._backend

    def _build(self, points: Features) -> Backend:
        if self.algorithm == "brute-force":
            return BruteForce(points, self.scale)
        assert isinstance(points, np.ndarray)
        if self.algorithm == "inverted-file":
            return InvertedFile(points, self.scale, self.random_state)
        if self.algorithm == "cells":
            space = CellSpace.fit(points, self.scale, self.random_state)
            return CellJoin(points, space, n_jobs=self.n_jobs)
        return KDTree(points, self.scale)

    def _visiting_order(self, backend: Backend) -> NDArray[np.intp]:
        """Rows in the order in which asking is fastest: neighbouring queries share memory."""
        n = self.X.shape[0]
        kept = self._thinned.kept
        if not isinstance(backend, KDTree | CellJoin | InvertedFile):
            return np.arange(n) if kept is None else kept
        order = backend.visiting_order()
        if kept is None:
            return order
        # Members of large groups of duplicates that were left out: their lists are known.
        return kept[order]

    def _in_blocks(self, backend: Backend, work: Callable[[slice], None], n_queries: int) -> None:
        """Do the work block by block; cells leave the threads to us, the others have their own."""
        if isinstance(backend, CellJoin):
            size = min(JOIN_BLOCK, max(LEAST_JOIN_BLOCK, n_queries // JOIN_PARTS))
            with one_thread():
                in_threads(work, row_blocks(n_queries, 1, size), self.n_jobs)
            return
        for rows in row_blocks(n_queries, 1, QUERY_BLOCK):
            work(rows)

    def _candidates(self, backend: Backend, Q: Features, wanted: int) -> NDArray[np.intp]:
        """At least the `wanted` nearest of the points searched, for each row of Q."""
        kept = self._thinned.kept
        k = min(self.X.shape[0] if kept is None else kept.size, wanted)
        if isinstance(backend, InvertedFile):
            return backend.enough_candidates(Q, k, self.n_jobs)
        return backend.candidates(Q, k, self.n_jobs)

    def _ranked(
        self,
        Q: Features,
        candidates: NDArray[np.intp],
        k: int,
        themselves: NDArray[np.intp] | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The k nearest of the candidates, sorted; not `themselves`, the numbers of the queries."""
        if self._thinned.kept is not None:
            candidates = self._thinned.kept[candidates]
        distances = pair_distances(Q, self.X, candidates, self.scale)
        if themselves is not None:
            distances[candidates == themselves[:, None]] = np.inf
        # By distance, ties by number: the answer does not depend on the search structure.
        order = np.lexsort((candidates, distances), axis=1)[:, :k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(distances, order, 1)

    def _tune(self, backend: CellJoin | InvertedFile, k: int) -> None:
        """Choose the effort of an approximate search so that the sample reaches the target."""
        # Duplicates that were left out change no distance, and could be within everyone's reach.
        kept = self._thinned.kept
        points = self.X if kept is None else self.X[kept]
        n = points.shape[0]
        rng = np.random.default_rng(self.random_state)
        sample = np.sort(rng.choice(n, min(n, RECALL_SAMPLE), replace=False))
        k = min(k, n - 1)
        if k == 0:
            return
        Q = points[sample]
        numbers = sample if kept is None else kept[sample]

        def search() -> NDArray[np.float64]:
            return self._ranked(Q, self._candidates(backend, Q, k + 1), k, numbers)[1]

        near, truth = true_neighbors(points, sample, search()[:, -1], k, self.scale)
        target = TARGET_RECALL if self.wanted_recall is None else self.wanted_recall
        limit = np.inf
        if self.wanted_recall is None and self.X.shape[1] > KD_TREE_FEATURES:
            limit = SCAN_LIMIT
        probes, most = enough_probes(*backend.probes_needed(Q, near), target, limit)
        while True:
            backend.n_probe = probes
            self.recall = float((search() <= truth[:, -1:]).mean())
            if self.recall >= target or probes >= most:
                return
            # The estimate counts cells by their centres; the search may have missed one of them.
            probes = min(most, probes + 1 + probes // 12)


def _check_answer(n_queries: int, k: int) -> None:
    check_memory(
        12.0 * n_queries * k,
        f"{k} neighbours of {n_queries} points",
        "ask for fewer neighbours or in parts",
    )


def nearest_neighbors(
    X: Any,
    n_neighbors: int = 10,
    *,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    random_state: int = 0,
    recall: float | None = None,
) -> NeighborResult:
    """Nearest neighbours of points among themselves.

    Parameters
    ----------
    X : array-like, memory-mapped array or sparse matrix of shape (n_samples, n_features)
        The points.
    n_neighbors : int, default=10
        How many neighbours, the point itself not counted.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        See :func:`choose_algorithm`.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    random_state : int, default=0
        Seed of approximate search.
    recall : float, optional
        What an approximate search must reach; see :class:`NeighborIndex`.

    Returns
    -------
    NeighborResult
        Indices, distances, the algorithm used and its recall.
    """
    index = NeighborIndex(
        X, algorithm=algorithm, n_jobs=n_jobs, random_state=random_state, recall=recall
    )
    return index.neighbors(n_neighbors)


def query_neighbors(index: NeighborIndex, X: Any, n_neighbors: int = 10) -> NeighborResult:
    """Nearest fitted points of new points, without fitting again.

    Parameters
    ----------
    index : NeighborIndex
        The fitted points.
    X : array-like or sparse matrix of shape (n_queries, n_features)
        New points.
    n_neighbors : int, default=10
        How many neighbours.

    Returns
    -------
    NeighborResult
        Indices into the fitted points, distances, the algorithm used and its recall.
    """
    return index.query(X, n_neighbors)
