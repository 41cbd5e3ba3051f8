"""Encode labels of any type as class numbers.

The marker of an unknown label is -1 unless the caller passes another one. If the marker is a
missing value (None, NaN, NaT, pandas' NA), all kinds of missing values count as unknown.

The rule is the same for lists, arrays, and pandas, polars and Arrow columns:

- masked entries are unknown;
- among strings, missing values, blank strings and the text of the marker ("-1") are unknown;
- among numbers, a missing value is an error unless the marker is a missing value.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codec import check_numbers, storable


@storable("labels")
@dataclass(frozen=True, eq=False)
class LabelCoding:
    """Class numbers of all samples.

    Parameters
    ----------
    codes : ndarray of int32 of shape (n_samples,)
        Position in `classes`, or -1 if the label is unknown.
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    """

    codes: NDArray[np.int32]
    classes: NDArray[Any]

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        k = self.classes.size
        check_numbers("codes", self.codes, (None,), at_least=-1, at_most=k - 1)
        if self.classes.ndim != 1 or np.unique(self.classes).size != k:
            raise ValueError("classes must be distinct")
        if self.classes.dtype.kind == "f" and not np.isfinite(self.classes).all():
            raise ValueError("classes must be finite")

    @property
    def labeled(self) -> NDArray[np.intp]:
        """Positions of the known labels, ascending."""
        return np.flatnonzero(self.codes >= 0)

    def with_labels(self, rows: NDArray[np.intp], codes: NDArray[np.int32]) -> LabelCoding:
        """Return these labels with some changed; -1 removes a label."""
        changed = self.codes.copy()
        changed[rows] = codes
        if not (changed >= 0).any():
            raise ValueError("labels removes the last label; at least one must remain")
        return LabelCoding(changed, self.classes)

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> LabelCoding:
        """Return the same labels among more classes."""
        codes = np.where(self.codes < 0, self.codes, place[self.codes]).astype(np.int32)
        return LabelCoding(codes, classes)


def expand_class_columns(
    columns: NDArray[np.float64], place: NDArray[np.integer], n_classes: int
) -> NDArray[np.float64]:
    """Move the columns of classes to their positions among more classes; new columns are 0."""
    out = np.zeros((*columns.shape[:-1], n_classes))
    out[..., place] = columns
    return out


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def known_labels(y: Any, unlabeled: Any = -1) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return y as a flat array, and a mask of the entries that are labels.

    Raises ValueError if y is not one-dimensional, or if a value is missing although the marker
    `unlabeled` is not a missing value.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: y must hold one label or marker "
            "per sample"
        )
    values, masked = _label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples,)",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values.ravel()
        masked = masked.ravel()
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead")
    if values.dtype.kind == "c":
        raise ValueError("y is complex; Complex data not supported as labels")
    missing = masked.copy()
    if values.dtype.kind == "O":
        missing |= np.fromiter(map(is_missing, values), dtype=bool, count=values.size)
    elif values.dtype.kind in "fmM":
        missing |= values != values  # NaN and NaT
    by_absence = is_missing(unlabeled)
    known = ~missing if by_absence else ~missing & ~_equal(values, unlabeled)
    if _are_strings(values[known]):
        # Among strings a missing value or a blank can only mean an unknown label.
        known[known] = [bool(label.strip()) for label in values[known]]
        return values, known
    absent = np.flatnonzero(missing & ~masked)
    if absent.size and not by_absence:
        raise ValueError(
            f"Input y contains NaN: y[{absent[0]}] is missing, but the marker of an unknown label "
            f"is unlabeled={unlabeled!r}; pass unlabeled=None if missing values are unknown labels"
        )
    return values, known


def _are_strings(labels: NDArray[Any]) -> bool:
    """Return whether there are labels and all of them are strings."""
    if labels.dtype.kind == "O":
        return labels.size > 0 and all(isinstance(label, str) for label in labels)
    return bool(labels.dtype.kind == "U")


def _label_array(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels as an array, and which of them are masked.

    NumPy converts the entries of a list to one type, for example None to "None" and True to 1. If
    that would change labels, the array has objects.
    """
    # Nullable and categorical pandas types, and columns of polars and Arrow, become objects, so
    # that NA stays NA and integers stay integers.
    kind = getattr(y, "dtype", getattr(y, "type", None))
    extension = kind is not None and not isinstance(kind, np.dtype | type)
    if extension:
        y = _listed(y)
    try:
        values = np.asarray(y, dtype=object) if extension else np.asarray(y)
        if isinstance(y, list | tuple | deque) and values.ndim == 1 and len(set(map(type, y))) > 1:
            values = _natural(_objects(y))
    except ValueError as error:
        raise ValueError(
            "y has labels that are sequences; labels must be strings, numbers or booleans: convert "
            "them with str(...)"
        ) from error
    masked = np.zeros(values.shape, dtype=bool)
    if np.ma.isMaskedArray(y):
        masked |= np.ma.getmaskarray(y)
    return values, masked


