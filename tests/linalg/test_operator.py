"""What can be multiplied: products in either precision, over threads, and at unit diagonal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from gdpa.linalg import Matrix
from gdpa.linalg.operator import (
    BLAS_ALONE,
    PART,
    UnitDiagonal,
    _row_blocks,
    inner_product,
)
from gdpa.policy import Policy

EAGER = Policy(thread_nnz=0)


@pytest.fixture
def A(random_graph):
    return random_graph(75, 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(75,), (75, 1), (75, 2), (75, 5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_products_in_the_precision_asked_for(A, shape, dtype, order):
    Y = np.asarray(np.random.default_rng(0).normal(size=shape), dtype=dtype, order=order)
    found = Matrix(A).dot(Y, dtype)
    assert found.dtype == dtype
    assert found.shape == shape
    np.testing.assert_allclose(found, A.toarray() @ Y, rtol=0, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_change_no_digit(A, dtype):
    Y = np.random.default_rng(0).normal(size=(75, 2)).astype(dtype)
    one = Matrix(A, policy=EAGER).dot(Y, dtype)
    for n_jobs in (2, 3, 7):
        np.testing.assert_array_equal(Matrix(A, policy=EAGER).dot(Y, dtype, n_jobs), one)


def test_row_blocks_are_views(A):
    for count in (2, 5):
        blocks = _row_blocks(A, count)
        assert len(blocks) == count
        x = np.random.default_rng(0).normal(size=75)
        np.testing.assert_array_equal(np.concatenate([b @ x for b in blocks]), A @ x)
        assert all(np.shares_memory(b.data, A.data) for b in blocks)
        assert all(np.shares_memory(b.indices, A.indices) for b in blocks)


def test_entries_in_single_precision_are_made_once(A):
    matrix, y = Matrix(A), np.ones(75, dtype=np.float32)
    matrix.dot(y, np.float32)
    short = matrix._copies[np.dtype(np.float32)]
    matrix.dot(y, np.float32)
    assert matrix._copies[np.dtype(np.float32)] is short
    assert np.shares_memory(short.indices, matrix.matrix.indices)


def test_sparse_and_dense_multiply_alike(A):
    x = np.random.default_rng(1).normal(size=75)
    for given in (A, A.toarray(), sp.coo_array(A)):
        matrix = Matrix(given)
        np.testing.assert_allclose(matrix.dot(x), A @ x, atol=1e-13)
        np.testing.assert_array_equal(matrix.toarray(), A.toarray())


def test_single_precision_is_for_entries_far_from_its_limits(A):
    assert Matrix(A).single
    assert not Matrix(A * 1e12).single
    assert not Matrix(A.toarray()).single  # nothing to gain
    K = sp.csr_array(sp.diags_array(A.sum(axis=1) + 1.0) - A)
    assert UnitDiagonal(Matrix(K)).single
    assert not UnitDiagonal(Matrix(sp.csr_array(K * 1e-30))).single


def test_unit_diagonal(A):
    K = (sp.diags_array(A.sum(axis=1) + np.linspace(1, 9, 75)) - A).toarray()
    K[7], K[:, 7] = 0.0, 0.0
    unit = UnitDiagonal(Matrix(sp.csr_array(K)))
    C = unit.dot(np.eye(75))
    expected = np.ones(75)
    expected[7] = 0.0
    np.testing.assert_allclose(np.diag(C), expected, atol=1e-14)
    np.testing.assert_allclose(unit.toarray() - C, np.diag(1 - expected), atol=1e-14)
    root = np.sqrt(np.diag(K))
    np.testing.assert_allclose(root[:, None] * C * root, K, atol=1e-12)
    rhs = np.column_stack([root * 1e-250, root * 1e200, 0 * root])
    b, exponent = unit.scaled(rhs)
    assert ((np.abs(b).max(axis=0) >= 0.25) == [True, True, False]).all()
    np.testing.assert_allclose(np.ldexp(b, exponent), unit.s[:, None] * rhs, rtol=1e-14)


@pytest.mark.parametrize(
    "n", [0, 1, 7, PART, BLAS_ALONE, BLAS_ALONE + 1, 5 * PART, 5 * PART + 1, 50_000]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inner_product_is_the_sum_of_products(n, dtype):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype(dtype)
    products = x.astype(np.float64) * y
    error = PART * float(np.finfo(dtype).eps)
    assert abs(inner_product(x, y) - math.fsum(products)) <= error * float(np.abs(products).sum())


def test_inner_product_has_the_same_digits_for_any_number_of_threads():
    x, y = np.random.default_rng(0).standard_normal((2, 200_000))
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(inner_product(x, y))
    assert found[0] == found[1]
