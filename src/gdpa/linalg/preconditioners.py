"""Approximate inverses: Jacobi, Chebyshev, two-level, Cholesky, or one's own.

All are built for a matrix that may be indefinite or have zeros on the diagonal (the H of the dual
is such a matrix on the way): the approximate inverse itself is always positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from ..errors import unknown_choice
from ..threads import one_thread
from .operator import Matrix
from .two_level import CoarseSpace, coarse_count, patches

# Residuals to corrections.
Preconditioner: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
# What users may pass: a name, an approximate inverse, or nothing.
PreconditionerLike: TypeAlias = str | Preconditioner | None

# Up to so many rows a factorisation takes some hundredths of a second in one thread.
ONE_THREAD_ROWS = 1_500
PRECONDITIONERS = ("auto", "jacobi", "two-level")


class Counted:
    """A matrix with the threads it may use, and how many products with a vector it made."""

    def __init__(self, matrix: Matrix, n_jobs: int) -> None:
        self.matrix, self.n_jobs = matrix, n_jobs
        self.products = 0
        self.n = matrix.shape[0]
        # The sparse matrix, where it is one.
        self.csr = matrix.matrix if matrix.sparse else None

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """``A x``, counted."""
        self.products += 1
        return self.matrix.dot(x, np.float64, self.n_jobs)


def jacobi(diagonal: NDArray[np.float64]) -> Preconditioner:
    """Division by the diagonal, shifted where it is not safely positive.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of the matrix.

    Returns
    -------
    callable
        Maps a vector or a block of columns to its scaled copy.
    """
    top = float(np.abs(diagonal).max(initial=0.0)) or 1.0
    # A zero or negative entry says nothing about the inverse: treat it as one of ordinary size.
    safe = diagonal > 1e-12 * top
    ordinary = float(np.median(diagonal[safe])) if safe.any() else top
    inverse = 1.0 / np.where(safe, diagonal, ordinary)
    return lambda r: r * inverse


def chebyshev(A: Counted, *, degree: int = 3, ratio: float = 20.0) -> Preconditioner | None:
    """Polynomial in the Jacobi-scaled matrix: several products for one step of a costlier method.

    The Chebyshev polynomial of ``D^-1 A`` that is best on ``[top / ratio, top]``, with the largest
    row sum of ``|D^-1 A|`` as `top`. It is positive below that interval, too, so it suits
    indefinite matrices.

    Parameters
    ----------
    A : Counted
        Sparse matrix with a diagonal.
    degree : int, default=3
        Products per application.
    ratio : float, default=20
        How far down the spectrum it reaches.

    Returns
    -------
    callable or None
        The approximate inverse; None where the diagonal is not positive or far from dominant.
    """
    diagonal = A.matrix.diagonal()
    if A.csr is None or not (diagonal > 0).all():
        return None
    top = float((abs(A.csr).sum(axis=1) / diagonal).max())
    if not top <= 4.0:
        return None
    places = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    roots = top * (0.5 * (1.0 + places) + 0.5 * (1.0 - places) / ratio)

    def apply(r: NDArray[np.float64]) -> NDArray[np.float64]:
        d = 1.0 / diagonal
        x: NDArray[np.float64] = r * (d / roots[0])
        for root in roots[1:]:  # each step makes the residual zero at one root
            rest = A.dot(x)
            np.subtract(r, rest, out=rest)
            rest *= d / root
            x += rest
        return x

    return apply


def cholesky(C: NDArray[np.float64]) -> Preconditioner | None:
    """Inverse of a dense matrix by its Cholesky factor: one step of an iteration, up to rounding.

    Parameters
    ----------
    C : ndarray of shape (n, n), C-contiguous
        Symmetric matrix with a diagonal of about one. It is overwritten.

    Returns
    -------
    callable or None
        The inverse; None where the matrix is not safely positive definite in floating point.
    """
    # The transpose is the same matrix in the order of LAPACK: nothing is copied.
    few = C.shape[0] <= ONE_THREAD_ROWS
    with one_thread() if few else nullcontext():
        factor, failed = linalg.lapack.dpotrf(C.T, lower=1, clean=0, overwrite_a=1)
    if failed or np.diagonal(factor).min() ** 2 <= 10 * C.shape[0] * np.finfo(float).eps:
        return None

    def apply(R: NDArray[np.float64]) -> NDArray[np.float64]:
        with one_thread() if few else nullcontext():
            return np.asarray(linalg.lapack.dpotrs(factor, R, lower=1)[0]).reshape(R.shape)

    return apply


def dense_inverse(C: NDArray[np.float64]) -> tuple[Preconditioner, str]:
    """Inverse by Cholesky, or by eigenvectors (least length) where the matrix is nearly singular.

    Parameters
    ----------
    C : ndarray of shape (n, n)
        Positive semi-definite matrix with unit diagonal.

    Returns
    -------
    callable
        The inverse.
    str
        "dense-cholesky" or "dense-eigh".
    """
    inverse = cholesky(C.copy())
    if inverse is not None:
        return inverse, "dense-cholesky"
    values, vectors = linalg.eigh(C)
    kept = values > C.shape[0] * np.finfo(float).eps * max(abs(values[0]), values[-1])
    V = vectors[:, kept]
    return lambda R: np.asarray((V / values[kept]) @ (V.T @ R)), "dense-eigh"


def with_coarse(
    Z: sp.csr_array, inverse: NDArray[np.float64], smooth: Preconditioner | None = None
) -> Preconditioner:
    """Jacobi (nothing, where the diagonal is one) and a coarse correction."""
    Zt = Z.T

    def apply(r: NDArray[np.float64]) -> NDArray[np.float64]:
        # Not by BLAS, whose threads take longer to wake than this takes.
        out = Z @ np.einsum("ij,j->i", inverse, Zt @ r)
        out += r if smooth is None else smooth(r)
        return np.asarray(out)

    return apply


def two_level(
    A: sp.csr_array, scale: NDArray[np.float64], *, diagonal: NDArray[np.float64] | None = None
) -> Preconditioner | None:
    """Jacobi plus a coarse correction (see :mod:`gdpa.linalg.two_level`) for a scaled matrix.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Positive semi-definite matrix.
    scale : ndarray of shape (n,)
        ``diag(A)^-1/2``. A zero leaves the unknown out.
    diagonal : ndarray of shape (n,), optional
        If given, the matrix is ``diag(diagonal) - A``.

    Returns
    -------
    callable or None
        Approximate inverse of the matrix with unit diagonal; None if there is none of this kind.
    """
    count = coarse_count(A)
    live = None if scale.all() else (scale > 0).astype(np.float64)
    coarse = CoarseSpace(A, patches(A, count), count, live, diagonal=diagonal)
    inverse = coarse.definite_inverse()
    if inverse is None:
        return None
    Z = coarse.Z
    Z.data = np.divide(Z.data, scale, out=np.zeros_like(scale), where=scale > 0)
    return with_coarse(Z, inverse)


def checked_callable(spec: PreconditionerLike) -> Preconditioner:
    """Return a preconditioner of the user's own; a name would have been built before."""
    if isinstance(spec, str):
        raise unknown_choice("preconditioner", spec, PRECONDITIONERS)
    if not callable(spec):
        raise ValueError(
            f"preconditioner={spec!r} must be None, one of {PRECONDITIONERS} or a callable"
        )
    return lambda R: np.asarray(spec(R), dtype=np.float64).reshape(R.shape)
