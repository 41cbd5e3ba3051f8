"""Features smoothed along a graph."""

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph import smoothing
from gdpa.graph.smoothing import Smoother


def case(sparse, n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.15), 1)
    upper[:, -1] = 0.0  # the last node is isolated
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    return sp.csr_array(upper + upper.T), sp.csr_array(X) if sparse else X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("pull", [1.0, 0.85])
def test_points_follow_the_recursion(sparse, pull):
    W, X = case(sparse)
    A = W.toarray() + W.data.mean() * np.eye(W.shape[0])
    root = np.diag(1.0 / np.sqrt(A.sum(axis=1)))
    start = X.toarray() if sparse else (X - X.mean(axis=0)) / X.std(axis=0)
    if sparse:
        start = start / np.maximum(np.linalg.norm(start, axis=1, keepdims=True), 1e-300)
    Z = start
    for _ in range(3):
        Z = pull * (root @ A @ root @ Z) + (1.0 - pull) * start
    wanted = Z / np.linalg.norm(Z, axis=1, keepdims=True) if sparse else Z / Z.std(axis=0)
    np.testing.assert_allclose(Smoother(W, X).points(pull, 3), wanted, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("pull", "steps"), [(0.0, 0), (1.0, 2), (0.85, 4)])
def test_a_node_that_came_as_a_new_row_would_have_the_same_points(sparse, pull, steps):
    W, X = case(sparse)
    smoother = Smoother(W, X)
    rows = np.array([0, 7, W.shape[0] - 1])
    found = smoother.new_points(X[rows], sp.csr_array(W[rows]), pull, steps)
    wanted = smoother.points(pull, steps)[rows]
    np.testing.assert_allclose((found - wanted) @ np.ones((X.shape[1], 1)), 0.0, atol=1e-6)


def test_dense_rows_have_unit_length_where_that_is_asked_for():
    W, X = case(False)
    X[0] *= 1e200
    points = Smoother(W, X + 1.0, unit=True).points(0.5, 1)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)


def test_counts_are_weighted_by_how_rare_a_word_is():
    W, X = case(True)
    counts = sp.csr_array((X.toarray() > 0).astype(float))
    n, seen = counts.shape[0], counts.toarray().sum(axis=0)
    rare = 1.0 + np.log((1.0 + n) / (1.0 + seen))
    weighted = Smoother(W, sp.csr_array(counts.toarray() * rare))  # no counts any more
    found = Smoother(W, counts)
    np.testing.assert_allclose(found.points(1.0, 2), weighted.points(1.0, 2), atol=1e-6)
    rows = np.array([3, 5])
    new = found.new_points(counts[rows], sp.csr_array(W[rows]), 1.0, 2)
    np.testing.assert_allclose(new, found.points(1.0, 2)[rows], atol=1e-6)


def test_many_entries_are_smoothed_in_single_precision(monkeypatch):
    W, X = case(False)
    exact = Smoother(W, X).points(1.0, 4)
    monkeypatch.setattr(smoothing, "DOUBLE_ENTRIES", 10)
    single = Smoother(W, X).points(1.0, 4)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=1e-5)


def test_steps_are_bounded_by_memory(monkeypatch):
    W, X = case(True)
    assert Smoother(W, X).most_steps(4) == 4
    monkeypatch.setattr(smoothing, "MOST_BYTES", 16.0 * np.prod(X.shape) - 1.0)
    assert Smoother(W, X).most_steps(4) == 0
