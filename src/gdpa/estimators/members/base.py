"""The data that every member sees (FitData), and the interfaces of members and fitted members.

A member first predicts every label by cross-validation. Neither its solve nor its graph, metric or
forest has seen the label. These held-out probabilities decide the weight of the member, which is
then fitted to all labels and all samples. With many samples the held-out probabilities come from a
subsample (:func:`subsample`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.features import MANY_COLUMNS
from ...graph.features import Features as Features
from ...graph.rescale import Rescaler
from ...threads import one_thread
from ..labels import LabelCoding, by_appearance, expand_class_columns
from ..options import FitOptions
from ..probabilities import LEAST_SHARE, fit_sharpness, judged_labels, sharpen

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Codes = NDArray[np.int32]
Candidates = Iterator[tuple[Any, FloatArray]]  # settings to choose from, with probabilities
Key = TypeVar("Key", bound=Hashable)

# If the 90th percentile of the columns' standard deviations exceeds the 10th by this factor, the
# columns may have different units.
SAME_UNITS = 10.0
# Logarithms are taken of columns with a larger skewness, estimated on about this many rows. Chosen
# on 14 KEEL tables not used for other defaults, of 0.5, 1 and 2, and checked on 14 more.
SKEWED, SKEWNESS_ROWS = 1.0, 10_000
# Chosen on real tables with 5 and 20 labels per class, the paper's data sets, digits and generated
# data. FEW_LABELS_LOOP applies where no label can be held out.
NEIGHBORS, MANY_SAMPLES_NEIGHBORS = 6, 10
SELF_LOOP, FEW_LABELS_LOOP = 0.03, 0.01
# The neighbour graph is cross-validated on all samples if they have at least this many times the
# labels of the subsample: no other member gains as much from more labels.
WHOLE_GRAPH_LABELS = 3


@dataclass(frozen=True, eq=False)
class FitData:
    """Features and labels, as every member sees them.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features, rescaled as the options of the estimator say.
    labels : LabelCoding
        Labels of the samples.
    folds : ndarray of int of shape (n_labels,) or None
        Fold of each label, -1 if it is never held out; None if there are too few labels.
    options : FitOptions
        Options of the fit.
    links : csr_array of shape (n_samples, n_samples), optional
        The user's graph. A subsample has the graph of all samples.
    rows : ndarray of int, optional
        Rows of `whole` in a subsample.
    whole : FitData, optional
        The data that a subsample was drawn from; its labels form one fold.
    class_shares : ndarray of shape (n_classes,), optional
        The user's class shares.
    cache : dict
        Results that several members share, such as the forest.
    """

    X: Features
    labels: LabelCoding
    folds: Codes | None
    options: FitOptions = field(default_factory=FitOptions)
    links: sp.csr_array | None = None
    rows: Rows | None = None
    whole: FitData | None = None
    class_shares: FloatArray | None = None
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    labeled: Rows = field(init=False)
    codes: Codes = field(init=False)
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
        """Scaling to standard deviation 1 and, if the features are dense, to mean 0.

        Logarithms are taken of skewed dense columns first: a few extreme values would otherwise
        decide linear models, covariances and distances. Values are measured from the end where most
        of them are, in units of their median. So the result does not depend on the unit and the
        zero of a column, and columns with two values do not change.
        """
        X, logs = self.X, np.zeros((2, self.X.shape[1]))
        if isinstance(X, sp.csr_array):
            mean = np.zeros(X.shape[1])
            with np.errstate(over="ignore"):
                squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
            means = np.asarray(X.mean(axis=0)).ravel()
            scale = np.sqrt(np.maximum(squares - means * means, 0.0))
            varies = scale > 1e-6 * np.sqrt(squares)
            skewness = mean
        else:
            A = np.asarray(X)
            varies = A.max(axis=0) > A.min(axis=0)
            with np.errstate(all="ignore"):
                mean = A.mean(axis=0, dtype=np.float64)
                scale = A.std(axis=0, dtype=np.float64)
                part = A[:: max(1, A.shape[0] // SKEWNESS_ROWS)]
                skewness = (((part - mean) / scale) ** 3).mean(axis=0)
        varies &= np.isfinite(scale) & np.isfinite(mean) & (scale > 0)
        for j in np.flatnonzero(varies & (np.abs(skewness) > SKEWED)):
            x = np.asarray(X[:, j], dtype=np.float64)
            origin = x.min() if skewness[j] > 0 else x.max()
            far = np.abs(x - origin)
            unit = float(np.median(far[far > 0]))
            with np.errstate(over="ignore"):
                x = np.copysign(np.log1p(np.minimum(far / unit, 1e300)), skewness[j])
            logs[:, j], mean[j], scale[j] = (origin, unit), x.mean(), x.std()
        columns = varies if varies.any() else np.ones(X.shape[1], dtype=bool)
        scale = np.where(varies, scale, 1.0)
        mean = np.where(varies, mean, 0.0)
        parts = (columns, mean[columns], scale[columns])
        return Rescaler("standard", *parts, False, logs[:, columns])

    @cached_property
    def is_embedding(self) -> bool:
        """Whether the rows look like embeddings or bags of words.

        Such features have many columns, and sparse ones need nothing else. In dense embeddings, all
        rows have about the same length and most cells are not integers. The columns have similar
        standard deviations, but not equal ones: equal ones are those of a standardised table.
        Adjacent columns are hardly correlated, unlike pixels or points of a curve.
        """
        n, d = self.X.shape
        if d < MANY_COLUMNS or isinstance(self.X, sp.csr_array):
            return bool(d >= MANY_COLUMNS)
        A = np.asarray(self.X[:: max(1, n // 1_000)], dtype=np.float64)
        with np.errstate(all="ignore"):
            length, deviation = np.linalg.norm(A, axis=1), np.sort(A.std(axis=0))
            low, high = deviation[d // 10], deviation[-1 - d // 10]
            U = (A - A.mean(axis=0)) / A.std(axis=0)
            uncorrelated = np.nanmean(np.abs((U[:, 1:] * U[:, :-1]).mean(axis=0))) < 0.3
            same_length = length.std() < 0.25 * length.mean()
        integers = np.mean(np.rint(A) == A) > 0.5
        similar = 1.01 * low < high < SAME_UNITS * low
        return bool(uncorrelated and same_length and not integers and similar)

    @cached_property
    def Z(self) -> Features:
        """The features, scaled by `scaling`."""
        return rescale_columns(self.scaling, self.X)


class Member:
    """A candidate of the ensemble.

    ``cross_fit`` is called first if labels can be held out. It keeps the setting it chooses (a
    penalty, a kernel width) as `setting`, for ``fit``.
    """

    name: str
    needs_folds = False  # not tried if no label can be held out
    needs_search = False  # needs a neighbour search; not tried on many samples without folds
    labels_per_class = np.inf  # not tried with more labels per class on average
    label_free = False  # a graph of the samples that does not depend on labels
    on_links = False  # cross-validated on the user's whole graph, if there is one
    setting: Any = None

    def suits(self, data: FitData) -> bool:
        """Return whether this member can be fitted to such features."""
        return True

    @one_thread()
    def cross_fit(self, data: FitData) -> FloatArray:
        """Return held-out probabilities of the labelled samples, (n_labels, n_classes)."""
        whole = data.whole or data
        many = whole.labeled.size >= WHOLE_GRAPH_LABELS * data.labeled.size
        if self.on_links and data.links is not None:
            data = on_all_links(data)
        elif self.label_free and data.links is None and many:
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

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Yield each setting to choose from, and its probabilities of fold f without its labels."""
        raise NotImplementedError

    def fit(self, data: FitData) -> FittedMember:
        """Fit to all samples and labels."""
        raise NotImplementedError


