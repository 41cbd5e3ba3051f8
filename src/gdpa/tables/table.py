"""A table: named columns of numbers, moments or texts, from any file or data frame.

A text column keeps each different text once and, for every row, which one it is. Decisions about a
column (numbers with decimal commas? dates?) then cost as many steps as there are different texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name, require

MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "?", "#value!", "#ref!"}
)
MAX_TEXT_LIST = 2**16  # more different texts stay in Arrow's memory: no Python object for each


# A data frame of any library, a Table, or a mapping of names to columns.
Frame = Any


class TableError(ValueError):
    """A table that cannot be read or used; the message names the file, and the row or column."""


def is_missing_text(text: str) -> bool:
    """Whether a cell's text stands for no value."""
    return text.strip().lower() in MISSING


def shorten(name: str, limit: int = 60) -> str:
    """Quote, escape and truncate a name for a message."""
    return repr(name if len(name) <= limit else name[: limit - 3] + "...")


@dataclass(frozen=True)
class Column:
    """One column.

    Parameters
    ----------
    values : ndarray
        float64, NaN where missing; or, with `texts`, integers: which text, -1 where missing.
    texts : sequence of str, optional
        The different texts, in order of appearance (in their own order if `ordered`).
    ordered : bool, default=False
        Whether the order of the texts means something.
    moments : bool, default=False
        Whether the numbers are moments: seconds since 1970 (UTC).
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
        """A cell as text, empty where it is missing."""
        return Column(self.values[row : row + 1], self.texts, moments=self.moments).cells()[0]

    def cells(self) -> list[str]:
        """All cells as text."""
        values = self.values.tolist()
        if self.texts is None:
            return [moment_text(v) if self.moments else number_text(v) for v in values]
        if len(values) == 1:
            return [self.texts[values[0]] if values[0] >= 0 else ""]
        words = [*self.texts, ""]
        return [words[code] for code in values]

    def as_text(self) -> Column:
        """The same column with numbers written out."""
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
        Where it came from, for messages.
    notes : tuple of str
        What the user should know about how it was read.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: str = "the table"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = set(map(attrgetter("values.size"), self.columns))
        if len(sizes) > 1:
            raise TableError(f"{self.source} has columns of different lengths: {sorted(sizes)}")

    @cached_property
    def _by_name(self) -> dict[str, Column]:
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

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without some columns."""
        kept = dict(self._by_name)
        for name in names:
            kept.pop(name, None)
        return Table(tuple(kept), tuple(kept.values()), self.source, self.notes)


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns: a data frame, a mapping of names, or a Table.

    Parameters
    ----------
    X : object
        Anything. No library is imported to find out.

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
    """Many texts in an Arrow array, read as a sequence of Python strings.

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


def intern_texts(cells: Iterable[Any], *, verbatim: bool = False) -> tuple[NDArray[Any], list[str]]:
    """Number the different texts of some cells.

    Parameters
    ----------
    cells : iterable
        Texts; None and other objects are taken by their text.
    verbatim : bool, default=False
        Whether to keep white space around a text.

    Returns
    -------
    codes : ndarray of int8, int16 or int32
        Which text each cell has, -1 where it is missing.
    texts : list of str
        The different texts, in order of appearance.
    """
    index: dict[Any, int] = {}
    raw = np.fromiter((index.setdefault(cell, len(index)) for cell in cells), dtype=np.int32)
    texts: dict[str, int] = {}
    codes = np.empty(len(index), dtype=np.int32)
    for i, cell in enumerate(index):
        text = text_of(cell)
        if is_missing_text(text):
            codes[i] = -1
        else:
            codes[i] = texts.setdefault(text if verbatim else text.strip(), len(texts))
    return codes[raw].astype(np.min_scalar_type(-len(texts) - 2), copy=False), list(texts)


def intern_arrow(column: Any) -> tuple[NDArray[Any], Sequence[str]]:
    """Number the different texts of an Arrow column of strings, as :func:`intern_texts` does."""
    return merge_dictionaries([clean_texts(cells).dictionary_encode() for cells in column.chunks])


def clean_texts(cells: Any, *, verbatim: bool = False) -> Any:
    """Arrow strings, null where missing, without white space around them unless `verbatim`."""
    pc = require("pyarrow.compute", "tables")
    trimmed = pc.utf8_trim_whitespace(cells)
    words = require("pyarrow", "tables").array(sorted(MISSING), cells.type)
    missing = pc.is_in(pc.utf8_lower(trimmed), value_set=words)
    return pc.if_else(missing, None, cells if verbatim else trimmed)


def merge_dictionaries(parts: list[Any]) -> tuple[NDArray[Any], Sequence[str]]:
    """Codes and texts of Arrow arrays with a dictionary each; null is -1."""
    if not parts:
        return np.empty(0, dtype=np.int8), []
    arrow = require("pyarrow", "tables")
    whole = arrow.chunked_array(parts).unify_dictionaries().combine_chunks()
    words = whole.dictionary
    texts = words.to_pylist() if len(words) <= MAX_TEXT_LIST else ArrowTexts(words)
    codes = np.array(whole.indices.fill_null(-1))
    return codes.astype(np.min_scalar_type(-len(texts) - 2), copy=False), texts


def text_of(cell: Any) -> str:
    """Text of one cell of a data frame; empty where it is missing."""
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell:  # NaN and NaT are not themselves
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return number_text(cell) if isinstance(cell, float) else str(cell)


def number_text(value: float) -> str:
    """A number as text: whole ones without a point, NaN empty."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


def moment_text(seconds: float) -> str:
    """A moment as text: a date alone at midnight, NaN empty."""
    if seconds != seconds:
        return ""
    text = str(np.datetime64(round(seconds * 1e6), "us"))
    return text.removesuffix(".000000").removesuffix("T00:00:00")
