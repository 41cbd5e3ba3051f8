"""Orders of the nodes: what they are, and when they are looked for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from gdpa.policy import Policy
from gdpa.system.labeled import arrange, is_scattered

LARGE = Policy(order_rows=100)


def torus(side: int, seed: int | None = 0) -> sp.csr_array:
    """Weighted grid without a border, its nodes in random order (None: row by row)."""
    offsets = [-1, 1, side - 1, 1 - side]
    ring = sp.diags_array([1.0, 1.0, 1.0, 1.0], offsets=offsets, shape=(side, side))
    one = sp.eye_array(side)
    W = sp.csr_array(sp.kron(ring, one) + sp.kron(one, ring))
    upper = sp.triu(W).tocsr()
    upper.data = np.random.default_rng(7).uniform(0.5, 1.5, upper.nnz)
    W = sp.csr_array(upper + upper.T)
    if seed is None:
        return W
    mixed = np.random.default_rng(seed).permutation(W.shape[0])
    return sp.csr_array(W[mixed][:, mixed])


def test_arranged_is_the_matrix_in_another_order():
    A = torus(40)
    found = arrange(A, LARGE)
    expected = A.toarray()[np.ix_(found.order, found.order)]
    np.testing.assert_array_equal(found.matrix.matrix.toarray(), expected)


def test_an_order_names_all_nodes_of_all_components():
    A = torus(60)
    two = sp.csr_array(sp.block_diag([A, A]))
    mixed = np.random.default_rng(5).permutation(7200)
    for matrix in (A, sp.csr_array(two[mixed][:, mixed])):
        found = arrange(matrix, LARGE)
        np.testing.assert_array_equal(np.sort(found.order), np.arange(matrix.shape[0]))
        assert is_scattered(matrix)
        assert not is_scattered(found.matrix.matrix)


def test_an_order_is_looked_for_only_where_it_pays():
    assert arrange(torus(40)).order is None  # vectors of so few rows stay in the cache
    assert arrange(torus(200, None), LARGE).order is None  # near as they are
    assert not is_scattered(sp.csr_array((5, 5)))


@pytest.mark.parametrize(("near", "far", "expected"), [(20, 80, False), (19, 81, True)])
def test_graphs_with_a_fifth_of_near_entries_are_not_scattered(near, far, expected):
    """On 100 nodes, an entry is near if it is next to the diagonal."""
    rows_ = np.concatenate([np.arange(near), np.arange(far) % 90])
    columns = np.concatenate([np.arange(near) + 1, np.arange(far) % 90 + 2 + np.arange(far) // 90])
    A = sp.csr_array((np.ones(100), (rows_, columns)), shape=(100, 100))
    assert A.nnz == 100
    assert is_scattered(A) is expected
    # Strictly below a fiftieth of the nodes.
    assert not is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[1], shape=(101, 101))))
    assert is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[2], shape=(100, 100))))
    assert not is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[2], shape=(101, 101))))
    assert not is_scattered(sp.csr_array((100, 100)))


def test_rows_of_equal_length_are_together():
    n = 2500
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n - 20, (2, 4000))  # the last nodes are isolated
    W = sp.csr_array((np.ones(4000), (ends[0], ends[1])), shape=(n, n))
    W = sp.csr_array(W + W.T)
    found = arrange(W, Policy(order_rows=n))
    assert arrange(W, Policy(order_rows=n + 1)).order is None
    lengths = np.diff(W.indptr)
    first = breadth_first_order(W, int(np.argmax(lengths)), return_predecessors=False)
    order = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
    assert found.order.dtype == np.int32
    for a in (0, 1024, 2048):
        b = min(a + 1024, n)
        part = order[a:b]
        if b - a == 1024:
            part = part[np.argsort(lengths[part], kind="stable")]
        np.testing.assert_array_equal(found.order[a:b], part)
    expected = W[found.order][:, found.order]
    assert abs(found.matrix.matrix - expected).max() == 0
