"""Read a graph from a file (Matrix Market, edge list, NPZ or GraphML), and labels of its nodes.

Nodes keep the names that the file gives them: names or numbers in edge lists and GraphML, row
numbers from 1 in Matrix Market and from 0 in NPZ. All edge lists follow one rule: an edge that is
listed more than once, in either direction, counts once, and different weights are an error.
Parallel edges of GraphML are different edges, and their weights are added.

Two attacks are refused before anything is allocated or expanded: a short header that declares more
nodes than fit in memory, and a document type that defines exponentially growing text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..codec import csr_of_untrusted_parts
from ..errors import nearest_name
from ..graph.adjacency import check_adjacency
from ..graph.convert import NamedGraph, from_edges, merge_edges
from ..memory import check_memory
from ..npz import read_npz
from ..policy import DEFAULT_POLICY
from ..tables.cell_formats import plain_number
from ..tables.source import Source
from ..tables.table import TableError, errors_as_table_error, shorten

GRAPH_FORMATS = ("mtx", "csv", "npz", "graphml")


def graph_format(source: Source) -> str | None:
    """Return the format that a file extension stands for, or None."""
    others = {"tsv": "csv", "txt": "csv", "edges": "csv", "edgelist": "csv", "xml": "graphml"}
    suffix = source.suffix.removeprefix(".") if source.path != "-" else "csv"
    return others.get(suffix, suffix if suffix in GRAPH_FORMATS else None)


def read_graph(
    path: str | Path, *, format: str | None = None, delimiter: str | None = None
) -> NamedGraph:
    """Read an undirected weighted graph.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for an edge list on standard input.
    format : {"mtx", "csv", "npz", "graphml"}, optional
        From the file extension by default.
    delimiter : str, optional
        Delimiter of an edge list. By default it is detected: a comma, a semicolon, a tab or white
        space.

    Returns
    -------
    NamedGraph
        The weights and the names of the nodes.

    Raises
    ------
    TableError
        If the file is missing, empty, broken, or not an undirected graph with non-negative weights.
    """
    if format is not None and format not in GRAPH_FORMATS:
        raise TableError(f"format={format!r}; {nearest_name(format, list(GRAPH_FORMATS))}")
    source = Source(path)
    kind = format or graph_format(source)
    if kind is None:
        raise TableError(
            f"the file extension of {path} is not known; give the format, one of: "
            f"{', '.join(GRAPH_FORMATS)}"
        )
    raw = source.read()
    name = source.name
    if not raw.strip():
        raise TableError(f"{name} is empty")
    with errors_as_table_error(name, ValueError):
        if kind == "csv":
            return _graph_of_edges(parse_edge_list(raw, name, delimiter), name)
        if kind == "mtx":
            W = check_adjacency(parse_matrix_market(raw, name), name="the matrix")
            return NamedGraph(W, np.arange(1, W.shape[0] + 1))
        return _parse_npz(raw, name) if kind == "npz" else _parse_graphml(raw, name)


def _parse_npz(raw: bytes, name: str) -> NamedGraph:
    """Parse a graph saved by scipy.sparse.save_npz, or as a dense array W."""
    with errors_as_table_error(f"{name} is not a readable NPZ file of plain arrays"):
        parts = read_npz(io.BytesIO(raw))
    W: Any = parts.get("W")
    if {"data", "indices", "indptr", "shape"} <= set(parts):
        arrays = [parts[part] for part in ("data", "indices", "indptr")]
        W = csr_of_untrusted_parts("the matrix", [*arrays, *parts["shape"].ravel().tolist()])
    if W is None:
        raise TableError(f"{name} holds {sorted(parts)}; a CSR matrix or an array W is needed")
    W = check_adjacency(W, name="the matrix")
    return NamedGraph(W, np.arange(W.shape[0]))


# -- edge lists -------------------------------------------------------------------------------


@dataclass(frozen=True)
class EdgeList:
    """Edges as listed in a file.

    Parameters
    ----------
    ends : ndarray of str of shape (n_edges, 2)
        Names of the two nodes.
    weights : ndarray of shape (n_edges,)
        Weights; 1 if the file has none.
    unusual_header : tuple of str
        The first line, if it was taken as a header although its words are unusual for one.
    """

    ends: NDArray[np.str_]
    weights: NDArray[np.float64]
    unusual_header: tuple[str, ...] = ()


def parse_edge_list(
    raw: bytes, name: str, delimiter: str | None = None, known: Set[str] | None = None
) -> EdgeList:
    """Parse lines of two nodes and, in all lines or none, a weight.

    Parameters
    ----------
    raw : bytes
        The file.
    name : str
        Its name, for messages.
    delimiter : str, optional
        Delimiter; detected by default.
    known : set of str, optional
        Names of the nodes. A first line with two other names that are not numbers is a header.
        Without this set, a header is recognised by its words.

    Returns
    -------
    EdgeList
        The edges.

    Raises
    ------
    TableError
        If lines differ in length, a weight is not a finite number, or there is no edge.
    """
    numbered = numbered_rows(raw, name, delimiter or _detect_delimiter(raw), (2, 3))
    rows = [cells for _, cells in numbered]
    unusual: tuple[str, ...] = ()
    if rows and (known is None or known.isdisjoint(rows[0][:2])):
        numbers = [plain_number(cell) is not None for cell in rows[0]]
        words = ["source", "target", "from", "to", "node", "u", "v", "i", "j", "src", "dst", "head"]
        usual = rows[0][0].lower() in words
        if usual or (known is not None and not any(numbers[:2])) or numbers[2:] == [False]:
            unusual = () if usual else tuple(rows[0])
            rows = rows[1:]
            numbered = numbered[1:]
    if not rows:
        raise TableError(f"{name} has no edges")
    weights = [plain_number(row[2]) if len(row) == 3 else 1.0 for row in rows]
    for (line, cells), weight in zip(numbered, weights, strict=True):
        if weight is None or not np.isfinite(weight):
            raise wrong_weight(name, line, cells)
    return EdgeList(np.array(rows)[:, :2], np.array(weights, dtype=np.float64), unusual)


def wrong_weight(name: str, line: int, cells: list[str]) -> TableError:
    """Return the error about a line ``node node weight`` whose weight is not a finite number."""
    a = shorten(cells[0])
    b = shorten(cells[1])
    return TableError(
        f"{name}, line {line}: the edge ({a}, {b}) has the weight {cells[2]!r:.60}, which is not a "
        "finite number"
    )


def check_similarities(listed: EdgeList, name: str) -> None:
    """Raise an error that names an edge with a negative weight."""
    bad = np.flatnonzero(listed.weights < 0)
    if bad.size:
        a, b = listed.ends[bad[0]].tolist()
        raise TableError(
            f"{name}: the edge ({shorten(a)}, {shorten(b)}) has weight {listed.weights[bad[0]]:g}; "
            "weights measure similarity and must not be negative"
        )


def _graph_of_edges(listed: EdgeList, name: str) -> NamedGraph:
    """Return the graph of a list; an edge that is listed more than once counts once."""
    check_similarities(listed, name)
    ends: NDArray[Any] = listed.ends
    if np.char.isdecimal(ends).all() and np.char.str_len(ends).max() < 19:
        ends = ends.astype(np.int64)  # sorted as numbers
    nodes, codes = np.unique(ends, return_inverse=True)
    pairs = np.sort(codes.reshape(ends.shape), axis=1)
    proper = pairs[:, 0] != pairs[:, 1]
    left, right = listed.ends[proper].T
    low, high = pairs[proper].T
    i, j, weights = merge_edges(low, high, listed.weights[proper], "same", names=(left, right))
    merged = from_edges(np.stack([i, j], axis=1), weights, n_nodes=nodes.size)
    return NamedGraph(merged.W, nodes)


def _detect_delimiter(raw: bytes) -> str:
    """Return the delimiter of the first line; a space stands for any white space."""
    for line in raw[:65536].decode("utf-8-sig", errors="replace").splitlines():
        text = line.strip()
        if text and not text.startswith(("#", "%")):
            return next((d for d in (",", "\t", ";", " ") if d in text), ",")
    return ","


def numbered_rows(
    raw: bytes, name: str, delimiter: str, widths: tuple[int, ...]
) -> list[tuple[int, list[str]]]:
    """Return the lines of a small text table: their numbers and cells.

    A space as delimiter stands for any white space. Empty lines and comments are left out.
    """
    if len(delimiter) != 1:
        raise TableError(f"delimiter={delimiter!r} must be one character")
    text = io.StringIO(decode_text(raw, name), newline="")
    lines = (" ".join(line.split()) for line in text) if delimiter == " " else text
    reader = csv.reader(lines, delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if not row or row[0].lstrip().startswith(("#", "%")):
                continue
            if len(row) not in widths:
                wanted = f"{len(row)} cells, expected {' or '.join(map(str, widths))}"
                raise TableError(f"{name}, line {reader.line_num}: {wanted}")
            widths = (len(row),)
            rows.append((reader.line_num, [cell.strip() for cell in row]))
    except csv.Error as error:
        raise TableError(f"{name}, line {reader.line_num}: {error}") from error
    return rows


def _text_rows(raw: bytes, name: str, delimiter: str, widths: tuple[int, ...]) -> list[list[str]]:
    """Return the cells of the lines of a small text table."""
    return [cells for _, cells in numbered_rows(raw, name, delimiter, widths)]


def decode_text(raw: bytes, name: str) -> str:
    """Decode UTF-8 text."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{name}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8"
        ) from error
    if "\0" in text:
        raise TableError(f"{name} has NUL bytes: it is not a text file")
    return text


