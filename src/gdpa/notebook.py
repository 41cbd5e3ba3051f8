"""HTML cards that notebooks show for a result: a table of names and values.

Cards have no scripts. They inherit the colours of the page, light or dark.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from typing import Any

BOX = (
    "display:inline-block;border:1px solid rgba(128,128,128,.5);border-radius:6px;padding:.6em .9em"
)
ROW = "text-align:left;padding:.1em .9em .1em 0;vertical-align:top;background:none;border:0"
WEAK = "opacity:.7;font-weight:normal"


def _safe(value: Any, limit: int = 120) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    return html.escape(text if len(text) <= limit else text[: limit - 3] + "...", quote=True)


def card(title: str, facts: Iterable[tuple[str, Any]], note: str = "") -> str:
    """Return the HTML card of a result for notebooks.

    Parameters
    ----------
    title : str
        Title of the card.
    facts : iterable of (str, object)
        Names and values; text is escaped, and long text truncated.
    note : str, default=""
        A sentence below the table.

    Returns
    -------
    str
        A table in a box.
    """
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{ROW};{WEAK}">{_safe(name)}</th>'
        f'<td style="{ROW}">{_safe(value)}</td></tr>'
        for name, value in facts
    )
    below = f'<div style="{WEAK};max-width:36em">{_safe(note, 400)}</div>' if note else ""
    return (
        f'<div class="gdpa-card" style="{BOX};color:inherit"><div><b>{_safe(title)}</b></div>'
        f'<table style="border-collapse:collapse;margin:.3em 0;color:inherit">{rows}</table>'
        f"{below}</div>"
    )
