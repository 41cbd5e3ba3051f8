"""Identities of Laplacians."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph import laplacian
from gdpa.graph.adjacency import check_adjacency, laplacian_parts


@pytest.mark.parametrize("seed", range(5))
def test_quadratic_form_is_the_sum_over_edges(random_graph, seed):
    W = random_graph(12, seed)
    x = np.random.default_rng(seed).normal(size=12)
    pairs = W.tocoo()
    i, j = pairs.coords
    edges = 0.5 * np.sum(pairs.data * (x[i] - x[j]) ** 2)
    assert x @ (laplacian(W) @ x) == pytest.approx(edges, rel=1e-12)
    d = W.sum(axis=1)
    y = x / np.sqrt(d)
    edges = 0.5 * np.sum(pairs.data * (y[i] - y[j]) ** 2)
    assert x @ (laplacian(W, "normalized") @ x) == pytest.approx(edges, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_kernels_and_spectra(random_graph, seed):
    W = random_graph(15, seed)
    assert np.abs(laplacian(W) @ np.ones(15)).max() < 1e-12
    N = laplacian(W, "normalized")
    assert np.abs(N @ np.sqrt(W.sum(axis=1))).max() < 1e-12
    values = np.linalg.eigvalsh(N.toarray())
    assert values[0] > -1e-12
    assert values[-1] <= 2 + 1e-12


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_parts_are_the_matrix(random_graph, kind):
    W = random_graph(9, 3)
    A, diagonal = laplacian_parts(W, kind)
    assert np.allclose(np.diag(diagonal) - A.toarray(), laplacian(W, kind).toarray(), atol=1e-15)


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_isolated_node_has_a_zero_row(kind):
    L = laplacian([[0, 1, 0], [1, 0, 0], [0, 0, 0]], kind).toarray()
    assert np.isfinite(L).all()
    assert not L[2].any()
    assert not L[:, 2].any()


def test_a_diagonal_is_ignored():
    assert np.array_equal(laplacian([[4, 1], [1, 0]]).toarray(), [[1, -1], [-1, 1]])


def test_signed_degree_is_the_plain_row_sum():
    L = laplacian([[0, -2, 1], [-2, 0, 0], [1, 0, 0]], signed=True)
    assert np.array_equal(L.toarray(), [[-1, 2, -1], [2, -2, 0], [-1, 0, 1]])


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_normalized_is_scale_invariant_at_the_ends_of_floating_point(weight):
    W = np.array([[0, 1, 0.5], [1, 0, 0], [0.5, 0, 0]])
    expected = laplacian(W, "normalized").toarray()
    assert np.allclose(laplacian(weight * W, "normalized").toarray(), expected, rtol=1e-12)


def test_mixed_extreme_weights_stay_finite():
    W = np.array([[0, 1e300, 1e-300], [1e300, 0, 1], [1e-300, 1, 0]])
    for kind in ("combinatorial", "normalized"):
        assert np.isfinite(laplacian(W, kind).toarray()).all()


def test_degree_overflow_is_refused():
    W = np.full((4, 4), 1e308)
    with pytest.raises(ValueError, match="weights of node 0 add up to inf"):
        laplacian(W)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "normalised"}, "did you mean 'normalized'"),
        ({"kind": "normalized", "signed": True}, "combinatorial"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        laplacian([[0, 1], [1, 0]], **options)


def test_bad_graph_is_refused():
    with pytest.raises(ValueError, match="negative"):
        laplacian([[0, -1], [-1, 0]])


def test_input_is_not_modified():
    W = sp.csr_array(np.array([[5.0, 1.0], [1.0, 0.0]]))
    laplacian(W, "normalized")
    assert np.array_equal(W.toarray(), [[5, 1], [1, 0]])
    canonical = check_adjacency(W)
    before = canonical.data.copy()
    laplacian_parts(canonical, "normalized")
    assert np.array_equal(canonical.data, before)
