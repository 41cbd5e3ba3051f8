"""Members that use the user's graph (the links), alone or together with the features.

- *links*: labels spread over the graph; features are not used.
- *smoothed*: a linear model on features smoothed along the links (:mod:`.smoothed`).
- *links and features*: the shares T of the smoothed model are evidence in the system of the graph,

      (L + a + e) F = a Y + e T.

- *neighbour columns* and *neighbour forest*: a linear model and a forest on a node's own features,
  the mean of its neighbours' features, the number of its links, and the classes of labelled nodes
  one and two links away. They learn which classes link to which, even if linked nodes differ.

Models, evidence and classes of neighbours never depend on the labels of the fold they predict. With
many samples, members are cross-validated on the labels of the subsample but on the whole graph: few
links join two nodes of a subsample.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray
from ...codec import check_numbers, storable
from ...graph.features import check_features
from ...graph.smoothing import Smoother, unit_rows
from ...system import ReorderedGraph, arrange, new_row_scores
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import to_shares
from ..tuning import DEFAULT, LARGE_SELF_LOOPS, Setting
from .base import (
    Candidates,
    Codes,
    Features,
    FitData,
    FittedMember,
    Mask,
    Member,
    Rows,
    stratified_subsample,
)
from .forest import cross_forest
from .graphs import HELD_OUT_TOL, FittedGraph, SampleGraph, solve_graph
from .smoothed import (
    Columns,
    ColumnsModel,
    SmoothedMember,
    fit_linear,
    is_large,
    shared_graph,
    shared_smoother,
)

# Weights of the evidence as multiples of the mean diagonal (the first is the default, and the only
# one with many nodes), and weight of a label relative to the evidence. Chosen on Cora (public and
# random splits), also with random links or random features.
EVIDENCE_WEIGHTS, LABEL_PART = (0.25, 1.0), 0.3
# Inverse penalties for neighbour columns; trees per fold. Chosen on chameleon, Wisconsin and
# minesweeper.
NEIGHBOR_STRENGTHS, FOLD_TREES = (1.0, 10.0), 60


@storable("links and features")
@dataclass(frozen=True, eq=False)
class LinksAndFeatures(FittedMember):
    """The user's graph with the smoothed model as evidence.

    Parameters
    ----------
    model : ColumnsModel
        The smoothed model.
    graph : SampleGraph
        The user's graph.
    labels : LabelCoding
        Labels that the scores come from.
    evidence_weight : float
        Weight e of the evidence.
    scores, shares : ndarray of shape (n_samples, n_classes)
        Solution of the system, and the same with each row divided by its sum.
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
            raise ValueError("evidence_weight is not positive, or the labels do not fit the graph")

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
    ) -> Self:
        """Solve the system with all labels."""
        known = labels.labeled
        targets = np.eye(labels.classes.size)[labels.codes[known]]
        parts = (known, targets, Setting(LABEL_PART * weight, 0.0), options, arranged)
        system = graph.system(*parts, evidence=model.shares, evidence_weight=weight)
        scores = system.solve(tol=options.tol, max_iter=options.max_iter, x0=x0).x
        shares = to_shares(scores, targets.mean(axis=0))
        return cls(model, graph, labels, weight, scores, shares)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows; each becomes one more row of the system."""
        evidence, graph = self.model.predict(X, links), self.graph
        assert evidence is not None
        scores = new_row_scores(
            sp.csr_array((evidence.shape[0], graph.n_nodes)) if links is None else links,
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

    def with_labels(self, rows: Rows, codes: Codes, options: FitOptions, tol: float) -> Self:
        """Return the solution with other labels and the same evidence."""
        parts = (self.model, self.graph, self.labels.with_labels(rows, codes))
        return self.solve(*parts, self.evidence_weight, options, x0=self.scores)

    def with_classes(self, labels: LabelCoding, place: Rows) -> Self:
        """Return the same member with more classes."""
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
    """Columns that describe a node and its neighbours.

    They are the node's own features, the mean of its neighbours' features, the logarithm of the
    number of its links and, if `with_labels`, the class shares among the labelled nodes one and two
    links away. A node's own label is never counted.

    Parameters
    ----------
    smoother : Smoother
        Links and features.
    targets : ndarray of shape (n_nodes, n_classes)
        Class indicators of the labelled nodes; 0 for others.
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
        """Links, divided by the sum of each row."""
        return self._link_shares(self.smoother.W)

    def _link_shares(self, links: sp.csr_array) -> sp.csr_array:
        """Return links divided by the sum of each row."""
        links = self.smoother.relative(links)
        total = np.asarray(links.sum(axis=1)).ravel()
        return sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ links)

    def _extra(self, P: sp.csr_array, near: FloatArray, far: FloatArray) -> FloatArray:
        """Return the columns other than features, before scaling."""
        degree = np.log1p(np.diff(P.indptr))[:, None]
        return np.hstack([degree, near, far]) if self.with_labels else degree

    @cached_property
    def _node_extra(self) -> tuple[FloatArray, FloatArray]:
        """The columns of all nodes other than features, and their standard deviations."""
        P = self.across
        back = np.asarray(P.multiply(P.T).sum(axis=1)).ravel()
        near = P @ self.targets
        extra = self._extra(P, near, P @ near - back[:, None] * self.targets)
        deviation = extra.std(axis=0)
        return extra, np.where(deviation > 1e-12, deviation, 1.0)

    def _join(self, own: Features, mean: Features, extra: FloatArray) -> Features:
        """Return all columns side by side."""
        extra = extra / self._node_extra[1]
        if isinstance(own, np.ndarray):
            return np.hstack([own, mean, extra])
        return check_features(sp.hstack([own, mean, sp.csr_array(extra)]))

    def all_rows(self, mean: Features) -> Features:
        """Return the columns of all nodes, given the mean features of their neighbours."""
        return self._join(self.smoother.start, mean, self._node_extra[0])

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows; the neighbours' mean replaces missing features."""
        if links is None:
            assert X is not None
            links = sp.csr_array((X.shape[0], self.targets.shape[0]))
        P = self._link_shares(links)
        mean = neighbor_mean(P, self.smoother.start)
        extra = self._extra(P, P @ self.targets, P @ (self.across @ self.targets))
        return self._join(mean if X is None else self.smoother.first(X), mean, extra)


