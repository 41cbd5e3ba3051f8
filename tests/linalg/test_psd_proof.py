"""Bounds of the smallest eigenvalue hold, and are close to zero for positive matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.linalg.psd_proof import can_prove, lowest_eigenvalue_bound


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
