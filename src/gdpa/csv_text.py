"""Write CSV text, neutralising cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

# First characters that make a spreadsheet treat a cell as a formula, including full-width ones.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(header: Sequence[Any], columns: Sequence[Iterable[Any]], *, raw: bool = False) -> str:
    """Return columns as CSV text.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    columns : sequence of iterables
        Their cells.
    raw : bool, default=False
        Whether to leave cells unchanged that a spreadsheet would run as formulas. By default an
        apostrophe is put before them; numbers are not changed.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> print(csv_text(["a", "b"], [["=1+1", "x"], ["-3", "@y"]]))
    a,b
    '=1+1,-3
    x,'@y
    <BLANKLINE>
    """
    lines = _Lines()
    writer = csv.writer(lines, lineterminator="\r\n")
    names, cells = map(str, header), columns
    if not raw:
        names, cells = map(_harmless, names), list(map(partial(map, _harmless), columns))
    writer.writerow(names)
    writer.writerows(zip(*cells, strict=True))
    return "".join(lines)


class _Lines(list[str]):
    """Lines that end in a newline; csv quotes carriage returns only if its lineterminator does."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
