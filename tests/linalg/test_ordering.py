"""Orders of the nodes: what they are, and that the solution does not know of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph import laplacian_parts
from gdpa.linalg import operand as operand_module
from gdpa.linalg import ordering
from gdpa.linalg.operand import Operand
from gdpa.linalg.ordering import breadth_first, by_length, check_order, is_scattered, permuted
from gdpa.solvers.recovery import linear_recovery, shared_operand


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


@pytest.fixture
def large(monkeypatch):
    """Everything is done as for large graphs."""
    monkeypatch.setattr("gdpa.linalg.operand.ORDER_ROWS", 100)
    monkeypatch.setattr("gdpa.linalg.cg.SINGLE_ROWS", 100)
    monkeypatch.setattr("gdpa.linalg.operand.THREAD_NNZ", 100)
    monkeypatch.setattr("gdpa.solvers.implicit_system.IMPLICIT_NODES", 100)


@pytest.mark.parametrize("dtype", [None, np.float32])
@pytest.mark.parametrize("threads", [None, 2])
def test_permuted_is_the_matrix_in_another_order(monkeypatch, dtype, threads):
    monkeypatch.setattr(ordering, "ROWS", 17)
    A = torus(11)
    order = np.random.default_rng(1).permutation(A.shape[0]).astype(np.int32)
    with ThreadPoolExecutor(2) as pool:
        B = permuted(A, order, dtype=dtype, pool=pool if threads else None)
    assert B.dtype == (dtype or np.float64)
    np.testing.assert_array_equal(B.toarray(), A.astype(B.dtype).toarray()[np.ix_(order, order)])


def test_rows_of_equal_length_come_together_and_stay_near(monkeypatch, random_graph):
    monkeypatch.setattr(ordering, "WINDOW", 16)
    A = random_graph(75, 0)
    order = np.random.default_rng(1).permutation(75).astype(np.int32)
    found = by_length(A, order)
    lengths = np.diff(A.indptr)
    for first in range(0, 64, 16):
        part = slice(first, first + 16)
        assert set(found[part]) == set(order[part])
        assert (np.diff(lengths[found[part]]) >= 0).all()
    np.testing.assert_array_equal(found[64:], order[64:])
    np.testing.assert_array_equal(by_length(A, order[:3]), order[:3])


def test_breadth_first_names_all_nodes_of_all_components():
    A = torus(12)
    order, connected = breadth_first(A)
    assert connected
    np.testing.assert_array_equal(np.sort(order), np.arange(144))
    two = sp.csr_array(sp.block_diag([A, A]))
    order, connected = breadth_first(two)
    assert not connected
    np.testing.assert_array_equal(np.sort(order), np.arange(288))


def test_a_random_order_is_scattered_and_a_breadth_first_one_is_not():
    A = torus(200)
    order, _ = breadth_first(A)
    assert is_scattered(A)
    assert not is_scattered(A, order)
    assert not is_scattered(permuted(A, order))
    assert not is_scattered(torus(200, None))
    assert not is_scattered(sp.csr_array((5, 5)))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], "shape"),
        ([0, 1, 2, 2], "3 is missing"),
        ([0, 1, 2, 4], "from 0 to 4"),
        ([-1, 1, 2, 3], "from -1"),
        ([0.0, 1.0, 2.0, 3.0], "float64"),
    ],
)
def test_an_order_that_is_none_is_refused(order, message):
    with pytest.raises(ValueError, match=message):
        check_order(order, 4)
    with pytest.raises(ValueError, match=r"each of the 4 nodes once"):
        shared_operand(sp.csr_array(np.ones((4, 4)) - np.eye(4)), order=order)


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("weight", [np.inf, 2.0])
def test_scores_do_not_depend_on_the_order_of_the_nodes(large, columns, kind, weight):
    side = 40
    n = side * side
    A, d = laplacian_parts(torus(side, None), kind)
    rng = np.random.default_rng(3)
    labeled = rng.permutation(n)[:60]
    targets = rng.normal(size=(60, columns))
    loop = 0.05 * float(d.mean())
    options = {"self_loop": loop, "label_weight": weight, "tol": 1e-9}
    rows_in_order = linear_recovery(A, d, labeled, targets, **options)
    dense = np.diag(d + loop) - A.toarray()
    rhs = np.zeros((n, columns))
    if np.isinf(weight):
        dense[labeled] = np.eye(n)[labeled]
        rhs[labeled] = targets
    else:
        dense[labeled, labeled] += weight
        rhs[labeled] = weight * targets
    expected = np.linalg.solve(dense, rhs)
    for seed in (1, 2):
        mixed = np.random.default_rng(seed).permutation(n)
        place = np.argsort(mixed)
        B = sp.csr_array(A[mixed][:, mixed])
        for order in (None, place):  # found, and given: the rows of the torus
            shared = shared_operand(B, order=order)
            found = linear_recovery(B, d[mixed], place[labeled], targets, operand=shared, **options)
            assert shared.is_reordered
            assert found.converged
            np.testing.assert_allclose(found.scores[place], rows_in_order.scores, atol=1e-7)
            np.testing.assert_allclose(found.scores[place], expected, atol=1e-7)


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_threads_change_no_digit(large, columns):
    A, d = laplacian_parts(torus(40), "normalized")
    rng = np.random.default_rng(3)
    labeled, targets = rng.permutation(1600)[:60], rng.normal(size=(60, columns))

    def scores(n_jobs):
        shared = Operand(A, n_jobs=n_jobs, rescale=False)
        assert shared.n_jobs == n_jobs
        return linear_recovery(
            A, d, labeled, targets, self_loop=0.05, tol=1e-7, operand=shared
        ).scores

    one = scores(1)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(scores(n_jobs), one)


def test_one_order_and_one_copy_serve_all_solves(large, monkeypatch):
    A, d = laplacian_parts(torus(40), "normalized")
    made = {"order": 0, "copy": 0}

    def counted(name, call):
        def wrapper(*args, **kwargs):
            made[name] += 1
            return call(*args, **kwargs)

        return wrapper

    monkeypatch.setattr(operand_module, "breadth_first", counted("order", breadth_first))
    monkeypatch.setattr(operand_module, "permuted", counted("copy", permuted))
    shared = shared_operand(A)
    labeled = np.arange(0, 1600, 40)
    for loop in (0.01, 0.02):
        linear_recovery(A, d, labeled, np.ones((40, 2)), self_loop=loop, operand=shared)
    assert made == {"order": 1, "copy": 1}
    assert shared.connected
    # The rows of the torus, which is_scattered takes for near.
    rows = np.argsort(np.random.default_rng(0).permutation(1600))
    given = shared_operand(A, order=rows)
    linear_recovery(A, d, labeled, np.ones((40, 2)), self_loop=0.01, operand=given)
    assert made == {"order": 1, "copy": 2}  # nothing is searched for
    useless = shared_operand(A, order=np.arange(1600))
    linear_recovery(A, d, labeled, np.ones((40, 2)), self_loop=0.01, operand=useless)
    assert made == {"order": 2, "copy": 3}


def test_a_short_solve_is_not_reordered(large):
    A, d = laplacian_parts(torus(40), "normalized")
    shared = shared_operand(A)
    found = linear_recovery(
        A, d, np.arange(0, 1600, 40), np.ones(40), self_loop=10.0, tol=1e-2, operand=shared
    )
    assert found.converged
    assert found.iterations < 6
    assert not shared.is_reordered


def test_row_blocks_are_views():
    A = torus(40)
    for count in (2, 5):
        blocks = operand_module._row_blocks(A, count)
        assert len(blocks) == count
        x = np.random.default_rng(0).normal(size=1600)
        np.testing.assert_array_equal(np.concatenate([b @ x for b in blocks]), A @ x)
        assert all(np.shares_memory(b.data, A.data) for b in blocks)
        assert all(np.shares_memory(b.indices, A.indices) for b in blocks)
