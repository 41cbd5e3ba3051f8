"""Gershgorin discs of a symmetric matrix, before and after a diagonal similarity transform.

Row i of A has the disc with centre ``A_ii`` and radius ``sum_{j != i} |A_ij|``; every eigenvalue of
A lies in one of the discs, so the smallest left-end is a lower bound of lambda_min(A). The matrix
``S A S^-1`` with ``S = diag(1 / v_i)`` has the same eigenvalues, the same centres and the radii
``sum_{j != i} |A_ij| |v_j / v_i|``: the choice of v makes the bound tight or loose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..graph.adjacency import check_adjacency
from ..linalg.operator import EPS, MatrixLike

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Discs:
    """The Gershgorin discs of a symmetric matrix.

    Parameters
    ----------
    centers : ndarray of shape (n,)
        The diagonal.
    radii : ndarray of shape (n,)
        Sums of absolute off-diagonal entries per row, after scaling. Infinity where the sum is
        beyond the largest float.
    """

    centers: FloatArray
    radii: FloatArray

    @property
    def left_ends(self) -> FloatArray:
        """Left end of each disc, ``centers - radii``."""
        return self.centers - self.radii

    @property
    def right_ends(self) -> FloatArray:
        """Right end of each disc, ``centers + radii``."""
        return self.centers + self.radii

    @property
    def lower_bound(self) -> float:
        """The smallest left-end: no eigenvalue is smaller."""
        return float(self.left_ends.min())

    @property
    def upper_bound(self) -> float:
        """The largest right-end: no eigenvalue is larger."""
        return float(self.right_ends.max())


def discs(A: MatrixLike, *, v: ArrayLike | None = None) -> Discs:
    """Gershgorin discs of ``S A S^-1``, ``S = diag(1 / v)``.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n, n)
        Symmetric, real, finite.
    v : array-like of shape (n,), optional
        Scaling without zeros; only absolute values matter. The default is ones: the discs of A.

    Returns
    -------
    Discs
        Centres, radii, left- and right-ends, and the bounds of the spectrum.

    Raises
    ------
    ValueError
        If A is not symmetric, finite and square, or v has a zero, a NaN or another length.

    Notes
    -----
    O(nnz). The bounds hold in exact arithmetic; the sums are rounded, so a disc may be too small by
    a few units in the last place of its radius.

    Examples
    --------
    >>> from gdpa.gershgorin import discs
    >>> d = discs([[2, -2, -1], [-2, 5, -2], [-1, -2, 4]])
    >>> d.left_ends
    array([-1.,  1.,  1.])
    >>> d.lower_bound
    -1.0
    """
    matrix = check_adjacency(A, name="A", signed=True, keep_diagonal=True)
    scaling = None if v is None else check_scaling(v, matrix.shape[0])
    return Discs(matrix.diagonal(), disc_radii(matrix, scaling))


def check_scaling(v: ArrayLike, n: int) -> FloatArray:
    """Validate a scaling vector: `n` finite numbers, none of them zero."""
    try:
        scaling = np.asarray(v, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"v must be {n} real numbers, got {type(v).__name__}") from error
    if scaling.shape != (n,):
        raise ValueError(f"v must have shape ({n},), one entry per row of A, got {scaling.shape}")
    bad = np.flatnonzero(~np.isfinite(scaling) | (scaling == 0))
    if bad.size:
        raise ValueError(f"v[{bad[0]}] is {scaling[bad[0]]:g}; entries must be finite and not zero")
    return scaling


def disc_radii(A: sp.csr_array, v: FloatArray | None = None) -> FloatArray:
    """Radii of the discs of a canonical CSR array, ``sum_{j != i} |A_ij| |v_j / v_i|``.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        The matrix, already validated.
    v : ndarray of shape (n,), optional
        Scaling without zeros.

    Returns
    -------
    ndarray of shape (n,)
        The radii.
    """
    n = A.shape[0]
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    size = np.abs(A.data)
    size[rows == A.indices] = 0.0
    if v is not None:
        # Powers of two apart from the rest: |A_ij| v_j / v_i may be an ordinary number although
        # v_j / v_i overflows or vanishes.
        mantissa, exponent = np.frexp(np.abs(v))
        fraction, power = np.frexp(size)
        fraction = fraction * (mantissa[A.indices] / mantissa[rows])
        power = power + exponent[A.indices] - exponent[rows]
        with np.errstate(over="ignore", under="ignore"):
            size = np.ldexp(fraction, power)
    with np.errstate(over="ignore"):
        return np.asarray(np.bincount(rows, weights=size, minlength=n), dtype=np.float64)


def raised_diagonal(W: sp.csr_array, y: FloatArray, Wy: FloatArray) -> FloatArray:
    """Diagonal ``s = W y / y``, rounded up so that ``(diag(s) - W) y >= 0`` holds exactly.

    Parameters
    ----------
    W : csr_array
        Non-negative couplings; only its longest row is looked at.
    y, Wy : ndarray of shape (n,)
        Positive vector and its product with W.

    Returns
    -------
    ndarray of shape (n,)
        The diagonal; raised by more than the rounding of W y and of the division.
    """
    longest = int(np.diff(W.indptr).max(initial=0))
    underflow = longest * float(np.finfo(np.float64).smallest_subnormal)
    return np.asarray(((Wy + underflow) / y) * (1.0 + (longest + 8) * EPS))
