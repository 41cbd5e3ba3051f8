"""The classifier's graph: built from features or given, and ready to take in new rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph import (
    NeighborGraph,
    NeighborIndex,
    NeighborResult,
    Rescaler,
    build_neighbor_graph,
    check_adjacency,
    check_memory,
    degrees,
    from_edges,
    from_networkx,
    full_graph,
    graph_from_neighbors,
    laplacian_parts,
)
from ..graph.kernels import node_scales
from ..graph.neighbor_graph import SCALE_NEIGHBOR, kernel_weights, local_scales

__all__ = ["AUTO_NEIGHBORS", "ClassifierGraph", "build_graphs", "precomputed_graph"]

FloatArray = NDArray[np.float64]

# Tried by n_neighbors="auto", the preferred one first; only on graphs of up to so many nodes.
AUTO_NEIGHBORS = (10, 15, 20)
AUTO_NODES = 5_000

RESCALE_KINDS = {None: "none", "minmax": "min-max", "standard": "standard"}


@dataclass(frozen=True)
class ClassifierGraph:
    """A graph, its Laplacian, and what attaches new rows to it.

    Parameters
    ----------
    kind : {"knn", "full", "precomputed"}
        Where it comes from.
    W : csr_array of shape (n_nodes, n_nodes)
        Weights.
    laplacian : str
        Kind of the Laplacian ``diag(diagonal) - adjacency``.
    adjacency : csr_array
        Its off-diagonal part; shares its indices with `W`.
    diagonal : ndarray of shape (n_nodes,)
        Its diagonal.
    degrees : ndarray of shape (n_nodes,)
        Row sums of `W`.
    rescaler : Rescaler or None
        Re-scaling of the features.
    neighbors : NeighborGraph or None
        Search index and scales of a neighbour graph.
    points, scales, bandwidth
        Features and bandwidth of a full graph.
    """

    kind: str
    W: sp.csr_array
    laplacian: str
    adjacency: sp.csr_array
    diagonal: FloatArray
    degrees: FloatArray
    rescaler: Rescaler | None = None
    neighbors: NeighborGraph | None = None
    points: Any = None
    scales: FloatArray | None = None
    bandwidth: Any = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.W.shape[0])

    @property
    def n_neighbors(self) -> int | None:
        """Neighbours per node of a neighbour graph."""
        return None if self.neighbors is None else self.neighbors.n_neighbors

    @property
    def node_order(self) -> NDArray[np.intp] | None:
        """Order of the nodes in which neighbours are near, if the search knows one."""
        return getattr(self.neighbors, "node_order", None)

    def attach(self, X: Any) -> sp.csr_array:
        """Weights between new rows and the nodes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Re-scaled features, or for a precomputed graph the weights themselves.

        Returns
        -------
        csr_array of shape (n_rows, n_nodes)
            Non-negative weights.
        """
        if self.kind == "precomputed":
            return _check_rows(X)
        if self.neighbors is not None:
            return self.neighbors.attach(X)
        return self._attach_full(X)

    def _attach_full(self, X: Any) -> sp.csr_array:
        from sklearn.metrics import pairwise_distances

        assert self.scales is not None
        check_memory(
            40.0 * X.shape[0] * self.n_nodes,
            f"the weights of {X.shape[0]} new rows in a full graph of {self.n_nodes} nodes",
            "predict in parts or use graph='knn'",
        )
        d = np.asarray(pairwise_distances(X, self.points), dtype=np.float64)
        if self.bandwidth == "self-tuning":
            k = min(SCALE_NEIGHBOR, d.shape[1])
            nearest = np.sort(np.partition(d, k - 1, axis=1)[:, :k], axis=1)
            own = local_scales(nearest, fallback=float(np.median(self.scales)))
        else:
            own = np.full(d.shape[0], self.scales[0])
        return sp.csr_array(kernel_weights(d, own[:, None], self.scales[None, :], floor=False))


def build_graphs(
    X: Any,
    *,
    graph: str,
    n_neighbors: Any,
    bandwidth: Any,
    algorithm: str,
    laplacian: str,
    rescaler: Rescaler | None,
    n_jobs: int | None,
    random_state: int,
) -> list[ClassifierGraph]:
    """Build the graph of re-scaled features, or the candidates for ``n_neighbors="auto"``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_nodes, n_features)
        Re-scaled features.
    graph, n_neighbors, bandwidth, algorithm, laplacian, n_jobs, random_state
        As in :class:`~gdpa.GDPAClassifier`.
    rescaler : Rescaler or None
        The re-scaling that X went through.

    Returns
    -------
    list of ClassifierGraph
        At least one; the preferred one first.
    """
    if graph == "full":
        n = X.shape[0]
        check_memory(
            28.0 * n * n, f"the full graph of {n} nodes", "use graph='knn', which is sparse"
        )
        W = check_adjacency(full_graph(X, bandwidth=bandwidth, n_jobs=n_jobs))
        scales = node_scales(X, bandwidth, n_jobs=n_jobs)
        return [
            _assemble("full", W, laplacian, rescaler, points=X, scales=scales, bandwidth=bandwidth)
        ]
    if not isinstance(n_neighbors, str):
        built = build_neighbor_graph(
            X,
            n_neighbors,
            bandwidth=bandwidth,
            algorithm=algorithm,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        return [_assemble("knn", built.W, laplacian, rescaler, neighbors=built)]
    most = X.shape[0] - 1
    tried = AUTO_NEIGHBORS if X.shape[0] <= AUTO_NODES else AUTO_NEIGHBORS[:1]
    wanted = sorted({min(k, most) for k in tried}) if most > 0 else [1]
    if len(wanted) == 1 or most < SCALE_NEIGHBOR:
        with warnings.catch_warnings():
            # "auto" promises no number of neighbours: fewer than ten need no warning.
            warnings.filterwarnings("ignore", message="n_neighbors=")
            return build_graphs(
                X,
                graph=graph,
                n_neighbors=wanted[0],
                bandwidth=bandwidth,
                algorithm=algorithm,
                laplacian=laplacian,
                rescaler=rescaler,
                n_jobs=n_jobs,
                random_state=random_state,
            )
    index = NeighborIndex(X, algorithm=algorithm, n_jobs=n_jobs, random_state=random_state)
    found = index.neighbors(wanted[-1])
    return [
        _nested(index, found, k, bandwidth, laplacian, rescaler) for k in _preferred(wanted, tried)
    ]


def _preferred(wanted: Sequence[int], tried: Sequence[int]) -> list[int]:
    return sorted(wanted, key=lambda k: next((i for i, t in enumerate(tried) if t == k), 0))


def _nested(
    index: NeighborIndex,
    found: NeighborResult,
    k: int,
    bandwidth: Any,
    laplacian: str,
    rescaler: Rescaler | None,
) -> ClassifierGraph:
    """Graph of the first k of the neighbours found."""
    part = NeighborResult(
        found.indices[:, :k], found.distances[:, :k], found.algorithm, found.recall
    )
    W = graph_from_neighbors(part, bandwidth=bandwidth)
    if bandwidth == "self-tuning":
        scales = local_scales(part.distances)
    else:
        from ..graph.neighbor_graph import median_scale

        sigma = median_scale(part.distances) if bandwidth == "median" else float(bandwidth)
        scales = np.full(W.shape[0], sigma)
    built = NeighborGraph(W, index, scales, k, bandwidth, found.algorithm, found.recall)
    return _assemble("knn", W, laplacian, rescaler, neighbors=built)


def precomputed_graph(X: Any, laplacian: str) -> ClassifierGraph:
    """Take a graph that the user has.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_nodes, n_nodes), networkx.Graph, or edge list
        Symmetric non-negative weights; NetworkX graphs and edge lists (a list of pairs or
        triples) are converted, rows in the order of ``G.nodes`` or of the node numbers.
    laplacian : str
        Kind of the Laplacian.

    Returns
    -------
    ClassifierGraph
        The graph.

    Raises
    ------
    ValueError
        If the matrix is not square, not symmetric, or signed (with advice).
    """
    if hasattr(X, "is_directed") and hasattr(X, "nodes"):
        W = from_networkx(X).W
    elif isinstance(X, list | tuple) and len(X) and _is_edge_list(X):
        ends = np.asarray([edge[:2] for edge in X])
        if ends.dtype.kind not in "iu":
            raise ValueError(
                "an edge list must name nodes by their row numbers (0 to n - 1); use "
                "gdpa.graph.from_edges for nodes of other names"
            )
        W = from_edges(X, n_nodes=int(ends.max()) + 1).W
    else:
        W = check_adjacency(X, name="X")
    return _assemble("precomputed", W, laplacian, None)


def _is_edge_list(X: Sequence[Any]) -> bool:
    """Whether a list holds pairs or triples; a list of 2 or 3 rows of numbers is a matrix."""
    widths = {len(row) if isinstance(row, list | tuple) else -1 for row in X}
    return widths <= {2, 3} and (len(widths) > 1 or len(X) not in widths or _tuples(X))


def _tuples(X: Sequence[Any]) -> bool:
    return all(isinstance(row, tuple) for row in X)


def _assemble(
    kind: str, W: sp.csr_array, laplacian: str, rescaler: Rescaler | None, **rest: Any
) -> ClassifierGraph:
    adjacency, diagonal = laplacian_parts(W, laplacian)
    return ClassifierGraph(
        kind, W, laplacian, adjacency, diagonal, degrees(W), rescaler=rescaler, **rest
    )


def _check_rows(X: Any) -> sp.csr_array:
    rows = sp.csr_array(X, dtype=np.float64)
    if rows.nnz and (not np.isfinite(rows.data).all() or rows.data.min() < 0):
        raise ValueError("X holds weights to the fitted nodes: they must be finite and >= 0")
    rows.eliminate_zeros()
    return rows
