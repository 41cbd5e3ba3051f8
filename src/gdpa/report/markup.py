"""HTML that is safe by construction: text from data goes through :func:`escape`, always."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["definition_list", "escape", "list_item", "number", "paragraph", "percent", "table"]

# Characters that reverse what a reader sees.
_BIDI = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F))


def escape(value: Any, limit: int = 200) -> str:
    """Text for HTML, attributes included: escaped, without control characters, not endless.

    Parameters
    ----------
    value : object
        Anything; its text is taken.
    limit : int, default=200
        Longer texts are cut.

    Returns
    -------
    str
        Safe text.
    """
    text = str(value).translate(_BIDI)
    text = "".join(
        c
        if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )
    if len(text) > limit:
        text = text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return html.escape(text, quote=True)


def number(value: float) -> str:
    """Show a number for people: thousands apart, four digits where it has a fraction."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def percent(share: float) -> str:
    """Show a share in percent, one digit."""
    return f"{100.0 * share:.1f} %"


def paragraph(text: str, style: str = "") -> str:
    """Paragraph of text that is escaped here."""
    mark = f' class="{style}"' if style else ""
    return f"<p{mark}>{escape(text, 2000)}</p>"


def list_item(text: str) -> str:
    """Item of a list, of text that is escaped here."""
    return f"<li>{escape(text, 2000)}</li>"


def table(
    headers: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    numeric: Sequence[int] = (),
    first_is_header: bool = False,
    stacked: bool = False,
) -> str:
    """Table whose cells are escaped here; it scrolls sideways where it is too wide.

    Parameters
    ----------
    headers, rows
        The cells.
    caption : str
        What it shows.
    numeric : sequence of int
        Columns that are right-aligned.
    first_is_header : bool, default=False
        Whether the first cell of each row is its header.
    stacked : bool, default=False
        Whether a narrow screen shows each row as a block, one cell below the other.

    Returns
    -------
    str
        HTML.
    """

    def cell(j: int, value: Any) -> str:
        mark = ' class="n"' if j in numeric else ""
        if stacked:  # blocks are no table to a screen reader unless they say so
            mark += f' data-name="{escape(headers[j])}"'
            mark += ' role="rowheader"' if j == 0 and first_is_header else ' role="cell"'
        if j == 0 and first_is_header:
            return f'<th scope="row"{mark}>{escape(value)}</th>'
        return f"<td{mark}>{escape(value)}</td>"

    head = "".join(
        f'<th scope="col"{" class=" + chr(34) + "n" + chr(34) if j in numeric else ""}>'
        f"{escape(h)}</th>"
        for j, h in enumerate(headers)
    )
    line = '<tr role="row">' if stacked else "<tr>"
    body = "".join(line + "".join(cell(j, v) for j, v in enumerate(row)) + "</tr>" for row in rows)
    kind = ' class="stacked" role="table"' if stacked else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table{kind}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def definition_list(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and values, both escaped here."""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value, 500)}</dd></div>" for name, value in pairs
    )
    return f"<dl>{items}</dl>"
