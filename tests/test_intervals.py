"""The interval of a share, against the binomial distribution itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from gdpa.intervals import share_interval


@pytest.mark.parametrize(("right", "n"), [(0, 4), (1, 4), (9, 10), (10, 10), (37, 60), (999, 1000)])
def test_the_ends_leave_half_of_the_rest_on_each_side(right, n):
    low, high = share_interval(right, n)
    assert low <= right / n <= high
    tied = 0.5 * binom.pmf(right, n, [low, high])
    if right:
        assert binom.sf(right, n, low) + tied[0] == pytest.approx(0.05, abs=1e-9)
    else:
        assert low == 0.0
    if right < n:
        assert binom.cdf(right - 1, n, high) + tied[1] == pytest.approx(0.05, abs=1e-9)
    else:
        assert high == 1.0


def test_it_is_symmetric_and_grows_with_the_level():
    low, high = share_interval(3, 12)
    assert (1.0 - high, 1.0 - low) == pytest.approx(share_interval(9, 12), abs=1e-12)
    wider = share_interval(3, 12, 0.99)
    assert wider[0] < low < high < wider[1]


@pytest.mark.parametrize("n", [4, 10, 20, 50])
def test_it_holds_the_truth_about_as_often_as_it_says(n):
    shares = np.linspace(0.3, 0.99, 139)
    ends = np.array([share_interval(k, n) for k in range(n + 1)])
    inside = (ends[:, :1] <= shares) & (shares <= ends[:, 1:])
    held = (binom.pmf(np.arange(n + 1)[:, None], n, shares) * inside).sum(axis=0)
    assert 0.88 < held.mean() < 0.96
    assert held.min() > 0.8


@pytest.mark.parametrize(("right", "n"), [(-1, 4), (5, 4), (0, 0)])
def test_impossible_counts_are_named(right, n):
    with pytest.raises(ValueError, match=f"right={right} of n={n}"):
        share_interval(right, n)
