"""The labelled block of the inverse equals the dense one, by Lanczos where that converges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.policy import Policy
from gdpa.system import LabeledSystem, closed_form
from tests.system.small_systems import system as small_system


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


def block(given: LabeledSystem, shift: float) -> np.ndarray:
    L = np.diag(given.diagonal) - given.adjacency.toarray()
    return np.linalg.inv(L + shift * np.eye(L.shape[0]))[np.ix_(given.labeled, given.labeled)]


@pytest.mark.parametrize("weight", [np.inf, 0.5, 30.0])
@pytest.mark.parametrize("columns", [1, 3])
def test_leave_one_out_scores_are_those_of_the_formula(weight, columns):
    given = small_system(columns=columns)
    K = block(given, 0.3)
    C = np.linalg.inv(K + (0.0 if np.isinf(weight) else 1 / weight) * np.eye(5))
    expected = given.targets - (C @ given.targets) / np.diagonal(C)[:, None]
    ((found, scores),) = closed_form.left_out_by_one(K, given.targets, [weight])
    assert found == weight
    np.testing.assert_allclose(scores, expected, atol=1e-11)


def test_a_singular_block_has_finite_scores():
    """Two labels on one node: each predicts the other exactly."""
    K = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    Y = np.array([[1.0], [3.0], [5.0]])
    ((_, scores),) = closed_form.left_out_by_one(K, Y, [np.inf])
    np.testing.assert_allclose(scores, [[3.0], [1.0], [0.0]], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["ordinary", "tiny", "dependent", "uneven", "zero", "part"])
def test_orthonormal_factors_of_a_block(dtype, kind):
    Z = np.random.default_rng(0).standard_normal((30, 4))
    ranks = {"dependent": 2, "zero": 0, "part": 3}
    if kind == "tiny":
        Z *= 1e-3
    elif kind == "dependent":
        Z[:, 2], Z[:, 3] = Z[:, 0] - Z[:, 1], 3 * Z[:, 1]
    elif kind == "uneven":
        Z[:, 1] = Z[:, 0] + 1e-3 * Z[:, 1]
    elif kind == "zero":
        Z[:] = 0.0
    elif kind == "part":
        Z[:, 1] = 0.0
    Q, R = closed_form._orthonormal(Z.astype(dtype))
    assert Q.dtype == dtype
    assert Q.shape == (30, ranks.get(kind, 4))
    assert R.shape == (ranks.get(kind, 4), 4)
    error = 1e-9 if dtype == np.float64 else 3e-3
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=error)
    np.testing.assert_allclose(Q @ R, Z, atol=1e-10 if dtype == np.float64 else 3e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("single", [False, True])
def test_every_shift_has_its_own_block(seed, single):
    policy = Policy(single_block=0 if single else 10**9)
    given = small_system(60, 6, seed=seed, policy=policy)
    shifts = [given.unit * s for s in (0.005, 0.3, 2.0)]
    found = closed_form.labeled_blocks(given, shifts)
    assert len(found) == 3
    for K, s in zip(found, shifts, strict=True):
        exact = block(given, s)
        # Corrections below 1e-6 of the sum are left out; single precision adds its own error.
        error = 2e-5 if single else 3e-6
        np.testing.assert_allclose(K, exact, rtol=0, atol=error * np.abs(exact).max())


def test_the_space_may_be_exhausted_first():
    """Three nodes with two labels: the second step has one column, the third none."""
    W = sp.csr_array(np.array([[0, 1.0, 0.5], [1.0, 0, 0.2], [0.5, 0.2, 0]]))
    given = LabeledSystem(W, np.asarray(W.sum(axis=1)), np.array([0, 2]), np.ones((2, 1)))
    for s in (0.01, 1.0):
        (K,) = closed_form.labeled_blocks(given, [s])
        np.testing.assert_allclose(K, block(given, s), rtol=1e-9)


def test_one_elimination_step_is_a_schur_complement():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    T = A @ A.T + np.eye(4)
    recursion = closed_form._Recursion(0.5, 2)
    recursion.add(T[:2, :2], None)
    np.testing.assert_allclose(recursion.sum, np.linalg.inv(T[:2, :2] + 0.5 * np.eye(2)))
    assert not recursion.failed
    recursion.add(T[2:, 2:], T[2:, :2])
    whole = np.linalg.inv(T + 0.5 * np.eye(4))[:2, :2]
    np.testing.assert_allclose(recursion.sum, whole)
    assert not recursion.done
    recursion.add(1e9 * np.eye(2), 1e-3 * np.eye(2))  # adds next to nothing
    assert recursion.done
    recursion.add(-np.eye(2), np.zeros((2, 2)))
    assert recursion.failed


@pytest.mark.parametrize("shift", [0.01, 2.0])
def test_columns_are_solved_accurately(shift):
    given = small_system(label_weight=3.0, self_loop=7.0)
    K = closed_form._by_columns(given, shift)
    exact = block(given, shift)
    np.testing.assert_allclose(K, exact, atol=1e-6 * np.abs(exact).max())
    large = replace(small_system(60), policy=Policy(dense_below=0))  # by iteration
    K = closed_form._by_columns(large, shift)
    exact = block(large, shift)
    np.testing.assert_allclose(K, exact, atol=1e-5 * np.abs(exact).max())
