"""First eigenvector against LAPACK, on degenerate matrices, and how much a warm start saves."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg
from scipy.spatial import cKDTree

from gdpa.errors import ConvergenceWarning
from gdpa.linalg import first_eigenvector
from gdpa.linalg.operator import (
    EPS,
    Matrix,
)
from gdpa.linalg.preconditioners import Counted
from tests.linalg.small_matrices import laplacian, path


def random_symmetric(n: int, seed: int, shift: float = 0.0) -> sp.csr_array:
    """Generalised Laplacian of a random signed graph: indefinite in general."""
    rng = np.random.default_rng(seed)
    W = sp.random_array((n, n), density=min(1.0, 5 / n), rng=rng, data_sampler=rng.standard_normal)
    W = W + W.T
    return sp.csr_array(
        sp.diags_array(np.asarray(abs(W).sum(axis=1)) + shift * rng.standard_normal(n)) - W
    )


def neighbour_laplacian(n: int, dimension: int, labels: int, seed: int = 0) -> sp.csr_array:
    """Combinatorial Laplacian of a 10-nearest-neighbour graph, plus one on some nodes."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, dimension))
    distance, index = cKDTree(X).query(X, 11)
    weight = np.exp(-(distance[:, 1:] ** 2) / (distance[:, 7:8] * distance[index[:, 1:], 7]))
    W = sp.csr_array(
        (weight.ravel(), (np.repeat(np.arange(n), 10), index[:, 1:].ravel())), shape=(n, n)
    )
    W = W.maximum(W.T)
    y = np.zeros(n)
    y[rng.choice(n, labels, replace=False)] = 1.0
    return sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)) + y) - W)


def check(A, result, tol: float = 1e-8) -> None:
    dense = A.toarray() if sp.issparse(A) else np.asarray(A)
    v, norm = result.vector, np.abs(dense).sum(axis=1).max()
    residual = np.linalg.norm(dense @ v - result.value * v)
    assert np.isfinite(v).all()
    assert np.linalg.norm(v) == pytest.approx(1.0, abs=1e-12)
    assert result.converged
    assert residual <= 1.01 * tol * norm + 1e-14 * norm
    assert result.residual == pytest.approx(residual, rel=1e-3, abs=1e-13 * norm)
    # Rayleigh quotients lie above the first eigenvalue, by no more than the residual here.
    first = np.linalg.eigvalsh(dense)[0]
    assert first - 1e-12 * norm <= result.value <= first + residual + 1e-12 * norm


@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 10**6),
    shift=st.sampled_from([0.0, 1.0, 5.0]),
    preconditioner=st.sampled_from([None, "jacobi", "auto", "two-level"]),
    dense_below=st.sampled_from([0, 300]),
)
def test_agrees_with_lapack(n, seed, shift, preconditioner, dense_below):
    A = random_symmetric(n, seed, shift)
    result = first_eigenvector(A, preconditioner=preconditioner, dense_below=dense_below)
    check(A, result)


@pytest.mark.parametrize("preconditioner", [None, "jacobi", "auto", "two-level", "own"])
def test_iteration_agrees_with_lapack(preconditioner):
    A = random_symmetric(700, 3, 1.0)
    d = np.abs(A.diagonal()) + 1.0
    M = (lambda r: r / d) if preconditioner == "own" else preconditioner
    result = first_eigenvector(A, preconditioner=M)
    assert result.method == "lobpcg"
    assert result.iterations > 0
    check(A, result)


def test_storage_does_not_matter():
    A = random_symmetric(500, 1, 1.0)
    expected = first_eigenvector(A)
    result = first_eigenvector(A.toarray())
    assert result.converged
    assert result.value == pytest.approx(expected.value, abs=1e-10)
    assert abs(result.vector @ expected.vector) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("dense_below", [0, 300])
