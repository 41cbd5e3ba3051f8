from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from parquet_parts import clusters, table_columns, write_parts


@pytest.fixture
def parts(tmp_path):
    """Pattern of three parts of 1,800 rows, and the truth."""
    X, truth, known = clusters()
    pattern = write_parts(tmp_path / "in", table_columns(X, truth, known), [700, 700, 400])
    return pattern, X, truth, known
