"""What can be multiplied: the one way in which the iterations see a symmetric matrix.

An :class:`Operator` multiplies, in the precision and with the threads that it is told, and knows
its diagonal. :class:`Matrix` is one around a sparse or dense array; the labelled system, which is
never stored, is another; :func:`as_operator` takes what users have.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.sparse.linalg import LinearOperator

from .threads import in_threads

__all__ = ["Matrix", "Operator", "as_operator", "positive_int", "positive_number", "row_sums"]

FloatArray = NDArray[np.float64]

# Below this many stored entries starting threads costs more than it saves.
THREAD_NNZ = 1_000_000
# Entries below are safe to multiply in single precision.
SINGLE_HIGH = 1e9


@runtime_checkable
class Operator(Protocol):
    """A symmetric matrix that can be multiplied."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def single(self) -> bool:
        """Whether products in single precision are safe."""

    def diagonal(self) -> FloatArray | None:
        """The diagonal; None if it is not known."""

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """Multiply; safe to be called from several threads at once.

        Parameters
        ----------
        Y : ndarray of `dtype`, of shape (n,) or (n, k)
            Vectors; a block in Fortran's order is given back in it.
        dtype : dtype, default=float64
            Precision of the product: float64, or float32 where `single` says so.
        n_jobs : int, default=1
            Threads that this product may use.

        Returns
        -------
        ndarray of `dtype`, of the shape of `Y`
            The product, an array that the caller may overwrite.
        """
        ...


class Matrix:
    """A sparse or dense symmetric array as an :class:`Operator`.

    The entries in single precision are made at the first such product, and kept.

    Parameters
    ----------
    A : sparse array or array-like of shape (n, n)
        The matrix.
    checked : bool, default=False
        Whether it is known to be symmetric; otherwise one product from either side tells.

    Attributes
    ----------
    matrix : csr_array or ndarray of float64
        The matrix; indices of 32 bits where they fit.
    sparse : bool
        Whether it is a sparse array.
    largest : float
        Largest absolute entry.
    """

    def __init__(self, A: Any, *, checked: bool = False) -> None:
        self.sparse = bool(sp.issparse(A))
        self.matrix: Any = (
            _narrow(sp.csr_array(A, dtype=np.float64))
            if self.sparse
            else np.asarray(A, dtype=np.float64)
        )
        self.shape = _check_square(self.matrix.shape)
        data: Any = self.matrix.data if self.sparse else self.matrix
        self.largest = float(max(np.max(data), -np.min(data))) if data.size else 0.0
        if not np.isfinite(self.largest):
            raise ValueError("A must be finite; it contains NaN or infinity")
        if not checked:
            self._check_symmetric()
        self._parts: dict[tuple[Any, int], list[Any]] = {}

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.matrix.nnz if self.sparse else self.matrix.size)

    @property
    def single(self) -> bool:
        """Whether products in single precision are safe; dense ones would gain nothing."""
        return self.sparse and self.largest < SINGLE_HIGH

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

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """``A Y``; see :meth:`Operator.dot`."""
        parts = self._rows(np.dtype(dtype), n_jobs if self.sparse and self.nnz > THREAD_NNZ else 1)
        if Y.ndim == 1 or not self.sparse or not Y.flags.f_contiguous:
            return _product(parts, Y)
        if Y.shape[1] == 1:
            return _product(parts, Y[:, 0])[:, None]
        # Column by column is as fast for few of them, and leaves them contiguous.
        out = np.empty(Y.shape, dtype=dtype, order="F")
        for j in range(Y.shape[1]):
            out[:, j] = _product(parts, Y[:, j])
        return out

    def _rows(self, dtype: np.dtype[Any], n_jobs: int) -> list[Any]:
        """Blocks of rows, one per thread, of the entries in `dtype`."""
        parts = self._parts.get((dtype, n_jobs))
        if parts is None:
            A = self.matrix
            if n_jobs > 1:
                parts = _row_blocks(self._rows(dtype, 1)[0], n_jobs)
            elif self.sparse and dtype != A.dtype:
                parts = [sp.csr_array((A.data.astype(dtype), A.indices, A.indptr), shape=A.shape)]
            else:
                parts = [A]
            self._parts[dtype, n_jobs] = parts
        return parts

    def toarray(self) -> FloatArray:
        """The matrix as a dense array, not always a copy."""
        return np.asarray(self.matrix.toarray() if self.sparse else self.matrix)


class _FromLinearOperator:
    """SciPy's ``LinearOperator`` as an :class:`Operator`: double precision, its own threads."""

    single = False

    def __init__(self, A: LinearOperator, diagonal: Any) -> None:
        self.operator = A
        self.shape = _check_square(A.shape)
        self._diagonal: FloatArray | None = None
        if diagonal is not None:
            d = np.asarray(diagonal, dtype=np.float64)
            if d.shape != (self.shape[0],) or not np.isfinite(d).all():
                raise ValueError(
                    f"diagonal must be {self.shape[0]} finite numbers, got shape {d.shape}"
                )
            self._diagonal = d

    def diagonal(self) -> FloatArray | None:
        return self._diagonal

    def dot(self, Y: NDArray[Any], dtype: DTypeLike = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        return np.asarray(self.operator @ Y).astype(dtype)


def as_operator(A: Any, diagonal: Any = None) -> Operator:
    """Whatever can be multiplied, as an :class:`Operator`.

    Parameters
    ----------
    A : Operator, sparse array, LinearOperator or array-like of shape (n, n)
        Symmetric matrix. An operator is taken as it is; arrays are checked.
    diagonal : array-like of shape (n,), optional
        Diagonal of a ``LinearOperator``, which cannot be asked for it.

    Returns
    -------
    Operator
        The matrix.
    """
    if isinstance(A, LinearOperator):
        return _FromLinearOperator(A, diagonal)
    if diagonal is not None:
        raise ValueError("diagonal is for a LinearOperator only; A has its own")
    return A if isinstance(A, Operator) else Matrix(A)


def positive_number(value: Any, name: str) -> float:
    """Check that `value` is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a positive number")
    return float(value)


def positive_int(value: Any, name: str, *, least: int = 1) -> int:
    """Check that `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    return int(value)


def row_sums(A: sp.csr_array) -> FloatArray:
    """Sums of absolute values of the rows, by one product."""
    size = sp.csr_array((np.abs(A.data), A.indices, A.indptr), shape=A.shape)
    return np.asarray(size @ np.ones(A.shape[1]))


def _check_square(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"A must be square, got shape {shape}")
    if shape[0] == 0:
        raise ValueError("A must have at least one row, got shape (0, 0)")
    return int(shape[0]), int(shape[1])


def _product(parts: list[Any], Y: NDArray[Any]) -> NDArray[Any]:
    if len(parts) == 1:
        return np.asarray(parts[0] @ Y)
    # Rows are summed by the same code in the same order: the same to the last bit.
    return np.concatenate(in_threads(lambda part: part @ Y, parts, len(parts)))


def _narrow(A: sp.csr_array) -> sp.csr_array:
    """32-bit indices where they fit: a product reads less."""
    if A.indices.dtype == np.int32 or max(A.nnz, A.shape[0]) >= 2**31:
        return A
    index = (A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return sp.csr_array((A.data, *index), shape=A.shape)


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
