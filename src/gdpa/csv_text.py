"""Write CSV text; escape cells that a spreadsheet would run as formulas, on request."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any

# First characters that make a spreadsheet treat a cell as a formula, including full-width ones.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(
    header: Sequence[Any], columns: Sequence[Iterable[Any]], *, delimiter: str = ","
) -> str:
    """Return columns as CSV text; a CSV reader returns the same cells.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    columns : sequence of iterables
        Their cells.
    delimiter : str, default=","
        Character between cells.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> print(csv_text(["a", "b"], [["-0,13", "x"], ["-12%", "@y"]]))
    a,b
    "-0,13",-12%
    x,@y
    <BLANKLINE>
    """
    lines = _Lines()
    writer = csv.writer(lines, lineterminator="\r\n", delimiter=delimiter)
    writer.writerow(map(str, header))
    writer.writerows(zip(*columns, strict=True))
    return "".join(lines)


def escape_formulas(cells: Iterable[Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would run; numbers are not changed.

    Meant for cells that the package writes itself. Cells of a user's file are never changed.

    Parameters
    ----------
    cells : iterable
        The cells of a column.

    Returns
    -------
    list
        The cells.

    Examples
    --------
    >>> escape_formulas(["=1+1", "-3", "plain"])
    ["'=1+1", '-3', 'plain']
    """
    return [_escaped(cell) for cell in cells]


class _Lines(list[str]):
    """Lines that end in a newline; csv quotes carriage returns only if its lineterminator does."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _escaped(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