def _objects(values: Collection[Any]) -> NDArray[Any]:
    """Return the values as they are, in an array of objects."""
    made = np.empty(len(values), dtype=object)
    made[:] = list(values)
    return made


def _listed(column: Any) -> Any:
    """Return the cells of a pandas, polars or Arrow column as objects; None where missing."""
    categories = getattr(column, "cat", column)
    if hasattr(categories, "codes") and hasattr(categories, "categories"):  # pandas
        names = _objects([*categories.categories.tolist(), None])
        return names[np.asarray(categories.codes)]
    listed = getattr(column, "to_list", getattr(column, "to_pylist", None))
    return column if listed is None else _objects(listed())


def encode_labels(y: Any, unlabeled: Any = -1) -> LabelCoding:
    """Encode y as class numbers.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any type.
    unlabeled : object, default=-1
        Marker of an unknown label; None or NaN mean every kind of missing value.

    Raises
    ------
    ValueError
        If no label is known, the labels are continuous or of mixed types, or y contains only -1 and
        +1 while -1 is the marker.
    """
    from sklearn.utils.multiclass import check_classification_targets

    values, known = known_labels(y, unlabeled)
    if not known.any():
        raise ValueError(
            f"y has no known label: all {values.size} entries are missing or the marker "
            f"unlabeled={unlabeled!r}; at least one label is needed"
        )
    labels = values[known]
    if labels.dtype.kind == "O":
        labels = _natural(labels)
    _check_types(labels)
    check_classification_targets(labels)
    classes, inverse = np.unique(labels, return_inverse=True)
    marked = isinstance(unlabeled, int | float | np.number) and unlabeled == -1
    if marked and classes.dtype.kind in "iuf" and classes.tolist() == [1] and not known.all():
        raise ValueError(
            "y contains only -1 and +1, and -1 is the marker of an unknown label: it is ambiguous "
            "whether -1 is a class. If it is, pass unlabeled=0 (or another marker); "
            "if not, there is only one class, 1"
        )
    codes = np.full(values.size, -1, dtype=np.int32)
    codes[known] = inverse
    return LabelCoding(codes, classes)


def _check_types(labels: NDArray[Any]) -> None:
    """Raise an error if labels are of another type than strings, numbers or booleans, or of two."""
    # An object array may mix types. Bytes and dates have a single type.
    suspects = {"O": labels, "S": labels[:1], "m": labels[:1], "M": labels[:1]}
    for value in suspects.get(labels.dtype.kind, ()):
        if not isinstance(value, str | bool | int | float | np.bool_ | np.number):
            kind = type(value).__name__
            raise ValueError(
                f"y has a label of type {kind} ({str(value)[:40]!r}); labels must be strings, "
                f"numbers or booleans: {'decode it' if 'bytes' in kind else 'use str(...)'}"
            )
    if labels.dtype.kind == "O" and len(set(map(_family, labels))) > 1:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(f"y mixes labels of different types ({kinds}); use one type for all")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains infinity; labels must be finite")


