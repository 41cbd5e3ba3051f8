"""What a fitted classifier shows besides its labels: read from its state when it is asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..solution import Solution
from .committee import Committee, Judgement
from .state import FittedState
from .tuning import Tuning

__all__ = ["Attributes"]


class Attributes:
    """Properties of a fitted classifier."""

    method: str
    abstain_below: float | None
    _state: FittedState

    @property
    def state_(self) -> FittedState:
        """All that the fit found, as one frozen record."""
        check_is_fitted(self)
        return self._state

    @property
    def objective_(self) -> float:
        """Smoothness of the labels."""
        return self.state_.objective()

    @property
    def solution_(self) -> Solution | tuple[Solution, ...]:
        """Record of the solve."""
        records = self.state_.solutions(self.method)
        return records[0] if len(records) == 1 else records

    @property
    def tuning_(self) -> Tuning:
        """What was chosen and why."""
        return self.state_.tuning

    @property
    def committee_(self) -> Judgement | None:
        """Who votes with ``graph="auto"``, with which weight and loss; None for a single graph."""
        committee = self.state_.committee
        return committee.judgement if isinstance(committee, Committee) else None

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each feature decides in the committee's forest; they add up to 1."""
        committee = self.state_.committee
        if not isinstance(committee, Committee) or committee.importances is None:
            raise AttributeError("no forest was grown: importances come with graph='auto'")
        return committee.importances

    @property
    def graph_share_(self) -> NDArray[np.float64]:
        """Part of the vote for each sample's label that a given graph (``adjacency=``) has."""
        return self.state_.graph_share()

    @property
    def label_weight_(self) -> float:
        """Weight of the labels in use."""
        return self.state_.setting.label_weight

    @property
    def self_loop_(self) -> float:
        """Self-loop in use."""
        return self.state_.setting.self_loop

    @property
    def evidence_weight_(self) -> float:
        """Weight of the evidence in use."""
        return self.state_.setting.evidence_weight

    @property
    def n_neighbors_(self) -> int | None:
        """Neighbours in use; None without a neighbour graph."""
        return self.state_.graph.n_neighbors

    @property
    def unsure_(self) -> NDArray[np.bool_]:
        """Unlabelled samples whose largest probability is below `abstain_below`."""
        state = self.state_
        unsure = state.probabilities().max(axis=1) < (self.abstain_below or 0.0)
        unsure[state.coding.labeled] = False
        return np.asarray(unsure)
