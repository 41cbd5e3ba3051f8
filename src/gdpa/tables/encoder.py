"""TableEncoder: a table of numbers, categories, texts and dates as a matrix of features."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..errors import nearest_name
from .codes import CategoryCode, Code, DateCode, NumberCode, TextCode
from .decide import KINDS, Reading, decide, interpret
from .frames import table_of
from .plan import ColumnList, ColumnPlan, content_of, ranks_of
from .table import Column, Table, TableError
from .words import shown

__all__ = ["SCALES", "TableEncoder"]

SCALES = ("robust", "standard", "minmax", "none")
MANY_ROWS = 200_000  # beyond, texts get half the features: a point of accuracy for half the memory
HALF_PRECISION = 2**24  # more cells than this are kept as float32: half the memory


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of a table to features, learned from one table and applied to others.

    Numbers are standardised, categories one-hot with a weight that lets a column count as one
    column, scales (low, medium, high) ranked, texts placed by their character n-grams, dates by
    time and cycles; identifiers, constant, empty and duplicate columns are left out. ``columns_``
    says what was done with each column and why.

    Parameters
    ----------
    columns : mapping of str to {"number", "category", "text", "date", "drop"}, optional
        What some columns are, where it should not be found by looking.
    scale : {"robust", "standard", "minmax", "none"}, default="robust"
        Scale of numbers: by mean and deviation without the pull of outliers, which are bent
        towards the others; by mean and deviation; to [0, 1]; or as they are.
    max_categories : int, default=40
        A text column with more different values is taken as text.
    text_features : int, default=30
        Most features of a text column; half of them for more than 200,000 rows.
    random_state : int, default=0
        Seed of the directions of texts.

    Attributes
    ----------
    columns_ : ColumnList of ColumnPlan
        One per column: its name, kind, why, missing cells, content and number of features.
    notes_ : tuple of str
        What the user should know about the decisions.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names.

    See Also
    --------
    gdpa.CommitteeClassifier : Encodes data frames by itself.

    Examples
    --------
    >>> from gdpa.tables import TableEncoder
    >>> rows = {"id": range(30), "size": ["small", "large", "medium"] * 10, "cm": [1.5, 2, 4] * 10}
    >>> encoder = TableEncoder().fit(rows)
    >>> [(column.name, column.kind) for column in encoder.columns_]
    [('id', 'left out'), ('size', 'ordered'), ('cm', 'number')]
    >>> encoder.transform(rows).shape
    (30, 2)
    """

    def __init__(
        self,
        *,
        columns: Mapping[str, str] | None = None,
        scale: str = "robust",
        max_categories: int = 40,
        text_features: int = 30,
        random_state: int = 0,
    ) -> None:
        self.columns = columns
        self.scale = scale
        self.max_categories = max_categories
        self.text_features = text_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn from a table without its target.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, Table, or mapping of names to columns
            The columns.
        y : None
            Not used.

        Returns
        -------
        TableEncoder
            Itself.

        Raises
        ------
        TableError
            If a column contradicts itself (row and column are named), or none can be used.
        """
        self._check_params()
        table = table_of(X)
        wanted = dict(self.columns or {})
        for name in wanted:
            table.column(name)
        readings = self._decide(table, wanted)
        seen: dict[bytes, str] = {}
        marked: set[bytes] = set()
        plans: list[ColumnPlan] = []
        for name, column, reading in zip(table.names, table.columns, readings, strict=True):
            if reading.kind != "drop":
                mark = _fingerprint(column)
                if mark in seen and name not in wanted:
                    reading = Reading("drop", f"the same cells as column {shown(seen[mark])}")
                seen.setdefault(mark, name)
            where = f"{table.source}, column {shown(name)}"
            code = None if reading.kind == "drop" else self._learn(column, reading, where)
            if isinstance(code, NumberCode) and code.gap:
                gaps = np.packbits(column.missing).tobytes()
                if gaps in marked:  # columns that are missing together say it once
                    code = replace(code, gap=0.0)
                marked.add(gaps)
            plans.append(
                ColumnPlan(name, reading, code, int(column.missing.sum()), content_of(column))
            )
        if all(plan.code is None for plan in plans):
            listed = "; ".join(f"{shown(p.name)} {p.reason}" for p in plans[:5])
            raise TableError(f"{table.source} has no usable feature column ({listed})")
        self.columns_ = ColumnList(plans)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self.half_ = table.n_rows * self.columns_.n_features > HALF_PRECISION
        return self

    def _check_params(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale={self.scale!r}; {nearest_name(self.scale, list(SCALES))}")
        for name, least in (("max_categories", 2), ("text_features", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
        for name, kind in (self.columns or {}).items():
            if kind not in KINDS:
                raise ValueError(
                    f"columns: {shown(str(name))} is to be {kind!r}; "
                    f"{nearest_name(str(kind), list(KINDS))}"
                )

    def _decide(self, table: Table, wanted: Mapping[str, str]) -> list[Reading]:
        def look(name: str, column: Column, comma: bool) -> Reading:
            return decide(
                name,
                column,
                wanted=wanted.get(name),
                max_categories=self.max_categories,
                source=table.source,
                comma=comma,
            )

        readings = [look(n, c, False) for n, c in zip(table.names, table.columns, strict=True)]
        formats = [r.format for r in readings if r.kind == "number"]
        if any(f.decimal == "," and f.sure for f in formats):
            # One column proves decimal commas: those that could be either have them too.
            for i, reading in enumerate(readings):
                column = table.columns[i]
                if reading.kind == "number" and column.texts is not None:
                    readings[i] = look(table.names[i], column, True)
        return readings

    def _learn(self, column: Column, reading: Reading, where: str) -> Code:
        if reading.kind == "number":
            return NumberCode.fit(interpret(reading, column, where), self.scale)
        if reading.kind == "date":
            return DateCode.fit(interpret(reading, column, where), self.scale)
        if reading.kind == "ordered":
            return NumberCode.fit(ranks_of(column, reading.ranks)[0], self.scale)
        column = column.as_text()
        assert column.texts is not None
        counts = np.bincount(column.values + 1, minlength=len(column.texts) + 1)
        if reading.kind == "text":
            most = self.text_features if len(column) <= MANY_ROWS else -(-self.text_features // 2)
            return TextCode.fit(column.texts, counts[1:], most, self.random_state)
        texts = list(column.texts)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        categories = [texts[i] for i in order]
        shares = counts[1:][order]
        if counts[0]:
            categories, shares = [*categories, ""], np.append(shares, counts[0])
        return CategoryCode.fit(tuple(categories), shares, self.scale)

    def transform(self, X: Any) -> NDArray[Any]:
        """Encode the rows of a table.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, Table, or mapping of names to columns
            A table that has all columns in use (others are ignored).

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The features; float32 for tables of more than 16 million cells, else float64.

        Raises
        ------
        TableError
            If a column is missing, or a number column has text.
        """
        features, notes = self.encode(X)
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return features

    def encode(self, X: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Encode the rows of a table, and say what was met.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, Table, or mapping of names to columns
            As for :meth:`transform`.

        Returns
        -------
        features : ndarray of shape (n_rows, n_features)
            The features.
        notes : tuple of str
            What the user should know: categories not seen before.
        """
        check_is_fitted(self)
        return self.columns_.encode(X, np.float32 if self.half_ else np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str objects
            The column's name, with the category or the part.
        """
        check_is_fitted(self)
        return np.array(self.columns_.feature_names, dtype=object)

    @property
    def notes_(self) -> tuple[str, ...]:
        """What the user should know about the decisions."""
        check_is_fitted(self)
        return tuple(note for plan in self.columns_ for note in plan.notes())

    @property
    def as_text_(self) -> frozenset[str]:
        """Columns that a file must be read as text for, lest the reader takes them for numbers."""
        check_is_fitted(self)
        return frozenset(plan.name for plan in self.columns_ if plan.needs_text)

    def to_plain(self) -> dict[str, Any]:
        """The fitted encoder as plain data for JSON; see :meth:`from_plain`."""
        check_is_fitted(self)
        return {
            "scale": self.scale,
            "half": bool(self.half_),
            "columns": [plan.to_plain() for plan in self.columns_],
        }

    @classmethod
    def from_plain(cls, data: Any) -> TableEncoder:
        """Rebuild an encoder from :meth:`to_plain`.

        Parameters
        ----------
        data : dict
            What :meth:`to_plain` gave.

        Returns
        -------
        TableEncoder
            The fitted encoder.

        Raises
        ------
        ValueError
            If the data are not those of an encoder.
        """
        columns = data.get("columns") if isinstance(data, dict) else None
        if not isinstance(columns, list) or not isinstance(data.get("half"), bool):
            raise ValueError("the description of the columns is missing")
        if data.get("scale") not in SCALES:
            raise ValueError(f"not a description of columns: scale={data.get('scale')!r}")
        encoder = cls(scale=data["scale"])
        encoder.columns_ = ColumnList(ColumnPlan.from_plain(column) for column in columns)
        names = [plan.name for plan in encoder.columns_]
        if len(set(names)) != len(names) or encoder.columns_.n_features == 0:
            raise ValueError("not a description of columns: names repeat, or none is in use")
        encoder.n_features_in_ = len(names)
        encoder.feature_names_in_ = np.array(names, dtype=object)
        encoder.half_ = data["half"]
        return encoder


def _fingerprint(column: Column) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(column.values).view(np.uint8).data)
    if column.texts is not None:
        for start in range(0, len(column.texts), 10_000):
            part = "\0".join(column.texts[start : start + 10_000])
            digest.update((part + "\0").encode("utf-8", "surrogatepass"))
    return digest.digest()
