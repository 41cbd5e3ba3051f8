"""The harmonic function and the labelled system around it: scores, bounds, options."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.gershgorin.bounds import relaxation_bound


def make(n, seed, laplacian="combinatorial", bias=False):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[rng.permutation(n)[:3]] = 1, -1, 0
    h = rng.normal(size=n) * 0.3 if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian)


def brute_force(problem):
    best = np.inf
    for signs in itertools.product([-1, 1], repeat=problem.unlabeled.size):
        best = min(best, problem.objective(problem.spread(np.array(signs))))
    return best


problems = given(
    n=st.integers(4, 11),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
    bias=st.booleans(),
)


@problems
def test_the_certified_bounds_are_below_the_optimum(n, seed, laplacian, bias):
    problem = make(n, seed, laplacian, bias)
    optimum = brute_force(problem)
    best = gdpa.solve(problem, "harmonic")
    trivial = gdpa.solve(problem, "harmonic", bound="trivial")
    assert trivial.bound_kind == "trivial"
    assert best.bound_kind in ("trivial", "relaxation")
    assert trivial.lower_bound <= best.lower_bound <= optimum
    assert best.bound_status == "certified"
    assert best.objective >= optimum - 1e-9
    assert best.objective == pytest.approx(problem.objective(best.labels))
    assert np.array_equal(best.labels[problem.labeled], problem.labels[problem.labeled])


@problems
def test_scores_of_any_kind_prove_a_bound(n, seed, laplacian, bias):
    problem = make(n, seed, laplacian, bias)
    scores = np.random.default_rng(seed).normal(size=n)
    optimum = brute_force(problem)
    for sweeps in (0, 1, 3, 50):
        assert relaxation_bound(problem, scores, sweeps=sweeps) <= optimum


def test_the_bound_comes_near_that_of_the_relaxation():
    problem = make(200, 4)
    relaxation = gdpa.solve(problem, "sdr-low-rank").lower_bound
    solution = gdpa.solve(problem, "harmonic")
    assert solution.bound_kind == "relaxation"
    assert 0.9 * relaxation < solution.lower_bound <= relaxation * (1 + 1e-3)


def test_scores_are_means_of_their_neighbours():
    problem = make(60, 11)
    solution = gdpa.solve(problem, "harmonic", tol=1e-10)
    mean = (problem.adjacency @ solution.scores) / problem.diagonal
    u = problem.unlabeled
    assert np.allclose(solution.scores[u], mean[u], atol=1e-8)
    assert np.array_equal(solution.scores[problem.labeled], problem.labels[problem.labeled])


def test_a_warm_start_a_self_loop_per_node_and_a_finite_label_weight():
    problem = make(60, 11)
    cold = gdpa.solve(problem, tol=1e-10)
    warm = gdpa.solve(problem, x0=cold.scores, tol=1e-10)
    assert np.allclose(cold.scores, warm.scores, atol=1e-8)
    gamma = np.linspace(0, 1, 60)
    scores = gdpa.solve(problem, self_loop=gamma, label_weight=2.0, tol=1e-12).scores
    K = problem.L.toarray() + np.diag(gamma + 2.0 * (problem.labels != 0))
    assert np.allclose(scores, np.linalg.solve(K, 2.0 * problem.labels), atol=1e-8)


def test_a_callback_sees_every_iteration_and_can_stop():
    n = 900  # more than what is factorised
    labels = np.zeros(n, dtype=int)
    labels[[0, -1]] = 1, -1
    problem = gdpa.GraphProblem(np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1), labels)
    seen = []
    solution = gdpa.solve(problem, callback=seen.append, preconditioner="jacobi")
    assert [entry["iteration"] for entry in seen] == list(range(1, solution.iterations + 1))
    with pytest.warns(UserWarning, match="stopped by the callback"):
        stopped = gdpa.solve(problem, callback=lambda entry: True, preconditioner="jacobi")
    assert not stopped.converged
    assert np.isfinite(stopped.scores).all()
    assert stopped.lower_bound <= gdpa.solve(problem, "min-cut").objective


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_weight": 0}, "label_weight=0 must be a positive number"),
        ({"label_weight": np.nan}, "label_weight=nan must be a positive number"),
        ({"self_loop": np.inf}, "self_loop must be finite"),
        ({"self_loop": [1.0, 2.0]}, r"one entry per node \(10\)"),
        ({"bound": "best"}, "bound='best' is not known; .*ccepted: relaxation, trivial"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gdpa.solve(make(10, 0), "harmonic", **options)
