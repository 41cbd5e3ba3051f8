"""Certified bounds never exceed the optimum, compared without rounding."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa import BinaryQuadratic, GraphProblem
from gdpa.errors import UnsupportedProblemError
from gdpa.problem.cut_form import exact_cut_form
from gdpa.problem.exact_sums import exact_sums

SLOW = ("sdr-admm", "modified-dual-interior-point", "modified-dual-admm")


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Integers, decimals, normal numbers, or numbers of very different size."""
    A = rng.normal(size=shape)
    match int(rng.integers(5)):
        case 0:
            return np.rint(2 * A)
        case 1:
            return np.round(A, 1)
        case 2:
            return A
        case 3:
            return A * 10.0 ** rng.uniform(-12, 12, shape)
        case _:
            return A * 10.0 ** rng.uniform(-280, 280)


def quadratic(rng: np.random.Generator) -> tuple[BinaryQuadratic, Fraction]:
    """A problem and its exact optimum, as the objective to minimise."""
    n = int(rng.integers(2, 7))
    A = numbers(rng, (n + 1, n)) * (rng.random((n + 1, n)) < rng.uniform(0.3, 1))
    h, A = A[n], A[:n]
    S = np.triu(A, 1) + np.triu(A, 1).T
    constant = 0.0
    match int(rng.integers(3)):
        case 0:
            problem = BinaryQuadratic.max_cut(S)
            form = exact_cut_form("max-cut", sp.csr_array(S))
        case 1:
            constant = float(rng.normal())
            problem = BinaryQuadratic.qubo(A, constant=constant)
            form = exact_cut_form("qubo", sp.csr_array(A))
        case _:
            problem = BinaryQuadratic.ising(h, S)
            form = exact_cut_form("ising", sp.csr_array(S), h)
    sides = itertools.product([-1, 1], repeat=form.n - 1)
    best = form.value(max(form.cut(np.array([*side, 1])) for side in sides)) + Fraction(constant)
    return problem, best if form.sense == "minimise" else -best


def on_a_graph(rng: np.random.Generator) -> tuple[GraphProblem, Fraction]:
    """A problem with labels and evidence, and its exact optimum."""
    n = int(rng.integers(2, 7))
    A = numbers(rng, (n + 1, n))
    W = np.triu(A[:n] * (rng.random((n, n)) < rng.uniform(0.3, 1)), 1)
    W = W + W.T if rng.random() < 0.3 else np.abs(W + W.T)
    labels = np.where(rng.random(n) < 0.5, rng.choice([-1, 1], n), 0)
    labels[0] = 1
    bias = A[n] * (rng.random() < 0.5)
    edges = [(i, j, Fraction(W[i, j])) for i in range(n) for j in range(i + 1, n)]
    fields = [Fraction(entry) for entry in bias]
    best = min(
        sum(2 * (abs(w) - w * x[i] * x[j]) for i, j, w in edges)
        - 2 * sum(h * s for h, s in zip(fields, x, strict=True))
        for x in itertools.product(*([label] if label else [-1, 1] for label in labels.tolist()))
    )
    return GraphProblem(W, labels, bias=bias), best


@pytest.mark.parametrize("seed", range(4))
def test_certified_bounds_are_rounded_in_the_safe_direction(seed):
    rng = np.random.default_rng(seed)
    certified = 0
    for k in range(100):
        problem, best = quadratic(rng) if k % 2 else on_a_graph(rng)
        names = [
            m.name
            for m in gdpa.list_methods()
            if m.name not in SLOW
            and (m.signed or not problem.signed)
            and (m.binary_quadratic or k % 2 == 0)
        ]
        method = str(rng.choice(names))
        options = {"effort": 0.01} if method in ("search", "branch-and-cut") else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                solution = gdpa.solve(problem, method, **options)
            except UnsupportedProblemError:  # evidence, or cancelled labels
                continue
        if solution.bound_status == "certified":
            certified += 1
            assert Fraction(solution.lower_bound) <= best, (k, method)
    assert certified > 50


def test_integers_lose_nothing():
    problem = BinaryQuadratic.max_cut(np.ones((5, 5)))
    for method in ("branch-and-bound", "branch-and-cut"):
        solution = gdpa.solve(problem, method)
        assert solution.value == solution.bound == 6.0


def test_decimals_lose_a_few_units_in_the_last_place():
    problem = BinaryQuadratic.max_cut(0.1 * np.ones((5, 5)))
    solution = gdpa.solve(problem, "branch-and-bound")
    assert solution.bound_kind == "optimum"
    assert 0 < solution.relative_gap < 1e-12


def test_nothing_is_certified_below_the_smallest_numbers():
    W = 1e-300 * (np.ones((5, 5)) - np.eye(5))
    problem = BinaryQuadratic.max_cut(W)
    with pytest.raises(UnsupportedProblemError, match="multiply all numbers by 1e290"):
        gdpa.solve(problem, "search")
    assert gdpa.solve(problem, "branch-and-bound").bound_status == "estimated"
    graph = GraphProblem(W, [1, 0, 0, 0, -1])
    assert gdpa.solve(graph, "min-cut").bound_status == "estimated"


def test_exact_sums_are_those_that_are_not_rounded():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        values = numbers(rng, (6,))
        total = sum(map(Fraction, values.tolist()))
        forward, backward = (float(sum(part.tolist())) for part in (values, values[::-1]))
        exact = exact_sums(values)
        seen.add(exact)
        if exact:
            assert Fraction(forward) == Fraction(backward) == total
    assert seen == {True, False}
    assert exact_sums(np.array([2.0**40, 1.0]), np.array([0.25]))
    assert not exact_sums(np.array([2.0**53, 1.0]))
    assert exact_sums(np.zeros(3))
