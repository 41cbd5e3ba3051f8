"""Dates and times: from text to seconds, and from seconds to features.

A moment becomes its place in time and its place in the cycles that the column goes through: the
year, the week, the day, each as a point on a circle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CYCLES", "cycle_points", "find_cycles", "find_date_format", "read_dates"]

NAMES = "january february march april may june july august september october november december"
MONTHS = {word[:size]: i + 1 for i, word in enumerate(NAMES.split()) for size in (3, 4, len(word))}
CLOCK = r"(?:[T ,]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp][Mm])?(?:\s*(Z|UTC|GMT))?)?"
THREE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})" + CLOCK)
NAMED = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?(?:(\d{1,2})(?:st|nd|rd|th)?[\s\-]+([A-Za-z]{3,9})\.?|"
    r"([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?),?[\s\-]+(\d{4})" + CLOCK
)
COMPACT = re.compile(r"(?:19|20)\d{6}")
ORDERS = ("iso", "day-first", "month-first", "compact")
CYCLES = {"year": 365.2425 * 86400.0, "week": 7 * 86400.0, "day": 86400.0}
EPOCH = datetime(1970, 1, 1)


def _seconds(moment: datetime) -> float:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - EPOCH).total_seconds()


def _parts(text: str) -> tuple[tuple[int, int, int], str, tuple[Any, ...]] | None:
    """Three numbers, what is known of their order, and the clock."""
    match = THREE.fullmatch(text)
    if match is not None:
        a, mark, b, c, *clock = match.groups()
        if len(a) == 4 and len(c) <= 2:
            return (int(a), int(b), int(c)), "iso", tuple(clock)
        if len(a) <= 2 and len(c) in (2, 4):
            year = int(c) if len(c) == 4 else 2000 + int(c) - 100 * (int(c) >= 70)
            day_first = "day-first" if mark == "." else ""
            return (int(a), int(b), year), day_first, tuple(clock)
        return None
    match = NAMED.fullmatch(text)
    if match is None:
        return None
    day, month, month2, day2, year_text, *clock = match.groups()
    number = MONTHS.get((month or month2).lower())
    if number is None:
        return None
    return (int(year_text), number, int(day or day2)), "iso", tuple(clock)


def find_date_format(texts: Sequence[str]) -> tuple[str, bool, int]:
    """Find how texts write dates.

    Parameters
    ----------
    texts : list of str
        The different texts of a column.

    Returns
    -------
    format : str
        "iso" (year first, or the month by name), "day-first" or "month-first"; empty if these are
        no dates.
    sure : bool
        Whether no other reading fits: 03/04/2020 alone may be either.
    count : int
        How many texts have the form of a date.
    """
    sample = texts if len(texts) <= 40 else texts[:: len(texts) // 40]
    if 2 * sum(_has_form(text) for text in sample) < len(sample):
        return "", True, 0
    count = first = second = iso = points = 0
    for text in texts:
        parts = _parts(text)
        if parts is None:
            count += _has_form(text)
            iso += 1
            continue
        (a, b, _), order, _ = parts
        count += 1
        iso += order == "iso"
        points += order == "day-first"
        if order != "iso":
            first += a > 12
            second += b > 12
    if iso == len(texts) or (first + second + points == 0 and iso > count / 2):
        return "iso", True, count
    if first >= second and (first or points):
        return "day-first", True, count
    return "month-first", second > 0, count


def _has_form(text: str) -> bool:
    if _parts(text) is not None:
        return True
    if len(text) < 8 or not text[:4].isdigit() or text.isdigit():
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_dates(texts: Sequence[str], format: str) -> NDArray[np.float64]:
    """Texts as seconds since 1970 (UTC).

    Parameters
    ----------
    texts : list of str
        The texts.
    format : {"iso", "day-first", "month-first", "compact"}
        How they write dates.

    Returns
    -------
    ndarray of float64
        Seconds; NaN where a text is no date.
    """
    return np.fromiter((_read(text, format) for text in texts), np.float64, len(texts))


def _read(text: str, format: str) -> float:
    if format == "compact":
        if not COMPACT.fullmatch(text):
            return np.nan
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    try:
        return _seconds(datetime.fromisoformat(text))
    except ValueError:
        pass
    parts = _parts(text)
    if parts is None:
        return np.nan
    (a, b, c), order, (hour, minute, second, half, _) = parts
    if order == "iso":
        year, month, day = a, b, c
    elif format == "month-first":
        month, day, year = a, b, c
    else:
        day, month, year = a, b, c
    try:
        moment = datetime(year, month, day)
    except ValueError:
        return np.nan
    if hour is None:
        return _seconds(moment)
    hours = int(hour) % 12 + 12 * (half.lower() == "pm") if half else int(hour)
    if hours > 24 or int(minute) > 59 or float(second or 0) >= 61:
        return np.nan
    return _seconds(moment) + 3600.0 * hours + 60.0 * int(minute) + float(second or 0)


def find_cycles(seconds: NDArray[np.float64]) -> tuple[str, ...]:
    """Cycles that a column of moments goes through.

    Parameters
    ----------
    seconds : ndarray
        Moments that are present.

    Returns
    -------
    tuple of str
        Of "year", "week", "day": those that it spans and that vary in it.
    """
    if seconds.size == 0:
        return ()
    span = float(seconds.max() - seconds.min())
    found = []
    for name, length in CYCLES.items():
        place = np.mod(seconds[:: max(1, seconds.size // 10_000)], length)
        # Once around at least, and not always at the same place (all at midnight, all on Mondays).
        if span >= length and float(place.max() - place.min()) > 0.02 * length:
            if name == "week" and np.mod(seconds, 86400.0).max() == 0 and span < 14 * 86400.0:
                continue
            found.append(name)
    return tuple(found)


def cycle_points(seconds: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Points on a circle that is gone around once per cycle: sine and cosine, shape (n, 2)."""
    # 1970 began on a Thursday; from Monday on the angle of a week is easier to read.
    shift = 3 * 86400.0 if name == "week" else 0.0
    angle = 2.0 * np.pi * np.mod(seconds + shift, CYCLES[name]) / CYCLES[name]
    return np.column_stack([np.sin(angle), np.cos(angle)])