# -- formats with a header --------------------------------------------------------------------


def parse_matrix_market(raw: bytes, name: str) -> sp.csr_array:
    """Parse a square matrix. SciPy's own reader can crash on a damaged file."""
    header = re.match(
        rb"%%matrixmarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+(real|integer|pattern|double)"
        rb"[ \t]+(general|symmetric)\s*\n",
        raw,
        re.IGNORECASE,
    )
    if header is None:
        raise TableError(
            f"{name} is not a readable Matrix Market file of real numbers: it does not begin with "
            "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric"
        )
    layout, field, form = map(bytes.lower, header.groups())
    dense = layout == b"array"
    symmetric = form == b"symmetric"
    pattern = field == b"pattern"
    line = rb"[ \t]*(\d{1,30})[ \t]+(\d{1,30})" + (b"" if dense else rb"[ \t]+(\d{1,30})")
    sizes = re.compile(rb"(?:\s*%[^\n]*\n)*\s*" + line + rb"\s*(?:\n|$)").match(raw, header.end())
    if sizes is None:
        raise TableError(f"{name} has no line with the numbers of rows, columns and entries")
    n, n_columns, *listed = map(int, sizes.groups())
    body = raw[sizes.end() :]
    if n_columns != n or n < 1:
        raise TableError(f"{name} has shape {(n, n_columns)}; a graph is a square matrix")
    width = 1 if dense else 2 if pattern else 3
    count = listed[0] if listed else n * (n + 1) // 2 if symmetric else n * n
    # An entry takes at least a digit and a line end.
    if count > len(body) // 2 + 1:
        raise TableError(f"{name} declares {count} entries but has room for {len(body) // 2}")
    # Bytes for the matrix, its symmetric copy and the arrays of the checks.
    check_memory(64 * (n + count), f"{name} with {n} nodes", "a smaller graph is needed")
    cells = np.empty((0, width))
    if body.strip():
        with errors_as_table_error(f"{name} is not a readable Matrix Market file"):
            cells = np.loadtxt(io.BytesIO(body), dtype=np.float64, comments="%", ndmin=2)
    if cells.shape != (count, width):
        raise TableError(
            f"{name} declares {count} entries with {width} numbers per entry but has {len(cells)} "
            f"with {cells.shape[1]}"
        )
    if dense:
        # Column by column; for a symmetric matrix only the lower triangle.
        column, row = np.triu_indices(n) if symmetric else np.divmod(np.arange(n * n), n)
    else:
        ends = cells[:, :2]
        if not ((np.rint(ends) == ends) & (ends >= 1) & (ends <= n)).all():
            raise TableError(f"{name}: rows and columns of entries must be integers from 1 to {n}")
        row, column = ends.T.astype(np.int64) - 1
    values = np.ones(count) if pattern else cells[:, -1]
    if symmetric:
        off = row != column
        row, column = np.append(row, column[off]), np.append(column, row[off])
        values = np.append(values, values[off])
    return sp.csr_array((values, (row, column)), shape=(n, n))


