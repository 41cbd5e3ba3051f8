"""Table and Column: named columns of numbers, datetimes or texts, from any file or data frame.

A text column stores each distinct text once and an integer code per row. Detecting the kind of a
column then takes time proportional to the number of distinct texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError, nearest_name, require

MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "?", "#value!", "#ref!"}
)
MAX_TEXT_LIST = 2**16  # more distinct texts are kept in an Arrow array


# A data frame of any library, a Table, or a mapping of names to columns.
Frame = Any


class TableError(ValueError):
    """A table cannot be read or used; the message names the file and the row or column."""


@contextmanager
def errors_as_table_error(message: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds (by default all) into a TableError that begins with `message`."""
    caught = kinds or (Exception,)  # libraries raise any kind of error on damaged files
    try:
        yield
    except (TableError, MissingExtraError, MemoryError):
        raise
    except caught as error:
        raise TableError(f"{message}: {error}") from error


def is_missing_text(text: str) -> bool:
    """Return whether the text of a cell stands for a missing value."""
    return text.strip().lower() in MISSING


def is_blank(text: str) -> bool:
    """Return whether a text is empty or white space."""
    return not text.strip()


def shorten(name: str, limit: int = 60) -> str:
    """Quote, escape and truncate a name for a message."""
    return repr(name if len(name) <= limit else name[: limit - 3] + "...")


