"""The relaxation by the tailored interior point, against brute force and general solvers."""

from __future__ import annotations

import itertools

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import ConvergenceWarning, UnsupportedProblemError
from gdpa.solvers import sdr_form
from gdpa.solvers.conic import sdr_lmi, solve_clarabel
from gdpa.solvers.sdr_form import dense_form, with_unit_diagonal
from gdpa.solvers.sdr_interior_point import interior_point


def random_problem(n, seed, *, laplacian="combinatorial", bias=False, labeled=0.4, density=0.4):
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < density) * rng.uniform(0.1, 1.0, (n, n)), 1)
    W[np.arange(n - 1), np.arange(1, n)] += 0.1  # connected
    labels = np.zeros(n)
    m = max(2, round(labeled * n))
    chosen = rng.permutation(n)[:m]
    labels[chosen] = rng.choice([-1, 1], m)
    labels[chosen[:2]] = 1, -1
    h = rng.normal(size=n) * (rng.random(n) < 0.5) if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian)


def signed_form(n, seed):
    P = np.random.default_rng(seed).normal(size=(n, n))
    return gdpa.BinaryQuadratic(P + P.T, anchor=seed % n)


def brute_force(problem):
    form = problem.reduced()
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=form.P.shape[0] - 1)))
    signs = np.insert(signs, form.apex, 1.0, axis=1)
    return form.constant - float(np.einsum("ki,ki->k", signs, (form.P @ signs.T).T).max())


