"""The one HTML document of the package: sections in, a page without script and network out."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from .markup import escape
from .style import STYLE

__all__ = ["POLICY", "Section", "document", "picture_file"]

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)

Section = tuple[str, str, str]  # identifier, heading, HTML that is already safe


def document(
    title: str,
    sections: Sequence[Section],
    *,
    header: str = "",
    footer: str = "",
    wide: bool = False,
) -> str:
    """Make a page.

    Parameters
    ----------
    title : str
        Its title, escaped here.
    sections : sequence of (identifier, heading, HTML)
        The sections; headings are escaped here, the HTML must be safe already.
    header, footer : str, default=""
        Safe HTML below the title and at the end.
    wide : bool, default=False
        Whether tables may take more room than lines of text should.

    Returns
    -------
    str
        One HTML document without script and without reference to anything outside it.
    """
    mark = ' class="wide"' if wide else ""
    links = "".join(f'<a href="#{escape(i)}">{escape(h)}</a>' for i, h, _ in sections)
    body = "".join(
        f'<section id="{escape(i)}" aria-labelledby="{escape(i)}-h">'
        f'<h2 id="{escape(i)}-h">{escape(h)}</h2>{html}</section>'
        for i, h, html in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body{mark}>"
        f"<header><h1>{escape(title)}</h1>{header}</header>"
        f'<nav aria-label="Sections">{links}</nav><main>{body}</main>'
        f"<footer>{footer}</footer></body></html>\n"
    )


def picture_file(path: Path, description: str) -> str:
    """Show a PNG file, carried along in the page."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    return f'<figure class="plot"><img alt="{escape(description)}" src="{source}"></figure>'