def encode_more(labels: Any, classes: NDArray[Any], unlabeled: Any = -1) -> NDArray[np.int32]:
    """Encode further labels of known classes; the marker `unlabeled` becomes -1."""
    values, known = known_labels(_as_sequence(labels), unlabeled)
    position = {value: code for code, value in enumerate(classes.tolist())}
    codes = np.full(values.size, -1, dtype=np.int32)
    for i in np.flatnonzero(known).tolist():
        value = values[i : i + 1].tolist()[0]
        if value not in position:
            raise ValueError(
                f"labels[{i}] is {value!r}, which is not one of the classes "
                f"{classes.tolist()!r}; refit to learn a new class, or pass new_classes=True"
            )
        codes[i] = position[value]
    return codes


def with_more_classes(labels: Any, classes: NDArray[Any], unlabeled: Any = -1) -> NDArray[Any]:
    """Return the sorted classes together with the new ones among further labels."""
    values, known = known_labels(_as_sequence(labels), unlabeled)
    new = _natural(values[known])
    kinds = {new.dtype.kind, classes.dtype.kind}
    if "O" not in kinds and len(kinds & {"U", "S"}) not in (0, len(kinds)):
        raise ValueError(
            f"labels have another type than the classes {classes.tolist()!r}; use one type"
        )
    if classes.dtype.kind == "O":
        new = new.astype(object)
    try:
        return np.unique(np.concatenate([classes, new]))
    except TypeError as error:
        raise ValueError("labels mixes types that cannot be sorted; use one type") from error


def _family(label: Any) -> str:
    """Return which labels a label can be compared with: strings, booleans or numbers."""
    if isinstance(label, str):
        return "string"
    return "boolean" if isinstance(label, bool | np.bool_) else "number"


def _as_sequence(labels: Any) -> Any:
    """Return a single label as a list with one entry."""
    if isinstance(labels, np.ndarray):
        return np.atleast_1d(labels)
    return [labels] if isinstance(labels, str | bytes) or not hasattr(labels, "__len__") else labels


def _equal(values: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    # The text of the marker counts too: NumPy stores ["a", -1] as ["a", "-1"].
    text = str(marker)
    if values.dtype.kind == "U":
        return np.asarray(values == text)
    if values.dtype.kind == "O":
        same = [_is_marker(v, marker, text) for v in values]
        return np.array(same, dtype=bool)
    if isinstance(marker, str) or values.dtype.kind == "b":
        return np.zeros(values.size, dtype=bool)
    return np.asarray(values == marker)


def _is_marker(value: Any, marker: Any, text: str) -> bool:
    """Return whether a label is the marker, or the text of the marker."""
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool | np.bool_) or is_missing(value):
        return False
    return bool(value == marker)


def _natural(labels: NDArray[Any]) -> NDArray[Any]:
    """Convert an object array of numbers to a numeric array; other objects stay."""
    if labels.dtype.kind != "O":
        return labels
    kinds = set(map(type, labels))
    for family in ((bool, np.bool_), (int, np.integer), (int, float, np.integer, np.floating)):
        if all(issubclass(kind, family) and (bool in family or kind is not bool) for kind in kinds):
            return np.asarray(labels.tolist())
    return labels


def by_appearance(codes: NDArray[Any]) -> NDArray[np.int32]:
    """Renumber classes from 0 in the order in which they first appear."""
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int32)[code]


def stratified_folds(codes: NDArray[np.int32], n_folds: int) -> NDArray[np.int32]:
    """Return the fold of each label, deterministically.

    Fold sizes differ by at most one, in total and within each class.
    """
    order = np.argsort(by_appearance(codes), kind="stable")
    fold = np.empty(codes.size, dtype=np.int32)
    fold[order] = np.arange(codes.size) % n_folds
    return fold
