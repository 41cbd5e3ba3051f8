"""Write the report of a reproduction: CSV, Markdown, figures and one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import MissingExtraError
from ..files import write_text
from .catalogue import EXPERIMENTS
from .config import Config
from .environment import environment
from .findings import findings
from .page import Section, html_page
from .store import Row
from .tables import Table, to_csv, to_markdown

__all__ = ["build_markdown", "write_report"]


def write_report(folder: Path, rows: Mapping[str, Sequence[Row]], config: Config) -> Path:
    """Write everything that is shown of a run.

    Parameters
    ----------
    folder : pathlib.Path
        The results folder.
    rows : mapping of str to sequence of Row
        Rows by experiment.
    config : Config
        The extent of the run.

    Returns
    -------
    pathlib.Path
        The HTML page, ``report.html``. Beside it: ``tables/*.csv``, ``report.md``,
        ``environment.json`` and ``figures/*.png`` and ``*.svg``.
    """
    tables_folder, figures_folder = folder / "tables", folder / "figures"
    tables_folder.mkdir(exist_ok=True)
    sections: list[Section] = []
    for name, found in rows.items():
        experiment = EXPERIMENTS[name]
        tables = [*experiment.tables(found, config), *_lost(name, found)]
        for table in tables:
            write_text(tables_folder / f"{table.name}.csv", to_csv(table))
        figures, note = _figures(name, found, figures_folder)
        sections.append(Section(name, experiment.summary, tuple(tables), figures, note))
    facts = environment()
    write_text(folder / "environment.json", json.dumps(facts, indent=2) + "\n")
    text = findings(rows)
    write_text(folder / "report.md", build_markdown(sections, text, facts, config))
    page = folder / "report.html"
    write_text(page, html_page(sections, text, facts, config.mode))
    return page


def _lost(name: str, rows: Sequence[Row]) -> list[Table]:
    """Rows that are not results, counted by method and reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if row.status != "ok":
            key = (str(row.params.get("method", "")), row.status, row.message)
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return []
    body = tuple((*key, count) for key, count in sorted(counts.items()))
    columns = ("method", "status", "reason", "rows")
    return [Table(f"{name}-without-result", f"Rows of {name} without a result", columns, body)]


def _figures(name: str, rows: Sequence[Row], folder: Path) -> tuple[tuple[Path, ...], str]:
    figure_data = EXPERIMENTS[name].figure_data
    if figure_data is None or not any(row.status == "ok" for row in rows):
        return (), ""
    try:
        from ..plotting import figures
    except MissingExtraError as error:
        return (), f"No figure: {error}"
    folder.mkdir(exist_ok=True)
    try:
        return figures.draw(name, figure_data(rows), folder), ""
    except MissingExtraError as error:
        return (), f"No figure: {error}"


def build_markdown(
    sections: Sequence[Section],
    text: Sequence[tuple[str, Sequence[str]]],
    facts: Mapping[str, str],
    config: Config,
) -> str:
    """Report as Markdown.

    Parameters
    ----------
    sections : sequence of Section
        Tables and figures by experiment.
    text : sequence of (heading, paragraphs)
        The findings.
    facts : mapping
        The environment.
    config : Config
        The extent.

    Returns
    -------
    str
        The text.
    """
    parts = [f"# Reproduction of the paper ({config.mode} run)\n"]
    for heading, paragraphs in text:
        parts.append(f"## {heading}\n\n" + "\n".join(f"- {p}" for p in paragraphs) + "\n")
    for section in sections:
        parts.append(f"## {section.name}: {section.summary}\n")
        parts += [f"![{path.stem}](figures/{path.name})\n" for path in section.figures]
        if section.note:
            parts.append(section.note + "\n")
        parts.append(to_markdown(section.tables, level=3))
    lines = "\n".join(f"| {k} | {v} |" for k, v in facts.items())
    parts.append(f"## Environment\n\n| what | version |\n|---|---|\n{lines}\n")
    return "\n".join(parts)
