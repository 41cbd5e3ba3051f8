"""Read graphs, node labels, links between rows, and couplings from files."""

from .couplings import Couplings, read_couplings
from .graphs import GRAPH_FORMATS, NodeLabels, read_graph, read_labels, read_values
from .row_links import RowLinks, read_links

__all__ = [
    "GRAPH_FORMATS",
    "Couplings",
    "NodeLabels",
    "RowLinks",
    "read_couplings",
    "read_graph",
    "read_labels",
    "read_links",
    "read_values",
]
