"""Parse numbers, dates and scales in text cells: 1.234,5, 45 %, (12), 80 kg, 5.1.2020, 65+.

The number format (decimal mark, thousands separator, currency, unit) or date format (order of day
and month) of a column is detected from all of its texts and kept for new rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ..arrays import FloatArray
from ..codec import storable

# -- numbers ----------------------------------------------------------------------------------

# The first line of the file lists currencies, which may stand before a number, the others units.
_CURRENCY, *_OTHERS = Path(__file__).with_name("units.txt").read_text("utf-8").splitlines()
_UNIT = "|".join(["%|‰", _CURRENCY, *_OTHERS])
_NUMBER_CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+]?)\s*(?P<before>{_CURRENCY})?\s*(?P<sign2>[-+]?)\s*"
    r"(?P<digits>\d[\d.,'’ ]*|[.,]\d+)(?P<power>[eE][-+]?\d+)?\s*"
    rf"(?P<after>{_UNIT})?\s*(?P<close>\))?"
)
_PLAIN_SIGNS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "’": "'"})
_GROUPED = r"\d{1,3}(?P<thousands>[,.' ])(?:\d{2,3}(?P=thousands))*\d{3}"
_DIGITS = re.compile(
    rf"(?P<head>\d+|{_GROUPED})?(?:(?!(?P=thousands))(?P<decimal>[.,])(?P<tail>\d*))?"
)


@storable("number-format")
@dataclass(frozen=True)
class NumberFormat:
    """Number format of a column.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal mark.
    thousands : str, default=""
        Characters that separate thousands.
    unit : str, default=""
        Currency sign, percent sign or unit in the cells.
    certain : bool, default=True
        Whether the format is unambiguous; ``1,234`` alone is ambiguous.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    certain: bool = True

    def __post_init__(self) -> None:
        if self.decimal not in (".", ",") or not set(self.thousands) <= set(",.' "):
            raise ValueError(f"decimal={self.decimal!r} and thousands={self.thousands!r}")

    @property
    def is_plain(self) -> bool:
        """Whether the numbers have a decimal point and no thousands separator."""
        return self.decimal == "." and not self.thousands

    def describe(self) -> str:
        """Describe the format; empty for plain numbers."""
        parts = ["decimal comma"] if self.decimal == "," else []
        parts += [f"thousands separator {self.thousands!r}"] if self.thousands else []
        parts += [f"unit {self.unit}"] if self.unit else []
        return ", ".join(parts)


class FormatError(ValueError):
    """Inconsistent formats; `place` is the index of the first such text, `count` are numbers."""

    def __init__(self, message: str, place: int, count: int) -> None:
        super().__init__(message)
        self.place = place
        self.count = count


def unit_in_name(name: str) -> str:
    """Return the unit in brackets at the end of a column name: kg for "weight (kg)", or ""."""
    match = re.search(rf"[(\[]\s*({_UNIT})\s*[)\]]\s*$", name)
    return match.group(1) if match is not None else ""


def plain_number(text: str) -> float | None:
    """Parse a number with a decimal point; return None for other texts."""
    try:
        value = float(text)
    except ValueError:
        return None
    return None if "_" in text else value


def _split_number(text: str) -> tuple[str, str, str] | None:
    """Split a text into signed digits, exponent and unit; return None if it is not a number."""
    match = _NUMBER_CELL.fullmatch(text.translate(_PLAIN_SIGNS).strip())
    if match is None:
        return None
    opened, sign, before, sign2, digits, power, after, closed = match.groups()
    if bool(opened) != bool(closed) or (sign and sign2) or (before and after):
        return None
    minus = "-" if bool(opened) != ((sign or sign2) == "-") else ""
    return minus + digits.strip(), power or "", before or after or ""


