"""A table: named columns of numbers, moments or texts, from wherever it came.

Texts are kept once: a column holds the different texts and, per row, which one it is. What is
decided about a column (is it numbers written with commas? dates?) is then decided on the different
texts, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name
from .texts import code_texts, number_text
from .words import shown

__all__ = ["Column", "Table", "TableError"]


class TableError(ValueError):
    """A table that cannot be read or used, with the file, and the row or the column."""


@dataclass(frozen=True)
class Column:
    """One column.

    Parameters
    ----------
    values : ndarray
        float64, NaN where missing; or, with `texts`, small integers: which text, -1 where missing.
    texts : sequence of str, optional
        The different texts, in order of appearance (in their own order if `ordered`).
    ordered : bool, default=False
        Whether the order of the texts means something.
    moments : bool, default=False
        Whether the numbers are moments: seconds since 1970 (UTC).
    declared : bool, default=False
        Whether the texts were declared to be categories where they came from.
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
        value = self.values[row]
        if self.texts is not None:
            return "" if value < 0 else self.texts[value]
        if self.moments:
            return "" if np.isnan(value) else moment_text(float(value))
        return number_text(float(value))

    def cells(self) -> list[str]:
        """All cells as text."""
        if self.texts is not None:
            words = [*self.texts, ""]
            return [words[code] for code in self.values.tolist()]
        if self.moments:
            return ["" if v != v else moment_text(v) for v in self.values.tolist()]
        return [number_text(v) for v in self.values.tolist()]

    def as_text(self) -> Column:
        """The same column with numbers written out."""
        return self if self.texts is not None else Column(*code_texts(self.cells()))


def moment_text(seconds: float) -> str:
    """A moment as text."""
    moment = np.datetime64(round(seconds * 1e6), "us")
    text = str(moment)
    return text[:10] if text.endswith("T00:00:00.000000") else text.removesuffix(".000000")


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
        What was found while reading that the user should know.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: str = "the table"
    notes: tuple[str, ...] = ()
    _places: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._places.update({name: i for i, name in enumerate(self.names)})
        sizes = {len(column) for column in self.columns}
        if len(sizes) > 1:
            raise TableError(f"{self.source} has columns of different lengths: {sorted(sizes)}")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.names)

    def column(self, name: str, what: str = "column") -> Column:
        """Return a column by its name, or say which name is nearest."""
        place = self._places.get(name)
        if place is None:
            raise TableError(
                f"{self.source} has no {what} {shown(name)}; "
                f"{nearest_name(name, [n[:60] for n in self.names[:1000]])}"
            )
        return self.columns[place]

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without some columns."""
        left_out = set(names)
        keep = [i for i, name in enumerate(self.names) if name not in left_out]
        return Table(
            tuple(self.names[i] for i in keep),
            tuple(self.columns[i] for i in keep),
            self.source,
            self.notes,
        )
