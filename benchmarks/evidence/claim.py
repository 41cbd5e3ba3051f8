"""A measured claim: one sentence, the numbers behind it, and the command that measured them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent

# Draws a chart into a matplotlib Axes.
Chart = Callable[[Any], None]


@dataclass(frozen=True)
class Claim:
    """What one section of the page says.

    Parameters
    ----------
    name : str
        Short name: the anchor of the section and the file of its chart.
    title : str
        Heading.
    says : str
        The claim in one or two sentences, with its numbers.
    commands : sequence of str
        The commands that measured it.
    commits : str
        The commits that were measured.
    header, rows : sequences of str
        The table.
    chart : callable, optional
        Draws the chart.
    alt : str
        The chart in words.
    notes : sequence of str
        What a reader must know to interpret the numbers.
    height : float
        Height of the chart in inches; its width is 6.4.
    readme : str, optional
        The claim in one line of the README.
    """

    name: str
    title: str
    says: str
    commands: Sequence[str]
    commits: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    chart: Chart | None = None
    alt: str = ""
    notes: Sequence[str] = field(default=())
    height: float = 3.2
    readme: str | None = None


def stored(name: str) -> Any:
    """Return the stored results of a benchmark; an empty mapping if there are none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def commits_of(cells: Mapping[str, Sequence[Any]]) -> str:
    """Return the commits of stored cells, whose fourth entry names it."""
    found = {str(cell[3]) for cell in cells.values() if len(cell) > 3}
    return ", ".join(sorted(found)) or "not recorded"
