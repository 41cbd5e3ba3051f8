"""SPD solve against LAPACK: many columns, extreme weights, singular systems, honest residuals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gdpa.errors import ConvergenceWarning
from gdpa.linalg import solve_spd
from gdpa.linalg.two_level import patches


def system(n: int, seed: int, columns: int, self_loop: float = 0.01):
    rng = np.random.default_rng(seed)
    W = sp.random_array((n, n), density=min(1.0, 6 / n), rng=rng)
    W = W + W.T
    A = sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)) + self_loop) - W)
    return A, rng.standard_normal((n, columns))


def grid(side: int, fixed: int, seed: int = 0):
    """Laplacian of a square grid with a few nodes held: slow for Jacobi."""
    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))
    W = sp.csr_array(sp.kron(path, sp.eye_array(side)) + sp.kron(sp.eye_array(side), path))
    rng = np.random.default_rng(seed)
    n = side * side
    held = np.zeros(n, dtype=bool)
    held[rng.choice(n, fixed, replace=False)] = True
    values = rng.choice([-1.0, 1.0], fixed)
    L = sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1))) - W)
    return sp.csr_array(L[~held][:, ~held]), W[~held][:, held] @ values


@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 10**6),
    columns=st.integers(1, 4),
    dense_below=st.sampled_from([0, 500]),
)
def test_agrees_with_lapack(n, seed, columns, dense_below):
    A, B = system(n, seed, columns)
    result = solve_spd(A, B, tol=1e-10, dense_below=dense_below)
    expected = np.linalg.solve(A.toarray(), B)
    assert result.converged
    assert result.method == ("cg" if dense_below == 0 else "dense-cholesky")
    condition = np.linalg.cond(A.toarray())
    assert np.abs(result.x - expected).max() <= 1e-9 * condition * np.abs(expected).max()


@pytest.mark.parametrize("preconditioner", [None, "jacobi", "two-level", "auto", "own"])
def test_residual_is_what_it_says(preconditioner):
    A, b = grid(60, 36)
    d = A.diagonal()
    M = (lambda R: R / d[:, None]) if preconditioner == "own" else preconditioner
    result = solve_spd(A, b, tol=1e-7, preconditioner=M)
    S = 1 / np.sqrt(d)
    true = np.linalg.norm(S * (b - A @ result.x)) / np.linalg.norm(S * b)
    assert result.x.shape == b.shape
    assert result.converged
    assert result.method == "cg"
    assert result.residual == pytest.approx(true, rel=1e-6)
    assert true <= 1e-7


def test_coarse_correction_saves_iterations():
    A, b = grid(150, 20)
    jacobi = solve_spd(A, b, tol=1e-6, preconditioner="jacobi")
    coarse = solve_spd(A, b, tol=1e-6, preconditioner="two-level")
    auto = solve_spd(A, b, tol=1e-6)
    assert coarse.iterations <= 0.5 * jacobi.iterations
    assert auto.iterations == coarse.iterations
    # The maximum principle: harmonic values lie between the held ones.
    assert np.abs(coarse.x).max() <= 1 + 1e-4


def test_auto_stays_with_jacobi_where_that_is_fast():
    A, B = system(3000, 0, 1, self_loop=20.0)
    assert solve_spd(A, B).iterations == solve_spd(A, B, preconditioner="jacobi").iterations


def test_many_columns_equal_separate_solves():
    A, B = system(1500, 1, 5)
    B[:, 2] = 0.0
    B[:, 3] *= 1e200
    B[:, 4] *= 1e-200
    together = solve_spd(A, B, tol=1e-9)
    assert together.converged
    np.testing.assert_array_equal(together.x[:, 2], 0.0)
    for j in range(5):
        alone = solve_spd(A, B[:, j], tol=1e-9)
        size = np.abs(alone.x).max()
        np.testing.assert_allclose(together.x[:, j], alone.x, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("n", [50, 900])
@pytest.mark.parametrize("preconditioner", ["jacobi", "two-level", "auto"])
def test_extreme_weights(n, preconditioner):
    A, B = system(n, 2, 2)
    x = np.linalg.solve(A.toarray(), B)
    for factor in (1e-300, 1e300):
        result = solve_spd(A * factor, B, tol=1e-10, preconditioner=preconditioner)
        assert result.converged
        with np.errstate(over="ignore"):
            expected = x / factor
        np.testing.assert_allclose(result.x, expected, rtol=1e-6, atol=1e-8 * abs(expected).max())
    # All scales in one matrix: D A D y = D b has the solution y = D^-1 x.
    d = np.logspace(-140, 140, n)
    D = sp.diags_array(d)
    result = solve_spd(sp.csr_array(D @ A @ D), d[:, None] * B, tol=1e-10)
    assert result.converged
    np.testing.assert_allclose(result.x * d[:, None], x, rtol=0, atol=1e-6 * np.abs(x).max())


@pytest.mark.parametrize("dense_below", [0, 1000])
def test_singular_consistent(dense_below):
    A, B = system(300, 3, 2, self_loop=0.0)
    B = A @ B  # in the range
    result = solve_spd(A, B, tol=1e-8, dense_below=dense_below)
    assert result.converged
    assert np.isfinite(result.x).all()
    np.testing.assert_allclose(A @ result.x, B, atol=1e-6 * np.abs(B).max())


@pytest.mark.parametrize("dense_below", [0, 1000])
def test_singular_inconsistent_is_reported(dense_below):
    A, B = system(300, 3, 1, self_loop=0.0)
    with pytest.warns(ConvergenceWarning):
        result = solve_spd(A, np.abs(B), dense_below=dense_below)
    assert not result.converged
    assert np.isfinite(result.x).all()


@pytest.mark.parametrize("dense_below", [0, 1000])
def test_zero_rows(dense_below):
    A = sp.csr_array(sp.diags_array([2.0, 0.0, 4.0]))
    result = solve_spd(A, [1.0, 0.0, 1.0], dense_below=dense_below)
    assert result.converged
    np.testing.assert_allclose(result.x, [0.5, 0.0, 0.25])
    with pytest.warns(ConvergenceWarning):
        assert not solve_spd(A, [1.0, 1.0, 1.0], dense_below=dense_below).converged


def test_warm_start():
    A, B = system(1500, 4, 2)
    cold = solve_spd(A, B, tol=1e-8)
    same = solve_spd(A, B, tol=1e-7, x0=cold.x)
    assert same.iterations == 0
    near = solve_spd(A, B, tol=1e-8, x0=cold.x * (1 + 1e-4))
    assert near.iterations < cold.iterations
    far = solve_spd(A, B, tol=1e-8, x0=np.full_like(B, 1e250))  # worse than zero: not used
    assert far.converged


def test_no_convergence_is_reported():
    A, b = grid(60, 4)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        result = solve_spd(A, b, tol=1e-10, max_iter=3)
    assert not result.converged
    assert result.iterations == 3
    assert result.residual > 1e-10


def test_callback_stops():
    A, b = grid(60, 4)
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = solve_spd(A, b, tol=1e-10, callback=lambda e: e["iteration"] == 2)
    assert result.iterations == 2


def test_storage_does_not_matter():
    A, B = system(600, 5, 2)
    expected = solve_spd(A, B, tol=1e-10).x
    for other in (A.toarray(), sp.coo_array(A)):
        np.testing.assert_allclose(solve_spd(other, B, tol=1e-10).x, expected, atol=1e-6)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-5])
@pytest.mark.parametrize("preconditioner", ["jacobi", "two-level"])
def test_single_precision_is_checked_in_double(tol, preconditioner):
    A, b = grid(80, 8)  # condition number about 1e4
    result = solve_spd(A, b, tol=tol, preconditioner=preconditioner)
    S = 1 / np.sqrt(A.diagonal())
    true = np.linalg.norm(S * (b - A @ result.x)) / np.linalg.norm(S * b)
    assert result.converged
    assert true <= tol
    assert result.residual == pytest.approx(true, rel=1e-6)
    # As many products as iterations, whatever the precision, and at least one to check.
    assert result.matvecs > result.iterations


def test_single_precision_gives_up_to_double():
    # Out of reach for 24 bits: the smallest eigenvalue of a path is about (pi / n)^2 / 2.
    n = 4000
    A = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    b = np.zeros(n)
    b[0] = 1.0
    result = solve_spd(A, b, tol=1e-5, preconditioner="jacobi", max_iter=40_000)
    assert result.converged
    residual = np.linalg.norm(b - A @ result.x) / np.linalg.norm(b)
    assert residual == pytest.approx(result.residual, rel=1e-3)
    np.testing.assert_allclose(result.x, 1 - np.arange(1, n + 1) / (n + 1), atol=0.05)


def test_patches_are_the_nearest_seeds():
    A, _ = grid(20, 1)
    patch = patches(A, 7)
    assert set(patch) == set(range(7))
    # Each patch is connected: breadth-first neighbourhoods are.
    for k in range(7):
        inside = np.flatnonzero(patch == k)
        count, _ = sp.csgraph.connected_components(A[inside][:, inside])
        assert count == 1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"A": np.ones((2, 3))}, "square"),
        ({"A": np.array([[1.0, np.inf], [np.inf, 1.0]])}, "finite"),
        ({"A": np.array([[1.0, 2.0], [0.0, 1.0]])}, "symmetric"),
        ({"A": -np.eye(2)}, "positive semi-definite"),
        ({"B": np.ones(3)}, "B must have shape"),
        ({"B": np.array([1.0, np.nan])}, "B must be finite"),
        ({"x0": np.ones((2, 2))}, "x0"),
        ({"tol": -1}, "tol=-1"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"preconditioner": "two-levels", "dense_below": 0}, "did you mean 'two-level'"),
        ({"preconditioner": [], "dense_below": 0}, "preconditioner="),
    ],
)
def test_bad_input(arguments, match):
    with pytest.raises(ValueError, match=match):
        solve_spd(**({"A": np.eye(2), "B": np.ones(2)} | arguments))


@pytest.mark.parametrize("wrong", [np.eye(30), sp.eye_array(30), 3, "nope"])
def test_a_preconditioner_of_another_type_is_refused(wrong):
    A, B = system(30, 0, 1)
    with pytest.raises(ValueError, match="preconditioner="):
        solve_spd(A, B, preconditioner=wrong, dense_below=0)