def find_number_format(texts: Sequence[str], *, comma: bool = False) -> tuple[NumberFormat, int]:
    """Detect the number format of texts.

    Parameters
    ----------
    texts : sequence of str
        The distinct texts of a column.
    comma : bool, default=False
        Whether other columns of the table have decimal commas. Then ``1,234`` has one, too.

    Returns
    -------
    format : NumberFormat
        The format.
    count : int
        Number of texts that are numbers.

    Raises
    ------
    FormatError
        If decimal marks or units are mixed.
    """
    for text in texts[:: max(1, len(texts) // 200)]:
        if plain_number(text) is not None or _split_number(text) is not None:
            break
    else:
        return NumberFormat(), 0  # a sample is enough for a column of sentences
    count = 0
    marks: dict[str, tuple[int, str]] = {}  # decimal mark -> a text that is unambiguous
    units: dict[str, tuple[int, str]] = {}
    groups: set[str] = set()
    either = ""  # the mark of ambiguous texts such as 1,234
    for place, text in enumerate(texts):
        plain = "," not in text and plain_number(text) is not None
        parts = (text.lstrip("+-"), "", "") if plain else _split_number(text)
        if parts is None:
            continue
        digits, _, unit = parts
        if unit:
            units.setdefault(unit, (place, text))
        match = _DIGITS.fullmatch(digits.lstrip("-"))
        if match is not None:
            head, thousands, decimal, tail = match.groups("")
        elif plain:  # such as 1.5e3
            head = ""
            thousands = ""
            decimal = "." * ("." in text)
            tail = ""
        else:
            continue
        count += 1
        groups |= set(thousands)
        if decimal and not thousands and len(tail) == 3 and re.fullmatch("[1-9].?.?", head):
            either = either or decimal
        elif decimal or thousands in (".", ","):
            marks.setdefault(decimal or ("," if thousands == "." else "."), (place, text))
    for what, proofs in (("units", units), ("decimal marks", marks)):
        if len(proofs) > 1:
            (_, first), (place, text), *_ = sorted(proofs.values())
            raise FormatError(f"{what} are mixed: {first!r} and {text!r}", place, count)
    # If another text is 5.5, the comma of 1,234 can only separate thousands.
    certain = bool(marks) or not either or (either == "." and not comma)
    decimal = next(iter(marks), "," if comma and either else ".")
    if either and either != decimal:
        groups.add(either)
    return NumberFormat(decimal, "".join(sorted(groups)), next(iter(units), ""), certain), count


def parse_numbers(texts: Sequence[str], format: NumberFormat) -> FloatArray:
    """Parse texts in a number format; NaN for texts that are not numbers."""
    return np.fromiter((_parse_number(text, format) for text in texts), np.float64, len(texts))


def _parse_number(text: str, format: NumberFormat) -> float:
    """Parse one number; NaN if it does not have the format."""
    value = plain_number(text) if format.is_plain else None
    parts = _split_number(text) if value is None else None
    if parts is None or parts[2] not in ("", format.unit):
        return np.nan if value is None else value
    digits, power, _ = parts
    head, _, tail = digits.lstrip("-").partition(format.decimal)
    grouped = re.fullmatch(_GROUPED, head)
    if grouped is not None and grouped["thousands"] in format.thousands:
        head = head.replace(grouped["thousands"], "")
    if not (head + tail).isdecimal():
        return np.nan
    return float(f"{'-' * digits.startswith('-')}{head}.{tail}{power}")


# -- dates ------------------------------------------------------------------------------------

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_CLOCK = r"(?:[T ,]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp][Mm])?(?:\s*(?:Z|UTC|GMT))?)?"
_NUMERIC_DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})" + _CLOCK)
_NAMED_DATE = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?(?:(\d{1,2})(?:st|nd|rd|th)?[\s\-]+([A-Za-z]{3,9})\.?|"
    r"([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?),?[\s\-]+(\d{4})" + _CLOCK
)
CYCLES = {"year": 365.2425 * 86400.0, "week": 7 * 86400.0, "day": 86400.0}


def _split_date(text: str) -> tuple[tuple[int, int, int], str, list[str | None]] | None:
    """Split a date into three numbers, their order if it is known, and the time."""
    match = _NUMERIC_DATE.fullmatch(text)
    if match is not None:
        a, mark, b, c, *clock = match.groups()
        if len(a) == 4 and len(c) <= 2:
            return (int(a), int(b), int(c)), "iso", clock
        if len(a) <= 2 and len(c) in (2, 4):
            year = int(c) if len(c) == 4 else 2000 + int(c) - 100 * (int(c) >= 70)
            return (int(a), int(b), year), "day-first" if mark == "." else "", clock
        return None
    match = _NAMED_DATE.fullmatch(text)
    if match is None:
        return None
    day, month, month2, day2, year_text, *clock = match.groups()
    word = (month or month2).lower()
    for number, name in enumerate(_MONTHS, 1):
        if word in (name, name[:3], name[:4]):
            return (int(year_text), number, int(day or day2)), "iso", clock
    return None


