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
    from scipy.io import mmread

    _check_header(raw, name)
    try:
        W = mmread(io.BytesIO(raw))
    except Exception as error:
        raise TableError(f"{name} is not a readable Matrix Market file: {error}") from error
    if np.iscomplexobj(W.data if sp.issparse(W) else W):
        raise TableError(f"{name} has complex entries; weights are real numbers")
    W = check_adjacency(sp.csr_array(W), name="the matrix")
    return NamedGraph(W, np.arange(1, W.shape[0] + 1))


def _check_header(raw: bytes, name: str) -> None:
    """Compare what a Matrix Market file declares with what it has, and with the memory."""
    banner, *rest = raw.split(b"\n", 1)
    words = banner.lower().split()
    start = 0
    body = rest[0] if rest else b""
    while body.startswith(b"%", start) or body[start : start + 1] in (b"\n", b"\r"):
        start = body.find(b"\n", start) + 1
        if start == 0:
            return  # comments only: the reader says so
    line, _, entries = body[start:].partition(b"\n")
    try:
        sizes = [int(word) for word in line.split()]
    except ValueError:
        return  # the reader names the line
    if len(words) < 3 or len(sizes) < 2:
        return
    rows, columns = sizes[:2]
    declared = rows * columns if words[2] == b"array" else (sizes[2] if len(sizes) > 2 else 0)
    if words[2] == b"array" and b"general" not in words:
        declared //= 2  # one triangle only
    # An entry takes a digit and an end of line at least.
    if declared > len(entries) // 2 + 1:
        raise TableError(
            f"{name} declares {declared} entries and has room for {len(entries) // 2} at most"
        )
    check_memory(
        _BYTES_PER_NODE * max(rows, columns) + _BYTES_PER_ENTRY * declared,
        f"{name} with {rows} nodes",
        "a smaller graph is needed",
    )


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
