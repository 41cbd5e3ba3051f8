"""Search, bounds and branch and bound on signed problems, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa import BinaryQuadratic
from gdpa.errors import ConvergenceWarning
from gdpa.solvers.basis_pursuit import gershgorin_bound
from gdpa.solvers.sdr_sphere import proved_bound
from gdpa.solvers.search import Annealer, Limits, color_classes, contract, crossover, search, tabu
from gdpa.solvers.triangle import triangle_bound


def best_value(problem: BinaryQuadratic) -> float:
    n = problem.n_nodes
    signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0
    if problem.hidden:
        signs = np.column_stack((signs, np.ones(2**n)))
    forms = np.einsum("ij,ij->i", signs @ problem.P.toarray(), signs)
    maximise = problem.sense == "maximise"
    return problem.constant + float(forms.max() if maximise else -forms.max())


def random_problem(rng: np.random.Generator, largest: int = 9) -> BinaryQuadratic:
    """Small weights or normal ones of any scale, sparse or dense, of all three kinds."""
    n = int(rng.integers(2, largest + 1))
    A = rng.integers(-3, 4, (n, n)).astype(float)
    if rng.random() < 0.5:
        A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-6, 7)
    A *= rng.random((n, n)) < rng.choice([0.3, 0.6, 1.0])
    S = np.triu(A, 1) + np.triu(A, 1).T
    kind = rng.integers(3)
    if kind == 0:
        return BinaryQuadratic.max_cut(S)
    if kind == 1:
        return BinaryQuadratic.qubo(A, constant=float(rng.integers(-3, 4)))
    return BinaryQuadratic.ising(rng.normal(size=n) if rng.random() < 0.5 else None, S)


METHODS = {
    "auto": ("auto", {}),
    "exact": ("branch-and-bound", {"effort": 0.05}),
    "sdr": ("search", {"effort": 0.05}),
    "triangle": ("search", {"effort": 0.05, "bound": "triangle"}),
    "gershgorin": ("search", {"effort": 0.05, "bound": "gershgorin"}),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_no_bound_is_beyond_the_optimum(name, seed):
    method, options = METHODS[name]
    rng = np.random.default_rng([seed, len(name)])
    for _ in range(15):
        problem = random_problem(rng)
        optimum = best_value(problem)
        solution = gdpa.solve(problem, method, **options)
        rounding = 1e-12 * (abs(optimum) + float(np.abs(problem.P.data).sum()))
        sign = 1.0 if solution.sense == "minimise" else -1.0
        assert solution.bound_status == "certified"
        assert sign * solution.bound <= sign * optimum + rounding
        assert sign * solution.value >= sign * optimum - rounding
        assert problem.value(solution.labels) == solution.value
        if solution.bound_kind == "optimum" and solution.converged:
            assert solution.value == pytest.approx(optimum, rel=1e-9, abs=1e6 * rounding)


@pytest.mark.parametrize("n", [13, 14, 15])
def test_branching_finds_the_optimum(n):
    # More than are enumerated at once.
    problem = BinaryQuadratic.qubo(np.random.default_rng(n).integers(-50, 51, (n, n)))
    solution = gdpa.solve(problem, "branch-and-bound")
    assert solution.info["optimal"]
    assert solution.value == solution.bound == best_value(problem)


def test_branch_and_bound_reports_the_gap_at_its_limit():
    rng = np.random.default_rng(0)
    W = np.triu(rng.integers(0, 2, (80, 80)), 1).astype(float)
    with pytest.warns(gdpa.errors.ConvergenceWarning, match="max_iter"):
        solution = gdpa.solve(BinaryQuadratic.max_cut(W + W.T), "branch-and-bound", max_iter=1)
    assert solution.bound > solution.value
    assert not solution.info["optimal"]


def spin_glass(n: int, seed: int = 0) -> sp.csr_array:
    """Couplings +-1 on a square torus."""
    rng = np.random.default_rng(seed)
    node = np.arange(n * n).reshape(n, n)
    i = np.concatenate((node.ravel(), node.ravel()))
    j = np.concatenate((np.roll(node, -1, 0).ravel(), np.roll(node, -1, 1).ravel()))
    w = rng.choice([-1.0, 1.0], i.size)
    return sp.csr_array(sp.coo_array((w, (i, j)), shape=(n * n, n * n)) + sp.coo_array((w, (j, i))))


def test_same_result_for_any_number_of_threads():
    problem = BinaryQuadratic.max_cut(spin_glass(20))
    one, two = (gdpa.solve(problem, "search", effort=0.2, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.bound == two.bound


def test_bound_beyond_dense_rows_is_certified_and_tight():
    problem = BinaryQuadratic.max_cut(spin_glass(50))
    solution = gdpa.solve(problem, "search", effort=0.02, bound="sdr")
    relaxation = -solution.info["sdr_value"]
    assert solution.bound_status == "certified"
    assert relaxation - 1e-9 * relaxation <= solution.bound <= 1.001 * relaxation
    assert solution.value <= solution.bound


def test_bound_beyond_a_factorisation_is_estimated_and_close(monkeypatch):
    problem = BinaryQuadratic.max_cut(spin_glass(20))
    proved = gdpa.solve(problem, "search", effort=0.02, bound="sdr")
    monkeypatch.setattr("gdpa.solvers.signed_search.can_prove", lambda P: False)
    solution = gdpa.solve(problem, "search", effort=0.02, bound="sdr")
    assert solution.bound_status == "estimated"
    assert solution.bound == pytest.approx(proved.bound, rel=0.02)
    assert solution.bound >= (1 - 1e-3) * proved.bound


def test_without_time_there_is_a_certified_bound_all_the_same():
    W = spin_glass(20)
    positive = W.data.clip(0).sum() / 2
    for bound in ("sdr", "cycles", "auto"):
        with pytest.warns(ConvergenceWarning, match="time limit"):
            solution = gdpa.solve(
                BinaryQuadratic.max_cut(W), "search", time_limit=1e-9, bound=bound
            )
        assert solution.bound_status == "certified"
        assert solution.value <= solution.bound
        # All degrees are even, so odd cycles round the bound down to a multiple of two.
        assert positive - 2 < solution.bound <= positive + 1e-6


def test_odd_cycles_prove_a_sparse_cut_by_default():
    problem = BinaryQuadratic.max_cut(spin_glass(12))
    sdr, auto, cycles = (
        gdpa.solve(problem, "search", effort=0.2, bound=b) for b in ("sdr", "auto", "cycles")
    )
    assert auto.bound_kind == cycles.bound_kind == "optimum"
    assert sdr.value <= auto.value == auto.bound == cycles.bound < sdr.bound
    assert auto.info["bound_method"] == cycles.info["bound_method"] == "cycles"
    for solution in (auto, cycles):
        assert gdpa.verify(problem, gdpa.prove(problem, solution)) == "optimal"


def test_dense_couplings_keep_the_relaxation_by_default():
    rng = np.random.default_rng(2)
    W = np.triu(rng.normal(size=(40, 40)), 1)
    problem = BinaryQuadratic.max_cut(W + W.T)
    auto, sdr = (gdpa.solve(problem, "search", effort=0.05, bound=b) for b in ("auto", "sdr"))
    assert auto.info["bound_method"] == "sdr"
    assert auto.bound == sdr.bound
    np.testing.assert_array_equal(auto.labels, sdr.labels)


def test_the_relaxation_is_used_where_it_is_better_than_odd_cycles():
    # A random graph has few short cycles.
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(600, 1)
    chosen = rng.choice(i.size, 1800, replace=False)
    W = sp.coo_array((np.ones(1800), (i[chosen], j[chosen])), shape=(600, 600)).tocsr()
    problem = BinaryQuadratic.max_cut(W + W.T)
    auto, sdr = (gdpa.solve(problem, "search", effort=0.05, bound=b) for b in ("auto", "sdr"))
    assert auto.info["bound_method"] == "sdr"
    assert auto.bound <= sdr.bound
    assert auto.bound_status == "certified"


def test_triangles_tighten_the_relaxation():
    rng = np.random.default_rng(1)
    W = np.triu(rng.integers(0, 2, (40, 40)), 1).astype(float)
    problem = BinaryQuadratic.max_cut(W + W.T)
    optimum = gdpa.solve(problem, "branch-and-bound").value
    sdr, triangle = (gdpa.solve(problem, "search", bound=b).bound for b in ("sdr", "triangle"))
    assert optimum <= triangle <= sdr
    assert triangle - optimum <= 0.5 * (sdr - optimum)


@pytest.mark.parametrize("bound", ["triangle", "gershgorin"])
def test_bounds_with_dense_matrices_are_refused_before_the_memory_ends(bound, monkeypatch):
    problem = BinaryQuadratic.max_cut(spin_glass(20))
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 112 * 400**2)
    with pytest.raises(MemoryError, match=r"400 variables.*0\.0179 GB.*bound='sdr'"):
        gdpa.solve(problem, "search", bound=bound)


def test_branch_and_bound_is_refused_before_the_memory_ends(monkeypatch):
    problem = BinaryQuadratic.max_cut(spin_glass(20))
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 112 * 400**2)
    with pytest.raises(MemoryError, match=r"'branch-and-bound' with 400 variables.*'search'"):
        gdpa.solve(problem, "branch-and-bound")


def test_a_time_limit_ends_the_triangles():
    rng = np.random.default_rng(0)
    W = np.triu(rng.integers(0, 2, (60, 60)), 1).astype(float)
    problem = BinaryQuadratic.max_cut(W + W.T)
    full, short = (
        gdpa.solve(problem, "search", bound="triangle", effort=0.01, time_limit=limit)
        for limit in (None, 1e-9)
    )
    assert short.value <= full.bound < short.bound
    assert short.bound_status == "certified"


def test_gershgorin_begins_with_the_trivial_bound_and_improves():
    rng = np.random.default_rng(2)
    P = np.triu(rng.normal(size=(12, 12)), 1)
    P += P.T
    bound, history = gershgorin_bound(P)
    assert history[0] == pytest.approx(np.abs(P).sum())
    assert bound < 0.9 * history[0]
    assert bound >= triangle_bound(P, triangles=False).bound * (1 - 1e-3)


def test_color_classes_have_no_couplings_inside():
    P = spin_glass(15)
    classes = color_classes(P, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(classes)), np.arange(P.shape[0]))
    for nodes in classes:
        assert P[nodes][:, nodes].nnz == 0


def test_contraction_contains_every_parent():
    P = spin_glass(12)
    rng = np.random.default_rng(0)
    parents = np.where(rng.random((144, 3)) < 0.5, -1, 1).astype(np.float32)
    C, Q = contract(P, parents)
    constant = parents[:, 0] @ (P @ parents[:, 0]) - Q.sum()
    for x in parents.T:
        z = np.sign(C.T @ x)
        np.testing.assert_array_equal(C @ z, x)
        assert x @ (P @ x) == pytest.approx(z @ (Q @ z) + constant)


def test_crossover_is_the_best_combination_of_the_parts_that_differ():
    P = spin_glass(6)
    rng = np.random.default_rng(0)
    S, T = (np.where(rng.random((36, 40)) < 0.5, -1, 1).astype(np.float32) for _ in range(2))
    T = np.where(rng.random(S.shape) < 0.75, S, T) * rng.choice([-1, 1], 40).astype(np.float32)
    found = crossover(P, S, T)
    values = [np.einsum("ir,ir->r", X, P @ X) for X in (S, T, found)]
    assert (values[2] >= np.maximum(values[0], values[1])).all()
    assert (values[2] > np.maximum(values[0], values[1])).any()
    same = S * T * np.where((S * T).sum(axis=0) < 0, -1, 1) > 0
    np.testing.assert_array_equal(found[same], S[same])


def test_descent_and_tabu_end_where_no_flip_gains():
    P = spin_glass(10)
    rng = np.random.default_rng(0)
    start = np.where(rng.random((100, 4)) < 0.5, -1, 1).astype(np.float32)
    for S in (
        Annealer(P, rng).descend(start),
        tabu(P.toarray(), start, 300, rng, Limits(1, 1, 1, 1)),
    ):
        assert (S * (P @ S) >= 0).all()


def test_search_improves_what_it_is_given_and_stops_in_time():
    P = spin_glass(10)
    start = search(P, limits=Limits(20, 200, 8, 3))
    again = search(P, limits=Limits(1, 1, 4, 2, deadline=0.0), starts=start[:, None])
    assert again @ (P @ again) >= start @ (P @ start)


def test_a_callback_stops_the_search():
    problem = BinaryQuadratic.max_cut(spin_glass(12))
    with pytest.warns(gdpa.errors.ConvergenceWarning, match="callback"):
        solution = gdpa.solve(problem, "search", effort=0.1, callback=lambda entry: True)
    assert len(solution.history) == 1
    assert solution.value <= solution.bound


def test_limits_of_a_search_do_not_keep_auto_from_the_minimum_cut():
    problem = BinaryQuadratic(abs(spin_glass(30)))
    solution = gdpa.solve(problem, time_limit=60, effort=2.0, n_jobs=2)
    assert (solution.method, solution.bound_kind) == ("min-cut", "optimum")
    assert gdpa.solve(problem, time_limit=60, bound="none", effort=0.01).method == "search"
    for others in ({}, {"bound": "none"}):
        with pytest.raises(ValueError, match="time_limit"):
            gdpa.solve(problem, time_limit=-1, **others)


def test_progress_and_starts_are_in_the_units_of_the_problem():
    rng = np.random.default_rng(3)
    problem = BinaryQuadratic.qubo(rng.integers(-9, 10, (70, 70)), constant=1000.0)
    seen = []
    solution = gdpa.solve(problem, "search", callback=lambda entry: seen.append(entry["objective"]))
    assert min(seen) == pytest.approx(solution.value)
    again = gdpa.solve(problem, "search", x0=solution.labels, time_limit=1e-9, bound="none")
    assert again.value == solution.value


def test_an_indefinite_dual_point_is_raised_until_it_is_proved():
    form = BinaryQuadratic(spin_glass(8)).reduced()
    bound, s = proved_bound(form, np.full(64, 0.5))
    assert np.linalg.eigvalsh(np.diag(s) - form.P.toarray())[0] >= 0
    assert bound <= -s.sum() * (1 - 1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"bound": "sdp"}, "sdr"), ({"time_limit": 0}, "time_limit"), ({"effort": -1}, "effort")],
)
def test_bad_options_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        gdpa.solve(BinaryQuadratic.max_cut(spin_glass(3)), "search", **options)


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_repelling_weights_in_a_graph_problem(kind):
    rng = np.random.default_rng(0)
    for _ in range(10):
        n = int(rng.integers(3, 8))
        W = np.triu(rng.integers(-3, 4, (n, n)), 1).astype(float)
        labels = np.zeros(n, dtype=int)
        labels[0] = rng.choice([-1, 1])
        problem = gdpa.GraphProblem(W + W.T, labels, laplacian=kind)
        signs = 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
        best = min(problem.objective(x) for x in signs if x[0] == labels[0])
        solution = gdpa.solve(problem)
        assert solution.objective == pytest.approx(best, abs=1e-9)
        assert solution.lower_bound <= best + 1e-9
        assert problem.balance.balanced == gdpa.graph.balance(W + W.T).balanced
        assert np.linalg.eigvalsh(problem.L.toarray())[0] >= -1e-9


def test_methods_for_nonnegative_weights_refuse_repelling_ones():
    problem = gdpa.GraphProblem([[0, -1], [-1, 0]], [1, 0])
    with pytest.raises(gdpa.errors.UnsupportedProblemError, match="branch-and-bound"):
        gdpa.solve(problem, "harmonic")
    assert gdpa.solve(problem).labels.tolist() == [1, -1]


def test_a_problem_without_couplings_has_value_zero():
    solution = gdpa.solve(gdpa.BinaryQuadratic.max_cut(np.zeros((5, 5))), "search")
    assert solution.value == solution.bound == 0.0


def test_couplings_too_small_for_the_relaxation_are_refused():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = -3e-304
    W[2, 3] = W[3, 2] = 1e-305
    with pytest.raises(ValueError, match="largest coupling is"):
        gdpa.solve(gdpa.BinaryQuadratic.max_cut(W), "search")


@pytest.mark.parametrize("factor", [1e9, 1e11, 1e13])
def test_a_huge_coupling_does_not_hide_the_others(factor):
    # Without the first pair, which no cut separates, the best cut has weight 2.
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = -factor
    W[2, 3] = W[3, 2] = 2.0
    W[3, 4] = W[4, 3] = -1.0
    solution = gdpa.solve(gdpa.BinaryQuadratic.max_cut(W), "branch-and-bound")
    assert solution.value == 2.0


def test_a_search_that_runs_out_of_time_has_not_converged():
    rng = np.random.default_rng(0)
    W = np.triu(rng.standard_normal((80, 80)), 1)
    problem = gdpa.BinaryQuadratic.max_cut(W + W.T)
    with pytest.warns(UserWarning, match="stopped by the time limit"):
        solution = gdpa.solve(problem, "search", time_limit=1e-6)
    assert not solution.converged
    assert "time limit" in solution.message
    assert gdpa.solve(problem, "search", effort=0.01).converged