@pytest.mark.parametrize(
    "A",
    [
        np.array([[3.0]]),
        np.array([[0.0]]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.zeros((40, 40)),
        np.eye(40),
        -np.eye(40),
        np.diag(np.arange(40.0)),
        np.diag(np.r_[0.0, 0.0, np.arange(1.0, 39.0)]),
        np.kron(np.eye(20), [[1.0, -1.0], [-1.0, 1.0]]),  # 20 components, lmin = 0 repeated
        np.ones((40, 40)),
        -np.ones((40, 40)),
        np.eye(40) * 40 - np.ones((40, 40)),
        np.ones((40, 40)) - np.eye(40) * 40,  # the constant vector is the last, not the first
    ],
)
def test_degenerate(A, dense_below):
    result = first_eigenvector(A, dense_below=dense_below)
    check(A, result)
    again = first_eigenvector(A, dense_below=dense_below)
    np.testing.assert_array_equal(result.vector, again.vector)


def test_components_of_a_large_graph():
    path = sp.diags_array([-np.ones(299), -np.ones(299)], offsets=[-1, 1]).toarray()
    L = np.diag(-path.sum(axis=1)) + path
    A = sp.csr_array(sp.block_diag([L] * 4))
    result = first_eigenvector(A)
    assert result.converged
    assert result.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("n", [30, 600])
def test_extreme_entries(factor, n):
    A = random_symmetric(n, 5, 1.0)
    plain = first_eigenvector(A)
    result = first_eigenvector(A * factor)
    assert result.converged
    assert result.value == pytest.approx(plain.value * factor, rel=1e-8)
    np.testing.assert_allclose(result.vector, plain.vector, atol=1e-6)


def test_sign_is_fixed():
    A = random_symmetric(500, 2, 1.0)
    v = first_eigenvector(A).vector
    flipped = first_eigenvector(A, v0=-v).vector
    np.testing.assert_allclose(flipped, v, atol=1e-12)


def test_start_that_is_good_enough_costs_one_product():
    A = random_symmetric(500, 2, 1.0)
    first = first_eigenvector(A)
    again = first_eigenvector(A, v0=first.vector)
    assert (again.iterations, again.matvecs, again.method) == (0, 1, "start")
    assert again.converged


def test_warm_start_halves_the_iterations_at_20000_nodes():
    A = neighbour_laplacian(20_000, 8, 200)
    cold = first_eigenvector(A, tol=1e-7)
    assert cold.converged
    rng = np.random.default_rng(1)
    change = 1e-4 * rng.standard_normal(A.shape[0])
    B = sp.csr_array(A + sp.diags_array(change))
    cold_again = first_eigenvector(B, tol=1e-7)
    warm = first_eigenvector(B, v0=cold.vector, tol=1e-7)
    assert warm.converged
    assert warm.iterations <= 0.5 * cold_again.iterations
    assert abs(warm.vector @ cold_again.vector) == pytest.approx(1.0, abs=1e-6)


def test_coarse_correction_saves_iterations_on_a_planar_graph():
    A = neighbour_laplacian(20_000, 2, 200)
    jacobi = first_eigenvector(A, preconditioner="jacobi", tol=1e-6, max_iter=1000)
    both = first_eigenvector(A, preconditioner="auto", tol=1e-6)
    assert jacobi.converged
    assert both.converged
    assert both.method == "lobpcg"
    assert both.iterations <= 0.5 * jacobi.iterations
    assert both.value == pytest.approx(jacobi.value, rel=1e-6)


@pytest.mark.parametrize("n", [400, 6000])
def test_stall_is_taken_over(n):
    # A path has its smallest eigenvalues at distances of 1/n^2: LOBPCG is not done in 5 steps.
    A = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    result = first_eigenvector(A, max_iter=5)
    assert result.method in ("shift-invert", "eigsh")
    assert result.converged
    exact = 2 - 2 * np.cos(np.pi / (n + 1))
    assert result.value == pytest.approx(exact, abs=1e-12)
    mode = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    assert abs(result.vector @ mode) / np.linalg.norm(mode) == pytest.approx(1.0, abs=1e-6)


def test_no_convergence_is_reported():
    n = 20_000
    A = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        result = first_eigenvector(A, max_iter=3, tol=1e-14, callback=lambda e: e["iteration"] == 2)
    assert not result.converged
    assert result.iterations == 2
    assert np.isfinite(result.vector).all()


def test_callback_sees_falling_values():
    values: list[float] = []
    first_eigenvector(random_symmetric(600, 4, 1.0), callback=lambda e: values.append(e["value"]))
    assert len(values) > 3
    assert all(b <= a + 1e-10 for a, b in pairwise(values))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"A": np.ones((2, 3))}, "square"),
        ({"A": np.zeros((0, 0))}, "at least one row"),
        ({"A": np.array([[1.0, np.nan], [np.nan, 1.0]])}, "finite"),
        ({"A": np.array([[1.0, 2.0], [0.0, 1.0]])}, "symmetric"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"v0": np.zeros(3)}, "v0"),
        ({"v0": np.ones(2)}, "v0"),
        ({"preconditioner": "jacob", "dense_below": 0, "A": np.eye(9)}, "did you mean 'jacobi'"),
        ({"preconditioner": 3, "dense_below": 0, "A": np.eye(9)}, "preconditioner=3"),
    ],
)
def test_bad_input(arguments, match):
    with pytest.raises(ValueError, match=match):
        first_eigenvector(**({"A": np.eye(3)} | arguments))


