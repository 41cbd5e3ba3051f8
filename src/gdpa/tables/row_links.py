"""Links between the rows of a table, from a file whose ends are the rows' names.

Edge lists (any delimiter) and GraphML name their nodes; rows of a matrix (Matrix Market, NPZ) are
the rows of the table, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from .graph_files import EdgeList, graph_format, parse_edge_list, read_graph
from .source import Source
from .table import TableError, shorten

DUPLICATES = ("same", "sum", "max")
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RowLinks:
    """Links of rows.

    Parameters
    ----------
    W : csr_array of shape (n_rows, n_known)
        Weights between the rows and the known nodes, which are the rows themselves in a fit.
    notes : tuple of str
        What was done that the user should know.
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
        The file. Its ending tells Matrix Market, NPZ and GraphML; all else is an edge list.
    rows : sequence of str
        Names of the rows, each once.
    known : sequence of str, optional
        Names of the nodes that the rows are linked to; the rows themselves by default. Links among
        known nodes, and among new rows, are left out then.
    delimiter : str, optional
        Between the cells of an edge list; found by looking by default.
    duplicates : {"same", "sum", "max"}, default="same"
        An edge that is listed more than once counts once if its weights are the same, and is
        refused if not; or its weights are added, or the largest is taken.
    skip_unknown : bool, default=False
        Whether edges to names that no row has are left out; they are refused otherwise.

    Returns
    -------
    RowLinks
        The links.

    Raises
    ------
    TableError
        If the file is missing, empty or broken, a name is unknown or comes twice among the rows, a
        weight is negative, or there is no link at all.
    """
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates={duplicates!r}; {nearest_name(duplicates, list(DUPLICATES))}")
    source = Source(path)
    name, kind = source.name, graph_format(source)
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
    _check_weights(listed, name)
    notes = []
    if listed.unusual_header:
        header = ", ".join(listed.unusual_header)
        notes.append(f"{name}: the first line, {header}, was taken as a header")
    # A name may be both a row and a known node.
    row = _places(listed.ends, places)
    node = row if known is None else _places(listed.ends, others)
    unknown = (row < 0) & (node < 0)
    if unknown.any():
        names = np.unique(listed.ends[unknown])
        if not skip_unknown:
            raise TableError(_unknown_names(name, names, rows))
        n_edges = int(unknown.any(axis=1).sum())
        notes.append(f"{name}: {n_edges} edges to {names.size} names that no row has were left out")
    proper = listed.ends[:, 0] != listed.ends[:, 1]
    if known is None:
        loops = int(((row[:, 0] == row[:, 1]) & (row[:, 0] >= 0)).sum())
        if loops:
            notes.append(f"{name}: {loops} links of a row to itself were left out")
        edges = np.flatnonzero((row >= 0).all(axis=1) & (row[:, 0] != row[:, 1]))
        i, j = row[edges].min(axis=1), row[edges].max(axis=1)
    else:
        # From a new row to a known node, whichever is named first.
        forth = (row[:, 0] >= 0) & (node[:, 1] >= 0) & proper
        back = (row[:, 1] >= 0) & (node[:, 0] >= 0) & proper
        unused = int((~(forth | back | unknown.any(axis=1))).sum())
        if unused:
            notes.append(
                f"{name}: {unused} edges join no new row to a known node and were left out"
            )
        edges = np.concatenate([np.flatnonzero(forth), np.flatnonzero(back)])
        i = np.concatenate([row[forth, 0], row[back, 1]])
        j = np.concatenate([node[forth, 1], node[back, 0]])
    order = np.lexsort((j, i))
    edges, i, j = edges[order], i[order], j[order]
    weights = listed.weights[edges]
    first = np.flatnonzero(np.diff(i, prepend=-1) | np.diff(j, prepend=-1))  # of equal pairs
    merged = (np.add if duplicates == "sum" else np.maximum).reduceat(weights, first)
    if duplicates == "same" and first.size < i.size:
        unequal = np.flatnonzero(merged != np.minimum.reduceat(weights, first))
        if unequal.size:
            a, b = listed.ends[edges[first[unequal[0]]]].tolist()
            raise TableError(
                f"{name}: the edge ({shorten(a)}, {shorten(b)}) is listed with different weights; "
                "links have no direction: give each once, or use --duplicates sum or max"
            )
        notes.append(f"{name}: {i.size - first.size} edges are listed again and count once")
    shape = (len(rows), len(others))
    W = sp.csr_array(sp.coo_array((merged, (i[first], j[first])), shape=shape))
    W.eliminate_zeros()
    if not W.nnz:
        end = "another" if known is None else "a known node"
        raise TableError(
            f"{name}: no row is linked to {end}; leave the edges out to go by the columns alone"
        )
    return RowLinks(sp.csr_array(W + W.T) if known is None else W, tuple(notes))


def _by_position(path: str | Path, n: int, known: Sequence[str] | None) -> RowLinks:
    """A matrix: its rows are those of the table."""
    if known is not None:
        raise TableError(f"{path} names no nodes; links of new rows need an edge list or GraphML")
    W = read_graph(path).W
    if W.shape[0] != n:
        raise TableError(f"{path} has {W.shape[0]} nodes, the table has {n} rows; one each")
    if not W.nnz:
        raise TableError(f"{path} has no edges; leave it out to go by the columns alone")
    return RowLinks(W, (f"{path} is a matrix: its rows are those of the table, in their order",))


def _index_rows(rows: Sequence[str], name: str) -> dict[str, int]:
    """Place of each name."""
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row == "":
            raise TableError(f"row {i + 1} has no name; {name} needs one for every row")
        if places.setdefault(row, i) != i:
            raise TableError(
                f"rows {places[row] + 1} and {i + 1} are both called {shorten(row)}; {name} cannot "
                "tell them apart"
            )
    return places


def _places(ends: NDArray[np.str_], places: dict[str, int]) -> NDArray[np.int64]:
    """Place of each end, -1 for unknown ones; whole numbers may be written with a point."""
    names, codes = np.unique(ends, return_inverse=True)
    found = [
        places.get(text, places.get(re.sub(r"\.0*$", "", text), -1)) for text in names.tolist()
    ]
    return np.array(found, dtype=np.int64)[codes.reshape(ends.shape)]


def _unknown_names(name: str, names: NDArray[np.str_], rows: Sequence[str]) -> str:
    listed = ", ".join(shorten(text) for text in names[:5].tolist())
    more = f" and {names.size - 5} more" if names.size > 5 else ""
    return (
        f"{name} has ends that no row has: {listed}{more}; the {len(rows)} rows are called "
        f"{shorten(rows[0])} to {shorten(rows[-1])} (--id names another column). Add these rows, "
        "or leave their edges out (--skip-unknown)"
    )


def _check_weights(listed: EdgeList, name: str) -> None:
    weights = listed.weights
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        weight, (a, b) = weights[bad[0]], listed.ends[bad[0]].tolist()
        advice = "weights say how alike two rows are: leave out links that join unlike ones"
        if not np.isfinite(weight):
            advice = "a finite number is needed"
        raise TableError(
            f"{name}: the edge ({shorten(a)}, {shorten(b)}) has weight {weight:g}; {advice}"
        )
