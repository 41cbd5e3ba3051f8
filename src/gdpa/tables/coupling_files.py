"""Read the couplings of maximum cuts, QUBOs and Ising models from files.

Formats: ``rudy`` (Gset, and Biq Mac's sparse files: a header ``nodes edges``, then ``i j weight``
counted from 1), ``qubo`` (qbsolv: ``p qubo 0 nodes diagonals couplers``, then ``i j value`` counted
from 0), ``mtx`` (Matrix Market) and ``edges`` (``name name weight`` with any names). A file may be
compressed with gzip.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from ..graph.memory import check_memory
from .graph_files import parse_matrix_market
from .source import open_file
from .table import TableError

COUPLING_FORMATS = ("rudy", "qubo", "mtx", "edges")
PROBLEMS = ("max-cut", "qubo", "ising")


@dataclass(frozen=True, eq=False)
class Couplings:
    """Couplings, fields, and the names of the nodes as the file has them.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
        Symmetric weights of a cut or of an Ising model, each pair once; of a QUBO the Q of u'Qu.
    fields : ndarray of shape (n,)
        Linear terms of an Ising model; zero otherwise.
    names : sequence of str
        Names of the nodes.
    """

    matrix: sp.csr_array
    fields: NDArray[np.float64]
    names: Sequence[str]


def read_couplings(path: str | Path, problem: str, *, format: str | None = None) -> Couplings:
    """Read the couplings of a binary quadratic problem.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input.
    problem : {"max-cut", "qubo", "ising"}
        What the numbers mean. In a ``rudy`` file of a QUBO an off-diagonal entry is one of a
        symmetric matrix and counts twice; in ``qubo`` and ``edges`` files it counts once.
    format : {"rudy", "qubo", "mtx", "edges"}, optional
        Detected from the file extension and the first lines by default.

    Returns
    -------
    Couplings
        Matrix, fields and names.

    Raises
    ------
    TableError
        If the file is missing, empty or broken; the message names the line or the nodes.
    """
    if problem not in PROBLEMS:
        raise ValueError(
            f"problem={problem!r} is not known; {nearest_name(problem, list(PROBLEMS))}"
        )
    name = "standard input" if str(path) == "-" else str(path)
    with open_file(path, name) as stream:
        raw = stream.read()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} is not a readable gzip file: {error}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{name} is not a text file; {_accepted()}") from None
    if not text.strip():
        raise TableError(f"{name} is empty")
    rows = (line.replace(",", " ").replace(";", " ").split() for line in text.splitlines())
    lines = [(i, cells) for i, cells in enumerate(rows, 1) if cells and cells[0][0] not in "#%"]
    if not lines:
        raise TableError(f"{name} has no line with numbers")
    kind = format or _detect(text, [cells for _, cells in lines[:2]], str(path))
    if kind not in COUPLING_FORMATS:
        raise TableError(f"format={kind!r} of {name} is not known; {_accepted()}")
    if kind == "mtx":
        return _matrix_market(raw, name, problem)
    i, j, w, names = _PARSERS[kind](lines, name)
    return _assembled(i, j, w, names, problem, twice=kind == "rudy")


def _accepted() -> str:
    return f"accepted: {', '.join(COUPLING_FORMATS)}"


def _detect(text: str, head: list[list[str]], path: str) -> str:
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() != ".gz"]
    if text.startswith("%%MatrixMarket") or suffixes[-1:] == [".mtx"]:
        return "mtx"
    if suffixes[-1:] == [".qubo"] or "\np qubo" in f"\n{text[:4000]}":
        return "qubo"
    if suffixes[-1:] in ([".csv"], [".tsv"]):
        return "edges"
    whole = len(head[0]) == 2 and all(part.isdecimal() for part in head[0])
    if whole and (len(head) == 1 or len(head[1]) == 3 or suffixes[-1:] in ([".mc"], [".rud"])):
        return "rudy"
    if len(head[0]) in (2, 3):
        return "edges"
    raise TableError(
        f"{path}: the first line {' '.join(head[0])[:60]!r} is of no format that can be read; "
        f"{_accepted()}"
    )


Lines = list[tuple[int, list[str]]]
Parsed = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64], Sequence[str]]


def _numbers(lines: Lines, name: str, first: int, n: int) -> Parsed:
    """Lines ``i j weight`` with nodes that are counted from `first`."""
    check_memory(200.0 * n, f"{name} with {n} nodes", "a smaller problem is needed")
    weighted = [[*cells, "1"] if len(cells) == 2 else cells for _, cells in lines]
    try:
        table = np.array(weighted or np.empty((0, 3)), dtype=np.float64)
        if table.shape[1:] != (3,):
            raise ValueError("rows of other lengths")
    except ValueError:
        number, cells = next(
            (number, cells)
            for number, cells in lines
            if len(cells) not in (2, 3) or not all(map(_is_number, cells))
        )
        raise TableError(
            f"{name}, line {number}: {' '.join(cells)[:60]!r} is not 'node node weight'"
        ) from None
    ends = table[:, :2]
    wrong = np.flatnonzero(
        ((ends < first) | (ends >= n + first) | (ends != np.floor(ends))).any(axis=1)
    )
    if wrong.size:
        number, cells = lines[int(wrong[0])]
        raise TableError(
            f"{name}, line {number}: nodes {cells[0]} and {cells[1]}; nodes go from {first} to "
            f"{n + first - 1}"
        )
    bad = np.flatnonzero(~np.isfinite(table[:, 2]))
    if bad.size:
        number, cells = lines[int(bad[0])]
        raise TableError(
            f"{name}, line {number}: the weight between {cells[0]} and {cells[1]} is {cells[2]}; "
            "weights must be finite numbers"
        )
    rows = ends.astype(np.intp) - first
    return rows[:, 0], rows[:, 1], table[:, 2], [str(k + first) for k in range(n)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _rudy(lines: Lines, name: str) -> Parsed:
    header = lines[0][1]
    if len(header) != 2 or not all(cell.isdecimal() for cell in header):
        raise TableError(f"{name}: the first line must be 'nodes edges', got {' '.join(header)!r}")
    n, m = int(header[0]), int(header[1])
    if len(lines) - 1 != m:
        raise TableError(f"{name}: the header promises {m} edges and {len(lines) - 1} lines follow")
    return _numbers(lines[1:], name, 1, n)


def _qubo(lines: Lines, name: str) -> Parsed:
    lines = [line for line in lines if line[1][0] != "c"]
    header = lines[0][1] if lines else []
    if (
        header[:2] != ["p", "qubo"]
        or len(header) != 6
        or not all(c.isdecimal() for c in header[3:])
    ):
        raise TableError(
            f"{name}: the first line must be 'p qubo 0 nodes diagonals couplers', got "
            f"{' '.join(header)[:60]!r}"
        )
    n, diagonals, couplers = (int(cell) for cell in header[3:])
    parsed = _numbers(lines[1:], name, 0, n)
    linear = int(np.count_nonzero(parsed[0] == parsed[1]))
    if (linear, parsed[0].size - linear) != (diagonals, couplers):
        raise TableError(
            f"{name}: the header promises {diagonals} diagonals and {couplers} couplers; there "
            f"are {linear} and {parsed[0].size - linear}"
        )
    return parsed


def _edges(lines: Lines, name: str) -> Parsed:
    first = lines[0][1]
    if len(first) == 3 and not _is_number(first[2]):
        lines = lines[1:]  # names of the columns
    index: dict[str, int] = {}
    ends, weights = [], []
    for number, cells in lines:
        if len(cells) not in (2, 3) or (len(cells) == 3 and not _is_number(cells[2])):
            raise TableError(
                f"{name}, line {number}: {' '.join(cells)[:60]!r} is not 'node node weight'"
            )
        weight = float(cells[2]) if len(cells) == 3 else 1.0
        if not np.isfinite(weight):
            raise TableError(
                f"{name}, line {number}: the weight between {cells[0]} and {cells[1]} is "
                f"{cells[2]}; weights must be finite numbers"
            )
        ends.append([index.setdefault(cell, len(index)) for cell in cells[:2]])
        weights.append(weight)
    rows = np.array(ends, dtype=np.intp).reshape(-1, 2)
    return rows[:, 0], rows[:, 1], np.array(weights, dtype=np.float64), list(index)


_PARSERS = {"rudy": _rudy, "qubo": _qubo, "edges": _edges}


def _assembled(
    i: NDArray[np.intp],
    j: NDArray[np.intp],
    w: NDArray[np.float64],
    names: Sequence[str],
    problem: str,
    *,
    twice: bool,
) -> Couplings:
    n = len(names)
    loop = i == j
    fields = np.bincount(i[loop], weights=w[loop], minlength=n)
    off = sp.coo_array((w[~loop], (i[~loop], j[~loop])), shape=(n, n)).tocsr()
    if problem == "qubo":
        Q = (off + off.T if twice else off) + sp.diags_array(fields)
        return Couplings(sp.csr_array(Q), np.zeros(n), names)
    return Couplings(sp.csr_array(off + off.T), fields.astype(np.float64), names)


def _matrix_market(raw: bytes, name: str, problem: str) -> Couplings:
    matrix = parse_matrix_market(raw, name)
    n = matrix.shape[0]
    fields = np.zeros(n)
    if problem == "ising" and matrix.shape[0] == matrix.shape[1]:
        fields = matrix.diagonal()
        matrix = sp.csr_array(matrix - sp.diags_array(fields))
        matrix.eliminate_zeros()
    _check_matrix(matrix, name, symmetric=problem != "qubo")
    return Couplings(matrix, fields, [str(k + 1) for k in range(n)])


def _check_matrix(matrix: sp.csr_array, name: str, *, symmetric: bool) -> None:
    """Name what is wrong by rows and columns counted from 1, as the file does."""
    if matrix.shape[0] != matrix.shape[1]:
        raise TableError(f"{name} has {matrix.shape[0]} rows and {matrix.shape[1]} columns")
    entries = matrix.tocoo()
    bad = np.flatnonzero(~np.isfinite(entries.data))
    what = "is not a finite number"
    if not bad.size and symmetric:
        entries = (matrix - matrix.T).tocoo()
        bad, what = np.flatnonzero(entries.data), "differs from its mirror image"
    if bad.size:
        i, j = (int(ends[bad[0]]) + 1 for ends in entries.coords)
        raise TableError(f"{name}: the entry in row {i} and column {j} {what}")
