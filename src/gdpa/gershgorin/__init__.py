"""Gershgorin discs, perfect alignment, linearised psd constraints, and graph sampling."""

from .alignment import Alignment, align
from .discs import Discs, discs
from .linearization import UPDATES, LinearizationResult, linearization, linearize
from .program_sequence import LinearizationPoint
from .sampling import DiscSampling, reconstruct, sample_nodes

__all__ = [
    "UPDATES",
    "Alignment",
    "DiscSampling",
    "Discs",
    "LinearizationPoint",
    "LinearizationResult",
    "align",
    "discs",
    "linearization",
    "linearize",
    "reconstruct",
    "sample_nodes",
]
