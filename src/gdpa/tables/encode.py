"""Turn the columns of a table into features: numbers kept, text one-hot, gaps filled.

What was learned (medians, categories) is a plain dictionary, so that it can be stored beside a
model as JSON and applied to new rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .read import Table, TableError

__all__ = ["FeatureEncoder"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
MAX_CATEGORIES = 100
MOSTLY = 0.9  # a text column of which this share are numbers is a numeric column with errors


def _numbers(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Cells as numbers (NaN where missing) and which cells are neither."""
    if values.dtype != object:
        return values.astype(np.float64), np.zeros(values.size, dtype=bool)
    try:
        return values.astype(np.float64), np.zeros(values.size, dtype=bool)
    except (TypeError, ValueError):
        pass
    numbers = np.full(values.size, np.nan)
    wrong = np.zeros(values.size, dtype=bool)
    for i, cell in enumerate(values):
        text = str(cell).strip()
        if text.lower() in MISSING:
            continue
        try:
            numbers[i] = float(text)
        except ValueError:
            wrong[i] = True
    return numbers, wrong


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype != object:
        return np.array([f"{v:g}" if np.isfinite(v) else "" for v in values], dtype=object)
    cleaned = [str(v).strip() for v in values]
    return np.array(["" if v.lower() in MISSING else v for v in cleaned], dtype=object)


@dataclass(frozen=True)
class FeatureEncoder:
    """Columns to features, learned from one table and applied to others.

    Parameters
    ----------
    columns : tuple of dict
        One entry per used column: its name, ``"number"`` with the median, or ``"category"`` with
        the list of categories.
    notes : tuple of str
        What was done that the user should know: cells imputed, columns left out.
    """

    columns: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def fit(cls, table: Table, *, max_categories: int = MAX_CATEGORIES) -> FeatureEncoder:
        """Learn from a table without its target.

        Parameters
        ----------
        table : Table
            The columns to use.
        max_categories : int, default=100
            A text column with more different values is left out, with a note.

        Returns
        -------
        FeatureEncoder
            The encoder.

        Raises
        ------
        TableError
            If a column mixes numbers and text, has an infinite cell, or no column is usable.
        """
        columns: list[dict[str, Any]] = []
        notes: list[str] = []
        for name, values in zip(table.names, table.columns, strict=True):
            numbers, wrong = _numbers(values)
            present = int(np.isfinite(numbers).sum())
            infinite = np.flatnonzero(np.isinf(numbers))
            if infinite.size:
                raise TableError(
                    f"{table.source}, column {name!r}, row {infinite[0] + 1}: the value is infinite"
                )
            if wrong.any() and present >= MOSTLY * (present + int(wrong.sum())):
                row = int(np.flatnonzero(wrong)[0])
                raise TableError(
                    f"{table.source}, column {name!r}: {present} cells are numbers, but row "
                    f"{row + 1} has {str(values[row])!r}; correct it, leave it empty or leave the "
                    "column out"
                )
            if not wrong.any():
                if present == 0:
                    notes.append(f"column {name!r} is empty: left out")
                    continue
                missing = numbers.size - present
                median = float(np.nanmedian(numbers))
                if missing:
                    notes.append(
                        f"column {name!r}: {missing} missing cells filled with the median "
                        f"({median:g})"
                    )
                columns.append({"name": name, "kind": "number", "median": median})
                continue
            texts = _texts(values)
            categories = sorted(set(texts) - {""})
            if len(categories) > max_categories:
                notes.append(
                    f"column {name!r} has {len(categories)} different texts (more than "
                    f"{max_categories}): left out"
                )
                continue
            missing = int((texts == "").sum())
            if missing:
                notes.append(f"column {name!r}: {missing} missing cells count as no category")
            columns.append({"name": name, "kind": "category", "categories": categories})
        if not columns:
            raise TableError(f"{table.source} has no usable feature column")
        return cls(tuple(columns), tuple(notes))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        names: list[str] = []
        for column in self.columns:
            if column["kind"] == "number":
                names.append(column["name"])
            else:
                names.extend(f"{column['name']}={c}" for c in column["categories"])
        return tuple(names)

    def transform(self, table: Table) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Encode the rows of a table.

        Parameters
        ----------
        table : Table
            A table that has all columns of the encoder (others are ignored).

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The features.
        notes : tuple of str
            What was done that the user should know.

        Raises
        ------
        TableError
            If a column is missing, or a numeric column has text.
        """
        X = np.zeros((table.n_rows, len(self.feature_names)))
        notes: list[str] = []
        j = 0
        for column in self.columns:
            name = column["name"]
            values = table.column(name)
            if column["kind"] == "number":
                numbers, wrong = _numbers(values)
                bad = np.flatnonzero(wrong | np.isinf(numbers))
                if bad.size:
                    raise TableError(
                        f"{table.source}, column {name!r}, row {bad[0] + 1}: "
                        f"{str(values[bad[0]])!r} is not a finite number"
                    )
                gaps = np.isnan(numbers)
                X[:, j] = np.where(gaps, column["median"], numbers)
                j += 1
                continue
            categories = np.array(column["categories"], dtype=object)
            texts = _texts(values)
            position = np.searchsorted(categories, texts)
            known = position < categories.size
            known[known] = categories[position[known]] == texts[known]
            X[np.flatnonzero(known), j + position[known]] = 1.0
            unknown = int((~known & (texts != "")).sum())
            if unknown:
                notes.append(f"column {name!r}: {unknown} cells have a category not seen before")
            j += categories.size
        return X, tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data for JSON."""
        return {"columns": [dict(c) for c in self.columns]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FeatureEncoder:
        """Rebuild an encoder from :meth:`to_dict`.

        Raises
        ------
        ValueError
            If the data are not those of an encoder.
        """
        columns = data.get("columns")
        if not isinstance(columns, list):
            raise ValueError("the description of the columns is missing")
        for column in columns:
            kind = column.get("kind") if isinstance(column, dict) else None
            if kind is None or not isinstance(column.get("name"), str):
                raise ValueError(f"not a description of a column: {column!r}")
            if kind == "number" and isinstance(column.get("median"), int | float):
                continue
            categories = column.get("categories") if kind == "category" else None
            if isinstance(categories, list) and all(isinstance(c, str) for c in categories):
                continue
            raise ValueError(f"not a description of a column: {column!r}")
        return cls(tuple(columns))
