"""Graphs: re-scaling of features, kernels, neighbours, Laplacians, signed graphs and balance."""

from .adjacency import check_adjacency, component_labels, degrees
from .laplacian import laplacian, laplacian_parts
from .memory import available_memory, check_memory
from .neighbor_graph import (
    NeighborGraph,
    build_neighbor_graph,
    graph_from_neighbors,
    neighbor_graph,
)
from .neighbors import (
    NeighborIndex,
    NeighborResult,
    choose_algorithm,
    nearest_neighbors,
    query_neighbors,
)

__all__ = [
    "NeighborGraph",
    "NeighborIndex",
    "NeighborResult",
    "available_memory",
    "build_neighbor_graph",
    "check_adjacency",
    "check_memory",
    "choose_algorithm",
    "component_labels",
    "degrees",
    "graph_from_neighbors",
    "laplacian",
    "laplacian_parts",
    "nearest_neighbors",
    "neighbor_graph",
    "query_neighbors",
]
