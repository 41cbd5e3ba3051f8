"""Low-rank factors against interior point and a general conic solver; every bound holds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import ConvergenceWarning
from gdpa.gershgorin.bounds import aligned_bound
from gdpa.solvers import switching
from gdpa.solvers.conic import sdr_lmi, solve_clarabel
from gdpa.solvers.sdr_form import dense_form
from gdpa.solvers.sdr_half_circle import HalfCircle
from gdpa.solvers.sdr_sphere import SphereProduct
from gdpa.solvers.switching import switched_form


def neighbour_problem(n: int, share: float, seed: int = 0, **options) -> gdpa.GraphProblem:
    """Two overlapping clouds, a share of the points labelled."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.normal(size=(n, 3))
    X[:, 0] += truth
    labels = np.where(rng.random(n) < share, truth, 0)
    labels[:2] = 1, -1
    return gdpa.GraphProblem(gdpa.graph.neighbor_graph(X, 10), labels, **options)


def signed_form(n: int, seed: int = 0, density: float = 0.5) -> gdpa.BinaryQuadratic:
    rng = np.random.default_rng(seed)
    P = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    return gdpa.BinaryQuadratic(P + P.T)


def max_cut(n: int, seed: int = 0) -> gdpa.BinaryQuadratic:
    rng = np.random.default_rng(seed)
    P = np.triu(rng.random((n, n)) < 6.0 / n, 1).astype(float)
    return gdpa.BinaryQuadratic(-(P + P.T))


def brute_force(problem) -> float:
    form = problem.reduced()
    n = form.P.shape[0]
    others = np.delete(np.arange(n), form.apex)
    X = np.ones((2 ** (n - 1), n))
    X[:, others] = ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)) & 1) * 2 - 1
    return float((form.constant - np.einsum("ij,ij->i", X @ form.P.toarray(), X)).min())


PROBLEMS = {
    "few labels": lambda: neighbour_problem(200, 0.03),
    "half labelled": lambda: neighbour_problem(200, 0.5),
    "normalized": lambda: neighbour_problem(150, 0.1, laplacian="normalized"),
    "evidence": lambda: neighbour_problem(
        120, 0.02, bias=0.3 * np.random.default_rng(5).normal(size=120)
    ),
    "signed": lambda: signed_form(120),
    "signed, sparse": lambda: signed_form(200, density=0.03),
    "maximum cut": lambda: max_cut(150),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_agrees_with_interior_point(name):
    problem = PROBLEMS[name]()
    ours = gdpa.solve(problem, "sdr-low-rank")
    value = gdpa.solve(problem, "sdr-interior-point", tol=1e-8).info["sdr_value"]
    assert ours.converged
    assert ours.info["sdr_value"] == pytest.approx(value, rel=1e-4)
    assert ours.bound_status == "certified"
    # The interior point's value is feasible, hence not below the optimum; so no bound is above it.
    assert value - 1e-3 * abs(value) <= ours.lower_bound <= value + 1e-9 * abs(value)
    assert ours.lower_bound <= ours.objective
    assert ours.info["sdr_gap"] <= 1.1e-4


@pytest.mark.parametrize("name", ["few labels", "evidence"])
def test_agrees_with_a_general_conic_solver(name):
    pytest.importorskip("clarabel")
    problem = neighbour_problem(30, 0.1) if name == "few labels" else signed_form(20, seed=3)
    ours = gdpa.solve(problem, "sdr-low-rank")
    form = dense_form(problem)
    result = solve_clarabel(sdr_lmi(form.P), tol=1e-6, max_iter=100)
    value = form.constant - form.scale * float(result.x.sum())
    assert ours.info["sdr_value"] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", ["evidence", "signed"])
def test_agrees_with_admm_to_its_tolerance(name):
    pytest.importorskip("scs")
    problem = neighbour_problem(80, 0.05) if name == "evidence" else signed_form(50, seed=6)
    ours = gdpa.solve(problem, "sdr-low-rank")
    other = gdpa.solve(problem, "sdr-admm", tol=1e-6)
    assert ours.info["sdr_value"] == pytest.approx(other.info["sdr_value"], rel=1e-4)


@given(seed=st.integers(0, 10**6), signed=st.booleans(), n=st.integers(3, 9))
def test_bound_value_and_optimum_are_in_order(seed, signed, n):
    rng = np.random.default_rng(seed)
    if signed:
        problem = signed_form(n, seed)
    else:
        upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
        problem = gdpa.BinaryQuadratic(upper + upper.T + np.diag(rng.normal(size=n)))
        c = np.where(upper[0] > 0, rng.normal(size=n), 0.0)
        P = problem.P.toarray()
        P[0, 1:] = P[1:, 0] = c[1:]
        problem = gdpa.BinaryQuadratic(P)
    solution = gdpa.solve(problem, "sdr-low-rank")
    optimum = brute_force(problem)
    assert solution.bound_status == "certified"
    assert solution.lower_bound <= optimum + 1e-12 * max(abs(optimum), 1)
    assert solution.objective >= optimum - 1e-9 * max(abs(optimum), 1)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 9), spread=st.floats(0.01, 3.0))
