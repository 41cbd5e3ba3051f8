"""A table with every kind of column."""

from __future__ import annotations

import numpy as np
import pytest

N = 300


def mixed_rows(n=N, seed=0):
    """A table with every kind of column."""
    rng = np.random.default_rng(seed)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"])
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    number = rng.normal(size=n)
    number[3] = np.nan
    colour = rng.choice(["red", "green", "blue"], n).astype(object)
    colour[5] = None
    return {
        "id": np.arange(n),
        "number": number,
        "whole": rng.integers(0, 9, n),
        "colour": colour,
        "size": rng.choice(["low", "medium", "high"], n),
        "flag": rng.random(n) < 0.3,
        "when": days.astype("datetime64[us]"),
        "note": [" ".join(rng.choice(words, 5)) for _ in range(n)],
        "same": np.ones(n),
        "price": [f"\u20ac {v:,.2f}" for v in rng.random(n) * 1e4],
        "code": [f"A-{i:05d}" for i in rng.permutation(n)],
        "customer_id": rng.integers(0, 10**9, n),
    }


@pytest.fixture
def mixed():
    """Every kind of column, as a mapping."""
    return mixed_rows()


@pytest.fixture(scope="session")
def make_mixed():
    """What makes such tables."""
    return mixed_rows