def _check_prolog(raw: bytes, name: str) -> None:
    """Refuse a document type, the only place where entities can be declared."""
    declared: list[str] = []
    elements: list[str] = []
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = lambda kind, *_: declared.append(kind)
    parser.EntityDeclHandler = lambda entity, *_: declared.append(entity)
    parser.StartElementHandler = lambda element, _: elements.append(element)
    parser.Parse(raw[: 1 << 16], len(raw) <= 1 << 16)
    if declared:
        raise TableError(f"{name} has a document type; GraphML files need none")
    if not elements:
        raise TableError(f"{name} has no complete start tag in its first 64 kB")


def _parse_graphml(raw: bytes, name: str) -> NamedGraph:
    """Parse GraphML; the edge attribute ``weight`` holds the weights."""
    with errors_as_table_error(f"{name} is not readable XML"):
        _check_prolog(raw, name)
        root = ElementTree.fromstring(raw)
    keys = {
        key.get("id")
        for key in root.iterfind(".//{*}key[@attr.name='weight']")
        if key.get("for") in ("edge", "all")
    }
    graph = root.find(".//{*}graph")
    if graph is None:
        raise TableError(f"{name} has no graph element")
    edges = list(graph.iterfind(".//{*}edge"))
    if graph.get("edgedefault") == "directed" or any(e.get("directed") == "true" for e in edges):
        raise TableError(f"{name} is a directed graph; an undirected one is needed")
    nodes = [str(e.get("id")) for e in graph.iterfind(".//{*}node")]
    number = {node: i for i, node in enumerate(nodes)}
    if len(number) != len(nodes) or not nodes:
        raise TableError(f"{name} has no nodes" if not nodes else f"{name} names a node twice")
    ends = np.empty((len(edges), 2), dtype=np.int64)
    weights = np.ones(len(edges))
    for k, edge in enumerate(edges):
        pair = (edge.get("source"), edge.get("target"))
        if pair[0] not in number or pair[1] not in number:
            raise TableError(f"{name}: an end of the edge {pair} is not a node")
        ends[k] = number[str(pair[0])], number[str(pair[1])]
        value = next((e.text for e in edge.iterfind("{*}data") if e.get("key") in keys), "1")
        try:
            weights[k] = float(value or "")
        except ValueError:
            raise TableError(f"{name}: the edge {pair} has weight {value!r}") from None
    built = from_edges(ends, weights, n_nodes=len(nodes), duplicates="sum")
    return NamedGraph(built.W, np.array(nodes, dtype=object))


