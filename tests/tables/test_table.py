"""Cells as text, and text as cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdpa.tables.table import Column, intern_texts, is_missing_text, shorten


@given(st.lists(st.integers(-(10**15), 10**15) | st.floats(allow_infinity=False), min_size=1))
def test_texts_of_numbers_are_numbers_again(values):
    cells = Column(np.array(values, dtype=np.float64)).cells()
    again = [float(c) if c else np.nan for c in cells]
    assert np.array_equal(np.array(again), np.array(values, dtype=np.float64), equal_nan=True)


@pytest.mark.slow
@given(st.lists(st.text(max_size=4) | st.none()))
def test_coded_texts_are_the_texts(cells):
    codes, texts = intern_texts(cells)
    assert len(set(texts)) == len(texts)
    for cell, code in zip(cells, codes, strict=True):
        assert code == -1 or texts[code] == cell.strip()
        assert (code == -1) == (cell is None or is_missing_text(cell))


def test_moments_are_dates_where_they_are_midnights():
    column = Column(np.array([0.0, 86400.0 + 1.5, np.nan]), moments=True)
    assert column.cells() == ["1970-01-01", "1970-01-02T00:00:01.500000", ""]
    assert column.as_text().texts == column.cells()[:2]


@pytest.mark.parametrize("text", ["", "NA", "na", "NaN", "null", "NULL", "?", "None", "N/A"])
def test_missing(text):
    assert is_missing_text(text)


@pytest.mark.parametrize("text", ["0", "unknown", "nah", "Nancy", "-"])
def test_not_missing(text):
    assert not is_missing_text(text)


def test_names_are_shown_short_and_harmless():
    assert len(shorten("x" * 10_000)) < 70
    assert shorten("a\x1b[0m") == r"'a\x1b[0m'"
