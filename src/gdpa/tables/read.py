"""Read a table from a file, whatever its format.

CSV and TSV need nothing; Parquet, Feather, Excel and JSON lines need the libraries that read them.
Everything that can be wrong with a file is said with the file's name and, where there is one, the
line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import nearest_name, require
from ..npz import read_npz
from .frames import table_of
from .source import Source
from .table import Column, Table, TableError
from .text_file import column_names, read_text_file
from .texts import code_texts
from .words import shown

__all__ = ["FORMATS", "read_table"]

FORMATS = ("csv", "tsv", "parquet", "feather", "excel", "jsonl", "npz", "libsvm")
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    as_text: frozenset[str] = frozenset(),
    header: bool = True,
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input; a folder of Parquet files is one table. CSV, TSV,
        JSON lines and LIBSVM may be compressed (.gz, .bz2, .xz, .zip, .zst).
    format : {"csv", "tsv", "parquet", "feather", "excel", "jsonl", "npz", "libsvm"}, optional
        Told by the file's ending by default; CSV from standard input.
    delimiter : str, optional
        One character between the cells of a CSV file; found by looking by default (commas,
        semicolons, tabs, bars; blanks between numbers).
    encoding : str, optional
        Encoding of a CSV file; found by looking by default.
    as_text : frozenset of str
        Columns of a CSV file whose cells are to be kept as they are written, numbers too.
    header : bool, default=True
        Whether the first line of a CSV file has the names of the columns; else they are called 1,
        2, ...

    Returns
    -------
    Table
        The table. LIBSVM's and NPZ's labels are the column ``target``.

    Raises
    ------
    TableError
        If the file is missing, empty, broken or ragged.
    """
    if format is not None and format not in FORMATS:
        raise TableError(f"format={format!r}; {nearest_name(format, list(FORMATS))}")
    folder = Path(path)
    if str(path) != "-" and folder.is_dir() and format in (None, "parquet"):
        return _read_folder(folder)
    source = Source(path)
    kind = format or SUFFIXES.get(source.suffix) or ("csv" if str(path) == "-" else None)
    if kind is None and source.compression:
        source.open().close()  # an archive knows the ending of its member
        kind = SUFFIXES.get(source.suffix)
    if kind is None:
        raise TableError(
            f"the ending of {source.name} does not tell its format; give one of: "
            f"{', '.join(FORMATS)}"
        )
    if kind in ("csv", "tsv"):
        if kind == "tsv" and delimiter is None:
            delimiter = "\t"
        return read_text_file(
            source, delimiter=delimiter, encoding=encoding, as_text=as_text, header=header
        )
    if not header:
        raise TableError(f"{source.name}: header=False (--no-header) belongs to CSV, not to {kind}")
    if kind == "jsonl":
        return _read_json_lines(source)
    with source.open() as stream:
        if kind == "libsvm":
            return _read_libsvm(stream, source.name)
        if kind == "npz":
            return _read_npz(stream, source.name)
        whole: Any = stream if stream.seekable() else io.BytesIO(stream.read())
        if kind == "excel":
            return _read_excel(whole, source.name)
        if kind == "feather":
            return _read_feather(whole, source.name)
        return _read_parquet({source.name: whole}, source.name)


def _read_feather(stream: Any, name: str) -> Table:
    feather = require("pyarrow.feather", "parquet")
    try:
        data = feather.read_table(stream)
    except Exception as error:
        raise TableError(f"{name} is not a readable Feather file: {error}") from error
    if data.num_rows == 0:
        raise TableError(f"{name} has no rows")
    names, notes = column_names([str(c) for c in data.column_names], name)
    return Table(names, table_of(data, name).columns, name, notes)


def _read_folder(folder: Path) -> Table:
    parts = sorted(
        p
        for p in folder.rglob("*")
        if p.suffix.lower() in (".parquet", ".pq") and not p.name.startswith((".", "_"))
    )
    if not parts:
        raise TableError(f"{folder} is a directory without Parquet files; a file is needed")
    return _read_parquet({str(part): part for part in parts}, str(folder))


