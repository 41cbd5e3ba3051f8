"""What can be multiplied: the one way in which the iterations see a symmetric matrix.

A :class:`Matrix` multiplies, in the precision and with the threads that it is told. The labelled
system is a :class:`Difference` of a diagonal and a matrix, which is never stored;
:class:`UnitDiagonal` scales either.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..policy import DEFAULT_POLICY, Policy
from ..threads import in_threads

FloatArray = NDArray[np.float64]
# What users may pass as a matrix.
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

# Entries below, and scales between this and its inverse, are safe in single precision.
SINGLE_HIGH = 1e9
EPS = float(np.finfo(np.float64).eps)
# Numbers below this have fewer digits.
TINY = float(np.finfo(np.float64).tiny) / EPS
# Entries whose products are summed in the precision of the vectors; up to how many BLAS works in
# one thread, which gives the same digits whatever their number.
PART, BLAS_ALONE = 2048, 10_000


class Matrix:
    """A sparse or dense symmetric array that can be multiplied.

    The entries in single precision are made at the first such product, and kept.

    Parameters
    ----------
    A : sparse array or array-like of shape (n, n)
        The matrix.
    checked : bool, default=False
        Whether it is known to be symmetric; otherwise one product from either side tells.
    policy : Policy, optional
        From how many entries on threads pay.

    Attributes
    ----------
    matrix : csr_array or ndarray of float64
        The matrix; indices of 32 bits where they fit.
    sparse : bool
        Whether it is a sparse array.
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
        if wide and max(matrix.nnz, matrix.shape[0]) < 2**31:  # a product reads less
            columns, starts = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
            matrix = sp.csr_array((matrix.data, columns, starts), shape=matrix.shape)
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        data: Any = self.matrix.data if self.sparse else self.matrix
        self.largest = float(max(np.max(data), -np.min(data))) if data.size else 0.0
        if not np.isfinite(self.largest):
            raise ValueError("A must be finite; it contains NaN or infinity")
        if not checked:
            self._check_symmetric()
        # Whether products in single precision are safe; dense ones would gain nothing.
        self.single = self.sparse and self.largest < SINGLE_HIGH
        self.threads_pay = self.sparse and data.size >= policy.thread_nnz
        self._copies: dict[Any, Any] = {np.dtype(np.float64): self.matrix}

    def _check_symmetric(self) -> None:
        # Multiples of the golden ratio modulo 1, around zero: as good as random, and cheap.
        probe = np.arange(self.shape[0], dtype=np.float64) * 0.6180339887498949
        probe -= np.rint(probe)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self.matrix @ probe - self.matrix.T @ probe
        worst = float(np.abs(difference).max())
        if worst > 1e-9 * self.largest * np.sqrt(self.shape[0]):
            raise ValueError("A must be symmetric; A x and A' x differ")

    def diagonal(self) -> FloatArray:
        """The diagonal."""
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)

    def toarray(self) -> FloatArray:
        """A dense copy."""
        return np.asarray(self.matrix.toarray() if self.sparse else self.matrix.copy())

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """``A Y`` in the given precision; safe to be called from several threads at once."""
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
        # Rows are summed as by one thread: the same to the last bit.
        return np.concatenate(in_threads(lambda block: block @ Y, blocks, n_jobs))


class Difference(NamedTuple):
    """``diag(total) - matrix``, which is never stored; a row of total 0 is no unknown."""

    matrix: Matrix
    total: FloatArray


