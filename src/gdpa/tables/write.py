"""Write columns to a file; the extension of its name decides the format."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..errors import require
from .table import Column, TableError, shorten

# Names without an extension are CSV, too.
WRITTEN_FORMATS = {
    "": "csv",
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
MAX_SHEET_ROWS = 2**20  # rows of a worksheet, with its header (Excel specification)
MAX_SHEET_COLUMNS = 2**14


def written_format(path: str | Path) -> str:
    """Return the format in which a file of this name is written.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    {"csv", "tsv", "parquet", "feather", "excel", "jsonl"}
        The format.

    Raises
    ------
    TableError
        If the extension is none of these.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in WRITTEN_FORMATS:
        known = ", ".join(filter(None, WRITTEN_FORMATS))
        raise TableError(f"{path}: tables cannot be written as {suffix}; accepted are {known}")
    return WRITTEN_FORMATS[suffix]


def table_bytes(format: str, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> bytes:
    """Return columns as the content of a file.

    Parameters
    ----------
    format : {"csv", "tsv", "parquet", "feather", "excel", "jsonl"}
        The format.
    columns : mapping of str to sequence
        Names and cells: texts, numbers, booleans or datetimes, None where missing.

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    TableError
        If a worksheet cannot hold that many rows or columns, or a text with control characters.
    """
    if format in ("csv", "tsv"):
        delimiter = "," if format == "csv" else "\t"
        return csv_text(list(columns), list(columns.values()), delimiter=delimiter).encode()
    cells = {name: _objects(column) for name, column in columns.items()}
    if format == "jsonl":
        rows = zip(*cells.values(), strict=True)
        lines = (json.dumps(dict(zip(cells, row, strict=True)), default=str) for row in rows)
        return "".join(line + "\n" for line in lines).encode()
    if format == "excel":
        return _workbook(cells)
    arrow = require("pyarrow", "tables")
    table = arrow.table({name: arrow.array(values) for name, values in cells.items()})
    file = io.BytesIO()
    if format == "parquet":
        require("pyarrow.parquet", "tables").write_table(table, file)
    else:
        require("pyarrow.feather", "tables").write_feather(table, file)
    return file.getvalue()


def typed_cells(column: Column) -> list[Any]:
    """Return the cells of a column as numbers, datetimes or texts, None where missing.

    Integers are returned as int if every number of the column is one.
    """
    missing = column.missing
    values: list[Any]
    if column.texts is not None:
        values = column.cells()
    elif column.moments:
        moments = np.where(missing, 0.0, column.values * 1e6)
        values = np.round(moments).astype("datetime64[us]").tolist()
    else:
        present = column.values[~missing]
        whole = bool(np.isfinite(present).all() and (present == np.round(present)).all())
        exact = whole and bool((np.abs(present) <= 2**53).all())
        filled = np.where(missing, 0.0, column.values)
        values = (filled.astype(np.int64) if exact else filled).tolist()
    return [None if gap else value for value, gap in zip(values, missing.tolist(), strict=True)]


def _objects(cells: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return cells as Python objects."""
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


def _workbook(columns: Mapping[str, list[Any]]) -> bytes:
    """Return an Excel workbook; texts stay texts, also those that begin with an equals sign."""
    openpyxl = require("openpyxl", "excel")
    cell_type = require("openpyxl.cell", "excel").WriteOnlyCell
    illegal = require("openpyxl.utils.exceptions", "excel").IllegalCharacterError
    n_rows = len(next(iter(columns.values())))
    if n_rows >= MAX_SHEET_ROWS or len(columns) > MAX_SHEET_COLUMNS:
        raise TableError(
            f"{n_rows} rows and {len(columns)} columns do not fit on a worksheet (at most "
            f"{MAX_SHEET_ROWS - 1} and {MAX_SHEET_COLUMNS}); write .csv or .parquet"
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("predictions")

    def cell(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | date | datetime):
            return value
        try:
            made = cell_type(sheet, value=str(value))
        except illegal as error:
            raise TableError(
                f"{shorten(str(value))} has control characters, which a worksheet cannot hold; "
                "write .csv or .parquet"
            ) from error
        made.data_type = "s"  # a text, not a formula
        return made

    try:
        sheet.append([cell(name) for name in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([cell(value) for value in row])
    except TableError:
        sheet.close()
        raise
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