@dataclass(frozen=True)
class Column:
    """One column.

    Parameters
    ----------
    values : ndarray
        Numbers as float64, NaN where missing. With `texts`, integer codes, -1 where missing.
    texts : sequence of str, optional
        The distinct texts, in order of appearance (in their own order if `ordered`).
    ordered : bool, default=False
        Whether the texts are ordered categories.
    moments : bool, default=False
        Whether the numbers are datetimes: seconds since 1970 (UTC).
    declared : bool, default=False
        Whether the source declares the texts to be categories.
    """

    values: NDArray[Any]
    texts: Sequence[str] | None = None
    ordered: bool = False
    moments: bool = False
    declared: bool = False

    def __len__(self) -> int:
        return int(self.values.size)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.asarray(np.isnan(self.values) if self.texts is None else self.values < 0)

    def cell(self, row: int) -> str:
        """Return a cell as text; empty if it is missing."""
        return Column(self.values[row : row + 1], self.texts, moments=self.moments).cells()[0]

    def cells(self) -> list[str]:
        """Return all cells as text."""
        values = self.values.tolist()
        if self.texts is None:
            return [moment_text(v) if self.moments else number_text(v) for v in values]
        if len(values) == 1:
            return [self.texts[values[0]] if values[0] >= 0 else ""]
        words = [*self.texts, ""]
        return [words[code] for code in values]

    def as_text(self) -> Column:
        """Return the column with numbers converted to text."""
        return self if self.texts is not None else Column(*intern_texts(self.cells()))


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    columns : tuple of Column
        The columns.
    source : str, default="the table"
        Name of the file or data frame, for messages.
    notes : tuple of str
        Messages about how it was read.
    written : mapping of str to Column
        Cells exactly as in the file, for the columns that were asked for: white space and words
        such as NA are kept, and numbers are texts.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: str = "the table"
    notes: tuple[str, ...] = ()
    written: Mapping[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = set(map(attrgetter("values.size"), self.columns))
        if len(sizes) > 1:
            raise TableError(f"{self.source} has columns of different lengths: {sorted(sizes)}")

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        """Columns by name."""
        return dict(zip(self.names, self.columns, strict=True))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns[0].values.size if self.columns else 0

    def column(self, name: str, what: str = "column") -> Column:
        """Return a column by its name; the error suggests the nearest name."""
        if name not in self._by_name:
            raise TableError(
                f"{self.source} has no {what} {shorten(name)}; "
                f"{nearest_name(name, [n[:60] for n in self.names[:1000]])}"
            )
        return self._by_name[name]

    def written_cells(self, name: str) -> list[str]:
        """Return the cells of a column as in the file if they were kept, else as text."""
        return self.written.get(name, self.column(name)).cells()

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without some columns."""
        kept = dict(self._by_name)
        for name in names:
            kept.pop(name, None)
        return Table(tuple(kept), tuple(kept.values()), self.source, self.notes, self.written)


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame, a Table, or a mapping of names to columns.

    Parameters
    ----------
    X : object
        Any object. No data frame library is imported.

    Returns
    -------
    bool
        True for data frames; False for arrays, sparse matrices and lists.
    """
    if isinstance(X, Mapping):
        # scipy's dictionary-of-keys matrix is a mapping too.
        return not hasattr(X, "toarray") and bool(X) and all(isinstance(name, str) for name in X)
    return isinstance(X, Table) or hasattr(type(X), "columns")


class ArrowTexts(Sequence[str]):
    """Texts in an Arrow array, accessed as Python strings.

    Parameters
    ----------
    array : pyarrow.Array of strings
        The texts.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(self._array[place].to_pylist())
        return str(self._array[int(place)].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 10_000):
            yield from self[start : start + 10_000]


def intern_texts(
    cells: Iterable[Any],
    *,
    verbatim: bool = False,
    missing: Callable[[str], bool] = is_missing_text,
) -> tuple[NDArray[Any], list[str]]:
    """Return integer codes and the distinct texts of cells.

    Parameters
    ----------
    cells : iterable
        Texts; other objects are converted to text.
    verbatim : bool, default=False
        Whether to keep leading and trailing white space.
    missing : callable
        Which texts stand for a missing cell. None and NaN are empty texts.

    Returns
    -------
    codes : ndarray of int8, int16 or int32
        Index of the text of each cell, -1 where missing.
    texts : list of str
        The distinct texts, in order of appearance.
    """
    index: dict[Any, int] = {}
    raw = np.fromiter((index.setdefault(cell, len(index)) for cell in cells), dtype=np.int32)
    texts: dict[str, int] = {}
    codes = np.empty(len(index), dtype=np.int32)
    for i, cell in enumerate(index):
        text = text_of(cell)
        if missing(text):
            codes[i] = -1
        else:
            codes[i] = texts.setdefault(text if verbatim else text.strip(), len(texts))
    return codes[raw].astype(np.min_scalar_type(-len(texts) - 2), copy=False), list(texts)


def intern_labels(cells: Iterable[Any]) -> tuple[NDArray[Any], list[str]]:
    """Return integer codes and the distinct texts of labels, verbatim.

    Only blank cells are unknown: a class may be called "None" or "NA".
    """
    return intern_texts(cells, verbatim=True, missing=is_blank)


def intern_arrow(column: Any) -> tuple[NDArray[Any], Sequence[str]]:
    """Return integer codes and the distinct texts of an Arrow string column."""
    return merge_texts([clean_texts(cells).dictionary_encode() for cells in column.chunks])


def is_text_dictionary(column: Any) -> bool:
    """Return whether this is an Arrow column that stores each distinct text once."""
    types = require("pyarrow.types", "tables") if hasattr(column, "unify_dictionaries") else None
    if types is None or not types.is_dictionary(column.type):
        return False
    kind = column.type.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def intern_dictionary(
    column: Any, clean: Callable[[Any], Any]
) -> tuple[NDArray[Any], Sequence[str]]:
    """Return integer codes and the distinct texts of an Arrow column of dictionary type.

    Only the distinct texts are converted, by `clean`: a long text that many rows share is never
    copied for each of them.
    """
    whole = column.unify_dictionaries().combine_chunks()
    codes = to_numpy(whole.indices, np.int32, -1)
    used, first = np.unique(codes, return_index=True)
    present = used >= 0
    order = used[present][np.argsort(first[present], kind="stable")]  # of appearance
    arrow = require("pyarrow", "tables")
    texts = whole.dictionary.take(arrow.array(order)).cast(arrow.large_string())
    places, distinct = merge_texts([clean(texts).dictionary_encode()])
    place = np.full(len(whole.dictionary) + 1, -1, dtype=np.int32)
    place[order] = places
    return place[codes].astype(np.min_scalar_type(-len(distinct) - 2), copy=False), distinct


def clean_texts(cells: Any) -> Any:
    """Replace missing cells by null and strip white space."""
    pc = require("pyarrow.compute", "tables")
    trimmed = pc.utf8_trim_whitespace(cells)
    # Arrow loads pandas, if it is installed, to convert any Python object: a list of words, None.
    words = rf"\A(?:{'|'.join(map(re.escape, sorted(MISSING)))})\z"
    missing = pc.match_substring_regex(pc.utf8_lower(trimmed), words)
    return pc.if_else(missing, _null_of(cells), trimmed)


def clean_labels(cells: Any) -> Any:
    """Replace blank cells by null; other cells are kept verbatim (see :func:`intern_labels`)."""
    pc = require("pyarrow.compute", "tables")
    blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(cells)), 0)
    return pc.if_else(blank, _null_of(cells), cells)


def _null_of(cells: Any) -> Any:
    """Return the null of the type of an Arrow array."""
    return require("pyarrow", "tables").nulls(1, cells.type)[0]


def to_numpy(cells: Any, dtype: Any, missing: float) -> NDArray[Any]:
    """Convert an Arrow array of numbers, without pandas, which its own conversion loads."""
    out = np.full(len(cells), missing, dtype=dtype)
    valid = np.from_dlpack(cells.is_valid().cast("uint8")) > 0
    out[valid] = np.from_dlpack(cells.drop_null())
    return out


def merge_texts(parts: list[Any]) -> tuple[NDArray[Any], Sequence[str]]:
    """Return codes (-1 for null) and texts of dictionary-encoded Arrow arrays."""
    if not parts:
        return np.empty(0, dtype=np.int8), []
    arrow = require("pyarrow", "tables")
    whole = arrow.chunked_array(parts).unify_dictionaries().combine_chunks()
    words = whole.dictionary
    texts = words.to_pylist() if len(words) <= MAX_TEXT_LIST else ArrowTexts(words)
    codes = to_numpy(whole.indices, np.int32, -1)
    return codes.astype(np.min_scalar_type(-len(texts) - 2), copy=False), texts


def text_of(cell: Any) -> str:
    """Return a cell of a data frame as text; empty if it is missing."""
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell:  # NaN and NaT
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return number_text(cell) if isinstance(cell, float) else str(cell)


def number_text(value: float) -> str:
    """Return a number as text: integers without a decimal point, NaN as empty text."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


def moment_text(seconds: float) -> str:
    """Return a datetime as text: only the date at midnight, NaN as empty text."""
    if seconds != seconds:
        return ""
    text = str(np.datetime64(round(seconds * 1e6), "us"))
    return text.removesuffix(".000000").removesuffix("T00:00:00")
