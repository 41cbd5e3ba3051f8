"""What a session leaves behind: the table with labels and predictions, the classifier."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .session import LabelingSession

__all__ = ["save_session", "table_text"]

# First characters for which a spreadsheet takes a cell for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _safe(value: Any) -> Any:
    """Return a cell that no spreadsheet runs."""
    if isinstance(value, str) and value.startswith(FORMULA):
        try:
            float(value)
        except ValueError:
            return "'" + value
    return value


def table_text(
    session: LabelingSession, header: Sequence[str] = (), columns: Sequence[Sequence[Any]] = ()
) -> str:
    """Rows with their label, prediction and probability as CSV.

    Parameters
    ----------
    session : LabelingSession
        The session; the predictions are brought up to date.
    header, columns : sequences
        Names and cells of columns to put in front; the number of the row, from 1, by default.

    Returns
    -------
    str
        The text. Cells that a spreadsheet would run get an apostrophe in front.
    """
    n = session.n_rows
    labels, skipped = session.labels, session.skipped
    if not header:
        header, columns = ["row"], [range(1, n + 1)]
    if labels:
        answers = session.refresh()
        predicted: Sequence[Any] = answers.classes[answers.codes].tolist()
        top = answers.probabilities[np.arange(n), answers.codes]
        sure: Sequence[str] = [f"{p:.4f}" for p in top]
    else:
        predicted = sure = [""] * n
    given = [labels.get(row, "") for row in range(n)]
    marks = ["yes" if row in skipped else "" for row in range(n)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        [_safe(str(name)) for name in (*header, "label", "prediction", "probability", "skipped")]
    )
    for cells in zip(*columns, given, predicted, sure, marks, strict=True):
        writer.writerow([_safe(cell) for cell in cells])
    return buffer.getvalue()


def save_session(session: LabelingSession, path: str | os.PathLike[str]) -> Path:
    """Write the table (".csv") or the classifier (anything else)."""
    target = Path(path)
    if target.suffix.lower() == ".csv":
        text = table_text(session)
        target.write_text(text, encoding="utf-8")
        return target
    return session.classifier().save(target)
