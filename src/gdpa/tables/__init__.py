"""Tables from files, and their columns as features."""

from .encode import FeatureEncoder
from .read import FORMATS, Table, TableError, read_table

__all__ = ["FORMATS", "FeatureEncoder", "Table", "TableError", "read_table"]
