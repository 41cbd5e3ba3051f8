"""Edge lists: text files with two ends a line, and maybe a weight."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .table import TableError
from .text_file import decode_text

__all__ = ["EdgeList", "delimiter_of", "edge_list", "is_number", "text_rows"]

HEADERS = ("source", "target", "from", "to", "node", "u", "v", "i", "j", "src", "dst", "head")


@dataclass(frozen=True)
class EdgeList:
    """Edges as they are written.

    Parameters
    ----------
    ends : ndarray of str of shape (n_edges, 2)
        Names of the ends.
    weights : ndarray of shape (n_edges,) or None
        Weights, where the file has them.
    header : tuple of str
        The first line, where it is none of the edges.
    """

    ends: NDArray[np.str_]
    weights: NDArray[np.float64] | None
    header: tuple[str, ...] = ()


def delimiter_of(raw: bytes) -> str:
    """What stands between the cells of a list, by its first line: a blank means white space.

    Parameters
    ----------
    raw : bytes
        The file.

    Returns
    -------
    str
        A comma, a tab, a semicolon or a blank; a comma where a line has one cell.
    """
    for line in raw[:65536].decode("utf-8-sig", errors="replace").splitlines():
        text = line.strip()
        if text and not text.startswith(("#", "%")):
            return next((d for d in (",", "\t", ";", " ") if d in text), ",")
    return ","


def text_rows(raw: bytes, name: str, delimiter: str, widths: tuple[int, ...]) -> list[list[str]]:
    """Cells of a small text table without a fixed header; a blank stands for white space."""
    if len(delimiter) != 1:
        raise TableError(f"delimiter={delimiter!r} must be one character")
    lines = io.StringIO(decode_text(raw, name), newline="")
    if delimiter == " ":
        blanks = (" ".join(line.split()) for line in lines)
        reader = csv.reader(blanks, delimiter=" ")
    else:
        reader = csv.reader(lines, delimiter=delimiter)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row or row[0].lstrip().startswith(("#", "%")):
                continue
            if len(row) not in widths or (rows and len(row) != len(rows[0])):
                wanted = str(len(rows[0])) if rows else " or ".join(map(str, widths))
                raise TableError(
                    f"{name}, line {reader.line_num}: {len(row)} cells where {wanted} are expected"
                )
            rows.append([cell.strip() for cell in row])
    except csv.Error as error:
        raise TableError(f"{name}, line {reader.line_num}: {error}") from error
    return rows


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def edge_list(
    raw: bytes, name: str, delimiter: str | None = None, known: frozenset[str] | None = None
) -> EdgeList:
    """Read lines of two ends and, all or none of them, a weight.

    Parameters
    ----------
    raw : bytes
        The file.
    name : str
        Its name, for messages.
    delimiter : str, optional
        Between the cells; found by looking by default.
    known : frozenset of str, optional
        Names that nodes have. A first line of two other names that are no numbers is a header;
        without them it is one by its words.

    Returns
    -------
    EdgeList
        The edges.

    Raises
    ------
    TableError
        If a line has another number of cells, or a weight is no number, or there is no edge.
    """
    rows = text_rows(raw, name, delimiter or delimiter_of(raw), (2, 3))
    header: tuple[str, ...] = ()
    if rows and _is_header(rows[0], known):
        header = tuple(rows[0])
        rows = rows[1:]
    if not rows:
        raise TableError(f"{name} has no edges")
    columns = list(zip(*rows, strict=True))
    weights = None
    if len(columns) == 3:
        try:
            weights = np.array(columns[2], dtype=np.float64)
        except ValueError:
            k = next(k for k, cell in enumerate(columns[2]) if not is_number(cell))
            raise TableError(
                f"{name}, edge {k + 1}: weight {columns[2][k]!r} is not a number"
            ) from None
    return EdgeList(np.array([columns[0], columns[1]]).T, weights, header)


def _is_header(cells: list[str], known: frozenset[str] | None) -> bool:
    if (len(cells) == 3 and not is_number(cells[2])) or cells[0].lower() in HEADERS:
        return known is None or not any(cell in known for cell in cells[:2])
    return known is not None and not any(cell in known or is_number(cell) for cell in cells[:2])
