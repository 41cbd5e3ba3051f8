"""A given graph beside the features: members that know both.

- *links*: labels spread over the given graph, no feature looked at;
- *smoothed*: a linear model on features smoothed one to four steps along it;
- *smoothed forest*: trees on features smoothed two steps;
- *links and features*: the smoothed model's shares as evidence in the given graph's system,

      (L + a + e) F = a Y + e T;

- *union*: labels spread over links and nearest neighbours together.

Each is judged as all members are. Models and evidence of a fold have not seen its labels; smoothing
moves features only, never labels. Of many nodes the labels that are left out are those of the
sample, the graph is the whole one: a sample of nodes has hardly any links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...graph.smoothing import Smoother
from ...system import LabeledSystem, ReorderedGraph, arrange
from ..evidence import Evidence
from ..fitting import solve_state
from ..graphs import ClassifierGraph, assemble_graph
from ..probabilities import fit_sharpness, sharpen, to_shares
from ..tuning import DEFAULT, LARGE_SELF_LOOPS, Given, Setting, Tuning, tune
from .forest import try_forest
from .graph import (
    GRAPHS,
    TOL,
    GraphMember,
    View,
    build_state,
    cross_shares,
    neighbors_of,
    plain,
    try_neighbors,
)
from .linear import MOST_LABELS, MOST_UNKNOWNS, fitted_slopes
from .link_members import Recovered, Smoothed, SmoothedForest, StepModels, Union
from .member import MANY, Task, Trial, least_loss, thinned
from .supervised import Supervised

__all__ = ["LINKS", "Linked"]

FloatArray = NDArray[np.float64]

LINKS = "links"
# Chosen on Cora (public split and random ones) with graphs and features of noise beside it.
STEPS = (1, 2, 3, 4)
FOREST_STEPS = 2
# Inverse strengths of the penalty: rows of unit length, columns of deviation 1; the first of them
# where there are many unknowns. On Cora 1 to 10 differ by half a point, on generated networks like
# Citeseer 3 is half a point above 10 (benchmarks/link_data.py).
UNIT_STRENGTHS = (3.0, 0.3)
COLUMN_STRENGTHS = (1.0, 0.1, 10.0)
# Labels that speak against a sharpness of the smoothed model's shares other than 1: fewer than for
# members in general, for strong penalties leave shares that are right and all but equal.
DOUBT = 1.0
# Weights of the evidence, times the mean diagonal.
EVIDENCE = (0.1, 0.05, 0.25)
# Weight of a label beside evidence, in parts of the evidence's: the model has seen it already. Held
# exactly instead, labels outweigh the model around them: a point less on Cora.
LABEL_PART = 0.3
# Trees take dense columns, at most so many.
FOREST_COLUMNS = 200


@dataclass(frozen=True)
class Linked:
    """A given graph, the task on its nodes, and the part of it that members are judged on.

    Parameters
    ----------
    graph : ClassifierGraph
        The given graph.
    task : Task
        All nodes.
    part : Task
        The task itself, or a sample of its nodes.
    """

    graph: ClassifierGraph
    task: Task
    part: Task

    @cached_property
    def smoother(self) -> Smoother:
        """The features along the graph."""
        return Smoother(self.graph.W, self.task.X)

    @property
    def large(self) -> bool:
        """Whether every solve counts."""
        return self.graph.n_nodes > self.task.options.policy.large_nodes

    @cached_property
    def arranged(self) -> ReorderedGraph | None:
        """The adjacency, prepared once where there are many nodes."""
        options = self.task.options
        if not self.large:
            return None
        return arrange(self.graph.adjacency, options.policy)

    @cached_property
    def judged(self) -> NDArray[np.intp]:
        """Which of all labels are left out in turn, in the order of the part's."""
        if self.part.nodes is None:
            return np.arange(self.task.codes.size)
        return np.searchsorted(self.task.labeled, self.part.nodes[self.part.labeled])

    @cached_property
    def folds(self) -> NDArray[np.int32]:
        """Fold of every label, -1 for those that are never left out; of many nodes fewer folds."""
        assert self.part.folds is not None
        folds = np.full(self.task.codes.size, -1, dtype=np.int32)
        own = self.part.folds
        if self.graph.n_nodes > self.task.options.policy.huge_nodes:
            # So many labels that the judged ones can all be left out at once, or two halves.
            own = own % (1 if folds.size >= MANY * own.size else 2)
        folds[self.judged] = own
        return folds

    def unit(self) -> float:
        """Mean diagonal of the Laplacian."""
        return float(self.graph.diagonal.mean()) or 1.0

    def left_out(self, scores: Callable[[NDArray[np.bool_], int], FloatArray]) -> FloatArray:
        """Shares of the judged labels: `scores` of them from the labels inside, fold by fold."""
        task = self.task
        out = np.empty((task.codes.size, task.n_classes))
        for f in range(int(self.folds.max()) + 1):
            inside = self.folds != f
            prior = task.targets[inside].mean(axis=0)
            out[~inside] = to_shares(scores(inside, f), prior)
        return out[self.judged]

    def spread(
        self,
        inside: NDArray[np.bool_],
        *,
        a: float = np.inf,
        loop: float = 0.0,
        e: float = 0.0,
        T: Any = None,
    ) -> FloatArray:
        """Scores of the labels outside, by the graph, from those inside and evidence."""
        task = self.task
        system = LabeledSystem(
            self.graph.adjacency,
            self.graph.diagonal,
            task.labeled[inside],
            task.targets[inside],
            label_weight=a,
            # Components without a label have no equation of their own.
            self_loop=max(loop, 1e-12),
            evidence=None if T is None else e * T,
            evidence_weight=e,
            arranged=self.arranged,
            policy=task.options.policy,
            n_jobs=task.options.n_jobs,
        )
        values = system.solve(tol=1e-2 if self.large else TOL).x
        return np.asarray(values[task.labeled[~inside]])

    def _spread_fold(
        self, inside: NDArray[np.bool_], f: int, *, said: Sequence[Any] | None = None, **how: float
    ) -> FloatArray:
        """The same for a fold, with what a model has said without it."""
        return self.spread(inside, T=None if said is None else said[f], **how)

    # --- the given graph alone

    @cached_property
    def _chosen(self) -> tuple[Setting, FloatArray | None]:
        """The given graph's weights, and what it says with them about labels left out."""
        task, folds = self.task, self.part.folds
        a, loop = task.options.label_weight, task.options.self_loop
        if self.large and folds is not None:
            # Every solve counts: those that choose are those that judge.
            weight = DEFAULT.label_weight if a is None else a
            loops = [s * self.unit() for s in LARGE_SELF_LOOPS] if loop is None else [loop]
            tried = {s: self.left_out(partial(self._spread_fold, a=weight, loop=s)) for s in loops}
            loop, shares = least_loss(tried, self.part.codes)
            return Setting(weight, loop), shares
        system = LabeledSystem(
            self.graph.adjacency,
            self.graph.diagonal,
            task.labeled,
            task.targets,
            arranged=self.arranged,
            policy=task.options.policy,
        )
        found = tune([system], task.codes, None, Given(a, loop)).setting
        if folds is None:
            return found, None
        fold = partial(self._spread_fold, a=found.label_weight, loop=found.self_loop)
        return found, self.left_out(fold)

    @property
    def links(self) -> FloatArray | None:
        """What the given graph alone says about labels left out."""
        return self._chosen[1]

    def tuning(self) -> Tuning:
        """The given graph's setting."""
        return Tuning(self._chosen[0], 1.0, "given", None, 0)

    # --- linear models on smoothed features

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Steps of smoothing that fit into memory."""
        most = self.smoother.most_steps(max(STEPS))
        return tuple(t for t in STEPS if t <= most) or STEPS[:1]

    @cached_property
    def smoothed(self) -> tuple[tuple[float, float], FloatArray | None]:
        """Strength of the penalty and sharpness that predict labels left out best; the outcome."""
        task, smoother = self.task, self.smoother
        strengths: tuple[float, ...] = UNIT_STRENGTHS if smoother.sparse else COLUMN_STRENGTHS
        if smoother.features.shape[1] * task.n_classes > MOST_UNKNOWNS:
            strengths = strengths[:1]
        if self.part.folds is None:
            return (strengths[0], 1.0), None
        codes, tried = self.part.codes, {}
        for C in strengths:
            shares = self.left_out(partial(self._smoothed_fold, C=C))
            sharpness = fit_sharpness(shares, codes, fewest=1, doubt=DOUBT)
            tried[C, sharpness] = sharpen(shares, sharpness)
        return least_loss(tried, codes)

    def _smoothed_fold(self, inside: NDArray[np.bool_], f: int, C: float) -> FloatArray:
        out = self.task.labeled[~inside]
        self._fold_models[f, C] = self._linear(inside, C)
        return self._fold_models[f, C].shares_by(partial(self.smoother.product, rows=out))

    @cached_property
    def _fold_models(self) -> dict[tuple[int, float], StepModels]:
        """Models without a fold, by fold and strength."""
        return {}

    def _linear(self, inside: NDArray[np.bool_], C: float, sharpness: float = 1.0) -> StepModels:
        """One model for each number of steps, from the labels inside."""
        task = self.task
        rows = np.flatnonzero(inside)
        rows = rows[thinned(task.codes[rows], MOST_LABELS)]
        fits = [
            fitted_slopes(
                self.smoother.points(t, task.labeled[rows]), task.codes[rows], task.n_classes, C
            )
            for t in self.steps
        ]
        return StepModels(
            self.steps,
            np.stack([f[0] for f in fits]),
            np.stack([f[1] for f in fits]),
            sharpness,
        )

    def _said(self, models: StepModels) -> FloatArray:
        """What models say about all nodes."""
        return models.shares_by(self.smoother.product)

    @cached_property
    def model(self) -> Smoothed:
        """The smoothed models, fitted on all labels."""
        models = self._linear(np.ones(self.task.codes.size, dtype=bool), *self.smoothed[0])
        return Smoothed(self.smoother, models, self._said(models))

    # --- its shares as evidence

    @cached_property
    def recovered(self) -> tuple[float, FloatArray | None]:
        """Weight of the evidence, and what it leads to for labels left out."""
        weights = [e * self.unit() for e in (EVIDENCE[:1] if self.large else EVIDENCE)]
        if self.part.folds is None:
            return weights[0], None
        n_folds = int(self.folds.max()) + 1
        C, sharpness = self.smoothed[0]
        models = [replace(self._fold_models[f, C], sharpness=sharpness) for f in range(n_folds)]
        said = [self._said(m) for m in models]
        tried = {
            e: self.left_out(partial(self._spread_fold, a=LABEL_PART * e, e=e, said=said))
            for e in weights
        }
        return least_loss(tried, self.part.codes)

    def build_recovered(self) -> Recovered:
        """The given graph with the smoothed model as evidence."""
        evidence = Evidence((), np.empty(0), self.model.shares)
        e = self.recovered[0]
        tuning = Tuning(Setting(LABEL_PART * e, 0.0, e), 1.0, "given", None, 0)
        options = plain(self.task.options)
        state = solve_state(
            *(self.graph, self.task.coding, tuning, evidence, options),
            arranged=self.arranged,
            sharpness=1.0,
        )
        return Recovered(self.model, state)

    # --- further members

    @cached_property
    def smooth_task(self) -> Task:
        """The task on smoothed features."""
        return replace(self.task, X=self.smoother.points(FOREST_STEPS))

    def build_forest(self, trial: Trial) -> SmoothedForest:
        """Trees on smoothed features."""
        member = trial.build(self.smooth_task)
        assert isinstance(member, Supervised)
        return SmoothedForest(self.smoother, FOREST_STEPS, replace(member, name="smoothed forest"))

    @cached_property
    def nearest(self) -> ClassifierGraph:
        """The neighbours of the features."""
        return neighbors_of(self.task.X, self.task)

    @cached_property
    def union(self) -> Union:
        """Links and nearest neighbours in one graph, each of mean degree 1; not solved yet."""
        nearest = self.nearest
        ways = [1.0 / (float(g.degrees.mean()) or 1.0) for g in (self.graph, nearest)]
        W = sp.csr_array(ways[0] * self.graph.W + ways[1] * nearest.W)
        both = assemble_graph("precomputed", W, self.graph.laplacian, None)
        return Union(nearest, (ways[0], ways[1]), build_state(both, self.task))

    def trials(self) -> list[Trial]:
        """Every member that knows the links, judged; the given graph itself first."""
        trials = [
            Trial(LINKS, self.links, _never),
            Trial("smoothed", self.smoothed[1], lambda full: self.model),
            Trial("links and features", self.recovered[1], lambda full: self.build_recovered()),
        ]
        if self.large:
            return trials
        if not self.smoother.sparse and self.smoother.features.shape[1] <= FOREST_COLUMNS:
            trial = try_forest(self.smooth_task)
            trials.append(
                Trial("smoothed forest", trial.left_out, lambda full: self.build_forest(trial))
            )
        return trials

    def try_neighbors(self, part: Task) -> Trial:
        """Judge the neighbours of the features; the search is that of the union."""
        if part is not self.task:
            return try_neighbors(part)
        left_out = None
        if part.folds is not None:
            left_out = cross_shares(part, lambda f: self.nearest)
        return Trial(
            GRAPHS[0],
            left_out,
            lambda full: GraphMember(GRAPHS[0], View(), build_state(self.nearest, full)),
        )

    def try_union(self, part: Task) -> Trial:
        """Judge links and neighbours together."""
        shares = None
        if part.folds is not None:
            joined = replace(self, graph=self.union.state.graph)
            loop = self.union.state.setting.self_loop
            shares = joined.left_out(partial(joined._spread_fold, loop=loop))
        return Trial("union", shares, lambda full: self.union)


def _never(full: Task) -> Any:
    raise AssertionError("the state's own graph is not built again")
