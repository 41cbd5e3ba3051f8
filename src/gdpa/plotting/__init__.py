"""Displays in scikit-learn's manner; the only package that imports matplotlib (extra ``plot``)."""

from .convergence import ConvergenceDisplay
from .gershgorin import GershgorinDisplay
from .graph import GraphDisplay
from .selection import CommitteeDisplay, SelectionDisplay

__all__ = [
    "CommitteeDisplay",
    "ConvergenceDisplay",
    "GershgorinDisplay",
    "GraphDisplay",
    "SelectionDisplay",
]
