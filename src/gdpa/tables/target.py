"""The target column of a table: which rows have a label, and which classes there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .table import Table, TableError
from .words import shown

__all__ = ["read_target"]

MOST_CLASSES = 1000
# Words that often mean "unknown" and are no missing cell to the reader.
SUSPECTS = frozenset(
    {"unknown", "unlabeled", "unlabelled", "undefined", "missing", "tbd", "todo", "n.a.", "-"}
    | {"--", ".", "..", "???", "*", "x", "-9", "-99", "-999", "-9999", "99999"}
)


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
        What marks an unknown label, besides what is a missing cell in any column (empty, NA, NaN,
        null, ?).
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
    texts = np.array(table.column(name, "target column").cells(), dtype=object)
    unknown = texts == ""
    marked = None
    if unlabeled is not None and unlabeled.strip():
        marked = _same(texts, unlabeled.strip())
        unknown |= marked
    labels = texts.copy()
    labels[unknown] = None
    classes, counts = np.unique(texts[~unknown].astype(str), return_counts=True)
    n, m = texts.size, int(counts.sum())
    where = f"{table.source}, target column {shown(name)}"
    if m == 0:
        raise TableError(f"{where}: no row has a label; at least two classes need one each")
    no_marker = marked is not None and not marked.any()
    hint = f"; no row has the marker {unlabeled!r}" if no_marker else ""
    if classes.size == 1:
        raise TableError(
            f"{where}: the only class is {str(classes[0])[:60]!r} ({m} rows); two are needed{hint}"
        )
    if classes.size > MOST_CLASSES or (classes.size > 20 and 2 * classes.size > m):
        raise TableError(
            f"{where}: {classes.size} different labels in {m} labelled rows; these look like "
            "numbers or names, not classes"
        )
    if m == n and not complete:
        raise TableError(
            f"{where}: all {n} rows have a label, nothing is left to predict; leave cells empty "
            f"(or say --unlabeled MARKER), or use --model to keep the classifier for new rows{hint}"
        )
    notes = [f"no row of target column {shown(name)} has the marker {unlabeled!r}"] * no_marker
    for c in map(str, classes):
        if c.lower() in SUSPECTS or (c == "-1" and classes.size > 2):
            notes.append(
                f"target column {shown(name)}: {c!r} is taken as a class; if it marks unknown "
                f"labels, say --unlabeled {c}"
            )
    return labels, tuple(notes)


def _same(texts: NDArray[Any], marker: str) -> NDArray[np.bool_]:
    """Cells that are the marker, as text or as a number (-1 is also -1.0)."""
    found = np.asarray(texts == marker)
    try:
        value = float(marker)
    except ValueError:
        return found
    return np.asarray(found | (texts == f"{value:.17g}"))
