"""A given graph beside the features: members that know both.

- *links*: labels spread over the given graph, no feature looked at;
- *smoothed*: a linear model on features smoothed one to four steps along it;
- *smoothed forest*: trees on features smoothed two steps;
- *links and features*: the smoothed model's shares T as evidence in the given graph's system,

      (L + a + e) F = a Y + e T;

- *union*: labels spread over links and nearest neighbours together.

Models and evidence of a fold have not seen its labels; smoothing moves features only, never labels.
With many samples the labels that are held out are those of the subsample, the graph is the whole
one: a subsample has hardly any links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from ...codec import check_numbers, storable
from ...graph.smoothing import Smoother, no_links
from ...system import ReorderedGraph, arrange, new_row_scores
from ...system.rows import HEAVIEST
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import fit_sharpness, sharpen, to_shares
from ..tuning import DEFAULT, LARGE_SELF_LOOPS, Given, Setting, tune
from .base import (
    WHOLE_GRAPH_LABELS,
    Features,
    FitData,
    FittedMember,
    Member,
    Model,
    best_candidate,
    stratified_subsample,
)
from .forest import ForestMember
from .graphs import (
    HELD_OUT_TOL,
    FittedGraph,
    NeighborMember,
    SampleGraph,
    given_graph,
    solve_graph,
)
from .linear import MOST_LABELS, MOST_UNKNOWNS, LinearModel, fit_logistic

FloatArray = NDArray[np.float64]

# Steps of smoothing, inverse strengths of the penalty (rows of unit length; columns of deviation
# 1; with many unknowns the first) and weights of the evidence, times the mean diagonal. Chosen on
# Cora (public split and random ones) with graphs and features of noise beside it. On Cora strengths
# of 1 to 10 differ by half a point; see benchmarks/link_data.py for generated networks.
STEPS = (1, 2, 3, 4)
FOREST_STEPS = 2
UNIT_STRENGTHS, COLUMN_STRENGTHS = (3.0, 0.3), (1.0, 0.1, 10.0)
EVIDENCE_WEIGHTS = (0.1, 0.05, 0.25)
# Weight of a label beside evidence, relative to the evidence's: the model has seen it already. Kept
# exactly instead, labels outweigh the model around them: a point less on Cora.
LABEL_PART = 0.3
FOREST_COLUMNS = 200  # trees take dense columns, at most so many


@storable("smoothed model")
@dataclass(frozen=True, eq=False)
class SmoothedModel(FittedMember):
    """Models on features smoothed by several numbers of steps; their mean is the answer.

    Parameters
    ----------
    name : str
        Name.
    smoother : Smoother
        Graph and features.
    steps : tuple of int
        Steps of smoothing.
    models : tuple of Model
        A model for each.
    shares : ndarray of shape (n_samples, n_classes)
        Their predictions for the samples.
    sharpness : float or None
        Exponent of the mean shares: a strong penalty leaves them flat, however right they are.
    place : ndarray of int or None
        Places of the models' classes among all; None where they are all.
    """

    name: str
    smoother: Smoother
    steps: tuple[int, ...]
    models: tuple[Model, ...]
    shares: FloatArray = field(repr=False)
    sharpness: float | None = None
    place: NDArray[np.integer] | None = None
    knows_links: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("shares", self.shares, (self.smoother.W.shape[0], None), at_least=0)
        if not self.steps or not all(0 < t <= max(STEPS) for t in self.steps):
            raise ValueError(f"steps={self.steps!r} are out of range")
        if len(self.models) != len(self.steps):
            raise ValueError("one model for each number of steps is needed")
        if self.sharpness is not None and not 0 < self.sharpness < np.inf:
            raise ValueError(f"sharpness={self.sharpness!r} must be positive")
        if self.place is not None:
            most = self.shares.shape[1] - 1
            check_numbers("place", self.place, (None,), at_least=0, at_most=most)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray:
        """Return shares of new rows."""
        total = np.zeros(())
        for t, model in zip(self.steps, self.models, strict=True):
            total = total + model.predict(self.smoother.new_points(X, links, t))
        shares, k = total / len(self.steps), self.shares.shape[1]
        if self.sharpness is not None:
            shares = sharpen(shares, self.sharpness)
        return shares if self.place is None else expand_class_columns(shares, self.place, k)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> SmoothedModel:
        """Return the same models beside more classes."""
        known = place if self.place is None else place[self.place]
        shares = expand_class_columns(self.shares, place, labels.classes.size)
        return replace(self, shares=shares, place=known)


@storable("links and features")
@dataclass(frozen=True, eq=False)
class LinksAndFeatures(FittedMember):
    """The given graph with a smoothed model as evidence.

    Parameters
    ----------
    model : SmoothedModel
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

    model: SmoothedModel
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
        model: SmoothedModel,
        graph: SampleGraph,
        labels: LabelCoding,
        weight: float,
        options: FitOptions,
        arranged: ReorderedGraph | None = None,
        x0: FloatArray | None = None,
    ) -> LinksAndFeatures:
        """Solve the system with all labels."""
        known, e = labels.labeled, weight
        targets = np.eye(labels.classes.size)[labels.codes[known]]
        parts = (known, targets, Setting(LABEL_PART * e, 0.0), options, arranged)
        system = graph.system(*parts, evidence=model.shares, evidence_weight=e)
        scores = system.solve(tol=options.tol, max_iter=options.max_iter, x0=x0).x
        shares = to_shares(scores, targets.mean(axis=0))
        return cls(model, graph, labels, weight, scores, shares)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows: one more row of the system each."""
        evidence, graph = self.model.predict(X, links), self.graph
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


@storable("union")
@dataclass(frozen=True, eq=False)
class FittedUnion(FittedGraph):
    """Links and nearest neighbours in one graph.

    Parameters
    ----------
    nearest : SampleGraph
        The neighbour graph of the features.
    factors : tuple of float
        What links and neighbours were multiplied by.
    """

    nearest: SampleGraph | None = None
    factors: tuple[float, float] = (1.0, 1.0)

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        super().check_stored()
        if self.nearest is None or self.nearest.n_nodes != self.graph.n_nodes:
            raise ValueError("the neighbours are not those of the graph")
        if not all(0 < factor < np.inf for factor in self.factors):
            raise ValueError(f"factors={self.factors!r} must be positive")

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows, attached by what they have."""
        parts = []
        if links is not None:
            with np.errstate(over="ignore"):  # no link is heavier than a sum can bear
                data = np.minimum(self.factors[0] * links.data, HEAVIEST)
            parts.append(sp.csr_array((data, links.indices, links.indptr), links.shape))
        if X is not None and self.nearest is not None:
            parts.append(self.factors[1] * self.nearest.attach(X)[0])
        weights = parts[0] if len(parts) == 1 else sp.csr_array(parts[0] + parts[1])
        return self.predict_rows(weights)[0]


