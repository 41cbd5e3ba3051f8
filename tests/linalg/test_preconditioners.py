"""Approximate inverses are symmetric and positive, whatever the diagonal."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial.chebyshev import Chebyshev
from scipy.sparse.csgraph import shortest_path

from gdpa.linalg import preconditioners
from gdpa.linalg.operator import (
    EPS,
    Matrix,
)
from gdpa.linalg.preconditioners import (
    BUILD_AT,
    Correction,
    Counted,
    chebyshev,
    cholesky,
    jacobi,
    two_level,
)
from gdpa.linalg.two_level import CoarseSpace, coarse_count, patches
from tests.linalg.small_matrices import as_matrix, laplacian, path


@pytest.mark.parametrize(
    "diagonal", [[1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 3.0], [-1.0, -2.0, -3.0]]
)
def test_jacobi_is_positive(diagonal):
    M = as_matrix(jacobi(np.array(diagonal)), 3)
    assert np.isfinite(M).all()
    assert (np.diagonal(M) > 0).all()
    if min(diagonal) > 0:
        np.testing.assert_allclose(np.diagonal(M) * diagonal, 1.0)


@pytest.mark.parametrize("shift", [0.1, 0.0, -0.05])
def test_chebyshev_is_symmetric_and_positive(shift):
    A = laplacian(80, shift)
    M = as_matrix(chebyshev(Counted(Matrix(A), 1)), 80)
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    assert np.linalg.eigvalsh(M)[0] > 0


def test_chebyshev_leaves_others_alone():
    assert chebyshev(Counted(Matrix(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))), 1)) is None
    assert chebyshev(Counted(Matrix(sp.csr_array(np.array([[1.0, 9.0], [9.0, 1.0]]))), 1)) is None


def test_two_level_improves_the_condition_number():
    side = 24
    path = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    A = sp.csr_array((sp.kron(path, eye) + sp.kron(eye, path)) / 4)  # unit diagonal
    n = side * side
    M = as_matrix(two_level(A, np.ones(n)), n)
    np.testing.assert_allclose(M, M.T, atol=1e-10)
    values = np.sort(np.linalg.eigvals(M @ A.toarray()).real)
    assert values[0] > 0
    assert values[-1] / values[0] < 0.5 * np.linalg.cond(A.toarray())


def test_eigen_correction_is_symmetric_and_positive():
    A = laplacian(80, -0.5)  # indefinite
    vector = np.linalg.eigh(A.toarray())[1][:, 0]
    correction = Correction("two-level", Counted(Matrix(A), 1), warm=True)
    correction._build(vector)
    assert correction.current is not correction.base
    M = as_matrix(correction, 80)
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.parametrize("columns", [None, 1, 4])
def test_cholesky_is_the_inverse(columns):
    A = laplacian(120, 0.1).toarray()
    B = np.random.default_rng(1).standard_normal((120,) if columns is None else (120, columns))
    M = cholesky(A.copy())
    found = M(B)
    assert found.shape == B.shape
    np.testing.assert_allclose(A @ found, B, atol=1e-11)


def test_cholesky_refuses_a_matrix_that_is_not_definite():
    A = laplacian(50, 0.1).toarray()
    assert cholesky(A - 2.0 * np.eye(50) * np.diagonal(A).max()) is None


def test_coarse_space_of_a_diagonal_minus_a_matrix_without_some_nodes():
    n, count = 90, 7
    K = laplacian(n, 0.2)
    total = K.diagonal()
    A = sp.csr_array(sp.diags_array(total) - K)
    A.eliminate_zeros()
    dead = np.zeros(n, dtype=bool)
    dead[[0, 13, 14, 60]] = True
    patch = patches(A, count)
    coarse = CoarseSpace(A, patch, count, (~dead).astype(float), diagonal=total)
    Z = coarse.Z.toarray()
    assert (Z[dead] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), 1.0)
    # Every other node has one entry, in the column of its patch.
    np.testing.assert_array_equal(np.argmax(Z[~dead], axis=1), patch[~dead])
    np.testing.assert_allclose(coarse.matrix, Z.T @ K.toarray() @ Z, atol=1e-12)


def test_two_level_of_a_diagonal_minus_a_matrix_is_that_of_the_difference():
    n = 300
    K = laplacian(n, 0.2)
    total = K.diagonal()
    A = sp.csr_array(sp.diags_array(total) - K)
    scale = 1.0 / np.sqrt(total)
    stored, implied = two_level(K, scale), two_level(A, scale, diagonal=total)
    r = np.random.default_rng(2).standard_normal(n)
    np.testing.assert_allclose(implied(r), stored(r), atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_patches_are_the_nodes_nearest_to_their_seeds(seed):
    """Hops by an independent search; nodes that no seed reaches belong to patch 0."""
    n, count = 60, 5
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < 0.05, 1)
    A[:, -10:] = 0  # more isolated nodes than seeds
    A = sp.csr_array((A + A.T).astype(float))
    patch = patches(A, count, random_state=seed)
    seeds = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
    hops = shortest_path(A, unweighted=True, indices=seeds)
    assert (patch[seeds] == np.arange(count)).all()
    reached = np.isfinite(hops).any(axis=0)
    chosen = hops[patch, np.arange(n)]
    assert (chosen[reached] == hops.min(axis=0)[reached]).all()
    assert not reached.all()
    assert (patch[~reached] == 0).all()


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