def test_entries_over_hundreds_of_decades():
    P = np.zeros((5, 5))
    P[0, 1], P[0, 2], P[0, 3], P[0, 4] = -5.6e96, -4.4e15, 3.4e-106, -4.5e-133
    P[1, 2], P[1, 3], P[1, 4], P[2, 3], P[2, 4] = 1.6e-86, 1.9e-61, -2.6e-96, 1.3e-72, -2.1e-38
    result = first_eigenvector(-(P + P.T), tol=1e-8)
    assert result.converged
    assert result.value == pytest.approx(-5.6e96, rel=1e-12)
    assert np.linalg.norm(result.vector) == pytest.approx(1.0)


@pytest.mark.parametrize("weight", [1.0, 1e4, 1e6, 1e8])
def test_a_heavy_row_does_not_loosen_the_tolerance(weight):
    """The apex of a graph with heavy labels has a row sum far above that of every other node."""
    rng = np.random.default_rng(0)
    n = 600
    position = np.sort(rng.random(n))
    near = np.abs(position[:, None] - position) < 0.02
    W = np.where(near & ~np.eye(n, dtype=bool), rng.random((n, n)), 0.0)
    W = np.triu(W, 1) + np.triu(W, 1).T
    labels = np.where(rng.random(n) < 0.5, np.sign(position - 0.5), 0.0)
    H = np.zeros((n + 1, n + 1))
    H[:n, :n] = np.diag(W.sum(axis=1) + weight * np.abs(labels)) - W
    H[:n, n] = H[n, :n] = -weight * labels
    H[n, n] = weight * np.abs(labels).sum()
    found = first_eigenvector(sp.csr_array(H), tol=1e-9)
    true = np.linalg.eigh(H)[1][:, 0]
    assert found.converged
    assert abs(found.vector @ true) > 1.0 - 1e-6


def test_convergence_is_not_claimed_where_rounding_hides_the_vector():
    """With entries that differ by 16 orders of magnitude no residual can prove anything."""
    rng = np.random.default_rng(1)
    n = 400
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = np.diag(rng.uniform(1.0, 2.0, n))
    A[:n, n] = A[n, :n] = -1e14 * (rng.random(n) < 0.5)
    A[n, n] = 1e15 * n
    A[np.arange(n), np.arange(n)] += np.abs(A[:n, n])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        found = first_eigenvector(sp.csr_array(A))
    assert not found.converged


eigen = import_module("gdpa.linalg.first_eigenvector")  # the function has the same name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0.5, -1.0], [-0.5, 1.0]),
        ([0.7, -1.0], [0.7, -1.0]),
        ([-0.7, 1.0], [0.7, -1.0]),
        ([-0.5, 0.5, 1.0], [-0.5, 0.5, 1.0]),
        ([0.0, -2.0], [0.0, 2.0]),
        ([0.618034, -1.0], [0.618034, -1.0]),
    ],
)
def test_the_first_large_entry_is_positive(given, expected):
    np.testing.assert_array_equal(eigen._fix_sign(np.array(given)), expected)


def test_starts_are_checked_and_scaled():
    assert eigen._check_start(None, 3) is None
    np.testing.assert_array_equal(eigen._check_start([1, -4, 2], 3), [0.25, -1.0, 0.5])
    for bad in ([1.0, 2.0], [0.0, 0.0, 0.0], [1.0, np.inf, 0.0], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ValueError, match="v0 must"):
            eigen._check_start(bad, 3)


