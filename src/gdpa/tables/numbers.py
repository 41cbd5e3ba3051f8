"""Numbers as the world writes them: 1,234.5 and 1.234,5, 45 %, 3 500 kr, (12), 80 kg.

How a column writes its numbers (decimal mark, what separates thousands, a sign of currency, a
unit) is found from all its texts together and kept, so that later rows are read the same way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FormatError", "NumberFormat", "find_format", "read_numbers", "unit_in_name"]

CURRENCY = "$€£¥₹₽₩₺₫฿₴₦₱₪¢"
CODES = (
    "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|RMB|INR|RUB|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|TRY"
    "|kr|zł|Rs"
)
UNITS = (
    "kg|g|mg|µg|ug|t|lbs?|oz|km|m|cm|mm|µm|nm|in|ft|yd|mi|miles?|m²|m2|km²|km2|sq ?ft|sqm|ha|acres?"
    "|l|L|ml|mL|cl|dl|gal|s|secs?|seconds?|ms|min|mins|minutes?|h|hrs?|hours?|d|days?|weeks?"
    "|months?|y|yrs?|years?|°C|°F|°|K|C|F|W|kW|MW|Wh|kWh|V|mV|mA|Hz|kHz|MHz|GHz|Pa|hPa|kPa|bar|mbar"
    "|psi|J|kJ|cal|kcal|N|Nm|hp|HP|bhp|PS|rpm|mph|kmph|km/h|m/s|kn|mpg|kmpl|km/kg|CC|cc|dB|px|bits?"
    "|bytes?|KB|MB|GB|TB|ppm|ppb|bps?|mg/dL|mg/dl|mmol/L|g/dL|bpm|mmHg|people|pcs|units?"
)
CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+]?)\s*(?P<before>[{CURRENCY}]|{CODES})?\s*(?P<sign2>[-+]?)\s*"
    r"(?P<digits>\d[\d.,'’ ]*|[.,]\d+)(?P<power>[eE][-+]?\d+)?\s*"
    rf"(?P<after>%|‰|[{CURRENCY}]|{CODES}|{UNITS})?\s*(?P<close>\))?"
)
IN_BRACKETS = re.compile(rf"[(\[]\s*(%|‰|[{CURRENCY}]|{CODES}|{UNITS})\s*[)\]]\s*$")
SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "’": "'"})
GROUPS = {
    mark: re.compile(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{2,3}})*{re.escape(mark)}\d{{3}}")
    for mark in (",", ".", "'", " ")
}


@dataclass(frozen=True)
class NumberFormat:
    """How a column writes numbers.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal mark.
    thousands : str, default=""
        Characters between thousands.
    unit : str, default=""
        Sign of currency, percent or a unit that cells carry.
    sure : bool, default=True
        Whether the texts leave no other reading: ``1,234`` alone may be either.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    sure: bool = True

    @property
    def plain(self) -> bool:
        """Whether these numbers, without their unit, are read the same way by any program."""
        return self.decimal == "." and not self.thousands

    def words(self) -> str:
        """The format in words; empty for plain numbers."""
        parts = ["decimal comma"] if self.decimal == "," else []
        parts += [f"thousands by {self.thousands!r}"] if self.thousands else []
        parts += [f"unit {self.unit}"] if self.unit else []
        return ", ".join(parts)


class FormatError(ValueError):
    """Texts that contradict each other; `place` is the one that does, `count` are numbers."""

    def __init__(self, message: str, place: int, count: int) -> None:
        super().__init__(message)
        self.place, self.count = place, count


def unit_in_name(name: str) -> str:
    """Unit that a column's name ends with, in brackets: kg of "weight (kg)"; empty if none."""
    match = IN_BRACKETS.search(name)
    return match.group(1) if match is not None else ""


