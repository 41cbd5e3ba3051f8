"""Files that the commands write: whole or not at all, and only where they were told to.

Everything is staged beside its target (:class:`gdpa.files.StagingFolder`) and moved there at the
end, so nothing is written outside the folder that was named, and Ctrl-C leaves what was there
before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..files import StagingFolder, is_special
from .output import Output

Column = Sequence[object] | NDArray[np.generic]


class OutputFiles:
    """Outputs of one command; a context manager that moves them into place on success.

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
        """Check, before any work, that an output can be written.

        Parameters
        ----------
        option : str
            The option that names it, for messages and for :meth:`path`.
        path : str or None
            The file; None and ``"-"`` need no file.
        stdout : bool, default=True
            Whether ``"-"`` is accepted.

        Raises
        ------
        ValueError
            If it is a folder, an input, another output, or cannot be written.
        """
        if path == "-" and not stdout:
            raise ValueError(f"{option} needs a file name; it cannot be -")
        if path is None or path == "-":
            return
        target = Path(path)
        if not target.name or target.is_dir():
            raise ValueError(f"{option} {path} is a folder; a file name is needed")
        # A device or a pipe keeps the name that it was given.
        whole = target if is_special(target) else target.parent.resolve() / target.name
        if whole in self._inputs or target.resolve() in self._inputs:
            raise ValueError(f"{option} {path} would overwrite the input")
        if any(whole == other.target for other in self._staged.values()):
            raise ValueError(f"{option} {path} is already the file of another option")
        try:
            self._staged[option] = StagingFolder(whole)
        except OSError as error:
            raise ValueError(
                f"{option} {path} cannot be written: {error.strerror or error}"
            ) from error

    def path(self, option: str) -> Path:
        """Return where to write the output of `option` for now."""
        return self._staged[option].file

    def text(self, option: str, content: str) -> None:
        """Write text as the output of `option`; to stdout, at the end, if it was not claimed."""
        if option in self._staged:
            self._staged[option].file.write_text(content, encoding="utf-8", newline="")
        else:
            # At the end, when no progress is drawn any more: a terminal shows both.
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
    """Write rows to a file, to stdout, to the JSON document, or the first ones to the terminal.

    Parameters
    ----------
    output, files
        Of the command.
    columns : sequence of (str, cells)
        Names, and cells: text, numbers, or an array of flags, which become yes and no.
    out : str or None
        The value of ``--out``.
    only : bool, default=True
        Whether the command writes nothing else: then the rows go to stdout by default.
    raw : bool, default=False
        Whether cells that a spreadsheet would execute are written unchanged.
    """
    if output.json and out in (None, "-"):
        if only or out == "-":
            output.result["predictions"] = rows_as_records(columns)
    elif out is None and sys.stdout.isatty():
        output.at_end(lambda: _show_head(output, columns))
    elif out is not None or only:
        files.text("--out", rows_as_csv(columns, raw=raw))


def rows_as_records(columns: Sequence[tuple[str, Column]]) -> list[dict[str, object]]:
    """Return rows for a JSON document; the first column is called "row"."""
    keys = ["row", *(name for name, _ in columns[1:])]
    lists = [c.tolist() if isinstance(c, np.ndarray) else c for _, c in columns]
    return [dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)]


def rows_as_csv(columns: Sequence[tuple[str, Column]], *, raw: bool) -> str:
    """Return rows as CSV text."""
    names, cells = zip(*columns, strict=True)
    return csv_text(list(names), list(map(_texts, cells)), raw=raw)


def _texts(column: Column) -> Sequence[object]:
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind == "b":
        return ["yes" if flag else "no" for flag in column]
    return [f"{v:.4f}" for v in column] if column.dtype.kind == "f" else column.tolist()


def _show_head(output: Output, columns: Sequence[tuple[str, Column]], most: int = 10) -> None:
    """Show the first rows as a table."""
    output.table([n for n, _ in columns], zip(*(_texts(c[:most]) for _, c in columns), strict=True))
    rows = len(columns[0][1])
    if rows > most:
        output.note(f"... {rows - most} more rows; --out FILE writes all of them")
