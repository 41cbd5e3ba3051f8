"""Write the report of a reproduction: CSV, Markdown, figures and one self-contained HTML page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import MissingExtraError
from ..files import write_text
from .catalogue import EXPERIMENTS
from .claims import claims_table
from .config import Config
from .environment import environment, stamp
from .findings import findings
from .methods import METHODS
from .page import Section, html_page
from .store import Row
from .table2 import HEAVY, HEAVY_LIMIT
from .tables import Table, to_csv, to_markdown

__all__ = ["build_markdown", "write_report"]


_PREFACE = """\
The outcome of `{command}`: every table, figure and claim of the paper (Yang, Cheung, Zhai, arXiv
2106.01642) with its value, ours, the difference, and a reason where a test backs one. The same
command without `--full` gives a shorter version in minutes. The results folder also has the tables
as CSV, the figures as PNG and SVG, and one HTML page with all of it.

All of this page, tables and figures, was computed by one commit, `{commit}`, on {date}; a test
refuses a figure or table of another.

- The folds and splits are the authors', bit for bit: the closed-form harmonic labels on them give
  the authors' GLR column within 0.01 points wherever it is determined
  (`tests/experiments/test_protocol.py`).
- A column `runs` says how many of the 1580 runs stand behind a row. Methods that take ten times as
  long as the others and more ({heavy}) get one split per fold instead of ten and {limit:g} seconds
  per run; name them with `--methods` to run them on all. They are compared with what the authors
  stored of the same runs.
- Rows that ran into the time limit (others: {time_limit:g} seconds) are counted as such, and larger
  problems of the same series are then skipped. The limit is of the clock: on a busy machine it is
  met earlier.
- Times are processor time of one thread.
"""


def write_report(
    folder: Path,
    rows: Mapping[str, Sequence[Row]],
    config: Config,
    *,
    time_limit: float,
    docs: Path | None = None,
) -> Path:
    """Write everything that is shown of a run.

    Parameters
    ----------
    folder : pathlib.Path
        The results folder.
    rows : mapping of str to sequence of Row
        Rows by experiment.
    config : Config
        The extent of the run.
    time_limit : float
        Seconds that a method had for one problem.
    docs : pathlib.Path, optional
        Folder that also gets the page as ``REPRODUCTION.md``, with its figures in
        ``reproduction/``.

    Returns
    -------
    pathlib.Path
        The HTML page, ``report.html``. Beside it: ``tables/*.csv``, ``report.md``,
        ``environment.json`` and ``figures/*.png`` and ``*.svg``.
    """
    tables_folder, figures_folder = folder / "tables", folder / "figures"
    tables_folder.mkdir(exist_ok=True)
    facts = environment()
    origin = stamp(facts)
    sections: list[Section] = []
    claims = claims_table(rows)
    if claims is not None:
        write_text(tables_folder / "claims.csv", to_csv(claims))
        sections.append(Section("claims", "what the paper's text says, in numbers", (claims,)))
    for name, found in rows.items():
        experiment = EXPERIMENTS[name]
        tables = [*experiment.tables(found, config), *_lost(name, found)]
        for table in tables:
            write_text(tables_folder / f"{table.name}.csv", to_csv(table))
        figures, note = _figures(name, found, figures_folder, origin)
        sections.append(Section(name, experiment.summary, tuple(tables), figures, note))
    write_text(tables_folder / "PROVENANCE.txt", f"The tables of this folder: {origin}\n")
    write_text(folder / "environment.json", json.dumps(facts, indent=2) + "\n")
    text = findings(rows)
    write_text(folder / "report.md", build_markdown(sections, text, facts, config, time_limit))
    page = folder / "report.html"
    write_text(page, html_page(sections, text, facts, config.mode, origin))
    if docs is not None:
        page_text = build_markdown(sections, text, facts, config, time_limit, "reproduction")
        _write_docs(docs, sections, page_text)
    return page


def _write_docs(docs: Path, sections: Sequence[Section], text: str) -> None:
    """Put the page and its figures, as SVG, into a folder of documents."""
    pictures = docs / "reproduction"
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for section in sections:
        for path in section.figures:
            shutil.copy(path.with_suffix(".svg"), pictures)
    write_text(docs / "REPRODUCTION.md", text)


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


def _figures(
    name: str, rows: Sequence[Row], folder: Path, origin: str
) -> tuple[tuple[Path, ...], str]:
    data = EXPERIMENTS[name].figure(rows)
    if data is None or not any(row.status == "ok" for row in rows):
        return (), ""
    try:
        from ..plotting import figures
    except MissingExtraError as error:
        return (), f"No figure: {error}"
    folder.mkdir(exist_ok=True)
    try:
        return figures.draw(name, data, folder, origin), ""
    except MissingExtraError as error:
        return (), f"No figure: {error}"


def build_markdown(
    sections: Sequence[Section],
    text: Sequence[tuple[str, Sequence[str]]],
    facts: Mapping[str, str],
    config: Config,
    time_limit: float,
    figures: str = "figures",
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
    time_limit : float
        Seconds that a method had for one problem.
    figures : str, default="figures"
        Folder of the pictures, as the text names it.

    Returns
    -------
    str
        The text.
    """
    ran = [section.name for section in sections if section.name in EXPERIMENTS]
    names, everything = " ".join(ran), len(ran) == len(EXPERIMENTS)
    command = f"gdpa reproduce {'all' if everything else names}{' --full' if config.full else ''}"
    preface = _PREFACE.format(
        command=command, heavy="; ".join(METHODS[m].label for m in HEAVY), limit=HEAVY_LIMIT,
        time_limit=time_limit,
        commit=facts["commit"], date=facts["date"],
    )  # fmt: skip
    parts = [f"# Reproduction of the paper ({config.mode} run)\n", preface]
    for heading, paragraphs in text:
        parts.append(f"## {heading}\n\n" + "\n".join(f"- {p}" for p in paragraphs) + "\n")
    for section in sections:
        parts.append(f"## {section.name}: {section.summary}\n")
        suffix = ".png" if figures == "figures" else ".svg"
        parts += [
            f"![{path.stem}]({figures}/{path.with_suffix(suffix).name})\n"
            for path in section.figures
        ]
        if section.note:
            parts.append(section.note + "\n")
        parts.append(to_markdown(section.tables, level=3, stamp=stamp(dict(facts))))
    lines = "\n".join(f"| {k} | {v} |" for k, v in facts.items())
    parts.append(f"## Environment\n\n| what | version |\n|---|---|\n{lines}\n")
    return "\n".join(parts)
