"""The paper's full graph at sizes where it must not be stored in double precision, nor twice.

All N^2 weights ``exp(-|f_i - f_j|^2)`` in single precision, computed in blocks of rows: 2.4 GB for
N = 24,432, where doubles take 4.8 and a sparse matrix of them 7.2. The need is stated and checked
before anything is allocated. No weight is left out: this is the full graph, not a sparse one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from gdpa.graph.memory import check_memory

_BLOCK_BYTES = 64 * 1024**2

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DenseGraph:
    """All weights of the full graph, normalised: ``D^-1/2 W D^-1/2``.

    Parameters
    ----------
    weights : ndarray of float32 of shape (n, n)
        Normalised weights, zero on the diagonal.
    """

    weights: NDArray[np.float32]

    @classmethod
    def of(cls, X: FloatArray) -> DenseGraph:
        """Compute the graph of re-scaled features.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Features.

        Returns
        -------
        DenseGraph
            The graph.

        Raises
        ------
        MemoryError
            If ``4 n^2`` bytes and a block are not free.
        """
        n = X.shape[0]
        check_memory(
            4 * n * n + 3 * _BLOCK_BYTES,
            f"the full graph of {n} samples in single precision",
            "use the sparse graph, or a smaller --max-size",
        )
        weights = np.empty((n, n), dtype=np.float32)
        squares = np.einsum("ij,ij->i", X, X)
        rows = max(1, _BLOCK_BYTES // (8 * n))
        degrees = np.empty(n)
        for start in range(0, n, rows):
            block = slice(start, min(start + rows, n))
            distance = squares[block, None] + squares[None, :] - 2.0 * (X[block] @ X.T)
            part = np.exp(-np.maximum(distance, 0.0))
            part[np.arange(part.shape[0]), np.arange(block.start, block.stop)] = 0.0
            degrees[block] = part.sum(axis=1)
            weights[block] = part
        scale = (1.0 / np.sqrt(degrees)).astype(np.float32)
        for start in range(0, n, rows):
            block = slice(start, min(start + rows, n))
            weights[block] *= scale[block, None]
            weights[block] *= scale[None, :]
        return cls(weights)

    def scores(self, method: str, labels: NDArray[np.int8]) -> tuple[FloatArray, bool]:
        """Score the unlabelled samples by products with the weights.

        Parameters
        ----------
        method : {"vote", "harmonic"}
            The one-step vote ``A_ul xh``, or the solution of ``L_uu x = A_ul xh`` by conjugate
            gradients.
        labels : ndarray of int8
            Known labels, 0 elsewhere.

        Returns
        -------
        x : ndarray
            Scores of the unlabelled samples.
        converged : bool
            Whether the residual fell below the tolerance.
        """
        u = np.flatnonzero(labels == 0)

        def product(x: FloatArray) -> FloatArray:
            """``A_uu x``, without a copy of that part."""
            whole = np.zeros(labels.size, dtype=np.float32)
            whole[u] = x
            return np.asarray((self.weights @ whole)[u], dtype=np.float64)

        vote = np.asarray((self.weights @ labels.astype(np.float32))[u], dtype=np.float64)
        if method == "vote":
            return vote, True
        system = LinearOperator((u.size, u.size), matvec=lambda x: x - product(x), dtype=np.float64)
        # Single precision carries a relative residual of 1e-6.
        x, failed = cg(system, vote, rtol=1e-5, maxiter=1000)
        return np.asarray(x), failed == 0
