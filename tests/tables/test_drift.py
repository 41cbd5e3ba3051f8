"""New rows unlike those of the fit are counted and named."""

from __future__ import annotations

import numpy as np

from gdpa.tables import TableEncoder, table_of
from gdpa.tables.drift import find_drift


def rows(rng, n, shift=0.0):
    return {
        "v": (rng.normal(size=n) + shift).tolist(),
        "w": rng.exponential(size=n).tolist(),
        "kind": rng.choice(["a", "b", "c"], n).tolist(),
        "size": rng.choice(["low", "medium", "high"], n).tolist(),
    }


def test_rows_of_the_same_kind_have_no_drift():
    rng = np.random.default_rng(0)
    encoder = TableEncoder().fit(rows(rng, 400))
    for seed in range(20):
        same = table_of(rows(np.random.default_rng(seed + 1), 200))
        found = find_drift(encoder.columns_, same, 400)
        assert not [note for note in found.notes if "mean" in note or "missing" in note]
        assert found.unlike.mean() < 0.05
    few = table_of(rows(rng, 3))
    assert not [n for n in find_drift(encoder.columns_, few, 400).notes if "mean" in n]


def test_what_has_changed_is_named():
    rng = np.random.default_rng(0)
    encoder = TableEncoder().fit(rows(rng, 400))
    new = rows(rng, 100, shift=2.0)
    new["kind"][7] = "d"
    new["size"][8] = "gigantic"
    new["w"][9] = 1e6
    new["w"][10:40] = [None] * 30
    new["more"] = ["x"] * 100
    found = find_drift(encoder.columns_, table_of(new), 400)
    words = "\n".join(found.notes)
    assert "column 'v': the mean is 2." in words
    assert "standard deviations higher than in the fit" in words
    assert "column 'w': 30 % of the cells are missing, 0 % in the fit" in words
    assert "column 'kind': 1 cells are unlike those of the fit, first row 8: 'd'" in words
    assert "column 'size': 1 cells are unlike those of the fit, first row 9: 'gigantic'" in words
    assert "columns that the fit has not seen are ignored: 'more'" in words
    assert {7, 8, 9} <= set(np.flatnonzero(found.unlike).tolist())
