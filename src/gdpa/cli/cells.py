"""Rows that the commands put out: as CSV, in the JSON document, the first ones on a terminal."""

from __future__ import annotations

import csv
import io
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from .files import OutputFiles
from .output import Output

__all__ = ["put_rows", "yes_no"]


def yes_no(flags: NDArray[np.bool_]) -> list[str]:
    """Flags as words."""
    return ["yes" if flag else "no" for flag in flags]


def put_rows(
    output: Output,
    files: OutputFiles,
    header: list[str],
    columns: list[Any],
    *,
    out: str | None,
    only: bool,
    raw: bool,
) -> None:
    """Put rows where they were asked for: a file, stdout, the JSON document, or the terminal.

    Parameters
    ----------
    output, files
        Of the command.
    header, columns
        The rows: names, and cells (text, numbers, or arrays of flags, which become yes and no).
    out : str or None
        What ``--out`` says.
    only : bool
        Whether the command writes nothing else: then the rows go to stdout by default.
    raw : bool
        As for :func:`~gdpa.csv_text.csv_text`.
    """
    if output.json and (out is None or out == "-"):
        if only or out == "-":
            keys = ["row", *header[1:]] if header[0] != "row" else header
            lists = [c.tolist() if isinstance(c, np.ndarray) else list(c) for c in columns]
            output.result["predictions"] = [
                dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)
            ]
        return
    text = csv_text(header, [_words(column) for column in columns], raw=raw)
    if out is None and sys.stdout.isatty():
        output.at_end(lambda: _show_head(output, text))
    elif out is not None or only:
        files.text("--out", text)


def _words(column: Any) -> Any:
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind == "b":
        return yes_no(column)
    return [f"{v:.4f}" for v in column] if column.dtype.kind == "f" else column.tolist()


def _show_head(output: Output, text: str, rows: int = 10) -> None:
    """Show the first rows of a CSV text as a table."""
    lines = list(csv.reader(io.StringIO(text)))
    output.table(lines[0], lines[1 : rows + 1])
    if len(lines) > rows + 1:
        output.note(f"... {len(lines) - rows - 1} more rows; --out FILE keeps them all")
