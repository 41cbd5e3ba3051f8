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
def test_points_are_powers_of_the_normalised_graph_times_the_features(sparse):
    W, X = case(sparse)
    A = W.toarray() + W.data.mean() * np.eye(W.shape[0])
    root = np.diag(1.0 / np.sqrt(A.sum(axis=1)))
    Z = X.toarray() if sparse else (X - X.mean(axis=0)) / X.std(axis=0)
    if sparse:
        Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    for _ in range(3):
        Z = root @ A @ root @ Z
    wanted = Z / np.linalg.norm(Z, axis=1, keepdims=True) if sparse else Z / Z.std(axis=0)
    found = Smoother(W, X).points(3)
    assert sp.issparse(found) == sparse
    np.testing.assert_allclose(found.toarray() if sparse else found, wanted, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("t", [0, 2])
def test_a_product_needs_no_points_and_a_known_node_no_exception(sparse, t):
    W, X = case(sparse)
    smoother = Smoother(W, X)
    slopes = np.random.default_rng(1).standard_normal((X.shape[1], 3))
    rows = np.array([0, 7, W.shape[0] - 1])
    points = smoother.points(t, rows)
    np.testing.assert_allclose(smoother.product(t, slopes, rows), points @ slopes, atol=1e-12)
    np.testing.assert_allclose(smoother.product(t, slopes)[rows], points @ slopes, atol=1e-12)
    # A node that came as a new row, with its features and its links, would have the same points.
    np.testing.assert_allclose(
        smoother.new_points(X[rows], sp.csr_array(W[rows]), t) @ slopes, points @ slopes, atol=1e-12
    )


def test_counts_are_weighted_by_how_rare_a_word_is():
    W, X = case(True)
    counts = sp.csr_array((X.toarray() > 0).astype(float))
    n, seen = counts.shape[0], counts.toarray().sum(axis=0)
    rare = 1.0 + np.log((1.0 + n) / (1.0 + seen))
    weighted = Smoother(W, sp.csr_array(counts.toarray() * rare))  # no counts any more
    found = Smoother(W, counts)
    np.testing.assert_allclose(found.points(2).toarray(), weighted.points(2).toarray(), atol=1e-12)
    rows = np.array([3, 5])
    np.testing.assert_allclose(
        found.new_points(counts[rows], sp.csr_array(W[rows]), 2).toarray(),
        found.points(2, rows).toarray(),
        atol=1e-12,
    )


def test_many_entries_are_smoothed_in_single_precision(monkeypatch):
    W, X = case(False)
    exact = Smoother(W, X).points(4)
    monkeypatch.setattr(smoothing, "DOUBLE_ENTRIES", 10)
    single = Smoother(W, X).points(4)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=1e-5)


def test_steps_are_bounded_by_memory(monkeypatch):
    W, X = case(True)
    smoother = Smoother(W, X)
    assert smoother.most_steps(4) == 4
    filled = 12.0 * sum(smoother.smoothed(t).nnz for t in range(3))
    monkeypatch.setattr(smoothing, "MOST_BYTES", filled)
    assert 1 <= Smoother(W, X).most_steps(4) <= 2  # an estimate from above
    monkeypatch.setattr("gdpa.graph.memory.MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr("gdpa.graph.memory.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match="TruncatedSVD"):
        Smoother(W, X).most_steps(4)