def find_date_format(texts: Sequence[str]) -> tuple[str, bool, int]:
    """Detect the date format of texts.

    Parameters
    ----------
    texts : sequence of str
        The distinct texts of a column.

    Returns
    -------
    format : str
        "iso" (year first, or the month as a word), "day-first" or "month-first"; empty if the
        texts are not dates.
    certain : bool
        Whether the format is unambiguous; 03/04/2020 alone is ambiguous.
    count : int
        Number of texts that look like a date.
    """
    sample = texts[:: max(1, len(texts) // 40)]
    if 2 * sum(map(_looks_like_date, sample)) < len(sample):
        return "", True, 0
    count = first = second = iso = points = 0
    for text in texts:
        parts = _split_date(text)
        if parts is None:
            count += _looks_like_date(text)
            iso += 1
            continue
        (a, b, _), order, _ = parts
        count += 1
        iso += order == "iso"
        points += order == "day-first"
        first += order != "iso" and a > 12
        second += order != "iso" and b > 12
    if iso == len(texts) or (first + second + points == 0 and iso > count / 2):
        return "iso", True, count
    if first >= second and (first or points):
        return "day-first", True, count
    return "month-first", second > 0, count


def _looks_like_date(text: str) -> bool:
    """Return whether a text has the form of a date in any format."""
    if _split_date(text) is not None:
        return True
    if len(text) < 8 or not text[:4].isdigit() or text.isdigit():
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def parse_dates(texts: Sequence[str], format: str) -> FloatArray:
    """Parse dates as seconds since 1970 (UTC); NaN for texts that do not have the format."""
    return np.fromiter((_parse_date(text, format) for text in texts), np.float64, len(texts))


def is_compact_date(text: str) -> bool:
    """Return whether a text has the form 20200131."""
    return re.fullmatch(r"(?:19|20)\d{6}", text) is not None


def _seconds(moment: datetime) -> float:
    """Return seconds since 1970; a datetime without a time zone is taken as UTC."""
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _parse_date(text: str, format: str) -> float:
    """Parse one date; NaN if it does not have the format."""
    if format == "compact":
        if not is_compact_date(text):
            return np.nan
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    try:
        return _seconds(datetime.fromisoformat(text))
    except ValueError:
        pass
    parts = _split_date(text)
    if parts is None:
        return np.nan
    (a, b, c), order, (hour, minute, second, half) = parts
    date = (a, b, c) if order == "iso" else (c, a, b) if format == "month-first" else (c, b, a)
    try:
        seconds = _seconds(datetime(*date))
    except ValueError:
        return np.nan
    hours = int(hour or 0)
    minutes = int(minute or 0)
    rest = float(second or 0)
    if half:
        hours = hours % 12 + 12 * (half.lower() == "pm")
    if hours > 24 or minutes > 59 or rest >= 61:
        return np.nan
    return seconds + 3600.0 * hours + 60.0 * minutes + rest


def find_cycles(seconds: FloatArray) -> tuple[str, ...]:
    """Find the cycles in which a column of datetimes varies.

    Parameters
    ----------
    seconds : ndarray
        Datetimes in seconds since 1970, none missing.

    Returns
    -------
    tuple of str
        Those of "year", "week" and "day" that the datetimes span, unless all of them fall at the
        same point of the cycle. Yearly and monthly dates have no weekly cycle.
    """
    if seconds.size == 0:
        return ()
    span = float(seconds.max() - seconds.min())
    sample = seconds[:: max(1, seconds.size // 10_000)]
    found = []
    for name, length in CYCLES.items():
        place = np.sort(np.mod(sample, length))
        # The longest part of the cycle without a datetime, across its end too.
        empty = max(float(np.diff(place).max(initial=0.0)), float(place[0] - place[-1]) + length)
        if span >= length and length - empty > 0.02 * length:
            found.append(name)
    days_only = span < 14 * 86400.0 and not np.mod(seconds, 86400.0).any()
    if "week" in found and (days_only or _same_day_of_month(sample)):
        found.remove("week")
    return tuple(found)


def _same_day_of_month(seconds: FloatArray) -> bool:
    """Return whether all dates are on the same day of the month, or all on the last."""
    day = np.floor(seconds / 86400.0).astype("datetime64[D]")
    first, last = (d - d.astype("datetime64[M]").astype("datetime64[D]") for d in (day, day + 1))
    return bool((first == first[0]).all() or (last == last[0]).all())


def cycle_points(seconds: FloatArray, name: str) -> FloatArray:
    """Return sine and cosine of the position in a cycle, of shape (n, 2)."""
    # 1970 began on a Thursday; shifted, weeks begin on Monday.
    shift = 3 * 86400.0 if name == "week" else 0.0
    angle = 2.0 * np.pi * np.mod(seconds + shift, CYCLES[name]) / CYCLES[name]
    return np.column_stack([np.sin(angle), np.cos(angle)])


# -- scales ---------------------------------------------------------------------------------

_ABBREVIATIONS = {"med": "medium", "mod": "moderate", "avg": "average", "norm": "normal"}
_ABBREVIATIONS |= {"lt": "less than", "gt": "greater than", "hi": "high", "lo": "low"}


def _spelled_out(word: str) -> str:
    """Return a word in lower case, without abbreviations: ``v_high`` and ``vhigh`` are very high.

    Hyphens and underscores count as spaces.
    """
    plain = re.sub(r"[\s_\-]+", " ", word.strip().lower())
    steps = "low|high|good|bad|poor|small|large|big|short|long|slow|fast|light|heavy"
    plain = re.sub(rf"^v\.?\s?(?={steps})", "very ", plain)
    return " ".join(_ABBREVIATIONS.get(part, part) for part in plain.split(" "))


def _read_scales() -> list[list[str]]:
    """Read the known scales; every line is one scale in ascending order."""
    lines = Path(__file__).with_name("scales.txt").read_text("utf-8").splitlines()
    return [[_spelled_out(step) for step in line.split("<")] for line in lines]


_SCALES = _read_scales()


def order_on_scale(words: Sequence[str]) -> tuple[str, ...] | None:
    """Sort words that belong to a scale, such as low, medium, high.

    Parameters
    ----------
    words : sequence of str
        The distinct texts of a column.

    Returns
    -------
    tuple of str or None
        The words in order; None if they are on no known scale. Ranges (``10-20``, ``under 18``,
        ``65+``, ``5more``) are a scale, too, and so are numbers with ``more`` as the last step.
    """
    if len(words) < 3:
        return None  # two values need no order
    plain = [_spelled_out(word) for word in words]
    for steps in _SCALES:
        if set(plain) <= set(steps) and len(set(plain)) == len(plain):
            return tuple(
                word for _, word in sorted(zip(map(steps.index, plain), words, strict=True))
            )
    ends = [_range_ends(word.strip().lower()) for word in words]
    if None in ends or len(set(ends)) != len(ends):
        return None
    return tuple(word for _, word in sorted(zip(ends, words, strict=True)))


def _range_ends(word: str) -> tuple[float, float] | None:
    """Parse a range of numbers, or ``more`` (than any of them); return None for other words."""
    if word in ("more", "or more", "and more"):
        return np.inf, np.inf
    number = r"\s*(-?\d+(?:\.\d+)?)\s*"
    forms = (
        rf"()(?:<=?|under|below|less than|up to){number}[\])]?",
        rf"[\[(]?{number}(?:-|–|to|,|\.\.){number}[\])]?",
        rf"[\[(]?{number}(?:\+|and over|and more|or more|or over|more|plus)()",
        rf"(?:>=?|over|above|more than){number}()",
        rf"{number}()[\])]?",
    )
    for form in forms:
        match = re.fullmatch(form, word)
        if match is not None:
            low, high = match.groups()
            ends = float(low or "-inf"), float(high or (low if form is forms[-1] else "inf"))
            return ends if ends[0] <= ends[1] else None
    return None
