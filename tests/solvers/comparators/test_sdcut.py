"""SDcut: its dual function, its gradient, and the bound that every dual point gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import ConvergenceWarning, UnsupportedProblemError
from gdpa.solvers import sdr_form
from gdpa.solvers.comparators import sdcut as module
from gdpa.solvers.comparators.sdcut import SDcut, _PenalisedDual, proved_smallest_eigenvalue


def problem_of(seed: int, n: int = 10, known: int = 4, *, bias: bool = False) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.05, 1.0, (n, n)) * (rng.random((n, n)) < 0.6), 1)
    W += np.diag(np.full(n - 1, 0.05), 1)
    labels = np.zeros(n, dtype=int)
    labels[rng.permutation(n)[:known]] = np.resize([1, -1], known)
    return gdpa.GraphProblem(
        W + W.T,
        labels,
        bias=rng.normal(size=n) if bias else None,
        laplacian="normalized" if seed % 2 else "combinatorial",
    )


def optimum(problem: gdpa.GraphProblem) -> float:
    free = problem.unlabeled
    x = problem.labels.astype(float)
    best = np.inf
    for signs in itertools.product((-1.0, 1.0), repeat=free.size):
        x[free] = signs
        best = min(best, problem.objective(x))
    return best


def written_out(problem: gdpa.GraphProblem, u: np.ndarray, sigma: float) -> float:
    """f(u) with the constraint matrices written out, C in units of its mean diagonal."""
    n = problem.n_nodes + 1
    h = problem.bias
    C = np.block([[problem.L.toarray(), -h[:, None]], [-h[None, :], np.zeros((1, 1))]])
    C /= max(problem.diagonal.mean(), np.abs(h).max())
    b = [1.0] * n
    for k in range(n):
        C[k, k] += u[k]
    for k, i in enumerate(problem.labeled):
        C[i, -1] += u[n + k]
        C[-1, i] += u[n + k]
        b.append(2.0 * problem.labels[i])
    lam = np.linalg.eigvalsh(C)
    return float((lam[lam < 0] ** 2).sum() / (4 * sigma) + np.array(b) @ u)


@given(seed=st.integers(0, 10_000), bias=st.booleans(), sigma=st.sampled_from([0.1, 1.0, 100.0]))
def test_value_and_gradient_are_those_of_the_definition(seed, bias, sigma):
    problem = problem_of(seed, bias=bias)
    dual = _PenalisedDual.of(problem, sigma)
    rng = np.random.default_rng(seed)
    u = dual.start() + rng.normal(size=dual.start().size)
    value, gradient = dual.value_and_gradient(u)
    assert value == pytest.approx(written_out(problem, u, sigma), rel=1e-10, abs=1e-10)
    direction = rng.normal(size=u.size)
    step = 1e-5
    slope = written_out(problem, u + step * direction, sigma)
    slope -= written_out(problem, u - step * direction, sigma)
    # f is quadratic up to kinks in its second derivative: central differences are good to `step`.
    assert gradient @ direction == pytest.approx(slope / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("shift", [-3.0, 0.3, 2.0])
def test_partial_and_full_decomposition_agree(shift):
    dual = _PenalisedDual.of(problem_of(1, n=30), 1.0)
    u = dual.start()
    u[:31] += shift
    dual.negative = 0  # partial
    partial = dual.value_and_gradient(u)
    dual.negative = 31  # full
    full = dual.value_and_gradient(u)
    assert partial[0] == pytest.approx(full[0], rel=1e-12)
    np.testing.assert_allclose(partial[1], full[1], rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 10_000), bias=st.booleans(), spread=st.sampled_from([0.0, 1.0, 30.0]))
def test_every_dual_point_bounds_the_optimum(seed, bias, spread):
    problem = problem_of(seed, n=9, bias=bias)
    dual = _PenalisedDual.of(problem, 100.0)
    u = dual.start()
    u = u + spread * np.random.default_rng(seed).normal(size=u.size)
    lmin = float(np.linalg.eigvalsh(dual.matrix(u))[0])
    bound, status = dual.bound(u, lmin)
    assert status == "certified"
    assert bound <= optimum(problem)


@pytest.mark.parametrize("seed", range(4))
def test_small_penalty_reaches_the_semidefinite_relaxation(seed):
    problem = problem_of(seed, n=12, bias=seed > 1)
    relaxation = gdpa.solve(problem, "sdr-interior-point", tol=1e-9).lower_bound
    bound = gdpa.solve(problem, "sdcut", sigma=1e-4, max_iter=3000, tol=1e-9).lower_bound
    scale = max(abs(relaxation), problem.diagonal.sum())
    assert bound <= relaxation + 1e-6 * scale
    assert bound >= relaxation - 1e-3 * scale


def test_bound_is_better_for_a_smaller_penalty():
    problem = problem_of(5, n=14)
    bounds = [
        gdpa.solve(problem, "sdcut", sigma=sigma, max_iter=2000, tol=1e-8).lower_bound
        for sigma in (100.0, 1.0, 0.01)
    ]
    assert bounds[0] < bounds[1] < bounds[2]


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_read_off_the_first_eigenvector_of_the_dual_matrix(seed):
    problem = problem_of(seed)
    solution = gdpa.solve(problem, "sdcut")
    n = problem.n_nodes
    H = np.zeros((n + 1, n + 1))
    H[:n, :n] = problem.L.toarray()
    H += np.diag(solution.dual.y)
    H[problem.labeled, n] = H[n, problem.labeled] = solution.dual.z
    v = np.linalg.eigh(H)[1][:, 0]
    first = problem.labeled[0]
    expected = np.sign(problem.labels[first] * v[first] * v[:n])
    np.testing.assert_array_equal(
        solution.labels[problem.unlabeled], expected[problem.unlabeled].astype(np.int8)
    )


def test_units_of_weight_do_not_matter():
    problem = problem_of(2)
    plain = gdpa.solve(problem, "sdcut")
    for factor in (1e-200, 1e200):
        scaled = gdpa.solve(gdpa.GraphProblem(problem.W * factor, problem.labels), "sdcut")
        np.testing.assert_array_equal(plain.labels, scaled.labels)
        assert scaled.lower_bound == pytest.approx(plain.lower_bound * factor, rel=1e-3)


def test_proved_eigenvalue_is_below_the_true_one_and_close():
    n = 60  # path graph: eigenvalues 2 - 2 cos(pi k / n) are known exactly
    L = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    L[0, 0] = L[-1, -1] = 1.0
    proved = proved_smallest_eigenvalue(L.copy(), 0.0)
    assert proved is not None
    assert -1e-9 < proved <= 0.0
    # An estimate that is above the smallest eigenvalue by more than rounding is never confirmed.
    assert proved_smallest_eigenvalue(L.copy(), 1e-3) is None


def test_refuses_matrices_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(sdr_form, "available_memory", lambda: 100)
    monkeypatch.setattr(module, "DENSE_COPIES", 2**24)
    with pytest.raises(UnsupportedProblemError, match=r"'sdcut' needs about.*sdr-low-rank"):
        gdpa.solve(problem_of(0), "sdcut")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"sigma": 0.0}, "sigma=0.0"), ({"corrections": 0}, "corrections=0")],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SDcut(**options)


def test_callback_stops_and_the_best_point_is_returned():
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        solution = gdpa.solve(problem_of(1), "sdcut", callback=lambda entry: True)
    assert not solution.converged
    assert solution.iterations == 1
    assert solution.bound_status == "certified"


def test_too_few_iterations_are_reported():
    with pytest.warns(ConvergenceWarning):
        solution = gdpa.solve(problem_of(1), "sdcut", max_iter=1)
    assert not solution.converged
