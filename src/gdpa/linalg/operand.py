"""The matrix behind an iteration: one product, one counter, whatever the storage.

The solvers of this package need of a symmetric matrix only its products, its diagonal and a norm.
:class:`Operand` gives these for a sparse array, a dense array and a ``LinearOperator``, counts the
products, and splits large sparse products by rows over threads (rows are summed by the same code
in the same order, so the result is the same to the last bit).
"""

from __future__ import annotations

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from .ordering import breadth_first, by_length, check_order, is_scattered, permuted
from .short_products import ShortProducts

__all__ = [
    "Operand",
    "ShortProducts",
    "positive_int",
    "positive_number",
    "row_sums",
    "single_is_safe",
    "threads",
]

# Below this many stored entries starting threads costs more than it saves.
THREAD_NNZ = 1_000_000
# Up to so many columns a product per column is as fast as one for all, and leaves them contiguous.
FEW_COLUMNS = 3
# Entries outside are brought to about 1 first, so that no square overflows or vanishes.
SAFE_LOW, SAFE_HIGH = 1e-100, 1e100
# Vectors of fewer rows stay in the cache, in any order.
ORDER_ROWS = 400_000
# Entries below, and scales between this and its inverse, are safe to multiply in single precision.
SINGLE_HIGH = 1e9


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


def threads(n_jobs: Any) -> int:
    """Number of threads: `n_jobs`, or the processors this process may use, at most 8."""
    if n_jobs is not None:
        return positive_int(n_jobs, "n_jobs")
    available = getattr(os, "sched_getaffinity", None)
    count = len(available(0)) if available is not None else os.cpu_count() or 1
    return min(count, 8)


