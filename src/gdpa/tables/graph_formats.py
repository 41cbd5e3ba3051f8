"""Graph formats with a header: Matrix Market and GraphML, checked before they are trusted.

A header of a few bytes can declare more nodes than there is memory, a document type can define text
that grows without end: both are refused before anything is allocated or expanded.
"""

from __future__ import annotations

import io
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import check_adjacency
from ..graph.convert import NamedGraph, from_edges
from ..graph.memory import check_memory
from .table import TableError

__all__ = ["read_graphml", "read_matrix_market"]

# The matrix as read, its symmetric copy and the arrays of the checks.
_BYTES_PER_NODE, _BYTES_PER_ENTRY = 64, 64


def read_matrix_market(raw: bytes, name: str) -> NamedGraph:
    """Read a Matrix Market file; nodes are called by their number, from 1.

    Parameters
    ----------
    raw : bytes
        Content of the file.
    name : str
        Its name, for messages.

    Returns
    -------
    NamedGraph
        The graph.
    """
    # Not by SciPy's reader: a damaged file can crash it.
    words, sizes, body = _header(raw, name)
    dense, symmetric = words[2] == "array", words[4] == "symmetric"
    n = sizes[0]
    if sizes[1] != n or n < 1:
        raise TableError(f"{name} has shape {tuple(sizes[:2])}; a graph is a square matrix")
    width = 1 if dense else (2 if words[3] == "pattern" else 3)
    count = sizes[2] if not dense else (n * (n + 1) // 2 if symmetric else n * n)
    # An entry takes a digit and an end of line at least.
    if count > len(body) // 2 + 1:
        raise TableError(f"{name} declares {count} entries and has room for {len(body) // 2}")
    check_memory(
        _BYTES_PER_NODE * n + _BYTES_PER_ENTRY * count,
        f"{name} with {n} nodes",
        "a smaller graph is needed",
    )
    cells = _cells(body, width, name)
    if len(cells) != count:
        raise TableError(f"{name} declares {count} entries and has {len(cells)}")
    if dense:
        # Column by column; of a symmetric matrix what is on and below the diagonal.
        column, row = np.triu_indices(n) if symmetric else np.divmod(np.arange(n * n), n)
    else:
        ends = cells[:, :2]
        if ends.size and not (np.rint(ends) == ends).all():
            raise TableError(f"{name} has an entry whose row or column is no whole number")
        if ends.size and (ends.min() < 1 or ends.max() > n):
            raise TableError(f"{name} has an entry outside its {n} rows and columns")
        row, column = ends.T.astype(np.int64) - 1
    values = np.ones(count) if words[3] == "pattern" else cells[:, -1]
    if symmetric:
        off = row != column
        row, column, values = (
            np.concatenate(pair)
            for pair in ((row, column[off]), (column, row[off]), (values, values[off]))
        )
    W = check_adjacency(sp.csr_array((values, (row, column)), shape=(n, n)), name="the matrix")
    return NamedGraph(W, np.arange(1, n + 1))


def _header(raw: bytes, name: str) -> tuple[list[str], list[int], bytes]:
    """Words of the banner, sizes, and what follows them."""
    banner, _, body = raw.partition(b"\n")
    words = banner.decode("ascii", "replace").lower().split()
    accepted = (
        ("%%matrixmarket",),
        ("matrix",),
        ("coordinate", "array"),
        ("real", "integer", "pattern", "double"),
        ("general", "symmetric"),
    )
    if len(words) != 5 or any(w not in known for w, known in zip(words, accepted, strict=True)):
        raise TableError(
            f"{name} is not a readable Matrix Market file of real numbers; it does not begin with "
            "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric"
        )
    while body:
        line, _, body = body.partition(b"\n")
        if not line.strip() or line.startswith(b"%"):
            continue
        try:
            sizes = [int(word) for word in line.split()]
        except ValueError:
            break
        if len(sizes) == (2 if words[2] == "array" else 3) and min(sizes) >= 0:
            return words, sizes, body
        break
    raise TableError(f"{name} has no line with its numbers of rows, columns and entries")


def _cells(body: bytes, width: int, name: str) -> NDArray[np.float64]:
    if not body.strip():
        return np.empty((0, width))
    try:
        cells = np.loadtxt(io.BytesIO(body), dtype=np.float64, comments="%", ndmin=2)
    except (ValueError, OverflowError) as error:
        raise TableError(f"{name} is not a readable Matrix Market file: {error}") from error
    if cells.shape[1] != width:
        raise TableError(f"{name} has {cells.shape[1]} numbers per entry where {width} are due")
    return cells


def _has_document_type(raw: bytes) -> bool:
    """Ask the parser itself, which knows the encoding: entities are declared nowhere else."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = lambda name, *_: found.append(name)
    parser.EntityDeclHandler = lambda name, *_: found.append(name)
    for start in range(0, len(raw), 1 << 16):
        parser.Parse(raw[start : start + (1 << 16)], False)
        if found:
            return True
    parser.Parse(b"", True)
    return bool(found)


def read_graphml(raw: bytes, name: str) -> NamedGraph:
    """Read an undirected GraphML file; weights are the edges' data called ``weight``.

    Parameters
    ----------
    raw : bytes
        Content of the file.
    name : str
        Its name, for messages.

    Returns
    -------
    NamedGraph
        The graph.
    """
    try:
        if _has_document_type(raw):
            raise TableError(f"{name} has a document type; GraphML files need none")
        root = ElementTree.fromstring(raw)
    except (ElementTree.ParseError, expat.ExpatError, LookupError) as error:
        raise TableError(f"{name} is not readable XML: {error}") from error

    def local(element: ElementTree.Element) -> str:
        return element.tag.rpartition("}")[2]

    keys = {
        e.get("id"): e
        for e in root.iter()
        if local(e) == "key" and e.get("for") in ("edge", "all") and e.get("attr.name") == "weight"
    }
    graph = next((e for e in root.iter() if local(e) == "graph"), None)
    if graph is None:
        raise TableError(f"{name} has no graph element")
    if graph.get("edgedefault") == "directed" or any(
        e.get("directed") == "true" for e in graph if local(e) == "edge"
    ):
        raise TableError(f"{name} is a directed graph; an undirected one is needed")
    nodes = [str(e.get("id")) for e in graph.iter() if local(e) == "node"]
    number = {node: i for i, node in enumerate(nodes)}
    if len(number) != len(nodes) or not nodes:
        raise TableError(f"{name} has no nodes" if not nodes else f"{name} names a node twice")
    ends: list[tuple[int, int]] = []
    weights: list[float] = []
    for edge in (e for e in graph.iter() if local(e) == "edge"):
        pair = (edge.get("source"), edge.get("target"))
        if pair[0] not in number or pair[1] not in number:
            raise TableError(f"{name}: the edge {pair} has an end that is no node")
        ends.append((number[str(pair[0])], number[str(pair[1])]))
        values = [e.text for e in edge if local(e) == "data" and e.get("key") in keys]
        try:
            weights.append(float(values[0] or "") if values else 1.0)
        except ValueError:
            raise TableError(f"{name}: the edge {pair} has weight {values[0]!r}") from None
    array = np.array(ends, dtype=np.int64).reshape(-1, 2)
    built = from_edges(array, np.array(weights), n_nodes=len(nodes), duplicates="sum")
    return NamedGraph(built.W, np.array(nodes, dtype=object))
