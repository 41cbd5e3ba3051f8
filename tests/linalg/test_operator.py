"""What can be multiplied: products in either precision, over threads, and at unit diagonal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from gdpa.checks import check_positive
from gdpa.linalg import operator
from gdpa.linalg.operator import (
    BLAS_ALONE,
    PART,
    SINGLE_HIGH,
    Difference,
    Matrix,
    UnitDiagonal,
    _row_blocks,
    inner_product,
)
from gdpa.policy import Policy
from tests.linalg.small_matrices import laplacian

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


def test_indices_are_narrowed_and_nothing_else_is_copied():
    A = laplacian(30, 1.0)
    assert A.indices.dtype == np.int32
    assert np.shares_memory(Matrix(A).matrix.data, A.data)
    assert np.shares_memory(Matrix(A).matrix.indices, A.indices)
    wide = A.copy()
    wide.indices, wide.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    narrow = Matrix(wide).matrix
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    np.testing.assert_array_equal(narrow.toarray(), A.toarray())


def test_the_largest_entry_is_absolute():
    assert Matrix(np.array([[1.0, -7.0], [-7.0, 3.0]])).largest == 7.0
    assert Matrix(np.array([[9.0, -7.0], [-7.0, 3.0]])).largest == 9.0
    assert Matrix(sp.csr_array((4, 4))).largest == 0.0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2), (2, 2, 2)])
def test_only_square_matrices(shape):
    with pytest.raises(ValueError, match="square"):
        Matrix(np.ones(shape))


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 0), (3, 7), (8, 2)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_asymmetry_is_judged_by_the_largest_entry(i, j, size):
    A = size * laplacian(9, 1.0).toarray()
    Matrix(A, checked=False)
    top = np.abs(A).max()
    A[i, j] += 1e-11 * top
    Matrix(A)
    A[i, j] += 1e-7 * top
    with pytest.raises(ValueError, match="symmetric"):
        Matrix(A)
    Matrix(A, checked=True)


def test_limits_of_single_precision():
    A = sp.csr_array(np.diag([1.0, 2.0]))
    below = float(np.nextafter(SINGLE_HIGH, 0))
    assert Matrix(sp.csr_array(A * (below / 2))).single
    assert not Matrix(sp.csr_array(A * (SINGLE_HIGH / 2))).single

    def of(*diagonal):
        return UnitDiagonal(Difference(Matrix(sp.csr_array((2, 2))), np.array(diagonal))).single

    assert of(1.0, 2.0)
    assert of(1.0, 1.01e-18)
    assert not of(1.0, 0.99e-18)
    assert of(1.0, 0.99e18)
    assert not of(1.0, 1.01e18)
    assert of(1.0, 0.0)  # excluded unknowns have no scale


def test_row_blocks_have_about_equal_numbers_of_entries():
    A = laplacian(200, 1.0, density=0.1)
    longest = int(np.diff(A.indptr).max())
    for count in (2, 3, 7):
        sizes = [block.nnz for block in operator._row_blocks(A, count)]
        assert sum(sizes) == A.nnz
        assert max(sizes) - min(sizes) <= 2 * longest


def test_a_negative_diagonal_is_named():
    with pytest.raises(ValueError, match="diagonal entry 2 is"):
        UnitDiagonal(Matrix(np.diag([1.0, -1.0, -3.0, 0.0])))


def test_unit_diagonal_keeps_its_definition():
    d = np.array([4.0, 0.0, 0.25])
    for unit in (
        UnitDiagonal(Matrix(sp.csr_array(np.diag(d)))),
        UnitDiagonal(Difference(Matrix(sp.csr_array((3, 3))), d)),
    ):
        np.testing.assert_array_equal(unit.s, [0.5, 0.0, 2.0])
        np.testing.assert_array_equal(unit.inverse, [2.0, 0.0, 0.5])
        np.testing.assert_array_equal(unit.dead, [False, True, False])
        assert unit.trace == 4.25


def test_the_smallest_eigenvalue_is_bounded_by_a_quotient():
    K = laplacian(30, 0.3)
    assert UnitDiagonal(Matrix(K)).smallest() == pytest.approx(K.sum() / K.trace(), rel=1e-12)
    small = UnitDiagonal(Matrix(sp.csr_array(K * 1e-6)))
    assert small.smallest() == pytest.approx(K.sum() / K.trace(), rel=1e-12)
    assert np.isnan(UnitDiagonal(Matrix(K.toarray())).smallest())
    assert np.isnan(UnitDiagonal(Matrix(sp.csr_array((3, 3)))).smallest())


def test_right_hand_sides_are_scaled_by_powers_of_two():
    d = np.array([2.0**-1000, 1.0, 2.0**1000])
    unit = UnitDiagonal(Difference(Matrix(sp.csr_array((3, 3))), d))
    rhs = np.array(
        [
            [0.75 * 2.0**600, 0.0, 0.0, 0.75 * 2.0**-500],
            [0.0, 0.0, 0.0, 0.5],
            [0.0, 0.75 * 2.0**-600, 0.0, 0.0],
        ]
    )
    b, exponent = unit.scaled(rhs)
    np.testing.assert_array_equal(exponent, [1100, -1100, 0, 0])
    expected = np.zeros((3, 4))
    expected[0, 0] = expected[2, 1] = expected[0, 3] = 0.75
    expected[1, 3] = 0.5
    np.testing.assert_array_equal(b, expected)


def test_blocks_of_an_inner_product_are_added_in_double_precision():
    n = 5 * PART + 3
    assert n > BLAS_ALONE
    x = np.zeros(n, dtype=np.float32)
    x[0] = 2.0**12
    x[PART::PART] = 1.0
    x[-1] = 3.0
    assert inner_product(x, x) == 2.0**24 + 5 + 9


@pytest.mark.parametrize(
    ("value", "least", "expected"),
    [
        (2, None, 2.0), (0.5, None, 0.5), (np.float32(0.5), None, 0.5), (0, None, None),
        (0.5, 1, None), (-1, None, None), (np.inf, None, None), (np.nan, None, None),
        (True, None, None), ("1", None, None), (0, 0, 0), (1, 1, 1), (0, 1, None), (-1, 0, None),
        (np.int64(3), 1, 3), (True, 1, None), (1.0, 1, None),
    ],
)  # fmt: skip
def test_positive_numbers(value, least, expected):
    if expected is None:
        word = "positive" if least is None else "whole number"
        with pytest.raises(ValueError, match=f"^size={value!r} must be a {word}".replace("(", ".")):
            check_positive(value, "size", least)
    else:
        found = check_positive(value, "size", least)
        assert found == expected
        assert type(found) is (float if least is None else int)
