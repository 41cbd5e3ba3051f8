"""Output files of the commands, written completely or not at all.

Each file is staged beside its target (:class:`gdpa.files.StagingFolder`) and moved there at the
end. Ctrl-C leaves the old file in place.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import escape_formulas
from ..files import StagingFolder, is_special
from ..tables.write import WRITTEN_FORMATS, table_bytes, written_format
from .output import Output

TABLE_FORMATS = tuple(dict.fromkeys(WRITTEN_FORMATS.values()))


@dataclass(frozen=True)
class InputColumn:
    """A column of the input that is copied to the output.

    Parameters
    ----------
    written : list of str
        The cells exactly as in the file, for CSV.
    typed : list
        The cells as numbers, datetimes or texts, for other formats.
    """

    written: list[str]
    typed: list[Any]

    def __len__(self) -> int:
        return len(self.written)


Column = Sequence[object] | NDArray[np.generic] | InputColumn
Columns = Sequence[tuple[str, Column]]


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

    def claim(
        self,
        option: str,
        path: str | None,
        *,
        stdout: bool = True,
        formats: Collection[str] | None = None,
    ) -> None:
        """Check before the computation that an output can be written.

        Parameters
        ----------
        option : str
            The option that sets it, for messages and for :meth:`path`.
        path : str or None
            The file; None and ``"-"`` need no file.
        stdout : bool, default=True
            Whether ``"-"`` is accepted.
        formats : collection of str, optional
            Formats of tables that the command can write; the extension must stand for one of them.

        Raises
        ------
        ValueError
            If the path is a folder, an input or another output, cannot be written, or its
            extension does not stand for an accepted format.
        """
        if path == "-" and not stdout:
            raise ValueError(f"{option} needs a file name; it cannot be -")
        if path is None or path == "-":
            return
        target = Path(path)
        if not target.name or target.is_dir():
            raise ValueError(f"{option} {path} is a folder; a file name is required")
        if formats is not None and not is_special(target):
            found = written_format(path)
            if found not in formats:
                raise ValueError(f"{option} {path}: this command writes {', '.join(formats)}")
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
    given: Columns,
    made: Columns,
    *,
    out: str | None,
    only: bool = True,
    escape: bool = False,
) -> None:
    """Write rows to a file, stdout or the JSON document, or the first rows to a terminal.

    Parameters
    ----------
    output, files
        Output of the command.
    given : sequence of (str, cells)
        Names and cells of columns of the input, which are never changed.
    made : sequence of (str, cells)
        Names and cells of the columns that the command computed: text, numbers, or a boolean
        array, written as yes and no in CSV.
    out : str or None
        The value of ``--out``.
    only : bool, default=True
        Whether the rows are the only output; then they go to stdout by default.
    escape : bool, default=False
        Whether to escape cells of `made` that a spreadsheet would execute.
    """
    columns = [*given, *made]
    if output.json and out in (None, "-"):
        if only or out == "-":
            output.result["predictions"] = rows_as_records(columns)
    elif out is None and sys.stdout.isatty():
        output.at_end(lambda: _show_head(output, columns))
    elif out is not None or only:
        write_table(files, out, given, made, escape=escape)


def write_table(
    files: OutputFiles,
    out: str | None,
    given: Columns,
    made: Columns,
    *,
    escape: bool,
    option: str = "--out",
) -> None:
    """Write the rows to a file, in the format of its extension; for the rest see above.

    The file is the one that was claimed for `option`.
    """
    to_file = out not in (None, "-") and not is_special(Path(str(out)))
    format = written_format(str(out)) if to_file else "csv"
    content = table_content(format, given, made, escape=escape)
    if format in ("csv", "tsv"):
        files.text(option, content.decode())
    else:
        files.path(option).write_bytes(content)


def table_content(format: str, given: Columns, made: Columns, *, escape: bool) -> bytes:
    """Return the rows in a format; for the parameters see :func:`write_rows`."""
    if escape:
        made = [(escape_formulas([name])[0], _escaped(cells)) for name, cells in made]
    as_cells = _texts if format in ("csv", "tsv") else _typed
    return table_bytes(format, {name: as_cells(cells) for name, cells in (*given, *made)})


def rows_as_records(columns: Columns) -> list[dict[str, object]]:
    """Return the rows for JSON; the first column is called "row"."""
    keys = ["row", *(name for name, _ in columns[1:])]
    lists = [_texts(c) if isinstance(c, InputColumn) else _typed(c) for _, c in columns]
    return [dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)]


def _escaped(column: Column) -> Column:
    """Escape the texts of a column."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "bf":
        return column
    return escape_formulas(_typed(column))


def _typed(column: Column) -> Sequence[Any]:
    """Return the cells as Python objects."""
    if isinstance(column, InputColumn):
        return column.typed
    return list(column.tolist()) if isinstance(column, np.ndarray) else column


def _texts(column: Column) -> Sequence[object]:
    """Return the cells as they appear in CSV."""
    if isinstance(column, InputColumn):
        return column.written
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind == "b":
        return list(np.where(column, "yes", "no"))
    return list(map("{:.4f}".format, column)) if column.dtype.kind == "f" else column.tolist()


def _show_head(output: Output, columns: Columns, most: int = 10) -> None:
    """Show the first rows as a table."""
    texts = [_texts(cells)[:most] for _, cells in columns]
    output.table([name for name, _ in columns], zip(*texts, strict=True))
    rows = len(columns[0][1])
    if rows > most:
        output.note(f"... {rows - most} more rows; use --out FILE to write all of them")
