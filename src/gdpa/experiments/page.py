"""One self-contained HTML page: no network, images inlined, everything escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .tables import Table

__all__ = ["Section", "html_page"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8888; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.4rem 0; }
th, td { padding: 0.15rem 0.6rem; border-bottom: 1px solid #8883; text-align: left; }
th { vertical-align: bottom; }
td.number, th.number { text-align: right; }
td:first-child { white-space: nowrap; }
figure { margin: 1rem 0; background: white; }
figure img { max-width: 100%; height: auto; }
.note { font-size: 0.85rem; }
nav a { margin-right: 1rem; }
"""


@dataclass(frozen=True)
class Section:
    """What is shown of one experiment.

    Parameters
    ----------
    name, summary : str
        Name of the experiment and what it shows.
    tables : tuple of Table
        Its tables.
    figures : tuple of pathlib.Path
        PNG files; an SVG of the same name stands beside each.
    note : str, default=""
        Why there is no figure, where there should be one.
    """

    name: str
    summary: str
    tables: tuple[Table, ...]
    figures: tuple[Path, ...] = ()
    note: str = ""


def _table(table: Table, stamp: str) -> str:
    numeric = [
        any(isinstance(row[i], int | float) for row in table.rows)
        for i in range(len(table.columns))
    ]
    mark = [' class="number"' if right else "" for right in numeric]
    head = "".join(
        f'<th scope="col"{m}>{escape(c)}</th>' for c, m in zip(table.columns, mark, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{m}>{escape(table.text(c))}</td>" for c, m in zip(row, mark, strict=True))
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in (*table.notes, stamp))
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{notes}"
    )


def _figure(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    name = escape(path.stem)
    return f'<figure><img alt="{name}" src="data:image/png;base64,{data}"></figure>'


def html_page(
    sections: Sequence[Section],
    text: Sequence[tuple[str, Sequence[str]]],
    facts: Mapping[str, str],
    mode: str,
    stamp: str,
) -> str:
    """Build the page.

    Parameters
    ----------
    sections : sequence of Section
        Tables and figures by experiment.
    text : sequence of (heading, paragraphs)
        What holds, what does not and why.
    facts : mapping
        The environment.
    mode : str
        "quick" or "full".
    stamp : str
        Commit, date and versions; stands under every table.

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Reproduction of the paper ({escape(mode)})</title><style>{_STYLE}</style></head>",
        f"<body><h1>Reproduction of the paper ({escape(mode)} run)</h1>",
        "<p>Yang, Cheung, Zhai: Projection-free Graph-based Classifier Learning using Gershgorin "
        "Disc Perfect Alignment (arXiv 2106.01642). The paper's value, ours, the difference.</p>",
        f'<p class="note">{escape(stamp)}</p>',
        "<nav>",
        *(f'<a href="#{escape(s.name)}">{escape(s.name)}</a>' for s in sections),
        '<a href="#environment">environment</a></nav>',
    ]
    for heading, paragraphs in text:
        items = "".join(f"<li>{escape(p)}</li>" for p in paragraphs)
        parts.append(f"<h2>{escape(heading)}</h2><ul>{items}</ul>")
    for section in sections:
        name = escape(section.name)
        parts.append(f'<h2 id="{name}">{name}: {escape(section.summary)}</h2>')
        parts += [_figure(path) for path in section.figures]
        if section.note:
            parts.append(f'<p class="note">{escape(section.note)}</p>')
        parts += [_table(table, stamp) for table in section.tables]
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in facts.items())
    parts.append(f'<h2 id="environment">Environment</h2><table>{rows}</table></body></html>\n')
    return "\n".join(parts)
