"""Full graphs: the factor and the iteration give the same solution, bound and labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa.linalg import preconditioners
from gdpa.linalg.operator import UnitDiagonal
from gdpa.policy import Policy


def full_problem(n: int = 560, *, laplacian: str, bias: bool = False) -> gdpa.GraphProblem:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3)) + np.where(np.arange(n) < n // 2, 1.5, -1.5)[:, None]
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    labels = np.zeros(n, dtype=np.int8)
    labels[:5], labels[-5:] = 1, -1
    h = 0.01 * rng.standard_normal(n) if bias else None
    return gdpa.GraphProblem(W, labels, bias=h, laplacian=laplacian)


ITERATE = Policy(full_most=0)  # no factorisation


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize("bias", [False, True])
def test_factor_and_iteration_agree(laplacian, bias):
    problem = full_problem(laplacian=laplacian, bias=bias)
    factored = gdpa.solve(problem, tol=1e-12, self_loop=1e-4 if bias else 0.0)
    iterated = gdpa.solve(problem, tol=1e-12, self_loop=1e-4 if bias else 0.0, policy=ITERATE)
    assert factored.info["linear_solver"] == "cholesky-cg"
    assert iterated.info["linear_solver"] == "cg"
    assert factored.iterations < iterated.iterations
    assert factored.converged
    assert iterated.converged
    np.testing.assert_array_equal(factored.labels, iterated.labels)
    np.testing.assert_allclose(factored.scores, iterated.scores, rtol=0, atol=1e-10)
    assert factored.objective == pytest.approx(iterated.objective, rel=1e-10)
    assert factored.lower_bound == pytest.approx(iterated.lower_bound, rel=1e-10)
    # Nothing is said less than by the iteration.
    assert set(factored.info) == set(iterated.info)
    assert set(factored.seconds) == set(iterated.seconds)


def test_scores_are_harmonic():
    problem = full_problem(laplacian="combinatorial")
    found = gdpa.solve(problem)
    u, known = problem.unlabeled, problem.labeled
    np.testing.assert_array_equal(found.scores[known], problem.labels[known])
    # Each score is the mean of its neighbours', weighted.
    mean = (problem.adjacency @ found.scores) / problem.diagonal
    np.testing.assert_allclose(found.scores[u], mean[u], atol=1e-10)


def test_the_trivial_bound_is_that_of_the_discs_of_the_reduced_form():
    problem = full_problem(laplacian="combinatorial", bias=True)
    form = problem.reduced()
    expected = form.constant - float(np.abs(form.P.data).sum())
    found = gdpa.solve(problem, bound="trivial").lower_bound
    assert found <= expected  # lowered by what rounding may add
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * problem.diagonal.sum())


def test_a_matrix_that_has_no_factor_is_left_to_the_iteration(monkeypatch):
    monkeypatch.setattr(preconditioners, "cholesky", lambda C: None)
    problem = full_problem(laplacian="combinatorial")
    found = gdpa.solve(problem)
    assert found.info["linear_solver"] == "cg"
    assert found.converged


def test_sparse_graphs_are_not_made_dense(random_graph, monkeypatch):
    def never(self: object) -> None:
        raise AssertionError("a dense copy was made")

    monkeypatch.setattr(UnitDiagonal, "toarray", never)
    W = random_graph(600, 0, density=0.05)
    labels = np.zeros(600, dtype=np.int8)
    labels[:3], labels[3:6] = 1, -1
    assert gdpa.solve(gdpa.GraphProblem(W, labels)).converged


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_coarse_system_and_jacobi_agree_on_a_sparse_graph(laplacian):
    # A ring with some chords: slow modes for which the coarse system is made.
    n, rng = 6_000, np.random.default_rng(0)
    i = np.arange(n)
    rows = np.concatenate([i, i, rng.integers(0, n, 300)])
    columns = np.concatenate([(i + 1) % n, (i + 2) % n, rng.integers(0, n, 300)])
    half = sp.coo_array((rng.uniform(0.5, 1.0, rows.size), (rows, columns)), shape=(n, n))
    labels = np.zeros(n, dtype=np.int8)
    labels[rng.permutation(n)[:60]] = np.resize([1, -1], 60)
    problem = gdpa.GraphProblem(sp.csr_array(half + half.T), labels, laplacian=laplacian)
    coarse = gdpa.solve(problem, tol=1e-11, policy=Policy(jacobi_steps=0))
    jacobi = gdpa.solve(problem, tol=1e-11, preconditioner="jacobi")
    assert coarse.iterations < jacobi.iterations
    np.testing.assert_allclose(coarse.scores, jacobi.scores, rtol=0, atol=1e-8)
    sure = np.abs(jacobi.scores) > 1e-7
    np.testing.assert_array_equal(coarse.labels[sure], jacobi.labels[sure])
    assert coarse.lower_bound == pytest.approx(jacobi.lower_bound, rel=1e-6)
