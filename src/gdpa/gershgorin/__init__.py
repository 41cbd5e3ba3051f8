"""Gershgorin discs, perfect alignment, and the general linearisation of psd constraints."""

from .alignment import Alignment, align
from .discs import Discs, discs
from .linearization import UPDATES, LinearizationResult, linearize

__all__ = [
    "UPDATES",
    "Alignment",
    "Discs",
    "LinearizationResult",
    "align",
    "discs",
    "linearize",
]
