"""What a session leaves behind, as a table: labels, predictions, probabilities."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..csv_text import csv_text
from .ledger import Value
from .model import Answers

__all__ = ["table_text"]


def table_text(
    n_rows: int,
    labels: Mapping[int, Value],
    skipped: Collection[int],
    answers: Answers | None,
    header: Sequence[str] = (),
    columns: Sequence[Sequence[Any]] = (),
) -> str:
    """Rows with their label, prediction and probability as CSV.

    Parameters
    ----------
    n_rows : int
        Rows of the data.
    labels : mapping
        Row to label.
    skipped : collection of int
        Rows that were skipped.
    answers : Answers or None
        What the classifier says; None before the first label.
    header, columns : sequences
        Names and cells of columns to put in front; the number of the row, from 1, by default.

    Returns
    -------
    str
        The text. Cells that a spreadsheet would run get an apostrophe in front.
    """
    n = n_rows
    if not header:
        header, columns = ["row"], [range(1, n + 1)]
    predicted: Sequence[Any] = [""] * n
    sure: Sequence[str] = [""] * n
    if answers is not None:
        predicted = answers.classes[answers.codes].tolist()
        top = answers.probabilities[np.arange(n), answers.codes]
        sure = [f"{p:.4f}" for p in top]
    given = [labels.get(row, "") for row in range(n)]
    marks = ["yes" if row in skipped else "" for row in range(n)]
    names = [*header, "label", "prediction", "probability", "skipped"]
    return csv_text(names, [*columns, given, predicted, sure, marks])
