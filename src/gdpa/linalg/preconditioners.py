"""Preconditioners: Jacobi, Chebyshev, two-level, Cholesky, or a user-supplied callable.

The matrix may be indefinite or have zeros on its diagonal, as the H of the dual does before
convergence. The approximate inverse is always positive definite.
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

# Maps residuals to corrections.
Preconditioner: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
# Types accepted from users.
PreconditionerLike: TypeAlias = str | Preconditioner | None

# Up to this number of rows, a factorisation in one thread takes a few hundredths of a second.
ONE_THREAD_ROWS = 1_500
PRECONDITIONERS = ("auto", "jacobi", "two-level")
# Iterations at which the coarse correction is built or rebuilt from the current vector.
BUILD_AT = (7, 14, 25, 60, 100, 200, 400)


class Counted:
    """A matrix with its number of threads and a counter of matrix-vector products."""

    def __init__(self, matrix: Matrix, n_jobs: int) -> None:
        self.matrix = matrix
        self.n_jobs = n_jobs
        self.products = 0
        self.n = matrix.shape[0]
        self.csr = matrix.matrix if matrix.sparse else None

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``A x`` and count the product."""
        self.products += 1
        return self.matrix.dot(x, np.float64, self.n_jobs)


def jacobi(diagonal: NDArray[np.float64]) -> Preconditioner:
    """Return the Jacobi preconditioner; entries that are not clearly positive are replaced."""
    top = float(np.abs(diagonal).max(initial=0.0)) or 1.0
    # A zero or negative entry tells nothing about the inverse: use the median instead.
    safe = diagonal > 1e-12 * top
    ordinary = float(np.median(diagonal[safe])) if safe.any() else top
    inverse = 1.0 / np.where(safe, diagonal, ordinary)
    return lambda r: r * inverse


def chebyshev(A: Counted, *, degree: int = 3, ratio: float = 20.0) -> Preconditioner | None:
    """Return a Chebyshev polynomial in the Jacobi-scaled matrix ``D^-1 A``.

    The polynomial is optimal on ``[top / ratio, top]``, where `top` is the largest row sum of
    ``|D^-1 A|``, and costs `degree` products. It is also positive below that interval, so it can be
    used for indefinite matrices. Returns None if A is dense, or if its diagonal is not positive or
    far from dominant.
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
        for root in roots[1:]:  # each step zeroes the residual polynomial at one root
            rest = A.dot(x)
            np.subtract(r, rest, out=rest)
            rest *= d / root
            x += rest
        return x

    return apply


def cholesky(C: NDArray[np.float64]) -> Preconditioner | None:
    """Return the inverse of a dense matrix with diagonal near one by its Cholesky factor.

    C must be C-contiguous and is overwritten. Returns None if the matrix is not clearly positive
    definite in floating point.
    """
    # The transpose is the same matrix in Fortran order, so LAPACK makes no copy.
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
    """Return the inverse of a psd matrix with unit diagonal, and the name of the method.

    The method is a Cholesky factorisation. If the matrix is nearly singular, the result is the
    pseudo-inverse, from an eigendecomposition.
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
    """Return `smooth` (by default the identity) plus a coarse correction."""
    Zt = Z.T

    def apply(r: NDArray[np.float64]) -> NDArray[np.float64]:
        # einsum, because starting BLAS threads takes longer than this product.
        out = Z @ np.einsum("ij,j->i", inverse, Zt @ r)
        out += r if smooth is None else smooth(r)
        return np.asarray(out)

    return apply


def two_level(
    A: sp.csr_array, scale: NDArray[np.float64], *, diagonal: NDArray[np.float64] | None = None
) -> Preconditioner | None:
    """Return Jacobi plus a coarse correction (:mod:`gdpa.linalg.two_level`) for a scaled matrix.

    The matrix is A, or ``diag(diagonal) - A`` if `diagonal` is given; `scale` is the inverse square
    root of its diagonal, with zeros for excluded unknowns. Returns None if the coarse matrix is not
    semi-definite.
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
    """Return a user-supplied preconditioner; raise ValueError for unknown names and other types."""
    if isinstance(spec, str):
        raise unknown_choice("preconditioner", spec, PRECONDITIONERS)
    if not callable(spec):
        raise ValueError(
            f"preconditioner={spec!r} must be None, one of {PRECONDITIONERS} or a callable"
        )
    return lambda R: np.asarray(spec(R), dtype=np.float64).reshape(R.shape)


class Correction:
    """Preconditioner that can be rebuilt from a better iterate.

    Parameters
    ----------
    spec : None, str or callable
        As the argument `preconditioner` of :func:`gdpa.linalg.first_eigenvector`.
    A : Counted
        The matrix.
    warm : bool
        Whether the user gave a start. The coarse correction is then built only if needed.
    """

    def __init__(self, spec: PreconditionerLike, A: Counted, *, warm: bool) -> None:
        self.A = A
        self.base: Preconditioner | None = None
        if spec in PRECONDITIONERS:
            self.base = jacobi(A.matrix.diagonal())
        elif spec is not None:
            self.base = checked_callable(spec)
        self.schedule: tuple[int, ...] = ()
        self.residuals: list[float] = []
        self.patch: NDArray[np.int32] | None = None
        self.first: NDArray[np.float64] | None = None
        # For small matrices, building a coarse correction costs more than it saves.
        auto = spec == "auto"
        small = A.n < 2000
        if auto and small:
            self.base = chebyshev(A) or self.base
        self.current = self.base
        if (spec == "two-level" or (auto and not small)) and A.csr is not None and A.n >= 2:
            self.schedule = BUILD_AT
            # A node adjacent to 5 % of all nodes is a hub. H_bar with many labels has two.
            if auto and int(np.diff(A.csr.indptr).max()) > 0.05 * A.n:
                self.schedule = BUILD_AT[2:]  # convergence is fast with hubs: build it late
            elif not warm:
                self._build(None)

    def __call__(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the current preconditioner."""
        return R if self.current is None else self.current(R)

    def guess(self, random_state: int) -> NDArray[np.float64]:
        """Return a start: the first coarse eigenvector or the constant vector, plus noise.

        The constant vector is the first eigenvector of a graph Laplacian. The noise prevents
        convergence to a higher eigenvector.
        """
        noise = np.random.default_rng(random_state).standard_normal(self.A.n)
        if self.first is None:
            return 1.0 + 0.05 * noise
        noise *= 0.01 * float(np.linalg.norm(self.first)) / np.sqrt(noise.size)
        noise += self.first
        return noise

    def refresh(
        self, iteration: int, vector: NDArray[np.float64], residual: float, threshold: float
    ) -> None:
        """Rebuild the coarse correction at scheduled iterations, unless convergence is near."""
        self.residuals.append(residual)
        if iteration not in self.schedule:
            return
        past = iteration // 2
        rate = np.log(self.residuals[past] / residual) / (iteration - past)
        # The last 20 or so iterations cost less than a rebuild.
        if rate * 20 <= np.log(residual / threshold):
            self._build(vector)

    def _build(self, vector: NDArray[np.float64] | None) -> None:
        """Build the coarse correction from `vector` (default: ones) restricted to the patches."""
        assert self.A.csr is not None
        count = coarse_count(self.A.csr, share=0.38)
        if self.patch is None:
            self.patch = patches(self.A.csr, count)
        coarse = CoarseSpace(self.A.csr, self.patch, count, vector)
        gap = coarse.gap_inverse()
        self.current = self.base
        self.first = None
        if gap is not None:
            self.first = np.asarray(coarse.Z @ gap[0])
            self.current = with_coarse(coarse.Z, gap[1], self.base)