def test_discs_aligned_by_any_positive_vector_give_a_bound(seed, n, spread):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    W = sp.csr_array(W + W.T)
    c = rng.normal(size=n)
    x, y = spread * rng.normal(size=n), np.exp(spread * rng.normal(size=n))
    bound = aligned_bound(W, c, 0.0, x, y, W @ x, W @ y)
    Z = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) * 2 - 1
    optimum = (-np.einsum("ij,ij->i", Z @ W.toarray(), Z) - 2.0 * Z @ c).min()
    assert bound <= optimum + 1e-12 * (1.0 + abs(optimum))


def test_the_bound_is_the_dual_value_of_a_feasible_point():
    # s = W y / y, and the least s_apex that keeps the whole matrix positive semi-definite.
    problem = neighbour_problem(60, 0.1)
    form = switched_form(problem.reduced())
    solution = gdpa.solve(problem, "sdr-low-rank", tol=1e-6)
    x, y = solution.dual["x"], solution.dual["y"]
    s = (form.W @ y) / y
    A = np.diag(s) - form.W.toarray()
    eigenvalues = np.linalg.eigvalsh(A)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    r = form.c - A @ x
    lifted = A + np.diag(np.abs(r) + 1e-12)
    least = form.c @ np.linalg.solve(lifted, form.c)
    dual = form.constant - s.sum() - np.abs(r).sum() - least
    assert dual >= solution.lower_bound - 1e-9 * abs(dual)
    assert dual <= solution.info["sdr_value"] * (1 + 1e-9)


def test_two_dimensions_are_enough_for_nonnegative_couplings():
    problem = neighbour_problem(150, 0.04, seed=2)
    flat = gdpa.solve(problem, "sdr-low-rank", tol=1e-6)
    general = gdpa.solve(problem, "sdr-low-rank", rank=9, tol=1e-5)
    assert (flat.info["rank"], flat.info["proof"]) == (2, "aligned discs")
    assert general.info["rank"] >= 9
    assert general.info["proof"] == "factorisation"
    assert flat.info["sdr_value"] == pytest.approx(general.info["sdr_value"], rel=1e-5)


def test_too_low_a_rank_is_raised_until_the_bound_agrees():
    problem = max_cut(60, seed=4)
    value = gdpa.solve(problem, "sdr-interior-point").info["sdr_value"]
    solution = gdpa.solve(problem, "sdr-low-rank", rank=2)
    assert solution.info["rank"] > 2
    assert solution.converged
    assert solution.info["sdr_value"] == pytest.approx(value, rel=1e-4)


def test_gradients_are_those_of_the_energy():
    rng = np.random.default_rng(0)
    problem = neighbour_problem(40, 0.2)
    form = problem.reduced()
    circle = HalfCircle(switched_form(form))
    t, step = rng.uniform(0.3, 2.8, form.nodes.size), 1e-6
    direction = rng.normal(size=t.size)
    slope = circle.evaluate(t).gradient @ direction
    up, down = (circle.evaluate(t + k * step * direction).value for k in (1, -1))
    assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-6)
    spheres = SphereProduct(form)
    V = spheres.move(rng.normal(size=(form.P.shape[0], 4)), np.zeros(()))
    D = spheres.project(V, rng.normal(size=V.shape))
    slope = float((spheres.evaluate(V).gradient * D).sum())
    up, down = (spheres.evaluate(spheres.move(V, k * step * D)).value for k in (1, -1))
    assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_closes_the_gap_at_scale_with_few_products(share):
    problem = neighbour_problem(5000, share)
    solution = gdpa.solve(problem, "sdr-low-rank", tol=1e-2)
    assert solution.converged
    assert solution.bound_status == "certified"
    assert solution.info["sdr_gap"] <= 1e-2
    assert solution.info["products"] <= 250
    # The bound of the relaxation cannot exceed the exact optimum.
    assert solution.lower_bound <= gdpa.solve(problem, "min-cut").objective


