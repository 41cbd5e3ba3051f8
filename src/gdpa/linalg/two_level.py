"""Coarse correction: a second, small system that carries what Jacobi is slow at.

On a graph with few labels the slow modes of the iteration are those that hardly change from a node
to its neighbours. They are represented well by functions that are constant (or a multiple of a
given vector c) on each of some hundred patches of the graph, Z. The preconditioner is additive,

    M = diag(A)^-1 + Z (Z' A Z)^-1 Z',

so that it needs no product with A, and costs little beside one. Patches are the breadth-first
neighbourhoods of random seeds.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.csgraph import breadth_first_order

from ..threads import one_thread


def patches(A: sp.csr_array, count: int, *, random_state: int = 0) -> NDArray[np.int32]:
    """Assign each node to the nearest (in hops) of `count` random seeds.

    Nodes that no seed reaches are left with patch 0.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric matrix; its stored entries are the edges.
    count : int
        Number of seeds, at most n.
    random_state : int, default=0
        Seed of the choice.

    Returns
    -------
    ndarray of int32 of shape (n,)
        Patch of each node.
    """
    n = A.shape[0]
    rng = np.random.default_rng(random_state)
    seeds = np.sort(rng.choice(n, count, replace=False)).astype(A.indices.dtype)
    # One more node, with edges to all seeds, makes one search of the many.
    indptr = np.append(A.indptr, A.indptr.dtype.type(A.indptr[-1] + count))
    indices = np.concatenate([A.indices, seeds])
    # The search looks at the pattern only, so these zeros are never read.
    graph = sp.csr_array((np.zeros(indices.size), indices, indptr), shape=(n + 1, n + 1))
    parent = breadth_first_order(graph, n, directed=True)[1][:n].copy()
    parent[parent < 0] = seeds[0]
    parent[seeds] = seeds
    while True:  # doubles the jump each time: as many rounds as the depth has binary digits
        further = parent[parent]
        if np.array_equal(further, parent):
            break
        parent = further
    number = np.zeros(n, dtype=np.int32)
    number[seeds] = np.arange(count, dtype=np.int32)
    return np.asarray(number[parent])


class CoarseSpace:
    """The patches of a matrix with the small matrix ``Z' A Z``, for columns of Z of unit length.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        The matrix.
    patch : ndarray of int of shape (n,)
        Patch of each node.
    count : int
        Number of patches.
    vector : ndarray of shape (n,), optional
        What varies within a patch; constant by default. Zeros leave nodes out.
    diagonal : ndarray of shape (n,), optional
        If given, the matrix is ``diag(diagonal) - A``.
    """

    def __init__(
        self,
        A: sp.csr_array,
        patch: NDArray[np.int32],
        count: int,
        vector: NDArray[np.float64] | None = None,
        *,
        diagonal: NDArray[np.float64] | None = None,
    ) -> None:
        entries, data = np.diff(A.indptr), A.data
        if vector is not None:
            data = data * vector[A.indices]
            data *= np.repeat(vector, entries)
        # Keys of the size that bincount wants: the passes over all entries are the cost of it.
        wide = patch.astype(np.intp)
        keys = np.repeat(wide * count, entries)
        keys += wide[A.indices]
        small = np.bincount(keys, weights=data, minlength=count * count).reshape(count, count)
        square = np.ones(A.shape[0]) if vector is None else vector * vector
        if diagonal is not None:
            small = np.diag(np.bincount(patch, weights=diagonal * square, minlength=count)) - small
        length = np.sqrt(np.bincount(patch, weights=square, minlength=count))
        inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        self.matrix = inverse[:, None] * ((small + small.T) / 2) * inverse
        values = inverse[patch] if vector is None else vector * inverse[patch]
        starts = np.arange(A.shape[0] + 1, dtype=np.int32)
        self.Z = sp.csr_array((values, patch, starts), shape=(A.shape[0], count), copy=False)

    def definite_inverse(self) -> NDArray[np.float64] | None:
        """Inverse of a positive (semi-)definite small matrix; None if it is not one."""
        if not np.isfinite(self.matrix).all():
            return None
        with one_thread():
            values, vectors = linalg.eigh(self.matrix, driver="evd")
            if values[-1] <= 0 or values[0] < -1e-10 * values[-1]:
                return None
            kept = values > 1e-10 * values[-1]
            V = vectors[:, kept]
            return np.asarray((V / values[kept]) @ V.T)

    def gap_inverse(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """First small eigenvector, and ``(E - shift)^-1``: corrections to an eigenvector.

        The shift lies below the first eigenvalue mu_1 by the gap to the second. The weight that
        this gives to the first does not matter, since that is what is being iterated; the others
        have weights between half of ``1 / (mu - mu_1)`` and all of it.
        """
        if not np.isfinite(self.matrix).all() or not self.matrix.any():
            return None
        size = float(np.abs(self.matrix).max())
        with one_thread():
            values, vectors = linalg.eigh(self.matrix, subset_by_index=[0, 1])
            shift = values[0] - max(values[1] - values[0], 1e-6 * size)
            return vectors[:, 0], linalg.inv(self.matrix - shift * np.eye(len(self.matrix)))


def coarse_count(A: sp.csr_array, *, share: float = 0.25) -> int:
    """Number of patches, ``share * sqrt(nnz)``, such that the small system costs few products."""
    return int(min(np.clip(share * np.sqrt(A.nnz), 16, 256), A.shape[0]))
