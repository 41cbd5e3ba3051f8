"""The sampler of disc alignment: its bound is one, and it beats chance."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.gershgorin import discs, reconstruct, sample_nodes
from gdpa.gershgorin.sampling import signed_laplacian
from gdpa.graph import balance, neighbor_graph


def matrix(W, kind):
    W = W.toarray() if hasattr(W, "toarray") else np.asarray(W, dtype=float)
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "normalized":
        root = np.sqrt(np.where(degree > 0, degree, 1.0))
        L = L / np.outer(root, root)
    return L


def lifted(W, kind, nodes, weight):
    A = matrix(W, kind)
    A[nodes, nodes] += weight
    return A


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize(("n", "weight"), [(4, 1.0), (25, 1.0), (25, 0.1), (60, 10.0)])
def test_the_bound_holds_and_the_discs_prove_it(kind, n, weight):
    X = np.random.default_rng(n).normal(size=(200, 3))
    W = neighbor_graph(X, n_neighbors=6)
    found = sample_nodes(W, n, weight=weight, laplacian=kind)
    assert found.nodes.size == np.unique(found.nodes).size == n
    A = lifted(W, kind, found.nodes, weight)
    smallest = np.linalg.eigvalsh(A)[0]
    assert 0 < found.bound <= smallest * (1 + 1e-9)
    assert discs(A, v=found.scaling).lower_bound >= found.bound * (1 - 1e-9)


def test_it_lifts_the_smallest_eigenvalue_more_than_chance_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    W = neighbor_graph(X, n_neighbors=8)
    ours = np.linalg.eigvalsh(lifted(W, "normalized", sample_nodes(W, 30).nodes, 1.0))[0]
    chance = [
        np.linalg.eigvalsh(lifted(W, "normalized", rng.permutation(300)[:30], 1.0))[0]
        for _ in range(20)
    ]
    assert ours > max(chance)


def test_more_samples_prove_more_and_known_ones_count():
    X = np.random.default_rng(1).normal(size=(150, 2))
    W = neighbor_graph(X, n_neighbors=6)
    bounds = [sample_nodes(W, n).bound for n in (3, 10, 40, 150)]
    assert bounds == sorted(bounds)
    first = sample_nodes(W, 10).nodes
    more = sample_nodes(W, 10, known=first)
    assert not set(more.nodes) & set(first)
    both = np.concatenate([first, more.nodes])
    assert more.bound <= np.linalg.eigvalsh(lifted(W, "normalized", both, 1.0))[0] * (1 + 1e-9)
    assert more.bound >= bounds[1]


def test_components_and_lonely_nodes():
    W = np.zeros((7, 7))
    W[:3, :3] = W[3:6, 3:6] = 1 - np.eye(3)
    assert sample_nodes(W, 2).bound == 0.0  # a component is left without a sample
    found = sample_nodes(W, 3)
    assert found.bound > 0
    assert sorted(np.array([0, 0, 0, 1, 1, 1, 2])[found.nodes]) == [0, 1, 2]
    assert sample_nodes(W, 7).nodes.size == 7


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_every_component_of_a_large_graph_gets_a_sample(kind):
    rng = np.random.default_rng(0)
    X = 1000.0 * rng.normal(size=(20, 3))[np.arange(800) % 20] + rng.normal(size=(800, 3))
    found = sample_nodes(neighbor_graph(X, n_neighbors=6), 20, laplacian=kind)
    assert np.unique(found.nodes % 20).size == 20
    assert found.bound > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n=0"),
        ({"n": 4}, "n=4"),
        ({"n": 1, "weight": 0.0}, "weight=0.0"),
        ({"n": 1, "laplacian": "round"}, "laplacian='round'"),
        ({"n": 1, "known": [3]}, "known"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        sample_nodes(np.ones((3, 3)) - np.eye(3), **options)


def signed_graph(seed, flipped):
    """A neighbour graph with the signs of random colours, a share of them flipped."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 50))
    P = rng.random((n, 2))
    D = ((P[:, None] - P) ** 2).sum(axis=-1)
    W = np.where(np.sort(D, axis=1)[:, [6]] > D, np.exp(-10 * D), 0.0)
    W = np.maximum(W, W.T)
    np.fill_diagonal(W, 0.0)
    colors = rng.choice([-1, 1], n)
    flip = np.triu(rng.random((n, n)) < flipped, 1)
    return np.where(flip | flip.T, -1.0, 1.0) * W * np.outer(colors, colors)


@pytest.mark.parametrize("balancing", ["augmentation", "removal"])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("seed", range(12))
def test_bound_holds_in_the_signed_graph_as_given(seed, kind, balancing):
    W = signed_graph(seed, (0.0, 0.05, 0.2)[seed % 3])
    n = len(W)
    result = sample_nodes(W, max(2, n // 5), laplacian=kind, balancing=balancing)
    L = signed_laplacian(sp.csr_array(W), kind).toarray()
    A = L + np.diag(np.bincount(result.nodes, minlength=n).astype(float))
    assert result.bound <= np.linalg.eigvalsh(A)[0] + 1e-12
    if balancing == "augmentation":
        assert discs(A, v=result.scaling).lower_bound >= result.bound - 1e-9
    if seed % 3 == 0:  # balanced: the colours are exact and nothing is lost by the signs
        assert (W * np.outer(result.colors, result.colors) >= 0).all()
        assert result.bound == sample_nodes(np.abs(W), max(2, n // 5), laplacian=kind).bound


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_signed_samples_beat_random_ones(kind):
    ratios = []
    for seed in range(30):
        W, rng = signed_graph(seed, (0.0, 0.05, 0.2)[seed % 3]), np.random.default_rng(seed)
        n, L = len(W), signed_laplacian(sp.csr_array(W), kind).toarray()
        samples = [rng.choice(n, n // 6, replace=False) for _ in range(9)]
        samples.append(sample_nodes(W, n // 6, laplacian=kind).nodes)
        *others, ours = (
            np.linalg.eigvalsh(L + np.diag(np.bincount(nodes, minlength=n)))[0] for nodes in samples
        )
        ratios.append(ours / max(np.median(others), 1e-12))
    assert np.median(ratios) >= 1.2


def test_smooth_signals_are_reconstructed_with_their_signs():
    W = signed_graph(0, 0.0)
    signal = balance(W).colors.astype(float)  # x_i = sign(W_ij) x_j on every edge
    nodes = sample_nodes(W, 5, laplacian="combinatorial").nodes
    found = reconstruct(W, nodes, signal[nodes], laplacian="combinatorial")
    np.testing.assert_allclose(found, signal, atol=1e-7)
    both = reconstruct(W, nodes, np.column_stack([signal, -signal])[nodes])
    assert both.shape == (len(W), 2)
    with pytest.raises(ValueError, match="one row per node"):
        reconstruct(W, nodes, signal)
    with pytest.raises(ValueError, match="nodes are numbered"):
        reconstruct(W, [10**6], [1.0])
    with pytest.raises(ValueError, match="did you mean 'removal'"):
        sample_nodes(W, 2, balancing="removals")
