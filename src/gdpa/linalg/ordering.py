"""Order of the nodes: neighbours near each other in memory.

A product with a large sparse matrix reads the vector at the neighbours of each row. Where these are
anywhere, nearly every read misses the cache. The solution does not depend on the order, ``P A P'
(P x) = P b``: iterations may run in any, and the matrix is arranged once for all solves with it.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

__all__ = ["breadth_first", "by_length", "check_order", "is_scattered", "permuted"]

# Entries looked at, how near is near, in shares of all rows, and how many must be.
SAMPLE, NEAR, NEAR_SHARE = 10_000, 1 / 50, 0.2
# Rows among which those of equal lengths come together.
WINDOW = 1024
# Rows that are arranged at a time.
ROWS = 20_000


def is_scattered(A: sp.csr_array, order: NDArray[np.int32] | None = None) -> bool:
    """Whether few entries are near the diagonal, by a sample of those that are not on it.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Matrix.
    order : ndarray of int of shape (n,), optional
        An order of the rows and columns; as they are by default.

    Returns
    -------
    bool
        Whether less than a fifth are within n / 50 of it. A random order has 4 %, a breadth-first
        one of neighbours in eight dimensions 34 %.
    """
    n = A.shape[0]
    if A.nnz == 0:
        return False
    entries = np.linspace(0, A.nnz - 1, min(SAMPLE, A.nnz)).astype(np.int64)
    rows = np.searchsorted(A.indptr, entries, side="right") - 1
    columns = A.indices[entries].astype(np.int64)
    off = rows != columns
    if not off.any():
        return False
    rows, columns = rows[off], columns[off]
    if order is not None:
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        rows, columns = place[rows], place[columns]
    return bool((np.abs(rows - columns) < n * NEAR).mean() < NEAR_SHARE)


def breadth_first(A: sp.csr_array) -> tuple[NDArray[np.int32], bool]:
    """Order of visit from the node with most neighbours; other components follow as they come.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric matrix, n below 2**31.

    Returns
    -------
    order : ndarray of int32 of shape (n,)
        The nodes in their new order.
    connected : bool
        Whether all nodes were reached.
    """
    n = A.shape[0]
    start = int(np.argmax(np.diff(A.indptr)))
    found = breadth_first_order(A, start, return_predecessors=False)
    order = np.asarray(found, dtype=np.int32)
    if order.size == n:
        return order, True
    rest = np.ones(n, dtype=bool)
    rest[order] = False
    return np.concatenate([order, np.flatnonzero(rest).astype(np.int32)]), False


def check_order(order: Any, n: int) -> NDArray[np.int32]:
    """Check that `order` names each of n nodes once.

    Parameters
    ----------
    order : array-like of int of shape (n,)
        Nodes in their new order.
    n : int
        Number of nodes.

    Returns
    -------
    ndarray of int32
        The order.

    Raises
    ------
    ValueError
        If it is not a permutation.
    """
    found = np.asarray(order)
    text = f"order must name each of the {n} nodes once"
    if found.shape != (n,) or found.dtype.kind not in "iu":
        raise ValueError(f"{text}, got shape {found.shape} of {found.dtype}")
    seen = np.zeros(n, dtype=bool)
    if n and (found.min() < 0 or found.max() >= n):
        raise ValueError(f"{text}, got numbers from {found.min()} to {found.max()}")
    seen[found] = True
    if not seen.all():
        raise ValueError(f"{text}, but node {int(np.argmin(seen))} is missing")
    return found.astype(np.int32, copy=False)


def by_length(A: sp.csr_array, order: NDArray[np.int32]) -> NDArray[np.int32]:
    """The order with rows of equal length together, among each thousand or so.

    A product loops over each row. Where the next one is as long as the last, the processor knows
    when the loop ends: a fifth of the time on neighbour graphs. Nobody moves far.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Matrix.
    order : ndarray of int32 of shape (n,)
        Nodes in an order.

    Returns
    -------
    ndarray of int32 of shape (n,)
        Nodes in nearly the same order.
    """
    whole = order.size - order.size % WINDOW
    # 16 bits are sorted by counting.
    lengths = np.minimum(np.diff(A.indptr), 2**16 - 1).astype(np.uint16)[order[:whole]]
    places = np.argsort(lengths.reshape(-1, WINDOW), axis=1, kind="stable")
    out = order.copy()
    out[:whole] = np.take_along_axis(order[:whole].reshape(-1, WINDOW), places, 1).ravel()
    return out


def permuted(
    A: sp.csr_array, order: NDArray[np.int32], *, dtype: Any = None, pool: Executor | None = None
) -> sp.csr_array:
    """``A[order][:, order]``; the entries of a row stay in the sequence they had.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Matrix.
    order : ndarray of int32 of shape (n,)
        Nodes in their new order.
    dtype : dtype, optional
        Of the entries; that of `A` by default.
    pool : Executor, optional
        Threads that share the rows.

    Returns
    -------
    csr_array
        The matrix in that order.
    """
    n = order.size
    place = np.empty_like(order)
    place[order] = np.arange(n, dtype=order.dtype)
    indptr = np.zeros_like(A.indptr)
    np.cumsum(np.diff(A.indptr)[order], out=indptr[1:])
    data = np.empty(A.nnz, dtype=A.dtype if dtype is None else dtype)
    indices = np.empty(A.nnz, dtype=A.indices.dtype)

    def arrange(first: int) -> None:
        rows = A[order[first : first + ROWS]]
        part = slice(indptr[first], indptr[min(first + ROWS, n)])
        data[part] = rows.data
        indices[part] = place[rows.indices]

    # In parts: nothing but the result is ever as large as the matrix.
    list((map if pool is None else pool.map)(arrange, range(0, n, ROWS)))
    return sp.csr_array((data, indices, indptr), shape=A.shape)
