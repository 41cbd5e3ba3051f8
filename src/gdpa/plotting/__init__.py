"""Displays in the style of scikit-learn; they need matplotlib (extra ``plot``)."""

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
