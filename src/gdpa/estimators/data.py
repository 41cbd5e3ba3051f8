"""What a fit is given (FitData), the folds of its labels, and the kind of data it is.

Every member predicts each label by a fit that has not seen it (:class:`Fold`). With many samples
this is done on a subsample (:func:`subsample`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..graph.features import MANY_COLUMNS, Features
from .labels import LabelCoding, by_appearance, stratified_folds
from .options import CheckedOptions
from .probabilities import judged_labels

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Codes = NDArray[np.int32]

Kind = Literal["table", "embedding", "bag of words", "pictures", "links", "links without features"]

N_FOLDS = 5
# If the 90th percentile of the columns' standard deviations exceeds the 10th by this factor, the
# columns may have different units.
SAME_UNITS = 10.0
# Pixels and points of a curve: the mean correlation of adjacent columns is at least the first
# number and exceeds that of columns far apart by the second. There are at least 7 x 7 pixels.
PIXEL_CORRELATION = 0.2
PIXEL_EXCESS = 1.5
FEWEST_PIXELS = 49
# Adjacent columns of embeddings have a smaller mean absolute correlation.
EMBEDDING_CORRELATION = 0.3
# Rows that are read to tell the kind of the data.
KIND_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class FitData:
    """Features, labels, links and options of a fit.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features, rescaled as the options of the estimator say.
    labels : LabelCoding
        Labels of the samples.
    options : CheckedOptions
        Options of the fit.
    links : csr_array of shape (n_samples, n_samples), optional
        The user's graph. A subsample has none: few links join two of its samples.
    class_shares : ndarray of shape (n_classes,), optional
        The user's class shares.
    of_pictures : bool, default=False
        Whether the features were learned from pictures.
    """

    X: Features
    labels: LabelCoding
    options: CheckedOptions = field(default_factory=CheckedOptions)
    links: sp.csr_array | None = None
    class_shares: FloatArray | None = None
    of_pictures: bool = False

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.labels.codes.size)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels.classes.size)

    @cached_property
    def labeled(self) -> Rows:
        """Samples with a label."""
        return self.labels.labeled

    @cached_property
    def codes(self) -> Codes:
        """Classes of the labels."""
        return self.labels.codes[self.labeled]

    @cached_property
    def targets(self) -> FloatArray:
        """1 in the column of each label's class, else 0."""
        return np.eye(self.n_classes)[self.codes]

    @property
    def many(self) -> bool:
        """Whether there are so many samples that members are tried on a subsample."""
        return self.n_samples > self.options.policy.judged_nodes

    @property
    def large(self) -> bool:
        """Whether there are so many samples that every solve on a graph takes long."""
        return self.n_samples > self.options.policy.large_nodes

    @cached_property
    def enough_labels(self) -> bool:
        """Whether labels can be held out."""
        several = self.codes[judged_labels(self.codes, self.n_classes)]
        fewest = self.options.policy.fewest_labels
        return bool(np.unique(several).size >= 2 and several.size >= fewest)

    @cached_property
    def kind(self) -> Kind:
        """Which kind of data this is; weights of members are learned for each kind."""
        if self.links is not None:
            return "links" if self.X.shape[1] else "links without features"
        if self.of_pictures:
            return "pictures"
        if isinstance(self.X, sp.csr_array):
            return "bag of words" if self.X.shape[1] >= MANY_COLUMNS else "table"
        return kind_of_columns(self.X)


@dataclass(frozen=True, eq=False)
class Fold:
    """Labels that are held out together.

    Parameters
    ----------
    number : int
        Number of the fold.
    held : ndarray of bool of shape (n_labels,)
        The labels that are held out.
    """

    number: int
    held: Mask

    @cached_property
    def kept(self) -> Rows:
        """Positions of the labels that are not held out."""
        return np.flatnonzero(~self.held)


def folds_of(numbers: NDArray[np.integer]) -> list[Fold]:
    """Return the folds of labels with these numbers; labels with -1 are never held out."""
    return [Fold(f, np.asarray(numbers == f)) for f in range(int(numbers.max()) + 1)]


