"""The three estimators and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .committee_classifier import CommitteeClassifier, classify
    from .gdpa_classifier import GDPAClassifier
    from .graph_classifier import GraphClassifier
    from .model_selection import SemiSupervisedKFold
    from .options import GraphOptions

__all__ = [
    "CommitteeClassifier",
    "GDPAClassifier",
    "GraphClassifier",
    "GraphOptions",
    "SemiSupervisedKFold",
    "classify",
]

# Loaded on first use, because cluster workers do not need scikit-learn.
__getattr__ = load_on_use(
    __name__,
    committee_classifier="CommitteeClassifier classify",
    gdpa_classifier="GDPAClassifier",
    graph_classifier="GraphClassifier",
    model_selection="SemiSupervisedKFold",
    options="GraphOptions",
)
