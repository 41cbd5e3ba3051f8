"""The user's graph with the shares of a model as evidence.

    (L + a + e) F = a Y + e T

Labels Y have weight a, and every node is pulled with weight e to the shares T that a model of the
features predicts. The evidence never depends on the labels of the fold that is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray
from ...codec import check_numbers, storable
from ...graph.features import Features
from ...system import ReorderedGraph, new_row_scores
from ..data import Fold, Rows
from ..labels import LabelCoding, expand_class_columns
from ..members import FittedMember, FittedModel
from ..options import CheckedOptions
from ..probabilities import to_shares
from ..sample_graph import SampleGraph
from ..trials import Trial
from ..tuning import Setting
from ..views import GraphView, Views
from .base import Head
from .harmonic import spread, targets_of
from .linear import Logistic

# Weight of a label relative to that of the evidence.
LABEL_PART = 0.3


@storable("links and features")
@dataclass(frozen=True, eq=False, kw_only=True)
class LinksAndFeatures(FittedMember):
    """The user's graph with a model as evidence.

    Parameters
    ----------
    model : FittedModel
        The model.
    graph : SampleGraph
        The user's graph.
    evidence_weight : float
        Weight e of the evidence.
    scores, shares : ndarray of shape (n_samples, n_classes)
        Solution of the system, and the same with each row divided by its sum.
    prior : ndarray of shape (n_classes,)
        Shares of the classes among the labels.
    """

    model: FittedModel
    graph: SampleGraph
    evidence_weight: float
    scores: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    knows_links: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        shape = (self.graph.n_nodes, self.prior.size)
        check_numbers("scores", self.scores, shape)
        check_numbers("shares", self.shares, shape, at_least=0)
        if not 0 < self.evidence_weight < np.inf:
            raise ValueError("evidence_weight is not positive and finite")

    @classmethod
    def solve(
        cls,
        model: FittedModel,
        graph: SampleGraph,
        labels: LabelCoding,
        weight: float,
        options: CheckedOptions,
        arranged: ReorderedGraph | None = None,
        x0: FloatArray | None = None,
    ) -> Self:
        """Solve the system with all labels."""
        targets = targets_of(labels)
        system = graph.system(
            labels.labeled,
            targets,
            Setting(LABEL_PART * weight, 0.0),
            options,
            arranged,
            evidence=model.shares,
            evidence_weight=weight,
        )
        scores = system.solve(tol=options.tol, max_iter=options.max_iter, x0=x0).x
        prior = targets.mean(axis=0)
        return cls(
            model=model,
            graph=graph,
            evidence_weight=weight,
            scores=scores,
            shares=to_shares(scores, prior),
            prior=prior,
        )

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return shares of new rows; each becomes one more row of the system."""
        evidence = self.model.predict(X, links, labels)
        assert evidence is not None
        graph = self.graph
        scores = new_row_scores(
            sp.csr_array((evidence.shape[0], graph.n_nodes)) if links is None else links,
            self.scores,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=0.0,
            evidence=evidence,
            evidence_weight=self.evidence_weight,
        )
        return to_shares(scores, self.prior)

    def with_labels(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> Self:
        """Return the solution with other labels and the same evidence."""
        return self.solve(
            self.model, self.graph, labels, self.evidence_weight, options, x0=self.scores
        )

    def with_classes(self, place: Rows, n_classes: int) -> Self:
        """Return the same member with more classes."""
        return replace(
            self,
            model=self.model.with_classes(place, n_classes),
            scores=expand_class_columns(self.scores, place, n_classes),
            shares=expand_class_columns(self.shares, place, n_classes),
            prior=expand_class_columns(self.prior, place, n_classes),
        )


@dataclass(frozen=True)
class Evidence(Head):
    """The user's graph with a model as evidence; held-out labels choose the weight of the model.

    Parameters
    ----------
    view : GraphView
        The user's graph.
    source : Logistic
        Head of the member whose predictions are the evidence.
    source_name : str
        Name of that member: its trial says which of its settings are best.
    trial : Trial, optional
        That trial, which :meth:`prepared` adds.
    weights : tuple of float
        Weights of the evidence as multiples of the Laplacian's mean diagonal; the last is the
        default, and the only one with many nodes.
    """

    view: GraphView
    source: Logistic
    source_name: str
    trial: Trial | None = None
    weights: tuple[float, ...] = (1.0, 0.25)

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head with the trial of its source."""
        return replace(self, trial=trials.get(self.source_name))

    def settings(self, views: Views) -> Sequence[tuple[float, Any]]:
        """Return the weights of the evidence, each with the setting of the source."""
        default = self.source.settings(views)[-1]
        of_source = default if self.trial is None else self.trial.setting
        weights = self.weights[-1:] if views.data.large else self.weights
        return [(weight, of_source) for weight in weights]

    def held_out(self, views: Views, setting: tuple[float, Any], fold: Fold) -> FloatArray:
        """Predict a fold from the labels of the others, and evidence that has not seen it."""
        assert self.trial is not None
        evidence = self.source.shares(views, self.trial.fold_settings[fold.number], fold)
        looked_at = self.view.of(views, fold)
        weight = setting[0] * looked_at.graph.unit
        shares = spread(
            looked_at,
            views,
            fold,
            Setting(LABEL_PART * weight, 0.0),
            evidence=evidence,
            evidence_weight=weight,
        )
        return shares[views.data.labeled[fold.held]]

    def fit(self, views: Views, setting: tuple[float, Any]) -> LinksAndFeatures:
        """Solve with all labels."""
        weight, of_source = setting
        looked_at = self.view.of(views, None)
        return LinksAndFeatures.solve(
            self.source.fit(views, of_source),
            looked_at.graph,
            views.data.labels,
            weight * looked_at.graph.unit,
            views.data.options,
            looked_at.arranged,
        )
