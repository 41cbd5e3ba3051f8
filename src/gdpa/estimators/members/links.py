"""A given graph beside the features: members that know both.

- *links*: labels spread over the given graph, no feature looked at;
- *smoothed*: a linear model on features smoothed along it (:mod:`.smoothed`);
- *links and features*: the smoothed model's shares T as evidence in the given graph's system,

      (L + a + e) F = a Y + e T;

- *neighbour columns* and *neighbour forest*: a linear model and trees on a node's own features
  beside the mean of its neighbours', the number of its links, and the classes of the labels one and
  two links away. They learn which classes are linked to which, also where neighbours are unlike.

Models, evidence and classes of neighbours have not seen the labels of the fold they predict. With
many samples the labels that are held out are those of the subsample, the graph is the whole one: a
subsample has hardly any links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...codec import check_numbers, storable
from ...graph.features import check_features
from ...graph.smoothing import Smoother, no_links, unit_rows
from ...system import ReorderedGraph, arrange, new_row_scores
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import to_shares
from ..tuning import DEFAULT, LARGE_SELF_LOOPS, Setting
from .base import Features, FitData, FittedMember, Member, stratified_subsample
from .forest import cross_forest, leaf_means
from .graphs import HELD_OUT_TOL, FittedGraph, SampleGraph, solve_graph
from .smoothed import (
    Columns,
    ColumnsModel,
    SmoothedMember,
    fit_linear,
    is_large,
    on_all_links,
    shared_smoother,
)

FloatArray = NDArray[np.float64]

# Weights of the evidence, times the mean diagonal: the first with many nodes or too few labels to
# choose. Weight of a label beside evidence, relative to the evidence: the model has seen it
# already. Chosen on Cora (public split and random ones), with graphs and features of noise.
EVIDENCE_WEIGHTS, LABEL_PART = (0.25, 1.0), 0.3
# Inverse strengths of the penalty on neighbours' columns; trees that evaluate a fold. Chosen on
# chameleon, Wisconsin and minesweeper.
NEIGHBOR_STRENGTHS, FOLD_TREES = (1.0, 10.0), 60


@storable("links and features")
@dataclass(frozen=True, eq=False)
class LinksAndFeatures(FittedMember):
    """The given graph with a smoothed model as evidence.

    Parameters
    ----------
    model : ColumnsModel
        The model.
    graph : SampleGraph
        The given graph.
    labels : LabelCoding
        Labels that the scores come from.
    evidence_weight : float
        e.
    scores, shares : ndarray of shape (n_samples, n_classes)
        Solution of the system, and its rows divided by their sums.
    """

    model: ColumnsModel
    graph: SampleGraph
    labels: LabelCoding
    evidence_weight: float
    scores: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    name: str = "links and features"
    knows_links: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        shape = (self.graph.n_nodes, self.labels.classes.size)
        check_numbers("scores", self.scores, shape)
        check_numbers("shares", self.shares, shape, at_least=0)
        if not 0 < self.evidence_weight < np.inf or self.labels.codes.size != shape[0]:
            raise ValueError("the weight of the evidence or the labels are out of range")

    @classmethod
    def solve(
        cls,
        model: ColumnsModel,
        graph: SampleGraph,
        labels: LabelCoding,
        weight: float,
        options: FitOptions,
        arranged: ReorderedGraph | None = None,
        x0: FloatArray | None = None,
    ) -> LinksAndFeatures:
        """Solve the system with all labels."""
        known = labels.labeled
        targets = np.eye(labels.classes.size)[labels.codes[known]]
        parts = (known, targets, Setting(LABEL_PART * weight, 0.0), options, arranged)
        system = graph.system(*parts, evidence=model.shares, evidence_weight=weight)
        scores = system.solve(tol=options.tol, max_iter=options.max_iter, x0=x0).x
        shares = to_shares(scores, targets.mean(axis=0))
        return cls(model, graph, labels, weight, scores, shares)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows: one more row of the system each."""
        evidence, graph = self.model.predict(X, links), self.graph
        assert evidence is not None
        scores = new_row_scores(
            no_links(evidence.shape[0], graph.n_nodes) if links is None else links,
            self.scores,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=0.0,
            evidence=evidence,
            evidence_weight=self.evidence_weight,
        )
        codes = self.labels.codes[self.labels.labeled]
        prior = np.bincount(codes, minlength=self.labels.classes.size) / codes.size
        return to_shares(scores, prior)

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> LinksAndFeatures:
        """Return the same evidence with other labels: the scores move."""
        parts = (self.model, self.graph, self.labels.with_labels(rows, codes))
        return self.solve(*parts, self.evidence_weight, options, x0=self.scores)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> LinksAndFeatures:
        """Return the same member beside more classes."""
        k = labels.classes.size
        return replace(
            self,
            model=self.model.with_classes(labels, place),
            labels=labels,
            scores=expand_class_columns(self.scores, place, k),
            shares=expand_class_columns(self.shares, place, k),
        )


