"""Graphs: neighbours, kernels, Laplacians, signed graphs, files and other libraries.

Search structures, learned similarities and checks are in the modules of this package.
"""

from .adjacency import laplacian
from .convert import from_edges, from_networkx
from .forest import forest_graph
from .kernels import full_graph
from .learning import BalancedGraph, learn_balanced_graph
from .links import Links
from .neighbor_graph import neighbor_graph
from .rescale import rescale_minmax
from .signed import balance

__all__ = [
    "BalancedGraph",
    "Links",
    "balance",
    "forest_graph",
    "from_edges",
    "from_networkx",
    "full_graph",
    "laplacian",
    "learn_balanced_graph",
    "neighbor_graph",
    "rescale_minmax",
]
