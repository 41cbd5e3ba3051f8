"""Metrics learned by Gershgorin disc perfect alignment."""

from .cone import project_onto_cone
from .estimator import SignedGraphMetric
from .objectives import OBJECTIVES

__all__ = ["OBJECTIVES", "SignedGraphMetric", "project_onto_cone"]
