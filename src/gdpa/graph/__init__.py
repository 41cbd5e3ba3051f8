"""Graphs: re-scaling of features, kernels, neighbours, Laplacians, signed graphs and balance."""

from .adjacency import check_adjacency, component_labels, degrees
from .laplacian import laplacian, laplacian_parts

__all__ = [
    "check_adjacency",
    "component_labels",
    "degrees",
    "laplacian",
    "laplacian_parts",
]
