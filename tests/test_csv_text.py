"""CSV that is safe to open."""

from __future__ import annotations

import csv
import io

import pytest

from gdpa.csv_text import FORMULA, csv_text


@pytest.mark.parametrize("first", FORMULA)
def test_what_a_spreadsheet_would_run_is_made_harmless(first):
    cell = f"{first}HYPERLINK(1)"
    rows = list(csv.reader(io.StringIO(csv_text([cell], [[cell, "plain"]]), newline="")))
    assert [row[0][0] for row in rows] == ["'", "'", "p"]
    raw = list(csv.reader(io.StringIO(csv_text([cell], [[cell]], raw=True), newline="")))
    assert raw == [[cell], [cell]]


def test_numbers_stay_numbers():
    text = csv_text(["a", "b", "c"], [[-1, 2.5], ["-1e3", "+4"], [True, None]])
    assert text == "a,b,c\n-1,-1e3,True\n2.5,+4,\n"
