"""Tables and graphs from files, and columns of tables as features."""

from .encode import FeatureEncoder
from .graph_files import GRAPH_FORMATS, NodeLabels, read_graph, read_labels
from .read import FORMATS, Table, TableError, read_table
from .target import read_target

__all__ = [
    "FORMATS",
    "GRAPH_FORMATS",
    "FeatureEncoder",
    "NodeLabels",
    "Table",
    "TableError",
    "read_graph",
    "read_labels",
    "read_table",
    "read_target",
]
