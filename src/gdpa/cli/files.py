"""Output files of the commands, written completely or not at all.

Each file is staged beside its target (:class:`gdpa.files.StagingFolder`) and moved there at the
end. Ctrl-C leaves the old file in place.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..files import StagingFolder, is_special
from .output import Output

Column = Sequence[object] | NDArray[np.generic]


class OutputFiles:
    """Output files of one command; a context manager that moves them into place on success.

    Parameters
    ----------
    inputs : tuple of str or None
        Files that are read and must not be overwritten.
    """

    def __init__(self, *inputs: str | None) -> None:
        if inputs.count("-") > 1:
            raise ValueError("only one input can be read from standard input")
        self._inputs = {Path(i).resolve() for i in inputs if i and i != "-"}
        self._staged: dict[str, StagingFolder] = {}
        self._stdout: list[str] = []

    def claim(self, option: str, path: str | None, *, stdout: bool = True) -> None:
        """Check before the computation that an output can be written.

        Parameters
        ----------
        option : str
            The option that sets it, for messages and for :meth:`path`.
        path : str or None
            The file; None and ``"-"`` need no file.
        stdout : bool, default=True
            Whether ``"-"`` is accepted.

        Raises
        ------
        ValueError
            If the path is a folder, an input or another output, or cannot be written.
        """
        if path == "-" and not stdout:
            raise ValueError(f"{option} needs a file name; it cannot be -")
        if path is None or path == "-":
            return
        target = Path(path)
        if not target.name or target.is_dir():
            raise ValueError(f"{option} {path} is a folder; a file name is required")
        # Resolving the name of a device or a pipe may change it.
        whole = target if is_special(target) else target.parent.resolve() / target.name
        if whole in self._inputs or target.resolve() in self._inputs:
            raise ValueError(f"{option} {path} would overwrite the input")
        if whole in map(attrgetter("target"), self._staged.values()):
            raise ValueError(f"{option} {path} is also the file of another option")
        try:
            self._staged[option] = StagingFolder(whole)
        except OSError as error:
            raise ValueError(
                f"{option} {path} cannot be written: {error.strerror or error}"
            ) from error

    def path(self, option: str) -> Path:
        """Return the staged path of the output of `option`."""
        return self._staged[option].file

    def text(self, option: str, content: str) -> None:
        """Write the output of `option`; an output without a file goes to stdout at the end."""
        if option in self._staged:
            self._staged[option].file.write_text(content, encoding="utf-8", newline="")
        else:
            # Written at the end: a terminal would mix it with the progress bar.
            self._stdout.append(content)

    def __enter__(self) -> OutputFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                for staged in self._staged.values():
                    staged.publish()
                for content in self._stdout:
                    sys.stdout.write(content)
        finally:
            for staged in self._staged.values():
                staged.remove()


def write_rows(
    output: Output,
    files: OutputFiles,
    columns: Sequence[tuple[str, Column]],
    *,
    out: str | None,
    only: bool = True,
    raw: bool = False,
) -> None:
    """Write rows to a file, stdout or the JSON document, or the first rows to a terminal.

    Parameters
    ----------
    output, files
        Output of the command.
    columns : sequence of (str, cells)
        Names and cells: text, numbers, or a boolean array, written as yes and no.
    out : str or None
        The value of ``--out``.
    only : bool, default=True
        Whether the rows are the only output; then they go to stdout by default.
    raw : bool, default=False
        Whether to leave cells unescaped that a spreadsheet would execute.
    """
    if output.json and out in (None, "-"):
        if only or out == "-":
            output.result["predictions"] = rows_as_records(columns)
    elif out is None and sys.stdout.isatty():
        output.at_end(lambda: _show_head(output, columns))
    elif out is not None or only:
        files.text("--out", rows_as_csv(columns, raw=raw))


def rows_as_records(columns: Sequence[tuple[str, Column]]) -> list[dict[str, object]]:
    """Return the rows for JSON; the first column is called "row"."""
    keys = ["row", *(name for name, _ in columns[1:])]
    lists = [c.tolist() if isinstance(c, np.ndarray) else c for _, c in columns]
    return [dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)]


def rows_as_csv(columns: Sequence[tuple[str, Column]], *, raw: bool) -> str:
    """Return the rows as CSV text."""
    names, cells = zip(*columns, strict=True)
    return csv_text(list(names), list(map(_texts, cells)), raw=raw)


def _texts(column: Column) -> Sequence[object]:
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind == "b":
        return list(np.where(column, "yes", "no"))
    return list(map("{:.4f}".format, column)) if column.dtype.kind == "f" else column.tolist()


def _show_head(output: Output, columns: Sequence[tuple[str, Column]], most: int = 10) -> None:
    """Show the first rows as a table."""
    output.table([n for n, _ in columns], zip(*(_texts(c[:most]) for _, c in columns), strict=True))
    rows = len(columns[0][1])
    if rows > most:
        output.note(f"... {rows - most} more rows; use --out FILE to write all of them")
