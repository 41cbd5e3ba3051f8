"""The page about a reproduction: the report's document, with tables and figures in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..report.document import document, picture_file
from ..report.markup import definition_list, list_item, paragraph
from ..report.markup import table as markup_table
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


def _table(table: Table, stamp: str) -> str:
    numeric = [
        i
        for i in range(len(table.columns))
        if any(isinstance(row[i], int | float) for row in table.rows)
    ]
    cells = [[table.text(cell) for cell in row] for row in table.rows]
    notes = "".join(paragraph(note, "note") for note in (*table.notes, stamp))
    return markup_table(table.columns, cells, caption=table.title, numeric=numeric) + notes


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
    shown = [
        (f"finding-{k}", heading, "<ul>" + "".join(map(list_item, paragraphs)) + "</ul>")
        for k, (heading, paragraphs) in enumerate(text)
    ]
    for section in sections:
        parts = [picture_file(path, path.stem) for path in section.figures]
        if section.note:
            parts.append(paragraph(section.note, "note"))
        parts += [_table(table, stamp) for table in section.tables]
        shown.append((section.name, f"{section.name}: {section.summary}", "".join(parts)))
    shown.append(("environment", "Environment", definition_list(facts.items())))
    header = paragraph(_PAPER) + paragraph(stamp, "note")
    return document(f"Reproduction of the paper ({mode} run)", shown, header=header, wide=True)
