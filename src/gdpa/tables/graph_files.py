"""Read a graph from a file: Matrix Market, edge-list CSV, NPZ or GraphML; and labels of its nodes.

Nodes are called what the file calls them: names or numbers in edge lists and GraphML, rows counted
from 1 in Matrix Market and from 0 in NPZ.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from ..graph.adjacency import check_adjacency
from ..graph.convert import NamedGraph, from_edges
from ..npz import read_npz
from .edge_lists import delimiter_of, edge_list, is_number, text_rows
from .graph_formats import read_graphml, read_matrix_market
from .source import open_file
from .table import TableError
from .text_file import decode_text

__all__ = ["GRAPH_FORMATS", "SUFFIXES", "NodeLabels", "read_graph", "read_labels"]

GRAPH_FORMATS = ("mtx", "csv", "npz", "graphml")
SUFFIXES = {
    ".mtx": "mtx",
    ".csv": "csv",
    ".tsv": "csv",
    ".edges": "csv",
    ".npz": "npz",
    ".graphml": "graphml",
    ".xml": "graphml",
}
UNKNOWN = frozenset({"", "?", "na", "n/a", "nan", "none", "null", "unknown"})


def read_graph(
    path: str | Path, *, format: str | None = None, delimiter: str | None = None
) -> NamedGraph:
    """Read an undirected weighted graph.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for an edge list on standard input.
    format : {"mtx", "csv", "npz", "graphml"}, optional
        Told by the file's ending by default.
    delimiter : str, optional
        Between the cells of an edge list; found by looking by default: a comma, a semicolon, a
        tab, or white space.

    Returns
    -------
    NamedGraph
        The weights and the names of the nodes.

    Raises
    ------
    TableError
        If the file is missing, empty, broken, or not an undirected graph with non-negative weights.
    """
    name = "standard input" if str(path) == "-" else str(path)
    suffix = Path(path).suffix.lower()
    kind = format or ("csv" if str(path) == "-" else SUFFIXES.get(suffix))
    if kind not in GRAPH_FORMATS:
        raise TableError(
            f"the ending of {name} does not tell its format; give one of: "
            f"{', '.join(GRAPH_FORMATS)}"
            if format is None
            else f"format={format!r}; {nearest_name(format, list(GRAPH_FORMATS))}"
        )
    with open_file(path, name) as stream:
        raw = stream.read()
    if not raw.strip():
        raise TableError(f"{name} is empty")
    try:
        if kind == "mtx":
            return read_matrix_market(raw, name)
        if kind == "npz":
            return _read_npz(raw, name)
        if kind == "graphml":
            return read_graphml(raw, name)
        return _read_edges(raw, name, delimiter or delimiter_of(raw))
    except TableError:
        raise
    except ValueError as error:
        raise TableError(f"{name}: {error}") from error


def _read_npz(raw: bytes, name: str) -> NamedGraph:
    try:
        parts = read_npz(io.BytesIO(raw))
    except ValueError as error:
        raise TableError(f"{name} is not a readable NPZ file of plain arrays: {error}") from error
    if {"data", "indices", "indptr", "shape"} <= set(parts):
        # Both this package's graphs and scipy.sparse.save_npz have these parts.
        layout = parts.get("format")
        if layout is not None and layout.dtype.kind in "SU" and _text(layout) not in ("csr", "csc"):
            raise TableError(f"{name} holds a {_text(layout)} matrix; save it as CSR")
        shape = tuple(int(s) for s in parts["shape"].ravel())
        if len(shape) != 2:
            raise TableError(f"{name} needs a two-dimensional matrix; its shape is {shape}")
        W: Any = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        W.check_format(full_check=True)
    elif "W" in parts:
        W = parts["W"]
    else:
        raise TableError(
            f"{name} holds no graph: a sparse matrix or an array W is needed, it has "
            f"{sorted(parts)}"
        )
    W = check_adjacency(W, name="the matrix")
    return NamedGraph(W, np.arange(W.shape[0]))


def _text(array: NDArray[Any]) -> str:
    value = array.item()
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_edges(raw: bytes, name: str, delimiter: str) -> NamedGraph:
    listed = edge_list(raw, name, delimiter)
    ends = listed.ends
    if np.char.isdecimal(ends).all() and max(map(len, ends.ravel())) < 19:
        ends = ends.astype(np.int64)  # numbers in the order of numbers
    return _once_or_twice(ends, listed.weights)


def _once_or_twice(ends: NDArray[Any], weights: NDArray[np.float64] | None) -> NamedGraph:
    """Accept lists that name every edge in both directions with equal weight."""
    try:
        return from_edges(ends, weights)
    except ValueError as error:
        if "more than once" not in str(error):
            raise
        both = from_edges(ends, weights, duplicates="max")
        twice = from_edges(ends, weights, duplicates="sum")
        if twice.W.nnz == both.W.nnz and np.allclose(twice.W.data, 2.0 * both.W.data):
            return both
        raise


@dataclass(frozen=True)
class NodeLabels:
    """Labels of some nodes, and what they are called.

    Parameters
    ----------
    codes : ndarray of int32
        Class numbers, -1 where the label is not known.
    classes : tuple of str
        What they stand for.
    """

    codes: NDArray[np.int32]
    classes: tuple[str, ...]

    @property
    def signs(self) -> NDArray[np.int8]:
        """Of two classes: -1 for the first, +1 for the second, 0 where it is not known."""
        return self.against_rest(1)

    def against_rest(self, c: int) -> NDArray[np.int8]:
        """+1 for one class, -1 for all others, 0 where the label is not known."""
        return np.where(self.codes < 0, 0, np.where(self.codes == c, 1, -1)).astype(np.int8)

    def names(self, codes: NDArray[Any]) -> list[str]:
        """Names of class numbers."""
        return [self.classes[c] for c in codes]


def read_labels(
    path: str | Path,
    graph: NamedGraph,
    *,
    unlabeled: str | None = None,
    delimiter: str | None = None,
    classes: tuple[str, ...] | None = None,
) -> NodeLabels:
    """Read labels of nodes: ``node,label`` lines, or one label per line in the order of the nodes.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"``. Further columns are ignored, so that what ``gdpa solve`` wrote can
        be read again.
    graph : NamedGraph
        The graph.
    unlabeled : str, optional
        What marks an unknown label, besides an empty cell, ``?`` and ``NA``; with numbers -1 and
        +1 also ``0``.
    delimiter : str, optional
        Between the cells; found by looking by default.
    classes : tuple of str, optional
        The classes, where another file has told them; other labels are refused.

    Returns
    -------
    NodeLabels
        The labels.

    Raises
    ------
    TableError
        If a node is not in the graph or comes twice, or there are fewer than two classes.
    """
    name = "standard input" if str(path) == "-" else str(path)
    with open_file(path, name) as stream:
        raw = stream.read()
    n = graph.W.shape[0]
    delimiter = delimiter or delimiter_of(raw)
    if delimiter.encode() not in raw.strip():
        cells = [line.strip() for line in decode_text(raw, name).splitlines()]
        if len(cells) == n + 1 and cells[0].lower() == "label":
            cells = cells[1:]
        while len(cells) > n and not cells[-1]:
            cells.pop()
        if len(cells) != n:
            raise TableError(
                f"{name} has {len(cells)} lines and the graph has {n} nodes; give one label per "
                "line (empty: unknown), or lines node,label"
            )
        positions, values = list(range(n)), cells
    else:
        rows = text_rows(raw, name, delimiter, (2, 3, 4, 5))
        if rows and rows[0][0].lower() in ("node", "id", "name") and rows[0][1].lower() == "label":
            rows = rows[1:]
        places = {str(node): i for i, node in enumerate(graph.nodes)}
        positions, values = [], []
        for row in rows:
            # As our own tables write cells that a spreadsheet would run.
            row[:2] = (c if k == 0 and c in places else _unquoted(c) for k, c in enumerate(row[:2]))
            if row[0] not in places:
                known = [str(v) for v in graph.nodes[:1].tolist() + graph.nodes[-1:].tolist()]
                raise TableError(
                    f"{name}: the graph has no node {row[0]!r}; its {n} nodes are called "
                    f"{known[0]} to {known[1]}"
                )
            positions.append(places[row[0]])
            values.append(row[1])
        times = np.bincount(positions, minlength=n)
        if times.max(initial=0) > 1:
            raise TableError(f"{name} has the node {graph.nodes[times.argmax()]} twice")
    return _to_codes(positions, values, n, name, unlabeled, classes)


def _unquoted(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@") else cell


def _to_codes(
    positions: list[int],
    values: list[str],
    n: int,
    name: str,
    unlabeled: str | None,
    classes: tuple[str, ...] | None,
) -> NodeLabels:
    marks = UNKNOWN | ({unlabeled.lower()} if unlabeled is not None else set())
    canonical = [v.removeprefix("+") if is_number(v) else v for v in values]
    found = {v for v in canonical if v.lower() not in marks}
    if found <= {"-1", "0", "1"} and found & {"-1", "1"} and "-1" in found | set(classes or ()):
        found -= {"0"}
        marks = marks | {"0"}
    if found <= {"-1", "1"} and "-1" in found and classes is None:
        classes = ("-1", "1")
    if classes is None:
        if not found:
            raise TableError(f"{name} has no label; at least one of each class is needed")
        if len(found) == 1:
            raise TableError(f"{name} has one class only ({found.pop()!r}); two are needed")
        classes = tuple(sorted(found))
    strangers = found - set(classes)
    if strangers:
        raise TableError(
            f"{name} has the label {sorted(strangers)[0]!r}; the classes are "
            f"{', '.join(map(repr, classes[:5]))}{'...' if len(classes) > 5 else ''}"
        )
    number = {c: k for k, c in enumerate(classes)}
    codes = np.full(n, -1, dtype=np.int32)
    for place, value in zip(positions, canonical, strict=True):
        if value.lower() not in marks:
            codes[place] = number[value]
    return NodeLabels(codes, classes)
