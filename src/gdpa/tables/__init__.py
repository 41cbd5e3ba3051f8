"""Read tables, convert data frames into tables, and encode tables as features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use
from .columns import ColumnList, ColumnPlan
from .frames import table_of
from .read import FORMATS, read_table, read_target
from .table import Column, Table, TableError, is_frame

if TYPE_CHECKING:
    from .encoder import TableEncoder

__all__ = [
    "FORMATS",
    "Column",
    "ColumnList",
    "ColumnPlan",
    "Table",
    "TableEncoder",
    "TableError",
    "is_frame",
    "read_table",
    "read_target",
    "table_of",
]

# Loaded lazily, because scikit-learn takes a second to import.
__getattr__ = load_on_use(__name__, encoder="TableEncoder")
