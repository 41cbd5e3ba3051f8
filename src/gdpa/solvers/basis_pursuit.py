"""Gershgorin bounds for couplings of both signs, in changing bases.

The smallest ``1's`` with ``diag(s) - P`` scaled diagonally dominant bounds ``max x' P x``. A matrix
is scaled diagonally dominant iff its comparison matrix, here ``diag(s) - |P|``, is positive
semi-definite. Setting ``x = 1`` gives ``1's >= 1'|P|1``, and ``s = |P| 1`` attains it. So for
signed couplings the first bound is the trivial one for every scaling (``linearize`` finds the
same).

Another basis does better: ``diag(s) - P = U' Q U`` with Q diagonally dominant is also a proof. With
U the Cholesky factor of the last ``diag(s) - P``, for which Q is the identity, the bound improves
in every step (Ahmadi, Hall, "Sum of squares basis pursuit", 2015). Each step is a linear program
with n^2 / 2 variables, so the method is for small problems and for comparison.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import linprog

from ..arrays import FloatArray
from .sdr_form import certified_dual


def gershgorin_bound(
    P: FloatArray, *, bases: int = 4, largest: int = 70
) -> tuple[float, tuple[float, ...]]:
    """Bound ``max x' P x`` by diagonal dominance.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, zero diagonal.
    bases : int, default=4
        Number of basis changes.
    largest : int, default=70
        The basis is not changed for larger problems.

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
    """Minimise 1's with ``diag(s) - P`` diagonally dominant in the basis of the current s."""
    n = P.shape[0]
    # The current matrix may be singular, so the basis is taken slightly inside the cone.
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
