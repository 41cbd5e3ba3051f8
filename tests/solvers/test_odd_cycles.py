"""Odd cycles: separation, exact bounds, branches and proofs of optimality, against brute force."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa import BinaryQuadratic
from gdpa.errors import ConvergenceWarning
from gdpa.problem.cut_form import CutForm, exact_cut_form
from gdpa.solvers.cycle_program import HighsProgram, ScipyProgram
from gdpa.solvers.cycle_tree import CycleTree
from gdpa.solvers.odd_cycles import Cycle, EdgeGraph, Separator, violation


def grid(rows: int, columns: int, seed: int, *, torus: bool = False) -> sp.csr_array:
    """Couplings +-1 on a grid; on a plane unless it is a torus."""
    rng = np.random.default_rng(seed)
    node = np.arange(rows * columns).reshape(rows, columns)
    down = (node, np.roll(node, -1, 0)) if torus else (node[:-1], node[1:])
    right = (node, np.roll(node, -1, 1)) if torus else (node[:, :-1], node[:, 1:])
    i, j = (np.concatenate((a.ravel(), b.ravel())) for a, b in zip(down, right, strict=True))
    w = rng.choice([-1.0, 1.0], i.size)
    upper = sp.coo_array((w, (i, j)), shape=(node.size, node.size))
    return sp.csr_array(upper + upper.T)


def edge_graph(W: sp.csr_array) -> tuple[EdgeGraph, np.ndarray]:
    upper = sp.triu(W, 1).tocoo()
    i, j = (ends.astype(np.intp) for ends in upper.coords)
    return EdgeGraph(W.shape[0], i, j), upper.data


def every_cycle(graph: EdgeGraph) -> list[Cycle]:
    """All odd-cycle inequalities of a small graph."""
    found = []
    for size in range(3, graph.n + 1):
        for nodes in itertools.permutations(range(graph.n), size):
            if nodes[0] != min(nodes) or nodes[1] > nodes[-1]:
                continue
            pairs = list(itertools.pairwise([*nodes, nodes[0]]))
            if any(v not in graph.number[u] for u, v in pairs):
                continue
            edges = tuple(graph.number[u][v] for u, v in pairs)
            for odd in itertools.product([False, True], repeat=size):
                if sum(odd) % 2:
                    found.append(Cycle(nodes, odd, edges))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_separation_finds_a_violated_cycle_exactly_if_there_is_one(seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((6, 6)) < 0.6, 1).astype(float)
    graph, _ = edge_graph(sp.csr_array(W + W.T))
    cycles = every_cycle(graph)
    for _ in range(20):
        x = rng.choice([0.0, 1.0, 0.5, 0.3, 0.9], graph.m)
        worst = max((violation(cycle, x.tolist()) for cycle in cycles), default=-1.0)
        found = Separator(graph).find(x, most=100)
        assert bool(found) == (worst > 1e-4)
        for cycle in found:
            assert violation(cycle, x.tolist()) > 0
            assert sum(cycle.odd) % 2 == 1
            inside = sum(v in graph.number[u] for u, v in itertools.combinations(cycle.nodes, 2))
            assert inside == len(cycle.nodes)  # no chord


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_a_planar_graph_is_its_optimum(seed):
    form = exact_cut_form("max-cut", grid(9, 11, seed))
    tree = CycleTree(form, max_nodes=1)
    tree.grow()
    assert tree.optimal
    assert tree.nodes <= 1


@pytest.mark.parametrize("seed", range(3))
def test_real_weights_on_planar_graphs_need_no_branch(seed):
    rng = np.random.default_rng(seed)
    W = grid(8, 9, seed)
    noise = np.triu(rng.normal(size=W.shape), 1)
    W = sp.csr_array(W.multiply(noise + noise.T))
    tree = CycleTree(exact_cut_form("max-cut", W), max_nodes=1)
    tree.grow()
    total = sum(abs(weight) for weight in tree.form.weights)
    assert 0 <= tree.bound - tree.cut <= Fraction(1e-9) * total


@pytest.mark.parametrize("seed", range(2))
def test_interior_points_and_vertices_prove_the_same_torus(seed, monkeypatch):
    form = exact_cut_form("max-cut", grid(10, 10, seed, torus=True))
    bounds = []
    for interior in (True, False):
        monkeypatch.setattr(HighsProgram, "has_interior", interior)
        tree = CycleTree(form, max_nodes=200)
        tree.grow()
        assert tree.optimal
        bounds.append(form.rounded_down(tree.bound))
    assert bounds[0] == bounds[1]


def test_a_stopped_tree_keeps_what_it_has_proved():
    form = exact_cut_form("max-cut", grid(12, 12, 0, torus=True))
    tree = CycleTree(form)
    top = tree.bound
    rounds = itertools.count()

    def stop(nodes, bound):
        if next(rounds) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tree.grow(stop)
    whole = CycleTree(form)
    whole.grow()
    assert whole.bound <= tree.bound < top


def test_growing_stops_where_another_bound_is_better():
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(100, 1)
    chosen = rng.choice(i.size, 300, replace=False)
    upper = sp.coo_array((np.ones(300), (i[chosen], j[chosen])), shape=(100, 100))
    form = exact_cut_form("max-cut", sp.csr_array(upper + upper.T))
    free = CycleTree(form, max_pivots=2000)
    free.grow()
    tree = CycleTree(form, max_pivots=2000, useful=Fraction(150))
    tree.grow()
    assert tree.message == "another bound is better"
    assert tree.rounds < free.rounds
    assert tree.bound >= free.bound > 150


@pytest.mark.parametrize("seed", range(4))
def test_small_tori_are_solved(seed):
    W = grid(4, 4, seed, torus=True)
    problem = BinaryQuadratic.max_cut(W)
    solution = gdpa.solve(problem, "branch-and-cut", effort=0.05)
    signs = 2 * ((np.arange(2**15)[:, None] >> np.arange(16)) & 1) - 1
    cuts = (W.sum() - np.einsum("ij,ij->i", signs @ W.toarray(), signs)) / 4
    assert solution.value == solution.bound == cuts.max()
    assert solution.bound_kind == "optimum"


def test_branches_close_the_gap_of_a_complete_graph():
    rng = np.random.default_rng(0)
    W = np.triu(rng.choice([-1.0, 1.0], (14, 14)), 1)
    problem = BinaryQuadratic.max_cut(W + W.T)
    solution = gdpa.solve(problem, "branch-and-cut", effort=0.05)
    exact = gdpa.solve(problem, "branch-and-bound", effort=0.05)
    assert solution.info["nodes"] > 1
    assert solution.value == solution.bound == exact.value


def test_limits_leave_a_certified_gap():
    rng = np.random.default_rng(3)
    W = np.triu(rng.choice([-1.0, 1.0], (30, 30)), 1)
    problem = BinaryQuadratic.max_cut(W + W.T)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        solution = gdpa.solve(problem, "branch-and-cut", effort=0.05, max_iter=1)
    assert solution.bound > solution.value
    assert solution.bound_status == "certified"
    assert gdpa.verify(problem, gdpa.prove(problem, solution)).startswith("within")


def test_a_callback_stops_the_cycles():
    problem = BinaryQuadratic.max_cut(grid(12, 12, 0, torus=True))
    entries = []

    def stop(entry):
        entries.append(entry)
        return "nodes" in entry

    with pytest.warns(ConvergenceWarning, match="callback"):
        solution = gdpa.solve(problem, "branch-and-cut", effort=0.05, callback=stop)
    assert solution.value <= solution.bound
    assert -entries[-1]["objective"] <= -entries[-1]["bound"]
    assert -entries[-1]["objective"] == solution.value


def test_both_linear_programs_have_the_same_value():
    W = grid(6, 6, 1, torus=True)
    graph, weights = edge_graph(W)
    programs = HighsProgram(weights), ScipyProgram(weights)
    separator = Separator(graph)
    for _ in range(3):
        found = [program.solve(np.inf) for program in programs]
        values = [float(weights @ solution.x) for solution in found]
        assert values[0] == pytest.approx(values[1])
        cycles = separator.find(found[0].x, most=100)
        for program in programs:
            program.add(cycles)
    for program in programs:
        program.fix({0: 1, 1: 0})
        program.drop(np.array([0, 2]))
    found = [program.solve(np.inf) for program in programs]
    assert float(weights @ found[0].x) == pytest.approx(float(weights @ found[1].x))
    assert all(solution.x[0] == 1.0 and solution.x[1] == 0.0 for solution in found)


def test_any_multipliers_give_a_valid_bound():
    W = grid(4, 4, 2, torus=True)
    form = CutForm.of_problem(BinaryQuadratic.max_cut(W))
    tree = CycleTree(form)
    best = max(form.cut(s) for s in 2 * ((np.arange(2**15)[:, None] >> np.arange(16)) & 1) - 1)
    rng = np.random.default_rng(0)
    x = rng.random(tree.graph.m)
    cycles = tree.separator.find(x, most=50)
    for _ in range(50):
        multipliers = rng.integers(0, 9, len(cycles)).tolist()
        assert tree._exact_bound(cycles, multipliers, 8, {}) >= best


def test_the_result_does_not_depend_on_threads():
    problem = BinaryQuadratic.max_cut(grid(10, 10, 0, torus=True))
    one, two = (gdpa.solve(problem, "branch-and-cut", effort=0.1, n_jobs=k) for k in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.info["certificate"] == two.info["certificate"]


def test_a_problem_too_large_for_the_memory_is_refused(monkeypatch):
    problem = BinaryQuadratic.max_cut(grid(10, 10, 0))
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 1000.0)
    with pytest.raises(MemoryError, match="odd cycles of 180 couplings"):
        gdpa.solve(problem, "branch-and-cut")


def test_real_weights_have_a_tiny_gap():
    W = grid(6, 6, 0, torus=True)
    W.data = W.data * 0.1
    W = W + W.T
    rng = np.random.default_rng(0)
    noise = np.triu(rng.normal(size=W.shape), 1)
    problem = BinaryQuadratic.max_cut(W.multiply(noise + noise.T))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = gdpa.solve(problem, "branch-and-cut", effort=0.1)
    assert solution.converged
    assert 0 <= solution.relative_gap < 1e-9


def test_weights_of_every_size_have_an_exact_bound():
    # In units of the smallest weight, the largest one is beyond the largest float.
    rng = np.random.default_rng(0)
    for _ in range(5):
        A = np.triu(rng.normal(size=(9, 9)) * 10.0 ** rng.uniform(-290, 300, (9, 9)), 1)
        problem = BinaryQuadratic(A + A.T)
        solution = gdpa.solve(problem, "branch-and-cut", effort=0.05)
        form = CutForm.of_problem(problem)
        best = max(form.cut(s) for s in 2 * ((np.arange(2**8)[:, None] >> np.arange(9)) & 1) - 1)
        assert Fraction(solution.bound) >= form.value(best)
        assert gdpa.verify(problem, gdpa.prove(problem, solution)).startswith(("optimal", "within"))
