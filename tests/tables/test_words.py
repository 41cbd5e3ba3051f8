"""Words: missing cells, scales, names of identifiers."""

from __future__ import annotations

import pytest

from gdpa.tables.words import is_missing_text, named_like_an_id, scale_order, shown


@pytest.mark.parametrize("text", ["", "NA", "na", "NaN", "null", "NULL", "?", "None", "N/A"])
def test_missing(text):
    assert is_missing_text(text)


@pytest.mark.parametrize("text", ["0", "unknown", "nah", "Nancy", "-"])
def test_not_missing(text):
    assert not is_missing_text(text)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (["high", "low", "medium"], [2, 0, 1]),
        (["Agree", "Strongly agree", "Disagree"], [1, 2, 0]),
        (["18-25", "under 18", "65+", "26-64"], [1, 0, 3, 2]),
        (["[0,10)", "[20,30)", "[10,20)"], [0, 2, 1]),
        (["1", "2", "3+"], [0, 1, 2]),
        (["M", "S", "XL", "L"], [1, 0, 3, 2]),
        (["red", "green", "blue"], None),
        (["low", "high"], None),
        (["low", "high", "purple"], None),
    ],
)
def test_scales_are_put_in_order(words, order):
    assert scale_order(words) == order


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("id", "customer_id", "CustomerID", "Unnamed: 0", "row number")),
        *((name, False) for name in ("width", "idea", "paid", "humid", "keyboard", "David")),
    ],
)
def test_names_of_identifiers(name, expected):
    assert named_like_an_id(name) is expected


def test_names_are_shown_short_and_harmless():
    assert len(shown("x" * 10_000)) < 70
    assert shown("a\x1b[0m") == r"'a\x1b[0m'"
