"""Data frames as tables: pandas, polars, Arrow and mappings, told apart without importing them.

The same cells give the same :class:`~gdpa.tables.Table` whichever library holds them, and as the
text of a CSV file would: what is decided about columns does not depend on the way they came.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .table import Column, Table, TableError
from .texts import MANY, PackedTexts, code_texts, settle_texts, text_of
from .words import shown

__all__ = ["BLOCK_ROWS", "is_frame", "row_blocks", "table_of"]

BLOCK_ROWS = 50_000  # rows of a frame that are taken at a time where all at once are not needed


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns: pandas, polars, Arrow, a mapping, or ours.

    Parameters
    ----------
    X : object
        Anything. No library is imported to find out.

    Returns
    -------
    bool
        True for data frames; False for arrays, sparse matrices and lists.
    """
    if isinstance(X, Table):
        return True
    if hasattr(X, "toarray"):  # a dictionary of keys is a mapping, and a sparse matrix
        return False
    if isinstance(X, Mapping):
        return bool(X) and all(isinstance(name, str) for name in X)
    module = type(X).__module__.partition(".")[0]
    if module in ("pandas", "polars", "pyarrow"):
        return hasattr(X, "columns") and getattr(X, "ndim", 2) == 2
    return hasattr(X, "__dataframe__") and hasattr(X, "columns")


def table_of(X: Any, source: str = "X") -> Table:
    """Take any frame as a :class:`Table`.

    Parameters
    ----------
    X : Table, pandas or polars DataFrame, pyarrow Table, or mapping of names to columns
        The frame.
    source : str, default="X"
        What messages call it.

    Returns
    -------
    Table
        Its columns.

    Raises
    ------
    TableError
        If it has no rows, two columns of one name, or cells that are no plain values.
    """
    if isinstance(X, Table):
        return X
    module = type(X).__module__.partition(".")[0]
    if isinstance(X, Mapping):
        pairs = [(str(name), _of_sequence(cells)) for name, cells in X.items()]
    elif module == "polars":
        if not hasattr(X, "get_columns"):
            raise TableError(f"{source} is a {type(X).__name__}; call collect() on it first")
        pairs = [(s.name, _of_polars(s)) for s in X.get_columns()]
    elif module == "pyarrow":
        pairs = [(str(n), _of_arrow(X.column(i))) for i, n in enumerate(X.column_names)]
    else:
        frame = X if hasattr(X, "iloc") else X.to_pandas()
        pairs = [(_label(n), _of_pandas(frame.iloc[:, i])) for i, n in enumerate(frame.columns)]
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise TableError(f"{source}: two columns are called {shown(twice)}; rename one")
    table = Table(tuple(names), tuple(column for _, column in pairs), source)
    if table.n_rows == 0:
        raise TableError(f"{source} has no rows")
    return table


def row_blocks(X: Any) -> tuple[int, Iterator[Table]]:
    """Number of rows of a frame, and tables of some of them at a time.

    Parameters
    ----------
    X : frame
        As for :func:`table_of`. The rows of pandas, polars and Arrow frames come in blocks, so that
        what is made of them for a moment stays small; a :class:`Table` or a mapping comes whole.

    Returns
    -------
    n_rows : int
        Rows of all blocks together.
    blocks : iterator of Table
        The rows in order.
    """
    cut = getattr(X, "iloc", None) is not None or hasattr(X, "slice")
    if isinstance(X, Table | Mapping) or not cut or len(X) <= BLOCK_ROWS:
        table = table_of(X)
        return table.n_rows, iter((table,))

    def take(start: int) -> Table:
        stop = start + BLOCK_ROWS
        return table_of(X.iloc[start:stop] if hasattr(X, "iloc") else X.slice(start, BLOCK_ROWS))

    return len(X), map(take, range(0, len(X), BLOCK_ROWS))


