"""Write the report of a reproduction: CSV, Markdown, figures and one self-contained HTML page.

The page of the documents, ``docs/REPRODUCTION.md``, is written by hand. Between the comments
``<!-- NAME -->`` and ``<!-- /NAME -->`` it includes what a run computed: the parts that
:func:`markdown_parts` names.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gdpa.errors import MissingExtraError
from gdpa.files import write_text

from .environment import environment, stamp
from .experiments import EXPERIMENTS
from .store import Row
from .tables import Table, make_table

_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;font-size:13px}"
    "td,th{border:1px solid #ccc;padding:2px 8px}img{max-width:100%}"
)


def write_report(folder: Path, rows: Mapping[str, Sequence[Row]], docs: Path | None = None) -> Path:
    """Write everything that is shown of a run.

    Parameters
    ----------
    folder : pathlib.Path
        The results folder.
    rows : mapping of str to sequence of Row
        Rows by experiment.
    docs : pathlib.Path, optional
        Folder whose page ``REPRODUCTION.md`` also gets the tables, with the figures in
        ``reproduction/``.

    Returns
    -------
    pathlib.Path
        The HTML page, ``report.html``. Beside it: ``tables/*.csv``, ``report.md``,
        ``environment.json`` and ``figures/*.png`` and ``*.svg``.
    """
    facts = environment()
    origin = stamp(facts)
    (folder / "tables").mkdir(exist_ok=True)
    tables: dict[str, list[Table]] = {}
    figures: dict[str, Path | str] = {}
    for name, found in rows.items():
        tables[name] = [*EXPERIMENTS[name].tables(found), *_lost(name, found)]
        figures[name] = _draw(name, found, folder / "figures", origin)
    for table in (table for group in tables.values() for table in group):
        write_text(folder / "tables" / f"{table.name}.csv", table.to_csv())
    write_text(folder / "tables" / "PROVENANCE.txt", f"The tables of this folder: {origin}\n")
    write_text(folder / "environment.json", json.dumps(facts, indent=2) + "\n")
    title = "# Reproduction of the paper\n\n"
    parts = markdown_parts(tables, figures, facts)
    text = title + "\n".join(parts.values())
    write_text(folder / "report.md", text)
    write_text(folder / "report.html", render_html(text, folder))
    if docs is not None:
        (docs / "reproduction").mkdir(parents=True, exist_ok=True)
        for path in figures.values():
            if isinstance(path, Path):
                shutil.copy(path.with_suffix(".svg"), docs / "reproduction")
        shown = {name: [t for t in group if not t.beside] for name, group in tables.items()}
        parts = markdown_parts(shown, figures, facts)
        for name, group in tables.items():
            beside = [table for table in group if table.beside]
            if beside:
                head = f"---\norphan: true\n---\n\n# {name}: tables by data set and size\n\n"
                text = head + "\n".join(table.to_markdown(origin)[1:] for table in beside)
                write_text(docs / "reproduction" / f"{name}.md", text)
                parts[name] += f"\nMore tables: [{name}.md](reproduction/{name}.md).\n"
        page = docs / "REPRODUCTION.md"
        hand_written = page.read_text(encoding="utf-8") if page.exists() else title
        page_text = include_parts(hand_written, parts)
        write_text(page, re.sub(r"\(figures/([\w-]+)\.png\)", r"(reproduction/\1.svg)", page_text))
    return folder / "report.html"


def markdown_parts(
    tables: Mapping[str, Sequence[Table]],
    figures: Mapping[str, Path | str],
    facts: dict[str, str],
) -> dict[str, str]:
    """Return the computed parts of a page by name.

    Parameters
    ----------
    tables : mapping of str to sequence of Table
        Tables by experiment.
    figures : mapping of str to pathlib.Path or str
        PNG file by experiment, or the reason why there is none.
    facts : dict
        The environment.

    Returns
    -------
    dict
        "provenance", the experiments, "environment".
    """
    parts = {
        "provenance": f"All tables and figures were computed by one commit, `{facts['commit']}`, "
        f"on {facts['date']}. A column `runs` says how many of the 1,580 runs stand behind a row.\n"
    }
    for name, group in tables.items():
        lines = [f"## {name}: {EXPERIMENTS[name].summary}\n"]
        figure = figures.get(name)
        if figure:
            drawn = isinstance(figure, Path)
            lines.append(f"![{name}](figures/{name}.png)\n" if drawn else f"{figure}\n")
        parts[name] = "\n".join(lines + [table.to_markdown(stamp(facts)) for table in group])
    versions = "\n".join(f"| {k} | {v} |" for k, v in facts.items())
    parts["environment"] = f"## Environment\n\n| what | version |\n|---|---|\n{versions}\n"
    return parts


def include_parts(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with the parts between their comments; missing comments go to the end."""
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        block = f"{begin}\n\n{text}\n{end}"
        if begin in page and end in page:
            before, _, rest = page.partition(begin)
            page = before + block + rest.partition(end)[2]
        else:
            page = f"{page.rstrip()}\n\n{block}\n"
    return page


def render_html(text: str, folder: Path) -> str:
    """Return a Markdown report as HTML that refers to nothing outside itself."""
    from markdown_it import MarkdownIt

    def inline(match: re.Match[str]) -> str:
        content = base64.b64encode((folder / match[1]).read_bytes()).decode()
        return f'src="data:image/png;base64,{content}"'

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = re.sub(r'src="(figures/[\w-]+\.png)"', inline, body)
    head = f'<meta charset="utf-8"><title>Reproduction of the paper</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}</body></html>\n'


def _lost(name: str, rows: Sequence[Row]) -> list[Table]:
    """Count rows without a result by method and reason."""
    counts = Counter(
        (str(row.params.get("method", "")), row.status, row.message)
        for row in rows
        if row.status != "ok"
    )
    body = [(*key, count) for key, count in sorted(counts.items())]
    file = f"{name}-without-result"
    return [make_table("without-result", body, name=file, experiment=name)] if body else []


def _draw(name: str, rows: Sequence[Row], folder: Path, origin: str) -> Path | str:
    """Draw the figure of an experiment; return its PNG file, or why there is none."""
    data = EXPERIMENTS[name].figure(rows)
    if data is None or not any(row.status == "ok" for row in rows):
        return ""
    from .figures import draw

    try:
        return draw(name, data, folder, origin)
    except MissingExtraError as error:
        return f"No figure: {error}"
