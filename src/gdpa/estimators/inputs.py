"""Validate the graphs and links that users pass to the estimators."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import unmasked
from ..errors import DegenerateProblemWarning
from ..graph import Links, from_edges, from_networkx
from ..graph.adjacency import check_adjacency
from ..graph.convert import NamedGraph, has_row_numbers, is_networkx
from ..graph.features import Features
from ..tables import is_frame
from .sample_graph import check_link_rows


def is_graph(X: object) -> bool:
    """Return whether an object can only be a graph, not a table of features."""
    return is_networkx(X) or isinstance(X, NamedGraph | Links)


def exact_numbers(X: Any) -> Any:
    """Return the input without a mask and without small integers in a sparse matrix.

    Masked entries become NaN, which later checks refuse. Sparse integers become float64 before
    duplicate entries are added, because their sum may overflow.
    """
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a polars LazyFrame, which has no rows yet; pass X.collect()")
    if isinstance(X, sp.sparray | sp.spmatrix) and X.dtype.kind in "iub":
        return X.astype(np.float64)
    return unmasked(X) if np.ma.isMaskedArray(X) else X


def own_copy(A: Features, X: object) -> Features:
    """Return features that do not change when the user changes X.

    Only an input that was taken as it is has to be copied. Converted, encoded and rescaled features
    are already different arrays.
    """
    if isinstance(A, np.ndarray):
        array_like = isinstance(X, memoryview) or (hasattr(X, "__array__") and not is_frame(X))
        return A.copy() if array_like and np.may_share_memory(A, np.asarray(X)) else A
    parts = [getattr(X, part, None) for part in ("data", "indices", "indptr")]
    mine = (A.data, A.indices, A.indptr)
    shared = any(
        isinstance(given, np.ndarray) and np.may_share_memory(own, given)
        for own, given in zip(mine, parts, strict=True)
    )
    return A.copy() if shared else A


def row_order(
    G: Any, name: str, nodes: Iterable[Any] | None = None, tables: Sequence[Any] = ()
) -> list[Any]:
    """Return the nodes of a NetworkX graph in the order of the rows of X and y.

    The order of ``G.nodes`` depends on how the graph was built, so it is never used.

    Parameters
    ----------
    G : networkx.Graph
        The graph.
    name : str
        Name of the argument in error messages.
    nodes : iterable of nodes, optional
        The order, if the user gave it.
    tables : sequence of objects
        X and y. If they have an index of node names, as pandas objects do, it is the order.

    Raises
    ------
    ValueError
        If the order is unknown or ambiguous.
    """
    if nodes is not None:
        return list(nodes)
    names = list(G.nodes)
    numbered = has_row_numbers(names, len(names))
    orders = [list(table.index) for table in tables if hasattr(table, "iloc")]
    orders = [order for order in orders if set(order) == set(names)]
    if numbered:
        orders.append(sorted(names))
    if not orders:
        raise ValueError(
            f"{name} is a NetworkX graph with {len(names)} nodes (the first is {names[0]!r}), and "
            "it is not known which node belongs to which row: pass nodes=, a list of the nodes in "
            "the order of the rows, or use the nodes as the index of a pandas X or y, or name them "
            "0 to n - 1"
        )
    if any(order != orders[0] for order in orders):
        raise ValueError(
            f"{name} is a NetworkX graph, and its nodes are in different orders in the indexes of "
            "X and y or by their numbers: pass nodes=, a list of the nodes in the order of the rows"
        )
    return orders[0]


def refuse_order(nodes: Iterable[Any] | None, graph: object, name: str) -> None:
    """Raise an error if `nodes` is given although only NetworkX graphs need it."""
    if nodes is not None and not is_networkx(graph):
        raise ValueError(
            f"nodes= is the order of the nodes of a NetworkX graph, but {name} is "
            f"{'None' if graph is None else 'a ' + type(graph).__name__}"
        )


def given_weights(
    X: Any,
    name: str = "X",
    n_nodes: int | None = None,
    *,
    signed: bool = False,
    nodes: Iterable[Any] | None = None,
    tables: Sequence[object] = (),
) -> sp.csr_array:
    """Validate a graph and return its weights.

    Parameters
    ----------
    X : matrix of shape (n_nodes, n_nodes), networkx.Graph, NamedGraph, Links, or edge list
        Symmetric weights. Edge lists (pairs or triples) have node numbers.
    name : str, default="X"
        Name of the argument in error messages.
    n_nodes : int, optional
        Number of nodes, if it is known. Then edge lists may be arrays, and nodes without edges are
        allowed.
    signed : bool, default=False
        Whether negative weights are accepted.
    nodes, tables
        Order of the rows of a NetworkX graph; see :func:`row_order`.
    """
    if is_networkx(X):
        order = row_order(X, name, nodes, tables)
        return from_networkx(X, nodes=order, signed=signed).W
    refuse_order(nodes, X, name)
    if isinstance(X, Links):
        return X.among()
    if isinstance(X, NamedGraph):
        return check_adjacency(X.W, name=name, signed=signed)
    listed = isinstance(X, list | tuple) and len(X) and _is_edge_list(X)
    if n_nodes is not None and n_nodes > 3 and isinstance(X, np.ndarray) and X.ndim == 2:
        listed = X.shape[1] in (2, 3)  # too narrow for a matrix
    if not listed:
        return check_adjacency(X, name=name, signed=signed)
    return _edge_weights(X, n_nodes, signed=signed)


def _edge_weights(X: Any, n_nodes: int | None, *, signed: bool) -> sp.csr_array:
    """Return the weights of an edge list, whose nodes must be row numbers."""
    ends = X[:, :2] if isinstance(X, np.ndarray) else np.asarray([edge[:2] for edge in X])
    if isinstance(X, np.ndarray) and ends.dtype.kind == "f" and (ends == np.rint(ends)).all():
        ends = ends.astype(np.int64)  # node numbers stored as floats because of the weights
        X = np.column_stack([ends, X[:, 2:]]) if X.shape[1] == 3 else ends
    if ends.dtype.kind not in "iu":
        raise ValueError(
            "an edge list must name nodes by their row numbers (0 to n - 1); use "
            "gdpa.graph.from_edges for other node names"
        )
    most = int(ends.max(initial=-1)) + 1
    return from_edges(X, n_nodes=max(most, n_nodes or 1), signed=signed).W


def _is_edge_list(X: Sequence[object]) -> bool:
    """Return whether a list contains pairs or triples; 2 or 3 rows of numbers are a matrix."""
    widths = {len(row) if isinstance(row, list | tuple) else -1 for row in X}
    tuples = all(isinstance(row, tuple) for row in X)
    return widths <= {2, 3} and (len(widths) > 1 or len(X) not in widths or tuples)


def check_links(
    adjacency: object,
    n: int,
    *,
    alone: bool = False,
    nodes: Iterable[Any] | None = None,
    tables: Sequence[object] = (),
) -> sp.csr_array:
    """Validate links between the n fitted samples and return their weights.

    `alone` says that there are no features; then n is the number of labels.
    """
    if isinstance(adjacency, Links):
        W = given_weights(adjacency, "adjacency", nodes=nodes)
    else:
        shape: tuple[int, ...] = getattr(adjacency, "shape", ())
        if len(shape) == 2 and shape[0] == n != shape[1] > 3:
            raise ValueError(
                f"adjacency has shape {shape}: its rows were selected, but not its columns; for "
                "cross-validation pass gdpa.graph.Links(W), which selects both"
            )
        W = given_weights(adjacency, "adjacency", n, nodes=nodes, tables=tables)
    if W.shape[0] != n:
        counted = f"y has {n} entries" if alone else f"X has {n} rows"
        raise ValueError(f"adjacency has {W.shape[0]} nodes, but {counted}")
    if not W.nnz:
        warnings.warn(
            "adjacency has no links" + ("" if alone else "; only the features are used"),
            DegenerateProblemWarning,
            stacklevel=4,
        )
    return W


def check_new_links(
    adjacency: object, fitted: Links | None, n_rows: int | None, n_nodes: int
) -> sp.csr_array:
    """Validate the links of new rows to the fitted samples and return their weights."""
    if isinstance(adjacency, Links):
        if fitted is None:
            raise ValueError("adjacency=Links needs a fit with Links of the same graph")
        links = adjacency.to(fitted)
    else:
        links = check_link_rows(adjacency, name="adjacency")
    wanted = (links.shape[0] if n_rows is None else n_rows, n_nodes)
    if links.shape != wanted:
        raise ValueError(
            f"adjacency has shape {links.shape}; links of new rows to the fitted samples must have "
            f"shape {wanted}"
        )
    return links
