"""The page itself: sections of HTML from :class:`~gdpa.report.ReportData`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..binomial import share_interval
from .charts import LEVELS, MOST_SHOWN, graph_chart, histogram, legend
from .committee import committee_section
from .data import ReportData
from .document import Section, document
from .evaluation import confusion
from .markup import definition_list, escape, number, paragraph, percent, table

__all__ = ["Section", "render"]

QUESTION_HEADER = ("row", "prediction", "its probability", "runner-up", "its probability")


def render(data: ReportData, *, first: Sequence[Section] = ()) -> str:
    """Make the page.

    Parameters
    ----------
    data : ReportData
        What to show.
    first : sequence of sections
        Sections to put before the others.

    Returns
    -------
    str
        One HTML document without script and without reference to anything outside it.
    """
    sections = [
        *first,
        ("asked", "What was asked", _asked(data)),
        ("result", "Result", _result(data)),
        ("next", "Label these next", _questions(data)),
        ("check", "How far to trust it", _check(data)),
        ("committee", "Who decides", committee_section(data.committee)),
        ("picture", "The graph", _graph(data)),
        ("data", "The data", _data(data)),
        ("certificate", "Certificate", _certificate(data)),
        ("reproduce", "How to make this again", _reproduce(data)),
    ]
    return document(
        data.title,
        sections,
        header=_headline(data),
        footer=paragraph(f"Written by gdpa {data.versions['gdpa']}."),
    )


def _headline(data: ReportData) -> str:
    cards = [(number(len(data.top)), "rows predicted"), (number(data.n_labeled), "labels given")]
    if data.left_out is not None:
        right = float((data.left_out.truth == data.left_out.predicted).mean())
        cards.append((percent(right), "of left-out labels found again"))
    cards.append((number(data.n_unsure), f"unsure (below {data.sure:g})"))
    items = "".join(f"<li><b>{escape(v)}</b> {escape(w)}</li>" for v, w in cards)
    return f'<ul class="cards">{items}</ul>'


def _asked(data: ReportData) -> str:
    pairs = [*data.asked.items(), ("classes", ", ".join(data.classes[:12]))]
    notes = "".join(f"<li>{escape(note, 500)}</li>" for note in data.notes)
    return definition_list(pairs) + (f"<ul>{notes}</ul>" if notes else "")


def _result(data: ReportData) -> str:
    total = max(len(data.top), 1)
    rows = [
        (name, number(given), number(found), percent(found / total))
        for name, given, found in zip(
            data.classes, data.labeled_counts, data.predicted_counts, strict=True
        )
    ]
    html = table(
        ["class", "given", "predicted", "share"],
        rows,
        caption="Labels and predictions per class",
        numeric=(1, 2, 3),
        first_is_header=True,
    )
    if len(data.top) == 0:
        return html + paragraph("Every row had a label; nothing was predicted.")
    # A bin edge falls on the threshold wherever it is a multiple of a fortieth.
    low = min(np.floor(40.0 * float(data.top.min())) / 40.0, 0.975)
    chart = histogram(
        "confidence",
        data.top,
        np.linspace(low, 1.0, round(40 * (1.0 - low)) + 1),
        title="Confidence of the predictions",
        axis="probability of the predicted class",
        marked_below=data.sure,
        mark_name="unsure",
    )
    words = (
        f"{number(data.n_unsure)} of {number(len(data.top))} predictions have a probability below "
        f"{data.sure:g} and are marked unsure."
    )
    if data.n_unreached:
        words += (
            f" {number(data.n_unreached)} rows have no path to a label; they get the prior class "
            "and are unsure, too."
        )
    return (
        html + f"<figure>{chart}<figcaption>Confidence. {escape(words, 600)}</figcaption></figure>"
    )


def _questions(data: ReportData) -> str:
    if not data.questions:
        return paragraph("No row is without a label.")
    rows = [
        (
            q.name,
            q.prediction,
            f"{q.probability:.2f}",
            q.runner_up,
            f"{q.runner_up_probability:.2f}",
            *q.cells,
        )
        for q in data.questions
    ]
    return paragraph(
        "Labels for these rows help most: they are in doubt, and tell about others like them."
    ) + table(
        [*QUESTION_HEADER, *data.question_columns],
        rows,
        caption="Rows most worth a label, each given those before it",
        numeric=(2, 4),
        first_is_header=True,
        stacked=True,
    )


def _check(data: ReportData) -> str:
    checked = data.left_out
    if checked is None:
        return paragraph(
            "There are too few labels to leave any out: at least eight, in classes of two or more, "
            "are needed. Look at some predictions yourself before you rely on them."
        )
    counts = confusion(checked, len(data.classes))
    right = int(np.trace(counts))
    total = int(counts.sum())
    low, high = share_interval(right, total, 0.95)
    which = "Every third label" if checked.source == "one fold" else "Each label"
    how, hint = checked.source, "a little optimistic: settings were chosen on the same labels"
    if how == "sample":
        which, hint = "Each label in a sample of the rows", "pessimistic: all rows know more"
    words = (
        f"{which} was predicted without its own help ({how}): {number(right)} of "
        f"{number(total)} came out right, {percent(right / total)} (95 % interval: "
        f"{percent(low)} to {percent(high)}). This is {hint}."
    )
    shown = np.argsort(-counts.sum(axis=1), kind="stable")[:12]
    shown.sort()
    peak = max(int(counts.max()), 1)
    head = "".join(f'<th scope="col">{escape(data.classes[j], 24)}</th>' for j in shown)
    body = ""
    for i in shown:
        cells = "".join(_shaded(int(counts[i, j]), peak, i == j) for j in shown)
        body += f'<tr><th scope="row">{escape(data.classes[i], 24)}</th>{cells}</tr>'
    caption = "Confusion of left-out labels: rows are given labels, columns predictions"
    if len(shown) < len(data.classes):
        caption += f" (the {len(shown)} most frequent classes)"
    return (
        paragraph(words)
        + "".join(f'<p class="caution">{escape(c, 600)}</p>' for c in data.cautions)
        + _baselines(data)
        + (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
            f'<table class="confusion"><caption>{escape(caption)}</caption><thead><tr><td></td>'
            f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    )


def _baselines(data: ReportData) -> str:
    b = data.baselines
    if b is None:
        return ""
    return table(
        ["classifier", "accuracy"],
        [
            ("gdpa", percent(b.ours)),
            ("logistic regression", percent(b.logistic)),
            ("always the largest class", percent(b.majority)),
        ],
        caption=f"Baselines: the same {number(b.n_labels)} labels, each left out",
        numeric=(1,),
        first_is_header=True,
    ) + paragraph(f"In plain words: {b.verdict}.")


def _shaded(count: int, peak: int, diagonal: bool) -> str:
    level = 0 if count == 0 else 1 + int(3.999 * count / peak) if count < peak else 4
    kind = "good" if diagonal else "bad"
    return f'<td class="n {kind}{min(level, 4)}">{count:,}</td>'


def _graph(data: ReportData) -> str:
    g = data.graph
    degree = g.degrees
    pairs = [
        ("nodes", number(g.n_nodes)),
        ("edges", number(g.n_edges)),
        (
            "neighbours per node",
            f"{int(degree.min())} to {int(degree.max())}, median {np.median(degree):g}",
        ),
        (
            "components",
            f"{number(g.n_components)}, the largest has {percent(g.largest / g.n_nodes)}",
        ),
        ("nodes without neighbours", number(g.isolated)),
        ("edge weight that joins equal predictions", percent(g.predicted_agreement)),
    ]
    if g.agreement is not None:
        pairs.append(
            (
                "edge weight between labels that joins equal ones",
                f"{percent(g.agreement)} ({number(g.labeled_edges)} edges; by chance "
                f"{percent(g.chance)})",
            )
        )
    color, names = _colors(data)
    drawn = data.picture.nodes.size
    sample = "" if drawn == g.n_nodes else f" of a sample of {number(drawn)} rows"
    first = graph_chart(
        "by-class",
        data.picture.positions,
        data.picture.edges,
        color[data.picture_classes],
        data.picture_known,
        title="The graph coloured by prediction",
        description=f"Map{sample}: each row is a dot beside its neighbours, its shape and colour "
        f"are its class. Classes: {', '.join(names)}. Rings mark given labels.",
    )
    level = np.minimum(LEVELS - 1, np.floor(LEVELS * data.picture_uncertainty)).astype(np.intp)
    second = graph_chart(
        "by-uncertainty",
        data.picture.positions,
        data.picture.edges,
        np.maximum(level, 0),
        data.picture_known,
        title="The graph coloured by uncertainty",
        description=f"The same map{sample}; darker (in dark mode brighter) dots are less certain. "
        f"{int((level >= 3).sum())} of {drawn} are in the upper two fifths.",
        levels=True,
    )
    scale = ["certain", "", "", "", "no idea"]
    return definition_list(pairs) + (
        f'<div class="pair"><figure>{first}<figcaption>By prediction{escape(sample)}. Rings: given '
        f"labels.{legend(names, range(len(names)))}</figcaption></figure>"
        f"<figure>{second}<figcaption>By uncertainty."
        f"{legend(scale, range(LEVELS), levels=True)}</figcaption></figure></div>"
        f"<figure>{_degrees(data)}<figcaption>Neighbours per node.</figcaption>"
        "</figure>"
    )


def _colors(data: ReportData) -> tuple[NDArray[np.intp], list[str]]:
    """Colour of each class, the most frequent first, and the names of the colours."""
    k = len(data.classes)
    n_colours = (
        k if k <= MOST_SHOWN else MOST_SHOWN - 1
    )  # beyond, the last colour is for all others
    frequency = np.array(data.labeled_counts) + np.array(data.predicted_counts)
    order = np.argsort(-frequency, kind="stable")
    color = np.full(k, MOST_SHOWN - 1)
    color[order[:n_colours]] = np.arange(n_colours)
    return color, [data.classes[c] for c in order[:n_colours]] + ["other classes"] * (n_colours < k)


def _degrees(data: ReportData) -> str:
    degree = data.graph.degrees.astype(np.float64)
    low, high = float(degree.min()), float(degree.max())
    bins = int(min(24, high - low + 1))
    return histogram(
        "degrees",
        degree,
        np.linspace(low - 0.5, high + 0.5, bins + 1),
        title="Neighbours per node",
        axis="number of neighbours",
    )


def _data(data: ReportData) -> str:
    pairs = [
        ("rows", number(data.n_rows)),
        ("rows with a label", number(data.n_labeled)),
        ("fingerprint of features and labels (SHA-256)", data.fingerprint),
    ]
    html = definition_list(pairs)
    if data.columns:
        most = 60
        html += table(
            ["column", "taken as", "missing", "content"],
            [(c.name, c.done, number(c.missing), c.content) for c in data.columns[:most]],
            caption=f"Columns ({min(most, len(data.columns))} of {len(data.columns)})",
            numeric=(2,),
            first_is_header=True,
            stacked=True,
        )
    return html


def _certificate(data: ReportData) -> str:
    c = data.certificate
    if c is None:
        return paragraph(data.certificate_note)
    what = "the smallest value that any labelling has" if c.exact else "a bound that none can beat"
    words = (
        "The objective adds up the weights of the edges between rows of different classes. The "
        f"predictions have {number(c.objective)}; {what} is {number(c.lower_bound)} "
        f"({c.bound_status}, by {c.method}). A gap does not mean worse predictions: the labelling "
        "of least objective often cuts off just the labels themselves."
    )
    return paragraph(words) + definition_list(
        [
            ("objective of the predictions", f"{c.objective:.6g}"),
            ("optimum" if c.exact else "lower bound", f"{c.lower_bound:.6g}"),
            ("gap", f"{c.gap:.4g} ({percent(c.relative_gap)})"),
            ("status", f"{c.bound_status} by {c.method}"),
        ]
    )


def _reproduce(data: ReportData) -> str:
    html = ""
    if data.command:
        html += f'<pre tabindex="0"><code>{escape(data.command, 2000)}</code></pre>'
    html += definition_list([*data.setting.items()])
    words = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    return html + paragraph(f"Made with {words}.")