class FittedMember:
    """A fitted member: a frozen dataclass of arrays.

    ``shares`` has one row per sample of the fit. The entries are non-negative, and each row adds up
    to 1. They need not be calibrated: the ensemble sharpens each member by its held-out
    probabilities.
    """

    name: str
    shares: FloatArray
    knows_links: bool = False  # whether it uses the user's graph
    # Samples of the fit that this member cannot predict.
    abstaining: NDArray[np.integer] = np.empty(0, dtype=np.intp)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows from their features, links or both; None if it cannot."""
        raise NotImplementedError

    def with_labels(self, rows: Rows, codes: Codes, options: FitOptions, tol: float) -> Self:
        """Return this member with further labels; only members on graphs change."""
        return self

    def with_classes(self, labels: LabelCoding, place: Rows) -> Self:
        """Return this member for the classes of `labels`, with the old ones at `place`."""
        raise NotImplementedError


class Model:
    """A fitted model that predicts from features alone."""

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows, in the classes that the model was fitted on."""
        raise NotImplementedError


@storable("model member")
@dataclass(frozen=True, eq=False)
class FittedModel(FittedMember):
    """A member that is a supervised model, fitted once to the labelled rows.

    Parameters
    ----------
    name : str
        Name of the member.
    model : Model
        The model.
    shares : ndarray of shape (n_samples, n_classes)
        Predictions for the samples.
    place : ndarray of int or None
        Positions of the model's classes among all classes; None if the model has all of them.
    """

    name: str
    model: Model
    shares: FloatArray = field(repr=False)
    place: NDArray[np.integer] | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers(f"{self.name}: shares", self.shares, (None, None), at_least=0)
        if self.place is not None:
            most = self.shares.shape[1] - 1
            check_numbers("place", self.place, (None,), at_least=0, at_most=most)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows."""
        if X is None:
            return None
        shares, k = self.model.predict(X), self.shares.shape[1]
        return shares if self.place is None else expand_class_columns(shares, self.place, k)

    def with_classes(self, labels: LabelCoding, place: Rows) -> Self:
        """Return the same model with more classes."""
        shares = expand_class_columns(self.shares, place, labels.classes.size)
        known = place if self.place is None else place[self.place]
        return replace(self, shares=shares, place=known)


class ScaledModel(Model):
    """A model of rescaled features; if `scaling` is None, it takes them as they are."""

    scaling: Rescaler | None

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows."""
        return self.shares(X if self.scaling is None else rescale_columns(self.scaling, X))

    def shares(self, Z: Features) -> FloatArray:
        """Return shares of rescaled rows."""
        raise NotImplementedError


