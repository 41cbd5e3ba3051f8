"""Poisson learning on a graph.

With one label per class the harmonic function is nearly constant away from the labels. Poisson
learning removes the constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to
from ...graph.features import Features
from ...solvers.poisson import Poisson, positive_scores
from ..data import Fold, Rows
from ..labels import LabelCoding, expand_class_columns
from ..members import FittedMember
from ..options import CheckedOptions
from ..probabilities import to_shares
from ..sample_graph import SampleGraph
from ..views import GraphView, Views
from .base import Head


@storable("poisson")
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedPoisson(FittedMember):
    """Poisson learning on the user's graph.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
    shares : ndarray of shape (n_samples, n_classes)
        Potentials as positive numbers; each row is divided by its sum.
    prior : ndarray of shape (n_classes,)
        Shares of the classes among the labels, for rows without links.
    abstaining : ndarray of int
        Samples without a path to a label.
    """

    graph: SampleGraph
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    knows_links: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.graph.n_nodes
        check_numbers("shares", self.shares, (n, self.prior.size), at_least=0)
        check_numbers("prior", self.prior, (None,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    @classmethod
    def solve(cls, graph: SampleGraph, labels: LabelCoding, options: CheckedOptions) -> Self:
        """Solve Poisson's equation with all labels."""
        problem = graph.problem(labels)
        solver = Poisson(policy=options.policy, n_jobs=options.n_jobs)
        scores = positive_scores(solver.potential(problem, problem.targets).x)
        prior = problem.targets.mean(axis=0)
        unreached = np.flatnonzero(~connected_to(graph.W, labels.codes >= 0))
        scores[unreached] = prior
        return cls(graph=graph, shares=to_shares(scores, prior), prior=prior, abstaining=unreached)

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return shares of new rows from those of their neighbours."""
        return None if links is None else to_shares(links @ self.shares, self.prior)

    def with_labels(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> Self:
        """Return the solution with other labels."""
        return self.solve(self.graph, labels, options)

    def with_classes(self, place: Rows, n_classes: int) -> Self:
        """Return this member with more classes, whose shares are 0."""
        return replace(
            self,
            shares=expand_class_columns(self.shares, place, n_classes),
            prior=expand_class_columns(self.prior, place, n_classes),
        )


@dataclass(frozen=True)
class PoissonLearning(Head):
    """Poisson learning.

    Parameters
    ----------
    view : GraphView
        The graph.
    """

    view: GraphView

    def held_out(self, views: Views, setting: None, fold: Fold) -> FloatArray:
        """Predict a fold from the labels of the others."""
        data = views.data
        rows = data.labeled[fold.held]
        others = data.labels.with_labels(rows, np.full(rows.size, -1, dtype=np.int32))
        graph = self.view.of(views, fold).graph
        return FittedPoisson.solve(graph, others, data.options).shares[rows]

    def fit(self, views: Views, setting: None) -> FittedPoisson:
        """Solve with all labels."""
        graph = self.view.of(views, None).graph
        return FittedPoisson.solve(graph, views.data.labels, views.data.options)
