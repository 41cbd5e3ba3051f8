"""Dates: the order of day and month is found; cycles close."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from gdpa.tables.dates import cycle_points, find_cycles, find_date_format, read_dates


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
    assert read_dates(texts, found).tolist() == [seconds(*m) for m in moments]


def test_what_could_be_either_is_not_sure():
    assert find_date_format(["03/04/2020"])[:2] == ("month-first", False)


def test_days_that_do_not_exist_are_none():
    assert np.isnan(read_dates(["2020-13-45", "30/02/2020", "soon"], "day-first")).all()
    assert find_date_format(["red", "green"])[0] == ""
    assert find_date_format(["12", "13.5"])[0] == ""


def test_cycles_are_those_that_the_moments_go_through():
    day = 86400.0
    assert find_cycles(np.arange(0, 800) * day) == ("year", "week")
    assert find_cycles(np.arange(0, 800) * day + np.arange(800) * 3600.0) == ("year", "week", "day")
    assert find_cycles(np.arange(0, 5) * day) == ()
    around = cycle_points(np.array([0.0, 7 * day, 3.5 * day]), "week")
    assert around[0] == pytest.approx(around[1])
    assert around[0] == pytest.approx(-around[2])