class UnitDiagonal:
    """``S A S`` with S = diag(A)^-1/2: an operator scaled to unit diagonal.

    Parameters
    ----------
    operator : Matrix or Difference
        A, with a diagonal that is not negative.

    Attributes
    ----------
    trace : float
        Sum of the diagonal of A.
    dead : ndarray of bool of shape (n,)
        Zeros on the diagonal: in a semi-definite matrix the whole row is zero, no unknown there.
    single : bool
        Whether products in single precision are safe.
    s, inverse : ndarray of shape (n,)
        Diagonal of S and its inverse, zero where `dead`.
    """

    def __init__(self, operator: Matrix | Difference) -> None:
        # Of a difference only what is subtracted is multiplied with: its diagonal becomes one.
        self.subtracted = isinstance(operator, Difference)
        self.matrix = operator.matrix if isinstance(operator, Difference) else operator
        d = operator.total if isinstance(operator, Difference) else operator.diagonal()
        self.shape, self.diagonal = self.matrix.shape, d
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
        with np.errstate(over="ignore"):  # then `single` says no
            short = self.s.astype(np.float32)
        self._scales = {np.dtype(np.float64): self.s, np.dtype(np.float32): short}

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """``S A S Y`` for vectors that are zero where `dead`."""
        s = self._scales[np.dtype(dtype)]
        s = s if Y.ndim == 1 else s[:, None]
        out = self.matrix.dot(s * Y, dtype, n_jobs)
        out *= s
        return np.asarray(np.subtract(Y, out, out=out)) if self.subtracted else out

    def toarray(self) -> FloatArray:
        """The scaled matrix, with ones on the diagonal where there is no unknown."""
        C = self.matrix.toarray()
        C *= self.s[:, None]
        C *= self.s
        if self.subtracted:
            np.negative(C, out=C)
        C[np.diag_indices_from(C)] += 1.0 if self.subtracted else self.dead
        return C

    def smallest(self) -> float:
        """Bound of the smallest eigenvalue from above, by the constant vector; NaN if unknown."""
        A = self.matrix.matrix
        if not (self.matrix.sparse and self.trace > 0):
            return np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            pairs = float(A.data.sum())
            if not self.subtracted:
                return pairs / self.trace
            # Pairs of unknowns: all pairs without the rows that are left out.
            rows = A[np.flatnonzero(self.dead)]
            pairs -= 2.0 * float(rows.data.sum()) - float(rows.data[self.dead[rows.indices]].sum())
            return 1.0 - pairs / self.trace

    def scaled(self, rhs: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        """``S rhs`` as columns of ordinary size, and their powers of two.

        Where the product leaves the range of floats, the right-hand side is brought to ordinary
        size first.
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
    """Inner product of two vectors, sums of parts in double precision, that wakes no threads.

    Those of BLAS take longer to wake than it takes, and their number shows in the last digits.
    """
    if x.size <= BLAS_ALONE:
        return float(x @ y)
    whole = x.size - x.size % PART
    parts = np.einsum("ij,ij->i", x[:whole].reshape(-1, PART), y[:whole].reshape(-1, PART))
    return float(parts.sum(dtype=np.float64)) + float(np.einsum("i,i->", x[whole:], y[whole:]))


def check_positive(value: Any, name: str, least: int | None = None) -> Any:
    """Check that `value` is a positive finite number, or a whole number of at least `least`."""
    kind = Real if least is None else Integral
    good = isinstance(value, kind) and not isinstance(value, bool)
    if least is not None and not (good and value >= least):
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    if not (good and 0 <= float(value) < np.inf and (value > 0 or least == 0)):
        raise ValueError(f"{name}={value!r} must be a positive number")
    return float(value) if least is None else int(value)


def _row_blocks(A: sp.csr_array, count: int) -> list[sp.csr_array]:
    """Split into row blocks of about equal numbers of entries, without copying the entries."""
    targets = np.linspace(0, A.nnz, count + 1)[1:-1]
    cuts = [0, *np.searchsorted(A.indptr, targets).tolist(), A.shape[0]]
    blocks = []
    for a, b in pairwise(cuts):
        first, last = A.indptr[a], A.indptr[b]
        # Not by the constructor: it copies what is a view of less than half of an array.
        block = sp.csr_array((b - a, A.shape[1]), dtype=A.dtype)
        block.data, block.indices = A.data[first:last], A.indices[first:last]
        block.indptr = A.indptr[a : b + 1] - first
        blocks.append(block)
    return blocks
