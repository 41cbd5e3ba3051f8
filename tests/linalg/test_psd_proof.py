"""Bounds of the smallest eigenvalue hold, and are close to zero for positive matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.linalg import psd_proof
from gdpa.linalg.operator import (
    EPS,
)
from gdpa.linalg.psd_proof import can_prove, lowest_eigenvalue_bound
from tests.linalg.small_matrices import path


def grid_laplacian(n: int) -> sp.csr_array:
    line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(line, sp.identity(n)) + sp.kron(sp.identity(n), line))


@pytest.mark.parametrize("n", [8, 40])  # dense and sparse factors
def test_bound_is_below_the_eigenvalue_and_near_zero(n):
    A = grid_laplacian(n)
    lowest = 4.0 * (1.0 - np.cos(np.pi / (n + 1)))
    bound = lowest_eigenvalue_bound(A)
    assert -1e-9 < bound <= lowest
    shifted = sp.csr_array(A - (lowest - 1e-9) * sp.identity(n * n))
    assert -1e-9 < lowest_eigenvalue_bound(shifted) <= 1e-9


@pytest.mark.parametrize("n", [8, 40])
def test_an_indefinite_matrix_has_no_proof(n):
    A = grid_laplacian(n)
    lowest = 4.0 * (1.0 - np.cos(np.pi / (n + 1)))
    assert lowest_eigenvalue_bound(sp.csr_array(A - 1.001 * lowest * sp.identity(n * n))) is None
    assert lowest_eigenvalue_bound(sp.csr_array(A - 5.0 * sp.identity(n * n))) is None


def test_what_would_not_fit_is_refused():
    n = 10**6
    assert not can_prove(sp.csr_array(sp.identity(n) * 2.0))


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
