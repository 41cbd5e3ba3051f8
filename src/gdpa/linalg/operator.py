"""Symmetric operators: the interface through which iterative methods access a matrix.

A :class:`Matrix` computes products in a given precision with a given number of threads. The
labelled system is a :class:`Difference` between a diagonal and a matrix; it is never stored
explicitly. :class:`UnitDiagonal` scales either of them to unit diagonal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import FloatArray
from ..policy import DEFAULT_POLICY, Policy
from ..threads import in_threads

# Matrix types accepted from users.
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

# Single precision is safe for entries below this limit and for scales between its inverse and it.
SINGLE_HIGH = 1e9
EPS = float(np.finfo(np.float64).eps)
# Below this limit, relative rounding errors exceed machine precision.
TINY = float(np.finfo(np.float64).tiny) / EPS
# `inner_product` sums blocks of PART products in the precision of the vectors. Up to BLAS_ALONE
# entries, BLAS uses one thread, so the result does not depend on the number of threads.
PART = 2048
BLAS_ALONE = 10_000


class Matrix:
    """Sparse or dense symmetric matrix.

    The first product in single precision creates a copy of the entries, which is cached.

    Parameters
    ----------
    A : sparse array or array-like of shape (n, n)
        The matrix.
    checked : bool, default=False
        Skip the symmetry check, which costs one product with A and one with its transpose.
    policy : Policy, optional
        Sets the number of entries above which threads are used.

    Attributes
    ----------
    matrix : csr_array or ndarray of float64
        The matrix, with 32-bit indices if they are large enough.
    sparse : bool
        Whether the matrix is stored as a sparse array.
    largest : float
        Largest absolute entry.
    """

    def __init__(
        self, A: MatrixLike, *, checked: bool = False, policy: Policy = DEFAULT_POLICY
    ) -> None:
        self.sparse = bool(sp.issparse(A))
        make: Any = sp.csr_array if self.sparse else np.asarray
        matrix = make(A, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A must be square, got shape {matrix.shape}")
        if matrix.shape[0] == 0:
            raise ValueError("A must have at least one row, got shape (0, 0)")
        wide = self.sparse and matrix.indices.dtype != np.int32
        if wide and max(matrix.nnz, matrix.shape[0]) < 2**31:  # less memory traffic per product
            columns = matrix.indices.astype(np.int32)
            starts = matrix.indptr.astype(np.int32)
            matrix = sp.csr_array((matrix.data, columns, starts), shape=matrix.shape)
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        data: Any = self.matrix.data if self.sparse else self.matrix
        self.largest = float(max(np.max(data), -np.min(data))) if data.size else 0.0
        if not np.isfinite(self.largest):
            raise ValueError("A must be finite; it contains NaN or infinity")
        if not checked:
            self._check_symmetric()
        # Dense products gain nothing from single precision.
        self.single = self.sparse and self.largest < SINGLE_HIGH
        self.threads_pay = self.sparse and data.size >= policy.thread_nnz
        self._copies: dict[Any, Any] = {np.dtype(np.float64): self.matrix}

    def _check_symmetric(self) -> None:
        """Raise ValueError if A and its transpose differ on a probe vector."""
        # Multiples of the golden ratio modulo 1 are a cheap substitute for random numbers.
        probe = np.arange(self.shape[0], dtype=np.float64) * 0.6180339887498949
        probe -= np.rint(probe)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self.matrix @ probe - self.matrix.T @ probe
        worst = float(np.abs(difference).max())
        if worst > 1e-9 * self.largest * np.sqrt(self.shape[0]):
            raise ValueError("A must be symmetric; A x and A' x differ")

    def diagonal(self) -> FloatArray:
        """Return the diagonal."""
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)

    def toarray(self) -> FloatArray:
        """Return a dense copy."""
        return np.asarray(self.matrix.toarray() if self.sparse else self.matrix.copy())

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """Return ``A Y`` in the given precision. This method is thread-safe."""
        A = self._copies.get(np.dtype(dtype))
        if A is None:
            B = self.matrix
            A = sp.csr_array((B.data.astype(dtype), B.indices, B.indptr), shape=B.shape)
            self._copies[np.dtype(dtype)] = A
        if n_jobs == 1 or not self.threads_pay:
            return np.asarray(A @ Y)
        blocks = self._copies.get((np.dtype(dtype), n_jobs))
        if blocks is None:
            blocks = self._copies[np.dtype(dtype), n_jobs] = _row_blocks(A, n_jobs)
        # Each row is summed by one thread, so the result does not depend on n_jobs.
        return np.concatenate(in_threads(lambda block: block @ Y, blocks, n_jobs))


class Difference(NamedTuple):
    """``diag(total) - matrix``, not stored explicitly; rows with total 0 are not unknowns."""

    matrix: Matrix
    total: FloatArray


class UnitDiagonal:
    """Operator scaled to unit diagonal: ``S A S`` with ``S = diag(A)^-1/2``.

    Parameters
    ----------
    operator : Matrix or Difference
        A, with a non-negative diagonal.

    Attributes
    ----------
    trace : float
        Sum of the diagonal of A.
    dead : ndarray of bool of shape (n,)
        Zeros on the diagonal. In a semi-definite matrix the whole row is then zero.
    single : bool
        Whether products in single precision are safe.
    s, inverse : ndarray of shape (n,)
        Diagonal of S and its inverse, zero where `dead`.
    """

    def __init__(self, operator: Matrix | Difference) -> None:
        # The scaled diagonal of a difference is 1, so only the subtracted matrix is multiplied.
        self.subtracted = isinstance(operator, Difference)
        self.matrix = operator.matrix if isinstance(operator, Difference) else operator
        d = operator.total if isinstance(operator, Difference) else operator.diagonal()
        self.shape = self.matrix.shape
        self.diagonal = d
        if (d < 0).any():
            worst = int(np.argmin(d))
            raise ValueError(
                f"A must be positive semi-definite; diagonal entry {worst} is {d[worst]!r}"
            )
        with np.errstate(over="ignore"):
            self.trace = float(d.sum())
        self.dead = d == 0
        self.inverse = np.sqrt(d)
        self.s = np.divide(1.0, self.inverse, out=np.zeros(d.size), where=self.inverse > 0)
        high = float(self.s.max())
        low = float(self.s.min(initial=high, where=self.s > 0))
        self.single = self.matrix.single and 1 / SINGLE_HIGH < low <= high < SINGLE_HIGH
        with np.errstate(over="ignore"):  # `single` is False in that case
            short = self.s.astype(np.float32)
        self._scales = {np.dtype(np.float64): self.s, np.dtype(np.float32): short}

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """Return ``S A S Y`` for vectors that are zero where `dead`."""
        s = self._scales[np.dtype(dtype)]
        s = s if Y.ndim == 1 else s[:, None]
        out = self.matrix.dot(s * Y, dtype, n_jobs)
        out *= s
        return np.asarray(np.subtract(Y, out, out=out)) if self.subtracted else out

    def toarray(self) -> FloatArray:
        """Return the scaled matrix as a dense array, with ones on the diagonal where `dead`."""
        C = self.matrix.toarray()
        C *= self.s[:, None]
        C *= self.s
        if self.subtracted:
            np.negative(C, out=C)
        C[np.diag_indices_from(C)] += 1.0 if self.subtracted else self.dead
        return C

    def smallest(self) -> float:
        """Return an upper bound of the smallest eigenvalue (a Rayleigh quotient), or NaN."""
        A = self.matrix.matrix
        if not (self.matrix.sparse and self.trace > 0):
            return np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            pairs = float(A.data.sum())
            if not self.subtracted:
                return pairs / self.trace
            # Sum over pairs of unknowns: all entries minus the rows and columns where `dead`.
            rows = A[np.flatnonzero(self.dead)]
            pairs -= 2.0 * float(rows.data.sum()) - float(rows.data[self.dead[rows.indices]].sum())
            return 1.0 - pairs / self.trace

    def scaled(self, rhs: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return ``S rhs`` with columns scaled by powers of two to order one, and the exponents.

        If the product overflows or underflows, the right-hand side is scaled first.
        """
        first = np.zeros(rhs.shape[1], dtype=np.int64)
        with np.errstate(over="ignore", under="ignore"):
            b = np.multiply(rhs, self.s[:, None], order="F")
            size = np.abs(b).max(axis=0, initial=0.0)
            lost = ((size < TINY) | np.isinf(size)) & rhs.any(axis=0)
            if lost.any():
                first = np.where(lost, np.frexp(np.abs(rhs).max(axis=0))[1], 0)
                b = np.ldexp(rhs, -first, order="F") * self.s[:, None]
                size = np.abs(b).max(axis=0)
        more = np.frexp(size)[1]
        b *= np.ldexp(1.0, -more)
        return b, first + more


