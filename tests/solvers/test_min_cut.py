"""The exact cut against brute force and another flow code, and its certified bounds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import ConvergenceWarning, UnsupportedProblemError
from gdpa.solvers import min_cut, switching


def brute_force(problem) -> float:
    form = problem.reduced()
    n = form.P.shape[0]
    others = np.delete(np.arange(n), form.apex)
    X = np.ones((2 ** (n - 1), n))
    X[:, others] = ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)) & 1) * 2 - 1
    return float((form.constant - np.einsum("ij,ij->i", X @ form.P.toarray(), X)).min())


def random_weights(rng, n, density=0.5):
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return upper + upper.T


def random_problem(seed: int, n_unlabeled: int = 14) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    n = n_unlabeled + 4
    labels = np.zeros(n)
    labels[rng.permutation(n)[:4]] = 1, -1, 1, -1
    return gdpa.GraphProblem(
        random_weights(rng, n),
        labels,
        bias=rng.normal(size=n) if seed % 2 else None,
        laplacian="normalized" if seed % 3 == 0 else "combinatorial",
    )


@pytest.mark.parametrize("seed", range(12))
def test_equals_brute_force_exactly(seed):
    problem = random_problem(seed)
    solution = gdpa.solve(problem, "min-cut")
    optimum = brute_force(problem)
    assert solution.objective == pytest.approx(optimum, rel=1e-13, abs=1e-12)
    assert solution.objective == problem.objective(solution.labels)
    assert solution.bound_status == "certified"
    assert solution.lower_bound <= solution.objective
    assert solution.gap <= 1e-8 * abs(optimum)
    known = problem.labeled
    np.testing.assert_array_equal(solution.labels[known], problem.labels[known])


@given(
    n=st.integers(2, 8),
    seed=st.integers(0, 10**6),
    density=st.sampled_from([0.2, 0.6, 1.0]),
    whole=st.booleans(),
)
def test_equals_brute_force_on_forms_with_an_anchor_of_any_sign(n, seed, density, whole):
    # Whole numbers bring ties; low densities bring isolated variables.
    rng = np.random.default_rng(seed)
    P = random_weights(rng, n, density)
    P[0] = P[:, 0] = np.where(P[0] > 0, rng.normal(size=n), 0.0)
    P[0, 0] = 0.7
    form = gdpa.BinaryQuadratic(np.round(3 * P) if whole else P)
    solution = gdpa.solve(form, "min-cut")
    assert solution.objective == pytest.approx(brute_force(form), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_takes_a_signed_form_that_switching_makes_nonnegative(seed):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], 10)
    W = random_weights(rng, 10)
    W[0] = W[:, 0] = np.where(np.arange(10) > 0, rng.normal(size=10), 0.0)
    form = gdpa.BinaryQuadratic(W * np.outer(signs, signs))
    assert form.signed
    solution = gdpa.solve(form, "min-cut")
    assert solution.objective == pytest.approx(brute_force(form), rel=1e-13)
    plain = gdpa.solve(gdpa.BinaryQuadratic(W), "min-cut")
    assert solution.objective == pytest.approx(plain.objective, rel=1e-13)


def test_refuses_a_frustrated_form_and_names_the_methods_that_can():
    P = np.zeros((5, 5))
    P[1, 2] = P[2, 3] = P[1, 3] = -1.0  # a triangle that cannot be satisfied
    P[0, 4] = 1.0
    with pytest.raises(UnsupportedProblemError, match="sdr-low-rank") as caught:
        gdpa.solve(gdpa.BinaryQuadratic(P + P.T), "min-cut")
    assert "min-cut," not in str(caught.value)


def test_agrees_with_another_flow_code_on_a_neighbour_graph():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    W = gdpa.graph.neighbor_graph(X, 6)
    labels = np.zeros(300)
    labels[:20] = np.where(X[:20, 0] > 0, 1, -1)
    problem = gdpa.GraphProblem(W, labels)
    graph = nx.DiGraph()
    for i, j, w in zip(*W.tocoo().coords, W.tocoo().data, strict=True):
        graph.add_edge(int(i), int(j), capacity=float(w))
    for i in range(20):
        edge = ("s", i) if labels[i] > 0 else (i, "t")
        graph.add_edge(*edge)  # no capacity: unlimited
    flow, _ = nx.minimum_cut(graph, "s", "t")
    # x'Lx counts (x_i - x_j)^2 = 4 once per edge cut.
    assert gdpa.solve(problem, "min-cut").objective == pytest.approx(4.0 * flow, rel=1e-9)


def test_coarse_units_are_refined_and_every_bound_holds(monkeypatch):
    monkeypatch.setattr(min_cut, "_LARGEST", 7)  # capacities of at most 7 units
    problem = random_problem(5)
    optimum = brute_force(problem)
    solution = gdpa.solve(problem, "min-cut", max_iter=40)
    bounds = np.array([entry["bound"] for entry in solution.history])
    assert len(bounds) > 3
    assert (np.diff(bounds) >= -1e-12).all()
    assert (bounds <= optimum + 1e-12).all()
    assert bounds[0] < optimum - 1e-3  # the first pass was coarse indeed
    assert solution.objective == pytest.approx(optimum, rel=1e-13)
    assert solution.gap <= 1e-8 * optimum


def test_reports_what_the_rounding_of_capacities_may_have_cost(monkeypatch):
    monkeypatch.setattr(min_cut, "_LARGEST", 50)
    problem = random_problem(7)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        solution = gdpa.solve(problem, "min-cut", max_iter=1)
    optimum = brute_force(problem)
    assert not solution.converged
    assert solution.lower_bound <= optimum <= solution.objective + 1e-12
    gap = solution.info["rounding_gap"]
    form = problem.reduced()
    x = np.append(solution.labels[form.nodes], 1)
    rows, columns = sp.triu(form.P).nonzero()
    cut_edges = np.count_nonzero(x[rows] * np.sign(form.P[rows, columns]) != x[columns])
    assert 0 < gap <= 4.0 * solution.info["unit"] * (cut_edges + 1)


def test_huge_evidence_does_not_coarsen_the_units():
    rng = np.random.default_rng(0)
    bias = rng.normal(size=12)
    bias[3], bias[4] = 1e14, -1e14
    weak = np.where(np.abs(bias) > 1e3, np.sign(bias) * 100.0, bias)
    W = random_weights(rng, 12)
    strong = gdpa.solve(gdpa.GraphProblem(W, np.zeros(12), bias=bias), "min-cut")
    reference = gdpa.solve(gdpa.GraphProblem(W, np.zeros(12), bias=weak), "min-cut")
    np.testing.assert_array_equal(strong.labels, reference.labels)
    assert strong.info["unit"] < 1e-7


def test_ties_go_to_the_majority():
    path = sp.diags_array([np.ones(4), np.ones(4)], offsets=[-1, 1])
    up = gdpa.solve(gdpa.GraphProblem(path, [1, 0, 0, 0, -1]), "min-cut")
    assert up.labels.tolist() == [1, 1, 1, 1, -1]
    two = sp.block_diag([path, [[0, 1], [1, 0]]], format="csr")
    down = gdpa.solve(gdpa.GraphProblem(two, [1, 0, 0, 0, -1, -1, 0]), "min-cut")
    assert down.labels.tolist() == [1, -1, -1, -1, -1, -1, -1]


def test_numbering_of_large_graphs_changes_nothing(monkeypatch):
    problem = random_problem(8)
    plain = gdpa.solve(problem, "min-cut")
    monkeypatch.setattr(switching, "_REORDER_FROM", 1)
    other = gdpa.solve(problem, "min-cut")
    np.testing.assert_array_equal(plain.labels, other.labels)


def test_callback_stops_with_a_valid_bound(monkeypatch):
    monkeypatch.setattr(min_cut, "_LARGEST", 7)
    problem = random_problem(9)
    with pytest.warns(ConvergenceWarning, match="callback"):
        solution = gdpa.solve(problem, "min-cut", callback=lambda entry: True)
    assert solution.iterations == 1
    assert solution.lower_bound <= brute_force(problem) <= solution.objective + 1e-12


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e200])
def test_scale_of_the_weights_does_not_matter(scale):
    rng = np.random.default_rng(4)
    W = random_weights(rng, 12)
    labels = np.zeros(12)
    labels[:2] = 1, -1
    plain = gdpa.solve(gdpa.GraphProblem(W, labels), "min-cut")
    scaled = gdpa.solve(gdpa.GraphProblem(scale * W, labels), "min-cut")
    np.testing.assert_array_equal(plain.labels, scaled.labels)
    assert scaled.objective == pytest.approx(scale * plain.objective, rel=1e-12)


def exact_cost(W, bias, labels) -> Fraction:
    """Objective up to a constant, in whole numbers: 4 per unit of weight cut, 2 of evidence."""
    total = Fraction(0)
    for i, j in zip(*np.nonzero(np.triu(W)), strict=True):
        if labels[i] != labels[j]:
            total += 4 * Fraction(W[i, j])
    return total - 2 * sum(Fraction(b) * int(x) for b, x in zip(bias, labels, strict=True))


@pytest.mark.filterwarnings("ignore::gdpa.errors.UnreachedWarning")
@pytest.mark.parametrize("decades", [3, 10, 20, 40, 100, 250])
def test_optimal_for_weights_over_many_decades(decades):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        W = 10.0 ** rng.uniform(-decades, decades, (n, n)) * (rng.random((n, n)) < 0.6)
        W = np.triu(W, 1) + np.triu(W, 1).T
        bias = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-decades, decades, n)
        bias *= seed % 2
        problem = gdpa.GraphProblem(W, [1, -1, *[0] * (n - 2)], bias=bias)
        certificate = gdpa.certify(problem, gdpa.solve(problem, "min-cut").labels)
        assert certificate.exact
        found = exact_cost(W, bias, certificate.optimal_labels)
        best = min(
            exact_cost(W, bias, (1, -1, *rest)) for rest in itertools.product((-1, 1), repeat=n - 2)
        )
        x = certificate.optimal_labels
        against = sum(Fraction(b) for b in np.abs(bias[bias * x < 0]))
        cut = sum(Fraction(w) for w in W[x[:, None] < x])
        assert 0 <= found - best <= Fraction(4, 10**9) * (cut + against)
        assert certificate.lower_bound <= float(best) + 1e-9 * abs(float(best))


def test_evidence_that_rounding_cancels_is_not_called_optimal():
    # Node 2 is drawn by 1e20 to either side and by 1 to the plus: the sum does not see the 1.
    W = np.zeros((4, 4))
    W[0, 2], W[1, 2], W[2, 3] = 1e20, 1e20, 1.0
    problem = gdpa.GraphProblem(W + W.T, [1, -1, 0, 1])
    with pytest.warns(ConvergenceWarning, match="cancel"):
        certificate = gdpa.certify(problem, [1, -1, -1, 1])
    assert not certificate.exact
    assert certificate.optimal_labels is None
