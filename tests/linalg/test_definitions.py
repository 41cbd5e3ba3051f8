"""Every building block of the linear algebra against its definition, on small dense examples."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial.chebyshev import Chebyshev
from scipy import linalg

from gdpa.checks import check_positive
from gdpa.errors import ConvergenceWarning
from gdpa.linalg import operator, preconditioners, psd_proof, solve_spd, spd
from gdpa.linalg.operator import (
    BLAS_ALONE,
    EPS,
    PART,
    SINGLE_HIGH,
    Difference,
    Matrix,
    UnitDiagonal,
    inner_product,
)
from gdpa.linalg.preconditioners import BUILD_AT, Correction, Counted, chebyshev, jacobi
from gdpa.linalg.two_level import CoarseSpace, coarse_count, patches
from gdpa.policy import Policy

eigen = import_module("gdpa.linalg.first_eigenvector")  # the function has the same name


def laplacian(n: int, shift: float, seed: int = 0, density: float = 0.2) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < density) * rng.uniform(0.5, 1.5, (n, n)), 1)
    W = W + W.T
    return sp.csr_array(np.diag(W.sum(axis=1) + shift) - W)


def path(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))


def as_matrix(M, n: int) -> np.ndarray:
    return np.column_stack([M(column) for column in np.eye(n)])


# Operators


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


def test_threads_are_used_from_the_given_number_of_entries(monkeypatch):
    A, calls = laplacian(40, 1.0), []
    monkeypatch.setattr(
        operator, "in_threads", lambda f, parts, jobs: calls.append(jobs) or [f(p) for p in parts]
    )
    x = np.random.default_rng(0).standard_normal(40)
    for limit, expected in ((A.nnz, [3, 3]), (A.nnz + 1, [])):
        matrix = Matrix(A, policy=Policy(thread_nnz=limit))
        for _ in range(2):
            np.testing.assert_allclose(matrix.dot(x, np.float64, 3), A @ x, atol=1e-12)
        np.testing.assert_array_equal(matrix.dot(x), A @ x)
        assert calls == expected
        calls.clear()
        kept = matrix._copies.get((np.dtype(np.float64), 3))
        assert (kept is not None) == bool(expected)
    assert not Matrix(A.toarray(), policy=Policy(thread_nnz=0)).threads_pay


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


# Proofs of semi-definiteness


@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_dense_margin_is_that_of_rump(n):
    d = np.random.default_rng(n).uniform(1.0, 2.0, n)
    bound = psd_proof.lowest_eigenvalue_bound(sp.csr_array(np.diag(d)))
    assert bound == pytest.approx(-(n + 2) * EPS * d.sum(), rel=1e-13, abs=0)
    tiny = psd_proof.lowest_eigenvalue_bound(sp.csr_array(np.diag(1e-290 * d)))
    assert tiny == pytest.approx(-(n * n) * 1e-300, rel=1e-3, abs=0)  # the part for underflow


@pytest.mark.parametrize("n", [2, 6, 30])
def test_a_proof_needs_eigenvalues_above_the_margin(n):
    d = np.ones(n)
    margin = (n + 2) * EPS * (n - 1)
    for factor, proved in ((0.9, False), (1.2, True)):
        d[-1] = factor * margin
        A = np.diag(d)
        assert psd_proof.proved_psd(A) is proved
        # The bound takes the margin off the result, not off the matrix.
        bound = psd_proof.lowest_eigenvalue_bound(sp.csr_array(A))
        assert bound == pytest.approx(-margin, rel=1e-9, abs=0)
        np.testing.assert_array_equal(A, np.diag(d))  # not modified
    for bad in (0.0, -1.0):
        d[-1] = bad
        assert not psd_proof.proved_psd(np.diag(d))
        assert psd_proof.lowest_eigenvalue_bound(sp.csr_array(np.diag(d))) is None


@pytest.mark.parametrize("n", [501, 700])
def test_the_sparse_bound_of_a_diagonal_matrix(n):
    """Here L = 1 and U = D, so the formula has only the terms of rounding."""
    d = np.random.default_rng(n).uniform(1.0, 2.0, n)
    bound = psd_proof.lowest_eigenvalue_bound(sp.csr_array(sp.diags_array(d)))
    rounding = d.max() * (8 * EPS + 2 * (n + 4) * EPS)
    assert bound == pytest.approx(-rounding * (1 + 4 * n * EPS), rel=1e-13, abs=0)
    tiny = psd_proof.lowest_eigenvalue_bound(sp.csr_array(sp.diags_array(1e-290 * d)))
    assert tiny == pytest.approx(-(n * n) * 1e-300, rel=1e-3, abs=0)
    d[3] = 0.0
    assert psd_proof.lowest_eigenvalue_bound(sp.csr_array(sp.diags_array(d))) is None
    d[3] = -1.0
    assert psd_proof.lowest_eigenvalue_bound(sp.csr_array(sp.diags_array(d))) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_sparse_bound_is_the_formula_of_its_factors(seed):
    rng = np.random.default_rng(seed)
    A = path(520)
    D = sp.diags_array(rng.uniform(0.1, 3.0, 520))
    A = sp.csr_array(D @ A @ D)
    bound = psd_proof.lowest_eigenvalue_bound(A)
    assert bound < 0
    assert bound <= np.linalg.eigvalsh(A.toarray())[0]
    # A tridiagonal matrix fills nothing: |L||U| is at most about twice |A|.
    top = float(abs(A).sum(axis=1).max())
    assert bound >= -2 * 2.0 * (520 + 8) * EPS * 2 * top


def test_sizes_of_proofs(monkeypatch):
    calls = []
    monkeypatch.setattr(psd_proof, "_sparse_bound", lambda A: calls.append(A.shape[0]))
    for n in (500, 501):
        psd_proof.lowest_eigenvalue_bound(sp.csr_array(sp.identity(n)))
    assert calls == [501]

    def shaped(n, nnz):
        return SimpleNamespace(shape=(n, n), nnz=nnz)

    assert psd_proof._sparsely(shaped(40_000, 280_000))
    assert not psd_proof._sparsely(shaped(40_000, 280_001))
    assert not psd_proof._sparsely(shaped(40_001, 1))
    monkeypatch.setattr(psd_proof, "available_memory", lambda: 1e18)
    assert psd_proof._densely(shaped(9_000, 1))
    assert not psd_proof._densely(shaped(9_001, 1))
    assert psd_proof.can_prove(shaped(9_000, 10**9))
    assert psd_proof.can_prove(shaped(9_001, 1))
    assert not psd_proof.can_prove(shaped(9_001, 10**9))
    need = 9.0 * 100 * 100 / psd_proof.USABLE_SHARE
    for factor, fits in ((1.001, True), (0.999, False)):
        monkeypatch.setattr(psd_proof, "available_memory", lambda f=factor: f * need)
        assert psd_proof._densely(shaped(100, 1)) is fits
    full = sp.csr_array(np.eye(100) + 0.001)
    assert psd_proof.lowest_eigenvalue_bound(full) is None


# Preconditioners


@pytest.mark.parametrize(
    ("diagonal", "inverse"),
    [
        ([4.0, 0.0, 1e-13, -3.0, 2.0], [1 / 4, 1 / 3, 1 / 3, 1 / 3, 1 / 2]),
        ([1.0, 2e-12, 1e-12], [1.0, 5e11, 1 / (0.5 + 1e-12)]),
        ([-4.0, 1e-11, 3e-12], [1e11, 1e11, 1e11]),
        ([0.0, -2.0], [0.5, 0.5]),
        ([0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_jacobi_replaces_small_entries_by_the_median(diagonal, inverse):
    M = jacobi(np.array(diagonal))
    np.testing.assert_allclose(M(np.full(len(diagonal), 2.0)), 2 * np.array(inverse), rtol=1e-12)


@pytest.mark.parametrize(("degree", "ratio"), [(3, 20.0), (1, 5.0)])
def test_the_residual_polynomial_is_that_of_chebyshev(degree, ratio):
    n = 25
    A = laplacian(n, 0.4)
    counted = Counted(Matrix(A), 1)
    options = {} if degree == 3 else {"degree": degree, "ratio": ratio}
    M = as_matrix(chebyshev(counted, **options), n)
    assert counted.products == degree * n
    d = A.diagonal()
    top = (np.abs(A.toarray()).sum(axis=1) / d).max()
    low = top / ratio
    T = Chebyshev.basis(degree + 1)
    root = np.sqrt(d)
    values, V = np.linalg.eigh(A.toarray() / root[:, None] / root)
    p = T((top + low - 2 * values) / (top - low)) / T((top + low) / (top - low))
    # M A = D^-1/2 (1 - p(S A S)) D^1/2 with S = D^-1/2.
    expected = (V * (1 - p)) @ V.T * root / root[:, None]
    np.testing.assert_allclose(M @ A.toarray(), expected, atol=1e-12)


def test_chebyshev_needs_a_diagonal_that_is_nearly_dominant():
    def of(A):
        return chebyshev(Counted(Matrix(A), 1))

    assert of(sp.csr_array(np.array([[1.0, 3.0], [3.0, 1.0]]))) is not None
    assert of(sp.csr_array(np.array([[1.0, 3.01], [3.01, 1.0]]))) is None
    assert of(sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]]))) is None
    assert of(np.eye(2)) is None


def test_the_inverse_of_a_nearly_singular_matrix():
    """Squared pivots up to 10 n eps are refused; eigenvalues up to n eps are dropped."""
    n = 4
    for factor, name, last in (
        (20 * n, "dense-cholesky", 1 / (20 * n * EPS)),
        (5 * n, "dense-eigh", 1 / (5 * n * EPS)),
        (2 * n, "dense-eigh", 1 / (2 * n * EPS)),
        (n / 2, "dense-eigh", 0.0),
    ):
        C = np.diag([1.0, 1.0, 1.0, factor * EPS])
        M, method = preconditioners.dense_inverse(C)
        assert method == name
        np.testing.assert_allclose(M(np.eye(n)), np.diag([1.0, 1.0, 1.0, last]), rtol=1e-10)
    # Relative to the largest eigenvalue.
    M, method = preconditioners.dense_inverse(np.diag([100.0, 1.0, 1.0, 36 * EPS]))
    assert method == "dense-eigh"
    np.testing.assert_allclose(M(np.eye(n)), np.diag([0.01, 1.0, 1.0, 0.0]), rtol=1e-10)
    L = laplacian(30, 0.0).toarray()
    M, method = preconditioners.dense_inverse(L)
    assert method == "dense-eigh"
    np.testing.assert_allclose(M(np.eye(30)), np.linalg.pinv(L), atol=1e-10)
    np.testing.assert_array_equal(L, laplacian(30, 0.0).toarray())


def test_a_coarse_correction_is_added():
    rng = np.random.default_rng(0)
    Z, E = sp.csr_array(rng.random((9, 3))), rng.random((3, 3))
    M = as_matrix(preconditioners.with_coarse(Z, E), 9)
    np.testing.assert_allclose(M, np.eye(9) + Z @ E @ Z.toarray().T, atol=1e-13)
    M = as_matrix(preconditioners.with_coarse(Z, E, lambda r: 3 * r), 9)
    np.testing.assert_allclose(M, 3 * np.eye(9) + Z @ E @ Z.toarray().T, atol=1e-13)


@pytest.mark.parametrize("excluded", [0, 5])
def test_two_level_is_jacobi_plus_the_coarse_inverse(excluded):
    n = 120
    K = laplacian(n, 0.3)
    d = K.diagonal()
    scale = 1 / np.sqrt(d)
    scale[:excluded] = 0.0
    M = as_matrix(preconditioners.two_level(K, scale), n)
    live = scale > 0
    count = coarse_count(K)
    Z = np.zeros((n, count))
    Z[np.arange(n), patches(K, count)] = live
    # In the scaled variables y = x / s: S^-1 Z (Z' A Z)^-1 Z' S^-1.
    coarse = Z @ np.linalg.pinv(Z.T @ K @ Z) @ Z.T
    root = np.where(live, np.sqrt(d), 0.0)
    np.testing.assert_allclose(M, np.eye(n) + root[:, None] * coarse * root, atol=1e-9)
    assert preconditioners.two_level(sp.csr_array(-K), scale) is None


def test_number_of_patches():
    def of(nnz, n=10**6, **options):
        return coarse_count(SimpleNamespace(nnz=nnz, shape=(n, n)), **options)

    assert (of(160_000), of(160_000, share=0.38)) == (100, 152)
    assert (of(4), of(10**9), of(4, 7)) == (16, 256, 7)


@pytest.mark.parametrize("with_vector", [False, True])
@pytest.mark.parametrize("with_diagonal", [False, True])
def test_the_coarse_space_is_the_projection(with_vector, with_diagonal):
    n, count = 40, 6
    rng = np.random.default_rng(1)
    K = laplacian(n, 0.5)
    patch = rng.integers(0, count - 1, n).astype(np.int32)  # the last patch is empty
    vector = rng.uniform(-1, 2, n) if with_vector else None
    total = rng.uniform(5, 9, n) if with_diagonal else None
    coarse = CoarseSpace(K, patch, count, vector, diagonal=total)
    Z = np.zeros((n, count))
    Z[np.arange(n), patch] = 1.0 if vector is None else vector
    length = np.linalg.norm(Z, axis=0)
    Z[:, :-1] /= length[:-1]
    np.testing.assert_allclose(coarse.Z.toarray(), Z, atol=1e-14)
    full = K.toarray() if total is None else np.diag(total) - K.toarray()
    np.testing.assert_allclose(coarse.matrix, Z.T @ full @ Z, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 4.0], [0.5, 0.25]),
        ([100.0, 5e-9], [0.01, 0.0]),
        ([100.0, 2e-8], [0.01, 5e7]),
        ([100.0, -5e-9], [0.01, 0.0]),
        ([100.0, -2e-8], None),
        ([0.0, 0.0], None),
        ([-1.0, 0.0], None),
        ([np.inf, 1.0], None),
    ],
)
def test_the_coarse_inverse_drops_what_is_mere_rounding(values, expected):
    coarse = CoarseSpace(sp.csr_array(np.eye(2)), np.arange(2, dtype=np.int32), 2)
    coarse.matrix = np.diag(values)
    found = coarse.definite_inverse()
    if expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, np.diag(expected), rtol=1e-10)


@pytest.mark.parametrize(
    ("values", "shift"),
    [([1.0, 3.0, 9.0], -1.0), ([-4.0, -3.0, 9.0], -5.0), ([2.0, 2.0, 50.0], 2 - 5e-5)],
)
def test_the_gap_inverse_is_shifted_by_the_gap(values, shift):
    coarse = CoarseSpace(sp.csr_array(np.eye(3)), np.arange(3, dtype=np.int32), 3)
    coarse.matrix = np.diag(values)
    first, inverse = coarse.gap_inverse()
    np.testing.assert_allclose(np.diag(values) @ first, values[0] * first, atol=1e-12)
    np.testing.assert_allclose(inverse, np.diag(1 / (np.array(values) - shift)), rtol=1e-9)
    for bad in (np.zeros((3, 3)), np.diag([1.0, np.nan, 1.0])):
        coarse.matrix = bad
        assert coarse.gap_inverse() is None


def star(n: int, leaves: int) -> sp.csr_array:
    """A path whose first node is also adjacent to others, with `leaves` stored entries in all."""
    A = sp.lil_array(path(n))
    A[0, 2:leaves] = -0.001
    A[2:leaves, 0] = -0.001
    return sp.csr_array(A)


@pytest.mark.parametrize(
    ("spec", "A", "warm", "schedule", "built"),
    [
        ("auto", path(2000), False, BUILD_AT, True),
        ("auto", path(2000), True, BUILD_AT, False),
        ("auto", path(1999), False, (), False),
        ("auto", star(2000, 101), False, BUILD_AT[2:], False),
        ("auto", star(2000, 100), False, BUILD_AT, True),
        ("two-level", star(2000, 101), False, BUILD_AT, True),
        ("two-level", path(2), True, BUILD_AT, False),
        ("two-level", path(1), True, (), False),
        ("two-level", path(20).toarray(), True, (), False),
        ("jacobi", path(2000), False, (), False),
        (None, path(2000), False, (), False),
    ],
)
def test_when_the_coarse_correction_is_built(spec, A, warm, schedule, built):
    found = Correction(spec, Counted(Matrix(A), 1), warm=warm)
    assert found.schedule == schedule
    assert (found.first is not None) is built
    r = np.random.default_rng(0).standard_normal(A.shape[0])
    if spec is None:
        assert found(r) is r
    elif not built and not (spec == "auto" and A.shape[0] < 2000):
        np.testing.assert_allclose(found(r), r / A.diagonal())
    else:
        assert not np.allclose(found(r), r / A.diagonal())


def test_starts_are_the_constant_or_the_coarse_vector_with_noise():
    n = 2000
    noise = np.random.default_rng(4).standard_normal(n)
    plain = Correction("jacobi", Counted(Matrix(path(n)), 1), warm=False)
    np.testing.assert_allclose(plain.guess(4), 1 + 0.05 * noise, rtol=1e-14)
    coarse = Correction("two-level", Counted(Matrix(path(n)), 1), warm=False)
    assert coarse.patch.max() + 1 == coarse_count(path(n), share=0.38)
    size = np.linalg.norm(coarse.first)
    np.testing.assert_allclose(
        coarse.guess(4), coarse.first + 0.01 * size * noise / np.sqrt(n), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("iteration", [7, 14, 25])
def test_a_rebuild_needs_more_than_twenty_iterations_left(monkeypatch, iteration):
    """The rate is that of the second half of the iterations."""
    correction = Correction("two-level", Counted(Matrix(path(9)), 1), warm=True)
    calls = []
    monkeypatch.setattr(correction, "_build", calls.append)
    past = iteration // 2
    for left, expected in ((19.9, 0), (20.1, 1)):
        correction.residuals, rate = [], 0.1
        for k in range(iteration):
            size = np.exp(-rate * k) if k == past else 1e50
            correction.refresh(k if k < 7 else 8, np.ones(9), size, 1e-300)
        assert not calls
        residual = np.exp(-rate * iteration)
        correction.refresh(iteration, np.ones(9), residual, residual * np.exp(-rate * left))
        assert len(calls) == expected


# Eigenvectors


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0.5, -1.0], [-0.5, 1.0]),
        ([0.7, -1.0], [0.7, -1.0]),
        ([-0.7, 1.0], [0.7, -1.0]),
        ([-0.5, 0.5, 1.0], [-0.5, 0.5, 1.0]),
        ([0.0, -2.0], [0.0, 2.0]),
        ([0.618034, -1.0], [0.618034, -1.0]),
    ],
)
def test_the_first_large_entry_is_positive(given, expected):
    np.testing.assert_array_equal(eigen._fix_sign(np.array(given)), expected)


def test_starts_are_checked_and_scaled():
    assert eigen._check_start(None, 3) is None
    np.testing.assert_array_equal(eigen._check_start([1, -4, 2], 3), [0.25, -1.0, 0.5])
    for bad in ([1.0, 2.0], [0.0, 0.0, 0.0], [1.0, np.inf, 0.0], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ValueError, match="v0 must"):
            eigen._check_start(bad, 3)


@pytest.mark.parametrize(
    "size", [1e-320, 1e-200, 0.99e-100, 1e-100, 1.0, 1e100, 1.01e100, 1e300, 1e307]
)
def test_only_extreme_matrices_are_divided_by_a_power_of_two(size):
    A = np.array([[1.0, 0.5], [0.5, 0.25]]) * size
    counted, exponent = eigen._ordinary(A)
    assert (exponent == 0) == (1e-100 <= size <= 1e100)
    if exponent:
        assert exponent == np.clip(np.frexp(size)[1], -1000, 1000)
    np.testing.assert_array_equal(np.ldexp(counted.matrix.toarray(), exponent), A)
    assert eigen._ordinary(np.zeros((2, 2)))[1] == 0


def test_a_measured_pair_is_a_rayleigh_quotient_with_its_residual():
    A = laplacian(20, 1.0)
    v = np.random.default_rng(0).standard_normal(20)
    counted = Counted(Matrix(A), 1)
    pair = eigen.measured(counted, v, "own")
    u = v / np.linalg.norm(v)
    assert pair.value == pytest.approx(u @ (A @ u), rel=1e-13)
    assert pair.residual == pytest.approx(np.linalg.norm(A @ u - pair.value * u), rel=1e-12)
    np.testing.assert_allclose(pair.vector, u, rtol=1e-14)
    assert (pair.method, counted.products) == ("own", 1)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("dependent", [False, True])
def test_the_lowest_ritz_value_of_a_span(rows, dependent):
    rng = np.random.default_rng(rows)
    A = laplacian(20, -1.0).toarray()
    S = rng.standard_normal((rows, 20)) * np.logspace(-3, 3, rows)[:, None]
    expected = linalg.eigh(S @ A @ S.T, S @ S.T)[0][0]
    if dependent:
        S = np.vstack([S, 7 * S[-1:], np.zeros((1, 20))])
    value, c = eigen._ritz(S, S @ A)
    assert value == pytest.approx(expected, rel=1e-9)
    x = c @ S
    assert np.linalg.norm(x) == pytest.approx(1.0, rel=1e-9)
    assert x @ A @ x == pytest.approx(value, rel=1e-9)
    S[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        assert eigen._ritz(S, S) is None


def reference_lobpcg(A, x, M, threshold):
    """Minimise the quotient over x, M r and the last step, by a QR factorisation."""
    x, step, iterations = x / np.linalg.norm(x), None, 0
    while True:
        r = A @ x - (x @ A @ x) * x
        if np.linalg.norm(r) <= threshold:
            return x @ A @ x, iterations
        basis = [x, M(r)] + ([] if step is None else [step])
        Q = np.linalg.qr(np.column_stack(basis))[0]
        new = Q @ np.linalg.eigh(Q.T @ A @ Q)[1][:, 0]
        step = new - (new @ x) * x
        x, iterations = new, iterations + 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("preconditioner", [None, "jacobi", "auto"])
def test_iterations_are_those_of_the_definition(monkeypatch, seed, preconditioner):
    offered = []
    monkeypatch.setattr(
        Correction, "refresh", lambda _, k, x, residual, goal: offered.append((k, residual, goal))
    )
    n = 60
    A = laplacian(n, 0.2, seed)
    A = sp.csr_array(A + sp.diags_array(np.linspace(0, 3, n)))
    dense = A.toarray()
    norm = float(np.sort(abs(A).sum(axis=1))[int(0.05 * n)])
    start = 1 + 0.05 * np.random.default_rng(seed).standard_normal(n)
    tol = 1e-5
    M = {None: lambda r: r, "jacobi": lambda r: r / A.diagonal()}.get(preconditioner)
    if M is None:
        M = chebyshev(Counted(Matrix(A), 1))
    value, iterations = reference_lobpcg(dense, start, M, tol * norm)
    seen = []
    found = eigen.first_eigenvector(
        A, tol=tol, preconditioner=preconditioner, dense_below=0, random_state=seed,
        callback=lambda e: seen.append(dict(e)),
    )  # fmt: skip
    assert found.method == "lobpcg"
    assert abs(found.iterations - iterations) <= 1
    assert found.value == pytest.approx(value, rel=1e-6)
    # One product for the start, one per iteration, one to check; three more per polynomial.
    each = 4 if preconditioner == "auto" else 1
    assert found.matvecs == 2 + each * found.iterations
    assert [e["iteration"] for e in seen] == list(range(1, found.iterations))
    assert all(e["residual"] > tol * norm for e in seen)
    # The preconditioner is offered every iterate, to be rebuilt from.
    assert [k for k, _, _ in offered] == list(range(found.iterations))
    assert [residual for _, residual, _ in offered][1:] == [e["residual"] for e in seen]
    assert all(goal == pytest.approx(tol * norm) for _, _, goal in offered)
    assert found.message.startswith("tolerance met")
    assert f"(threshold {tol * norm:.2e})" in found.message


def test_limits_and_stops_of_the_eigenvector():
    A = laplacian(300, 0.1, density=0.05)
    assert eigen.first_eigenvector(A).method == "lobpcg"
    assert eigen.first_eigenvector(sp.csr_array(A[:299, :299])).method == "dense"
    assert eigen.first_eigenvector(path(4), dense_below=0).method == "dense"
    assert eigen.first_eigenvector(path(5), dense_below=0).method != "dense"
    assert eigen.first_eigenvector(path(4), dense_below=0).matvecs == 1
    values: list[float] = []
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        stopped = eigen.first_eigenvector(
            A, tol=1e-12, preconditioner="jacobi",
            callback=lambda e: values.append(e["value"]) or e["iteration"] == 3,
        )  # fmt: skip
    assert stopped.value == pytest.approx(values[-1], rel=1e-10)
    assert (stopped.iterations, stopped.method, stopped.matvecs) == (3, "lobpcg", 5)
    limited = eigen.first_eigenvector(A, tol=1e-10, max_iter=3, preconditioner="jacobi")
    assert limited.iterations == 3
    assert "max_iter reached; shift-invert took over" in limited.message
    # A tolerance below rounding is raised to four units of it.
    norm = float(abs(path(50)).sum(axis=1).max())
    exact = eigen.first_eigenvector(path(50), tol=1e-30)
    assert f"(threshold {4 * EPS * norm:.2e})" in exact.message


@pytest.mark.parametrize(
    ("n", "nnz_factor", "max_iter", "methods"),
    [
        (60, 3, 500, ["shift-invert", "eigsh"]),
        (60, 3, 5000, ["shift-invert", "eigsh"]),
        (200, 3, 1, ["shift-invert", "eigsh"]),
        (5000, 9, 1, ["shift-invert", "eigsh"]),
        (5001, 9, 1, ["eigsh"]),
        (5001, 3, 1, ["shift-invert", "eigsh"]),
    ],
)
def test_the_fallbacks_and_their_options(monkeypatch, n, nnz_factor, max_iter, methods):
    offsets = [0, 1, -1] if nnz_factor == 3 else [0, 1, -1, 2, -2, 3, -3, 4, -4]
    A = sp.csr_array(sp.diags_array([3.0] + [-0.1] * (len(offsets) - 1), offsets=offsets,
                                    shape=(n, n)))  # fmt: skip
    counted, calls = Counted(Matrix(A), 1), []

    def refused(matrix, **options):
        calls.append((matrix, options))
        raise RuntimeError("no factor")

    monkeypatch.setattr(eigen, "eigsh", refused)
    best = eigen.measured(counted, np.random.default_rng(0).standard_normal(n), "lobpcg")
    found, note = eigen._fall_back(counted, best, 1e-9, max_iter, "slow")
    assert found is best
    assert note == "slow; the fallback did not converge either"
    assert len(calls) == len(methods)
    for method, (matrix, options) in zip(methods, calls, strict=True):
        assert options["k"] == 1
        assert options["v0"] is best.vector
        if method == "eigsh":
            np.testing.assert_allclose(matrix @ best.vector, A @ best.vector)
            ncv = min(n - 1, 64)
            assert options["ncv"] == ncv
            assert options["which"] == "SA"
            assert options["maxiter"] == max(20, max_iter // (ncv - 1))
            size = max(abs(best.value), 3.0)
            assert options["tol"] == pytest.approx(1e-9 / size / 4, rel=1e-12, abs=0)
        else:
            assert options["sigma"] == pytest.approx(best.value - best.residual, rel=1e-12)
            assert options["tol"] == 0
    # A pair that is no better, or belongs to another eigenvector, is not taken.
    values, V = np.linalg.eigh(A[:60, :60].toarray()) if n == 60 else (None, None)
    if values is None:
        return
    monkeypatch.setattr(eigen, "eigsh", lambda *_, **__: (values[-1:], V[:, -1:]))
    assert eigen._fall_back(counted, best, 1e-9, 1, "slow")[0] is best
    monkeypatch.setattr(eigen, "eigsh", lambda *_, **__: (values[:1], V[:, :1]))
    taken, note = eigen._fall_back(counted, best, 1e-9, 1, "slow")
    assert (taken.method, note) == ("shift-invert", "LOBPCG: slow; shift-invert took over")
    assert taken.value == pytest.approx(values[0], rel=1e-12)

    def second(matrix, **options):
        if "sigma" in options:
            raise RuntimeError("no factor")
        return values[:1], V[:, :1]

    monkeypatch.setattr(eigen, "eigsh", second)
    taken, note = eigen._fall_back(counted, best, 1e-9, 1, "slow")
    assert (taken.method, note) == ("eigsh", "LOBPCG: slow; eigsh took over")


@pytest.mark.parametrize(("extra", "tried"), [(0, ["sigma", "which"]), (2, ["which"])])
def test_a_sparse_factorisation_is_for_five_entries_per_row(monkeypatch, extra, tried):
    n = 5001
    A = sp.diags_array(
        [1.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
        offsets=[0, 1, -1, 2, -2, n - 1, 1 - n, n - 2, 2 - n],
        shape=(n, n),
    ).tolil()
    if extra:
        A[0, 9] = A[9, 0] = 0.1
    A = sp.csr_array(A)
    assert A.nnz == 5 * n + extra
    counted, seen = Counted(Matrix(A), 1), []

    def refused(matrix, **options):
        seen.extend({"sigma", "which"} & set(options))
        raise RuntimeError("no factor")

    monkeypatch.setattr(eigen, "eigsh", refused)
    start = np.random.default_rng(0).standard_normal(n)
    eigen._fall_back(counted, eigen.measured(counted, start, "lobpcg"), 1e-9, 1, "slow")
    assert seen == tried


@pytest.mark.parametrize(
    ("failures", "note"), [(0, "tolerance met"), (3, "tolerance met"), (4, "stalled at rounding")]
)
def test_products_that_have_drifted_are_computed_again(monkeypatch, failures, note):
    A = laplacian(60, 0.2)
    counted, whole, checks = Counted(Matrix(A), 1), eigen.measured, []

    def doubtful(given, v, method):
        pair = whole(given, v, method)
        checks.append(pair.residual)
        return pair._replace(residual=1.0) if len(checks) <= failures else pair

    monkeypatch.setattr(eigen, "measured", doubtful)
    M = Correction("jacobi", counted, warm=False)
    pair, iterations, found = eigen.lobpcg(counted, M.guess(0), M, 1e-7, 200, None)
    assert found == note
    assert len(checks) == min(failures + 1, 4)
    assert max(checks) <= 2e-7  # the updated residual was nearly right
    assert pair.value == pytest.approx(np.linalg.eigvalsh(A.toarray())[0], abs=1e-9)
    restarts = min(failures, 3)
    assert counted.products == 1 + iterations + len(checks) + restarts


# Conjugate gradients


def reference_cg(C, b, goal, M=None):
    """Textbook preconditioned conjugate gradients; returns the norms of the residuals."""
    x, r, p, old = np.zeros_like(b), b.copy(), None, 1.0
    norms = [np.linalg.norm(r)]
    while norms[-1] > goal:
        z = r if M is None else M @ r
        rho = r @ z
        p = z if p is None else z + rho / old * p
        q = C @ p
        x, r, old = x + rho / (p @ q) * p, r - rho / (p @ q) * q, rho
        norms.append(np.linalg.norm(r))
    return norms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("preconditioner", ["jacobi", "two-level", "own"])
def test_steps_are_those_of_the_definition(seed, columns, preconditioner):
    n, tol = 60, 1e-7
    A = laplacian(n, 0.3, seed)
    B = np.random.default_rng(seed).standard_normal((n, columns)) * np.logspace(0, 3, columns)
    d = A.diagonal()
    s = 1 / np.sqrt(d)
    C, M = A.toarray() * s[:, None] * s, None
    spec = preconditioner
    if preconditioner == "two-level":
        M = as_matrix(preconditioners.two_level(A, s), n)
    elif preconditioner == "own":
        own = np.linalg.inv(A.toarray() + np.diag(d))
        M = own / s[:, None] / s

        def spec(R):
            assert R.shape == (n, 1)
            return own @ R

    histories = [reference_cg(C, s * b, 0.9 * tol * np.linalg.norm(s * b), M) for b in B.T]
    seen = []
    found = solve_spd(
        A, B, tol=tol, preconditioner=spec, dense_below=0, callback=lambda e: seen.append(dict(e))
    )
    steps = [len(history) - 1 for history in histories]
    assert found.iterations == max(steps)
    assert found.matvecs == sum(steps) + columns  # and one per column to check
    assert found.message.startswith("residual reached")
    assert [e["iteration"] for e in seen] == list(range(1, max(steps) + 1))
    for event in seen:
        k = event["iteration"]
        worst = max(h[k] / h[0] for h in histories if len(h) > k)
        assert event["residual"] == pytest.approx(worst, rel=1e-3)
    S = s[:, None]
    true = np.linalg.norm(S * (B - A @ found.x), axis=0) / np.linalg.norm(S * B, axis=0)
    assert found.residual == pytest.approx(true.max(), rel=1e-4)
    # With a start, one more product per column.
    begun = solve_spd(A, B, tol=tol, preconditioner=spec, dense_below=0, x0=found.x * (1 + 1e-3))
    assert begun.converged
    assert begun.iterations < found.iterations
    assert columns * 2 < begun.matvecs <= columns * (begun.iterations + 2)
    same = solve_spd(A, B, tol=2 * tol, preconditioner=spec, dense_below=0, x0=found.x)
    assert (same.iterations, same.matvecs) == (0, columns)


def test_two_level_of_a_difference_takes_the_steps_of_the_stored_matrix():
    K = laplacian(80, 0.05)
    d = K.diagonal()
    A = sp.csr_array(sp.diags_array(d) - K)
    A.eliminate_zeros()
    b = np.random.default_rng(0).standard_normal(80)
    options = {"tol": 1e-9, "preconditioner": "two-level", "dense_below": 0}
    stored, implied = solve_spd(K, b, **options), solve_spd(Difference(Matrix(A), d), b, **options)
    assert stored.iterations == implied.iterations
    np.testing.assert_allclose(stored.x, implied.x, atol=1e-6 * np.abs(stored.x).max())


def test_columns_that_got_worse_are_zero(monkeypatch):
    def diverge(dot, B, X, R, target, **_):
        X[:, 0], R[:, 0] = 9.0, 5.0 * B[:, 0]
        X[:, 1], R[:, 1] = B[:, 1], 0.0
        return 3, 4, "diverged"

    monkeypatch.setattr(spd, "conjugate_gradients", diverge)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        found = solve_spd(np.eye(6), np.ones((6, 2)), dense_below=0)
    np.testing.assert_array_equal(found.x, np.tile([0.0, 1.0], (6, 1)))
    assert (found.residual, found.iterations, found.matvecs) == (1.0, 3, 4)
    assert not found.converged


def test_a_start_that_is_worse_than_zero_is_not_used():
    A, b = laplacian(40, 0.3), np.random.default_rng(0).standard_normal(40)
    exact = np.linalg.solve(A.toarray(), b)
    cold = solve_spd(A, b, dense_below=0, tol=1e-8)
    bad = solve_spd(A, b, dense_below=0, tol=1e-8, x0=3.0 * exact)
    assert bad.iterations == cold.iterations
    np.testing.assert_array_equal(bad.x, cold.x)
    assert bad.matvecs == cold.matvecs + 1


@pytest.mark.parametrize("n", [499, 500])
def test_small_systems_are_factorised(n):
    A, b = laplacian(n, 1.0, density=0.02), np.ones(n)
    found = solve_spd(A, b)
    assert found.method == ("dense-cholesky" if n < 500 else "cg")
    assert (found.iterations == 0) == (n < 500)
    if n < 500:
        assert found.matvecs == 1
    assert solve_spd(A, b, dense_below=n).method == "cg"
    assert solve_spd(A, b, dense_below=n + 1).method == "dense-cholesky"


def run_cg(A, B, target, **options):
    dtypes = []

    def dot(Y, dtype, _jobs):
        dtypes.append(np.dtype(dtype).name)
        return (A.astype(dtype) @ Y).astype(dtype)

    X, R = np.zeros_like(B), B.copy()
    found = spd.conjugate_gradients(dot, B, X, R, target, **options)
    np.testing.assert_allclose(R, B - A @ X, atol=1e-12)
    return *found, X, dtypes


def test_rounds_of_single_precision_are_refined_in_double():
    A = np.diag(np.linspace(1.0, 2.0, 12))
    B = np.random.default_rng(0).standard_normal((12, 2))
    target = 1e-9 * np.linalg.norm(B, axis=0)
    iterations, products, why, X, dtypes = run_cg(A, B, target, limit=500, single=True)
    assert why == "residual reached"
    np.testing.assert_allclose(X, np.linalg.solve(A, B), atol=1e-8)
    assert len(dtypes) == products
    assert dtypes.count("float64") == 4  # two rounds, checked in double precision
    assert dtypes[-1] == "float64"
    assert iterations > 5
    double = run_cg(A, B, target, limit=500)
    assert set(double[4]) == {"float64"}


@pytest.mark.parametrize("single", [False, True])
def test_how_the_iteration_ends(single):
    A = np.diag(np.linspace(1.0, 50.0, 30))
    B = np.random.default_rng(0).standard_normal((30, 1))
    target = np.array([1e-3])
    assert run_cg(A, B, np.array([1e9]), limit=5, single=single)[:3] == (0, 0, "residual reached")
    limited = run_cg(A, B, target, limit=3, single=single)
    assert limited[:3] == (3, 4, "max_iter reached")
    seen = []
    stopped = run_cg(
        A, B, target, limit=9, single=single, watch=lambda k, c: bool(seen.append(len(c)) or k == 2)
    )
    assert stopped[:3] == (2, 3, "stopped by the callback")
    assert seen == [1, 1]
    bad = run_cg(np.diag([1.0, -1.0]), np.ones((2, 1)), target, limit=9, single=single)
    assert bad[2] == "matrix is singular or not positive definite"
    stuck = run_cg(np.eye(2) * (1 + 1e-13), np.ones((2, 1)), np.zeros(1), limit=99, single=single)
    assert stuck[2] in ("stagnated", "residual reached")


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Every round leaves this share of the residual, as if products were inaccurate.
        (0.3, (3, 6, "residual reached")),
        (0.7, (1, 2, "stagnated")),
    ],
)
def test_rounds_go_on_while_each_halves_the_residual(found, expected, single):
    kinds = []

    def dot(Y, dtype, _jobs):
        kinds.append(np.dtype(dtype).name)
        checked = len(kinds) % 2 == 0  # products alternate: a step, then the check of the round
        return Y * (1 - found) if checked else Y.copy()

    B = np.ones((1, 1))
    X, R = np.zeros((1, 1)), B.copy()
    ended = spd.conjugate_gradients(dot, B, X, R, np.array([0.05]), limit=99, single=single)
    if not single:
        assert ended == expected
    elif found == 0.3:
        assert ended == expected
        assert kinds == ["float32", "float64"] * 3
    else:  # a round in double precision follows before giving up
        assert ended == (2, 4, "stagnated")
        assert kinds == ["float32", "float64", "float64", "float64"]


@pytest.mark.parametrize(
    ("n_jobs", "columns", "with_m", "expected"),
    [(1, 1, False, False), (1, 3, False, False), (2, 1, False, False), (2, 2, False, True),
     (3, 2, False, False), (2, 3, False, True), (2, 2, True, False)],
)  # fmt: skip
def test_columns_or_products_are_spread_over_threads(
    monkeypatch, n_jobs, columns, with_m, expected
):
    calls, jobs = [], []
    monkeypatch.setattr(
        spd, "in_threads", lambda f, parts, k: calls.append(k) or [f(part) for part in parts]
    )
    C = np.diag(np.linspace(1.0, 2.0, 9))

    def dot(Y, dtype, k):
        jobs.append(k)
        return C @ Y

    B = np.random.default_rng(0).standard_normal((9, columns))
    X, R = np.zeros_like(B), B.copy()
    spd.conjugate_gradients(
        dot, B, X, R, np.full(columns, 1e-9), limit=99, n_jobs=n_jobs,
        M=(lambda r: r) if with_m else None,
    )  # fmt: skip
    assert bool(calls) is expected
    np.testing.assert_allclose(X, np.linalg.solve(C, B), atol=1e-8)
    # Columns in threads of their own multiply with one; otherwise a product has all of them.
    assert jobs[0] == (1 if expected else n_jobs)
    assert jobs[-1] == n_jobs


def test_the_default_limit_is_ten_times_the_unknowns(monkeypatch):
    limits = []

    def spy(*_, limit, **__):
        limits.append(limit)
        return 0, 0, "spied"

    monkeypatch.setattr(spd, "conjugate_gradients", spy)
    for n in (20, 999, 1001):
        with pytest.warns(ConvergenceWarning, match="spied"):
            found = solve_spd(sp.csr_array(sp.identity(n)), np.ones(n), dense_below=0)
        assert found.residual == 1.0
    assert limits == [200, 9990, 10_000]


@pytest.mark.parametrize(
    ("n", "columns", "tol", "rows", "single"),
    [
        (50, 1, 1e-5, 10**6, True),
        (50, 1, 0.9e-5, 10**6, False),
        (50, 2, 1e-5, 10**6, False),
        (50, 2, 1e-9, 50, True),
        (50, 2, 1e-9, 51, False),
    ],
)
def test_when_single_precision_is_used(monkeypatch, n, columns, tol, rows, single):
    seen = []
    whole = spd.conjugate_gradients

    def spy(*arguments, **options):
        seen.append(options["single"])
        return whole(*arguments, **options)

    monkeypatch.setattr(spd, "conjugate_gradients", spy)
    A, B = laplacian(n, 1.0), np.ones((n, columns))
    policy = Policy(single_rows=rows)
    solve_spd(A, B, tol=tol, dense_below=0, preconditioner="jacobi", policy=policy, n_jobs=1)
    solve_spd(A, B, tol=tol, dense_below=0, preconditioner="two-level", policy=policy, n_jobs=1)
    assert seen == [single, False]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_auto_compares_the_estimated_iterations(columns, tol):
    W = np.ones((20, 20)) - np.eye(20)
    unit = UnitDiagonal(Difference(Matrix(sp.csr_array(W)), np.full(20, 19.5)))
    low = 1 - W.sum() / (20 * 19.5)
    steps = 0.5 * np.sqrt(2 / low) * np.log(2 / tol)

    def choose(**limits):
        basic = {"full_least": 0, "full_most": 0, "slow_rows": 0, "jacobi_steps": 10**9}
        policy = Policy(**(basic | limits))
        return spd.choose_preconditioner(unit, tol, columns, policy)

    assert choose() == "jacobi"
    assert choose(jacobi_steps=steps - 0.01) == "two-level"
    assert choose(jacobi_steps=steps + 0.01) == "jacobi"
    assert choose(jacobi_steps=0, slow_rows=20) == "two-level"
    assert choose(jacobi_steps=0, slow_rows=21) == "jacobi"
    cost = {"factor_nodes": 2, "full_most": 100}
    assert choose(factor_products=steps * columns - 10.01, **cost) == "cholesky"
    assert choose(factor_products=steps * columns - 9.99, **cost) == "jacobi"
    cheap = {"factor_nodes": 2, "factor_products": -1000}
    assert choose(full_least=20, full_most=20, **cheap) == "cholesky"
    assert choose(full_least=21, full_most=99, **cheap) == "jacobi"
    assert choose(full_least=0, full_most=19, **cheap) == "jacobi"


@pytest.mark.parametrize(("entries", "full"), [(100, True), (98, False)])
def test_full_graphs_have_a_fourth_of_all_entries(entries, full):
    W = np.zeros((20, 20))
    upper = np.argwhere(np.triu(np.ones((20, 20)), 1))[: entries // 2]
    W[tuple(upper.T)] = 1.0
    A = sp.csr_array(W + W.T)
    policy = Policy(full_least=0, full_most=99, factor_products=-1000, slow_rows=99)
    unit = UnitDiagonal(Difference(Matrix(A), np.full(20, 30.0)))
    chosen = spd.choose_preconditioner(unit, 1e-6, 1, policy)
    assert chosen == ("cholesky" if full else "jacobi")


def test_zero_rows_count_as_a_whole_residual_only_where_asked_for_more():
    A = sp.csr_array(np.diag([2.0, 0.0, 4.0]))
    with pytest.warns(ConvergenceWarning, match="1.00e"):
        found = solve_spd(A, [[1.0, 2.0], [0.0, 1.0], [1.0, 4.0]], dense_below=0)
    assert found.residual == 1.0
    np.testing.assert_allclose(found.x, [[0.5, 1.0], [0.0, 0.0], [0.25, 1.0]])
    assert solve_spd(A, np.zeros(3)).residual == 0.0
