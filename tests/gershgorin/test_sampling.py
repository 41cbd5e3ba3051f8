"""The sampler of disc alignment: its bound is one, and it beats chance."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.gershgorin import discs, sample_nodes
from gdpa.graph import neighbor_graph


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
