"""What the first eigenvector of H computes, when it classifies, and how it is found."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from gdpa.graph import neighbor_graph
from gdpa.problem.dual import build_H, optimal_point
from gdpa.solvers.gdpa_recovery import (
    SAFE_RATIO,
    NodeRows,
    first_eigenvector_of_H,
    safe_label_weight,
    smallest_eigenvalue_bound,
)

LAPLACIANS = ("normalized", "combinatorial")


def random_problem(seed):
    """A connected random graph of 5 to 16 nodes with labels of both classes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 17))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1.0, n - 1), 1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[rng.permutation(n)[:3]] = 1, -1, 0
    return gdpa.GraphProblem(W + W.T, labels, laplacian=LAPLACIANS[seed % 2])


def clouds(n, *, share, distance, seed=0, laplacian="normalized"):
    """Two Gaussian clouds and the share of labels that are known, as a neighbour graph."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.normal(size=(n, 5))
    X[:, 0] += distance * y
    labels = np.zeros(n, dtype=int)
    known = rng.permutation(n)[: int(share * n)]
    labels[known] = y[known]
    return gdpa.GraphProblem(neighbor_graph(X, 10), labels, laplacian=laplacian), y


def test_theorem_of_the_first_eigenvector_on_1000_graphs():
    """Theorem in docs/theory.md: identity, rows, interlacing, distance from slackness, limit."""
    shifts = []
    for seed in range(1000):
        problem = random_problem(seed)
        n = problem.n_nodes
        u, known = problem.unlabeled, problem.labeled
        xh = problem.labels[known].astype(float)
        A = problem.adjacency.toarray()
        K = np.diag(A.sum(axis=1)) - A
        K_uu = K[np.ix_(u, u)]
        mu = np.linalg.eigvalsh(K_uu)[0]
        from_labels = []
        for a in (safe_label_weight(problem), 10.0 * safe_label_weight(problem)):
            H = build_H(problem, optimal_point(problem, a)).toarray()
            v = np.random.default_rng(seed).normal(size=n + 1)
            energy = v[:n] @ K @ v[:n] + a * ((v[known] - xh * v[n]) ** 2).sum()
            assert v @ H @ v == pytest.approx(energy, rel=1e-9)

            values, vectors = np.linalg.eigh(H)
            lam, v = values[0], vectors[:, 0]
            degree = A[known].sum(axis=1).max()
            assert lam <= min(mu, 2.0 * degree) * (1.0 + 1e-9)
            x = v[:n] / v[n]
            pull = A[np.ix_(u, known)] @ x[known]
            size = 1.0 + np.abs(x).max()
            assert np.allclose(K_uu @ x[u] - lam * x[u], pull, atol=1e-6 * size)
            slack = np.linalg.solve(K_uu, pull)
            rho = lam / mu
            if rho < 1.0 - 1e-6:
                distance = np.linalg.norm(x[u] - slack)
                bound = rho / (1.0 - rho) * np.linalg.norm(slack)
                assert distance <= bound * (1.0 + 1e-6) + 1e-9
            from_labels.append(np.abs(x[known] - xh).max())
            assert from_labels[-1] <= 2.0 * degree / a * max(1.0, np.abs(x).max()) + 1e-9
            assert a >= 99.9 * degree  # so about 2 % of the largest entry at most
        shifts.append(from_labels[0] / from_labels[1])
    # The distance from the labels falls like 1 / a.
    assert 9.0 < np.median(shifts) < 11.0


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("distance", [1.5, 3.0])
def test_first_eigenvector_is_that_of_the_matrix(laplacian, distance):
    problem, _ = clouds(700, share=0.5, distance=distance, laplacian=laplacian)
    dual = optimal_point(problem, safe_label_weight(problem))
    rows = NodeRows(problem, dual)
    found = first_eigenvector_of_H(rows, tol=1e-8)
    assert found.method == "lobpcg"
    values, vectors = np.linalg.eigh(build_H(problem, dual).toarray())
    assert found.value == pytest.approx(values[0], rel=1e-8)
    assert abs(found.vector @ vectors[:, 0]) > 1.0 - 1e-9
    u = problem.unlabeled
    K_uu = np.diag(rows.diagonal[u]) - problem.adjacency.toarray()[np.ix_(u, u)]
    mu = np.linalg.eigvalsh(K_uu)[0]
    assert 0.3 * mu < smallest_eigenvalue_bound(rows) <= mu * (1.0 + 1e-12)


def test_where_discs_exclude_nothing_lobpcg_takes_over():
    """With few labels on overlapping classes the eigenvalue comes near that of the free nodes."""
    problem, _ = clouds(700, share=0.05, distance=1.0)
    dual = optimal_point(problem, safe_label_weight(problem))
    found = first_eigenvector_of_H(NodeRows(problem, dual))
    assert found.method == "lobpcg"
    v = np.linalg.eigh(build_H(problem, dual).toarray())[1][:, 0]
    assert abs(found.vector @ v) > 1.0 - 1e-6


@pytest.mark.parametrize("weight", [1.0, "auto"])
def test_slackness_solves_the_rows_of_the_nodes(weight):
    problem, _ = clouds(700, share=0.3, distance=1.0)
    a = safe_label_weight(problem) if weight == "auto" else weight
    rows = NodeRows(problem, optimal_point(problem, a))
    assert rows.heavy == (weight == "auto")
    found = rows.solve(tol=1e-9)
    assert found.converged
    B = np.diag(rows.diagonal) - problem.adjacency.toarray()
    assert np.allclose(found.x, np.linalg.solve(B, rows.q), atol=1e-7)


@pytest.mark.parametrize(
    ("share", "distance", "expected"),
    [(0.5, 2.0, "eigenvector"), (0.2, 3.0, "eigenvector"), (0.02, 1.0, "linear")],
)
def test_auto_uses_the_eigenvector_where_it_is_safe(share, distance, expected):
    problem, y = clouds(1000, share=share, distance=distance)
    options = {"start": "optimal", "label_weight": "auto"}
    solution = gdpa.solve(problem, "gdpa", recovery="auto", **options)
    assert solution.info["recovery"] == expected
    assert (solution.info["ratio_bound"] <= SAFE_RATIO) == (expected == "eigenvector")
    assert "lambda / mu" in solution.info["reason"]
    u = problem.unlabeled
    error = np.mean(solution.labels[u] != y[u])
    harmonic = np.mean(gdpa.solve(problem, "harmonic").labels[u] != y[u])
    assert error <= harmonic + 0.02


def test_the_map_needs_one_number():
    """Over label shares and overlaps, the eigenvector loses only where the ratio is near 1."""
    lost = []
    for share in (0.02, 0.1, 0.5):
        for distance in (0.5, 1.0, 1.5, 2.0, 3.0):
            problem, y = clouds(800, share=share, distance=distance, seed=1)
            dual = optimal_point(problem, safe_label_weight(problem))
            rows = NodeRows(problem, dual)
            u = problem.unlabeled
            K_uu = np.diag(rows.diagonal[u]) - problem.adjacency.toarray()[np.ix_(u, u)]
            mu = np.linalg.eigvalsh(K_uu)[0]
            solution = gdpa.solve(problem, "gdpa", start="optimal", label_weight="auto")
            slack = rows.solve(tol=1e-8).x
            excess = np.mean(solution.labels[u] != y[u]) - np.mean(np.sign(slack[u]) != y[u])
            lost.append((solution.info["eigenvalue"] / mu, excess))
    assert all(excess <= 0.02 for rho, excess in lost if rho <= SAFE_RATIO)
    assert max(excess for rho, excess in lost if rho > 0.9) > 0.2


def test_large_label_weights_are_kept_by_the_sparse_path():
    """The weight of the labels does not change the labels of nodes far from ties."""
    problem, _ = clouds(600, share=0.5, distance=2.0)
    found = [
        gdpa.solve(problem, "gdpa", start="optimal", label_weight=w).labels for w in (1e2, 1e4, 1e6)
    ]
    assert np.mean(found[0] != found[1]) < 0.01
    assert np.mean(found[1] != found[2]) < 0.01