@dataclass(frozen=True, eq=False)
class Sample:
    """The samples on which members are tried.

    Parameters
    ----------
    data : FitData
        Features and labels of the samples.
    folds : ndarray of int of shape (n_labels,)
        Fold of each label.
    positions : ndarray of int of shape (n_labels,)
        Positions of these labels among all labels of the fit.
    """

    data: FitData
    folds: Codes
    positions: Rows


def subsample(data: FitData) -> Sample:
    """Return the samples on which members are tried: all if there are few.

    Of many samples the subsample has all labels, or a stratified part of them, and random others.
    """
    policy = data.options.policy
    folds = stratified_folds(data.codes, N_FOLDS)
    if not data.many:
        return Sample(data, folds, np.arange(data.codes.size))
    positions = stratified_subsample(data.codes, policy.judged_labels)
    known = data.labeled[positions]
    others = np.flatnonzero(data.labels.codes < 0)
    rng = np.random.default_rng(data.options.random_state)
    wanted = min(others.size, max(policy.judged_nodes - known.size, 0))
    rows = np.sort(np.concatenate([known, rng.choice(others, wanted, replace=False)]))
    codes = np.where(np.isin(rows, known), data.labels.codes[rows], -1).astype(np.int32)
    labels = LabelCoding(codes, data.labels.classes)
    part = FitData(
        data.X[rows],
        labels,
        data.options,
        class_shares=data.class_shares,
        of_pictures=data.of_pictures,
    )
    return Sample(part, folds[positions], positions)


def stratified_subsample(codes: NDArray[np.integer], most: int) -> Rows:
    """Return the positions of at most `most` labels, with the class shares of all."""
    if codes.size <= most:
        return np.arange(codes.size)
    order = np.argsort(by_appearance(codes), kind="stable")
    return np.sort(order[np.linspace(0, codes.size - 1, most).astype(np.intp)])


def kind_of_columns(X: NDArray[np.floating]) -> Kind:
    """Tell embeddings, pictures and tables apart by a part of the rows.

    Embeddings have many columns that are not integers, and rows of about the same length. Their
    columns have similar standard deviations, but not equal ones: equal ones are those of a
    standardised table. Adjacent columns are hardly correlated. In pictures and curves they are, and
    more than columns far apart.
    """
    n, d = X.shape
    if d < FEWEST_PIXELS:
        return "table"
    A = np.asarray(X[:: max(1, n // KIND_ROWS)], dtype=np.float64)
    with np.errstate(all="ignore"):
        length = np.linalg.norm(A, axis=1)
        deviation = np.sort(A.std(axis=0))
        U = (A - A.mean(axis=0)) / A.std(axis=0)
        adjacent = (U[:, 1:] * U[:, :-1]).mean(axis=0)
        apart = np.nanmean(np.abs((U * np.roll(U, d // 2, axis=1)).mean(axis=0)))
        alike = np.nanmean(adjacent)
        unlike = np.nanmean(np.abs(adjacent)) < EMBEDDING_CORRELATION
        same_length = length.std() < 0.25 * length.mean()
    if alike >= max(PIXEL_CORRELATION, PIXEL_EXCESS * apart):
        return "pictures"
    low = deviation[d // 10]
    high = deviation[-1 - d // 10]
    similar = 1.01 * low < high < SAME_UNITS * low
    integers = np.mean(np.rint(A) == A) > 0.5
    embedded = unlike and same_length and similar and not integers
    return "embedding" if d >= MANY_COLUMNS and embedded else "table"


def different_units(X: Features) -> bool:
    """Return whether the columns' standard deviations suggest different units."""
    if sp.issparse(X):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.sort(np.asarray(X).std(axis=0, dtype=np.float64))
    deviation = deviation[(deviation > 0) & np.isfinite(deviation)]
    if deviation.size < 2:
        return False
    low = deviation[deviation.size // 10]
    high = deviation[-1 - deviation.size // 10]
    return bool(high > SAME_UNITS * low)
