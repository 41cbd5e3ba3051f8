"""The model card: what a saved model is, on one page of Markdown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .data import fingerprint, versions

if TYPE_CHECKING:
    from collections.abc import Mapping


def model_card(model: Any, points: Any, about: Mapping[str, Any], *, title: str) -> str:
    """Describe a fitted classifier.

    Parameters
    ----------
    model : CommitteeClassifier or GraphClassifier
        The fitted classifier.
    points : ndarray or None
        Its encoded features, for the data hash.
    about : mapping
        Facts about the table: ``target``, ``source``.
    title : str
        Heading.

    Returns
    -------
    str
        Markdown: data, columns, classes, accuracy with interval, versions and date.
    """
    codes = model.ensemble_.labels.codes
    known = codes >= 0
    accuracy = model.accuracy_ or f"unknown, {model.tuning_.reason}"
    lines = [
        f"# {_plain(title)}",
        "",
        f"- written: {datetime.now(UTC).strftime('%Y-%m-%d %H:%M')} UTC",
        f"- data: {_plain(about.get('source', 'an array'))}, {codes.size:,} rows, "
        f"{int(known.sum()):,} labels, target {_plain(about.get('target', 'y'))}",
        f"- SHA-256 of encoded features and labels: {fingerprint(points, codes)}",
        f"- method: {getattr(model, 'method', 'committee')}",
        f"- accuracy: {accuracy}",
        f"- versions: {', '.join(f'{name} {each}' for name, each in versions().items())}",
        "",
        "The accuracy holds for rows like the labelled ones. `gdpa predict` counts rows that are "
        "unlike those of the fit.",
        "",
        "## Classes",
        "",
        "| class | labels | precision | recall | F1 |",
        "|---|---:|---:|---:|---:|",
    ]
    scores = {} if model.accuracy_ is None else {s.label: s for s in model.evaluate().per_class}
    for c, name in enumerate(model.classes_.tolist()):
        found = scores[name].percentages() if name in scores else ("-", "-", "-")
        lines.append(f"| {_plain(name)} | {int((codes == c).sum())} | {' | '.join(found)} |")
    columns = getattr(model, "columns_", ())
    if columns:
        lines += ["", "## Columns", "", "| column | encoded as | missing |", "|---|---|---:|"]
        lines += [f"| {_plain(p.name)} | {_plain(p.done())} | {p.missing} |" for p in columns]
    return "\n".join([*lines, ""])


def _plain(value: object) -> str:
    """Return a text that cannot break out of a line or a cell of Markdown."""
    text = " ".join(str(value).split())[:120]
    return "".join("\\" + c if c in "\\`*_[]<>|#" else c for c in text if c.isprintable())
