"""The relaxation in the paper's printed form, against an interior point on the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from gdpa.solvers.conic import LMI, solve_clarabel
from reproduction.solvers import SDRPrinted


def make(n, seed, laplacian="normalized", bias=False):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)), 1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[:3] = 1, -1, 0
    h = 0.3 * rng.normal(size=n) * (labels == 0) if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian)


def value_by_clarabel(problem):
    """Dual of the printed form: no y on labelled nodes."""
    n, u, known = problem.n_nodes, problem.unlabeled, problem.labeled
    F0 = np.zeros((n + 1, n + 1))
    F0[:n, :n] = problem.L.toarray()
    F0[:n, n] = F0[n, :n] = -problem.bias
    m = u.size + 1 + known.size
    result = solve_clarabel(
        LMI(
            c=np.concatenate([np.ones(u.size + 1), 2.0 * problem.labels[known]]),
            F0=F0,
            variable=np.arange(m),
            row=np.concatenate([u, [n], known]).astype(np.intp),
            column=np.concatenate([u, np.full(1 + known.size, n)]).astype(np.intp),
            value=np.ones(m),
            nonnegative=np.array([], dtype=np.intp),
        ),
        tol=1e-9,
        max_iter=200,
    )
    assert result.converged
    return -float(np.concatenate([np.ones(u.size + 1), 2.0 * problem.labels[known]]) @ result.x)


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_value_is_that_of_an_interior_point_on_the_whole_matrix(laplacian, bias, seed):
    pytest.importorskip("clarabel", reason="the oracle is Clarabel (extra sdp)")
    problem = make(9, seed, laplacian, bias)
    found = SDRPrinted().solve(problem)
    assert found.converged
    assert found.info["sdr_value"] == pytest.approx(value_by_clarabel(problem), abs=1e-4)
    assert np.abs(found.scores).max() <= 1.0 + 1e-12


def test_value_never_rises():
    problem = make(20, 0)
    seen = []
    SDRPrinted(callback=lambda entry: seen.append(entry["value"]) or False).solve(problem)
    assert len(seen) > 2
    assert np.diff(seen).max() <= 1e-12


def test_forms_agree_where_one_node_is_unlabelled():
    """R_uu is then one number, 1 - x^2, and the sign of x that of the vote."""
    problem = make(6, 1)
    labels = problem.labels.copy()
    labels[labels == 0] = 1
    labels[2] = 0
    problem = gdpa.GraphProblem(problem.W, labels, laplacian="normalized")
    printed = SDRPrinted().solve(problem)
    assert np.sign(printed.scores[2]) == np.sign(problem.vote[0])
