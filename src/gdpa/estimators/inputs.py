"""Validate the graphs and links that users pass to the estimators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import DegenerateProblemWarning
from ..graph import Links, from_edges, from_networkx
from ..graph.adjacency import check_adjacency
from .members.graphs import check_link_rows


def given_weights(
    X: Any, name: str = "X", n_nodes: int | None = None, *, signed: bool = False
) -> sp.csr_array:
    """Validate a graph and return its weights.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_nodes, n_nodes), networkx.Graph, or edge list
        Symmetric weights. NetworkX graphs and edge lists (pairs or triples) are converted; rows are
        in the order of ``G.nodes`` or of the node numbers.
    name : str, default="X"
        Name of the argument in error messages.
    n_nodes : int, optional
        Number of nodes, if it is known. Then edge lists may be arrays, and nodes without edges are
        allowed.
    signed : bool, default=False
        Whether negative weights are accepted.
    """
    if hasattr(X, "is_directed") and hasattr(X, "nodes"):
        return from_networkx(X, signed=signed).W
    listed = isinstance(X, list | tuple) and len(X) and _is_edge_list(X)
    if n_nodes is not None and n_nodes > 3 and isinstance(X, np.ndarray) and X.ndim == 2:
        listed = X.shape[1] in (2, 3)  # too narrow for a matrix
    if not listed:
        return check_adjacency(X, name=name, signed=signed)
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


def check_links(adjacency: object, n: int) -> sp.csr_array:
    """Validate links between the n fitted samples and return their weights."""
    if isinstance(adjacency, Links):
        W = adjacency.among()
    else:
        shape: tuple[int, ...] = getattr(adjacency, "shape", ())
        if len(shape) == 2 and shape[0] == n != shape[1] > 3:
            raise ValueError(
                f"adjacency has shape {shape}: its rows were selected, but not its columns; for "
                "cross-validation pass gdpa.graph.Links(W), which selects both"
            )
        W = given_weights(adjacency, "adjacency", n)
    if W.shape[0] != n:
        raise ValueError(f"adjacency has {W.shape[0]} nodes, but X has {n} rows")
    if not W.nnz:
        warnings.warn(
            "adjacency has no links; only the features are used",
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