@storable("neighbour columns")
@dataclass(frozen=True, eq=False)
class NeighborColumns(Columns):
    """Columns of a node and its neighbours.

    They are: own features, mean of the neighbours', logarithm of the number of links; and the
    shares of labels of each class among the nodes one and two links away, of nodes other than the
    one itself.

    Parameters
    ----------
    smoother : Smoother
        Links and features.
    targets : ndarray of shape (n_nodes, n_classes)
        Classes of the labels; 0 for nodes without one.
    with_labels : bool
        Whether there are columns for the labels.
    """

    smoother: Smoother
    targets: FloatArray
    with_labels: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("targets", self.targets, (self.smoother.W.shape[0], None), at_least=0)

    @cached_property
    def across(self) -> sp.csr_array:
        """Links, those of each node adding up to 1."""
        return _shares_of_links(self.smoother.relative(self.smoother.W))

    @cached_property
    def _extra(self) -> tuple[FloatArray, FloatArray]:
        """Further columns of all nodes, and their deviations."""
        P = self.across
        back = np.asarray(P.multiply(P.T).sum(axis=1)).ravel()
        near = P @ self.targets
        extra = _further(P, near, P @ near - back[:, None] * self.targets, self.with_labels)
        deviation = extra.std(axis=0)
        return extra, np.where(deviation > 1e-12, deviation, 1.0)

    def all_rows(self, own: Features, mean: Features) -> Features:
        """Return the columns of all nodes, given features of their own and their neighbours'."""
        return _side_by_side(own, mean, self._extra[0] / self._extra[1])

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows; without features those of the neighbours stand in."""
        smoother, start = self.smoother, self.smoother.start
        if links is None:
            assert X is not None
            links = no_links(X.shape[0], smoother.W.shape[0])
        P = _shares_of_links(smoother.relative(links))
        mean = neighbor_mean(P, start)
        own = mean if X is None else smoother.first(X)
        near = self.targets, self.across @ self.targets
        extra = _further(P, P @ near[0], P @ near[1], self.with_labels)
        return _side_by_side(own, mean, extra / self._extra[1])


def _shares_of_links(links: sp.csr_array) -> sp.csr_array:
    total = np.asarray(links.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ links)


def neighbor_mean(P: sp.csr_array, features: Features) -> Features:
    """Return the mean of the neighbours' features; of sparse ones its direction."""
    mean = P @ features
    return unit_rows(mean) if sp.issparse(mean) else mean


def _further(P: sp.csr_array, near: FloatArray, far: FloatArray, with_labels: bool) -> FloatArray:
    degree = np.log1p(np.diff(P.indptr))[:, None]
    return np.hstack([degree, near, far]) if with_labels else degree


def _side_by_side(own: Features, mean: Features, extra: FloatArray) -> Features:
    if isinstance(own, np.ndarray):
        return np.hstack([own, mean, extra])
    return check_features(sp.hstack([own, mean, sp.csr_array(extra)]))


def shared_order(data: FitData) -> ReorderedGraph | None:
    """Return the links' adjacency, prepared once where there are many samples."""
    if "arranged" not in data.cache:
        adjacency = shared_smoother(data)[1].adjacency
        data.cache["arranged"] = arrange(adjacency, data.options.policy) if is_large(data) else None
    arranged: ReorderedGraph | None = data.cache["arranged"]
    return arranged


def spread(
    data: FitData,
    held: NDArray[np.bool_],
    setting: Setting,
    evidence: FloatArray | None = None,
    weight: float = 0.0,
) -> FloatArray:
    """Return shares of the labels that are held out, from the others and evidence."""
    parts = (data.labeled[~held], data.targets[~held], setting, data.options, shared_order(data))
    graph = shared_smoother(data)[1]
    system = graph.system(*parts, evidence=evidence, evidence_weight=weight)
    scores = system.solve(tol=1e-2 if is_large(data) else HELD_OUT_TOL).x
    return to_shares(scores[data.labeled[held]], data.targets[~held].mean(axis=0))


class LinkMember(Member):
    """A member that knows the given graph; labels are held out of the whole graph."""

    def cross_fit(self, data: FitData) -> FloatArray:
        """Return held-out probabilities of the labels of `data`."""
        return super().cross_fit(on_all_links(data))


