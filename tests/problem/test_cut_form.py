"""Exact maximum cuts: the same problem in all formulations, steps and reductions by brute force."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa import BinaryQuadratic
from gdpa.problem.cut_form import CutForm, exact_cut_form
from gdpa.problem.reductions import reduce_cut


def every_side(n: int) -> np.ndarray:
    """All signs of n nodes."""
    return (2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1).astype(np.int8)


def random_matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.integers(-3, 4, (n, n)).astype(float)
    return A * (rng.random((n, n)) < rng.choice([0.2, 0.4, 0.8]))


def stated(kind: str, A: np.ndarray) -> tuple[BinaryQuadratic, CutForm]:
    """A problem, and its exact form from the same numbers."""
    S = np.triu(A, 1) + np.triu(A, 1).T
    if kind == "max-cut":
        return BinaryQuadratic.max_cut(S), exact_cut_form(kind, sp.csr_array(S))
    if kind == "qubo":
        return BinaryQuadratic.qubo(A), exact_cut_form(kind, sp.csr_array(A))
    return BinaryQuadratic.ising(A[0], S), exact_cut_form(kind, sp.csr_array(S), A[0])


@pytest.mark.parametrize("kind", ["max-cut", "qubo", "ising"])
def test_values_and_steps_are_exact_in_every_formulation(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(40):
        n = int(rng.integers(2, 8))
        problem, form = stated(kind, random_matrix(rng, n))
        assert form.digest() == CutForm.of_problem(problem).digest()
        values = []
        for signs in every_side(n):
            whole = np.append(signs, 1) if form.n > n else signs
            x = (signs + 1) // 2 if kind == "qubo" else signs
            value = form.value(form.cut(whole))
            assert float(value) == problem.value(x)
            values.append(value)
        differences = [(value - values[0]) / form.unit for value in values]
        assert form.step == gcd(*(int(difference) for difference in differences))
        assert problem.step == form.step * form.unit


def test_the_step_of_even_degrees_is_two():
    ring = sp.csr_array(np.roll(np.eye(6), 1, axis=1))
    assert BinaryQuadratic.max_cut(ring + ring.T).step == 2.0
    path = np.diag(np.ones(5), 1)
    assert BinaryQuadratic.max_cut(path + path.T).step == 1.0


def test_numbers_without_a_common_step_have_exact_values():
    W = np.array([[0, 0.1, 0.3], [0.1, 0, 0.7], [0.3, 0.7, 0]])
    form = exact_cut_form("max-cut", sp.csr_array(W))
    assert form.value(form.cut(np.array([1, -1, 1]))) == Fraction(0.1) + Fraction(0.7)


def test_reductions_keep_the_optimum_and_can_be_undone():
    rng = np.random.default_rng(0)
    removed = set()
    for _ in range(150):
        n = int(rng.integers(2, 9))
        A = random_matrix(rng, n)
        if rng.random() < 0.3 and n > 5:  # twins
            A[:2, 2:] = A[0, 2:] * np.array([[1], [rng.choice([-2, 1])]])
            A[0, 1] = 0
        _, form = stated("max-cut", A)
        reduction = reduce_cut(form)
        edges = [(u, v, w) for u, near in reduction.graph.items() for v, w in near.items() if u < v]
        best = max(form.cut(signs) for signs in every_side(n))
        cuts = [
            (reduction.constant + sum(w for u, v, w in edges if signs[u] != signs[v]), signs)
            for signs in every_side(n)
        ]
        top, signs = max(cuts, key=lambda pair: pair[0])
        assert top == best
        assert form.cut(reduction.undo(signs)) == best
        removed |= {len(step) for step in reduction.steps}
    assert removed == {1, 3}


def test_sparse_graphs_are_reduced_to_nothing():
    # A tree, a ring and a complete graph of four nodes have only nodes of degree three or less.
    ring = np.roll(np.eye(7), 1, axis=1)
    complete = np.ones((4, 4)) - np.eye(4)
    tree = np.diag(np.ones(5), 1)
    W = sp.block_diag([ring + ring.T, complete, tree + tree.T]).tocsr()
    reduction = reduce_cut(exact_cut_form("max-cut", sp.csr_array(W)))
    assert reduction.graph == {}
    assert reduction.constant == 6 + 4 + 5


def test_opposite_twins_are_merged():
    # Node 1 has the opposite weights of node 0, and both have five neighbours.
    W = np.zeros((7, 7))
    W[0, 2:] = [3, -5, 7, 2, 4]
    W[1, 2:] = -W[0, 2:]
    rng = np.random.default_rng(0)
    W[2:, 2:] = np.triu(rng.integers(5, 9, (5, 5)), 1)
    reduction = reduce_cut(exact_cut_form("max-cut", sp.csr_array(W + W.T)))
    assert any(step[2] == -1 and {*step[:2]} == {0, 1} for step in reduction.steps if len(step) > 1)
