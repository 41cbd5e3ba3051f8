"""The relaxation by ADMM against the interior point and brute force."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import gdpa
from gdpa.errors import ConvergenceWarning, MissingExtraError, UnsupportedProblemError
from gdpa.solvers import sdr_form


def make_problem(random_graph, n, seed, *, n_labeled, laplacian="combinatorial", **options):
    rng = np.random.default_rng(seed)
    labels = np.zeros(n)
    labels[rng.permutation(n)[:n_labeled]] = np.resize([1, -1], n_labeled)
    W = random_graph(n, seed, **options)
    return gdpa.GraphProblem(W, labels, laplacian=laplacian)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "laplacian"),
    [(20, "combinatorial"), (60, "normalized"), (200, "combinatorial")],
)
def test_agrees_with_the_interior_point(random_graph, n, laplacian):
    problem = make_problem(
        random_graph, n, n, n_labeled=n // 10, density=8 / n, laplacian=laplacian
    )
    admm = gdpa.solve(problem, "sdr-admm")
    exact = gdpa.solve(problem, "sdr-interior-point", tol=1e-8)
    value = exact.info["sdr_value"]
    assert admm.converged
    assert admm.info["sdr_value"] == pytest.approx(value, rel=1e-4)
    assert admm.bound_status == "certified"
    assert admm.lower_bound <= value
    assert value - admm.lower_bound <= 1e-3 * abs(value)


@pytest.mark.parametrize("seed", range(4))
def test_brute_force(random_graph, seed):
    problem = make_problem(random_graph, 14, seed, n_labeled=4)
    unlabeled = problem.unlabeled
    best = np.inf
    x = problem.labels.astype(float)
    for signs in itertools.product((-1.0, 1.0), repeat=unlabeled.size):
        x[unlabeled] = signs
        best = min(best, problem.objective(x))
    solution = gdpa.solve(problem, "sdr-admm")
    assert solution.lower_bound <= best + 1e-9
    assert solution.objective >= best - 1e-9


def test_signed_binary_quadratic():
    P = np.random.default_rng(0).normal(size=(20, 20))
    form = gdpa.BinaryQuadratic(P + P.T, anchor=3)
    admm = gdpa.solve(form, "sdr-admm", tol=1e-7)
    exact = gdpa.solve(form, "sdr-interior-point", tol=1e-8)
    assert admm.info["sdr_value"] == pytest.approx(exact.info["sdr_value"], rel=1e-4)
    assert admm.lower_bound <= exact.info["sdr_value"]


def test_early_stop_is_marked_and_its_bound_holds(random_graph):
    problem = make_problem(random_graph, 30, 1, n_labeled=6)
    with pytest.warns(ConvergenceWarning, match="SCS"):
        early = gdpa.solve(problem, "sdr-admm", max_iter=3)
    exact = gdpa.solve(problem, "sdr-interior-point")
    assert not early.converged
    assert early.iterations == 3
    assert early.bound_status == "certified"
    assert early.lower_bound <= exact.info["sdr_value"]
    assert np.isfinite(early.scores).all()


def test_callback_sees_the_end_and_may_refuse_it(random_graph):
    problem = make_problem(random_graph, 12, 2, n_labeled=4)
    with pytest.warns(ConvergenceWarning, match="callback"):
        solution = gdpa.solve(problem, "sdr-admm", callback=lambda entry: True)
    assert not solution.converged
    assert len(solution.history) == 1


def test_too_large_is_refused(random_graph, monkeypatch):
    problem = make_problem(random_graph, 800, 0, n_labeled=4, density=0.005)
    monkeypatch.setattr(sdr_form, "available_memory", lambda: 2**26)
    with pytest.raises(UnsupportedProblemError, match=r"'sdr-admm'.*sdr-low-rank"):
        gdpa.solve(problem, "sdr-admm")


def test_missing_extra_names_itself(random_graph, monkeypatch):
    problem = make_problem(random_graph, 12, 2, n_labeled=4)
    monkeypatch.setitem(sys.modules, "scs", None)
    with pytest.raises(MissingExtraError, match=r"scs.*\.\[sdp\]"):
        gdpa.solve(problem, "sdr-admm")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_very_few_iterations_give_a_valid_bound(seed, max_iter):
    pytest.importorskip("scs", reason="sdr-admm needs the extra sdp")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 20))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W[0, 2] = W[1, 3] = 0.5
    labels = np.zeros(n, dtype=int)
    labels[[0, 1]] = [1, -1]
    problem = gdpa.GraphProblem(W + W.T, labels)
    solution = gdpa.solve(problem, "sdr-admm", max_iter=max_iter)
    assert not solution.converged
    exact = gdpa.solve(problem, "min-cut")
    assert solution.lower_bound <= exact.objective * (1.0 + 1e-12)
    assert np.isfinite(solution.scores).all()
