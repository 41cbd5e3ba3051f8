"""Compare new rows with the rows that an encoder was fitted to.

Predictions of rows unlike those of the fit are extrapolations, and the accuracy on held-out labels
does not hold for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import NDArray
from .columns import ColumnList, ColumnPlan, column_numbers, ranks_of
from .features import CategoryEncoding, DateEncoding, NumberEncoding
from .table import Table, TableError, shorten

# A number so many standard deviations from the mean of the fit is unlike those of the fit: at most
# 4 % of the numbers of any distribution are (Chebyshev), and one in 2 million of a normal one.
FAR = 5.0
# A column has moved if its mean differs by half a standard deviation, and by four standard errors.
MOVED = 0.5
STANDARD_ERRORS = 4.0
# The share of missing or unknown cells that is worth a message, and its minimal increase.
SHARE = 0.05


@dataclass(frozen=True)
class Drift:
    """How new rows differ from those of the fit.

    Parameters
    ----------
    notes : tuple of str
        One message per column that differs.
    unlike : ndarray of bool of shape (n_rows,)
        Rows with a number far from those of the fit, or a category that the fit has not seen.
    """

    notes: tuple[str, ...]
    unlike: NDArray[np.bool_]


def find_drift(columns: ColumnList, table: Table, n_fitted: int) -> Drift:
    """Compare the columns of a table with those of the fit.

    Parameters
    ----------
    columns : ColumnList
        The encoder's columns.
    table : Table
        New rows.
    n_fitted : int
        Number of rows of the fit.

    Returns
    -------
    Drift
        The differences.
    """
    notes: list[str] = []
    unlike = np.zeros(table.n_rows, dtype=bool)
    for plan in columns:
        if plan.encoding is None or plan.name not in table.names:
            continue
        far, words = _compare(plan, table, n_fitted)
        unlike |= far
        notes += [f"column {shorten(plan.name)}: {each}" for each in words]
    extra = [name for name in table.names if name not in {plan.name for plan in columns}]
    if extra:
        listed = ", ".join(map(shorten, extra[:5])) + ", ..." * (len(extra) > 5)
        notes.append(f"columns that the fit has not seen are ignored: {listed}")
    return Drift(tuple(notes), unlike)


def _compare(plan: ColumnPlan, table: Table, n_fitted: int) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the rows of a column that are unlike those of the fit, and messages."""
    column = table.column(plan.name)
    far = np.zeros(table.n_rows, dtype=bool)
    words: list[str] = []
    gaps = float(column.missing.mean())
    before = plan.missing / max(n_fitted, 1)
    if gaps > before + SHARE:
        words.append(
            f"{100 * gaps:.0f} % of the cells are missing, {100 * before:.0f} % in the fit"
        )
    encoding = plan.encoding
    if isinstance(encoding, CategoryEncoding) and not encoding.rest:
        ranks, _ = ranks_of(column, encoding.categories)
        far = np.isnan(ranks) & ~column.missing
    elif plan.kind == "ordered":
        far = np.isnan(ranks_of(column, plan.ranks)[0]) & ~column.missing
    elif isinstance(encoding, NumberEncoding | DateEncoding):
        number = encoding.time if isinstance(encoding, DateEncoding) else encoding
        try:
            values = column_numbers(plan, column, f"column {shorten(plan.name)}", finite=False)
        except TableError:
            return far, words  # the prediction raises the error
        z = (values - number.shift) / number.scale
        far = np.abs(z) > FAR
        z = np.clip(z[~np.isnan(z)], -FAR, FAR)
        mean = float(z.mean()) if z.size else 0.0
        # Both means have an error: that of the fit and that of the new rows.
        error = float(np.sqrt(1.0 / max(z.size, 1) + 1.0 / max(n_fitted, 1)))
        if abs(mean) > max(MOVED, STANDARD_ERRORS * error) and number.scale > 0:
            direction = "higher" if mean > 0 else "lower"
            words.append(
                f"the mean is {abs(mean):.1f} standard deviations {direction} than in the fit"
            )
    if far.any():
        row = int(np.flatnonzero(far)[0])
        words.append(
            f"{int(far.sum())} cells are unlike those of the fit, first row {row + 1}: "
            f"{column.cell(row)[:40]!r}"
        )
    return far, words
