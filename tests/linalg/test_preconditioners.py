"""Approximate inverses are symmetric and positive, whatever the diagonal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.linalg.operand import Operand
from gdpa.linalg.preconditioners import chebyshev, eigen_two_level, jacobi, two_level
from gdpa.linalg.two_level import patches


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
    M = as_matrix(chebyshev(Operand(A)), 80)
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    assert np.linalg.eigvalsh(M)[0] > 0


def test_chebyshev_leaves_others_alone():
    assert chebyshev(Operand(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))) is None
    assert chebyshev(Operand(sp.csr_array(np.array([[1.0, 9.0], [9.0, 1.0]])))) is None


def test_two_level_improves_the_condition_number():
    side = 24
    path = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    A = sp.csr_array((sp.kron(path, eye) + sp.kron(eye, path)) / 4)  # unit diagonal
    n = side * side
    M = as_matrix(two_level(A, None), n)
    np.testing.assert_allclose(M, M.T, atol=1e-10)
    values = np.sort(np.linalg.eigvals(M @ A.toarray()).real)
    assert values[0] > 0
    assert values[-1] / values[0] < 0.5 * np.linalg.cond(A.toarray())


def test_eigen_correction_is_symmetric_and_positive():
    A = laplacian(80, -0.5)  # indefinite
    vector = np.linalg.eigh(A.toarray())[1][:, 0]
    correction, _ = eigen_two_level(A, vector, jacobi(A.diagonal()), patches(A, 10), 10)
    M = as_matrix(correction, 80)
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    assert np.linalg.eigvalsh(M)[0] > 0
