"""Charts: bars and ticks."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.report.charts import _ticks, histogram


def test_bars_add_up_to_the_number_of_values():
    values = np.array([0.0, 0.1, 0.5, 0.9, 1.0, 1.0])
    chart = histogram(values, np.linspace(0, 1, 5), axis="x", threshold=0.5)
    assert sum(bar["count"] for bar in chart["bars"]) == values.size
    assert [bar["hatched"] for bar in chart["bars"]] == [True, True, False, False]
    tallest = max(chart["bars"], key=lambda bar: bar["height"])
    assert tallest["x"] == pytest.approx(
        chart["left"] + 0.75 * (chart["right"] - chart["left"]), abs=1
    )


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.5, 1), (9.5, 38.5), (0, 434), (3, 3)])
def test_ticks_are_inside_and_even(low, high):
    ticks = _ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(low - 1e-9 <= t <= high + 1e-9 for t in ticks)
    assert np.allclose(np.diff(ticks, 2), 0)


def test_no_axis_says_minus_zero():
    for low, high in ((-0.03, 5.0), (-1.0, 1.0), (-0.4, 0.1)):
        assert "-0" not in [f"{tick:.4g}" for tick in _ticks(low, high)]
