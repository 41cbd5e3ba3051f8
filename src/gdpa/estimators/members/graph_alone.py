"""Members for a graph without features: Poisson learning and class sizes on the user's links.

With one label per class the harmonic function is nearly constant away from the labels, and both
methods are better on the graphs tried (les miserables, karate, LFR graphs and block models). Class
sizes are better than Poisson learning where their labelling is stable, and worse where it is not.
With enough labels, held-out labels decide between all three.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to
from ...solvers.poisson import Poisson, positive_scores
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import to_shares
from .base import Candidates, Codes, Features, FitData, FittedMember, Mask, Member, Rows
from .class_sizes import LEAST_STABILITY, FittedClassSizes, decide
from .graphs import SampleGraph
from .links import LinksMember
from .smoothed import shared_graph


@storable("poisson")
@dataclass(frozen=True, eq=False)
class FittedPoisson(FittedMember):
    """Poisson learning on the user's graph.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
    labels : LabelCoding
        Labels that the shares come from.
    shares : ndarray of shape (n_samples, n_classes)
        Potentials as positive numbers; each row is divided by its sum.
    prior : ndarray of shape (n_classes,)
        Shares of the classes among the labels, for rows without links.
    abstaining : ndarray of int
        Samples without a path to a label.
    """

    graph: SampleGraph
    labels: LabelCoding
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    name: str = "poisson"
    knows_links: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, k = self.graph.n_nodes, self.labels.classes.size
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    @classmethod
    def solve(cls, graph: SampleGraph, labels: LabelCoding, options: FitOptions) -> Self:
        """Solve Poisson's equation with all labels."""
        problem = graph.problem(labels)
        solver = Poisson(policy=options.policy, n_jobs=options.n_jobs)
        scores = positive_scores(solver.potential(problem, problem.targets).x)
        prior = problem.targets.mean(axis=0)
        unreached = np.flatnonzero(~connected_to(graph.W, labels.codes >= 0))
        scores[unreached] = prior
        return cls(graph, labels, to_shares(scores, prior), prior, unreached)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows from those of their neighbours."""
        return None if links is None else to_shares(links @ self.shares, self.prior)

    def with_labels(self, rows: Rows, codes: Codes, options: FitOptions, tol: float) -> Self:
        """Return the solution with other labels."""
        return self.solve(self.graph, self.labels.with_labels(rows, codes), options)

    def with_classes(self, labels: LabelCoding, place: Rows) -> Self:
        """Return this member with more classes, whose shares are 0."""
        k = labels.classes.size
        return replace(
            self,
            labels=labels,
            shares=expand_class_columns(self.shares, place, k),
            prior=expand_class_columns(self.prior, place, k),
        )


class PoissonMember(Member):
    """Poisson learning on the user's graph."""

    name = "poisson"
    on_links = True

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others."""
        rows = data.labeled[held]
        yield (
            None,
            FittedPoisson.solve(shared_graph(data), _without(data, rows), data.options).shares[
                rows
            ],
        )

    def fit(self, data: FitData) -> FittedPoisson:
        """Solve with all labels."""
        return FittedPoisson.solve(shared_graph(data), data.labels, data.options)


@storable("link class sizes")
@dataclass(frozen=True, eq=False)
class FittedLinkSizes(FittedClassSizes):
    """A joint labelling of the user's graph with expected class sizes."""

    name: str = "link class sizes"
    knows_links: bool = True

    @classmethod
    def of(cls, found: FittedClassSizes) -> Self:
        """Return a labelling as one of the user's graph."""
        return cls(
            graph=found.graph,
            labels=found.labels,
            shares=found.shares,
            prior=found.prior,
            abstaining=found.abstaining,
            class_shares=found.class_shares,
            stability=found.stability,
        )

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows from those of their neighbours."""
        return None if links is None else self.by_weights(links, None)

    def with_labels(
        self, rows: Rows, codes: Codes, options: FitOptions, tol: float
    ) -> FittedLinkSizes:
        """Return a new labelling of the same graph with other labels."""
        return self.of(super().with_labels(rows, codes, options, tol))


class LinkSizesMember(Member):
    """Joint labelling of the user's graph with plausible class sizes."""

    name = "link class sizes"
    on_links = True
    labels_per_class = 8.0  # as for the neighbour graph

    def suits(self, data: FitData) -> bool:
        """Return whether held-out labels can judge it, or else its labelling is stable."""
        if data.folds is not None:
            return True
        chance = 1.0 / data.n_classes
        return self.fit(data).stability >= chance + LEAST_STABILITY * (1.0 - chance)

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others."""
        rows = data.labeled[held]
        found = decide(shared_graph(data), _without(data, rows), data.options, data.class_shares)
        yield None, found.shares[rows]

    def fit(self, data: FitData) -> FittedLinkSizes:
        """Label all samples from all labels, once."""
        if self.name not in data.cache:
            parts = (shared_graph(data), data.labels, data.options, data.class_shares)
            data.cache[self.name] = FittedLinkSizes.of(decide(*parts, stability=True))
        found: FittedLinkSizes = data.cache[self.name]
        return found


def _without(data: FitData, rows: Rows) -> LabelCoding:
    """Return the labels without those of some rows."""
    return data.labels.with_labels(rows, np.full(rows.size, -1, dtype=np.int32))


# Members for links without features; the first has the graph in ``graph_``.
GRAPH_MEMBERS: tuple[type[Member], ...] = (LinksMember, PoissonMember, LinkSizesMember)
