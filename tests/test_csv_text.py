"""CSV that is safe to open."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from gdpa.csv_text import FORMULA, csv_text, escape_formulas


@pytest.mark.parametrize("first", FORMULA)
def test_what_a_spreadsheet_would_run_is_made_harmless(first):
    cell = f"{first}HYPERLINK(1)"
    assert escape_formulas([cell, "plain"]) == ["'" + cell, "plain"]
    assert escape_formulas(["-1e3", "+4", -1, 2.5, None]) == ["-1e3", "+4", -1, 2.5, None]
    rows = list(csv.reader(io.StringIO(csv_text([cell], [[cell, "plain"]]), newline="")))
    assert rows == [[cell], [cell], ["plain"]]  # the writer itself changes nothing


def test_cells_of_every_kind_are_read_back():
    rng = np.random.default_rng(0)
    for _ in range(300):
        cells = ["".join(rng.choice(list("a,;\"'\r\n\t =-+@"), size=5)) for _ in range(6)]
        for delimiter in (",", "\t"):
            text = csv_text(["x", "y"], [cells[:3], cells[3:]], delimiter=delimiter)
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
            assert rows[1:] == [list(pair) for pair in zip(cells[:3], cells[3:], strict=True)]


def test_numbers_stay_numbers():
    text = csv_text(["a", "b", "c"], [[-1, 2.5], ["-1e3", "+4"], [True, None]])
    assert text == "a,b,c\n-1,-1e3,True\n2.5,+4,\n"
