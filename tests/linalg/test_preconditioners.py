"""Approximate inverses are symmetric and positive, whatever the diagonal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from gdpa.linalg.operator import Matrix
from gdpa.linalg.preconditioners import (
    Correction,
    Counted,
    chebyshev,
    cholesky,
    jacobi,
    two_level,
)
from gdpa.linalg.two_level import CoarseSpace, patches


def laplacian(n: int, shift: float) -> sp.csr_array:
    rng = np.random.default_rng(0)
    W = sp.random_array((n, n), density=0.1, rng=rng)
    W = W + W.T
    return sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)) + shift) - W)


def as_matrix(M, n: int) -> np.ndarray:
    return np.column_stack([M(column) for column in np.eye(n)])


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
