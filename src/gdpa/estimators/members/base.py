"""Base classes of the members, and FitData, the data that every member sees.

Each member predicts every label from models that have not seen it, neither in the solve nor in the
graph, the metric or the forest. These held-out probabilities determine the member's weight. Then
the member is fitted on all labels and samples. With many samples the held-out probabilities come
from a subsample (:func:`subsample`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...codec import check_numbers, storable
from ...graph.features import MANY_COLUMNS
from ...graph.features import Features as Features
from ...graph.rescale import Rescaler
from ...threads import one_thread
from ..labels import LabelCoding, by_appearance, expand_class_columns
from ..options import FitOptions
from ..probabilities import LEAST_SHARE, fit_sharpness, judged_labels, sharpen

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]
FoldPredictions = Iterable[tuple[Any, FloatArray]]  # setting, and probabilities of the fold
Key = TypeVar("Key", bound=Hashable)

# If the standard deviations of columns differ by more than this factor (between the first and the
# last decile), the columns may have different units and standardised columns are tried too.
SAME_UNITS = 10.0
# Chosen on real tables (5 and 20 labels per class), the paper's data sets, digits and generated
# data; the number of neighbours for many samples on Gaussian mixtures.
NEIGHBORS, MANY_SAMPLES_NEIGHBORS = 6, 10
SELF_LOOP, FEW_LABELS_LOOP = 0.03, 0.01
# If there are this many times more labels than in the subsample, the neighbour graph is evaluated
# on all samples, because it gains more from additional labels than other members.
WHOLE_GRAPH_LABELS = 3


@dataclass(frozen=True, eq=False)
class FitData:
    """Features and labels that every member sees.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features, rescaled if the user asked for it.
    labels : LabelCoding
        Labels of the samples.
    folds : ndarray of int of shape (n_labels,) or None
        Fold of each label, -1 if it is never held out; None if there are too few labels.
    options : FitOptions
        Options of the fit.
    links : csr_array of shape (n_samples, n_samples), optional
        User-supplied graph of the samples; for a subsample, the graph of all samples.
    rows : ndarray of int, optional
        Rows of `whole` that form a subsample.
    whole : FitData, optional
        Data from which a subsample was drawn; its labels are held out in one fold.
    class_shares : ndarray of shape (n_classes,), optional
        User-supplied class shares.
    cache : dict
        Objects that several members share, such as the forest.
    """

    X: Features
    labels: LabelCoding
    folds: NDArray[np.int32] | None
    options: FitOptions = field(default_factory=FitOptions)
    links: sp.csr_array | None = None
    rows: NDArray[np.intp] | None = None
    whole: FitData | None = None
    class_shares: FloatArray | None = None
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    labeled: NDArray[np.intp] = field(init=False)
    codes: NDArray[np.int32] = field(init=False)
    targets: FloatArray = field(init=False)
    n_classes: int = field(init=False)
    n_folds: int = field(init=False)
    n_neighbors: int = field(init=False)
    self_loop: float = field(init=False)

    def __post_init__(self) -> None:
        labeled, k = self.labels.labeled, self.labels.classes.size
        codes, options, n = self.labels.codes[labeled], self.options, self.X.shape[0]
        few = n <= options.policy.judged_nodes
        count = options.n_neighbors or (NEIGHBORS if few else MANY_SAMPLES_NEIGHBORS)
        self.__dict__.update(
            labeled=labeled,
            codes=codes,
            targets=np.eye(k)[codes],
            n_classes=int(k),
            n_folds=0 if self.folds is None else int(self.folds.max()) + 1,
            n_neighbors=max(1, min(count, n - 1)),
            self_loop=FEW_LABELS_LOOP if self.folds is None else SELF_LOOP,
        )

    @cached_property
    def scaling(self) -> Rescaler:
        """Scaling of columns to mean 0 and standard deviation 1; sparse columns keep their mean."""
        X = self.X
        if isinstance(X, sp.csr_array):
            mean = np.zeros(X.shape[1])
            with np.errstate(over="ignore"):
                squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
            means = np.asarray(X.mean(axis=0)).ravel()
            scale = np.sqrt(np.maximum(squares - means * means, 0.0))
            varies = scale > 1e-6 * np.sqrt(squares)
        else:
            A = np.asarray(X)
            varies = A.max(axis=0) > A.min(axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                mean = A.mean(axis=0, dtype=np.float64)
                scale = A.std(axis=0, dtype=np.float64)
        varies &= np.isfinite(scale) & np.isfinite(mean) & (scale > 0)
        columns = varies if varies.any() else np.ones(X.shape[1], dtype=bool)
        scale = np.where(varies, scale, 1.0)
        mean = np.where(varies, mean, 0.0)
        return Rescaler("standard", columns, mean[columns], scale[columns], False)

    @cached_property
    def is_embedding(self) -> bool:
        """Whether the rows look like embeddings or bags of words.

        Sparse rows with many columns do. Dense rows do if they have many columns, similar lengths
        and mostly fractional values. Their columns must have similar but not equal standard
        deviations, because equal ones indicate a standardised table. Neighbouring columns must be
        weakly correlated, unlike pixels and points of a curve.
        """
        n, d = self.X.shape
        if d < MANY_COLUMNS or isinstance(self.X, sp.csr_array):
            return bool(d >= MANY_COLUMNS)
        A = np.asarray(self.X[:: max(1, n // 1_000)], dtype=np.float64)
        with np.errstate(all="ignore"):
            length, deviation = np.linalg.norm(A, axis=1), np.sort(A.std(axis=0))
            low, high = deviation[d // 10], deviation[-1 - d // 10]
            U = (A - A.mean(axis=0)) / A.std(axis=0)
            alike = np.nanmean(np.abs((U[:, 1:] * U[:, :-1]).mean(axis=0))) < 0.3
            one_length = length.std() < 0.25 * length.mean()
        whole = np.mean(np.rint(A) == A) > 0.5
        return bool(alike and one_length and not whole and 1.01 * low < high < SAME_UNITS * low)

    @cached_property
    def Z(self) -> Features:
        """The scaled features."""
        if isinstance(self.X, np.ndarray):
            return self.scaling.transform(self.X)
        return rescale_columns(self.scaling, self.X)


class Member:
    """A candidate member of the ensemble.

    ``cross_fit`` is called first if labels can be held out. The setting that it chooses (a penalty,
    a kernel width) is kept in `setting` for ``fit``.
    """

    name: str
    needs_folds = False  # whether it is skipped if no label can be held out
    needs_search = False  # the same, but only with many samples: it needs a neighbour search
    labels_per_class = np.inf  # skipped if there are more on average
    label_free = False  # whether it is a graph that does not depend on labels
    setting: Any = None

    def suits(self, data: FitData) -> bool:
        """Return whether this member can be fitted to the features."""
        return True

    @one_thread()
    def cross_fit(self, data: FitData) -> FloatArray:
        """Return held-out probabilities of the labelled samples, (n_labels, n_classes)."""
        whole = data.whole or data
        many = whole.labeled.size >= WHOLE_GRAPH_LABELS * data.labeled.size
        if self.label_free and data.links is None and many:
            data = whole
        assert data.folds is not None
        judged, found = data.folds >= 0, {}
        for f in range(data.n_folds):
            held = np.asarray(data.folds == f)
            for setting, shares in self.predict_fold(data, f, held):
                if setting not in found:
                    found[setting] = np.empty((np.count_nonzero(judged), data.n_classes))
                found[setting][held[judged]] = shares
        self.setting, held_out = best_candidate(found, data.codes[judged], data.folds[judged])
        return held_out

    def predict_fold(self, data: FitData, f: int, held: Mask) -> FoldPredictions:
        """Return, for each candidate setting, probabilities of fold f without its labels."""
        raise NotImplementedError

    def fit(self, data: FitData) -> FittedMember:
        """Fit to all samples and labels."""
        raise NotImplementedError


class FittedMember:
    """A fitted member, which is a frozen dataclass of arrays.

    The rows of ``shares``, one per sample of the fit, are non-negative and add up to 1. They need
    not be calibrated, because the ensemble sharpens each member by its held-out probabilities.
    """

    name: str
    shares: FloatArray
    knows_links: bool = False  # whether it uses a user-supplied graph of the samples
    # Samples of the fit for which this member has no information.
    abstaining: NDArray[np.integer] = np.empty(0, dtype=np.intp)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return the shares of new rows from features, links or both; None if impossible."""
        raise NotImplementedError

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> FittedMember:
        """Return this member with further labels; only graphs change their scores."""
        return self

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> FittedMember:
        """Return this member with the classes of `labels`; the old ones are at `place`."""
        raise NotImplementedError


