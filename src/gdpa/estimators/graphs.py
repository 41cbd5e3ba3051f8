"""The classifier's graph: built from features or given, and ready to take in new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph import (
    NeighborGraph,
    Rescaler,
    check_adjacency,
    check_memory,
    degrees,
    from_edges,
    from_networkx,
    full_graph,
    laplacian_parts,
    neighbor_graphs,
)
from ..graph.far_rows import Surroundings
from ..graph.kernels import distances, node_scales
from ..graph.neighbor_graph import SCALE_NEIGHBOR, kernel_weights, local_scales
from ..problem import ClassProblem
from .evidence import Evidence
from .labels import LabelCoding
from .options import FitOptions

__all__ = [
    "AUTO_NEIGHBORS",
    "ClassifierGraph",
    "assemble_graph",
    "candidate_graphs",
    "check_rows",
    "given_weights",
    "precomputed_graph",
]

FloatArray = NDArray[np.float64]

# Tried by n_neighbors="auto", the preferred one first.
AUTO_NEIGHBORS = (10, 15, 20)

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

    def problem(
        self, coding: LabelCoding, evidence: Evidence | None, evidence_weight: float
    ) -> ClassProblem:
        """The classes on this graph, as the solvers take them."""
        return ClassProblem(
            self.W,
            self.laplacian,
            self.adjacency,
            self.diagonal,
            coding.labeled,
            np.eye(coding.classes.size)[coding.codes[coding.labeled]],
        )

    def attach(self, X: Any) -> tuple[sp.csr_array, sp.csr_array | None]:
        """Weights between new rows and the nodes, and which of them are the same points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Re-scaled features, or for a precomputed graph the weights themselves.

        Returns
        -------
        weights : csr_array of shape (n_rows, n_nodes)
            Non-negative weights.
        same : csr_array of shape (n_rows, n_nodes) or None
            1 where a row equals a node in all features; None for a precomputed graph.
        """
        if self.kind == "precomputed":
            return check_rows(X), None
        if self.neighbors is not None:
            weights, points = self.neighbors.attach(X), self.neighbors.index.X
        else:
            weights, points = self._attach_full(X), self.points
        return weights, _coincident(weights, X, points)

    def _attach_full(self, X: Any) -> sp.csr_array:
        assert self.scales is not None
        check_memory(
            40.0 * X.shape[0] * self.n_nodes,
            f"the weights of {X.shape[0]} new rows in a full graph of {self.n_nodes} nodes",
            "predict in parts or use graph='knn'",
        )
        d, unit = distances(Surroundings.of(self.points).bring_near(X), self.points)
        if self.bandwidth == "self-tuning":
            k = min(SCALE_NEIGHBOR, d.shape[1])
            nearest = np.sort(np.partition(d, k - 1, axis=1)[:, :k], axis=1)
            scales = local_scales(nearest, fallback=float(np.median(self.scales)) / unit)
        else:
            scales = np.full(d.shape[0], self.scales[0] / unit)
        return sp.csr_array(
            kernel_weights(d, scales[:, None], self.scales[None, :] / unit, floor=False)
        )


def candidate_graphs(X: Any, options: FitOptions) -> tuple[list[ClassifierGraph], Any]:
    """Graph of the features, or the candidates where the number of neighbours is to be chosen.

    Parameters
    ----------
    X : ndarray, csr_array or graph
        Checked features, or a precomputed graph.
    options : FitOptions
        What is asked for.

    Returns
    -------
    graphs : list of ClassifierGraph
        At least one; the preferred one first.
    features : ndarray, csr_array or None
        The re-scaled features.
    """
    kind, rescaler = options.laplacian, None
    if options.graph == "precomputed":
        return [precomputed_graph(X, kind)], None
    if options.rescale is not None:
        rescaler = Rescaler.fit(X, RESCALE_KINDS[options.rescale])
        X = rescaler.transform(X)
    if options.graph == "full":
        n = X.shape[0]
        check_memory(
            28.0 * n * n, f"the full graph of {n} nodes", "use graph='knn', which is sparse"
        )
        width = options.bandwidth
        W = check_adjacency(full_graph(X, bandwidth=width, n_jobs=options.n_jobs))
        scales = node_scales(X, width, n_jobs=options.n_jobs)
        graph = assemble_graph("full", W, kind, rescaler, points=X, scales=scales, bandwidth=width)
        return [graph], X
    counts: list[int] = []
    auto = AUTO_NEIGHBORS if X.shape[0] <= options.policy.auto_nodes else AUTO_NEIGHBORS[:1]
    for k in auto if options.n_neighbors is None else (options.n_neighbors,):
        wanted = max(min(k, X.shape[0] - 1), 1) if options.n_neighbors is None else k
        if wanted not in counts:
            counts.append(wanted)
    built = neighbor_graphs(
        X,
        counts,
        bandwidth=options.bandwidth,
        algorithm=options.algorithm,
        n_jobs=options.n_jobs,
        random_state=options.random_state,
        policy=options.policy,
    )
    graphs = []
    for near in built:
        graphs.append(assemble_graph("knn", near.W, kind, rescaler, neighbors=near))
    return graphs, X


def precomputed_graph(X: Any, laplacian: str, name: str = "X") -> ClassifierGraph:
    """Take a graph that the user has.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_nodes, n_nodes), networkx.Graph, or edge list
        Symmetric non-negative weights; NetworkX graphs and edge lists (a list of pairs or
        triples) are converted, rows in the order of ``G.nodes`` or of the node numbers.
    laplacian : str
        Kind of the Laplacian.
    name : str, default="X"
        How the argument is called in messages.

    Returns
    -------
    ClassifierGraph
        The graph.

    Raises
    ------
    ValueError
        If the matrix is not square, not symmetric, or signed (with advice).
    """
    return assemble_graph("precomputed", given_weights(X, name), laplacian, None)


def given_weights(X: Any, name: str = "X", n_nodes: int | None = None) -> sp.csr_array:
    """Weights of a graph in any form that is accepted.

    Parameters
    ----------
    X : array-like or sparse matrix, networkx.Graph, or edge list
        As in :func:`precomputed_graph`.
    name : str, default="X"
        How the argument is called in messages.
    n_nodes : int, optional
        How many nodes there are, where that is known: edge lists may then be arrays, and nodes
        without an edge exist, too.

    Returns
    -------
    csr_array
        Checked weights.

    Raises
    ------
    ValueError
        As :func:`precomputed_graph`.
    """
    if hasattr(X, "is_directed") and hasattr(X, "nodes"):
        return from_networkx(X).W
    listed = isinstance(X, list | tuple) and len(X) and _is_edge_list(X)
    if n_nodes is not None and n_nodes > 3 and isinstance(X, np.ndarray) and X.ndim == 2:
        listed = X.shape[1] in (2, 3)  # too narrow for a matrix
    if not listed:
        return check_adjacency(X, name=name)
    ends = X[:, :2] if isinstance(X, np.ndarray) else np.asarray([edge[:2] for edge in X])
    if isinstance(X, np.ndarray) and ends.dtype.kind == "f" and (ends == np.rint(ends)).all():
        ends = ends.astype(np.int64)  # whole numbers as all numbers of a floating-point array are
        X = np.column_stack([ends, X[:, 2:]]) if X.shape[1] == 3 else ends
    if ends.dtype.kind not in "iu":
        raise ValueError(
            "an edge list must name nodes by their row numbers (0 to n - 1); use "
            "gdpa.graph.from_edges for nodes of other names"
        )
    most = int(ends.max(initial=-1)) + 1
    return from_edges(X, n_nodes=max(most, n_nodes or 1)).W


def _is_edge_list(X: Sequence[Any]) -> bool:
    """Whether a list holds pairs or triples; a list of 2 or 3 rows of numbers is a matrix."""
    widths = {len(row) if isinstance(row, list | tuple) else -1 for row in X}
    return widths <= {2, 3} and (len(widths) > 1 or len(X) not in widths or _tuples(X))


def _tuples(X: Sequence[Any]) -> bool:
    return all(isinstance(row, tuple) for row in X)


def assemble_graph(
    kind: str, W: sp.csr_array, laplacian: str, rescaler: Rescaler | None, **rest: Any
) -> ClassifierGraph:
    """A graph with its Laplacian and degrees; `rest` are further fields of the record."""
    adjacency, diagonal = laplacian_parts(W, laplacian)
    return ClassifierGraph(
        kind, W, laplacian, adjacency, diagonal, degrees(W), rescaler=rescaler, **rest
    )


def check_rows(X: Any, name: str = "X") -> sp.csr_array:
    """Weights of new rows to the fitted nodes."""
    rows = sp.csr_array(X, dtype=np.float64)
    if rows.nnz and (not np.isfinite(rows.data).all() or rows.data.min() < 0):
        raise ValueError(f"{name} holds weights to the fitted nodes: they must be finite and >= 0")
    rows.eliminate_zeros()
    return rows


def _coincident(weights: sp.csr_array, X: Any, points: Any) -> sp.csr_array:
    """Which stored weights belong to a node with the very same features.

    A distance of 0 has weight 1; so has a small one beside a huge bandwidth, and a distance of
    rounding errors has less. So near pairs are compared, feature by feature.
    """
    near = weights.data > 1.0 - 1e-6
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))[near]
    columns = weights.indices[near]
    if rows.size == 0:
        equal = np.zeros(0, dtype=bool)
    elif sp.issparse(X) or sp.issparse(points):
        difference = sp.csr_array(X)[rows] - sp.csr_array(points)[columns]
        equal = np.asarray(abs(difference).max(axis=1).toarray()).ravel() == 0
    else:
        equal = (np.asarray(X)[rows] == np.asarray(points)[columns]).all(axis=1)
    return sp.csr_array(
        (np.ones(int(equal.sum())), (rows[equal], columns[equal])), shape=weights.shape
    )
