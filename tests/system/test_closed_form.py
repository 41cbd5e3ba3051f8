"""The labelled block of the inverse equals the dense one, by Lanczos where that converges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.system import LabeledSystem, closed_form


def system(n: int = 60, *, seed: int = 0, heavy: float = 1.0) -> LabeledSystem:
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < 0.15) * rng.random((n, n)), 1)
    W[0, 1] = heavy
    W = sp.csr_array(W + W.T)
    labeled = np.array([0, 7, 20, 33])
    return LabeledSystem(W, np.asarray(W.sum(axis=1)).ravel(), labeled, np.ones((4, 1)))


def dense_block(given: LabeledSystem, shift: float) -> np.ndarray:
    L = np.diag(given.diagonal) - given.adjacency.toarray()
    inverse = np.linalg.inv(L + shift * np.eye(L.shape[0]))
    return inverse[np.ix_(given.labeled, given.labeled)]


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_graphs_need_no_solve_per_label(monkeypatch, seed):
    def refused(*_):
        raise AssertionError("solved column by column")

    monkeypatch.setattr(closed_form, "_by_columns", refused)
    given = system(seed=seed)
    shifts = [0.01 * given.unit, given.unit, 30 * given.unit]
    for shift, block in zip(shifts, closed_form.labeled_blocks(given, shifts), strict=True):
        np.testing.assert_allclose(block, dense_block(given, shift), rtol=1e-4, atol=1e-9)
        np.testing.assert_array_equal(block, block.T)


@pytest.mark.parametrize(("heavy", "shift"), [(1e9, 1.0), (1.0, 1e-8)])
def test_extreme_rows_and_shifts_are_solved_column_by_column(heavy, shift):
    given = system(heavy=heavy)
    (block,) = closed_form.labeled_blocks(given, [shift])
    np.testing.assert_allclose(block, dense_block(given, shift), rtol=1e-4)