class Model:
    """A fitted model that predicts from features alone."""

    def predict(self, X: Features) -> FloatArray:
        """Return the shares of rows in the classes of the fit."""
        raise NotImplementedError


@storable("model member")
@dataclass(frozen=True, eq=False)
class FittedModel(FittedMember):
    """A supervised model, fitted once on the labelled rows.

    Parameters
    ----------
    name : str
        Name.
    model : Model
        The model.
    shares : ndarray of shape (n_samples, n_classes)
        Predictions for the samples.
    place : ndarray of int or None
        Positions of the model's classes among all classes; None if it has all of them.
    """

    name: str
    model: Model
    shares: FloatArray = field(repr=False)
    place: NDArray[np.integer] | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers(f"{self.name}: shares", self.shares, (None, None), at_least=0)
        if self.place is not None:
            last = self.shares.shape[1] - 1
            check_numbers("place", self.place, (None,), at_least=0, at_most=last)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return the shares of new rows."""
        if X is None:
            return None
        shares, k = self.model.predict(X), self.shares.shape[1]
        return shares if self.place is None else expand_class_columns(shares, self.place, k)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> FittedModel:
        """Return the same model with more classes."""
        shares = expand_class_columns(self.shares, place, labels.classes.size)
        known = place if self.place is None else place[self.place]
        return replace(self, shares=shares, place=known)


def subsample(data: FitData) -> tuple[FitData, NDArray[np.intp]]:
    """Return the subsample on which members are cross-fitted, and the positions of its labels."""
    policy = data.options.policy
    assert data.folds is not None
    kept = stratified_subsample(data.codes, policy.judged_labels)
    known = data.labeled[kept]
    others = np.flatnonzero(data.labels.codes < 0)
    rng = np.random.default_rng(data.options.random_state)
    wanted = min(others.size, max(policy.judged_nodes - known.size, 0))
    rows = np.sort(np.concatenate([known, rng.choice(others, wanted, replace=False)]))
    codes = np.where(np.isin(rows, known), data.labels.codes[rows], -1).astype(np.int32)
    labels = LabelCoding(codes, data.labels.classes)
    at_once = np.full(data.codes.size, -1, dtype=np.int32)
    at_once[kept] = 0
    whole, folds = replace(data, folds=at_once), data.folds[kept]
    about = (folds, data.options, data.links, rows, whole, data.class_shares)
    return FitData(data.X[rows], labels, *about), kept


def stratified_subsample(codes: NDArray[np.integer], most: int) -> NDArray[np.intp]:
    """Return the positions of at most `most` labels, spread evenly over the classes."""
    if codes.size <= most:
        return np.arange(codes.size)
    order = np.argsort(by_appearance(codes), kind="stable")
    return np.sort(order[np.linspace(0, codes.size - 1, most).astype(np.intp)])


def rescale_columns(columns: Rescaler, X: Features) -> Features:
    """Select and rescale columns; sparse features stay sparse."""
    if isinstance(X, np.ndarray):
        rescaled: Features = columns.transform(X)
        return rescaled
    with np.errstate(over="ignore"):
        Z = sp.csr_array(X[:, columns.columns] @ sp.diags_array(1.0 / columns.scale))
    Z.data = np.clip(Z.data, -1e300, 1e300)  # kept finite
    return Z


def different_units(X: Features) -> bool:
    """Return whether columns may have different units, judged by their standard deviations."""
    if sp.issparse(X):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.sort(np.asarray(X).std(axis=0, dtype=np.float64))
    deviation = deviation[(deviation > 0) & np.isfinite(deviation)]
    if deviation.size < 2:
        return False
    low, high = deviation[deviation.size // 10], deviation[-1 - deviation.size // 10]
    return bool(high > SAME_UNITS * low)


def cross_validated_loss(
    held_out: FloatArray, codes: NDArray[np.integer]
) -> tuple[FloatArray, float]:
    """Return the log-loss of each held-out label after sharpening, and the sharpness.

    A class with a single label does not count, because that label cannot be predicted without
    itself.
    """
    judged = judged_labels(codes, held_out.shape[1])
    beta = fit_sharpness(np.maximum(held_out[judged], LEAST_SHARE), codes[judged], fewest=8)
    p = sharpen(held_out[judged], beta, least=LEAST_SHARE)
    return np.asarray(-np.log(p[np.arange(p.shape[0]), codes[judged]])), beta


def best_candidate(
    candidates: Mapping[Key, FloatArray],
    codes: NDArray[np.integer],
    folds: NDArray[np.integer] | None = None,
) -> tuple[Key, FloatArray]:
    """Return the candidate with the smallest held-out loss, and its held-out probabilities.

    The loss of the best of many candidates is biased towards 0 on the labels that chose it. With
    `folds` the returned probabilities are unbiased: those of each fold come from the candidate that
    is best on all other folds.
    """
    keys, losses = list(candidates), []
    if len(keys) == 1:
        return keys[0], candidates[keys[0]]
    for key in keys:
        losses.append(cross_validated_loss(candidates[key], codes)[0])
    table = np.array(losses)
    best = keys[int(table.mean(axis=1).argmin())]
    if folds is None:
        return best, candidates[best]
    inside = folds[judged_labels(codes, candidates[best].shape[1])]
    held_out = candidates[best].copy()
    for f in range(int(folds.max()) + 1):
        if (inside != f).any():
            chosen = keys[int(table[:, inside != f].mean(axis=1).argmin())]
            held_out[folds == f] = candidates[chosen][folds == f]
    return best, held_out
