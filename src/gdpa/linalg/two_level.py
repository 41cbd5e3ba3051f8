"""Coarse correction: a small second system for the error components that Jacobi reduces slowly.

On a graph with few labels, the slowly converging error components vary little between neighbouring
nodes. Functions Z that are constant (or a multiple of a given vector) on each of a few hundred
patches of the graph approximate them well. The preconditioner is additive,

    M = diag(A)^-1 + Z (Z' A Z)^-1 Z',

so it needs no product with A and costs less than one. Patches are the breadth-first neighbourhoods
of random seed nodes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.csgraph import breadth_first_order

from ..threads import one_thread


def patches(A: sp.csr_array, count: int, *, random_state: int = 0) -> NDArray[np.int32]:
    """Assign each node to the nearest (in hops) of `count` random seed nodes.

    The stored entries of A are the edges. Nodes that no seed node reaches are assigned to patch 0.
    """
    n = A.shape[0]
    rng = np.random.default_rng(random_state)
    seeds = np.sort(rng.choice(n, count, replace=False)).astype(A.indices.dtype)
    # An extra node with edges to all seed nodes turns many searches into one.
    indptr = np.append(A.indptr, A.indptr.dtype.type(A.indptr[-1] + count))
    indices = np.concatenate([A.indices, seeds])
    # The search uses only the sparsity pattern, so the values do not matter.
    graph = sp.csr_array((np.zeros(indices.size), indices, indptr), shape=(n + 1, n + 1))
    parent = breadth_first_order(graph, n, directed=True)[1][:n].copy()
    parent[parent < 0] = seeds[0]
    parent[seeds] = seeds
    while True:  # pointer jumping: log2(depth) rounds
        further = parent[parent]
        if np.array_equal(further, parent):
            break
        parent = further
    number = np.zeros(n, dtype=np.int32)
    number[seeds] = np.arange(count, dtype=np.int32)
    return np.asarray(number[parent])


class CoarseSpace:
    """Coarse functions Z on the patches, with unit columns, and the small matrix ``Z' A Z``.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        The matrix.
    patch : ndarray of int of shape (n,)
        Patch of each node.
    count : int
        Number of patches.
    vector : ndarray of shape (n,), optional
        Values of the coarse functions within the patches; ones by default. Zeros exclude nodes.
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
        entries = np.diff(A.indptr)
        data = A.data
        if vector is not None:
            data = data * vector[A.indices]
            data *= np.repeat(vector, entries)
        # bincount converts keys to intp, so build them as intp: passes over the entries are costly.
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
        """Return the pseudo-inverse of the small matrix; None if that is not semi-definite."""
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
        """Return the first eigenvector of the small matrix E, and ``(E - shift)^-1``.

        The shift is below the first eigenvalue mu_1 by the gap to the second. All other
        eigenvectors then have weights between half of ``1 / (mu - mu_1)`` and all of it. The weight
        of the first does not matter, because the iterate already contains that component.
        """
        if not np.isfinite(self.matrix).all() or not self.matrix.any():
            return None
        size = float(np.abs(self.matrix).max())
        with one_thread():
            values, vectors = linalg.eigh(self.matrix, subset_by_index=[0, 1])
            shift = values[0] - max(values[1] - values[0], 1e-6 * size)
            return vectors[:, 0], linalg.inv(self.matrix - shift * np.eye(len(self.matrix)))


def coarse_count(A: sp.csr_array, *, share: float = 0.25) -> int:
    """Return the number of patches, ``share * sqrt(nnz)``, for which the small system is cheap."""
    return int(min(np.clip(share * np.sqrt(A.nnz), 16, 256), A.shape[0]))
