"""Cells as text, and text as cells."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gdpa.tables.table import Column
from gdpa.tables.texts import code_texts


@given(st.lists(st.integers(-(10**15), 10**15) | st.floats(allow_infinity=False), min_size=1))
def test_texts_of_numbers_are_numbers_again(values):
    cells = Column(np.array(values, dtype=np.float64)).cells()
    again = [float(c) if c else np.nan for c in cells]
    assert np.array_equal(np.array(again), np.array(values, dtype=np.float64), equal_nan=True)


@given(st.lists(st.text(max_size=4) | st.none()))
def test_coded_texts_are_the_texts(cells):
    codes, texts = code_texts(cells)
    assert len(set(texts)) == len(texts)
    for cell, code in zip(cells, codes, strict=True):
        assert code == -1 or texts[code] == cell.strip()
        assert (code == -1) == (cell is None or cell.strip().lower() in ("", "?", "na"))


def test_moments_are_dates_where_they_are_midnights():
    column = Column(np.array([0.0, 86400.0 + 1.5, np.nan]), moments=True)
    assert column.cells() == ["1970-01-01", "1970-01-02T00:00:01.500000", ""]
    assert column.as_text().texts == column.cells()[:2]
