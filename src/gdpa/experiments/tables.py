"""Tables of results: the paper's value, ours and the difference; as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Table", "difference", "to_csv", "to_markdown"]

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """One table of the report.

    Parameters
    ----------
    name : str
        Name of its file, without ending.
    title : str
        What it shows, in a sentence.
    columns : tuple of str
        Head of the columns, units included.
    rows : tuple of tuples
        Cells; None where there is nothing.
    notes : tuple of str, default=()
        What a reader has to know.
    digits : int, default=2
        Digits after the point in Markdown and HTML; CSV has all.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: int = 2

    def __post_init__(self) -> None:
        """Check the width of the rows."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name!r} has {len(self.columns)} columns and a row of {len(row)}"
                )

    def text(self, cell: Cell) -> str:
        """Format one cell for a reader."""
        if cell is None:
            return "–"
        if isinstance(cell, float):
            small = cell != 0 and abs(cell) < 10.0**-self.digits
            return f"{cell:.3g}" if small or abs(cell) >= 1e6 else f"{cell:.{self.digits}f}"
        return str(cell)


def difference(ours: float | None, paper: float | None) -> float | None:
    """Ours minus the paper's, where both are there."""
    return None if ours is None or paper is None else ours - paper


def to_csv(table: Table) -> str:
    """Write a table as CSV.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    str
        CSV with a header; empty cells where there is nothing.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(["" if c is None else repr(c) if isinstance(c, float) else c for c in row])
    return stream.getvalue()


def to_markdown(tables: Sequence[Table], *, level: int = 2, stamp: str = "") -> str:
    """Write tables as Markdown.

    Parameters
    ----------
    tables : sequence of Table
        The tables.
    level : int, default=2
        Level of their headings.
    stamp : str, default=""
        Where the numbers come from; stands under every table.

    Returns
    -------
    str
        One section per table.
    """
    parts = []
    for table in tables:
        numeric = [
            any(isinstance(row[i], int | float) for row in table.rows)
            for i in range(len(table.columns))
        ]
        lines = [f"{'#' * level} {table.title}", ""]
        lines.append("| " + " | ".join(_cell(c) for c in table.columns) + " |")
        lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        lines += ["| " + " | ".join(_cell(table.text(c)) for c in row) + " |" for row in table.rows]
        if table.notes:
            lines += ["", *(f"- {note}" for note in table.notes)]
        if stamp:
            lines += ["", f"*{stamp}*"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