def _label(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _of_numbers(values: NDArray[Any]) -> Column:
    return Column(np.asarray(values, dtype=np.float64))


def _of_flags(values: Sequence[Any] | NDArray[Any]) -> Column:
    """True, False and missing as two texts, as a CSV file would have them."""
    codes = np.array([-1 if v is None or v != v else int(v) for v in values], dtype=np.int8)
    return Column(codes, ["False", "True"])


def _of_moments(values: NDArray[Any]) -> Column:
    micro = values.astype("datetime64[us]")
    seconds = micro.astype(np.int64) / 1e6
    seconds[np.isnat(micro)] = np.nan
    return Column(seconds, moments=True)


def _of_sequence(cells: Any) -> Column:
    """A plain array or list, or a series of one of the libraries."""
    if type(cells).__module__.startswith("pandas"):
        return _of_pandas(cells)
    if type(cells).__module__.startswith("polars"):
        return _of_polars(cells)
    array = cells if isinstance(cells, np.ndarray) else np.asarray(cells, dtype=object)
    if array.ndim != 1:
        raise TableError(f"a column is one-dimensional; one has the shape {array.shape}")
    return _of_array(array)


def _of_array(array: NDArray[Any]) -> Column:
    kind = array.dtype.kind
    if kind in "iuf":
        return _of_numbers(array)
    if kind == "b":
        return Column(array.astype(np.int8), ["False", "True"])
    if kind == "M":
        return _of_moments(array)
    if kind == "m":
        seconds = array.astype("timedelta64[us]").astype(np.int64) / 1e6
        return Column(np.where(np.isnat(array), np.nan, seconds))
    if kind == "c":
        raise TableError("a column has complex numbers; split them into two columns")
    # NumPy's own numbers and truth values, as a list of them has them, are Python's.
    scalars = (np.number, np.bool_, np.str_)
    cells = [c.item() if isinstance(c, scalars) else c for c in array.tolist()]
    kinds = {type(cell) for cell in cells}
    missing = {type(None)} | {k for k in kinds if k.__name__ in ("NAType", "NaTType")}
    if kinds <= {int, float} | missing and not kinds <= missing:
        gaps = tuple(missing)
        return Column(np.array([np.nan if isinstance(c, gaps) else float(c) for c in cells]))
    if bool in kinds and kinds <= {bool, float} | missing:
        return _of_flags([None if type(c) is not bool else c for c in cells])
    if "datetime" in {k.__name__ for k in kinds} or "Timestamp" in {k.__name__ for k in kinds}:
        return Column(*code_texts([None if isinstance(c, tuple(missing)) else c for c in cells]))
    wrong = next((c for c in cells if isinstance(c, list | dict | set | np.ndarray)), None)
    if wrong is not None:
        raise TableError(f"a column has a cell of kind {type(wrong).__name__}; cells are values")
    return Column(*code_texts([None if isinstance(c, tuple(missing)) else c for c in cells]))


def _of_categories(codes: NDArray[Any], categories: Sequence[Any], ordered: bool) -> Column:
    """Categories as declared; numbers among them stay categories."""
    raw = np.asarray(codes).astype(np.int32)
    if not ordered:  # in order of appearance, as texts come
        words = [categories[c] if c >= 0 else None for c in raw.tolist()]
        return Column(*code_texts(words), declared=True)
    texts = [text_of(c) for c in categories]
    present = np.unique(raw[raw >= 0])
    place = np.full(len(texts) + 1, -1, dtype=np.int32)
    place[present] = np.arange(present.size)
    return Column(place[raw], [texts[i] for i in present], ordered=True, declared=True)


def _of_pandas(series: Any) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "categories") and hasattr(series, "cat"):
        categories = series.cat.categories.tolist()
        return _of_categories(series.cat.codes.to_numpy(), categories, bool(dtype.ordered))
    if dtype == "object" and _pandas().api.types.infer_dtype(series, skipna=True) == "string":
        return _of_strings(series)
    if isinstance(dtype, np.dtype):
        return _of_array(series.to_numpy())
    kind = getattr(dtype, "kind", "O")
    if dtype.name in ("str", "string"):
        return _of_strings(series)
    if kind in "iuf":
        return _of_numbers(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "b":
        return _of_flags(series.to_numpy(dtype=object, na_value=None))
    if kind == "M":  # with a time zone
        utc = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return _of_moments(utc.to_numpy(dtype="datetime64[us]"))
    if hasattr(dtype, "subtype"):  # sparse columns
        return _of_array(np.asarray(series))
    missing = series.isna().to_numpy()
    cells = series.to_numpy(dtype=object)
    cells = cells.copy()
    cells[missing] = None
    return _of_array(cells)


def _of_strings(series: Any) -> Column:
    """A column of texts, numbered by the library itself: ten times faster than here."""
    codes, different = series.factorize()
    return Column(*settle_texts(codes, different.tolist()))


def _pandas() -> Any:
    return sys.modules["pandas"]


def _of_polars(series: Any) -> Column:
    kind = str(series.dtype.base_type())
    if series.dtype.is_numeric():
        if series.dtype.is_decimal():
            series = series.cast(float)
        return _of_numbers(series.to_numpy(allow_copy=True))
    if kind == "Boolean":
        return _of_flags(series.to_list())
    if kind in ("Date", "Datetime"):
        moments = series.cast(_sibling(series, "Datetime")("us"))
        return _of_moments(moments.to_numpy().astype("datetime64[us]"))
    if kind == "Duration":
        return _of_array(series.to_numpy())
    if kind == "Enum":
        categories = series.dtype.categories.to_list()
        codes = series.to_physical().cast(_sibling(series, "Int32")).fill_null(-1).to_numpy()
        return _of_categories(codes, categories, True)
    if kind == "Categorical":
        return Column(*code_texts(series.cast(_sibling(series, "String")).to_list()), declared=True)
    return _of_array(np.array([*series.to_list(), None], dtype=object)[:-1])


def _sibling(series: Any, name: str) -> Any:
    """Something of the library that a series belongs to, without importing it here."""
    return getattr(sys.modules["polars"], name)


def _of_arrow(column: Any) -> Column:
    kind = str(column.type)
    if kind.startswith("dictionary"):
        return _of_categories(*_numbered(column), bool(column.type.ordered))
    if kind in ("string", "large_string"):  # numbered by the library: no text is held twice
        return Column(*settle_texts(*_numbered(column.dictionary_encode())))
    if kind == "bool":
        return Column(np.array(column.cast("int8").fill_null(-1)), ["False", "True"])
    if kind.startswith("decimal"):
        return _of_numbers(np.array([np.nan if v is None else v for v in column.to_pylist()]))
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        return Column(np.array(column.to_numpy(), dtype=np.float64))  # no buffer of theirs is kept
    if kind.startswith(("timestamp", "date32", "date64")):
        return _of_moments(column.to_numpy())
    if kind.startswith("duration"):
        return _of_array(column.to_numpy())
    return _of_array(np.array([*column.to_pylist(), None], dtype=object)[:-1])


def _numbered(column: Any) -> tuple[NDArray[Any], Sequence[Any]]:
    """Codes, -1 where missing, and values of a column that Arrow keeps as a dictionary."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    codes = np.array(whole.indices.cast("int32").fill_null(-1))
    words = whole.dictionary
    if len(words) > MANY and "string" in str(words.type):  # never all as objects
        parts = (words.slice(start, 5_000) for start in range(0, len(words), 5_000))
        return codes, PackedTexts(word for part in parts for word in part.to_pylist())
    return codes, words.to_pylist()
