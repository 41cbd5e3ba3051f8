"""Orders of the nodes: what they are, and when they are looked for."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

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
