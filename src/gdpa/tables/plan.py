"""What was done with each column: for people to read, and as plain data for a model file."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .codes import CategoryCode, Code, DateCode, NumberCode, TextCode
from .decide import Reading, interpret
from .frames import BLOCK_ROWS, row_blocks, table_of
from .ngrams import BUCKETS, TextDirections
from .numbers import NumberFormat
from .table import Column, TableError, moment_text
from .words import shown

__all__ = ["ColumnList", "ColumnPlan", "content_of", "ranks_of"]


@dataclass(frozen=True)
class ColumnPlan:
    """One column: what it is taken for, why, and how it becomes features.

    Parameters
    ----------
    name : str
        Its name.
    reading : Reading
        What was decided.
    code : NumberCode, CategoryCode, DateCode, TextCode or None
        How it becomes features; None if it is left out.
    missing : int
        Missing cells of the table fitted on.
    content : str
        What is in it, in a few words.
    """

    name: str
    reading: Reading
    code: Code | None
    missing: int
    content: str

    @property
    def kind(self) -> str:
        """number, ordered, category, text, date or "left out"."""
        return "left out" if self.code is None else self.reading.kind

    @property
    def reason(self) -> str:
        """Why, where it is not plain to see."""
        return self.reading.reason

    @property
    def n_features(self) -> int:
        """Features that it becomes."""
        return 0 if self.code is None else len(self.code.suffixes)

    @property
    def needs_text(self) -> bool:
        """Whether its numbers cannot be read without knowing how they are written."""
        if self.code is None:
            return False
        if isinstance(self.code, NumberCode):
            format = self.reading.format
            return isinstance(format, NumberFormat) and not format.plain
        return True

    def done(self) -> str:
        """What is done with it, in words."""
        if self.code is None:
            return f"left out: {self.reason}"
        if isinstance(self.code, CategoryCode):
            words = f"{len(self.code.categories)} categories"
        elif isinstance(self.code, TextCode):
            words = f"character n-grams in {self.n_features} directions"
        elif isinstance(self.code, DateCode):
            words = " and ".join(["time", *(f"{c}ly cycle" for c in self.code.cycles)])
            words = words.replace("dayly", "daily")
        else:
            words = "rank" if self.kind == "ordered" else "number"
        if isinstance(self.code, NumberCode) and self.missing:
            words += ", gaps filled and marked" if self.code.gap else ", gaps filled"
        return f"{words} ({self.reason})" if self.reason else words

    def notes(self) -> Iterable[str]:
        """What should be said aloud about it."""
        name = f"column {shown(self.name)}"
        if self.code is None:
            if self.reason != "as asked":
                yield f"{name} is left out: {self.reason}"
            return
        for note in self.reading.notes:
            yield f"{name}: {note}"
        if self.kind == "text" and self.reason != "as asked":
            yield f"{name} has {self.reason}: taken as text (character n-grams)"
        elif self.kind in ("ordered", "category") and self.reason not in ("", "as asked"):
            yield f"{name} is taken as {self.kind}: {self.reason}"
        elif self.kind == "number" and self.reason not in ("", "as asked"):
            yield f"{name}: numbers with {self.reason}"
        elif self.kind == "date":
            yield f"{name}: dates{', ' + self.reason if self.reason else ''}"
        if not self.missing:
            return
        gaps = f"{self.missing} missing cell{'s' if self.missing > 1 else ''}"
        if isinstance(self.code, NumberCode):
            middle = "the median" if self.kind == "number" else "the middle rank"
            marked = " and marked" if self.code.gap else ""
            yield f"{name}: {gaps} filled with {middle} ({self.code.fill:g}){marked}"
        elif isinstance(self.code, CategoryCode):
            are = "is" if self.missing == 1 else "are"
            yield f"{name}: {gaps} {are} a category of {'its' if are == 'is' else 'their'} own"

    def write(self, column: Column, out: NDArray[Any], where: str) -> int:
        """Write the features of a column's cells; how many have a category that is not known."""
        code = self.code
        if isinstance(code, TextCode):
            column = column.as_text()
            code.write(column.texts or [], column.values, out)
            return 0
        unknown = 0
        if isinstance(code, CategoryCode):
            cells, unknown = _places(column.as_text(), code.categories)
        elif self.reading.kind == "ordered":
            cells, unknown = ranks_of(column.as_text(), self.reading.ranks)
        else:
            cells = interpret(self.reading, column, where)
        assert code is not None
        for start in range(0, cells.size, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            code.write(cells[block], out[block])
        return unknown

    def note_unknown(self, unknown: int) -> str:
        """What the user should know about cells of a category that is not known."""
        met = "have a category not seen before"
        if self.kind == "ordered":
            met = "are not on the scale of the table fitted on"
        return f"column {shown(self.name)}: {unknown} cells {met}"

    # -- plain data ---------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """The plan as JSON can hold it."""
        reading = self.reading
        plain: dict[str, Any] = {
            "name": self.name,
            "kind": reading.kind,
            "reason": reading.reason,
            "ranks": list(reading.ranks),
            "missing": self.missing,
            "content": self.content,
        }
        if isinstance(reading.format, NumberFormat):
            f = reading.format
            plain["number_format"] = [f.decimal, f.thousands, f.unit]
        elif reading.format:
            plain["date_format"] = str(reading.format)
        code = self.code
        if isinstance(code, NumberCode):
            plain["number"] = _number(code)
        elif isinstance(code, CategoryCode):
            plain |= {"categories": list(code.categories), "height": code.height}
        elif isinstance(code, DateCode):
            plain |= {"number": _number(code.time), "cycles": list(code.cycles)}
        elif isinstance(code, TextCode):
            d = code.directions
            plain |= {
                "scale": code.scale,
                "shift": _packed(code.shift),
                "buckets": _packed(d.buckets),
                "rarity": _packed(d.rarity),
                "directions": _packed(d.directions.ravel()),
            }
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> ColumnPlan:
        """Rebuild a plan from :meth:`to_plain`; a ValueError if the data are not those of one."""
        try:
            return cls._of(plain)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise ValueError(f"not a description of a column: {str(plain)[:200]!r}") from error

    @classmethod
    def _of(cls, plain: Any) -> ColumnPlan:
        kind = plain["kind"]
        format: Any = plain.get("date_format")
        if "number_format" in plain:
            decimal, thousands, unit = (_text(t) for t in plain["number_format"])
            if decimal not in (".", ","):
                raise KeyError("decimal")
            format = NumberFormat(decimal, thousands, unit)
        code: Code | None
        if kind == "drop":
            code = None
        elif kind in ("number", "ordered"):
            code = _number_of(plain["number"])
        elif kind == "date":
            cycles = tuple(_text(c) for c in plain["cycles"])
            if not set(cycles) <= {"year", "week", "day"}:
                raise KeyError("cycles")
            code = DateCode(_number_of(plain["number"]), cycles)
        elif kind == "category":
            code = CategoryCode(_texts(plain["categories"]), _positive(plain["height"]))
            if len(set(code.categories)) != len(code.categories) or len(code.categories) < 1:
                raise KeyError("categories")
        elif kind == "text":
            code = _text_code(plain)
        else:
            raise KeyError("kind")
        reading = Reading(kind, _text(plain["reason"]), format, _texts(plain["ranks"]))
        if kind == "ordered" and len(reading.ranks) < 1:
            raise KeyError("ranks")
        return cls(
            _text(plain["name"]), reading, code, int(plain["missing"]), _text(plain["content"])
        )


def _number(code: NumberCode) -> list[Any]:
    return [code.shift, code.scale, code.fill, code.bend, code.gap]


def _number_of(values: Any) -> NumberCode:
    shift, scale, fill, bend, gap = values
    finite = np.isfinite([float(shift), float(fill), float(gap)]).all()
    if not finite or float(gap) < 0 or not isinstance(bend, bool):
        raise KeyError("number")
    return NumberCode(float(shift), _positive(scale), float(fill), bend, float(gap))


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 < float(value) < float("inf"):
        raise KeyError("scale")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise KeyError("text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise KeyError("texts")
    return tuple(_text(v) for v in values)


def _packed(array: NDArray[Any]) -> str:
    """A flat array as text."""
    kind = np.dtype("<i4" if array.dtype.kind == "i" else "<f4")
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _unpacked(text: Any, kind: str) -> NDArray[Any]:
    array = np.frombuffer(base64.b64decode(_text(text), validate=True), dtype=kind)
    if not np.isfinite(array).all():
        raise KeyError("array")
    return array


def _text_code(plain: Any) -> TextCode:
    shift = _unpacked(plain["shift"], "<f4")
    buckets, rarity = _unpacked(plain["buckets"], "<i4"), _unpacked(plain["rarity"], "<f4")
    directions = _unpacked(plain["directions"], "<f4").reshape(buckets.size, shift.size)
    in_order = bool((np.diff(buckets) > 0).all()) and 0 <= buckets.min() <= buckets.max() < BUCKETS
    if rarity.size != buckets.size or not in_order:
        raise KeyError("buckets")
    return TextCode(TextDirections(buckets, rarity, directions), shift, _positive(plain["scale"]))


class ColumnList(tuple[ColumnPlan, ...]):
    """The plans of all columns, shown as a table."""

    __slots__ = ()

    @property
    def n_features(self) -> int:
        """Features of all columns together."""
        return sum(plan.n_features for plan in self)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: the column's name, with the category or the part."""
        return [plan.name + s for plan in self if plan.code is not None for s in plan.code.suffixes]

    def encode(self, X: Any, dtype: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Encode the rows of a table.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, Table, or mapping of names to columns
            Rows of all columns in use.
        dtype : dtype
            Of the features.

        Returns
        -------
        features : ndarray of shape (n_rows, n_features)
            The features.
        notes : tuple of str
            What the user should know: categories not seen before.
        """
        n_rows, blocks = row_blocks(X)
        out = np.empty((n_rows, self.n_features), dtype=dtype)
        used = [plan for plan in self if plan.code is not None]
        unknown = [0] * len(used)
        start = 0
        for table in blocks:
            rows, j = out[start : start + table.n_rows], 0
            try:
                for k, plan in enumerate(used):
                    where = f"{table.source}, column {shown(plan.name)}"
                    part = rows[:, j : j + plan.n_features]
                    unknown[k] += plan.write(table.column(plan.name), part, where)
                    j += plan.n_features
            except TableError:
                if start:  # a row of a later block: the whole table knows its number
                    self.encode(table_of(X), dtype)
                raise
            start += table.n_rows
        counted = zip(used, unknown, strict=True)
        return out, tuple(plan.note_unknown(count) for plan, count in counted if count)

    def words(self, most: int = 6) -> str:
        """All of it in one line: the columns by what they are taken for."""
        parts = []
        for kind in ("number", "ordered", "category", "text", "date", "left out"):
            names = [plan.name[:30] for plan in self if plan.kind == kind]
            if names:
                more = f" and {len(names) - most} more" if len(names) > most else ""
                parts.append(f"{kind}: {', '.join(names[:most])}{more}")
        return "; ".join(parts)

    def _rows(self, most: int = 60) -> list[tuple[str, str, str, str]]:
        rows = [(p.name[:40], p.done()[:90], str(p.missing), p.content[:60]) for p in self[:most]]
        if len(self) > most:
            rows.append((f"... {len(self) - most} more", "", "", ""))
        return rows

    def __repr__(self) -> str:
        rows = [("column", "taken as", "missing", "content"), *self._rows()]
        widths = [max(len(row[j]) for row in rows) for j in range(4)]
        return "\n".join(
            "  ".join(repr(c)[1:-1].ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        head = "<tr><th>column<th>taken as<th>missing<th>content"
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(c)}" for c in row) for row in self._rows()
        )
        return f"<table>{head}{body}</table>"


def content_of(column: Column) -> str:
    """What is in a column, in a few words."""
    if column.texts is None:
        present = column.values[~column.missing]
        if present.size == 0:
            return "empty"
        low, high = float(present.min()), float(present.max())
        if column.moments:
            return f"{moment_text(low)} to {moment_text(high)}"
        return f"{low:.4g} to {high:.4g}, median {float(np.median(present)):.4g}"
    if not column.texts:
        return "empty"
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.texts))
    order = np.argsort(-counts, kind="stable")[:4]
    listed = ", ".join(f"{column.texts[o][:30]} ({counts[o]:,})" for o in order)
    return listed + (f" and {len(column.texts) - 4:,} more" if len(column.texts) > 4 else "")


def _places(column: Column, known: tuple[str, ...]) -> tuple[NDArray[Any], int]:
    """Place of each cell's text among known ones (-1: none), and how many cells have another."""
    assert column.texts is not None
    place = {text: i for i, text in enumerate(known)}
    table = np.array([*(place.get(t, -1) for t in column.texts), place.get("", -1)], dtype=np.intp)
    codes = table[column.values]
    return codes, int(((codes < 0) & (column.values >= 0)).sum())


def ranks_of(column: Column, words: tuple[str, ...]) -> tuple[NDArray[Any], int]:
    """Rank of each cell on a scale, NaN where missing or unknown, and how many are unknown."""
    codes, unknown = _places(column, words)
    return np.where(codes < 0, np.nan, codes.astype(np.float64)), unknown
