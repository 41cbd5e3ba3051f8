"""The authors' program for the modified dual: the matrix and the objective that they hand over."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from reproduction.solvers import ModifiedDualPublished
from reproduction.solvers.modified_dual_published import authors_lmi


def make(seed: int) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 2))
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    labels = np.where(np.arange(14) < 6 + seed % 3, np.sign(X[:, 0]), 0).astype(int)
    labels[:2] = 1, -1
    return gdpa.GraphProblem(W, labels, laplacian="normalized")


def test_it_is_the_authors_program():
    """Built entry by entry from their sums of single matrices, with weight 1/2 for both corners."""
    for seed in range(10):
        problem = make(seed)
        n, known = problem.n_nodes, problem.labeled
        lmi = authors_lmi(problem, 1e3)
        rng = np.random.default_rng(seed)
        y, (p, q), z = rng.normal(size=n), rng.normal(size=2), rng.normal(size=known.size)
        x = np.concatenate([y, [p, q], z])

        def coupling(node, apex, n=n):
            B = np.zeros((n + 2, n + 2))
            B[node, apex] = B[apex, node] = 1.0
            return B

        plus = [(i, coupling(i, n)) for i in known if problem.labels[i] > 0]
        minus = [(i, coupling(i, n + 1)) for i in known if problem.labels[i] < 0]
        B_plus, B_minus = (sum(B for _, B in side) for side in (plus, minus))
        E = [np.diag(row) for row in np.eye(n + 2)]
        C = np.zeros((n + 2, n + 2))
        C[:n, :n] = -problem.L.toarray()
        C += 1e3 * E[n] - 1e3 * E[n + 1]
        both = B_plus + B_minus
        expected = C + sum(y[i] * E[i] for i in range(n))
        expected = expected + p * (0.5 * (E[n] + both) - B_plus)
        expected = expected + q * (0.5 * (E[n + 1] + both) - B_minus)
        weights = dict(zip(known.tolist(), z, strict=True))
        expected = expected + sum(weights[i] * B for i, B in plus + minus)

        found = np.array(lmi.F0)
        for k, i, j, value in zip(lmi.variable, lmi.row, lmi.column, lmi.value, strict=True):
            found[i, j] += value * x[k]
            found[j, i] += value * x[k] * (i != j)
        np.testing.assert_allclose(found, expected, atol=1e-10)

        b = 2.0 * problem.labels[known]
        half = (1.0 + b.sum()) / 2.0
        objective = y.sum() + p * (half - b[b > 0].sum()) + q * (half - b[b < 0].sum()) + b @ z
        assert lmi.c @ x == pytest.approx(objective)


@pytest.mark.filterwarnings("ignore:modified-dual-published did not converge")
def test_labels_come_without_a_bound_and_respect_what_is_known():
    pytest.importorskip("scs", reason="ADMM is SCS (extra sdp)")
    problem = make(0)
    found = ModifiedDualPublished().solve(problem)
    assert found.bound_status == "none"
    assert np.isin(found.labels, (-1, 1)).all()
    assert found.dual.z.shape == (problem.n_labeled,)
