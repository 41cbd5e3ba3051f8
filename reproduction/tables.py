"""Tables of results: the paper's value, ours and the difference; as CSV and Markdown.

Titles, column headings and notes are in ``tables.toml``.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

Cell = str | int | float | None
WORDS = tomllib.loads((files(__package__) / "tables.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Table:
    """One table of the report.

    Parameters
    ----------
    name : str
        Name of its file, without extension.
    title : str
        What it shows, in a sentence.
    columns : tuple of str
        Column headings, including units.
    rows : sequence of tuples
        Cells; None where there is nothing.
    notes : tuple of str, default=()
        What a reader has to know.
    digits : int, default=2
        Decimals in Markdown; CSV has all.
    beside : bool, default=False
        Whether it stands in a file beside the page of the documents, not on it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[str, ...] = ()
    digits: int = 2
    beside: bool = False

    def __post_init__(self) -> None:
        """Check the width of the rows."""
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name!r} needs {len(self.columns)} cells in every row")

    def to_csv(self) -> str:
        """Return CSV with a header; empty cells where there is nothing."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return stream.getvalue()

    def to_markdown(self, stamp: str = "") -> str:
        """Return a section with the table, its notes and `stamp`, the origin of the numbers."""
        columns = list(zip(*self.rows, strict=True))
        right = [any(isinstance(cell, int | float) for cell in column) for column in columns]
        lines = [f"### {self.title}", "", _line(self.columns)]
        lines.append("|" + "|".join("---:" if numeric else "---" for numeric in right) + "|")
        lines += [_line([self._text(cell) for cell in row]) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        if stamp:
            lines += ["", f"*{stamp}*"]
        return "\n".join(lines) + "\n"

    def _text(self, cell: Cell) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, float):
            small = cell != 0 and abs(cell) < 10.0**-self.digits
            return f"{cell:.3g}" if small or abs(cell) >= 1e6 else f"{cell:.{self.digits}f}"
        return str(cell)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def make_table(
    key: str,
    rows: Sequence[tuple[Cell, ...]],
    columns: Sequence[str] = (),
    *,
    name: str | None = None,
    **words: object,
) -> Table:
    """Return a table with the words that ``tables.toml`` has for it.

    Parameters
    ----------
    key : str
        Section of ``tables.toml``.
    rows : sequence of tuples
        Cells.
    columns : sequence of str
        Headings after those of the section.
    name : str, optional
        Name of its file; `key` by default.
    **words
        What the braces in title and notes stand for.

    Returns
    -------
    Table
        The table.
    """
    text = WORDS[key]
    return Table(
        name or key,
        text["title"].format(**words),
        (*text["columns"], *columns),
        rows,
        tuple(note.format(**words) for note in text.get("notes", ())),
        text.get("digits", 2),
        text.get("beside", False),
    )


def difference(ours: float | None, paper: float | None) -> float | None:
    """Return ours minus the paper's, if both exist."""
    return None if ours is None or paper is None else ours - paper
