"""The bound that Gershgorin discs prove for couplings of both signs, in changing bases.

The least ``1's`` with ``diag(s) - P`` scaled diagonally dominant bounds ``max x' P x``. A matrix is
scaled diagonally dominant iff its comparison matrix, here ``diag(s) - |P|``, is positive
semi-definite. With ``x = 1`` follows ``1's >= 1'|P|1``, and ``s = |P| 1`` attains it: on signed
couplings the first bound is the trivial one, whatever the scaling (``linearize`` finds the same).

In another basis it is not: ``diag(s) - P = U' Q U`` with Q diagonally dominant is as good a proof,
and with U the Cholesky factor of the last ``diag(s) - P``, for which Q is the identity, the bound
improves in every step (Ahmadi, Hall, "Sum of squares basis pursuit", 2015). Each step is a linear
program of n^2 / 2 variables, so this is for small problems and for comparison.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import linprog

from .sdr_form import certified_dual

FloatArray = NDArray[np.float64]


def gershgorin_bound(
    P: FloatArray, *, bases: int = 4, largest: int = 70
) -> tuple[float, tuple[float, ...]]:
    """Bound ``max x' P x`` by diagonal dominance.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, zero diagonal.
    bases : int, default=4
        Changes of the basis.
    largest : int, default=70
        Rows up to which the basis is changed at all.

    Returns
    -------
    bound : float
        The best bound, proved.
    history : tuple of float
        The bound of each basis, the trivial one first.
    """
    n = P.shape[0]
    s = np.abs(P).sum(axis=1)
    history = [float(s.sum()) * (1.0 + n * float(np.finfo(np.float64).eps))]
    if n > largest:
        return history[0], tuple(history)
    for _ in range(bases):
        s = _improved(P, s)
        proved = certified_dual(P, s)
        if proved is None:
            break
        history.append(float(proved.sum()) * (1.0 + n * float(np.finfo(np.float64).eps)))
        if history[-1] > history[-2] * (1.0 - 1e-4):
            break
    return min(history), tuple(history)


def _improved(P: FloatArray, s: FloatArray) -> FloatArray:
    """Least 1's with ``diag(s) - P`` diagonally dominant in the basis of the present one."""
    n = P.shape[0]
    # The present matrix may be singular; a basis a little inside the cone will do.
    inside = np.diag(s + 1e-3 * float(s.mean())) - P
    try:
        inverse = solve_triangular(cholesky(inside), np.eye(n))  # U^-1
    except LinAlgError:
        return s
    i, j = np.triu_indices(n, 1)
    constant = -(inverse.T @ P @ inverse)
    # Q = U^-T (diag(s) - P) U^-1: entry (i, j) depends on s_k by inverse[k, i] inverse[k, j].
    off = (inverse[:, i] * inverse[:, j]).T
    m = i.size
    pairs = sp.csr_array(
        (np.ones(2 * m), (np.concatenate((i, j)), np.tile(np.arange(m), 2))), shape=(n, m)
    )
    minus = -sp.identity(m)
    rows = sp.vstack(
        (
            sp.hstack((sp.csr_array(off), minus)),
            sp.hstack((sp.csr_array(-off), minus)),
            sp.hstack((sp.csr_array(-np.square(inverse).T), pairs)),
        )
    )
    limits = np.concatenate((-constant[i, j], constant[i, j], constant.diagonal()))
    found = linprog(
        np.concatenate((np.ones(n), np.zeros(m))),
        A_ub=rows.tocsr(),
        b_ub=limits,
        bounds=[(None, None)] * n + [(0, None)] * m,
        method="highs-ipm" if n > 30 else "highs",
        options={"time_limit": 60.0},
    )
    return found.x[:n] if found.status == 0 else s