def full_form_value(problem):
    """min <C, M>, M = [X x; x' 1] psd, M_ii = 1, x_l = label_l: the paper's SDR, by Clarabel."""
    n = problem.n_nodes + 1
    C = np.zeros((n, n))
    C[:-1, :-1] = problem.L.toarray()
    C[:-1, -1] = C[-1, :-1] = -problem.bias
    j, i = np.tril_indices(n)  # upper triangle, column by column
    c = C[i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    diagonal = np.flatnonzero(i == j)
    known = [int(np.flatnonzero((i == k) & (j == n - 1))[0]) for k in problem.labeled]
    rows = np.concatenate([diagonal, known]).astype(int)
    value = np.concatenate([np.ones(n), problem.labels[problem.labeled] * np.sqrt(2.0)])
    equalities = sp.csc_matrix(
        (np.ones(rows.size), (np.arange(rows.size), rows)), shape=(rows.size, c.size)
    )
    A = sp.vstack([equalities, -sp.identity(c.size)], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(rows.size), clarabel.PSDTriangleConeT(n)]
    b = np.concatenate([value, np.zeros(c.size)])
    return clarabel.DefaultSolver(sp.csc_matrix((c.size, c.size)), c, A, b, cones, settings).solve()


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_reduced_form_has_the_value_of_the_papers_full_form(laplacian, bias, seed):
    problem = random_problem(14, seed, laplacian=laplacian, bias=bias)
    full = full_form_value(problem)
    assert str(full.status) in ("Solved", "AlmostSolved")
    reduced = gdpa.solve(problem, "sdr-interior-point", tol=1e-9).info["sdr_value"]
    # The full form has no interior (x_l = label_l forces a singular X_ll), which limits Clarabel.
    assert reduced == pytest.approx(full.obj_val, rel=1e-5, abs=1e-5)


@given(st.integers(0, 10_000), st.integers(3, 20), st.booleans(), st.booleans())
def test_value_lies_between_certificate_and_optimum(seed, n, normalized, bias):
    laplacian = "normalized" if normalized else "combinatorial"
    problem = random_problem(n, seed, laplacian=laplacian, bias=bias)
    optimum = brute_force(problem)
    solution = gdpa.solve(problem, "sdr-interior-point")
    slack = 1e-9 * max(1.0, abs(optimum))
    assert solution.converged
    assert solution.bound_status == "certified"
    # Solved without the relaxation where evidence and labels speak for one class only.
    assert solution.lower_bound <= solution.info.get("sdr_value", optimum) + slack
    assert solution.lower_bound <= optimum + slack
    assert solution.objective >= optimum - slack


@pytest.mark.parametrize("seed", range(6))
def test_brute_force_on_fourteen_unlabelled_nodes(seed):
    problem = random_problem(20, seed, labeled=0.3, bias=bool(seed % 2))
    assert problem.unlabeled.size == 14
    optimum = brute_force(problem)
    solution = gdpa.solve(problem, "sdr-interior-point")
    assert solution.lower_bound <= optimum + 1e-9
    assert solution.objective >= optimum - 1e-9
    # X_ii = 1 psd relaxes signs, so its value is not above the optimum, up to the gap.
    assert solution.info["sdr_value"] <= optimum + 1e-5 * abs(optimum)


def by_clarabel(problem):
    """Value, bound and matrix of the relaxation by a general conic solver."""
    form = dense_form(problem)
    result = solve_clarabel(sdr_lmi(form.P), tol=1e-9, max_iter=200)
    X = with_unit_diagonal(result.X)
    value, bound, _ = form.values(float((form.P * X).sum()), float(result.x.sum())).values()
    return value, bound, X


@pytest.mark.parametrize("seed", range(6))
def test_signed_binary_quadratic(seed):
    form = signed_form(11, seed)
    optimum = brute_force(form)
    solution = gdpa.solve(form, "sdr-interior-point")
    assert solution.bound_status == "certified"
    assert solution.lower_bound <= optimum + 1e-9
    assert solution.objective >= optimum - 1e-9
    assert solution.labels[form.anchor] == 1
    assert solution.info["sdr_value"] == pytest.approx(by_clarabel(form)[0], rel=2e-6)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize(("n", "seed"), [(10, 0), (25, 1), (40, 2)])
def test_clarabel_agrees(laplacian, n, seed):
    problem = random_problem(n, seed, laplacian=laplacian, bias=True)
    own = gdpa.solve(problem, "sdr-interior-point", tol=1e-9, keep_matrix=True)
    value, bound, X = by_clarabel(problem)
    assert own.info["sdr_value"] == pytest.approx(value, rel=1e-6)
    assert own.lower_bound == pytest.approx(bound, rel=1e-6)
    assert own.info["X"] == pytest.approx(X, abs=1e-3)


@pytest.mark.parametrize("n", [50, 200])
def test_certificate_is_tight_and_never_above(n):
    problem = random_problem(n, n, density=0.1, labeled=0.2)
    solution = gdpa.solve(problem, "sdr-interior-point")
    value = solution.info["sdr_value"]
    assert solution.lower_bound <= value
    assert value - solution.lower_bound <= 1e-5 * abs(value)


def test_certified_dual_is_feasible_in_exact_terms():
    problem = random_problem(30, 5)
    solution = gdpa.solve(problem, "sdr-interior-point")
    form = problem.reduced()
    s = solution.dual["s"]
    Z = np.diag(s) - form.P.toarray()
    assert np.linalg.eigvalsh(Z)[0] >= -1e-13 * s.sum()
    assert solution.lower_bound == pytest.approx(form.constant - s.sum(), rel=1e-10)


def test_primal_is_feasible_and_complementary():
    problem = random_problem(30, 6)
    solution = gdpa.solve(problem, "sdr-interior-point", tol=1e-9, keep_matrix=True)
    X = solution.info["X"]
    form = problem.reduced()
    assert X.diagonal() == pytest.approx(np.ones(X.shape[0]), abs=1e-10)
    assert np.linalg.eigvalsh(X)[0] > 0
    Z = np.diag(solution.dual["s"]) - form.P.toarray()
    assert np.abs(Z @ X).max() < 1e-4
    assert solution.scores[form.nodes] == pytest.approx(np.delete(X[:, form.apex], form.apex))
    assert 1.0 <= solution.info["effective_rank"] <= X.shape[0]


def test_every_step_brackets_the_value():
    problem = random_problem(40, 7)
    solution = gdpa.solve(problem, "sdr-interior-point", tol=1e-8)
    value = solution.info["sdr_value"]
    slack = 1e-6 * abs(value)
    assert len(solution.history) == solution.iterations
    for entry in solution.history:
        assert entry["dual"] - slack <= value <= entry["primal"] + slack
        assert entry["gap"] == pytest.approx(entry["primal"] - entry["dual"])
    duals = [entry["dual"] for entry in solution.history]
    assert duals[-1] == max(duals)


@pytest.mark.parametrize("factor", [2.0**-900, 1e-200, 1e-12, 1e12, 1e200])
def test_scale_of_the_weights_does_not_matter(factor):
    problem = random_problem(20, 8)
    scaled = gdpa.GraphProblem(problem.W * factor, problem.labels)
    one = gdpa.solve(problem, "sdr-interior-point")
    other = gdpa.solve(scaled, "sdr-interior-point")
    assert other.scores == pytest.approx(one.scores, abs=1e-6)
    assert other.info["sdr_value"] / factor == pytest.approx(one.info["sdr_value"], rel=1e-6)


def test_tight_relaxation_finds_the_optimum():
    # Two cliques, one edge between them, one label each: rank one, and the bound closes the gap.
    W = np.kron(np.eye(2), np.ones((6, 6)))
    W[5, 6] = W[6, 5] = 0.1
    labels = np.zeros(12)
    labels[[0, 11]] = 1, -1
    solution = gdpa.solve(gdpa.GraphProblem(W, labels), "sdr-interior-point", tol=1e-9)
    assert solution.labels.tolist() == [1] * 6 + [-1] * 6
    assert solution.relative_gap < 1e-6
    assert solution.info["effective_rank"] == pytest.approx(1.0, abs=1e-3)


def test_weights_over_many_orders_of_magnitude():
    rng = np.random.default_rng(0)
    W = np.exp(-rng.uniform(0.0, 600.0, (15, 15)))
    W = np.triu(W, 1) + np.triu(W, 1).T
    labels = np.zeros(15)
    labels[:6] = 1, -1, 1, -1, 1, -1
    for laplacian in ("combinatorial", "normalized"):
        problem = gdpa.GraphProblem(W, labels, laplacian=laplacian)
        solution = gdpa.solve(problem, "sdr-interior-point")
        assert solution.bound_status == "certified"
        assert solution.lower_bound <= brute_force(problem) * (1 + 1e-9)


def test_early_stop_returns_a_valid_point():
    problem = random_problem(20, 9)
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        early = gdpa.solve(problem, "sdr-interior-point", max_iter=2)
    full = gdpa.solve(problem, "sdr-interior-point", tol=1e-9)
    assert not early.converged
    assert early.iterations == 2
    assert early.bound_status == "certified"
    assert early.lower_bound < full.lower_bound
    assert early.info["sdr_value"] > full.info["sdr_value"]


def test_callback_stops():
    problem = random_problem(20, 9)
    with pytest.warns(ConvergenceWarning, match="callback"):
        solution = gdpa.solve(
            problem, "sdr-interior-point", callback=lambda entry: entry["gap"] < 1.0
        )
    assert not solution.converged
    assert solution.history[-1]["gap"] < 1.0
    assert all(entry["gap"] >= 1.0 for entry in solution.history[:-1])


def test_unattainable_tolerance_is_reported():
    problem = random_problem(20, 9)
    with pytest.warns(ConvergenceWarning):
        solution = gdpa.solve(problem, "sdr-interior-point", tol=1e-300)
    assert not solution.converged
    # What was reached is as good as double precision allows.
    assert solution.info["sdr_value"] - solution.lower_bound < 1e-8 * solution.info["sdr_value"]


def test_row_of_zeros_keeps_the_iteration_inside():
    P = np.zeros((4, 4), order="F")
    P[0, 1] = P[1, 0] = 1.0
    found = interior_point(P, tol=1e-8)
    assert found.converged
    assert found.X[0, 1] == pytest.approx(1.0, abs=1e-6)
    assert found.x.sum() == pytest.approx(2.0, abs=1e-6)


def test_scaled_form_is_exact():
    problem = random_problem(12, 3)
    form = dense_form(problem)
    assert np.array_equal(form.P * form.scale, problem.reduced().P.toarray())


def test_too_large_for_memory_is_refused_before_allocating(monkeypatch):
    n = 200_000
    path = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    labels = np.zeros(n)
    labels[[0, -1]] = 1, -1
    problem = gdpa.GraphProblem(path, labels)
    monkeypatch.setattr(sdr_form, "available_memory", lambda: 2**33)
    monkeypatch.setattr(gdpa.GraphProblem, "reduced", lambda self: pytest.fail("allocated"))
    with pytest.raises(UnsupportedProblemError, match=r"sdr-low-rank.*min-cut"):
        gdpa.solve(problem, "sdr-interior-point")


def test_signed_form_too_large_is_not_sent_to_min_cut(monkeypatch):
    form = signed_form(1000, 0)
    monkeypatch.setattr(sdr_form, "available_memory", lambda: 2**20)
    with pytest.raises(UnsupportedProblemError) as caught:
        gdpa.solve(form, "sdr-interior-point")
    assert "sdr-low-rank" in str(caught.value)
    assert "min-cut" not in str(caught.value)


def test_zero_couplings():
    # The only unlabelled node hears +1 and -1 alike: no coupling is left in the reduced form.
    problem = gdpa.GraphProblem([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [1, 0, -1])
    solution = gdpa.solve(problem, "sdr-interior-point")
    assert solution.objective == 4.0
    assert solution.lower_bound == pytest.approx(4.0, abs=1e-12)
    assert solution.bound_status == "certified"
    assert solution.scores[1] == 0.0
