"""Positions of nodes: told apart, repeatable, from features where there are some."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gdpa.plotting.layout import picture, positions_of, spectral_positions


def test_spectral_positions_separate_two_cliques_and_repeat():
    block = np.ones((60, 60)) - np.eye(60)
    W = sp.csr_array(np.block([[block, np.zeros((60, 60))], [np.zeros((60, 60)), block]]))
    W = W.tolil()
    W[59, 60] = W[60, 59] = 0.5
    W = W.tocsr()
    xy = spectral_positions(W)
    assert xy[:60, 0].max() * xy[60:, 0].min() < 0 or xy[:60, 0].min() * xy[60:, 0].max() < 0
    np.testing.assert_array_equal(xy, spectral_positions(W))


def test_positions_come_from_the_features_where_there_are_some(random_graph):
    W = random_graph(20, 0)
    X = np.random.default_rng(0).standard_normal((20, 5))
    np.testing.assert_array_equal(positions_of(W, X[:, :2]), X[:, :2])
    xy = positions_of(W, X)
    centred = X - X.mean(axis=0)
    top = np.linalg.svd(centred, compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(xy, axis=0), top)
    assert positions_of(W, X[:, :1]).shape == (20, 2)
    assert positions_of(sp.csr_array((2, 2))).shape == (2, 2)


def test_a_large_graph_is_sampled_and_small_ones_are_whole(random_graph):
    W = random_graph(40, 0)
    whole = picture(W, None, keep=np.array([3]))
    assert whole.nodes.tolist() == list(range(40))
    assert whole.positions.min() >= 0
    assert whole.positions.max() <= 1
    sample = picture(W, None, keep=np.array([3, 17]), most=24)
    assert sample.nodes.size == 24
    assert {3, 17} <= set(sample.nodes.tolist())
    assert sample.edges.max(initial=0) < 24
    same = picture(W, np.ones((40, 2)), keep=np.array([3]), most=12)
    assert np.isfinite(same.positions).all()
