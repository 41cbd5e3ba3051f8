"""Fact 2: each LP has a closed-form optimum, and a simplex solver erases the labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gdpa
from gdpa.problem.dual import build_H_bar, dual_objective, optimal_point
from gdpa.solvers.gdpa_lp import LPPoint, closed_form, constraints, highs, interior_point


def make(n, seed, bias, laplacian):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[rng.permutation(n)[:2]] = 1, -1
    h = rng.normal(size=n) if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian), rng


def eigenvector_of_a_feasible_point(problem, rng):
    """A positive v at which the LP is feasible: the first eigenvector of some psd H_bar."""
    dual = optimal_point(problem, rng.exponential(size=problem.n_labeled))
    H_bar = build_H_bar(problem, dual).toarray()
    H_bar += np.diag(np.append(rng.exponential(size=problem.n_nodes), [0, rng.exponential()]))
    return np.abs(np.linalg.eigh(H_bar)[1][:, 0])


@settings(max_examples=200)
@given(
    n=st.integers(3, 25),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
    spread=st.floats(0.0, 2.0),
)
def test_closed_form_equals_highs_on_random_positive_v(n, seed, laplacian, spread):
    """Without evidence every v > 0 is admissible."""
    problem, rng = make(n, seed, False, laplacian)
    v = np.exp(spread * rng.normal(size=n + 2))
    ours, theirs = closed_form(problem, v), highs(problem, v)
    scale = 1.0 + np.abs(ours.y).sum()
    assert abs(ours.objective - theirs.objective) <= 1e-8 * scale
    cost, G, g = constraints(problem, v)
    t = np.concatenate([ours.y, ours.a])
    assert (G @ t - g >= -1e-9 * scale).all()
    assert cost @ t == pytest.approx(ours.objective, rel=1e-12, abs=1e-12 * scale)


@settings(max_examples=100)
@given(n=st.integers(3, 20), seed=st.integers(0, 10**6))
def test_closed_form_equals_highs_with_evidence(n, seed):
    problem, rng = make(n, seed, True, "combinatorial")
    v = eigenvector_of_a_feasible_point(problem, rng)
    if v.min() < 1e-6 * v.max():
        return  # the LP's own scaling is then beyond HiGHS
    ours, theirs = closed_form(problem, v), highs(problem, v)
    scale = 1.0 + np.abs(ours.y).sum() + ours.a.sum()
    assert abs(ours.objective - theirs.objective) <= 1e-7 * scale
    _, G, g = constraints(problem, v)
    assert (G @ np.concatenate([ours.y, ours.a]) - g >= -1e-9 * scale).all()


@given(n=st.integers(3, 20), seed=st.integers(0, 10**6), bias=st.booleans())
def test_a_point_of_the_lp_makes_H_bar_psd(n, seed, bias):
    """The linear constraints are sufficient for the cone."""
    problem, rng = make(n, seed, bias, "combinatorial")
    v = eigenvector_of_a_feasible_point(problem, rng)
    point = closed_form(problem, v)
    H_bar = build_H_bar(problem, point.dual(problem)).toarray()
    assert np.linalg.eigvalsh(H_bar)[0] >= -1e-7 * (1 + np.abs(H_bar).max())
    assert dual_objective(problem, point.dual(problem)) == pytest.approx(point.objective)


@given(n=st.integers(3, 20), seed=st.integers(0, 10**6))
def test_simplex_erases_the_labels_and_an_interior_point_does_not(n, seed):
    problem, _ = make(n, seed, False, "combinatorial")
    aligned = np.ones(n + 2)
    assert not highs(problem, aligned).a.any()
    inside = interior_point(problem, aligned)
    assert inside.a.min() > 1e-3
    assert abs(inside.objective) < 1e-3 * (1 + np.abs(inside.y).sum())


def test_the_incumbent_is_kept_where_it_is_optimal():
    problem, _ = make(12, 5, False, "combinatorial")
    dual = optimal_point(problem, 3.0)
    incumbent = LPPoint(dual.y, np.abs(dual.z), dual_objective(problem, dual))
    kept = closed_form(problem, np.ones(14), incumbent)
    assert kept.kept
    assert kept.a.tolist() == [3.0] * problem.n_labeled
    worse = LPPoint(dual.y + 1.0, incumbent.a, incumbent.objective + 13.0)
    replaced = closed_form(problem, np.ones(14), worse)
    assert not replaced.kept
    assert not replaced.a.any()
