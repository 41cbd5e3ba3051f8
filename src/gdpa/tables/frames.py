"""Convert data frames and mappings of names to columns into tables, with narwhals.

The same cells give the same :class:`~gdpa.tables.Table`, whether they come from a data frame
library or a CSV file, so that columns are encoded the same way.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .table import (
    Column,
    Frame,
    Table,
    TableError,
    clean_labels,
    clean_texts,
    intern_arrow,
    intern_dictionary,
    intern_labels,
    intern_texts,
    is_text_dictionary,
    shorten,
    text_of,
)

BLOCK_ROWS = 50_000  # rows of a frame that are converted at a time


def table_of(
    X: Frame,
    source: str = "X",
    *,
    target: str | None = None,
    written: frozenset[str] | bool = False,
) -> Table:
    """Convert a data frame into a :class:`Table`.

    Parameters
    ----------
    X : Table, data frame (pandas, polars, pyarrow, ...), or mapping of names to columns
        The data frame.
    source : str, default="X"
        Name for messages.
    target : str, optional
        Column with the labels, which are converted to text without rounding.
    written : frozenset of str or bool, default=False
        Columns (True: all) whose cells are also kept exactly, as `Table.written`.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    TableError
        If it has no rows, two columns with the same name, or cells that are not scalars.
    """
    if isinstance(X, Table):
        return X
    is_mapping = isinstance(X, Mapping)
    pairs = [(str(n), cells) for n, cells in X.items()] if is_mapping else _series(X, source)
    names = tuple(name for name, _ in pairs)
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise TableError(f"{source}: two columns are named {shorten(twice)}; rename one")
    columns = (_labels(cells) if name == target else _column(cells) for name, cells in pairs)
    kept = {
        name: written_column(cells)
        for name, cells in pairs
        if written is True or (written and name in written)
    }
    table = Table(names, tuple(columns), source, written=kept)
    if table.n_rows == 0:
        raise TableError(f"{source} has no rows")
    return table


def row_blocks(X: Frame) -> tuple[int, Iterator[Table]]:
    """Return the number of rows of a frame, and its rows as tables of bounded size.

    A :class:`Table` or a mapping is not split.
    """
    if isinstance(X, Table | Mapping) or len(X) <= BLOCK_ROWS:
        table = table_of(X)
        return table.n_rows, iter((table,))
    cut = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    starts = range(0, len(X), BLOCK_ROWS)
    return len(X), (table_of(cut(slice(start, start + BLOCK_ROWS))) for start in starts)


def _series(X: Frame, source: str) -> list[tuple[str, Any]]:
    """Return the names and series of a data frame."""
    if hasattr(X, "iloc"):  # pandas allows names of any type, and duplicate names
        names = [" ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in X.columns]
        return list(zip(names, (X.iloc[:, j] for j in range(len(names))), strict=True))
    nw = require("narwhals", "tables")
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError as error:
        if hasattr(X, "collect"):
            message = f"{source} is a {type(X).__name__}; call collect() on it first"
            raise TableError(message) from error
        raise
    return [(series.name, series) for series in frame.iter_columns()]


def _column(cells: Any) -> Column:
    """Convert a series, an array or a list."""
    if isinstance(cells, np.ndarray | list | tuple | range):
        array = np.asarray(cells) if isinstance(cells, np.ndarray) else np.asarray(cells, object)
        return _from_array(array)
    nw = require("narwhals", "tables")
    series = nw.from_native(cells, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return _from_array(np.asarray(cells, dtype=object))
    dtype = series.dtype
    if dtype.is_numeric():
        return Column(np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if isinstance(dtype, nw.Datetime | nw.Date):
        if getattr(dtype, "time_zone", None) is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _from_array(series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]"))
    if dtype == nw.Duration:
        return _from_array(series.to_numpy())
    if dtype == nw.Enum:  # only the categories that occur, in their order
        values = series.to_list()
        occurring = set(values)
        present = [c for c in dtype.categories if c in occurring]
        place = dict(zip(present, range(len(present)), strict=True))
        codes = np.array([place.get(v, -1) for v in values], dtype=np.int32)
        return Column(codes, list(map(text_of, present)), ordered=True, declared=True)
    if dtype == nw.Categorical:
        native = series.to_native()
        if is_text_dictionary(native):
            return Column(*intern_dictionary(native, clean_texts), declared=True)
        return Column(*intern_texts(_values(series)), declared=True)
    if dtype == nw.String:
        native = series.to_native()
        if hasattr(native, "dictionary_encode"):  # an Arrow column
            return Column(*intern_arrow(native))
        return Column(*intern_texts(_values(series)))
    return _from_array(np.array([*_values(series), None], dtype=object)[:-1])


def _values(series: Any) -> list[Any]:
    """Return the cells as Python objects, None where missing."""
    missing = series.is_null().to_list()
    return [None if gap else v for v, gap in zip(series.to_list(), missing, strict=True)]


def _labels(cells: Any) -> Column:
    """Convert labels to text without rounding large integers or stripping white space.

    Only missing values and blank texts are unknown; "NA" is a class.
    """
    native = _native(cells)
    if is_text_dictionary(native):
        return Column(*intern_dictionary(native, clean_labels))
    return Column(*intern_labels(_objects(cells)))


def written_column(cells: Any) -> Column:
    """Convert cells to text exactly: no white space is stripped, no integer is rounded."""
    native = _native(cells)
    if is_text_dictionary(native):
        return Column(*intern_dictionary(native, lambda texts: texts))
    return Column(*intern_texts(_objects(cells), verbatim=True, missing=operator.not_))


def _native(cells: Any) -> Any:
    """Return a series of its own library."""
    return cells.to_native() if hasattr(cells, "to_native") else cells


def _objects(cells: Any) -> list[Any] | tuple[Any, ...] | range:
    """Return the cells as Python objects."""
    if isinstance(cells, np.ndarray):
        return list(cells.tolist())
    if isinstance(cells, list | tuple | range):
        return cells
    return _values(require("narwhals", "tables").from_native(cells, series_only=True))


def _from_array(array: NDArray[Any]) -> Column:
    """Convert an array; an array of objects is converted by the types of its cells."""
    if array.ndim != 1:
        raise TableError(f"a column has shape {array.shape}; columns must be one-dimensional")
    kind = array.dtype.kind
    if kind in "iuf":
        return Column(array.astype(np.float64))
    if kind == "b":
        return Column(array.astype(np.int8), ["False", "True"])
    if kind in "mM":
        seconds = array.astype(f"{kind}8[us]").astype(np.int64) / 1e6
        return Column(np.where(np.isnat(array), np.nan, seconds), moments=kind == "M")
    if kind == "c":
        raise TableError("a column has complex numbers; split it into two columns")
    # Lists of NumPy scalars become Python objects.
    cells = [c.item() if isinstance(c, np.generic) else c for c in array.tolist()]
    cells = [None if type(c).__name__ in ("NAType", "NaTType") else c for c in cells]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds and kinds <= {int, float}:
        try:
            return Column(np.array([np.nan if c is None else float(c) for c in cells]))
        except OverflowError:  # integers beyond 1e308
            return Column(*intern_texts(cells))
    if bool in kinds and kinds <= {bool, float}:
        codes = [int(c) if type(c) is bool else -1 for c in cells]
        return Column(np.array(codes, dtype=np.int8), ["False", "True"])
    wrong = next((c for c in cells if isinstance(c, list | dict | set | np.ndarray)), None)
    if wrong is not None:
        raise TableError(f"a column has a {type(wrong).__name__} as a cell; use scalars")
    return Column(*intern_texts(cells))