@dataclass(frozen=True, eq=False)
class LinkMember(Member):
    """A member made of two functions of a :class:`LinkFit`."""

    name: str
    held_out: Callable[[], FloatArray]
    build: Callable[[], FittedMember]

    def cross_fit(self, data: FitData) -> FloatArray:
        """Return held-out probabilities of the labels of `data`."""
        return self.held_out()

    def fit(self, data: FitData) -> FittedMember:
        """Fit to all labels."""
        return self.build()


def link_members(data: FitData, part: FitData) -> tuple[SampleGraph, list[Member], list[Member]]:
    """Return the given graph, the members that know it, and those to be tried last.

    Parameters
    ----------
    data : FitData
        All samples, with `links`.
    part : FitData
        The same, or the subsample that members are cross-fitted on.
    """
    assert data.links is not None
    fit = LinkFit(given_graph(data.links, data.options.laplacian), data, part)
    first: list[Member] = [
        LinkMember("links", fit.links_held_out, fit.build_links),
        LinkMember("smoothed", fit.smoothed_held_out, lambda: fit.model),
        LinkMember("links and features", fit.evidence_held_out, fit.build_evidence),
    ]
    dense = not fit.smoother.sparse and fit.smoother.features.shape[1] <= FOREST_COLUMNS
    if dense and not fit.large:
        first.append(LinkMember("smoothed forest", fit.forest_held_out, fit.build_forest))
    last: list[Member] = []
    if part is data:  # with many samples links are whole, neighbours those of a subsample
        last = [LinkMember("union", fit.union_held_out, fit.build_union)]
    return fit.graph, first, last


