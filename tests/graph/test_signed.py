"""Balance: the 2-colouring and its counter-example."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gdpa.graph import balance


@st.composite
def signed_graphs(draw):
    n = draw(st.integers(1, 7))
    upper = [draw(st.sampled_from([-2.0, 0.0, 0.0, 1.0])) for _ in range(n * (n - 1) // 2)]
    A = np.zeros((n, n))
    A[np.triu_indices(n, 1)] = upper
    return A + A.T


def colorable(A):
    """Whether one of all 2^n colourings satisfies every edge."""
    return any((A * np.outer(x, x) >= 0).all() for x in product([1, -1], repeat=len(A)))


def check_witness(A, cycle):
    assert cycle[0] == cycle[-1]
    assert len(cycle) >= 4
    assert len(set(cycle[:-1].tolist())) == len(cycle) - 1
    weights = np.array([A[i, j] for i, j in pairwise(cycle)])
    assert (weights != 0).all()
    assert np.prod(np.sign(weights)) == -1


@given(signed_graphs())
def test_agrees_with_trying_all_colorings(A):
    result = balance(A)
    assert result.balanced == colorable(A)
    assert set(result.colors.tolist()) <= {-1, 1}
    if result.balanced:
        assert result.witness is None
        assert (A * np.outer(result.colors, result.colors) >= 0).all()
    else:
        check_witness(A, result.witness)


@pytest.mark.parametrize("seed", range(5))
def test_switching_a_positive_graph_is_undone(random_graph, seed):
    W = random_graph(60, seed, density=0.1)
    x = np.random.default_rng(seed).choice([-1.0, 1.0], 60)
    result = balance(sp.diags_array(x) @ W @ sp.diags_array(x))
    assert result.balanced
    assert np.array_equal(result.colors, x * x[0])


def test_one_flipped_edge_of_a_long_ring():
    n = 20_000
    i = np.arange(n)
    ring = sp.coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n)).tocsr()
    assert balance(ring + ring.T).balanced
    ring.data[n // 3] = -1.0
    result = balance(ring + ring.T)
    assert not result.balanced
    assert result.witness.size == n + 1
    check_witness((ring + ring.T).todok(), result.witness)


def test_many_components():
    pair = np.array([[0.0, -1.0], [-1.0, 0.0]])
    A = sp.kron(sp.eye_array(20_000), pair).tocsr()
    result = balance(A)
    assert result.balanced
    assert np.array_equal(result.colors, np.tile([1, -1], 20_000))


def test_witness_is_in_the_unbalanced_component():
    bad = np.array([[0, 1, 1], [1, 0, -1], [1, -1, 0]])
    A = sp.block_diag([np.array([[0, -1], [-1, 0]]), bad]).toarray()
    result = balance(A)
    check_witness(A, result.witness)
    assert set(result.witness.tolist()) == {2, 3, 4}


def test_diagonal_does_not_count():
    assert balance([[-5.0, 1.0], [1.0, 3.0]]).balanced
    assert balance([[-1.0]]).colors.tolist() == [1]


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_extreme_weights(weight):
    A = weight * np.array([[0, 1, 1], [1, 0, -1], [1, -1, 0]])
    check_witness(A, balance(A).witness)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[0, 1], [-1, 0]], "symmetric"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        (np.zeros((2, 3)), "square"),
        (np.zeros((0, 0)), "no nodes"),
    ],
)
def test_bad_input_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        balance(A)
