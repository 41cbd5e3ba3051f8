"""Read tables and graphs, convert data frames into tables, and encode tables as features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use
from .columns import ColumnList, ColumnPlan
from .frames import table_of
from .graph_files import GRAPH_FORMATS, NodeLabels, read_graph, read_labels
from .read import FORMATS, read_table, read_target
from .row_links import RowLinks, read_links
from .table import Column, Table, TableError, is_frame

if TYPE_CHECKING:
    from .encoder import TableEncoder

__all__ = [
    "FORMATS", "GRAPH_FORMATS", "Column", "ColumnList", "ColumnPlan", "NodeLabels", "RowLinks",
    "Table", "TableEncoder", "TableError", "is_frame", "read_graph", "read_labels",
    "read_links", "read_table", "read_target", "table_of",
]  # fmt: skip

# Loaded lazily, because scikit-learn takes a second to import.
__getattr__ = load_on_use(__name__, encoder="TableEncoder")
