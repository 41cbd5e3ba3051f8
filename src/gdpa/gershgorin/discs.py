"""Gershgorin discs of a symmetric matrix, before and after a diagonal similarity transform.

Row i of A has the disc with centre ``A_ii`` and radius ``sum_{j != i} |A_ij|``; every eigenvalue of
A lies in one of the discs, so the smallest left-end is a lower bound of lambda_min(A). The matrix
``S A S^-1`` with ``S = diag(1 / v_i)`` has the same eigenvalues and centres. Its radii are
``sum_{j != i} |A_ij| |v_j / v_i|``, so the choice of v determines how tight the bound is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..arrays import FloatArray
from ..checks import check_vector
from ..graph.adjacency import check_adjacency
from ..linalg.operator import EPS, MatrixLike


@dataclass(frozen=True)
class Discs:
    """The Gershgorin discs of a symmetric matrix.

    Parameters
    ----------
    centers : ndarray of shape (n,)
        The diagonal.
    radii : ndarray of shape (n,)
        Sums of absolute off-diagonal entries per row, after scaling. Infinity if a sum overflows.
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


def discs(A: MatrixLike, *, v: ArrayLike | None = None) -> Discs:
    """Return the Gershgorin discs of ``S A S^-1`` with ``S = diag(1 / v)``.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n, n)
        Symmetric, real, finite matrix.
    v : array-like of shape (n,), optional
        Scaling without zeros. Only absolute values matter. The default, ones, gives the discs of A.

    Returns
    -------
    Discs
        Centres, radii, left-ends, right-ends and bounds of the spectrum.

    Raises
    ------
    ValueError
        If A is not symmetric, finite and square, or if v has the wrong length, a zero or a NaN.

    Notes
    -----
    The cost is O(nnz). The bounds hold in exact arithmetic. Because the sums are rounded, a radius
    may be too small by a few units in the last place.

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
    """Return a scaling as an array of `n` finite non-zero numbers, or raise ValueError."""
    scaling = check_vector(v, n, "v")
    if not scaling.all():
        zero = int(np.argmin(np.abs(scaling)))
        raise ValueError(f"v[{zero}] is 0; entries must be finite and not zero")
    return scaling


def disc_radii(A: sp.csr_array, v: FloatArray | None = None) -> FloatArray:
    """Return the disc radii ``sum_{j != i} |A_ij| |v_j / v_i|`` of a validated CSR array."""
    n = A.shape[0]
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    size = np.abs(A.data)
    size[rows == A.indices] = 0.0
    if v is not None:
        # Treat exponents separately: |A_ij| v_j / v_i may be an ordinary number even if v_j / v_i
        # overflows or underflows.
        mantissa, exponent = np.frexp(np.abs(v))
        fraction, power = np.frexp(size)
        fraction = fraction * (mantissa[A.indices] / mantissa[rows])
        power = power + exponent[A.indices] - exponent[rows]
        with np.errstate(over="ignore", under="ignore"):
            size = np.ldexp(fraction, power)
    with np.errstate(over="ignore"):
        return np.asarray(np.bincount(rows, weights=size, minlength=n), dtype=np.float64)


def raised_diagonal(W: sp.csr_array, y: FloatArray, Wy: FloatArray) -> FloatArray:
    """Return ``s = W y / y``, rounded up so that ``(diag(s) - W) y >= 0`` holds exactly.

    W is non-negative and y positive. Of W, only the length of the longest row is used: it bounds
    the rounding errors of the product and the division.
    """
    longest = int(np.diff(W.indptr).max(initial=0))
    underflow = longest * float(np.finfo(np.float64).smallest_subnormal)
    return np.asarray(((Wy + underflow) / y) * (1.0 + (longest + 8) * EPS))