class Operand:
    """A symmetric matrix as the iterations see it.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
        The matrix. Symmetry is checked by one product with a fixed vector from either side.
    diagonal : array-like of shape (n,), optional
        Diagonal of a ``LinearOperator``, which cannot be asked for it.
    n_jobs : int, default=1
        Threads for sparse products with at least a million stored entries.
    rescale : bool, default=True
        Bring extreme entries to about one. Not wanted where rows are scaled one by one later.
    order : array-like of int of shape (n,), optional
        An order in which neighbours are near, if one is known; otherwise, or where they are not
        near in it, one is found if needed.
    checked : bool, default=False
        Whether `A` is known to be symmetric.

    Attributes
    ----------
    exponent : int
        The operand stands for ``A * 2**-exponent``. Zero unless the entries are extreme.
    """

    def __init__(
        self,
        A: Any,
        *,
        diagonal: Any = None,
        n_jobs: int = 1,
        rescale: bool = True,
        order: Any = None,
        checked: bool = False,
    ) -> None:
        self.counter = [0]
        self.exponent = 0
        self.matrix: Any
        if isinstance(A, LinearOperator):
            self.matrix = A
        elif sp.issparse(A):
            self.matrix = _narrow(sp.csr_array(A, dtype=np.float64))
        else:
            self.matrix = np.asarray(A, dtype=np.float64)
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"A must be square, got shape {shape}")
        if shape[0] == 0:
            raise ValueError("A must have at least one row, got shape (0, 0)")
        self.n = int(shape[0])
        self._diagonal = self._check_diagonal(diagonal)
        self.largest = self._scale(rescale)
        if not checked:
            self._check_symmetric()
        self.n_jobs = n_jobs if self.nnz >= THREAD_NNZ else 1
        self._blocks: list[sp.csr_array] = []
        self._pool: ThreadPoolExecutor | None = None
        self._order = None if order is None else check_order(order, self.n)
        self._short: Operand | None = None
        self._arranged: NDArray[np.int32] | None = None
        # Whether the search for an order reached every node; None where there was none.
        self.connected: bool | None = None

    @property
    def matvecs(self) -> int:
        """Products with one vector made so far."""
        return self.counter[0]

    @property
    def kind(self) -> str:
        """Storage: "sparse", "dense" or "operator"."""
        if isinstance(self.matrix, LinearOperator):
            return "operator"
        return "sparse" if sp.issparse(self.matrix) else "dense"

    @property
    def nnz(self) -> int:
        """Stored entries (0 for an operator)."""
        if self.kind == "sparse":
            return int(self.matrix.nnz)
        return self.n * self.n if self.kind == "dense" else 0

    def _check_diagonal(self, diagonal: Any) -> NDArray[np.float64] | None:
        if self.kind != "operator":
            if diagonal is not None:
                raise ValueError("diagonal is for a LinearOperator only; A has its own")
            return np.asarray(self.matrix.diagonal(), dtype=np.float64)
        if diagonal is None:
            return None
        d = np.asarray(diagonal, dtype=np.float64)
        if d.shape != (self.n,) or not np.isfinite(d).all():
            raise ValueError(f"diagonal must be {self.n} finite numbers, got shape {d.shape}")
        return d

    def _scale(self, rescale: bool) -> float:
        """Largest absolute entry, after extreme entries were brought to about one."""
        if self.kind == "operator":
            return 1.0
        data = self.matrix.data if self.kind == "sparse" else self.matrix
        largest = float(max(np.max(data), -np.min(data))) if data.size else 0.0
        if not np.isfinite(largest):
            raise ValueError("A must be finite; it contains NaN or infinity")
        if not rescale or largest == 0.0 or SAFE_LOW <= largest <= SAFE_HIGH:
            return largest
        self.exponent = int(np.frexp(largest)[1])
        scaled = np.ldexp(data, -self.exponent)
        if self.kind == "sparse":
            self.matrix = sp.csr_array(
                (scaled, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
            )
        else:
            self.matrix = scaled
        assert self._diagonal is not None
        self._diagonal = np.ldexp(self._diagonal, -self.exponent)
        return float(np.ldexp(largest, -self.exponent))

    def _check_symmetric(self) -> None:
        if self.kind == "operator":
            return
        # Multiples of the golden ratio modulo 1, around zero: as good as random, and cheap.
        probe = np.arange(self.n, dtype=np.float64) * 0.6180339887498949
        probe -= np.rint(probe)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self.matrix @ probe - self.matrix.T @ probe
        worst = float(np.abs(difference).max())
        if worst > 1e-9 * self.largest * np.sqrt(self.n):
            raise ValueError("A must be symmetric; A x and A' x differ")

    def diagonal(self) -> NDArray[np.float64] | None:
        """Diagonal, or None for an operator that came without."""
        return self._diagonal

    def dot(self, X: NDArray[Any]) -> NDArray[Any]:
        """``A X`` for one vector or a block of columns, counted per column."""
        columns = 1 if X.ndim == 1 else X.shape[1]
        self.counter[0] += columns
        if X.ndim == 1 or columns > FEW_COLUMNS or self.kind != "sparse":
            return self.product(X)
        out = np.empty(X.shape, dtype=X.dtype, order="F")
        for j in range(columns):
            out[:, j] = self.product(X[:, j])
        return out

    def product(self, X: NDArray[Any]) -> NDArray[Any]:
        """``A X``, not counted."""
        if self.n_jobs == 1 or self.kind != "sparse":
            out = np.asarray(self.matrix @ X)
            return out if out.dtype == X.dtype else out.astype(np.float64)
        if not self._blocks:
            self._blocks = _row_blocks(self.matrix, self.n_jobs)
        return np.concatenate(list(self.pool().map(lambda block: block @ X, self._blocks)))

    def pool(self) -> ThreadPoolExecutor:
        """The threads; they end with this object."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_jobs)
        return self._pool

    def single(self, order: NDArray[np.int32] | None = None) -> Operand:
        """The same sparse matrix in single precision, counting on this one's counter.

        With rows and columns in another order, if one is given.
        """
        other = copy.copy(self)
        A = self.matrix
        if order is None:
            data = A.data.astype(np.float32, copy=False)
            other.matrix = sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
        else:
            pool = self.pool() if self.n_jobs > 1 else None
            other.matrix = permuted(A, order, dtype=np.float32, pool=pool)
        other._blocks, other._order, other._short = [], None, None
        return other

    def near_order(self) -> NDArray[np.int32] | None:
        """Order in which neighbours are near, given or breadth first; None where it would not pay.

        In a random order nearly every entry of a large matrix costs a miss of the cache: a product
        takes three times as long as in this order, which costs ten of them to find and arrange.
        """
        if self.kind != "sparse" or self.n < ORDER_ROWS or self.n >= 2**31:
            return None
        if not is_scattered(self.matrix):
            return None
        if self.connected is not None:
            return self._order  # found before
        if self._order is None or is_scattered(self.matrix, self._order):
            self._order, self.connected = breadth_first(self.matrix)
        return self._order

    @property
    def is_reordered(self) -> bool:
        """Whether there is a copy in another order already."""
        return self._short is not None

    def reorder(self) -> bool:
        """Make a copy in single precision and in :meth:`near_order`, once; False: none pays."""
        if self._short is None:
            order = self.near_order()
            if order is None:
                return False
            self._arranged = by_length(self.matrix, order)
            self._short = self.single(self._arranged)
        return True

    def reordered(self) -> tuple[Operand, NDArray[np.int32]]:
        """The copy that :meth:`reorder` made, and its order."""
        assert self._short is not None
        assert self._arranged is not None
        return self._short, self._arranged

    def norm(self) -> float:
        """Upper bound of the spectral norm: the largest absolute row sum.

        For an operator, an estimate from below by five steps of the power method.
        """
        if self.kind == "operator":
            x = np.random.default_rng(0).standard_normal(self.n)
            estimate = 0.0
            for _ in range(5):
                x /= np.linalg.norm(x)
                x = self.dot(x)
                estimate = max(estimate, float(np.linalg.norm(x)))
                if not np.isfinite(estimate):
                    raise ValueError("A must be finite; a product with it is not")
                if estimate == 0.0:
                    break
            return estimate
        if self.kind == "dense":
            return float(np.abs(self.matrix).sum(axis=1).max())
        return float(row_sums(self.matrix).max())

    def toarray(self) -> NDArray[np.float64]:
        """The matrix as a dense array."""
        if self.kind == "dense":
            return np.asarray(self.matrix, dtype=np.float64)
        if self.kind == "sparse":
            return np.asarray(self.matrix.toarray(), dtype=np.float64)
        return np.asarray(self.dot(np.eye(self.n)), dtype=np.float64)


def single_is_safe(operand: Operand, scale: NDArray[np.float64] | None) -> bool:
    """Whether ``diag(scale) A diag(scale)`` is far from the limits of single precision."""
    if not operand.largest < SINGLE_HIGH:
        return False
    if scale is None:
        return True
    high = float(scale.max())
    low = float(scale.min(initial=high, where=scale > 0))
    return 1 / SINGLE_HIGH < low <= high < SINGLE_HIGH


def row_sums(A: sp.csr_array) -> NDArray[np.float64]:
    """Sums of absolute values of the rows, by one product."""
    size = sp.csr_array((np.abs(A.data), A.indices, A.indptr), shape=A.shape)
    return np.asarray(size @ np.ones(A.shape[1]))


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
