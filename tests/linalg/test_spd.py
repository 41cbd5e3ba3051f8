"""SPD solve against LAPACK: many columns, extreme weights, singular systems, honest residuals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gdpa.errors import ConvergenceWarning
from gdpa.linalg import preconditioners, solve_spd, spd
from gdpa.linalg.operator import (
    Difference,
    Matrix,
    UnitDiagonal,
)
from gdpa.linalg.two_level import patches
from gdpa.policy import Policy
from tests.linalg.small_matrices import as_matrix, laplacian


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


def reference_cg(C, b, goal, M=None):
    """Textbook preconditioned conjugate gradients; returns the norms of the residuals."""
    x, r, p, old = np.zeros_like(b), b.copy(), None, 1.0
    norms = [np.linalg.norm(r)]
    while norms[-1] > goal:
        z = r if M is None else M @ r
        rho = r @ z
        p = z if p is None else z + rho / old * p
        q = C @ p
        x, r, old = x + rho / (p @ q) * p, r - rho / (p @ q) * q, rho
        norms.append(np.linalg.norm(r))
    return norms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("preconditioner", ["jacobi", "two-level", "own"])
def test_steps_are_those_of_the_definition(seed, columns, preconditioner):
    n, tol = 60, 1e-7
    A = laplacian(n, 0.3, seed)
    B = np.random.default_rng(seed).standard_normal((n, columns)) * np.logspace(0, 3, columns)
    d = A.diagonal()
    s = 1 / np.sqrt(d)
    C, M = A.toarray() * s[:, None] * s, None
    spec = preconditioner
    if preconditioner == "two-level":
        M = as_matrix(preconditioners.two_level(A, s), n)
    elif preconditioner == "own":
        own = np.linalg.inv(A.toarray() + np.diag(d))
        M = own / s[:, None] / s

        def spec(R):
            assert R.shape == (n, 1)
            return own @ R

    histories = [reference_cg(C, s * b, 0.9 * tol * np.linalg.norm(s * b), M) for b in B.T]
    seen = []
    found = solve_spd(
        A, B, tol=tol, preconditioner=spec, dense_below=0, callback=lambda e: seen.append(dict(e))
    )
    steps = [len(history) - 1 for history in histories]
    assert found.iterations == max(steps)
    assert found.matvecs == sum(steps) + columns  # and one per column to check
    assert found.message.startswith("residual reached")
    assert [e["iteration"] for e in seen] == list(range(1, max(steps) + 1))
    for event in seen:
        k = event["iteration"]
        worst = max(h[k] / h[0] for h in histories if len(h) > k)
        assert event["residual"] == pytest.approx(worst, rel=1e-3)
    S = s[:, None]
    true = np.linalg.norm(S * (B - A @ found.x), axis=0) / np.linalg.norm(S * B, axis=0)
    assert found.residual == pytest.approx(true.max(), rel=1e-4)
    # With a start, one more product per column.
    begun = solve_spd(A, B, tol=tol, preconditioner=spec, dense_below=0, x0=found.x * (1 + 1e-3))
    assert begun.converged
    assert begun.iterations < found.iterations
    assert columns * 2 < begun.matvecs <= columns * (begun.iterations + 2)
    same = solve_spd(A, B, tol=2 * tol, preconditioner=spec, dense_below=0, x0=found.x)
    assert (same.iterations, same.matvecs) == (0, columns)


def test_two_level_of_a_difference_takes_the_steps_of_the_stored_matrix():
    K = laplacian(80, 0.05)
    d = K.diagonal()
    A = sp.csr_array(sp.diags_array(d) - K)
    A.eliminate_zeros()
    b = np.random.default_rng(0).standard_normal(80)
    options = {"tol": 1e-9, "preconditioner": "two-level", "dense_below": 0}
    stored, implied = solve_spd(K, b, **options), solve_spd(Difference(Matrix(A), d), b, **options)
    assert stored.iterations == implied.iterations
    np.testing.assert_allclose(stored.x, implied.x, atol=1e-6 * np.abs(stored.x).max())


def test_a_start_that_is_worse_than_zero_is_not_used():
    A, b = laplacian(40, 0.3), np.random.default_rng(0).standard_normal(40)
    exact = np.linalg.solve(A.toarray(), b)
    cold = solve_spd(A, b, dense_below=0, tol=1e-8)
    bad = solve_spd(A, b, dense_below=0, tol=1e-8, x0=3.0 * exact)
    assert bad.iterations == cold.iterations
    np.testing.assert_array_equal(bad.x, cold.x)
    assert bad.matvecs == cold.matvecs + 1


@pytest.mark.parametrize("n", [499, 500])
def test_small_systems_are_factorised(n):
    A, b = laplacian(n, 1.0, density=0.02), np.ones(n)
    found = solve_spd(A, b)
    assert found.method == ("dense-cholesky" if n < 500 else "cg")
    assert (found.iterations == 0) == (n < 500)
    if n < 500:
        assert found.matvecs == 1
    assert solve_spd(A, b, dense_below=n).method == "cg"
    assert solve_spd(A, b, dense_below=n + 1).method == "dense-cholesky"


def run_cg(A, B, target, **options):
    dtypes = []

    def dot(Y, dtype, _jobs):
        dtypes.append(np.dtype(dtype).name)
        return (A.astype(dtype) @ Y).astype(dtype)

    X, R = np.zeros_like(B), B.copy()
    found = spd.conjugate_gradients(dot, B, X, R, target, **options)
    np.testing.assert_allclose(R, B - A @ X, atol=1e-12)
    return *found, X, dtypes


def test_rounds_of_single_precision_are_refined_in_double():
    A = np.diag(np.linspace(1.0, 2.0, 12))
    B = np.random.default_rng(0).standard_normal((12, 2))
    target = 1e-9 * np.linalg.norm(B, axis=0)
    iterations, products, why, X, dtypes = run_cg(A, B, target, limit=500, single=True)
    assert why == "residual reached"
    np.testing.assert_allclose(X, np.linalg.solve(A, B), atol=1e-8)
    assert len(dtypes) == products
    assert dtypes.count("float64") == 4  # two rounds, checked in double precision
    assert dtypes[-1] == "float64"
    assert iterations > 5
    double = run_cg(A, B, target, limit=500)
    assert set(double[4]) == {"float64"}


@pytest.mark.parametrize("single", [False, True])
def test_how_the_iteration_ends(single):
    A = np.diag(np.linspace(1.0, 50.0, 30))
    B = np.random.default_rng(0).standard_normal((30, 1))
    target = np.array([1e-3])
    assert run_cg(A, B, np.array([1e9]), limit=5, single=single)[:3] == (0, 0, "residual reached")
    limited = run_cg(A, B, target, limit=3, single=single)
    assert limited[:3] == (3, 4, "max_iter reached")
    seen = []
    stopped = run_cg(
        A, B, target, limit=9, single=single, watch=lambda k, c: bool(seen.append(len(c)) or k == 2)
    )
    assert stopped[:3] == (2, 3, "stopped by the callback")
    assert seen == [1, 1]
    bad = run_cg(np.diag([1.0, -1.0]), np.ones((2, 1)), target, limit=9, single=single)
    assert bad[2] == "matrix is singular or not positive definite"
    stuck = run_cg(np.eye(2) * (1 + 1e-13), np.ones((2, 1)), np.zeros(1), limit=99, single=single)
    assert stuck[2] in ("stagnated", "residual reached")


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Every round leaves this share of the residual, as if products were inaccurate.
        (0.3, (3, 6, "residual reached")),
        (0.7, (1, 2, "stagnated")),
    ],
)
def test_rounds_go_on_while_each_halves_the_residual(found, expected, single):
    kinds = []

    def dot(Y, dtype, _jobs):
        kinds.append(np.dtype(dtype).name)
        checked = len(kinds) % 2 == 0  # products alternate: a step, then the check of the round
        return Y * (1 - found) if checked else Y.copy()

    B = np.ones((1, 1))
    X, R = np.zeros((1, 1)), B.copy()
    ended = spd.conjugate_gradients(dot, B, X, R, np.array([0.05]), limit=99, single=single)
    if not single:
        assert ended == expected
    elif found == 0.3:
        assert ended == expected
        assert kinds == ["float32", "float64"] * 3
    else:  # a round in double precision follows before giving up
        assert ended == (2, 4, "stagnated")
        assert kinds == ["float32", "float64", "float64", "float64"]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_auto_compares_the_estimated_iterations(columns, tol):
    W = np.ones((20, 20)) - np.eye(20)
    unit = UnitDiagonal(Difference(Matrix(sp.csr_array(W)), np.full(20, 19.5)))
    low = 1 - W.sum() / (20 * 19.5)
    steps = 0.5 * np.sqrt(2 / low) * np.log(2 / tol)

    def choose(**limits):
        basic = {"full_least": 0, "full_most": 0, "slow_rows": 0, "jacobi_steps": 10**9}
        policy = Policy(**(basic | limits))
        return spd.choose_preconditioner(unit, tol, columns, policy)

    assert choose() == "jacobi"
    assert choose(jacobi_steps=steps - 0.01) == "two-level"
    assert choose(jacobi_steps=steps + 0.01) == "jacobi"
    assert choose(jacobi_steps=0, slow_rows=20) == "two-level"
    assert choose(jacobi_steps=0, slow_rows=21) == "jacobi"
    cost = {"factor_nodes": 2, "full_most": 100}
    assert choose(factor_products=steps * columns - 10.01, **cost) == "cholesky"
    assert choose(factor_products=steps * columns - 9.99, **cost) == "jacobi"
    cheap = {"factor_nodes": 2, "factor_products": -1000}
    assert choose(full_least=20, full_most=20, **cheap) == "cholesky"
    assert choose(full_least=21, full_most=99, **cheap) == "jacobi"
    assert choose(full_least=0, full_most=19, **cheap) == "jacobi"


@pytest.mark.parametrize(("entries", "full"), [(100, True), (98, False)])
def test_full_graphs_have_a_fourth_of_all_entries(entries, full):
    W = np.zeros((20, 20))
    upper = np.argwhere(np.triu(np.ones((20, 20)), 1))[: entries // 2]
    W[tuple(upper.T)] = 1.0
    A = sp.csr_array(W + W.T)
    policy = Policy(full_least=0, full_most=99, factor_products=-1000, slow_rows=99)
    unit = UnitDiagonal(Difference(Matrix(A), np.full(20, 30.0)))
    chosen = spd.choose_preconditioner(unit, 1e-6, 1, policy)
    assert chosen == ("cholesky" if full else "jacobi")


def test_zero_rows_count_as_a_whole_residual_only_where_asked_for_more():
    A = sp.csr_array(np.diag([2.0, 0.0, 4.0]))
    with pytest.warns(ConvergenceWarning, match="1.00e"):
        found = solve_spd(A, [[1.0, 2.0], [0.0, 1.0], [1.0, 4.0]], dense_below=0)
    assert found.residual == 1.0
    np.testing.assert_allclose(found.x, [[0.5, 1.0], [0.0, 0.0], [0.25, 1.0]])
    assert solve_spd(A, np.zeros(3)).residual == 0.0