class SupervisedMember(Member):
    """A model fitted to the labelled rows; held-out labels choose one of `settings`."""

    settings: tuple[Any, ...] = ()
    most_labels = 20_000  # a stratified subsample is taken from more labels
    most_coefficients = np.inf  # with more of them only the default setting is tried

    def train(self, data: FitData, kept: Rows, setting: Any) -> ScaledModel:
        """Return a model fitted to the labels at the positions `kept`."""
        raise NotImplementedError

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold by models that have not seen its labels."""
        kept = stratified_subsample(data.codes, self.most_labels)
        few = data.scaling.scale.size * data.n_classes <= self.most_coefficients
        for setting in self.settings if few else (self.setting,):
            model = self.train(data, kept[~held[kept]], setting)
            Z = data.X if model.scaling is None else data.Z
            yield setting, model.shares(Z[data.labeled[held]])

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        with one_thread():
            kept = stratified_subsample(data.codes, self.most_labels)
            model = self.train(data, kept, self.setting)
        shares = model.shares(data.X if model.scaling is None else data.Z)
        return FittedModel(self.name, model, shares)


def on_all_links(data: FitData) -> FitData:
    """Return all samples with the folds of the subsample, which has hardly any links itself."""
    whole = data.whole
    if whole is None or whole.folds is None or data.folds is None:
        return data
    folds, of_part = whole.folds.copy(), data.folds
    if whole.X.shape[0] > data.options.policy.huge_nodes:
        # Two folds, or one if there are very many labels: every solve takes long.
        of_part = of_part % (1 if folds.size >= WHOLE_GRAPH_LABELS * of_part.size else 2)
    folds[folds >= 0] = of_part
    return replace(whole, folds=folds)


def subsample(data: FitData) -> tuple[FitData, Rows]:
    """Return the subsample that members are cross-validated on, and the positions of its labels."""
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


def stratified_subsample(codes: NDArray[np.integer], most: int) -> Rows:
    """Return the positions of at most `most` labels, with the class shares of all."""
    if codes.size <= most:
        return np.arange(codes.size)
    order = np.argsort(by_appearance(codes), kind="stable")
    return np.sort(order[np.linspace(0, codes.size - 1, most).astype(np.intp)])


def rescale_columns(columns: Rescaler, X: Features) -> Features:
    """Return rescaled features; sparse ones stay sparse."""
    if isinstance(X, np.ndarray):
        return columns.transform(X)
    with np.errstate(over="ignore"):
        Z = sp.csr_array(X[:, columns.columns] @ sp.diags_array(1.0 / columns.scale))
    Z.data = np.clip(Z.data, -1e300, 1e300)  # no infinite entries
    return Z


def different_units(X: Features) -> bool:
    """Return whether the columns' standard deviations suggest different units."""
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

    The only label of a class is not counted: a model cannot predict it without having seen it.
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
    """Return the candidate with the lowest held-out loss, and its held-out probabilities.

    The best of many candidates looks better than it is on the labels that chose it. If `folds` are
    given, the probabilities are unbiased: those of each fold come from the candidate that is best
    on all other folds. Of equal candidates the first is chosen.
    """
    keys = list(candidates)
    if len(keys) == 1:
        return keys[0], candidates[keys[0]]
    table = np.array([cross_validated_loss(p, codes)[0] for p in candidates.values()])
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
