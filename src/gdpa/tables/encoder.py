"""TableEncoder: encode a table of numbers, categories, texts and dates as features."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..errors import nearest_name
from .cell_formats import NumberFormat
from .choice import IDENTIFIER_DOUBT, STRING_DOUBT, choose_variants, labelled_sample
from .columns import (
    KINDS,
    ColumnList,
    ColumnPlan,
    column_numbers,
    decide_column,
    describe_content,
    frequent_values,
    ranks_of,
    reads_like_text,
)
from .embedding import Embedder, Embedding, EmbeddingEncoding, Progress, embed_items, find_embedders
from .features import CategoryEncoding, DateEncoding, Encoding, NumberEncoding
from .frames import table_of
from .pictures import PictureEncoding, picture_folder
from .table import Column, Frame, Table, TableError, shorten
from .texts import TextEncoding

SCALES = ("robust", "standard", "minmax", "none")
# Larger tables are stored as float32. Beyond 200,000 rows texts get half as many features: this
# costs one point of accuracy and saves half the memory.
HALF_PRECISION = 2**24
BY_LABELS = "chosen by held-out labels"
NO_USE = "held-out labels are predicted no better with it"
TOO_FEW = "short strings that seldom repeat, and too few labels to see whether they help"
WEAK = (
    "without a pretrained model, features of photographs are weak (about 40 % accuracy on CIFAR-10 "
    "with 20 labels per class, 67 % with a model); use --embed mobilenet (embed= in Python)"
)


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as features.

    Numbers are standardised. Categories are one-hot encoded, scaled so that each column has unit
    total variance. Scales (low, medium, high) are replaced by ranks, texts by features of their
    words and character n-grams, pictures by features of their patches, and dates by time and
    cycles. Identifiers and constant, empty and duplicate columns are left out. ``columns_`` lists
    how each column was encoded, and why.

    Parameters
    ----------
    columns : mapping of str to {"number", "category", "text", "image", "date", "drop"}, optional
        Kinds of some columns; the others are detected automatically. An image column holds file
        names relative to the folder of the table.
    embed : callable, path, str, or mapping of column names to these, optional
        Embedding model for the text or image columns: a function from a list of texts or Pillow
        images to an array, a folder with an ONNX network (see the page "Text"), or a name
        such as "minilm" or "mobilenet". Without a model, texts and pictures get built-in features,
        which are weak for photographs.
    offline : bool, default=False
        Whether a named model must already be in the cache.
    scale : {"robust", "standard", "minmax", "none"}, default="robust"
        Scaling of numbers. "standard" uses mean and standard deviation. "robust" does, too, but
        limits the influence of outliers and compresses them. "minmax" scales to [0, 1].
    max_categories : int, default=40
        A text column with more distinct values is encoded as text.
    text_features : int, default=64
        Maximal number of text features, shared by all columns; each column gets at least 30. Half
        as many for more than 200,000 rows.
    random_state : int, default=0
        Random seed of the text and picture features.
    coerce : bool, default=False
        Whether a few words in a column of numbers are missing cells. By default they raise an
        error that names the first.
    progress : callable, optional
        Called with the number of embedded items of a column and their total number.

    Attributes
    ----------
    columns_ : ColumnList of ColumnPlan
        Name, kind, reason, missing cells, content and number of features of each column.
    notes_ : tuple of str
        Messages about the decisions.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of str
        Names of the columns.

    See Also
    --------
    gdpa.CommitteeClassifier : Encodes data frames automatically.

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
        embed: Embedding | Mapping[str, Embedding] | None = None,
        offline: bool = False,
        scale: str = "robust",
        max_categories: int = 40,
        text_features: int = 64,
        random_state: int = 0,
        coerce: bool = False,
        progress: Progress = None,
    ) -> None:
        self.columns = columns
        self.embed = embed
        self.offline = offline
        self.progress = progress
        self.scale = scale
        self.max_categories = max_categories
        self.text_features = text_features
        self.random_state = random_state
        self.coerce = coerce

    def __sklearn_clone__(self) -> TableEncoder:
        return TableEncoder(**self.get_params(deep=False))  # embedding models are not copied

    def fit(self, X: Frame, y: Any = None) -> TableEncoder:
        """Fit to a table without its target column.

        Parameters
        ----------
        X : data frame, Table, or mapping of names to columns
            The table.
        y : array-like of shape (n_rows,), optional
            Class of each row; None, NaN, an empty text or -1 where it is unknown. It decides about
            columns that could be several things (``gdpa.tables.choice``): short strings with
            many values, and integers that look like identifiers. With fewer than 20 labels, short
            strings that seldom repeat are left out if there are other columns.

        Returns
        -------
        TableEncoder
            The fitted encoder.

        Raises
        ------
        TableError
            If a column is inconsistent (the message names row and column), or none can be used.
        """
        if self.scale not in SCALES:
            raise ValueError(f"scale={self.scale!r}; {nearest_name(self.scale, list(SCALES))}")
        for name, least in (("max_categories", 2), ("text_features", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
        for name, kind in (self.columns or {}).items():
            if kind not in KINDS:
                known = nearest_name(str(kind), list(KINDS))
                raise ValueError(f"columns: {shorten(str(name))} has the kind {kind!r}; {known}")
        table = X if isinstance(X, Table) else table_of(X)
        wanted = dict(self.columns or {})
        for name in (*wanted, *(self.embed if isinstance(self.embed, Mapping) else ())):
            table.column(name)
        seen: dict[bytes, str] = {}
        marked: set[bytes] = set()
        plans = self._decide(table, wanted)
        kinds = list(map(attrgetter("kind"), plans))
        n_columns = len(plans) - kinds.count("left out")
        models = dict[str, Embedder]()
        if isinstance(self.embed, Mapping):
            for k, plan in enumerate(plans):
                if plan.name in self.embed and plan.kind not in ("text", "image"):
                    plans[k] = ColumnPlan(plan.name, "text", "as requested")
        if self.embed is not None:
            named = dict(zip(table.names, kinds, strict=True))
            models = find_embedders(self.embed, named, table.source, offline=self.offline)
        for k, (plan, column) in enumerate(zip(plans, table.columns, strict=True)):
            if plan.kind != "left out":
                twin = seen.setdefault(_fingerprint(column), plan.name)
                if twin != plan.name and plan.name not in wanted:
                    reason = f"the same cells as column {shorten(twin)}"
                    plan = ColumnPlan(plan.name, "left out", reason)
            if plan.kind == "image" and plan.name not in models:
                plan = replace(plan, notes=(WEAK,))
            encoding = self._learn(column, plan, table.source, n_columns, models.get(plan.name))
            if isinstance(encoding, NumberEncoding) and encoding.gap:
                gaps = np.packbits(column.missing).tobytes()
                if gaps in marked:  # one indicator for columns that are missing together
                    encoding = replace(encoding, gap=0.0)
                marked.add(gaps)
            missing = int(column.missing.sum())
            content = describe_content(column)
            plans[k] = replace(plan, encoding=encoding, missing=missing, content=content)
        if y is not None:
            plans = self._choose(table, plans, {*wanted, *models}, class_codes(y, table.n_rows))
        columns = ColumnList(plans)
        if columns.n_features == 0:
            listed = "; ".join(f"{shorten(p.name)} {p.reason}" for p in plans[:5])
            raise TableError(f"{table.source} has no usable feature column ({listed})")
        self._adopt(columns, table.n_rows * columns.n_features > HALF_PRECISION)
        self._embedders = models
        return self

    def _adopt(self, columns: ColumnList, half: bool) -> TableEncoder:
        """Set the fitted attributes."""
        self.columns_ = columns
        self.half_ = half
        self._embedders = dict[str, Embedder]()
        self._kinds = set(map(attrgetter("kind"), columns))
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(list(map(attrgetter("name"), columns)), dtype=object)
        return self

    def _decide(self, table: Table, wanted: Mapping[str, str]) -> list[ColumnPlan]:
        """Decide the kind of each column."""
        decide = partial(
            decide_column,
            max_categories=self.max_categories,
            source=table.source,
            coerce=self.coerce,
        )
        plans = []
        comma = False
        for name, column in zip(table.names, table.columns, strict=True):
            plan = decide(name, column, wanted=wanted.get(name))
            plans.append(plan)
            format = plan.format
            comma |= isinstance(format, NumberFormat) and format.decimal == "," and format.certain
        # If one column has decimal commas, ambiguous columns have them, too.
        for k, (plan, column) in enumerate(zip(plans, table.columns, strict=True)):
            if comma and plan.kind == "number" and column.texts is not None:
                plans[k] = decide(plan.name, column, wanted=wanted.get(plan.name), comma=True)
        return plans

    def _choose(
        self, table: Table, plans: list[ColumnPlan], settled: set[str], codes: NDArray[np.intp]
    ) -> list[ColumnPlan]:
        """Return the plans with the variants that predict held-out labels best."""
        found = {
            k: self._variants(plan, column, table.source)
            for k, (plan, column) in enumerate(zip(plans, table.columns, strict=True))
            if plan.name not in settled
        }
        ambiguous = {k: variants for k, variants in found.items() if variants}
        if not ambiguous:
            return plans
        rows = labelled_sample(codes, self.random_state, len(ambiguous))
        if rows is None:
            return self._without(plans, [k for k in ambiguous if plans[k].kind == "text"], TOO_FEW)

        def features(k: int, plan: ColumnPlan) -> NDArray[Any]:
            column = table.columns[k]
            some = replace(column, values=column.values[rows])
            out = np.zeros((rows.size, plan.n_features))
            plan.encode(some, out, table.source, None, None)
            return out

        # Embeddings and pictures would be computed twice; the other columns are enough to compare.
        cheap = [
            k
            for k, plan in enumerate(plans)
            if k not in ambiguous
            and not isinstance(plan.encoding, EmbeddingEncoding | PictureEncoding)
        ]
        chosen = choose_variants(
            [features(k, plans[k]) for k in cheap],
            [[features(k, plan) for plan in variants] for k, variants in ambiguous.items()],
            [IDENTIFIER_DOUBT if plans[k].kind == "left out" else STRING_DOUBT for k in ambiguous],
            codes[rows],
            self.random_state,
        )
        decided = list(plans)
        useless = []
        for (k, variants), best in zip(ambiguous.items(), chosen, strict=True):
            if best is not None:
                decided[k] = variants[best]
            elif plans[k].kind != "left out":
                useless.append(k)
        return self._without(decided, useless, NO_USE)

    @staticmethod
    def _without(plans: list[ColumnPlan], places: list[int], reason: str) -> list[ColumnPlan]:
        """Return the plans with some columns left out, unless no other column can be used."""
        kept = list(plans)
        for k in places:
            kept[k] = replace(plans[k], kind="left out", encoding=None, reason=reason)
        return kept if ColumnList(kept).n_features else plans

    def _variants(self, plan: ColumnPlan, column: Column, source: str) -> list[ColumnPlan]:
        """Return what an ambiguous column could be, besides nothing; empty for other columns."""
        name = plan.name
        if plan.kind == "left out" and plan.reason.startswith("identifier") and not column.moments:
            why = f"looks like an identifier, but predicts labels: {BY_LABELS}"
            number = ColumnPlan(name, "number", why, NumberFormat())
            variant = number if column.texts is None else ColumnPlan(name, "text", why)
            return [self._learned(variant, plan, column, source)]
        if plan.kind == "text" and not reads_like_text(column.texts or ()):
            if not frequent_values(column, self.max_categories)[0]:
                return [plan]
            why = f"{plan.reason}, the frequent ones kept: {BY_LABELS}"
            return [plan, self._learned(ColumnPlan(name, "category", why), plan, column, source)]
        if isinstance(plan.encoding, CategoryEncoding) and plan.encoding.rest:
            why = f"{plan.reason.partition(',')[0]}: {BY_LABELS}"
            return [plan, self._learned(ColumnPlan(name, "text", why), plan, column, source)]
        return []

    def _learned(
        self, variant: ColumnPlan, plan: ColumnPlan, column: Column, source: str
    ) -> ColumnPlan:
        """Fit the encoding of another variant of a column."""
        encoding = self._learn(column, variant, source, 2, None)
        return replace(variant, encoding=encoding, missing=plan.missing, content=plan.content)

    def _models(self) -> dict[str, Embedder]:
        """Return the embedding models by column.

        A stored encoder names its models but never loads them: the user gives them again, so that
        a model file from somebody else cannot cause a download or the parsing of another file.
        """
        kinds = {plan.name: plan.kind for plan in self.columns_}
        stored = {plan.name: plan.encoding for plan in self.columns_}
        used = {n: e for n, e in stored.items() if isinstance(e, EmbeddingEncoding)}
        if used and not self._embedders:
            if self.embed is None:
                name, encoding = next(iter(used.items()))
                raise ValueError(
                    f"column {shorten(name)} was embedded by {shorten(encoding.name)}; give this "
                    "model again with --embed, or encoder_.set_params(embed=...) in Python"
                )
            digests = {name: encoding.digest for name, encoding in used.items()}
            self._embedders = find_embedders(
                self.embed, kinds, "the table", offline=self.offline, digests=digests
            )
        for name, encoding in used.items():
            model = self._embedders.get(name)
            if model is None:
                raise ValueError(f"embed has no model for column {shorten(name)}")
            if model.digest != encoding.digest:
                raise ValueError(
                    f"column {shorten(name)} was embedded by {encoding.name}; embed={model.name} "
                    "is a different model"
                )
        return self._embedders

    def _learn(
        self,
        column: Column,
        plan: ColumnPlan,
        source: str,
        n_columns: int,
        embedder: Embedder | None,
    ) -> Encoding | None:
        """Fit the encoding of a column."""
        where = f"{source}, column {shorten(plan.name)}"
        if plan.kind == "left out":
            return None
        if plan.kind == "number":
            return NumberEncoding.fit(column_numbers(plan, column, where), self.scale)
        if plan.kind == "date":
            return DateEncoding.fit(column_numbers(plan, column, where), self.scale)
        if plan.kind == "ordered":
            return NumberEncoding.fit(ranks_of(column, plan.ranks)[0], self.scale)
        column = column.as_text()
        texts = column.texts or []
        if plan.kind in ("text", "image") and not texts:
            raise TableError(f"{where}: the column is empty; it cannot be {plan.kind}")
        if embedder is not None:
            sample = texts[:: -(-len(texts) // 1000)]  # for the mean and the scale
            vectors, bad = embed_items(sample, embedder, plan.kind, source, self.progress)
            return EmbeddingEncoding.fit(embedder, np.delete(vectors, list(bad), axis=0))
        if plan.kind == "image":
            folder = picture_folder(source)
            return PictureEncoding.fit(texts, folder, self.text_features, self.random_state)
        missing, *counts = np.bincount(column.values + 1, minlength=len(texts) + 1)
        if plan.kind == "text":
            # Many text features would crowd out the other columns in a forest.
            most = min(self.text_features, max(30, self.text_features // n_columns))
            most = most if len(column) <= 200_000 else -(-most // 2)
            return TextEncoding.fit(texts, np.array(counts), most, self.random_state)
        others = 0
        pairs = list(zip(texts, counts, strict=True))
        if len(texts) > self.max_categories and plan.reason not in ("", "as requested"):
            places, kept = frequent_values(column, self.max_categories)
            pairs = [pairs[place] for place in places]
            others = int(sum(counts)) - kept
        pairs = sorted(pairs) + [("", missing)] * bool(missing)
        categories, shares = zip(*pairs, strict=True)
        return CategoryEncoding.fit(categories, np.array(shares), self.scale, others)

    def transform(self, X: Frame) -> NDArray[Any]:
        """Encode the rows of a table.

        Parameters
        ----------
        X : data frame, Table, or mapping of names to columns
            A table with all columns in use; other columns are ignored.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The features: float32 for tables of more than 16 million cells, else float64.

        Raises
        ------
        TableError
            If a column is missing, or a number column contains text.
        """
        features, notes = self.encode(X)
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return features

    def encode(self, X: Frame) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Encode the rows of a table and return messages instead of warnings.

        Parameters
        ----------
        X : data frame, Table, or mapping of names to columns
            As for :meth:`transform`.

        Returns
        -------
        features : ndarray of shape (n_rows, n_features)
            The features.
        notes : tuple of str
            Messages about unknown categories and unreadable pictures.
        """
        check_is_fitted(self)
        models = self._models() if {"text", "image"} & self._kinds else {}
        dtype = np.float32 if self.half_ else np.float64
        return self.columns_.encode(X, dtype, models, self.progress)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the feature names.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str objects
            The column name followed by the category or component.
        """
        check_is_fitted(self)
        return np.array(self.columns_.feature_names, dtype=object)

    @property
    def notes_(self) -> tuple[str, ...]:
        """Messages about the decisions."""
        check_is_fitted(self)
        return tuple(chain.from_iterable(map(ColumnPlan.messages, self.columns_)))

    @property
    def as_text_(self) -> frozenset[str]:
        """Columns that a CSV reader must keep as text."""
        check_is_fitted(self)
        return frozenset(plan.name for plan in self.columns_ if plan.needs_text)

    def to_plain(self) -> dict[str, Any]:
        """Return the fitted encoder as data for JSON; see :meth:`from_plain`."""
        check_is_fitted(self)
        columns = [plan.to_plain() for plan in self.columns_]
        return {"scale": self.scale, "half": bool(self.half_), "columns": columns}

    @classmethod
    def from_plain(cls, data: Any) -> TableEncoder:
        """Rebuild an encoder from :meth:`to_plain`.

        Parameters
        ----------
        data : dict
            The output of :meth:`to_plain`.

        Returns
        -------
        TableEncoder
            The fitted encoder.

        Raises
        ------
        ValueError
            If the data do not describe an encoder.
        """
        columns = data.get("columns") if isinstance(data, dict) else None
        if (
            not isinstance(columns, list)
            or not isinstance(data.get("half"), bool)
            or data.get("scale") not in SCALES
        ):
            raise ValueError("the description of the columns is missing or invalid")
        plans = ColumnList(ColumnPlan.from_plain(column) for column in columns)
        if len({plan.name for plan in plans}) != len(plans) or plans.n_features == 0:
            raise ValueError("invalid column descriptions: names repeat, or no column is in use")
        return cls(scale=data["scale"])._adopt(plans, data["half"])


def is_unknown(label: Any) -> bool:
    """Return whether a label is missing, an empty text or -1."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return bool(label != label) or label in ("", -1)


def class_codes(y: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the class number of each row, -1 where it is unknown.

    Targets that are not classes (numbers with a fraction) are unknown.
    """
    given = np.asarray(y)
    if given.size != n_rows:
        raise ValueError(f"y has {given.size} values, the table has {n_rows} rows")
    if given.dtype.kind == "i":
        return np.where(given.ravel() < 0, -1, np.unique(given, return_inverse=True)[1].ravel())
    values = np.asarray(y, dtype=object).ravel()
    unknown = np.array([is_unknown(value) for value in values], dtype=bool)
    codes = np.full(values.size, -1, dtype=np.intp)
    if any(isinstance(v, float | np.floating) and v % 1 for v in values[~unknown]):
        return codes
    codes[~unknown] = np.unique(values[~unknown].astype(str), return_inverse=True)[1]
    return codes


def _fingerprint(column: Column) -> bytes:
    """Return a digest of the cells, to find duplicate columns."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(column.values).view(np.uint8).data)
    for start in range(0, len(column.texts or ()), 10_000):
        part = "\0".join((column.texts or ())[start : start + 10_000])
        digest.update((part + "\0").encode("utf-8", "surrogatepass"))
    return digest.digest()
