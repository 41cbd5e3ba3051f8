"""The report as one HTML page; the only module that needs Jinja."""

from __future__ import annotations

import functools
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from ..evaluation import Evaluation
from . import charts
from .data import ReportData

if TYPE_CHECKING:
    import jinja2


Section = Mapping[str, str]  # name, heading and body, which is safe HTML


def _clean(value: object, limit: int = 2000) -> object:
    """Remove control and direction-changing characters from text and truncate it; keep HTML."""
    if hasattr(value, "__html__"):
        return value
    text = "".join(
        ""
        if c in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        else c
        if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for c in str(value)[: 2 * limit]
    )
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _number(value: float) -> str:
    """Format a whole number with thousands separators, any other with four digits."""
    whole = float(value).is_integer() and abs(value) < 1e15
    return f"{int(value):,}" if whole else f"{value:.4g}"


@functools.cache
def environment() -> jinja2.Environment:
    """Return the template environment, which cleans, truncates and escapes all output."""
    jinja = require("jinja2", "report")
    made: jinja2.Environment = jinja.Environment(
        loader=jinja.PackageLoader("gdpa.report"),
        autoescape=True,
        finalize=_clean,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "shell": lambda value: shlex.quote(str(_clean(value, 200))),
        "short": lambda value, limit=200: _clean(value, limit),
        "number": _number,
        "percent": lambda share: f"{100.0 * share:.1f} %",
        "coordinate": lambda value: f"{value:.1f}",
    }
    style = Path(__file__).parent / "templates" / "style.css"
    made.globals["style"] = style.read_text(encoding="utf-8")
    return made


def section(name: str, heading: str, template: str, **values: object) -> Section:
    """Return a section of a page.

    Parameters
    ----------
    name, heading : str
        Identifier and heading.
    template : str
        Jinja source of the body; the macros ``html`` and ``svg`` are available.
    **values
        Variables of the template.

    Returns
    -------
    mapping
        A section for :func:`render`.
    """
    head = '{% import "macros.html" as html %}{% import "charts.html" as svg %}'
    body = environment().from_string(head + template).render(**values)
    return {"name": name, "heading": heading, "body": body}


def render(data: ReportData, *, first: Sequence[Section] = ()) -> str:
    """Return the report as a self-contained HTML page without scripts.

    Parameters
    ----------
    data : ReportData
        Content of the page.
    first : sequence
        Sections to put first; see :func:`section`.

    Returns
    -------
    str
        The HTML page.
    """
    n_predicted = max(data.top.size, 1)
    classes = [
        (name, _number(given), _number(count), f"{100 * count / n_predicted:.1f} %")
        for name, given, count in zip(
            data.classes, data.labeled_counts, data.predicted_counts, strict=True
        )
    ]
    card = data.committee
    degree = data.graph.degrees.astype(np.float64)
    low = degree.min()
    high = degree.max()
    edges = np.linspace(low - 0.5, high + 0.5, int(min(24, high - low + 1)) + 1)
    page = (
        environment()
        .get_template("report.html")
        .render(
            data=data,
            first=list(first),
            classes=classes,
            columns=data.columns[:60],
            check=None if data.held_out is None else _check(data, data.held_out),
            confidence=_confidence(data),
            importances=charts.bars(card.columns, card.importances, axis="importance in the forest")
            if card is not None and any(card.importances)
            else None,
            median_degree=np.median(degree),
            degrees=charts.histogram(degree, edges, axis="number of neighbours"),
            map=_map(data),
            shapes=charts.SHAPES,
        )
    )
    return page.lstrip() + "\n"


def _check(data: ReportData, held_out: Evaluation) -> dict[str, object]:
    """Return the metrics and the confusion matrix on held-out labels."""
    counts = held_out.confusion
    shown = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:12])
    peak = max(int(counts.max()), 1)

    def cell(i: int, j: int) -> tuple[int, str]:
        count = int(counts[i, j])
        shade = min(4, 1 + 4 * count // peak) if count else 0
        return count, f"{'good' if i == j else 'bad'}{shade}"

    return {
        "accuracy": held_out.accuracy,
        "right": int(np.trace(counts)),
        "metrics": held_out.averages(),
        "per_class": [
            (str(score.label), *score.percentages(), _number(score.n_labels))
            for score in held_out.per_class
        ],
        "distances": [
            (f"{distance:g}", _number(count), f"{100 * count / held_out.n_labels:.1f} %")
            for distance, count in held_out.distances or ()
        ],
        "classes": [data.classes[j] for j in shown],
        "confusion": [(data.classes[i], [cell(i, j) for j in shown]) for i in shown],
    }


def _confidence(data: ReportData) -> charts.Chart | None:
    if data.top.size == 0:
        return None
    # Bins of width 1/40 put an edge on the usual thresholds.
    low = min(np.floor(40.0 * float(data.top.min())) / 40.0, 0.975)
    edges = np.linspace(low, 1.0, round(40 * (1.0 - low)) + 1)
    return charts.histogram(data.top, edges, axis="predicted probability", threshold=data.sure)


def _map(data: ReportData) -> dict[str, object]:
    """Return the maps of the graph by class and by uncertainty."""
    color, names = _colors(data)
    drawn = data.picture.nodes.size
    sample = "" if drawn == data.graph.n_nodes else f" of a sample of {_number(drawn)} rows"
    level = np.floor(charts.LEVELS * data.picture_uncertainty).astype(np.intp)
    level = np.clip(level, 0, charts.LEVELS - 1)
    where = (data.picture.positions, data.picture.edges)
    return {
        "names": names,
        "sample": sample,
        "drawn": drawn,
        "uncertain": int((level >= 3).sum()),
        "by_class": charts.graph(*where, color[data.picture_classes], data.picture_labeled),
        "by_uncertainty": charts.graph(*where, level, data.picture_labeled, levels=True),
    }


def _colors(data: ReportData) -> tuple[NDArray[np.intp], list[str]]:
    """Return the colour of each class, the most frequent first, and the names of the colours."""
    n = len(data.classes)
    most = len(charts.SHAPES)
    n_colors = n if n <= most else most - 1  # the last colour is for the other classes
    frequency = np.array(data.labeled_counts) + np.array(data.predicted_counts)
    order = np.argsort(-frequency, kind="stable")
    color = np.full(n, most - 1)
    color[order[:n_colors]] = np.arange(n_colors)
    return color, [data.classes[c] for c in order[:n_colors]] + ["other classes"] * (n_colors < n)