@pytest.mark.parametrize(
    "size", [1e-320, 1e-200, 0.99e-100, 1e-100, 1.0, 1e100, 1.01e100, 1e300, 1e307]
)
def test_only_extreme_matrices_are_divided_by_a_power_of_two(size):
    A = np.array([[1.0, 0.5], [0.5, 0.25]]) * size
    counted, exponent = eigen._ordinary(A)
    assert (exponent == 0) == (1e-100 <= size <= 1e100)
    if exponent:
        assert exponent == np.clip(np.frexp(size)[1], -1000, 1000)
    np.testing.assert_array_equal(np.ldexp(counted.matrix.toarray(), exponent), A)
    assert eigen._ordinary(np.zeros((2, 2)))[1] == 0


def test_a_measured_pair_is_a_rayleigh_quotient_with_its_residual():
    A = laplacian(20, 1.0)
    v = np.random.default_rng(0).standard_normal(20)
    counted = Counted(Matrix(A), 1)
    pair = eigen.measured(counted, v, "own")
    u = v / np.linalg.norm(v)
    assert pair.value == pytest.approx(u @ (A @ u), rel=1e-13)
    assert pair.residual == pytest.approx(np.linalg.norm(A @ u - pair.value * u), rel=1e-12)
    np.testing.assert_allclose(pair.vector, u, rtol=1e-14)
    assert (pair.method, counted.products) == ("own", 1)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("dependent", [False, True])
def test_the_lowest_ritz_value_of_a_span(rows, dependent):
    rng = np.random.default_rng(rows)
    A = laplacian(20, -1.0).toarray()
    S = rng.standard_normal((rows, 20)) * np.logspace(-3, 3, rows)[:, None]
    expected = linalg.eigh(S @ A @ S.T, S @ S.T)[0][0]
    if dependent:
        S = np.vstack([S, 7 * S[-1:], np.zeros((1, 20))])
    value, c = eigen._ritz(S, S @ A)
    assert value == pytest.approx(expected, rel=1e-9)
    x = c @ S
    assert np.linalg.norm(x) == pytest.approx(1.0, rel=1e-9)
    assert x @ A @ x == pytest.approx(value, rel=1e-9)
    S[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        assert eigen._ritz(S, S) is None


def reference_lobpcg(A, x, M, threshold):
    """Minimise the quotient over x, M r and the last step, by a QR factorisation."""
    x, step, iterations = x / np.linalg.norm(x), None, 0
    while True:
        r = A @ x - (x @ A @ x) * x
        if np.linalg.norm(r) <= threshold:
            return x @ A @ x, iterations
        basis = [x, M(r)] + ([] if step is None else [step])
        Q = np.linalg.qr(np.column_stack(basis))[0]
        new = Q @ np.linalg.eigh(Q.T @ A @ Q)[1][:, 0]
        step = new - (new @ x) * x
        x, iterations = new, iterations + 1


def test_limits_and_stops_of_the_eigenvector():
    A = laplacian(300, 0.1, density=0.05)
    assert eigen.first_eigenvector(A).method == "lobpcg"
    assert eigen.first_eigenvector(sp.csr_array(A[:299, :299])).method == "dense"
    assert eigen.first_eigenvector(path(4), dense_below=0).method == "dense"
    assert eigen.first_eigenvector(path(5), dense_below=0).method != "dense"
    assert eigen.first_eigenvector(path(4), dense_below=0).matvecs == 1
    values: list[float] = []
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        stopped = eigen.first_eigenvector(
            A, tol=1e-12, preconditioner="jacobi",
            callback=lambda e: values.append(e["value"]) or e["iteration"] == 3,
        )  # fmt: skip
    assert stopped.value == pytest.approx(values[-1], rel=1e-10)
    assert (stopped.iterations, stopped.method, stopped.matvecs) == (3, "lobpcg", 5)
    limited = eigen.first_eigenvector(A, tol=1e-10, max_iter=3, preconditioner="jacobi")
    assert limited.iterations == 3
    assert "max_iter reached; shift-invert took over" in limited.message
    # A tolerance below rounding is raised to four units of it.
    norm = float(abs(path(50)).sum(axis=1).max())
    exact = eigen.first_eigenvector(path(50), tol=1e-30)
    assert f"(threshold {4 * EPS * norm:.2e})" in exact.message
