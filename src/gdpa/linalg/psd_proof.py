"""Prove that a symmetric matrix is positive semi-definite, taking rounding errors into account.

*Dense:* a Cholesky factorisation with a margin (Rump 2006; see :func:`proved_psd`).

*Sparse:* LU factors without pivoting in a symmetric order. If all pivots D = diag(U) are positive,
``L D L'`` is positive semi-definite, and ``A = L D L' + R`` with the symmetric remainder
``R = L (U - D L') - E``, where ``|E| <= g |L| |U|`` is the backward error of any factorisation
(Higham 2002, theorem 9.3). Both parts are bounded a posteriori by products with a vector of ones,
so the smallest eigenvalue of A is at least the negative of their sum.

*Discs* prove a bound at the cost of one product: see :func:`gdpa.gershgorin.discs.raised_diagonal`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.linalg import splu

from ..memory import USABLE_SHARE, available_memory
from .operator import EPS

_DENSE_ROWS = 9_000  # n^3 / 3 operations: about 10 s
_SPARSE_ROWS = 40_000


def can_prove(A: sp.csr_array) -> bool:
    """Return whether a factorisation of A fits into memory and takes about a minute at most."""
    return _densely(A) or _sparsely(A)


def _sparsely(A: sp.csr_array) -> bool:
    """Return whether a sparse factorisation is affordable."""
    return bool(A.nnz <= 7 * A.shape[0] and A.shape[0] <= _SPARSE_ROWS)


def _densely(A: sp.csr_array) -> bool:
    """Return whether a dense factorisation is affordable."""
    n = A.shape[0]
    return bool(n <= _DENSE_ROWS and 9.0 * n * n <= USABLE_SHARE * available_memory())


def lowest_eigenvalue_bound(A: sp.csr_array) -> float | None:
    """Return a proved lower bound of the smallest eigenvalue, slightly below zero at best.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric matrix.

    Returns
    -------
    float or None
        The bound; None if a pivot is not positive or the factorisation would be too large.
    """
    if A.shape[0] > 500 and _sparsely(A):
        return _sparse_bound(A)
    margin = _cholesky_margin(A.toarray(order="F"), shift=False) if _densely(A) else None
    return None if margin is None else -margin


def proved_psd(A: NDArray[np.float64]) -> bool:
    """Return whether a Cholesky factorisation proves that a dense matrix is psd.

    If the factorisation of ``A - m I`` succeeds, then ``A - m I + E`` is positive semi-definite for
    some E with ``|E|_2 <= g/(1-g) tr(A)``, ``g = (n+1) u / (1 - (n+1) u)`` (Rump 2006,
    "Verification of positive definiteness"). The margin m used here is more than twice that bound,
    which also covers the rounding of the subtraction and underflow.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric matrix; not modified.

    Returns
    -------
    bool
        True is a proof; False proves nothing.
    """
    return _cholesky_margin(np.array(A, order="F"), shift=True) is not None


def _cholesky_margin(A: NDArray[np.float64], *, shift: bool) -> float | None:
    """Return Rump's margin m if A (with `shift`, ``A - m I``) can be factorised; overwrites A."""
    n = A.shape[0]
    diagonal = A.diagonal()
    if not bool((diagonal > 0).all()):
        return None
    margin = (n + 2) * EPS * float(diagonal.sum()) + n * n * 1e-300
    if shift:
        A.ravel("K")[:: n + 1] -= margin
    _, failed = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    return margin if failed == 0 else None


def _sparse_bound(A: sp.csr_array) -> float | None:
    """Return the lower bound proved by a sparse LU factorisation, or None."""
    n = A.shape[0]
    try:
        factors = splu(
            A.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True, "Equil": False},
        )
    except (RuntimeError, MemoryError):
        return None
    L = factors.L.tocsr()
    U = factors.U.tocsr()
    pivots = U.diagonal()
    if not np.array_equal(factors.perm_r, factors.perm_c) or not bool((pivots > 0).all()):
        return None
    DL = sp.diags_array(pivots) @ L.T.tocsr()
    size = abs(U) + abs(DL)
    ones = np.ones(n)
    asymmetric = abs(L) @ (abs(U - DL) @ ones + 4.0 * EPS * (size @ ones))
    backward = 2.0 * (n + 4) * EPS * (abs(L) @ (abs(U) @ ones))
    # All terms are non-negative, so the relative rounding error of the sums is at most n eps.
    largest = float((asymmetric + backward).max())
    return -float(largest * (1.0 + 4.0 * n * EPS) + n * n * 1e-300)
