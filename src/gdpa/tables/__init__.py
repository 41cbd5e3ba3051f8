"""Tables and graphs from files, data frames as tables, and columns of tables as features."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .frames import is_frame, table_of
from .graph_files import GRAPH_FORMATS, NodeLabels, read_graph, read_labels
from .plan import ColumnList, ColumnPlan
from .read import FORMATS, read_table
from .row_links import RowLinks, read_links
from .table import Column, Table, TableError
from .target import read_target

if TYPE_CHECKING:
    from .encoder import TableEncoder

__all__ = [
    "FORMATS",
    "GRAPH_FORMATS",
    "Column",
    "ColumnList",
    "ColumnPlan",
    "NodeLabels",
    "RowLinks",
    "Table",
    "TableEncoder",
    "TableError",
    "is_frame",
    "read_graph",
    "read_labels",
    "read_links",
    "read_table",
    "read_target",
    "table_of",
]


def __getattr__(name: str) -> Any:
    # On first use: scikit-learn takes a second to load, which readers of files need not wait for.
    if name != "TableEncoder":
        raise AttributeError(f"module 'gdpa.tables' has no attribute {name!r}")
    value = globals()[name] = importlib.import_module(f"{__name__}.encoder").TableEncoder
    return value
