"""Convert NetworkX graphs and lists of edges to adjacency matrices; save and load graphs.

Conversion returns the matrix together with the names of its nodes. A saved graph is one NPZ file;
it is read without pickle and checked before use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..checks import check_positive
from ..errors import check_choice
from .adjacency import check_adjacency

DUPLICATES = ("same", "sum", "max", "error")


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
    duplicates: str = "same",
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
    duplicates : {"same", "sum", "max", "error"}, default="same"
        What to do with an edge that is listed more than once, in either direction. "same": it
        counts once, and different weights are an error. "sum" adds the weights, "max" takes the
        largest, and "error" refuses every repeated edge.
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
    check_choice("duplicates", duplicates, DUPLICATES)
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
    i = codes[: left.size]
    j = codes[left.size :]
    proper = i != j
    low = np.minimum(i, j)[proper]
    high = np.maximum(i, j)[proper]
    values = values[proper]
    low, high, values = merge_edges(
        low,
        high,
        values,
        duplicates,
        names=(left[proper], right[proper]),
        hint=", or use duplicates='sum' or 'max'",
    )
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


def merge_edges(
    i: NDArray[np.integer],
    j: NDArray[np.integer],
    weights: NDArray[np.float64],
    duplicates: str,
    *,
    names: tuple[NDArray[Any], NDArray[Any]],
    hint: str = "",
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.float64]]:
    """Merge edges that are listed more than once, by the one rule of all readers.

    Parameters
    ----------
    i, j : ndarray of int of shape (n_edges,)
        Ends of the edges, in the same order in both directions.
    weights : ndarray of shape (n_edges,)
        Their weights.
    duplicates : {"same", "sum", "max", "error"}
        As in :func:`from_edges`.
    names : pair of ndarray of shape (n_edges,)
        The ends as listed, for messages.
    hint : str, default=""
        How to choose another rule, for messages.

    Returns
    -------
    i, j, weights : ndarray
        The distinct edges, sorted.
    """
    order = np.lexsort((j, i))
    i = i[order]
    j = j[order]
    weights = weights[order]
    new = np.ones(i.size, dtype=bool)
    new[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    first = np.flatnonzero(new)
    if first.size == i.size:
        return i, j, weights
    before = first[np.cumsum(new) - 1]  # first listing of the same edge
    refused = np.zeros(i.size, dtype=bool)
    if duplicates == "error":
        refused = ~new
    elif duplicates == "same":
        refused = weights != weights[before]
    if refused.any():
        k = int(np.flatnonzero(refused)[0])
        a, b = (str(end[order[before[k]]])[:40] for end in names)
        different = weights[k] != weights[before[k]]
        listed = f" with the weights {weights[before[k]]:g} and {weights[k]:g}" if different else ""
        accepted = "list it once" + (", or with equal weights" if duplicates == "same" else "")
        raise ValueError(
            f"the edge ({a}, {b}) is listed more than once{listed}; an edge has no direction: "
            f"{accepted}{hint}"
        )
    reduce = np.add if duplicates == "sum" else np.maximum
    return i[first], j[first], reduce.reduceat(weights, first)


def is_networkx(graph: object) -> bool:
    """Return whether an object is a NetworkX graph."""
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes") and hasattr(graph, "edges")


def has_row_numbers(names: Iterable[object], n: int) -> bool:
    """Return whether the names are the integers 0 to n - 1, in any order."""
    whole = {int(v) for v in names if isinstance(v, int | np.integer) and type(v) is not bool}
    return whole == set(range(n))


def from_networkx(
    G: Any,
    *,
    weight: str | None = "weight",
    nodes: Iterable[Any] | None = None,
    signed: bool = False,
) -> NamedGraph:
    """Build the adjacency matrix of a NetworkX graph.

    Parameters
    ----------
    G : networkx.Graph or networkx.MultiGraph
        Undirected graph. Weights of parallel edges are added; self-loops are dropped.
    weight : str or None, default="weight"
        Edge attribute with the weight; edges without it have weight 1. None gives all edges weight
        1.
    nodes : iterable of nodes, optional
        The order of the rows: every node of G once. By default, rows are in the order of the node
        numbers if the nodes are the integers 0 to n - 1, and otherwise in the order of ``G.nodes``.
    signed : bool, default=False
        Whether negative weights are accepted.

    Returns
    -------
    NamedGraph
        The matrix and the node of each row.

    Examples
    --------
    >>> import networkx
    >>> from gdpa.graph import from_networkx
    >>> G = networkx.Graph([(2, 1), (1, 0)])
    >>> list(G.nodes), from_networkx(G).nodes.tolist()
    ([2, 1, 0], [0, 1, 2])
    >>> from_networkx(networkx.Graph([("b", "a")]), nodes=["a", "b"]).nodes.tolist()
    ['a', 'b']
    """
    if not is_networkx(G):
        raise ValueError(f"G must be a networkx graph, got {type(G).__name__}")
    if G.is_directed():
        raise ValueError("G is directed; pass G.to_undirected()")
    names = list(G.nodes)
    n = len(names)
    if not names:
        raise ValueError("G has no nodes; at least one is needed")
    if nodes is not None:
        names = _checked_order(list(nodes), names)
    elif has_row_numbers(names, n):
        names = sorted(names)
    number = {name: i for i, name in enumerate(names)}
    ends = np.array([(number[u], number[v]) for u, v in G.edges()], dtype=np.intp).reshape(-1, 2)
    values = None if weight is None else [w for _, _, w in G.edges(data=weight, default=1.0)]
    graph = from_edges(ends, values, n_nodes=n, duplicates="sum", signed=signed)
    rows = np.empty(n, dtype=object)
    rows[:] = names
    return NamedGraph(graph.W, rows)


def _checked_order(nodes: list[Any], names: list[Any]) -> list[Any]:
    """Return `nodes` if it lists every name once."""
    listed = set(nodes)
    wanted = set(names)
    if len(listed) < len(nodes):
        twice = next(node for i, node in enumerate(nodes) if node in nodes[:i])
        raise ValueError(f"nodes lists {twice!r} twice; it must list every node of the graph once")
    if listed != wanted:
        unknown = [node for node in nodes if node not in wanted]
        absent = [node for node in names if node not in listed]
        what = f"has {unknown[0]!r}, which is no node of" if unknown else f"lacks {absent[0]!r} of"
        raise ValueError(
            f"nodes {what} the graph; it must list each of the {len(names)} nodes once"
        )
    return nodes
