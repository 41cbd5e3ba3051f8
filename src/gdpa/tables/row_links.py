"""Links between the rows of a table, from a file whose ends are the rows' names.

Edge lists (any delimiter) and GraphML name their nodes; rows of a matrix (Matrix Market, NPZ) are
the rows of the table, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from ..graph.convert import from_edges
from .edge_lists import HEADERS, EdgeList, edge_list
from .graph_files import SUFFIXES, read_graph
from .source import open_file
from .table import TableError
from .words import shown

__all__ = ["DUPLICATES", "RowLinks", "read_links"]

DUPLICATES = ("same", "sum", "max")
NAMED = 5  # names that a message lists


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
    name = "standard input" if str(path) == "-" else str(path)
    kind = SUFFIXES.get(Path(path).suffix.lower(), "csv")
    if kind in ("mtx", "npz"):
        return _by_position(path, name, kind, len(rows), known)
    places = _numbered(rows, name)
    others = places if known is None else {text: i for i, text in enumerate(known)}
    if kind == "graphml":
        graph = read_graph(path, format=kind)
        upper = sp.triu(graph.W, 1).tocoo()
        ends = graph.nodes.astype(str)[np.stack(upper.coords, axis=1)]
        listed = EdgeList(ends, upper.data)
    else:
        with open_file(path, name) as stream:
            raw = stream.read()
        listed = edge_list(raw, name, delimiter, frozenset(places) | frozenset(others))
    notes = []
    if listed.header and listed.header[0].lower() not in HEADERS:
        notes.append(f"{name}: the first line, {', '.join(listed.header)}, was taken as a header")
    _check_weights(listed, name)
    # Known nodes behind the rows; a name may be both.
    first = _places(listed.ends, places)
    second = first if known is None else _places(listed.ends, others)
    strange = (first < 0) & (second < 0)
    if strange.any():
        names = np.unique(listed.ends[strange])
        if not skip_unknown:
            raise TableError(_unknown(name, names, rows))
        notes.append(
            f"{name}: {int(strange.any(axis=1).sum())} edges to {names.size} names that no row has "
            "were left out"
        )
    if known is None:
        W = _among(listed, first, len(rows), name, duplicates, notes)
    else:
        W = _across(listed, first, second, (len(rows), len(known)), name, duplicates, notes)
    if not W.nnz:
        what = (
            "no row is linked to another" if known is None else "no row is linked to a known node"
        )
        raise TableError(f"{name}: {what}; leave the edges out to go by the columns alone")
    return RowLinks(W, tuple(notes))


def _by_position(
    path: str | Path, name: str, kind: str, n: int, known: Sequence[str] | None
) -> RowLinks:
    if known is not None:
        raise TableError(f"{name} names no nodes; links of new rows need an edge list or GraphML")
    W = read_graph(path, format=kind).W
    if W.shape[0] != n:
        raise TableError(f"{name} has {W.shape[0]} nodes, the table has {n} rows; one each")
    if not W.nnz:
        raise TableError(f"{name} has no edges; leave it out to go by the columns alone")
    return RowLinks(W, (f"{name} is a matrix: its rows are those of the table, in their order",))


def _numbered(rows: Sequence[str], name: str) -> dict[str, int]:
    """Place of each name."""
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row == "":
            raise TableError(f"row {i + 1} has no name; {name} needs one for every row")
        if places.setdefault(row, i) != i:
            raise TableError(
                f"rows {places[row] + 1} and {i + 1} are both called {shown(row)}; {name} cannot "
                "tell them apart"
            )
    return places


def _places(ends: NDArray[np.str_], places: dict[str, int]) -> NDArray[np.int64]:
    """Place of each end, -1 for strangers; whole numbers may be written with a point."""
    names, codes = np.unique(ends, return_inverse=True)
    found = [places.get(text, -1) for text in names.tolist()]
    for i, text in enumerate(names.tolist()):
        if found[i] < 0:
            whole, point, zeros = text.partition(".")
            if point and not zeros.strip("0"):
                found[i] = places.get(whole, -1)
    return np.array(found, dtype=np.int64)[codes.reshape(ends.shape)]


def _unknown(name: str, names: NDArray[np.str_], rows: Sequence[str]) -> str:
    listed = ", ".join(shown(text) for text in names[:NAMED].tolist())
    more = f" and {names.size - NAMED} more" if names.size > NAMED else ""
    return (
        f"{name} has ends that no row has: {listed}{more}; the {len(rows)} rows are called "
        f"{shown(rows[0])} to {shown(rows[-1])} (--id names another column). Add these rows, or "
        "leave their edges out (--skip-unknown)"
    )


def _check_weights(listed: EdgeList, name: str) -> None:
    weights = listed.weights
    if weights is None:
        return
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        k = int(bad[0])
        a, b = listed.ends[k].tolist()
        advice = "weights say how alike two rows are: leave out links that join unlike ones"
        if not np.isfinite(weights[k]):
            advice = "a finite number is needed"
        raise TableError(
            f"{name}: the edge ({shown(a)}, {shown(b)}) has weight {weights[k]:g}; {advice}"
        )


def _pairs(
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    listed: EdgeList,
    kept: NDArray[np.bool_],
    name: str,
    duplicates: str,
    notes: list[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Every pair once."""
    values = np.ones(kept.sum()) if listed.weights is None else listed.weights[kept]
    order = np.lexsort((j, i))
    i, j, values = i[order], j[order], values[order]
    new = np.ones(i.size, dtype=bool)
    new[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    first = np.flatnonzero(new)
    if first.size == i.size:
        return i, j, values
    if duplicates == "sum":
        return i[first], j[first], np.add.reduceat(values, first)
    largest = np.maximum.reduceat(values, first)
    if duplicates == "same":
        unlike = np.flatnonzero(largest != np.minimum.reduceat(values, first))
        if unlike.size:
            group = order[new.cumsum() - 1 == unlike[0]]
            a, b = listed.ends[np.flatnonzero(kept)[group[0]]].tolist()
            raise TableError(
                f"{name}: the edge ({shown(a)}, {shown(b)}) is listed with different weights; "
                "links have no direction: give each once, or say --duplicates sum or max"
            )
        notes.append(f"{name}: {i.size - first.size} edges are listed again and count once")
    return i[first], j[first], largest


def _among(
    listed: EdgeList,
    place: NDArray[np.int64],
    n: int,
    name: str,
    duplicates: str,
    notes: list[str],
) -> sp.csr_array:
    """Symmetric links among the rows."""
    loops = (place[:, 0] == place[:, 1]) & (place[:, 0] >= 0)
    if loops.any():
        notes.append(f"{name}: {int(loops.sum())} links of a row to itself were left out")
    kept = (place >= 0).all(axis=1) & ~loops
    low, high = place[kept].min(axis=1), place[kept].max(axis=1)
    low, high, values = _pairs(low, high, listed, kept, name, duplicates, notes)
    return from_edges(np.stack([low, high], axis=1), values, n_nodes=n).W


def _across(
    listed: EdgeList,
    row: NDArray[np.int64],
    node: NDArray[np.int64],
    shape: tuple[int, int],
    name: str,
    duplicates: str,
    notes: list[str],
) -> sp.csr_array:
    """Links from new rows to known nodes, whichever end is named first."""
    proper = listed.ends[:, 0] != listed.ends[:, 1]
    forth = (row[:, 0] >= 0) & (node[:, 1] >= 0) & proper
    back = (row[:, 1] >= 0) & (node[:, 0] >= 0) & proper
    unused = int((~(forth | back) & ((row >= 0) | (node >= 0)).all(axis=1)).sum())
    if unused:
        notes.append(f"{name}: {unused} edges join no new row to a known node and were left out")
    both = EdgeList(
        np.concatenate([listed.ends, listed.ends]),
        None if listed.weights is None else np.tile(listed.weights, 2),
    )
    kept = np.concatenate([forth, back])
    i = np.concatenate([row[:, 0], row[:, 1]])[kept]
    j = np.concatenate([node[:, 1], node[:, 0]])[kept]
    i, j, values = _pairs(i, j, both, kept, name, duplicates, notes)
    W = sp.csr_array(sp.coo_array((values, (i, j)), shape=shape))
    W.eliminate_zeros()
    return W
