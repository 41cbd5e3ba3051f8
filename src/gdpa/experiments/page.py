"""The page about a reproduction: the report's document, with tables and figures in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..report.page import document, section
from .tables import Table

__all__ = ["Section", "html_page"]

_PAPER = (
    "Yang, Cheung, Zhai: Projection-free Graph-based Classifier Learning using Gershgorin Disc "
    "Perfect Alignment (arXiv 2106.01642). The paper's value, ours, the difference."
)


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


_EXPERIMENT = """
{% for name, data in figures %}
<figure class="plot"><img alt="{{ name }}" src="data:image/png;base64,{{ data|safe }}"></figure>
{% endfor %}
{% if note %}<p class="note">{{ note }}</p>{% endif %}
{% for table, rows, numeric in tables %}
{{ html.table(table.columns, rows, caption=table.title, numeric=numeric) }}
{% for note in table.notes + (stamp,) %}<p class="note">{{ note }}</p>{% endfor %}
{% endfor %}
"""


def _cells(table: Table) -> tuple[Table, list[list[str]], list[int]]:
    """Return a table with its cells as text, and which of its columns hold numbers."""
    numeric = [
        i
        for i in range(len(table.columns))
        if any(isinstance(row[i], int | float) for row in table.rows)
    ]
    return table, [[table.text(cell) for cell in row] for row in table.rows], numeric


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
    findings = "<ul>{% for text in paragraphs %}<li>{{ text }}</li>{% endfor %}</ul>"
    shown = [
        section(f"finding-{k}", heading, findings, paragraphs=paragraphs)
        for k, (heading, paragraphs) in enumerate(text)
    ]
    shown += [
        section(
            part.name,
            f"{part.name}: {part.summary}",
            _EXPERIMENT,
            figures=[
                (path.stem, base64.b64encode(path.read_bytes()).decode("ascii"))
                for path in part.figures
            ],
            note=part.note,
            tables=[_cells(table) for table in part.tables],
            stamp=stamp,
        )
        for part in sections
    ]
    facts_list = "{{ html.definitions(facts) }}"
    shown.append(section("environment", "Environment", facts_list, facts=facts.items()))
    header = f"{_PAPER} {stamp}"
    return document(f"Reproduction of the paper ({mode} run)", shown, header=header, wide=True)