def _plain(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if "_" in text else value


def _split(text: str) -> tuple[str, str, str] | None:
    """Sign with digits, power, unit; None where the text is no number."""
    match = CELL.fullmatch(text.translate(SPACES).strip())
    if match is None:
        return None
    opened, sign, before, sign2, digits, power, after, closed = match.groups()
    if bool(opened) != bool(closed) or (sign and sign2) or (before and after):
        return None
    minus = "-" if bool(opened) != ((sign or sign2) == "-") else ""
    return minus + digits.strip(), power or "", before or after or ""


def find_format(texts: Sequence[str], *, comma: bool = False) -> tuple[NumberFormat, int]:
    """Find how texts write numbers.

    Parameters
    ----------
    texts : list of str
        The different texts of a column.
    comma : bool, default=False
        Whether other columns of the table have decimal commas: then ``1,234`` is read so too.

    Returns
    -------
    format : NumberFormat
        The format.
    count : int
        How many of the texts are numbers.

    Raises
    ------
    FormatError
        If decimal marks or units are mixed; it knows which text is the first to contradict.
    """
    step = max(1, len(texts) // 200)
    if all(_plain(text) is None and _split(text) is None for text in texts[::step]):
        return NumberFormat(), 0  # no need to look at every sentence of a text
    count = 0
    marks: dict[str, tuple[int, str]] = {}  # decimal mark that some text proves -> which text
    units: dict[str, tuple[int, str]] = {}
    groups: set[str] = set()
    either = ""  # the mark of texts such as 1,234
    for place, text in enumerate(texts):
        if _plain(text) is not None and "," not in text:
            count += 1
            if "." in text:
                if GROUPS["."].fullmatch(text.lstrip("+-")):
                    either = either or "."
                else:
                    marks.setdefault(".", (place, text))
            continue
        parts = _split(text)
        if parts is None:
            continue
        digits, _, unit = parts
        if unit:
            units.setdefault(unit, (place, text))
        found = _marks(digits.lstrip("-"))
        if found is None:
            continue
        count += 1
        decimal, thousands, sure = found
        groups |= set(thousands) if sure else set()
        if decimal and sure:
            marks.setdefault(decimal, (place, text))
        elif not sure:
            either = either or (decimal or thousands)
        elif thousands in (".", ","):
            marks.setdefault("," if thousands == "." else ".", (place, text))
    if len(units) > 1:
        (_, first), (place, text), *_ = sorted(units.values())
        raise FormatError(f"units are mixed: {first!r} and {text!r}", place, count)
    if len(marks) > 1:
        (_, first), (place, text) = sorted(marks.values())
        raise FormatError(f"decimal marks are mixed: {first!r} and {text!r}", place, count)
    unit = next(iter(units), "")
    if marks:
        decimal = next(iter(marks))
        # A text such as 1,234 beside 5.5: the comma can only separate thousands.
        if either and either != decimal:
            groups.add(either)
        return NumberFormat(decimal, "".join(sorted(groups)), unit), count
    if either == ",":
        if comma:
            return NumberFormat(",", "".join(sorted(groups)), unit, False), count
        return NumberFormat(".", "".join(sorted(groups | {","})), unit, False), count
    if either == "." and comma:
        return NumberFormat(",", "".join(sorted(groups | {"."})), unit, False), count
    return NumberFormat(".", "".join(sorted(groups)), unit), count


def _marks(digits: str) -> tuple[str, str, bool] | None:
    """Decimal mark, thousands mark, and whether that is sure; None for no number at all."""
    body = digits
    for space in (" ", "'"):
        if space in body:
            head = re.split(r"[.,]", body)[0]
            if not GROUPS[space].fullmatch(head) or space in body[len(head) :]:
                return None
            rest = _marks(body.replace(space, ""))
            if rest is None or (rest[1] and rest[2]):
                return None
            # 1 234,567: what follows the spaces is decimal.
            mark = rest[0] or rest[1]
            return (mark, space, True) if mark else ("", space, True)
    comma, point = body.count(","), body.count(".")
    if not comma and not point:
        return "", "", True
    if comma and point:
        decimal = "," if body.rindex(",") > body.rindex(".") else "."
        other = "." if decimal == "," else ","
        head, _, tail = body.rpartition(decimal)
        if decimal in head or not tail.isdigit() or not GROUPS[other].fullmatch(head):
            return None
        return decimal, other, True
    mark = "," if comma else "."
    if max(comma, point) > 1:
        return ("", mark, True) if GROUPS[mark].fullmatch(body) else None
    head, _, tail = body.partition(mark)
    if (head and not head.isdigit()) or (tail and not tail.isdigit()):
        return None
    if len(tail) == 3 and 1 <= len(head) <= 3 and head[0] != "0":
        return mark, "", False
    return mark, "", True


def read_numbers(texts: Sequence[str], format: NumberFormat) -> NDArray[np.float64]:
    """Texts as numbers.

    Parameters
    ----------
    texts : list of str
        The texts.
    format : NumberFormat
        How they write numbers.

    Returns
    -------
    ndarray of float64
        The numbers; NaN where a text is none.
    """
    out = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        out[i] = _read(text, format)
    return out


def _read(text: str, format: NumberFormat) -> Any:
    if format.decimal == "." and not format.thousands:
        value = _plain(text)
        if value is not None:
            return value
    parts = _split(text)
    if parts is None:
        return np.nan
    digits, power, unit = parts
    if unit and unit != format.unit:
        return np.nan
    for mark in format.thousands:
        if mark in digits:
            head = digits.lstrip("-").partition(format.decimal)[0]
            if not GROUPS[mark].fullmatch(head):
                return np.nan
            digits = digits.replace(mark, "")
    if format.decimal == ",":
        if "." in digits:
            return np.nan
        digits = digits.replace(",", ".")
    value = _plain(digits + power)
    return np.nan if value is None else value
