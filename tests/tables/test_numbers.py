"""Numbers as the world writes them, and what contradicts itself."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.tables.numbers import FormatError, find_format, read_numbers, unit_in_name


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.5", "-2", "+3e2"], [1.5, -2, 300]),
        (["1,5", "2,25", "-3"], [1.5, 2.25, -3]),
        (["1.234,5", "2"], [1234.5, 2]),
        (["1,234.5", "12"], [1234.5, 12]),
        (["1,234", "5,678"], [1234, 5678]),
        (["1,234", "5.5"], [1234, 5.5]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1.234.567", "89"], [1234567, 89]),
        (["12,34,567", "1,23,456.5"], [1234567, 123456.5]),
        (["1 234,5", "1\u00a0234\u202f567"], [1234.5, 1234567]),
        (["1'234.5", "7"], [1234.5, 7]),
        (["45 %", "3%", "0"], [45, 3, 0]),
        (["$1,200.50", "-$3", "$-4", "($5)"], [1200.5, -3, -4, -5]),
        (["\u20ac 1.200,50", "7,5"], [1200.5, 7.5]),
        (["3,50 kr", "12 kr"], [3.5, 12]),
        (["80 kg", "75.5 kg"], [80, 75.5]),
        (["\u22125", "6"], [-5, 6]),
    ],
)
def test_texts_are_read_as_people_mean_them(texts, values):
    format, count = find_format(texts)
    assert count == len(texts)
    assert read_numbers(texts, format).tolist() == values


def test_what_could_be_either_follows_the_other_columns():
    alone, _ = find_format(["1,234"])
    assert not alone.sure
    assert read_numbers(["1,234"], alone).tolist() == [1234]
    format, _ = find_format(["1,234"], comma=True)
    assert read_numbers(["1,234"], format).tolist() == [1.234]
    format, _ = find_format(["1.234"], comma=True)
    assert read_numbers(["1.234"], format).tolist() == [1234]


@pytest.mark.parametrize(
    ("texts", "message", "place"),
    [
        (["1.5", "2", "2,5"], "decimal marks are mixed: '1.5' and '2,5'", 2),
        (["1.234,5", "1,234.5"], "decimal marks are mixed", 1),
        (["5 kg", "500 g"], "units are mixed: '5 kg' and '500 g'", 1),
        (["$5", "\u20ac5"], "units are mixed", 1),
    ],
)
def test_contradictions_are_named(texts, message, place):
    with pytest.raises(FormatError, match=message) as caught:
        find_format(texts)
    assert caught.value.place == place


@pytest.mark.parametrize(
    "text", ["12A", "abc", "1.2.3", "1,2,3", "--5", "1_000", "5 kg 3", "", "0x10"]
)
def test_other_texts_are_no_numbers(text):
    format, count = find_format([text])
    assert count == 0
    assert np.isnan(read_numbers([text], format)).all()


def test_a_learned_format_refuses_another():
    format, _ = find_format(["1.234,5"])
    assert np.isnan(read_numbers(["1,234.5", "12.5", "3 kg"], format)).all()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("weight (kg)", "kg"),
        ("share [%]", "%"),
        ("price (\u20ac)", "\u20ac"),
        ("kg", ""),
        ("a (b)", ""),
    ],
)
def test_units_of_the_header(name, unit):
    assert unit_in_name(name) == unit
