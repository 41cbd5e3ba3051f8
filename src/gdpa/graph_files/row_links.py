"""Read links between the rows of a table from a graph file.

Edge lists and GraphML refer to rows by name. The rows of a matrix (Matrix Market, NPZ) are the rows
of the table, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import check_choice
from ..graph.convert import merge_edges
from ..tables.source import Source
from ..tables.table import TableError, errors_as_table_error, shorten
from .graphs import EdgeList, check_similarities, graph_format, parse_edge_list, read_graph

DUPLICATES = ("same", "sum", "max")
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RowLinks:
    """Links between rows.

    Parameters
    ----------
    W : csr_array of shape (n_rows, n_known)
        Weights between the rows and the known nodes (in a fit, the rows themselves).
    notes : tuple of str
        Messages for the user.
    """

    W: sp.csr_array
    notes: tuple[str, ...] = ()


def read_links(
    path: str | Path,
    rows: Sequence[str],
    known: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    duplicates: str = "same",
    skip_unknown: bool = False,
) -> RowLinks:
    """Read undirected links between named rows.

    Parameters
    ----------
    path : str or Path
        The file. The extension selects Matrix Market, NPZ or GraphML; any other file is read as
        an edge list.
    rows : sequence of str
        Unique names of the rows.
    known : sequence of str, optional
        Names of the nodes that the rows are linked to; the rows themselves by default. If given,
        links among known nodes and among new rows are ignored.
    delimiter : str, optional
        Delimiter of an edge list; detected by default.
    duplicates : {"same", "sum", "max"}, default="same"
        How to merge the weights of an edge that is listed more than once. "same" raises an error
        if they differ.
    skip_unknown : bool, default=False
        Whether to ignore edges to unknown names. Otherwise they raise an error that names them.

    Returns
    -------
    RowLinks
        The links.

    Raises
    ------
    TableError
        If the file is missing, empty or damaged, a name is unknown, two rows have the same name, a
        weight is negative, or no row is linked.
    """
    check_choice("duplicates", duplicates, DUPLICATES)
    source = Source(path)
    name = source.name
    kind = graph_format(source)
    if kind in ("mtx", "npz"):
        return _by_position(path, len(rows), known)
    places = _index_rows(rows, name)
    others = places if known is None else {text: i for i, text in enumerate(known)}
    if kind == "graphml":
        graph = read_graph(path)
        upper = sp.triu(graph.W, 1).tocoo()
        listed = EdgeList(graph.nodes.astype(str)[np.stack(upper.coords, axis=1)], upper.data)
    else:
        listed = parse_edge_list(source.read(), name, delimiter, places.keys() | others.keys())
    check_similarities(listed, name)
    notes = []
    if listed.unusual_header:
        header = ", ".join(listed.unusual_header)
        notes.append(f"{name}: the first line, {header}, was read as a header")
    # A name can be both a row and a known node.
    row = _places(listed.ends, places)
    node = row if known is None else _places(listed.ends, others)
    unknown = (row < 0) & (node < 0)
    if unknown.any():
        names = np.unique(listed.ends[unknown])
        if not skip_unknown:
            listed_names = ", ".join(shorten(text) for text in names[:5].tolist())
            more = f" and {names.size - 5} more" if names.size > 5 else ""
            raise TableError(
                f"{name} has edges to unknown rows: {listed_names}{more}; the {len(rows)} rows are "
                f"named {shorten(rows[0])} to {shorten(rows[-1])} (--id selects another column). "
                "Add these rows, or ignore their edges (--skip-unknown)"
            )
        n_edges = int(unknown.any(axis=1).sum())
        notes.append(f"{name}: ignored {n_edges} edges to {names.size} unknown names")
    proper = listed.ends[:, 0] != listed.ends[:, 1]
    if known is None:
        loops = int(((row[:, 0] == row[:, 1]) & (row[:, 0] >= 0)).sum())
        if loops:
            notes.append(f"{name}: ignored {loops} links from a row to itself")
        edges = np.flatnonzero((row >= 0).all(axis=1) & (row[:, 0] != row[:, 1]))
        i = row[edges].min(axis=1)
        j = row[edges].max(axis=1)
    else:
        # From a new row to a known node, whichever is listed first.
        forth = (row[:, 0] >= 0) & (node[:, 1] >= 0) & proper
        back = (row[:, 1] >= 0) & (node[:, 0] >= 0) & proper
        unused = int((~(forth | back | unknown.any(axis=1))).sum())
        if unused:
            notes.append(f"{name}: ignored {unused} edges that join no new row to a known node")
        edges = np.concatenate([np.flatnonzero(forth), np.flatnonzero(back)])
        i = np.concatenate([row[forth, 0], row[back, 1]])
        j = np.concatenate([node[forth, 1], node[back, 0]])
    a, b = listed.ends[edges].T
    count = edges.size
    with errors_as_table_error(name, ValueError):
        i, j, merged = merge_edges(
            i,
            j,
            listed.weights[edges],
            duplicates,
            names=(a, b),
            hint=", or use --duplicates sum or max",
        )
    if duplicates == "same" and i.size < count:
        notes.append(f"{name}: {count - i.size} repeated edges count once")
    shape = (len(rows), len(others))
    W = sp.csr_array(sp.coo_array((merged, (i, j)), shape=shape))
    W.eliminate_zeros()
    if not W.nnz:
        end = "another" if known is None else "a known node"
        raise TableError(f"{name}: no row is linked to {end}; omit the edges to use columns only")
    return RowLinks(sp.csr_array(W + W.T) if known is None else W, tuple(notes))


def _by_position(path: str | Path, n: int, known: Sequence[str] | None) -> RowLinks:
    """Read a matrix whose rows are those of the table."""
    if known is not None:
        raise TableError(
            f"{path} has no node names; links of new rows need an edge list or GraphML"
        )
    W = read_graph(path).W
    if W.shape[0] != n or not W.nnz:
        raise TableError(
            f"{path} has {W.shape[0]} nodes and {W.nnz} entries, the table has {n} rows; one node "
            "per row and at least one edge are needed"
        )
    return RowLinks(W, (f"{path} is a matrix: its rows are taken as the rows of the table",))


def _index_rows(rows: Sequence[str], name: str) -> dict[str, int]:
    """Return the position of each row by its unique name."""
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row == "":
            raise TableError(f"row {i + 1} has no name; {name} needs one for every row")
        if places.setdefault(row, i) != i:
            raise TableError(
                f"rows {places[row] + 1} and {i + 1} are both named {shorten(row)}; {name} needs "
                "unique names"
            )
    return places


def _places(ends: NDArray[np.str_], places: dict[str, int]) -> NDArray[np.int64]:
    """Return the position of each node, -1 if unknown; 7 may be written as 7.0."""
    names, codes = np.unique(ends, return_inverse=True)
    found = [
        places.get(text, places.get(re.sub(r"\.0*$", "", text), -1)) for text in names.tolist()
    ]
    return np.array(found, dtype=np.int64)[codes.reshape(ends.shape)]