def test_estimated_where_nothing_is_proved():
    problem = max_cut(150)
    value = gdpa.solve(problem, "sdr-interior-point").info["sdr_value"]
    solution = gdpa.solve(problem, "sdr-low-rank", prove_below=0)
    assert solution.bound_status == "estimated"
    assert solution.info["proof"] == "none"
    assert solution.lower_bound == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("name", ["few labels", "maximum cut"])
def test_stopped_early_it_says_so_and_the_bound_still_holds(name):
    problem = PROBLEMS[name]()
    value = gdpa.solve(problem, "sdr-interior-point").info["sdr_value"]
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        short = gdpa.solve(problem, "sdr-low-rank", max_iter=3)
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = gdpa.solve(problem, "sdr-low-rank", callback=lambda e: e["iteration"] == 2)
    for solution in (short, stopped):
        assert not solution.converged
        assert solution.lower_bound < value < solution.info["sdr_value"]


def test_switchable_signs_change_nothing():
    problem = neighbour_problem(80, 0.1)
    P = problem.reduced().P
    signs = np.random.default_rng(0).choice([-1.0, 1.0], P.shape[0])
    signs[-1] = 1.0
    plain = gdpa.BinaryQuadratic(P, anchor=P.shape[0] - 1)
    switched = gdpa.BinaryQuadratic(
        sp.diags_array(signs) @ P @ sp.diags_array(signs), anchor=P.shape[0] - 1
    )
    a, b = (gdpa.solve(form, "sdr-low-rank", tol=1e-6) for form in (plain, switched))
    assert b.info["proof"] == "aligned discs"
    assert a.info["sdr_value"] == pytest.approx(b.info["sdr_value"], rel=1e-7)
    np.testing.assert_array_equal(b.labels, a.labels * signs)


def test_numbering_of_large_graphs_changes_nothing(monkeypatch):
    problem = neighbour_problem(150, 0.1)
    plain = gdpa.solve(problem, "sdr-low-rank", tol=1e-6)
    monkeypatch.setattr(switching, "_REORDER_FROM", 1)
    other = gdpa.solve(problem, "sdr-low-rank", tol=1e-6, x0=plain.scores)
    np.testing.assert_allclose(plain.scores, other.scores, atol=1e-2)
    assert plain.info["sdr_value"] == pytest.approx(other.info["sdr_value"], rel=1e-6)
    assert other.iterations < plain.iterations  # it started from the answer


def test_scores_are_the_apex_column_and_labels_their_signs():
    problem = neighbour_problem(100, 0.1)
    solution = gdpa.solve(problem, "sdr-low-rank")
    assert (np.abs(solution.scores) <= 1 + 1e-12).all()
    known = problem.labeled
    np.testing.assert_array_equal(solution.scores[known], problem.labels[known])
    np.testing.assert_array_equal(solution.labels, np.sign(solution.scores))


def test_random_hyperplanes_never_make_the_labels_worse():
    problem = max_cut(100, seed=1)
    plain = gdpa.solve(problem, "sdr-low-rank")
    rounded = gdpa.solve(problem, "sdr-low-rank", roundings=50)
    assert rounded.lower_bound <= rounded.objective <= plain.objective
    # Goemans and Williamson: the cut is at least 0.878 of the bound, in expectation; the best of
    # 50 is not below it.
    edges = -problem.P.sum() / 2
    assert (edges - rounded.objective / 2) >= 0.878 * (edges - rounded.lower_bound / 2)


def test_the_same_twice():
    problem = max_cut(80)
    a, b = (gdpa.solve(problem, "sdr-low-rank") for _ in range(2))
    np.testing.assert_array_equal(a.scores, b.scores)
    assert a.lower_bound == b.lower_bound


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_scale_of_the_weights_does_not_matter(scale):
    problem = neighbour_problem(80, 0.1)
    plain = gdpa.solve(problem, "sdr-low-rank")
    scaled = gdpa.solve(gdpa.GraphProblem(scale * problem.W, problem.labels), "sdr-low-rank")
    assert scaled.converged
    assert scaled.info["sdr_value"] == pytest.approx(scale * plain.info["sdr_value"], rel=1e-6)


@pytest.mark.parametrize(
    ("option", "value"),
    [("rank", 1), ("rank", 2.5), ("memory", 0), ("prove_below", -1), ("roundings", -1)],
)
def test_options_are_checked(option, value):
    with pytest.raises(ValueError, match=option):
        gdpa.solve(max_cut(5), "sdr-low-rank", **{option: value})