def _read_parquet(parts: Mapping[str, Any], name: str) -> Table:
    """The rows of all parts, one column after the other: no other form of the table is held."""
    arrow = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    files = {}
    for part, opened in parts.items():
        try:
            files[part] = parquet.ParquetFile(opened)
        except Exception as error:
            raise TableError(f"{part} is not a readable Parquet file: {error}") from error
    given = next(iter(files.values())).schema_arrow.names
    for part, file in files.items():
        if set(file.schema_arrow.names) != set(given):
            first = Path(next(iter(files))).name
            raise TableError(
                f"{part} has other columns than {first}: {file.schema_arrow.names[:20]}"
            )
    if not given or not any(file.metadata.num_rows for file in files.values()):
        raise TableError(f"{name} has no rows")
    names, notes = column_names([str(c) for c in given], name)
    columns = []
    for column in given:
        found = []
        for part, file in files.items():
            try:
                found.append(file.read(columns=[column]))
            except Exception as error:
                raise TableError(f"{part} is not a readable Parquet file: {error}") from error
        try:
            whole = arrow.concat_tables(found, promote_options="permissive").unify_dictionaries()
        except Exception as error:
            raise TableError(f"{name}: the parts do not fit together: {error}") from error
        columns.append(table_of(whole.select([column]), name).columns[0])
        del found, whole
        arrow.default_memory_pool().release_unused()
    return Table(names, tuple(columns), name, notes)


def _read_excel(stream: Any, name: str) -> Table:
    pandas = require("pandas", "excel")
    try:
        book = pandas.read_excel(stream, sheet_name=None)
    except ImportError as error:
        raise TableError(f"{name} cannot be read: {error}") from error
    except Exception as error:
        raise TableError(f"{name} is not a readable Excel file: {error}") from error
    sheets = {title: sheet for title, sheet in book.items() if sheet.shape[0] and sheet.shape[1]}
    if not sheets:
        raise TableError(f"{name} has no rows")
    title, sheet = next(iter(sheets.items()))
    notes = (f"the first sheet, {title!r}, of {len(sheets)} is read",) if len(sheets) > 1 else ()
    header = ["" if str(c).startswith("Unnamed: ") else str(c) for c in sheet.columns]
    names, renamed = column_names(header, name)
    return Table(names, table_of(sheet, name).columns, name, notes + renamed)


def _read_json_lines(source: Source) -> Table:
    cells: dict[str, dict[int, Any]] = {}
    n = 0
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TableError(f"{source.name}, line {number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise TableError(f"{source.name}, line {number}: an object {{...}} is needed")
            for key, value in row.items():
                if isinstance(value, list | dict):
                    kind = "list" if isinstance(value, list) else "nested object"
                    raise TableError(
                        f"{source.name}, line {number}: {shown(key)} holds a {kind}; cells are "
                        "values"
                    )
                cells.setdefault(key, {})[n] = value
            n += 1
    if n == 0:
        raise TableError(f"{source.name} is empty")
    names, notes = column_names(list(cells), source.name)
    columns = {
        name: np.array([*(column.get(i) for i in range(n)), None], dtype=object)[:-1]
        for name, column in zip(names, cells.values(), strict=True)
    }
    return Table(names, table_of(columns, source.name).columns, source.name, notes)


def _read_npz(stream: Any, name: str) -> Table:
    try:
        arrays = read_npz(stream)
    except Exception as error:
        raise TableError(f"{name} is not a readable NPZ file of plain arrays: {error}") from error
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise TableError(f"{name} needs a two-dimensional array X; it has {sorted(arrays)}")
    X = arrays["X"]
    names = [f"f{j + 1}" for j in range(X.shape[1])]
    columns = [Column(X[:, j].astype(np.float64)) for j in range(X.shape[1])]
    y = arrays.get("y")
    if y is not None:
        if y.shape != (X.shape[0],):
            raise TableError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
        names.append("target")
        columns.append(Column(*code_texts(y.tolist())))
    if X.shape[0] == 0:
        raise TableError(f"{name} has no rows")
    return Table(tuple(names), tuple(columns), name)


def _read_libsvm(stream: Any, name: str) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(stream)
    except Exception as error:
        raise TableError(f"{name} is not a readable LIBSVM file: {error}") from error
    if X.shape[0] == 0:
        raise TableError(f"{name} has no rows")
    dense = X.toarray()
    names = tuple(f"f{j + 1}" for j in range(dense.shape[1]))
    columns = (Column(dense[:, j]) for j in range(dense.shape[1]))
    labels = Column(*code_texts([f"{v:g}" for v in y]))
    return Table((*names, "target"), (*columns, labels), name)
