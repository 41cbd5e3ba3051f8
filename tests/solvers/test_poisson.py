"""Poisson learning against the pseudo-inverse of the Laplacian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa.errors import UnsupportedProblemError


def test_potential_is_the_pseudo_inverse_applied_to_centred_labels(random_graph):
    for seed in range(20):
        W = random_graph(30, seed)
        rng = np.random.default_rng(seed)
        labels = np.zeros(30, dtype=int)
        labels[rng.permutation(30)[:6]] = [1, 1, 1, 1, -1, -1]
        d = np.asarray(W.sum(axis=1)).ravel()
        source = np.where(labels != 0, labels - labels[labels != 0].mean(), 0.0)
        u = np.linalg.pinv(np.diag(d) - W.toarray()) @ source
        u -= d @ u / d.sum()
        found = gdpa.solve(gdpa.GraphProblem(W, labels), method="poisson", tol=1e-10)
        u = u * 2.0 ** np.frexp(d.max())[1]  # scores are in units of the largest degree
        assert np.allclose(found.scores, u, rtol=1e-4, atol=1e-4 * np.abs(u).max())


def test_sources_balance_in_every_component(random_graph):
    W = sp.csr_array(sp.block_diag([random_graph(10, 0), random_graph(12, 1)]))
    labels = np.zeros(22, dtype=int)
    labels[[0, 3, 12, 20, 21]] = [1, -1, 1, 1, -1]
    u = gdpa.solve(gdpa.GraphProblem(W, labels), method="poisson").scores
    d = np.asarray(W.sum(axis=1)).ravel()
    residual = (d * u - W @ u) / 2.0 ** np.frexp(d.max())[1]
    source = np.zeros(22)
    source[[0, 3]] = [1, -1]
    source[[12, 20, 21]] = np.array([1, 1, -1]) - 1 / 3
    assert np.abs(residual - source).max() < 1e-3


def test_a_component_with_labels_of_one_class_gets_that_class(random_graph):
    W = sp.csr_array(sp.block_diag([random_graph(10, 0), random_graph(12, 1)]))
    labels = np.zeros(22, dtype=int)
    labels[[0, 3, 15]] = [1, -1, -1]
    found = gdpa.solve(gdpa.GraphProblem(W, labels), method="poisson")
    assert (found.labels[10:] == -1).all()


@pytest.mark.parametrize("method", ["poisson", "class-sizes"])
def test_a_bias_is_refused_by_name(random_graph, method):
    problem = gdpa.GraphProblem(random_graph(6, 0), np.zeros(6, dtype=int), bias=np.arange(6) - 2.5)
    with pytest.raises(UnsupportedProblemError, match="supports labels only"):
        gdpa.solve(problem, method)
