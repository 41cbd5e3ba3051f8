"""Order of the nodes: neighbours near each other in memory.

A product with a large sparse matrix reads the vector at the neighbours of each row. Where these are
anywhere, nearly every read misses the cache. The solution does not depend on the order, ``P A P'
(P x) = P b``: who solves often with one large matrix arranges it once, at the door.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from ..policy import DEFAULT_POLICY, Policy
from .threads import in_threads

__all__ = ["is_scattered", "near_order", "permuted"]

# Entries looked at, how near is near, in shares of all rows, and how many must be. A random order
# has 4 % within n / 50 of the diagonal, a breadth-first one of neighbours in eight dimensions 34 %.
SAMPLE, NEAR, NEAR_SHARE = 10_000, 1 / 50, 0.2
# Rows among which those of equal lengths come together.
WINDOW = 1024
# Rows that are arranged at a time.
ROWS = 20_000


def is_scattered(A: sp.csr_array, order: NDArray[np.integer] | None = None) -> bool:
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
        Whether less than a fifth are within n / 50 of it.
    """
    n = A.shape[0]
    entries = np.linspace(0, max(A.nnz - 1, 0), min(SAMPLE, A.nnz)).astype(np.int64)
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


def near_order(
    A: sp.csr_array,
    known: NDArray[np.integer] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> NDArray[np.int32] | None:
    """Order in which neighbours are near each other; None where it would not pay.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric matrix.
    known : ndarray of int of shape (n,), optional
        An order that the search for neighbours left behind. Where they are not near in it, or none
        is known, the order of a breadth-first search from the node with most neighbours.
    policy : Policy, optional
        From how many rows on it pays.

    Returns
    -------
    ndarray of int32 of shape (n,) or None
        The nodes in that order; rows of equal length together, among each thousand or so. (A
        product loops over each row. Where the next one is as long as the last, the processor knows
        when the loop ends: a fifth of the time on neighbour graphs.)
    """
    n = A.shape[0]
    if not policy.order_rows <= n < 2**31 or not is_scattered(A):
        return None
    if known is None or is_scattered(A, known):
        start = int(np.argmax(np.diff(A.indptr)))
        known = breadth_first_order(A, start, return_predecessors=False)
        rest = np.ones(n, dtype=bool)
        rest[known] = False
        known = np.concatenate([known, np.flatnonzero(rest)])  # other components, as they come
    order = known.astype(np.int32)
    whole = n - n % WINDOW
    # 16 bits are sorted by counting.
    lengths = np.minimum(np.diff(A.indptr), 2**16 - 1).astype(np.uint16)[order[:whole]]
    places = np.argsort(lengths.reshape(-1, WINDOW), axis=1, kind="stable")
    order[:whole] = np.take_along_axis(order[:whole].reshape(-1, WINDOW), places, 1).ravel()
    return order


def permuted(A: sp.csr_array, order: NDArray[np.int32], n_jobs: int = 1) -> sp.csr_array:
    """``A[order][:, order]``; the entries of a row stay in the sequence they had.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Matrix.
    order : ndarray of int32 of shape (n,)
        Nodes in their new order.
    n_jobs : int, default=1
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
    data, indices = np.empty_like(A.data), np.empty_like(A.indices)

    def arrange(first: int) -> None:
        rows = A[order[first : first + ROWS]]
        part = slice(indptr[first], indptr[min(first + ROWS, n)])
        data[part], indices[part] = rows.data, place[rows.indices]

    # In parts: nothing but the result is ever as large as the matrix.
    in_threads(arrange, range(0, n, ROWS), n_jobs)
    return sp.csr_array((data, indices, indptr), shape=A.shape)
