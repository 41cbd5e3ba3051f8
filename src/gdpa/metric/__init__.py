"""Metric learning by Gershgorin disc perfect alignment."""

from .estimator import SignedGraphMetric
from .objectives import OBJECTIVES

__all__ = ["OBJECTIVES", "SignedGraphMetric"]
