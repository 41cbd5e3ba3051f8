"""Read a table from a file: CSV, TSV, Parquet, NPZ or LIBSVM.

A table is a list of named columns of text or numbers. Everything that can be wrong with a file is
said with the file's name and, where there is one, the line.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name, require

__all__ = ["FORMATS", "Table", "TableError", "read_table"]

FORMATS = ("csv", "tsv", "parquet", "npz", "libsvm")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}


class TableError(ValueError):
    """A table that cannot be read, with the file and the line."""


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    columns : tuple of ndarray
        Numbers (float64) or text (object), one array per column.
    source : str
        Where it came from, for messages.
    """

    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    source: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def column(self, name: str, what: str = "column") -> NDArray[Any]:
        """Return a column by its name, or say which name is nearest."""
        if name not in self.names:
            raise TableError(
                f"{self.source} has no {what} {name!r}; {nearest_name(name, list(self.names))}"
            )
        return self.columns[self.names.index(name)]

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without some columns."""
        left_out = set(names)
        keep = [i for i, name in enumerate(self.names) if name not in left_out]
        return Table(
            tuple(self.names[i] for i in keep), tuple(self.columns[i] for i in keep), self.source
        )


def read_table(
    path: str | Path, *, format: str | None = None, delimiter: str | None = None
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input.
    format : {"csv", "tsv", "parquet", "npz", "libsvm"}, optional
        Told by the file's ending by default; CSV from standard input.
    delimiter : str, optional
        One character between the cells of a CSV file; a comma by default.

    Returns
    -------
    Table
        The table. LIBSVM's and NPZ's labels are the column ``target``.

    Raises
    ------
    TableError
        If the file is missing, empty, broken or ragged.
    """
    name = "standard input" if str(path) == "-" else str(path)
    kind = format or ("csv" if str(path) == "-" else SUFFIXES.get(Path(path).suffix.lower()))
    if kind not in FORMATS:
        raise TableError(
            f"the ending of {name} does not tell its format; give one of: {', '.join(FORMATS)}"
            if format is None
            else f"format={format!r}; {nearest_name(format, list(FORMATS))}"
        )
    stream = open_file(path, name)
    with stream:
        if kind in ("csv", "tsv"):
            return _read_text(stream, name, delimiter or ("\t" if kind == "tsv" else ","))
        if kind == "parquet":
            return _read_parquet(stream, name)
        if kind == "npz":
            return _read_npz(stream, name)
        return _read_libsvm(stream, name)


def open_file(path: str | Path, name: str) -> BinaryIO:
    """Open a file (``"-"``: standard input), or say why it cannot be read."""
    if str(path) == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    file = Path(path)
    if file.is_dir():
        raise TableError(f"{name} is a directory; a file is needed")
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        folder = file.parent if file.parent.is_dir() else None
        siblings = [p.name for p in folder.iterdir() if p.is_file()][:500] if folder else []
        import difflib

        close = difflib.get_close_matches(file.name, siblings, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TableError(f"{name} does not exist{hint}") from None
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror}") from error
    if file.stat().st_size == 0 and file.is_file():
        stream.close()
        raise TableError(f"{name} is empty")
    return stream


def _read_text(stream: BinaryIO, name: str, delimiter: str) -> Table:
    if len(delimiter) != 1:
        raise TableError(f"delimiter={delimiter!r} must be one character")
    text = decode_text(stream.read(), name)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next((row for row in reader if any(cell.strip() for cell in row)), None)
        if header is None:
            raise TableError(f"{name} is empty")
        names = _names(header, name, delimiter)
        rows = []
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip() and len(names) > 1):
                continue  # a blank line
            if len(row) != len(names):
                raise TableError(
                    f"{name}, line {reader.line_num}: {len(row)} cells where the header has "
                    f"{len(names)}"
                )
            rows.append(row)
    except csv.Error as error:
        raise TableError(f"{name}, line {reader.line_num}: {error}") from error
    if not rows:
        raise TableError(f"{name} has a header and no rows")
    columns = tuple(np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return Table(names, columns, name)


def decode_text(raw: bytes, name: str) -> str:
    """Decode UTF-8, or say in which line `name` is something else.

    Parameters
    ----------
    raw : bytes
        Content of the file.
    name : str
        Its name, for messages.

    Returns
    -------
    str
        The text, without a byte-order mark.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{name}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8"
        ) from error
    if "\0" in text:
        raise TableError(f"{name} has NUL bytes: it is not a text file")
    return text


def _names(header: list[str], name: str, delimiter: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in header)
    if len(names) == 1:
        for other, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas"), ("|", "bars")):
            if other != delimiter and other in names[0]:
                raise TableError(
                    f"{name} has one column when read with {delimiter!r}; its header has {word}: "
                    f"set the delimiter to {other!r}"
                )
    seen: set[str] = set()
    for position, column in enumerate(names, 1):
        if not column:
            raise TableError(f"{name}: column {position} has no name in the header")
        if column in seen:
            raise TableError(f"{name}: two columns are called {column!r}; rename one")
        seen.add(column)
    return names


def _read_parquet(stream: BinaryIO, name: str) -> Table:
    parquet = require("pyarrow.parquet", "parquet")
    try:
        data = parquet.read_table(stream)
    except Exception as error:
        raise TableError(f"{name} is not a readable Parquet file: {error}") from error
    if data.num_rows == 0:
        raise TableError(f"{name} has no rows")
    columns = []
    for field in data.column_names:
        values = data.column(field).to_pylist()
        columns.append(_typed(values))
    names = _names([str(c) for c in data.column_names], name, ",")
    return Table(names, tuple(columns), name)


def _typed(values: list[Any]) -> NDArray[Any]:
    """Numbers where all cells are numbers or missing, else text; missing text is empty."""
    if all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values):
        return np.array([np.nan if v is None else float(v) for v in values])
    return np.array(["" if v is None else str(v) for v in values], dtype=object)


def _read_npz(stream: BinaryIO, name: str) -> Table:
    try:
        with np.load(stream, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
    except Exception as error:
        raise TableError(f"{name} is not a readable NPZ file of plain arrays: {error}") from error
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise TableError(f"{name} needs a two-dimensional array X; it has {sorted(arrays)}")
    X = arrays["X"]
    names = [f"f{j + 1}" for j in range(X.shape[1])]
    columns: list[NDArray[Any]] = [X[:, j].astype(np.float64) for j in range(X.shape[1])]
    y = arrays.get("y")
    if y is not None:
        if y.shape != (X.shape[0],):
            raise TableError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
        names.append("target")
        columns.append(y.astype(str).astype(object))
    if X.shape[0] == 0:
        raise TableError(f"{name} has no rows")
    return Table(tuple(names), tuple(columns), name)


def _read_libsvm(stream: BinaryIO, name: str) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(stream)
    except Exception as error:
        raise TableError(f"{name} is not a readable LIBSVM file: {error}") from error
    if X.shape[0] == 0:
        raise TableError(f"{name} has no rows")
    dense = X.toarray()
    columns = [dense[:, j] for j in range(dense.shape[1])]
    labels = np.array([f"{v:g}" for v in y], dtype=object)
    names = tuple(f"f{j + 1}" for j in range(dense.shape[1]))
    return Table((*names, "target"), (*columns, labels), name)
