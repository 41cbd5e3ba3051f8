"""Orders of the nodes: what they are, and when they are looked for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.linalg import ordering
from gdpa.linalg.ordering import is_scattered, near_order, permuted
from gdpa.policy import Policy

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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_permuted_is_the_matrix_in_another_order(monkeypatch, n_jobs):
    monkeypatch.setattr(ordering, "ROWS", 17)
    A = torus(11)
    order = np.random.default_rng(1).permutation(A.shape[0]).astype(np.int32)
    B = permuted(A, order, n_jobs)
    np.testing.assert_array_equal(B.toarray(), A.toarray()[np.ix_(order, order)])


def test_rows_of_equal_length_come_together_and_stay_near(monkeypatch, random_graph):
    monkeypatch.setattr(ordering, "WINDOW", 16)
    monkeypatch.setattr(ordering, "NEAR_SHARE", 1.1)
    A = random_graph(75, 0)
    known = np.random.default_rng(1).permutation(75)
    monkeypatch.setattr(ordering, "is_scattered", lambda A, order=None: order is None)
    found = near_order(A, known, Policy(order_rows=1))
    lengths = np.diff(A.indptr)
    for first in range(0, 64, 16):
        part = slice(first, first + 16)
        assert set(found[part]) == set(known[part])
        assert (np.diff(lengths[found[part]]) >= 0).all()
    np.testing.assert_array_equal(found[64:], known[64:])


def test_a_search_names_all_nodes_of_all_components():
    A = torus(60)
    two = sp.csr_array(sp.block_diag([A, A]))
    mixed = np.random.default_rng(5).permutation(7200)
    for matrix in (A, sp.csr_array(two[mixed][:, mixed])):
        order = near_order(matrix, policy=LARGE)
        np.testing.assert_array_equal(np.sort(order), np.arange(matrix.shape[0]))
        assert not is_scattered(matrix, order)


def test_a_random_order_is_scattered_and_the_one_found_is_not():
    A = torus(200)
    order = near_order(A, policy=LARGE)
    assert is_scattered(A)
    assert not is_scattered(A, order)
    assert not is_scattered(permuted(A, order))
    assert not is_scattered(torus(200, None))
    assert not is_scattered(sp.csr_array((5, 5)))


def test_an_order_is_looked_for_only_where_it_pays(monkeypatch):
    A = torus(40)
    assert near_order(A) is None  # vectors of so few rows stay in the cache
    assert near_order(torus(40, None), policy=LARGE) is None  # near as they are
    searched = []

    def search(*args, **options):
        searched.append(1)
        return breadth_first_order(*args, **options)

    breadth_first_order = ordering.breadth_first_order
    monkeypatch.setattr(ordering, "breadth_first_order", search)
    # The rows of the torus, in which its nodes are near.
    known = np.argsort(np.random.default_rng(0).permutation(1600))
    found = near_order(A, known, LARGE)
    assert not searched
    assert abs(np.argsort(found) - np.argsort(known)).max() < ordering.WINDOW
    near_order(A, np.arange(1600), LARGE)  # useless: as scattered as before
    assert searched == [1]
