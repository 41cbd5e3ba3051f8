"""Numbers, dates and scales as the world writes them, and what contradicts itself."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from gdpa.tables.cell_formats import (
    FormatError,
    cycle_points,
    find_cycles,
    find_date_format,
    find_number_format,
    order_on_scale,
    parse_dates,
    parse_numbers,
    unit_in_name,
)


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
    format, count = find_number_format(texts)
    assert count == len(texts)
    assert parse_numbers(texts, format).tolist() == values


def test_what_could_be_either_follows_the_other_columns():
    alone, _ = find_number_format(["1,234"])
    assert not alone.certain
    assert parse_numbers(["1,234"], alone).tolist() == [1234]
    format, _ = find_number_format(["1,234"], comma=True)
    assert parse_numbers(["1,234"], format).tolist() == [1.234]
    format, _ = find_number_format(["1.234"], comma=True)
    assert parse_numbers(["1.234"], format).tolist() == [1234]


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
        find_number_format(texts)
    assert caught.value.place == place


@pytest.mark.parametrize(
    "text", ["12A", "abc", "1.2.3", "1,2,3", "--5", "1_000", "5 kg 3", "", "0x10"]
)
def test_other_texts_are_no_numbers(text):
    format, count = find_number_format([text])
    assert count == 0
    assert np.isnan(parse_numbers([text], format)).all()


def test_a_learned_format_refuses_another():
    format, _ = find_number_format(["1.234,5"])
    assert np.isnan(parse_numbers(["1,234.5", "12.5", "3 kg"], format)).all()


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


def seconds(*parts):
    return (datetime(*parts) - datetime(1970, 1, 1)).total_seconds()


@pytest.mark.parametrize(
    ("texts", "format", "moments"),
    [
        (["2020-01-05", "2021-12-31"], "iso", [(2020, 1, 5), (2021, 12, 31)]),
        (["2020-01-05T10:20:30Z"], "iso", [(2020, 1, 5, 10, 20, 30)]),
        (["2020-01-05T10:20:30+02:00"], "iso", [(2020, 1, 5, 8, 20, 30)]),
        (["2020/01/05 10:20"], "iso", [(2020, 1, 5, 10, 20)]),
        (["03/04/2020", "25/12/2019"], "day-first", [(2020, 4, 3), (2019, 12, 25)]),
        (["03/04/2020", "12/25/2019"], "month-first", [(2020, 3, 4), (2019, 12, 25)]),
        (["1.2.2020", "3.4.99"], "day-first", [(2020, 2, 1), (1999, 4, 3)]),
        (["5 Jan 2020", "January 6th, 2021"], "iso", [(2020, 1, 5), (2021, 1, 6)]),
        (["3/14/2020 5:30 PM"], "month-first", [(2020, 3, 14, 17, 30)]),
    ],
)
def test_dates_are_read(texts, format, moments):
    found, sure, count = find_date_format(texts)
    assert (found, sure, count) == (format, True, len(texts))
    assert parse_dates(texts, found).tolist() == [seconds(*m) for m in moments]


def test_what_could_be_either_is_not_sure():
    assert find_date_format(["03/04/2020"])[:2] == ("month-first", False)


def test_days_that_do_not_exist_are_none():
    assert np.isnan(parse_dates(["2020-13-45", "30/02/2020", "soon"], "day-first")).all()
    assert find_date_format(["red", "green"])[0] == ""
    assert find_date_format(["12", "13.5"])[0] == ""


@pytest.mark.parametrize(
    "days",
    [
        [f"{year}-01-01" for year in range(1960, 2020)],
        [f"{year}-07-15" for year in range(1990, 2020)],
        [f"{2000 + i // 12}-{1 + i % 12:02d}-01" for i in range(120)],
        [np.datetime64(f"{2000 + i // 12}-{1 + i % 12:02d}") + 1 for i in range(120)],
    ],
)
def test_yearly_and_monthly_dates_have_no_weekly_cycle(days):
    moments = np.array(days, dtype="datetime64[D]").astype("datetime64[s]").astype(np.float64)
    by_month = len({str(day)[5:7] for day in days}) > 1
    assert find_cycles(moments) == (("year",) if by_month else ())
    assert find_cycles(moments + 86400.0 * np.arange(moments.size)) == ("year", "week")


def test_cycles_are_those_that_the_moments_go_through():
    day = 86400.0
    assert find_cycles(np.arange(0, 800) * day) == ("year", "week")
    assert find_cycles(np.arange(0, 800) * day + np.arange(800) * 3600.0) == ("year", "week", "day")
    assert find_cycles(np.arange(0, 5) * day) == ()
    around = cycle_points(np.array([0.0, 7 * day, 3.5 * day]), "week")
    assert around[0] == pytest.approx(around[1])
    assert around[0] == pytest.approx(-around[2])


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        (["high", "low", "medium"], [1, 2, 0]),
        (["Agree", "Strongly agree", "Disagree"], [2, 0, 1]),
        (["18-25", "under 18", "65+", "26-64"], [1, 0, 3, 2]),
        (["[0,10)", "[20,30)", "[10,20)"], [0, 2, 1]),
        (["1", "2", "3+"], [0, 1, 2]),
        (["M", "S", "XL", "L"], [1, 0, 3, 2]),
        (["vhigh", "med", "low", "high"], [2, 1, 3, 0]),
        (["v. low", "Med", "Hi", "v_high"], [0, 1, 2, 3]),
        (["5more", "2", "4", "3"], [1, 3, 2, 0]),
        (["more", "4", "2"], [2, 1, 0]),
        ([">200", "<100", "100-200"], [1, 2, 0]),
        (["gt-norm", "norm", "lt-norm"], [2, 1, 0]),
        (["Bachelors", "HS-grad", "10th", "Doctorate"], [2, 1, 0, 3]),
        (["more", "less", "other"], None),
        (["very", "vlow", "low"], None),
        (["red", "green", "blue"], None),
        (["low", "high"], None),
        (["low", "high", "purple"], None),
    ],
)
def test_scales_are_put_in_order(words, ordered):
    assert order_on_scale(words) == (ordered and tuple(words[i] for i in ordered))
