"""The target column of a table: which rows have a label, and which classes there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .read import Table, TableError

__all__ = ["label_texts", "read_target"]

MOST_CLASSES = 1000
SUSPECTS = frozenset({"?", "na", "n/a", "nan", "null", "none", "unknown", "unlabeled", "-"})


def label_texts(values: NDArray[Any]) -> NDArray[Any]:
    """Cells as text, whole numbers without a point; missing ones are empty.

    Parameters
    ----------
    values : ndarray
        Numbers or text.

    Returns
    -------
    ndarray of str objects
        The texts.
    """
    if values.dtype == object:
        return np.array([str(v).strip() for v in values], dtype=object)
    texts = [
        "" if np.isnan(v) else str(int(v)) if float(v).is_integer() else repr(float(v))
        for v in values
    ]
    return np.array(texts, dtype=object)


def read_target(
    table: Table, name: str, *, unlabeled: str | None = None, complete: bool = False
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Labels of the rows, None where there is none.

    Parameters
    ----------
    table : Table
        The table.
    name : str
        The target column.
    unlabeled : str, optional
        What marks an unknown label, besides an empty cell.
    complete : bool, default=False
        Whether a table with a label in every row is accepted.

    Returns
    -------
    labels : ndarray of objects
        Text, or None.
    notes : tuple of str
        What the user should know.

    Raises
    ------
    TableError
        If there is no such column, no label, one class only, nothing to predict, or the column
        looks like numbers rather than classes.
    """
    texts = label_texts(table.column(name, "target column"))
    unknown = texts == ""
    if unlabeled is not None:
        unknown |= texts == unlabeled
    labels = texts.copy()
    labels[unknown] = None
    classes, counts = np.unique(texts[~unknown].astype(str), return_counts=True)
    n, m = texts.size, int(counts.sum())
    where = f"{table.source}, target column {name!r}"
    if m == 0:
        raise TableError(f"{where}: no row has a label; at least two classes need one each")
    if classes.size == 1:
        raise TableError(
            f"{where}: the only class is {str(classes[0])!r} ({m} rows); two are needed"
            + _hint(n, m, unlabeled)
        )
    if classes.size > MOST_CLASSES or (classes.size > 20 and 2 * classes.size > m):
        raise TableError(
            f"{where}: {classes.size} different labels in {m} labelled rows; these look like "
            "numbers or names, not classes"
        )
    if m == n and not complete:
        raise TableError(
            f"{where}: all {n} rows have a label, nothing is left to predict; leave cells empty "
            "(or say --unlabeled MARKER), or use --model to keep the classifier for new rows"
        )
    suspects = [str(c) for c in classes if str(c).lower() in SUSPECTS]
    notes = [
        f"target column {name!r}: {c!r} is taken as a class; if it marks unknown labels, say "
        f"--unlabeled {c}"
        for c in suspects
    ]
    return labels, tuple(notes)


def _hint(n: int, m: int, unlabeled: str | None) -> str:
    if unlabeled is not None and m == n:
        return f"; no row has the marker {unlabeled!r}"
    return ""
