"""Convert NetworkX graphs and lists of edges to adjacency matrices; save and load graphs.

Conversion returns the matrix together with the names of its nodes. A saved graph is one NPZ file;
it is read without pickle and checked before use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..errors import check_choice
from ..linalg.operator import check_positive
from .adjacency import check_adjacency


@dataclass(frozen=True)
class NamedGraph:
    """An adjacency matrix and the names of its nodes.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Symmetric weights, zero diagonal.
    nodes : ndarray of shape (n_nodes,)
        Name of each row.
    """

    W: sp.csr_array
    nodes: NDArray[Any]


def from_edges(
    edges: Any,
    weights: ArrayLike | None = None,
    *,
    n_nodes: int | None = None,
    duplicates: str = "error",
    signed: bool = False,
) -> NamedGraph:
    """Build the adjacency matrix of a list of undirected edges.

    Parameters
    ----------
    edges : array-like or DataFrame of shape (n_edges, 2) or (n_edges, 3)
        The two ends of each edge and optionally its weight. Ends are names of any kind that can be
        sorted. (i, j) and (j, i) are the same edge. Self-loops are dropped.
    weights : array-like of shape (n_edges,), optional
        Weights, if `edges` has two columns; 1 by default.
    n_nodes : int, optional
        If given, ends are node numbers from 0 to n_nodes - 1, and nodes without an edge exist, too.
        Otherwise the nodes are the sorted names in `edges`.
    duplicates : {"error", "sum", "max"}, default="error"
        What to do with duplicate edges: raise an error, add their weights, or take the largest
        (for lists that contain every edge in both directions).
    signed : bool, default=False
        Whether negative weights are accepted.

    Returns
    -------
    NamedGraph
        The matrix and the name of each row.

    Examples
    --------
    >>> from gdpa.graph import from_edges
    >>> graph = from_edges([["a", "b"], ["b", "c"]])
    >>> graph.nodes.tolist(), graph.W.nnz
    (['a', 'b', 'c'], 4)
    """
    check_choice("duplicates", duplicates, ("error", "sum", "max"))
    left, right, values = _columns(edges, weights)
    if n_nodes is None:
        try:
            nodes, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
        except TypeError as error:
            raise ValueError("node names must be of one type that can be sorted") from error
        codes = codes.ravel()
    else:
        nodes, codes = _numbered(np.concatenate([left, right]), n_nodes)
    if nodes.size == 0:
        raise ValueError("edges is empty; give n_nodes for a graph without edges")
    i, j = codes[: left.size], codes[left.size :]
    proper = i != j
    low, high, values = np.minimum(i, j)[proper], np.maximum(i, j)[proper], values[proper]
    low, high, values = _merge(low, high, values, nodes, duplicates)
    n = nodes.size
    W = sp.coo_array(
        (np.tile(values, 2), (np.concatenate([low, high]), np.concatenate([high, low]))),
        shape=(n, n),
    )
    return NamedGraph(check_adjacency(W, name="edges", signed=signed), nodes)


def _columns(
    edges: Any, weights: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Return the two ends and the weight of each edge."""
    if hasattr(edges, "iloc"):
        columns = [edges.iloc[:, c].to_numpy() for c in range(edges.shape[1])]
    else:
        table = np.asarray(edges)
        if table.ndim == 1 and table.size == 0:
            table = table.reshape(0, 2)
        if table.ndim != 2:
            raise ValueError(f"edges must have 2 or 3 columns, got shape {table.shape}")
        columns = list(table.T)
        if len(columns) == 3 and table.dtype.kind == "f":
            columns[:2] = [_whole(c) for c in columns[:2]]
    if len(columns) not in (2, 3):
        raise ValueError(f"edges must have 2 or 3 columns, got {len(columns)}")
    if len(columns) == 3 and weights is not None:
        raise ValueError("edges has a third column with weights, and weights is given too")
    given = columns[2] if len(columns) == 3 else weights
    try:
        values = np.ones(columns[0].size) if given is None else np.asarray(given).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("weights of edges must be real numbers") from error
    if values.shape != (columns[0].size,):
        raise ValueError(f"weights must have shape ({columns[0].size},), got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"edge {int(bad[0])} has weight {values[bad[0]]}; it must be finite")
    return columns[0], columns[1], values


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """Return edge ends as integers; they are floats only because the weights are."""
    if np.isfinite(column).all() and (column == np.round(column)).all():
        return column.astype(np.int64)
    raise ValueError("in an array of floats with weights, the ends of edges must be integers")


def _numbered(ends: NDArray[Any], n_nodes: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    check_positive(n_nodes, "n_nodes", 1)
    if ends.size and ends.dtype.kind not in "iu":
        raise ValueError("with n_nodes the ends of edges must be integers; omit it for names")
    outside = np.flatnonzero((ends < 0) | (ends >= n_nodes)) if ends.size else ends
    if outside.size:
        raise ValueError(
            f"edges has the end {ends[outside[0]]}; with n_nodes={n_nodes} ends are 0 to "
            f"{n_nodes - 1}"
        )
    return np.arange(n_nodes), ends.astype(np.intp)


def _merge(
    low: NDArray[np.intp],
    high: NDArray[np.intp],
    values: NDArray[np.float64],
    nodes: NDArray[Any],
    duplicates: str,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Merge duplicate edges."""
    order = np.lexsort((high, low))
    low, high, values = low[order], high[order], values[order]
    new = np.ones(low.size, dtype=bool)
    new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    first = np.flatnonzero(new)
    if first.size == low.size:
        return low, high, values
    if duplicates == "error":
        k = int(np.flatnonzero(~new)[0])
        raise ValueError(
            f"the edge ({nodes[low[k]]}, {nodes[high[k]]}) is listed more than once; use "
            "duplicates='sum', or 'max' if every edge is listed in both directions"
        )
    reduce = np.add if duplicates == "sum" else np.maximum
    return low[first], high[first], reduce.reduceat(values, first)


def from_networkx(G: Any, *, weight: str | None = "weight", signed: bool = False) -> NamedGraph:
    """Build the adjacency matrix of a NetworkX graph.

    Parameters
    ----------
    G : networkx.Graph or networkx.MultiGraph
        Undirected graph. Weights of parallel edges are added; self-loops are dropped.
    weight : str or None, default="weight"
        Edge attribute with the weight; edges without it have weight 1. None gives all edges weight
        1.
    signed : bool, default=False
        Whether negative weights are accepted.

    Returns
    -------
    NamedGraph
        The matrix, rows in the order of ``G.nodes``, and their names.
    """
    if not (hasattr(G, "nodes") and hasattr(G, "edges") and hasattr(G, "is_directed")):
        raise ValueError(f"G must be a networkx graph, got {type(G).__name__}")
    if G.is_directed():
        raise ValueError("G is directed; pass G.to_undirected()")
    names = list(G.nodes)
    if not names:
        raise ValueError("G has no nodes; at least one is needed")
    number = {name: i for i, name in enumerate(names)}
    ends = np.array([(number[u], number[v]) for u, v in G.edges()], dtype=np.intp).reshape(-1, 2)
    values = None if weight is None else [w for _, _, w in G.edges(data=weight, default=1.0)]
    graph = from_edges(ends, values, n_nodes=len(names), duplicates="sum", signed=signed)
    nodes = np.empty(len(names), dtype=object)
    nodes[:] = names
    return NamedGraph(graph.W, nodes)