@dataclass(frozen=True, eq=False)
class LinkFit:
    """What the members that know a given graph share while they are fitted."""

    graph: SampleGraph
    data: FitData
    part: FitData
    # Linear models on smoothed features without a fold, by fold and strength.
    fold_models: dict[tuple[int, float], tuple[LinearModel, ...]] = field(default_factory=dict)

    @cached_property
    def smoother(self) -> Smoother:
        """The features along the graph."""
        return Smoother(self.graph.W, self.data.X)

    @property
    def large(self) -> bool:
        """Whether every solve counts."""
        return self.graph.n_nodes > self.data.options.policy.large_nodes

    @cached_property
    def arranged(self) -> ReorderedGraph | None:
        """The adjacency, prepared once where there are many samples."""
        return arrange(self.graph.adjacency, self.data.options.policy) if self.large else None

    @cached_property
    def judged(self) -> NDArray[np.intp]:
        """Which of all labels are held out in turn, in the order of the part's."""
        if self.part.rows is None:
            return np.arange(self.data.codes.size)
        return np.searchsorted(self.data.labeled, self.part.rows[self.part.labeled])

    @cached_property
    def folds(self) -> NDArray[np.int32]:
        """Fold of every label, -1 for those never held out; with many samples fewer folds."""
        assert self.part.folds is not None
        folds = np.full(self.data.codes.size, -1, dtype=np.int32)
        of_part = self.part.folds
        if self.graph.n_nodes > self.data.options.policy.huge_nodes:
            # With very many labels the subsample's are all held out at once, else two halves.
            of_part = of_part % (1 if folds.size >= WHOLE_GRAPH_LABELS * of_part.size else 2)
        folds[self.judged] = of_part
        return folds

    def held_out(self, scores: Callable[[NDArray[np.bool_], int], FloatArray]) -> FloatArray:
        """Return shares of the judged labels: `scores` of a fold from the labels inside."""
        data = self.data
        out = np.empty((data.codes.size, data.n_classes))
        for f in range(int(self.folds.max()) + 1):
            inside = self.folds != f
            out[~inside] = to_shares(scores(inside, f), data.targets[inside].mean(axis=0))
        return out[self.judged]

    def spread(
        self,
        inside: NDArray[np.bool_],
        f: int,
        *,
        setting: Setting,
        graph: SampleGraph | None = None,
        evidence: Sequence[FloatArray] | None = None,
        weight: float = 0.0,
    ) -> FloatArray:
        """Return scores of the labels outside, from those inside and evidence without fold f."""
        data, on_links = self.data, graph is None
        parts = (data.labeled[inside], data.targets[inside], setting, data.options)
        system = (graph or self.graph).system(
            *parts,
            self.arranged if on_links else None,
            evidence=None if evidence is None else evidence[f],
            evidence_weight=weight,
        )
        values = system.solve(tol=1e-2 if self.large else HELD_OUT_TOL).x
        return np.asarray(values[data.labeled[~inside]])

    # The given graph alone.

    @cached_property
    def chosen(self) -> tuple[Setting, FloatArray | None]:
        """The given graph's weights, and its held-out shares where the choice needed them."""
        data = self.data
        if self.large and self.part.folds is not None:
            # Every solve counts: those that choose are those that evaluate.
            tried = {}
            for loop in LARGE_SELF_LOOPS:
                setting = Setting(DEFAULT.label_weight, loop * self.graph.unit)
                tried[setting] = self.held_out(partial(self.spread, setting=setting))
            return best_candidate(tried, self.part.codes)
        parts = (data.labeled, data.targets, DEFAULT, data.options, self.arranged)
        return tune([self.graph.system(*parts)], data.codes, Given()).setting, None

    def links_held_out(self) -> FloatArray:
        """Hold labels out of the given graph alone."""
        setting, shares = self.chosen
        return self.held_out(partial(self.spread, setting=setting)) if shares is None else shares

    def build_links(self) -> FittedGraph:
        """Solve on the given graph."""
        parts = (self.graph, self.data.labels, self.chosen[0], self.data.options)
        return solve_graph(*parts, arranged=self.arranged, name="links", knows_links=True)

    # Linear models on smoothed features.

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Steps of smoothing that fit into memory."""
        most = self.smoother.most_steps(max(STEPS))
        return tuple(t for t in STEPS if t <= most) or STEPS[:1]

    @cached_property
    def smoothed(self) -> tuple[tuple[float, float], FloatArray | None]:
        """Penalty and sharpness that predict held-out labels best, and the held-out shares."""
        data, smoother = self.data, self.smoother
        strengths: tuple[float, ...] = UNIT_STRENGTHS if smoother.sparse else COLUMN_STRENGTHS
        if smoother.features.shape[1] * data.n_classes > MOST_UNKNOWNS:
            strengths = strengths[:1]
        if self.part.folds is None:
            return (strengths[0], 1.0), None
        codes, tried = self.part.codes, {}
        for C in strengths:
            shares = self.held_out(partial(self._smoothed_fold, C=C))
            # Strong penalties leave shares that are right and all but equal: less doubt than usual.
            sharpness = fit_sharpness(shares, codes, fewest=1, doubt=1.0)
            tried[C, sharpness] = sharpen(shares, sharpness)
        return best_candidate(tried, codes)

    def smoothed_held_out(self) -> FloatArray:
        """Hold labels out of the smoothed models."""
        shares = self.smoothed[1]
        assert shares is not None
        return shares

    def _smoothed_fold(self, inside: NDArray[np.bool_], f: int, C: float) -> FloatArray:
        self.fold_models[f, C] = self._linear(inside, C)
        return self._step_shares(self.fold_models[f, C], rows=self.data.labeled[~inside])

    def _linear(self, inside: NDArray[np.bool_], C: float) -> tuple[LinearModel, ...]:
        """Fit one model for each number of steps to the labels inside."""
        data, models = self.data, []
        rows = np.flatnonzero(inside)
        rows = rows[stratified_subsample(data.codes[rows], MOST_LABELS)]
        for t in self.steps:
            points = self.smoother.points(t, data.labeled[rows])
            fit = fit_logistic(points, data.codes[rows], data.n_classes, C)
            models.append(LinearModel(None, *fit))
        return tuple(models)

    def _step_shares(
        self,
        models: tuple[LinearModel, ...],
        sharpness: float = 1.0,
        rows: NDArray[np.intp] | slice = slice(None),
    ) -> FloatArray:
        """Return mean shares of samples."""
        total = np.zeros(())
        for t, model in zip(self.steps, models, strict=True):
            scores = self.smoother.product(t, model.coefficients, rows) + model.intercepts
            total = total + softmax(scores, axis=1)
        return sharpen(total / len(models), sharpness)

    @cached_property
    def model(self) -> SmoothedModel:
        """The smoothed models, fitted on all labels."""
        C, sharpness = self.smoothed[0]
        models = self._linear(np.ones(self.data.codes.size, dtype=bool), C)
        shares = self._step_shares(models, sharpness)
        parts = ("smoothed", self.smoother, self.steps, models, shares)
        return SmoothedModel(*parts, float(sharpness))

    # Their shares as evidence.

    @cached_property
    def evidence(self) -> tuple[float, FloatArray | None]:
        """Weight of the evidence, and the held-out shares with it."""
        few = EVIDENCE_WEIGHTS[:1] if self.large else EVIDENCE_WEIGHTS
        weights = [e * self.graph.unit for e in few]
        if self.part.folds is None:
            return weights[0], None
        (C, sharpness), found = self.smoothed[0], []
        for f in range(int(self.folds.max()) + 1):
            found.append(self._step_shares(self.fold_models[f, C], sharpness))
        tried = {}
        for e in weights:
            setting = Setting(LABEL_PART * e, 0.0)
            way = partial(self.spread, setting=setting, evidence=found, weight=e)
            tried[e] = self.held_out(way)
        return best_candidate(tried, self.part.codes)

    def evidence_held_out(self) -> FloatArray:
        """Hold labels out of graph and evidence together."""
        shares = self.evidence[1]
        assert shares is not None
        return shares

    def build_evidence(self) -> LinksAndFeatures:
        """Solve on the given graph with the smoothed model as evidence."""
        parts = (self.model, self.graph, self.data.labels, float(self.evidence[0]))
        return LinksAndFeatures.solve(*parts, self.data.options, self.arranged)

    # Further members.

    @cached_property
    def smooth_data(self) -> FitData:
        """All samples with smoothed features."""
        data = self.data
        return FitData(self.smoother.points(FOREST_STEPS), data.labels, data.folds, data.options)

    def forest_held_out(self) -> FloatArray:
        """Hold labels out of trees on smoothed features."""
        return ForestMember().cross_fit(self.smooth_data)[self.judged]

    def build_forest(self) -> SmoothedModel:
        """Grow trees on smoothed features."""
        trees = ForestMember().fit(self.smooth_data)
        parts = ("smoothed forest", self.smoother, (FOREST_STEPS,), (trees.model,), trees.shares)
        return SmoothedModel(*parts)

    @cached_property
    def union(self) -> tuple[SampleGraph, SampleGraph, tuple[float, float]]:
        """Neighbour graph, links and neighbours in one graph, each of mean degree 1, and how."""
        nearest = NeighborMember().graph(self.data)[0]
        ways = [1.0 / (float(g.degrees.mean()) or 1.0) for g in (self.graph, nearest)]
        W = sp.csr_array(ways[0] * self.graph.W + ways[1] * nearest.W)
        return nearest, given_graph(W, self.graph.laplacian), (ways[0], ways[1])

    def union_held_out(self) -> FloatArray:
        """Hold labels out of links and neighbours together."""
        both = self.union[1]
        setting = Setting(np.inf, self.data.self_loop * both.unit)
        return self.held_out(partial(self.spread, setting=setting, graph=both))

    def build_union(self) -> FittedUnion:
        """Solve on links and neighbours together."""
        nearest, both, ways = self.union
        data, setting = self.data, Setting(np.inf, self.data.self_loop * both.unit)
        parts = (both, data.labels, setting, data.options)
        fitted = solve_graph(*parts, name="union", knows_links=True)
        return FittedUnion(**vars(fitted), nearest=nearest, factors=ways)
