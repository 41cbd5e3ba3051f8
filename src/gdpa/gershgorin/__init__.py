"""Gershgorin discs, perfect alignment, and the general linearisation of psd constraints."""

from .alignment import Alignment, align
from .discs import Discs, discs
from .linearization import UPDATES, LinearizationResult, linearize
from .sampling import DiscSampling, reconstruct, sample_nodes

__all__ = [
    "UPDATES",
    "Alignment",
    "DiscSampling",
    "Discs",
    "LinearizationResult",
    "align",
    "discs",
    "linearize",
    "reconstruct",
    "sample_nodes",
]
