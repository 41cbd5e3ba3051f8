"""GLR-box: the optimality conditions of the box QP, and when the box is not felt."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import MissingExtraError
from gdpa.solvers import conic


def problem_of(
    seed: int, laplacian: str, *, n: int = 14, known: int = 4, bias: float = 0.0
) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    # Weights over many orders of magnitude: where the harmonic function of the normalised
    # Laplacian leaves the box.
    W = np.triu(np.exp(rng.uniform(-6, 1, (n, n))), 1)
    labels = np.zeros(n, dtype=int)
    labels[rng.permutation(n)[:known]] = np.resize([1, -1], known)
    evidence = bias * rng.normal(size=n) if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=evidence, laplacian=laplacian)


def check_optimal(problem: gdpa.GraphProblem, x: np.ndarray, tolerance: float) -> None:
    """KKT of the convex box QP: gradient 0 inside, pointing outwards at a bound."""
    gradient = (problem.L @ x - problem.bias)[problem.unlabeled]
    free = x[problem.unlabeled]
    assert (np.abs(free) <= 1.0).all()
    scale = problem.diagonal.max() + np.abs(problem.bias).max()
    inside = np.abs(free) < 1.0 - 1e-5
    assert np.abs(gradient[inside]).max(initial=0.0) <= tolerance * scale
    assert (gradient[~inside] * np.sign(free[~inside])).max(initial=-1.0) <= tolerance * scale


@given(seed=st.integers(0, 10_000))
def test_box_is_never_felt_by_the_combinatorial_laplacian(seed):
    problem = problem_of(seed, "combinatorial")
    solution = gdpa.solve(problem, "glr-box")
    assert solution.info["box"] == "inactive"
    u, known = problem.unlabeled, problem.labeled
    L = problem.L.toarray()
    x = np.linalg.solve(L[np.ix_(u, u)], -L[np.ix_(u, known)] @ problem.labels[known])
    assert np.abs(x).max() <= 1.0 + 1e-12  # maximum principle
    np.testing.assert_allclose(solution.scores[u], x, atol=1e-7)


@given(seed=st.integers(0, 10_000), bias=st.sampled_from([0.0, 0.1, 1.0]))
def test_normalised_or_with_evidence_the_optimality_conditions_hold(seed, bias):
    for laplacian in ("normalized", "combinatorial"):
        problem = problem_of(seed, laplacian, bias=bias)
        solution = gdpa.solve(problem, "glr-box")
        assert solution.converged
        check_optimal(problem, solution.scores, 1e-5)
        # The tangent's bound is the relaxation's value there.
        value = problem.objective(solution.scores)
        assert solution.bound_status == "certified"
        assert solution.lower_bound <= value
        assert value - solution.lower_bound <= 1e-4 * (problem.diagonal.sum() + abs(value))


def test_normalised_laplacian_may_leave_the_box():
    # A hub with k leaves, s of them +1 and the others -1: the harmonic value of the hub is
    # (2 s - k) / sqrt(k), which is beyond the box for 9 of 10 and within it for 6 of 10.
    W = np.zeros((11, 11))
    W[0, 1:] = W[1:, 0] = 1.0
    for up, box, value in ((9, "active", 1.0), (6, "inactive", 2.0 / np.sqrt(10.0))):
        labels = np.array([0] + [1] * up + [-1] * (10 - up))
        problem = gdpa.GraphProblem(W, labels, laplacian="normalized")
        solution = gdpa.solve(problem, "glr-box")
        assert solution.info["box"] == box
        assert solution.scores[0] == pytest.approx(value, abs=1e-6)
        check_optimal(problem, solution.scores, 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_box_programme_against_a_bounded_minimiser(seed):
    problem = problem_of(seed, "normalized", bias=0.5)
    u = problem.unlabeled
    x = problem.labels.astype(float)

    def objective(free):
        x[u] = free
        return problem.objective(x), 2.0 * (problem.L @ x - problem.bias)[u]

    oracle = scipy.optimize.minimize(
        objective,
        np.zeros(u.size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1, 1)] * u.size,
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000},
    )
    solution = gdpa.solve(problem, "glr-box")
    np.testing.assert_allclose(solution.scores[u], oracle.x, atol=1e-4)
    assert problem.objective(solution.scores) <= oracle.fun + 1e-6


def test_evidence_alone_is_enough():
    W = np.diag([1.0, 0.1, 1.0], 1)
    problem = gdpa.GraphProblem(W + W.T, np.zeros(4), bias=[3.0, 0.0, 0.0, -3.0])
    solution = gdpa.solve(problem, "glr-box")
    assert solution.info["box"] == "active"
    assert solution.labels.tolist() == [1, 1, -1, -1]
    check_optimal(problem, solution.scores, 1e-5)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_units_of_weight_do_not_matter(factor):
    plain = problem_of(3, "combinatorial", bias=1.0)
    scaled = gdpa.GraphProblem(plain.W * factor, plain.labels, bias=plain.bias * factor)
    a, b = (gdpa.solve(p, "glr-box").scores for p in (plain, scaled))
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_extra_is_needed_only_where_the_box_is_felt(monkeypatch):
    def missing(name, extra):
        raise MissingExtraError(f"{name!r} is not installed; pip install 'gdpa[{extra}]'")

    monkeypatch.setattr(conic, "require", missing)
    gdpa.solve(problem_of(0, "combinatorial"), "glr-box")
    with pytest.raises(MissingExtraError, match=r"clarabel.*gdpa\[sdp\]"):
        gdpa.solve(problem_of(0, "combinatorial", bias=5.0), "glr-box")


def test_sparse_graph_by_conjugate_gradients(random_graph):
    n = 2000
    W = random_graph(n, 5, density=0.003)
    labels = np.zeros(n, dtype=int)
    labels[:200] = np.resize([1, -1], 200)
    seen = []
    problem = gdpa.GraphProblem(W, labels)
    solution = gdpa.solve(problem, "glr-box", callback=lambda entry: seen.append(entry))
    assert len(seen) == len(solution.history) > 1
    check_optimal(problem, solution.scores, 1e-6)