def inner_product(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the inner product of two vectors, computed in one thread.

    Starting BLAS threads takes longer than the product itself, and the result would depend on their
    number. Sums of blocks are added in double precision.
    """
    if x.size <= BLAS_ALONE:
        return float(x @ y)
    whole = x.size - x.size % PART
    parts = np.einsum("ij,ij->i", x[:whole].reshape(-1, PART), y[:whole].reshape(-1, PART))
    return float(parts.sum(dtype=np.float64)) + float(np.einsum("i,i->", x[whole:], y[whole:]))


def _row_blocks(A: sp.csr_array, count: int) -> list[sp.csr_array]:
    """Split A into blocks of rows with about equal numbers of entries, without copying them."""
    targets = np.linspace(0, A.nnz, count + 1)[1:-1]
    cuts = [0, *np.searchsorted(A.indptr, targets).tolist(), A.shape[0]]
    blocks = []
    for a, b in pairwise(cuts):
        first = A.indptr[a]
        last = A.indptr[b]
        # The constructor would copy views that cover less than half of their array.
        block = sp.csr_array((b - a, A.shape[1]), dtype=A.dtype)
        block.data = A.data[first:last]
        block.indices = A.indices[first:last]
        block.indptr = A.indptr[a : b + 1] - first
        blocks.append(block)
    return blocks
