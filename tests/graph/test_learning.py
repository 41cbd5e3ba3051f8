"""Balanced graphs learned from data: balance, signs, recovery of planted graphs, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import graphical_lasso

from gdpa.graph import balance, learn_balanced_graph


def planted(seed, d=12, n=150):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((d, d)) < 3.0 / d, 1) * rng.uniform(0.3, 1.0, (d, d))
    colors = rng.choice([-1.0, 1.0], d)
    W = (W + W.T) * np.outer(colors, colors)
    L = np.diag(np.abs(W).sum(axis=1) + 0.3) - W
    return rng.multivariate_normal(np.zeros(d), np.linalg.inv(L), n), W, L, colors


def f_score(found, truth):
    return 2.0 * (found & truth).sum() / max(1, found.sum() + truth.sum())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:graphical_lasso")
def test_planted_graphs_are_found_at_least_as_well_as_by_graphical_lasso():
    ours, lasso = [], []
    for seed in range(10):
        X, W, _, _ = planted(seed)
        graph = learn_balanced_graph(X)
        upper = np.triu_indices(12, 1)
        truth, edges = W[upper] != 0, graph.adjacency.toarray()[upper] != 0
        C = np.corrcoef(X, rowvar=False)
        low, high = 1e-3, 1.0
        for _ in range(15):  # as many edges
            middle = np.sqrt(low * high)
            theirs = np.abs(graphical_lasso(C, middle)[1][upper]) > 1e-8
            low, high = (middle, high) if theirs.sum() > edges.sum() else (low, middle)
        theirs = np.abs(graphical_lasso(C, high)[1][upper]) > 1e-8
        ours.append(f_score(edges, truth))
        lasso.append(f_score(theirs, truth))
        assert balance(graph.adjacency).balanced
        P = graph.precision.toarray()
        assert np.linalg.eigvalsh(P)[0] > 0
        signs = np.outer(graph.colors, graph.colors)
        assert (graph.adjacency.toarray() * signs >= 0).all()
        np.testing.assert_allclose(P - np.diag(P.diagonal()), -graph.adjacency.toarray())
    assert np.mean(ours) >= np.mean(lasso)


def test_the_exact_covariance_gives_the_graph_back():
    _, W, L, colors = planted(3)
    graph = learn_balanced_graph(covariance=np.linalg.inv(L), penalty=1e-6, colors=colors)
    np.testing.assert_allclose(graph.precision.toarray(), L, atol=1e-3)
    assert ((np.abs(graph.adjacency.toarray()) > 1e-3) == (W != 0)).all()


def test_prescribed_colours_hold_even_against_the_data():
    C = np.array([[1.0, 0.6], [0.6, 1.0]])
    assert learn_balanced_graph(covariance=C).adjacency[0, 1] > 0
    against = learn_balanced_graph(covariance=C, colors=[1, -1])
    assert against.adjacency[0, 1] <= 0
    np.testing.assert_array_equal(against.colors, [1, -1])


def test_degenerate_columns_have_no_edges():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=30), np.ones(30), rng.normal(size=30)])
    graph = learn_balanced_graph(X)
    assert graph.adjacency[1].nnz == 0
    assert np.isfinite(graph.precision.data).all()
    assert learn_balanced_graph(X[:, :1]).precision.shape == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either X or covariance"),
        ({"X": np.eye(2), "covariance": np.eye(2)}, "either X or covariance"),
        ({"X": np.full((3, 2), np.nan)}, "X must be finite"),
        ({"X": np.ones((1, 2))}, "at least two rows"),
        ({"covariance": [[1, 2], [0, 1]]}, "symmetric"),
        ({"covariance": np.ones((2, 3))}, "symmetric"),
        ({"covariance": -np.eye(2)}, "must not be negative"),
        ({"covariance": np.eye(2), "colors": [1, 0]}, "each \\+1 or -1"),
        ({"covariance": np.eye(2), "penalty": 0}, "penalty=0"),
        ({"covariance": np.eye(2), "max_sweeps": 0}, "max_sweeps=0"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        learn_balanced_graph(**arguments)