def neighbor_mean(P: sp.csr_array, features: Features) -> Features:
    """Return the mean of the neighbours' features; sparse rows are scaled to unit length."""
    mean = P @ features
    return unit_rows(mean) if sp.issparse(mean) else mean


def shared_order(data: FitData) -> ReorderedGraph | None:
    """Return the links' adjacency, reordered once if there are many samples."""
    if "arranged" not in data.cache:
        adjacency = shared_graph(data).adjacency
        data.cache["arranged"] = arrange(adjacency, data.options.policy) if is_large(data) else None
    arranged: ReorderedGraph | None = data.cache["arranged"]
    return arranged


def spread(data: FitData, held: Mask, setting: Setting, **evidence: Any) -> FloatArray:
    """Return shares of the held-out labels from the other labels and the evidence."""
    parts = (data.labeled[~held], data.targets[~held], setting, data.options, shared_order(data))
    system = shared_graph(data).system(*parts, **evidence)
    scores = system.solve(tol=1e-2 if is_large(data) else HELD_OUT_TOL).x
    return to_shares(scores[data.labeled[held]], data.targets[~held].mean(axis=0))


class LinksMember(Member):
    """The user's graph alone; held-out labels choose the self-loop."""

    name = "links"
    on_links = True
    setting: Setting | None = None

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others."""
        unit = shared_graph(data).unit
        for loop in LARGE_SELF_LOOPS:
            setting = Setting(DEFAULT.label_weight, loop * unit)
            yield setting, spread(data, held, setting)

    def fit(self, data: FitData) -> FittedGraph:
        """Solve with all labels."""
        graph = shared_graph(data)
        setting = self.setting or Setting(DEFAULT.label_weight, DEFAULT.self_loop * graph.unit)
        parts = (graph, data.labels, setting, data.options)
        return solve_graph(*parts, arranged=shared_order(data), name=self.name, knows_links=True)


class EvidenceMember(Member):
    """The user's graph with the smoothed model as evidence; held-out labels choose its weight."""

    name = "links and features"
    on_links = True
    setting: float | None = None

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others, and evidence that has not seen it."""
        evidence = data.cache["smoothed"].without_fold(data, f)
        for part in EVIDENCE_WEIGHTS[:1] if is_large(data) else EVIDENCE_WEIGHTS:
            e = part * shared_smoother(data)[1].unit
            setting = Setting(LABEL_PART * e, 0.0)
            yield e, spread(data, held, setting, evidence=evidence, evidence_weight=e)

    def fit(self, data: FitData) -> LinksAndFeatures:
        """Solve with all labels."""
        graph = shared_smoother(data)[1]
        model = data.cache.get("smoothed", SmoothedMember()).fit(data)
        weight = self.setting or EVIDENCE_WEIGHTS[0] * graph.unit
        parts = (model, graph, data.labels, weight, data.options, shared_order(data))
        return LinksAndFeatures.solve(*parts)


class NeighborColumnsMember(Member):
    """Logistic regression on neighbour columns; held-out labels choose whether to use labels."""

    name = "neighbour columns"
    needs_folds = True
    on_links = True

    def suits(self, data: FitData) -> bool:
        """Return whether there are few nodes."""
        return not is_large(data.whole or data)

    def columns(
        self, data: FitData, kept: Rows, with_labels: bool
    ) -> tuple[NeighborColumns, Features]:
        """Return the columns with the labels at the positions `kept`, and those of all nodes."""
        smoother = shared_smoother(data)[0]
        targets = np.zeros((data.X.shape[0], data.n_classes))
        targets[data.labeled[kept]] = data.targets[kept]
        columns = NeighborColumns(smoother, targets, with_labels)
        if "neighbours' mean" not in data.cache:
            data.cache["neighbours' mean"] = neighbor_mean(columns.across, smoother.start)
        return columns, columns.all_rows(data.cache["neighbours' mean"])

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold by models that have not seen its labels."""
        kept = np.flatnonzero(~held)
        for with_labels in (False, True):
            points = self.columns(data, kept, with_labels)[1]
            for C in NEIGHBOR_STRENGTHS:
                model = fit_linear(points, data, kept, C)
                yield (with_labels, C), model.predict(points[data.labeled[held]])

    def fit(self, data: FitData) -> ColumnsModel:
        """Fit to all labels."""
        (with_labels, C), kept = self.setting, np.arange(data.codes.size)
        columns, points = self.columns(data, kept, with_labels)
        model = fit_linear(points, data, kept, C)
        return ColumnsModel(self.name, model, model.predict(points), columns=columns)


class NeighborForestMember(NeighborColumnsMember):
    """Forest on neighbour columns."""

    name = "neighbour forest"

    def grow(self, data: FitData, kept: Rows, n_trees: int) -> ColumnsModel:
        """Grow trees on the labels at the positions `kept`."""
        columns, points = self.columns(data, kept, True)
        few = kept[stratified_subsample(data.codes[kept], data.options.policy.forest_labels)]
        parts = (points[data.labeled[few]], data.codes[few], None, data.n_classes)
        grown = cross_forest(*parts, data.options, n_trees)
        shares = grown.forest.leaf_means(grown.leaves(points))
        return ColumnsModel(self.name, grown.forest, shares, columns=columns)

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold by trees that have not seen its labels."""
        yield None, self.grow(data, np.flatnonzero(~held), FOLD_TREES).shares[data.labeled[held]]

    def fit(self, data: FitData) -> ColumnsModel:
        """Grow trees on all labels."""
        return self.grow(data, np.arange(data.codes.size), data.options.policy.forest_trees)


LINK_MEMBERS: tuple[type[Member], ...] = (
    LinksMember,
    SmoothedMember,
    EvidenceMember,
    NeighborColumnsMember,
    NeighborForestMember,
)
