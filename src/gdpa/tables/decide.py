"""What a column is: number, category, scale, text, date, identifier or nothing to learn from.

The same rules for files and data frames; every decision comes with its reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import dates
from .numbers import FormatError, NumberFormat, find_format, read_numbers, unit_in_name
from .table import Column, TableError
from .words import looks_like_a_date_name, named_like_an_id, scale_order, shown

__all__ = ["KINDS", "Reading", "decide", "interpret"]

KINDS = ("number", "category", "text", "date", "drop")
MOSTLY = 0.9  # a text column of which this share are numbers is a numeric column with errors
LONG_RUN = 1000  # ... and so is one that begins with so many numbers
FEW = 20  # different texts that are surely categories, numbers among them or not
TIME_NAMES = re.compile(r"year|date|time|age|day|month|week|hour|stamp", re.IGNORECASE)
CODE = re.compile(r"(?:[A-Za-z]*[-_/#. ]?\d+)(?:[-_/.][A-Za-z0-9]+)*|[0-9a-fA-F-]{16,}")


@dataclass(frozen=True)
class Reading:
    """How a column is taken.

    Parameters
    ----------
    kind : {"number", "ordered", "category", "text", "date", "drop"}
        As what.
    reason : str
        Why, in words; empty where it is plain to see.
    format : NumberFormat or str or None
        How its texts write numbers or dates.
    ranks : tuple of str
        The words of an ordered column, in order.
    notes : tuple of str
        What should be said aloud.
    """

    kind: str
    reason: str = ""
    format: Any = None
    ranks: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def decide(
    name: str,
    column: Column,
    *,
    wanted: str | None,
    max_categories: int,
    source: str,
    comma: bool = False,
) -> Reading:
    """Decide what a column is.

    Parameters
    ----------
    name : str
        Its name.
    column : Column
        Its cells.
    wanted : {"number", "category", "text", "date", "drop"} or None
        What the user says it is.
    max_categories : int
        Most different texts of a category column.
    source : str
        For messages.
    comma : bool, default=False
        Whether other columns of the table have decimal commas.

    Returns
    -------
    Reading
        The decision.

    Raises
    ------
    TableError
        If most cells say one thing and some contradict it, or the user's word cannot be kept.
    """
    if wanted == "drop":
        return Reading("drop", "as asked")
    where = f"{source}, column {shown(name)}"
    if wanted == "category":
        return Reading("ordered" if column.ordered else "category", "as asked", ranks=_own(column))
    if wanted == "text":
        return Reading("text", "as asked")
    if column.missing.all():
        if wanted is not None:
            raise TableError(f"{where}: no cell has a value; it cannot be a {wanted}")
        return Reading("drop", "empty")
    if column.texts is None:
        return _numbers(name, column, wanted, where, max_categories)
    if wanted == "number":
        return _as_numbers(column, where, comma)
    if wanted == "date":
        return _as_dates(column, where)
    return _texts(name, column, where, max_categories, comma)


def interpret(reading: Reading, column: Column, where: str, rows: bool = True) -> NDArray[Any]:
    """Cells of a number or date column as numbers, NaN where missing.

    Parameters
    ----------
    reading : Reading
        What was decided about the column.
    column : Column
        Cells, perhaps of later rows.
    where : str
        For messages.
    rows : bool, default=True
        Whether a cell that cannot be read is an error (else it is NaN).

    Returns
    -------
    ndarray of float64
        Numbers, or seconds since 1970.

    Raises
    ------
    TableError
        If a cell is neither missing nor a finite number (a date).
    """
    date = reading.kind == "date"
    if column.texts is None:
        values = column.values
        if date and not column.moments:
            values = _of_texts(column.as_text(), reading, where)
        elif not date and column.moments:
            raise TableError(f"{where}: these are dates, numbers are expected")
    else:
        values = _of_texts(column, reading, where)
    if rows and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise TableError(
            f"{where}, row {row + 1}: the value {column.cell(row)[:40]!r} is infinite, not a "
            "finite number"
        )
    return np.asarray(values)


def _of_texts(column: Column, reading: Reading, where: str) -> NDArray[np.float64]:
    assert column.texts is not None
    if reading.kind == "date":
        known = dates.read_dates(column.texts, reading.format or "iso")
    else:
        known = read_numbers(column.texts, reading.format or NumberFormat())
    bad = np.flatnonzero(np.isnan(known))
    if bad.size:
        row = int(np.flatnonzero(np.isin(column.values, bad))[0])
        what = "date" if reading.kind == "date" else "finite number"
        raise TableError(f"{where}, row {row + 1}: {column.cell(row)[:60]!r} is not a {what}")
    known = np.append(known, np.nan)
    return np.asarray(known[column.values])


def _own(column: Column) -> tuple[str, ...]:
    return tuple(column.texts or ()) if column.ordered else ()


# -- columns that came as numbers -------------------------------------------------------------


def _numbers(
    name: str, column: Column, wanted: str | None, where: str, max_categories: int
) -> Reading:
    values = column.values
    if column.moments:
        if wanted == "number":
            raise TableError(f"{where}: these are dates; they can be date, category, text or drop")
        return _unless_constant(Reading("date"), values)
    if wanted == "date" or (
        wanted is None
        and looks_like_a_date_name(name)
        and float(np.nanmin(values)) >= 19000101
        and float(np.nanmax(values)) <= 20991231
    ):
        reading = Reading("date", "as asked" if wanted else "named and written so", "compact")
        try:
            interpret(reading, column, where)
        except TableError:
            if wanted:
                raise
        else:
            return _unless_constant(reading, values)
    format = _with_unit(NumberFormat(), name)
    reading = Reading("number", "as asked" if wanted else "", format)
    if wanted is not None:
        return reading
    return _unless_identifier(reading, name, values, max_categories)


def _with_unit(format: NumberFormat, name: str) -> NumberFormat:
    """The format, with the unit of the header where the cells have none: later cells may."""
    return format if format.unit else replace(format, unit=unit_in_name(name))


def _unless_identifier(
    reading: Reading, name: str, values: NDArray[Any], max_categories: int
) -> Reading:
    if not np.isnan(values).any() and _whole(values):
        reason, kind = _identifier_numbers(name, values, max_categories)
        if kind:
            return Reading(kind, reason)
    return _unless_constant(reading, values)


def _whole(values: NDArray[Any]) -> bool:
    """Whether all are finite whole numbers; mostly the first few tell."""
    return all(
        bool(np.isfinite(part).all()) and bool((np.mod(part, 1) == 0).all())
        for part in (values[:1000], values[1000:])
    )


def _unless_constant(reading: Reading, values: NDArray[Any]) -> Reading:
    present = values[~np.isnan(values)]
    if present.size < values.size or present.min() < present.max():
        return reading
    return Reading("drop", "constant")


def _identifier_numbers(name: str, values: NDArray[Any], max_categories: int) -> tuple[str, str]:
    """Why whole numbers are an identifier, and what becomes of them; empty if they are none."""
    n = values.size
    named = named_like_an_id(name)
    if TIME_NAMES.search(name) and not named:
        return "", ""
    if float(np.abs(values).max()) > 2.0**53:
        return "", ""  # whole only because floating point has no fractions there
    steps = np.diff(values)
    in_order = n >= 20 and (bool((steps > 0).all()) or bool((steps < 0).all()))
    if in_order and bool((steps == steps[0]).all()):
        return "numbers the rows", "drop"
    reach = float(values.max() - values.min()) + 1.0
    # Among measured whole numbers some agree by chance; if none do, they were given out.
    if n >= 20 and n * n > 30.0 * reach and (in_order or np.unique(values).size == n):
        return "identifier: all different, where chance would repeat some", "drop"
    if named:
        different = np.unique(values).size
        if 2 * different > n or different > max_categories:
            return "identifier by its name", "drop"
        return "identifiers that repeat: their order means nothing", "category"
    return "", ""


# -- columns that came as texts ---------------------------------------------------------------


def _texts(name: str, column: Column, where: str, max_categories: int, comma: bool) -> Reading:
    assert column.texts is not None
    texts = column.texts
    gaps = bool(column.missing.any())
    if len(texts) == 1 and not gaps:
        return Reading("drop", "constant")
    if column.ordered:
        return Reading("ordered", "an ordered category", ranks=_own(column))
    if not column.declared:
        reading = _numeric_texts(name, column, where, max_categories, comma)
        reading = reading or _date_texts(column, where)
        if reading is not None:
            return reading
    present = int((column.values >= 0).sum())
    if named_like_an_id(name) and (2 * len(texts) > present or len(texts) > max_categories):
        return Reading("drop", "identifier by its name")
    if len(texts) == present >= 20 and _code_like(texts):
        return Reading("drop", "identifier: a different code in every row")
    if len(texts) <= max_categories and (2 * len(texts) <= present or len(texts) <= 2):
        order = scale_order(texts)
        if order is not None:
            ranked = tuple(text for _, text in sorted(zip(order, texts, strict=True)))
            listed = " < ".join(ranked if len(ranked) <= 6 else (*ranked[:3], "...", ranked[-1]))
            return Reading("ordered", f"a scale: {listed[:120]}", ranks=ranked)
        return Reading("category")
    return Reading("text", f"{len(texts):,} different texts")


def _code_like(texts: Sequence[str]) -> bool:
    step = max(1, len(texts) // 500)
    sample = texts[::step]
    return sum(CODE.fullmatch(t) is not None for t in sample) >= MOSTLY * len(sample)


def _numeric_texts(
    name: str, column: Column, where: str, max_categories: int, comma: bool
) -> Reading | None:
    assert column.texts is not None
    texts = column.texts
    try:
        format, count = find_format(texts, comma=comma)
    except FormatError as error:
        if error.count < MOSTLY * len(texts):
            return None
        row = int(np.flatnonzero(column.values == error.place)[0])
        raise TableError(
            f"{where}, row {row + 1}: {error}; correct it, or say --column NAME=text or "
            "NAME=drop (columns={...} in Python)"
        ) from error
    if count == 0:
        return None
    known = read_numbers(texts, format)
    good = ~np.isnan(known)
    if not good.all():
        cells = good[column.values] & (column.values >= 0)
        wrong = ~cells & (column.values >= 0)
        first = int(np.flatnonzero(wrong)[0])
        share = cells.sum() / max(1, int((column.values >= 0).sum()))
        few = len(texts) <= FEW and 3 * len(texts) <= int((column.values >= 0).sum())
        if not few and (share >= MOSTLY or int(cells[:first].sum()) >= LONG_RUN):
            raise TableError(
                f"{where}: {int(cells.sum())} cells are numbers, but row {first + 1} has "
                f"{column.cell(first)[:60]!r}; correct it, leave it empty, or say --column "
                "NAME=text, NAME=category or NAME=drop (columns={...} in Python)"
            )
        return None
    notes: tuple[str, ...] = ()
    words = format.words()
    format = _with_unit(format, name)
    if not format.sure:
        sample = next(t for t, v in zip(texts, known, strict=True) if v % 1 or abs(v) >= 1000)
        notes = (f"{sample!r} is taken as {known[texts.index(sample)]:g}",)
    values = np.append(known, np.nan)[column.values]
    reading = Reading("number", words, format, notes=notes)
    return _unless_identifier(reading, name, values, max_categories)


def _date_texts(column: Column, where: str) -> Reading | None:
    assert column.texts is not None
    format, sure, count = dates.find_date_format(column.texts)
    if not format:
        return None
    known = dates.read_dates(column.texts, format)
    good = ~np.isnan(known)
    if not good.all():
        if max(int(good.sum()), count) < MOSTLY * good.size:
            return None
        row = int(np.flatnonzero(np.isin(column.values, np.flatnonzero(~good)))[0])
        raise TableError(
            f"{where}: {int(good.sum())} of {good.size} texts are dates ({format}), but row "
            f"{row + 1} has {column.cell(row)[:60]!r}; correct it, leave it empty, or say --column "
            "NAME=text, NAME=category or NAME=drop (columns={...} in Python)"
        )
    notes = () if sure else (f"{column.texts[0]!r} is read with the month first",)
    return Reading("date", "" if format == "iso" else format, format, notes=notes)


def _as_numbers(column: Column, where: str, comma: bool) -> Reading:
    assert column.texts is not None
    try:
        format, _ = find_format(column.texts, comma=comma)
    except FormatError as error:
        row = int(np.flatnonzero(column.values == error.place)[0])
        raise TableError(f"{where}, row {row + 1}: {error}") from error
    reading = Reading("number", "as asked", format)
    interpret(reading, column, where)
    return reading


def _as_dates(column: Column, where: str) -> Reading:
    assert column.texts is not None
    format, _, _ = dates.find_date_format(column.texts)
    if not format and all(dates.COMPACT.fullmatch(t) for t in column.texts[:100]):
        format = "compact"
    reading = Reading("date", "as asked", format or "iso")
    interpret(reading, column, where)
    return reading