class LinksMember(LinkMember):
    """The given graph alone; the self-loop is chosen by held-out labels."""

    name = "links"
    setting: Setting | None = None

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[Setting, FloatArray]]:
        """Predict a fold by the labels of the others."""
        unit = shared_smoother(data)[1].unit
        for loop in LARGE_SELF_LOOPS:
            setting = Setting(DEFAULT.label_weight, loop * unit)
            yield setting, spread(data, held, setting)

    def fit(self, data: FitData) -> FittedGraph:
        """Solve with all labels."""
        graph = shared_smoother(data)[1]
        setting = self.setting or Setting(DEFAULT.label_weight, DEFAULT.self_loop * graph.unit)
        parts = (graph, data.labels, setting, data.options)
        return solve_graph(*parts, arranged=shared_order(data), name=self.name, knows_links=True)


class EvidenceMember(LinkMember):
    """The given graph with the smoothed model as evidence; its weight is chosen as well."""

    name = "links and features"
    setting: float | None = None

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[float, FloatArray]]:
        """Predict a fold by evidence that has not seen it and the labels of the others."""
        evidence = data.cache["smoothed"].without_fold(data, f)
        for part in EVIDENCE_WEIGHTS[:1] if is_large(data) else EVIDENCE_WEIGHTS:
            e = part * shared_smoother(data)[1].unit
            yield e, spread(data, held, Setting(LABEL_PART * e, 0.0), evidence, e)

    def fit(self, data: FitData) -> LinksAndFeatures:
        """Solve with all labels."""
        graph = shared_smoother(data)[1]
        model = data.cache.get("smoothed", SmoothedMember()).fit(data)
        weight = self.setting or EVIDENCE_WEIGHTS[0] * graph.unit
        parts = (model, graph, data.labels, weight, data.options, shared_order(data))
        return LinksAndFeatures.solve(*parts)


class NeighborColumnsMember(LinkMember):
    """Logistic regression on columns of nodes and neighbours, with labels of these or without."""

    name = "neighbour columns"
    needs_folds = True
    setting: tuple[bool, float]

    def suits(self, data: FitData) -> bool:
        """Return whether there are few nodes."""
        return not is_large(data.whole or data)

    def columns(
        self, data: FitData, kept: NDArray[np.bool_], with_labels: bool
    ) -> tuple[NeighborColumns, Features]:
        """Return the columns with the labels at `kept`, and those of all nodes."""
        smoother = shared_smoother(data)[0]
        targets = np.zeros((data.X.shape[0], data.n_classes))
        targets[data.labeled[kept]] = data.targets[kept]
        columns = NeighborColumns(smoother, targets, with_labels)
        if "neighbours' mean" not in data.cache:
            data.cache["neighbours' mean"] = neighbor_mean(columns.across, smoother.start)
        return columns, columns.all_rows(smoother.start, data.cache["neighbours' mean"])

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[tuple[bool, float] | None, FloatArray]]:
        """Predict a fold by models that have not seen its labels."""
        for with_labels in (False, True):
            points = self.columns(data, ~held, with_labels)[1]
            for C in NEIGHBOR_STRENGTHS:
                model = fit_linear(points, data, np.flatnonzero(~held), C)
                yield (with_labels, C), model.predict(points[data.labeled[held]])

    def fit(self, data: FitData) -> ColumnsModel:
        """Fit to all labels."""
        with_labels, C = self.setting
        columns, points = self.columns(data, np.ones(data.codes.size, dtype=bool), with_labels)
        model = fit_linear(points, data, np.arange(data.codes.size), C)
        return ColumnsModel(self.name, columns, model, model.predict(points))


class NeighborForestMember(NeighborColumnsMember):
    """Trees on columns of nodes and neighbours."""

    name = "neighbour forest"

    def grow(self, data: FitData, kept: NDArray[np.bool_], n_trees: int) -> ColumnsModel:
        """Grow trees on the labels at `kept`."""
        columns, points = self.columns(data, kept, True)
        few = np.flatnonzero(kept)
        few = few[stratified_subsample(data.codes[few], data.options.policy.forest_labels)]
        grown = cross_forest(
            points[data.labeled[few]],
            data.codes[few],
            None,
            data.n_classes,
            n_trees=n_trees,
            random_state=data.options.random_state,
            n_jobs=data.options.n_jobs,
        )
        leaves = grown.leaves(points)
        shares = leaf_means(grown.forest.roots, grown.forest.value, leaves)
        return ColumnsModel(self.name, columns, grown.forest, shares)

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[tuple[bool, float] | None, FloatArray]]:
        """Predict a fold by trees that have not seen its labels."""
        yield None, self.grow(data, ~held, FOLD_TREES).shares[data.labeled[held]]

    def fit(self, data: FitData) -> ColumnsModel:
        """Grow trees on all labels."""
        everything = np.ones(data.codes.size, dtype=bool)
        return self.grow(data, everything, data.options.policy.forest_trees)


LINK_MEMBERS: tuple[type[Member], ...] = (
    LinksMember,
    SmoothedMember,
    EvidenceMember,
    NeighborColumnsMember,
    NeighborForestMember,
)