# -- labels of nodes --------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeLabels:
    """Labels of some nodes.

    Parameters
    ----------
    codes : ndarray of int32
        Class number of each node; -1 if the label is unknown.
    classes : tuple of str
        Names of the classes.
    """

    codes: NDArray[np.int32]
    classes: tuple[str, ...]

    @property
    def signs(self) -> NDArray[np.int8]:
        """Labels of a two-class problem: -1 or +1; 0 if unknown."""
        return self.against_rest(1)

    def against_rest(self, c: int) -> NDArray[np.int8]:
        """Return +1 for class `c`, -1 for all others, and 0 for unknown labels."""
        return np.where(self.codes < 0, 0, np.where(self.codes == c, 1, -1)).astype(np.int8)

    @property
    def too_few_to_hold_out(self) -> bool:
        """Whether too few labels could be predicted from the others to compare methods."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        several = counts[counts >= 2]
        return several.size < 2 or int(several.sum()) < DEFAULT_POLICY.fewest_labels

    def names(self, codes: NDArray[Any]) -> list[str]:
        """Return the class names of class numbers."""
        return [self.classes[c] for c in codes]


def read_labels(
    path: str | Path,
    graph: NamedGraph,
    *,
    unlabeled: str | None = None,
    delimiter: str | None = None,
    classes: tuple[str, ...] | None = None,
) -> NodeLabels:
    """Read node labels: lines ``node,label``, or one label per line in node order.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input. Further columns are ignored, so the output of
        ``gdpa solve`` is accepted.
    graph : NamedGraph
        The graph.
    unlabeled : str, optional
        Marker of an unknown label, besides an empty cell, ``?`` and ``NA``. With labels -1 and
        +1, ``0`` is unknown too.
    delimiter : str, optional
        Delimiter; detected by default.
    classes : tuple of str, optional
        The classes, if already known; other labels raise an error.

    Returns
    -------
    NodeLabels
        The labels.

    Raises
    ------
    TableError
        If a node is not in the graph or is listed twice, or there are fewer than two classes.
    """
    source = Source(path)
    raw = source.read()
    name = source.name
    n = graph.W.shape[0]
    delimiter = delimiter or _detect_delimiter(raw)
    if delimiter.encode() in raw.strip():
        positions, values = _labels_by_name(raw, name, delimiter, graph)
    else:
        values = [line.strip() for line in decode_text(raw, name).splitlines()]
        if len(values) == n + 1 and values[0].lower() == "label":
            values = values[1:]
        while len(values) > n and not values[-1]:
            values.pop()
        if len(values) != n:
            raise TableError(
                f"{name} has {len(values)} lines but the graph has {n} nodes; give one label per "
                "line (empty if unknown), or lines node,label"
            )
        positions = list(range(n))
    marks = {"", "?", "NA", (unlabeled or "").strip()}
    values = [v if plain_number(v) is None else v.removeprefix("+") for v in values]
    pairs = zip(positions, values, strict=True)
    found = {place: value for place, value in pairs if value not in marks}
    different = set(found.values())
    if different <= {"-1", "0", "1"} and "-1" in different | set(classes or ()):
        different.discard("0")  # with labels -1 and 1, 0 means unknown
        classes = classes or ("-1", "1")
    if classes is None:
        if len(different) < 2:
            raise TableError(f"{name} has the classes {sorted(different)}; at least two are needed")
        classes = tuple(sorted(different))
    strangers = sorted(different - set(classes))
    if strangers:
        listed = ", ".join(map(repr, classes[:5])) + ("..." if len(classes) > 5 else "")
        raise TableError(f"{name} has the label {strangers[0]!r}; the classes are {listed}")
    number = {c: k for k, c in enumerate(classes)}
    codes = np.full(n, -1, dtype=np.int32)
    for place, value in found.items():
        codes[place] = number.get(value, -1)
    return NodeLabels(codes, classes)


def _labels_by_name(
    raw: bytes, name: str, delimiter: str, graph: NamedGraph
) -> tuple[list[int], list[str]]:
    """Return the positions of the listed nodes and their labels."""
    rows = _text_rows(raw, name, delimiter, (2, 3, 4, 5))
    if rows and rows[0][0].lower() in ("node", "id", "name") and rows[0][1].lower() == "label":
        rows = rows[1:]
    places = {str(node): i for i, node in enumerate(graph.nodes)}
    positions = []
    for row in rows:
        node = row[0] if row[0] in places else _unquoted(row[0])
        if node not in places:
            raise TableError(
                f"{name}: the graph has no node {node!r}; it has {len(places)} nodes, from "
                f"{graph.nodes[0]} to {graph.nodes[-1]}"
            )
        positions.append(places[node])
    times = np.bincount(positions, minlength=1)
    if times.max() > 1:
        raise TableError(f"{name} lists the node {graph.nodes[times.argmax()]} twice")
    return positions, [_unquoted(row[1]) for row in rows]


def read_values(path: str | Path, nodes: Sequence[str], accepted: Sequence[str]) -> list[str]:
    """Read the value of every node from lines ``node,value``, as ``gdpa solve`` writes them.

    Parameters
    ----------
    path : str or Path
        The file. Further columns are ignored.
    nodes : sequence of str
        Names of the nodes.
    accepted : sequence of str
        Accepted values; a plus sign before a number is optional.

    Returns
    -------
    list of str
        The value of each node, in the order of `nodes`.

    Raises
    ------
    TableError
        If a node has no value, two values or another value.
    """
    source = Source(path)
    raw = source.read()
    name = source.name
    rows = numbered_rows(raw, name, _detect_delimiter(raw), (2, 3, 4, 5))
    if rows and rows[0][1][0].lower() in ("node", "id", "name") and rows[0][1][0] not in nodes:
        rows = rows[1:]
    found: dict[str, str] = {}
    known = set(nodes)
    for line, (cell, value, *_) in rows:
        node = cell if cell in known else _unquoted(cell)
        if node in found:
            raise TableError(f"{name}, line {line}: the node {shorten(node)} is listed twice")
        found[node] = _unquoted(value).lstrip("+")
    missing = [node for node in nodes if node not in found]
    if missing:
        first = shorten(missing[0])
        raise TableError(f"{name} has no value for {len(missing)} nodes (the first: {first})")
    for node in nodes:
        if found[node] not in accepted:
            raise TableError(
                f"{name}: node {shorten(node)} has value {shorten(found[node])}; accepted: "
                f"{' and '.join(accepted)}"
            )
    return [found[node] for node in nodes]


def _unquoted(cell: str) -> str:
    """Strip the apostrophe that our CSV files put before cells a spreadsheet would execute."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@") else cell
