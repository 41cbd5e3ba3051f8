"""Read the couplings of maximum cuts, QUBOs and Ising models from files.

Formats: ``rudy`` (Gset and the sparse files of Biq Mac: a header ``nodes edges``, then
``i j weight`` with nodes numbered from 1), ``qubo`` (qbsolv: ``p qubo 0 nodes diagonals couplers``,
then ``i j value`` with nodes numbered from 0), ``mtx`` (Matrix Market) and ``edges``
(``name name weight`` with any names). A file may be compressed, for example as .gz.

In an edge list, an edge that is listed more than once, in either direction, counts once; different
weights are an error. All readers of edge lists share this rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import check_choice
from ..graph.convert import merge_edges
from ..tables.cell_formats import plain_number
from ..tables.source import Source
from ..tables.table import TableError, errors_as_table_error
from .graphs import decode_text, parse_edge_list, parse_matrix_market, wrong_weight

COUPLING_FORMATS = ("rudy", "qubo", "mtx", "edges")
PROBLEMS = ("max-cut", "qubo", "ising")
_ACCEPTED = f"accepted: {', '.join(COUPLING_FORMATS)}"


@dataclass(frozen=True, eq=False)
class Couplings:
    """Couplings, fields and node names, as the file gives them.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
        Symmetric weights of a cut or an Ising model; for a QUBO, the matrix Q of u'Qu.
    fields : ndarray of shape (n,)
        Linear terms of an Ising model; zero otherwise.
    names : sequence of str
        Names of the nodes.
    """

    matrix: sp.csr_array
    fields: NDArray[np.float64]
    names: Sequence[str]


def read_couplings(
    path: str | Path, problem: str, *, format: str | None = None, delimiter: str | None = None
) -> Couplings:
    """Read the couplings of a binary quadratic problem.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input.
    problem : {"max-cut", "qubo", "ising"}
        What the numbers mean. In a ``rudy`` file of a QUBO, an off-diagonal entry stands for both
        entries of a symmetric matrix and counts twice; in ``qubo`` and ``edges`` files it counts
        once.
    format : {"rudy", "qubo", "mtx", "edges"}, optional
        Detected from the file extension and the first lines by default.
    delimiter : str, optional
        Delimiter of an edge list; detected by default.

    Returns
    -------
    Couplings
        Matrix, fields and names.

    Raises
    ------
    TableError
        If the file is missing, empty or broken; the message names the line or the nodes.
    """
    check_choice("problem", problem, PROBLEMS)
    source = Source(path)
    raw = source.read()
    name = source.name
    text = decode_text(raw, name)
    if not text.strip():
        raise TableError(f"{name} is empty")
    rows = (line.replace(",", " ").replace(";", " ").split() for line in text.splitlines())
    lines = [(i, cells) for i, cells in enumerate(rows, 1) if cells and cells[0][0] not in "#%"]
    if not lines:
        raise TableError(f"{name} has no line with numbers")
    kind = format or _detect_format(text, lines[0][1], lines[:2][-1][1], source)
    if kind not in COUPLING_FORMATS:
        raise TableError(f"format={kind!r} of {name} is not known; {_ACCEPTED}")
    if kind == "mtx":
        return _from_matrix_market(raw, name, problem)
    if kind == "edges":
        i, j, weights, names = _parse_edges(raw, name, delimiter)
    else:
        i, j, weights, names = _PARSERS[kind](lines, name)
    with errors_as_table_error(name, ValueError):
        i, j, weights = _merged(i, j, weights, names, kind, problem)
    n = len(names)
    loop = i == j
    fields = np.bincount(i[loop], weights=weights[loop], minlength=n).astype(np.float64)
    off = sp.coo_array((weights[~loop], (i[~loop], j[~loop])), shape=(n, n)).tocsr()
    if problem == "qubo":
        Q = (off + off.T if kind == "rudy" else off) + sp.diags_array(fields)
        return Couplings(sp.csr_array(Q), np.zeros(n), names)
    return Couplings(sp.csr_array(off + off.T), fields, names)


def _detect_format(text: str, first: list[str], second: list[str], source: Source) -> str:
    """Return the format, from the file extension and the first two lines."""
    if text.startswith("%%MatrixMarket") or source.suffix == ".mtx":
        return "mtx"
    if source.suffix == ".qubo" or "\np qubo" in f"\n{text[:4000]}":
        return "qubo"
    if source.suffix in (".csv", ".tsv"):
        return "edges"
    header = len(first) == 2 and all(map(str.isdecimal, first))
    if header and (second is first or len(second) == 3 or source.suffix in (".mc", ".rud")):
        return "rudy"
    if len(first) in (2, 3):
        return "edges"
    raise TableError(
        f"{source.name}: the format of the first line {' '.join(first)[:60]!r} is not known; "
        f"{_ACCEPTED}"
    )


Lines = list[tuple[int, list[str]]]
Parsed = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64], Sequence[str]]


def _parse_weights(lines: Lines, name: str) -> NDArray[np.float64]:
    """Return the weights of lines ``node node weight``; a missing weight is 1."""
    weights = []
    for number, cells in lines:
        if len(cells) not in (2, 3):
            raise TableError(f"{name}, line {number}: {len(cells)} cells, expected 2 or 3")
        weight = plain_number(cells[2]) if len(cells) == 3 else 1.0
        if weight is None or not np.isfinite(weight):
            raise wrong_weight(name, number, cells)
        weights.append(weight)
    return np.array(weights, dtype=np.float64)


def _parse_numbered(lines: Lines, name: str, first: int, n: int) -> Parsed:
    """Parse lines ``i j weight`` with nodes numbered from `first`."""
    if n > 100 * len(lines) + 100_000:
        raise TableError(f"{name} declares {n} nodes but has only {len(lines)} entries")
    weights = _parse_weights(lines, name)
    names = [str(k + first) for k in range(n)]
    ends = np.empty((len(lines), 2), dtype=np.intp)
    for k, (number, (a, b, *_)) in enumerate(lines):
        if not all(c.isdecimal() and len(c) < 19 and first <= int(c) < n + first for c in (a, b)):
            reason = f"nodes {a} and {b}; nodes are numbered from {first} to {n + first - 1}"
            raise TableError(f"{name}, line {number}: {reason}")
        ends[k] = int(a) - first, int(b) - first
    return ends[:, 0], ends[:, 1], weights, names


def _parse_rudy(lines: Lines, name: str) -> Parsed:
    """Parse a Gset or Biq Mac file."""
    header = lines[0][1]
    if len(header) != 2 or not all(map(str.isdecimal, header)):
        raise TableError(f"{name}: the first line must be 'nodes edges', got {' '.join(header)!r}")
    n, m = map(int, header)
    if len(lines) - 1 != m:
        raise TableError(
            f"{name}: the header promises {m} edges, but {len(lines) - 1} lines follow"
        )
    return _parse_numbered(lines[1:], name, 1, n)


def _parse_qubo(lines: Lines, name: str) -> Parsed:
    """Parse a qbsolv file."""
    lines = [line for line in lines if line[1][0] != "c"]
    header = lines[0][1] if lines else []
    sizes = [int(cell) for cell in header[3:] if cell.isdecimal()]
    if header[:2] != ["p", "qubo"] or len(header) != 6 or len(sizes) != 3:
        raise TableError(
            f"{name}: the first line must be 'p qubo 0 nodes diagonals couplers', got "
            f"{' '.join(header)[:60]!r}"
        )
    parsed = _parse_numbered(lines[1:], name, 0, sizes[0])
    linear = int(np.count_nonzero(parsed[0] == parsed[1]))
    if [linear, parsed[0].size - linear] != sizes[1:]:
        raise TableError(
            f"{name}: the header promises {sizes[1]} diagonals and {sizes[2]} couplers; there are "
            f"{linear} and {parsed[0].size - linear}"
        )
    return parsed


def _parse_edges(raw: bytes, name: str, delimiter: str | None) -> Parsed:
    """Parse a list of edges between named nodes."""
    listed = parse_edge_list(raw, name, delimiter)
    index: dict[str, int] = {}
    places = [index.setdefault(cell, len(index)) for cell in listed.ends.ravel().tolist()]
    i, j = np.array(places, dtype=np.intp).reshape(-1, 2).T
    return i, j, listed.weights, list(index)


def _merged(
    i: NDArray[np.intp],
    j: NDArray[np.intp],
    weights: NDArray[np.float64],
    names: Sequence[str],
    kind: str,
    problem: str,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Merge edges that are listed more than once, as in every edge list.

    The lines of a QUBO are terms of a sum. A repeated term in an edge list could be meant once or
    twice, so it is refused. The format ``qubo`` says that terms are added.
    """
    if problem == "qubo" and kind == "qubo":
        return i, j, weights
    label = np.array(names, dtype=object)
    low = np.minimum(i, j)
    high = np.maximum(i, j)
    rule = "error" if problem == "qubo" else "same"
    low, high, weights = merge_edges(low, high, weights, rule, names=(label[i], label[j]))
    return low.astype(np.intp), high.astype(np.intp), weights


_PARSERS = {"rudy": _parse_rudy, "qubo": _parse_qubo}


def _from_matrix_market(raw: bytes, name: str, problem: str) -> Couplings:
    """Return the couplings of a Matrix Market file; errors number rows and columns from 1."""
    matrix = parse_matrix_market(raw, name)
    entries = matrix.tocoo()
    bad = np.flatnonzero(~np.isfinite(entries.data))
    reason = "is not a finite number"
    if not bad.size and problem != "qubo":
        entries = (matrix - matrix.T).tocoo()
        bad = np.flatnonzero(entries.data)
        reason = "differs from its mirror image"
    if bad.size:
        i, j = (int(ends[bad[0]]) + 1 for ends in entries.coords)
        raise TableError(f"{name}: the entry in row {i} and column {j} {reason}")
    fields = matrix.diagonal() if problem == "ising" else np.zeros(matrix.shape[0])
    if problem == "ising":
        matrix = sp.csr_array(matrix - sp.diags_array(fields))
        matrix.eliminate_zeros()
    return Couplings(matrix, fields, [str(k + 1) for k in range(matrix.shape[0])])
