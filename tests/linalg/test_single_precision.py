"""Single precision column by column: double precision judges, and takes over where it must."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.errors import ConvergenceWarning
from gdpa.linalg import Matrix, spd
from gdpa.policy import Policy

SINGLE = Policy(single_rows=0)


def solve_spd(*args, policy=SINGLE, **options):
    return spd.solve_spd(*args, policy=policy, **options)


@pytest.fixture
def rounds(monkeypatch):
    """The number of columns that begin in single precision, round by round."""
    seen = []
    begin = spd.Column.__init__

    def counted(self, number, x, r, *rest):
        begin(self, number, x, r, *rest)
        if r.dtype == np.float32:
            seen.append(number)

    monkeypatch.setattr(spd.Column, "__init__", counted)
    return seen


def grid_system(k: int = 3) -> tuple[sp.csr_array, np.ndarray]:
    n = 900
    A = sp.diags_array(
        [-1.0, -0.5, 3.02, -0.5, -1.0], offsets=[-30, -1, 0, 1, 30], shape=(n, n)
    ).tocsr()
    return sp.csr_array(A), np.random.default_rng(0).normal(size=(n, k))


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-11])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_refinement_reaches_what_double_precision_does(rounds, tol, k):
    A, B = grid_system(k)
    found = solve_spd(A, B, tol=tol, preconditioner="jacobi")
    assert found.converged
    assert rounds[:k] == list(range(k))
    residual = np.linalg.norm(B - A @ found.x, axis=0) / np.linalg.norm(B, axis=0)
    assert residual.max() <= tol  # a constant diagonal: the norm of the solver
    assert residual.max() == pytest.approx(found.residual, rel=1e-3)
    # A round stops at the limit of single precision, and needs no more rounds than that costs.
    assert len(rounds) <= k * (2 + np.log(tol) / np.log(spd.SINGLE_REDUCTION))


def test_rounds_cost_few_more_steps_than_one_run(rounds):
    A, B = grid_system(2)
    mixed = solve_spd(A, B, tol=1e-9, preconditioner="jacobi")
    assert rounds
    double = solve_spd(A, B, tol=1e-9, preconditioner="jacobi", policy=Policy(single_rows=10**9))
    assert mixed.iterations <= 1.5 * double.iterations
    np.testing.assert_allclose(mixed.x, double.x, atol=1e-7)


def test_products_are_counted_once_per_column():
    A, B = grid_system(2)
    found = solve_spd(A, B, tol=1e-3, preconditioner="jacobi")
    # One step is a product per open column; one more each to check the end.
    assert found.iterations + 3 <= found.matvecs <= 2 * found.iterations + 4


def test_columns_of_zeros_and_of_other_sizes_are_columns():
    A, B = grid_system(3)
    B[:, 1] = 0.0
    B[:, 2] *= 1e40
    found = solve_spd(A, B, tol=1e-8, preconditioner="jacobi")
    assert found.converged
    assert not found.x[:, 1].any()
    alone = solve_spd(A, B[:, 0], tol=1e-8, preconditioner="jacobi")
    np.testing.assert_allclose(found.x[:, 0], alone.x, atol=1e-6)
    exact = np.linalg.solve(A.toarray(), B[:, 2])
    np.testing.assert_allclose(found.x[:, 2], exact, atol=1e-6 * np.abs(exact).max())


def test_a_start_is_used():
    A, B = grid_system(2)
    first = solve_spd(A, B, tol=1e-9, preconditioner="jacobi")
    again = solve_spd(A, B, tol=1e-7, x0=first.x, preconditioner="jacobi")
    assert again.iterations == 0
    half = np.column_stack([first.x[:, 0], np.zeros(900)])
    other = solve_spd(A, B, tol=1e-7, x0=half, preconditioner="jacobi")
    np.testing.assert_allclose(other.x, first.x, atol=1e-5)
    # The first column is there already: products are spent on the second.
    assert other.matvecs <= other.iterations + 8


def test_the_callback_sees_each_iteration_and_stops():
    A, B = grid_system(3)
    seen = []
    found = solve_spd(A, B, tol=1e-8, preconditioner="jacobi", callback=seen.append)
    assert [entry["iteration"] for entry in seen] == list(range(1, found.iterations + 1))
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = solve_spd(
            A, B, tol=1e-8, preconditioner="jacobi", callback=lambda e: e["iteration"] == 4
        )
    assert stopped.iterations == 4
    assert not stopped.converged
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        short = solve_spd(A, B, tol=1e-8, preconditioner="jacobi", max_iter=3)
    assert short.iterations == 3
    assert 0 < short.residual < 1


def test_what_single_precision_cannot_do_is_left_to_double(rounds):
    n = 3000  # smallest eigenvalue of a path: about (pi / n)^2 / 2
    A = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    B = np.zeros((n, 2))
    B[0, 0] = B[-1, 1] = 1.0
    found = solve_spd(A, B, tol=1e-9, preconditioner="jacobi", max_iter=60_000)
    assert rounds
    assert found.converged
    line = 1 - np.arange(1, n + 1) / (n + 1)
    np.testing.assert_allclose(found.x, np.column_stack([line, line[::-1]]), atol=1e-4)


def test_an_indefinite_matrix_is_reported():
    A = sp.csr_array(sp.diags_array([-2.0, 1.0, -2.0], offsets=[-1, 0, 1], shape=(600, 600)))
    B = np.random.default_rng(0).normal(size=(600, 2))
    with pytest.warns(ConvergenceWarning):
        found = solve_spd(A, B, tol=1e-8, preconditioner="jacobi")
    assert not found.converged
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_threads_change_no_digit(columns):
    A, B = grid_system(columns)
    matrix = Matrix(A, policy=Policy(thread_nnz=0))
    one = solve_spd(matrix, B, tol=1e-7, preconditioner="jacobi", n_jobs=1)
    for n_jobs in (2, 3):
        found = solve_spd(matrix, B, tol=1e-7, preconditioner="jacobi", n_jobs=n_jobs)
        np.testing.assert_array_equal(found.x, one.x)
        assert found.matvecs == one.matvecs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gdpa.errors.ConvergenceWarning")
def test_rounds_together_make_no_more_iterations_than_allowed():
    A, B = grid_system(2)
    needed = solve_spd(A, B, tol=1e-9, preconditioner="jacobi").iterations
    for most in range(1, needed):
        found = solve_spd(A, B, tol=1e-9, preconditioner="jacobi", max_iter=most)
        assert found.iterations <= most
