"""Graphs: re-scaling of features, kernels, neighbours, Laplacians, signed graphs and balance."""

from .adjacency import (
    check_adjacency,
    component_labels,
    degrees,
    laplacian,
    laplacian_parts,
)
from .builders import build_neighbor_graph, graph_from_neighbors, neighbor_graph
from .convert import NamedGraph, from_edges, from_networkx
from .forest import (
    LeafEmbedding,
    forest_graph,
    importance_scales,
    leaf_weights,
    shared_leaves,
)
from .kernels import FullGraphOperator, full_graph
from .links import Links
from .memory import available_memory, check_memory
from .neighbor_graph import NeighborGraph, neighbor_graphs
from .neighbors import NeighborIndex, nearest_neighbors, query_neighbors
from .rescale import Rescaler, rescale_minmax, rescale_standard, varying_columns
from .search import NeighborResult, choose_algorithm
from .signed import BalanceResult, balance
from .smoothing import Smoother
from .storage import load_graph, save_graph

__all__ = [
    "BalanceResult",
    "FullGraphOperator",
    "LeafEmbedding",
    "Links",
    "NamedGraph",
    "NeighborGraph",
    "NeighborIndex",
    "NeighborResult",
    "Rescaler",
    "Smoother",
    "available_memory",
    "balance",
    "build_neighbor_graph",
    "check_adjacency",
    "check_memory",
    "choose_algorithm",
    "component_labels",
    "degrees",
    "forest_graph",
    "from_edges",
    "from_networkx",
    "full_graph",
    "graph_from_neighbors",
    "importance_scales",
    "laplacian",
    "laplacian_parts",
    "leaf_weights",
    "load_graph",
    "nearest_neighbors",
    "neighbor_graph",
    "neighbor_graphs",
    "query_neighbors",
    "rescale_minmax",
    "rescale_standard",
    "save_graph",
    "shared_leaves",
    "varying_columns",
]
