"""The paper's full graph at sizes where it must not be stored in double precision, nor twice.

All N^2 weights ``exp(-|f_i - f_j|^2)`` in single precision, computed in blocks of rows: 2.4 GB for
N = 24,432, where doubles take 4.8 and a sparse matrix of them 7.2. The need is stated and checked
before anything is allocated. No weight is left out: this is the full graph, not a sparse one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg, lobpcg

from gdpa.memory import check_memory
from gdpa.solvers.comparators.sns import Search

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
        method : {"vote", "harmonic", "gdpa-closed-form", "sns-authors"}
            The one-step vote ``A_ul xh``, the solution of ``L_uu x = A_ul xh`` by conjugate
            gradients, the paper's algorithm with its linear program in closed form, or SNS in the
            authors' variant.
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
        if method == "gdpa-closed-form":
            return self._gdpa(labels)[u], True
        if method == "sns-authors":
            return self._sns(labels)[u], True

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

    def __matmul__(self, X: FloatArray) -> FloatArray:
        """``-A X``: what SNS in the authors' variant maximises."""
        return -np.asarray(self.weights @ X.astype(np.float32), dtype=np.float64)

    def _sns(self, labels: NDArray[np.int8]) -> FloatArray:
        """Search from the labels until 50 neighbours bring nothing; single precision decides."""
        fixed, start = np.flatnonzero(labels), labels[:, None].astype(np.float64)
        signs, noise = start[fixed, 0], 1e-6 * float(self.weights.sum(dtype=np.float64))
        search = Search(self, np.zeros(labels.size), fixed, signs, 5, noise, leaves_one=True)
        start[start == 0] = np.where((self @ start)[start == 0] < 0, -1.0, 1.0)
        blocks = search.blocks(start, 50, np.random.default_rng(0))
        return next(best for best, _, improved in blocks if improved == 0)

    def _gdpa(self, labels: NDArray[np.int8], tol: float = 1e-4, rounds: int = 10) -> FloatArray:
        """Alternate first eigenvector and closed-form LP from the paper's start, then read H.

        Rows and columns of H_bar are switched by their signs; `tol` is the authors' for both.
        """
        n, y, objective = labels.size, np.abs(labels).astype(np.float64), 0.0
        B = np.stack([labels > 0, labels < 0], axis=1).astype(np.float64)  # a, by half of the apex
        v = np.ones(n + 2)
        for _ in range(rounds):
            diagonal = np.append(1.0 + y, B.sum(axis=0))

            def product(x: FloatArray, B: FloatArray = B, d: FloatArray = diagonal) -> FloatArray:
                image = d * np.ravel(x)
                image[:n] -= self.weights @ np.ravel(x)[:n].astype(np.float32)
                image[:n] -= B @ np.ravel(x)[n:]
                image[n:] -= B.T @ np.ravel(x)[:n]
                return image

            H_bar = LinearOperator((n + 2, n + 2), matvec=product, dtype=np.float64)
            jacobi = LinearOperator(
                H_bar.shape, matvec=lambda x, d=diagonal: x.ravel() / np.where(d > 0, d, 1.0)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the outer loop decides when it is enough
                _, found = lobpcg(H_bar, v[:, None], M=jacobi, tol=tol, maxiter=100, largest=False)
            v = np.maximum(np.abs(found[:, 0]), 1e-12)
            # The linear program in closed form (gdpa.solvers.gdpa_lp): the current point if it is
            # optimal, otherwise a = 0 and y that makes every row tight.
            tight = (self.weights @ v[:n].astype(np.float32)) / v[:n] - 1.0
            optimum = float(tight.sum())
            if objective <= optimum + 1e-9 * (1.0 + np.abs(y).sum()):
                break
            y = tight
            B = np.zeros((n, 2))
            if objective - optimum <= tol:
                break
            objective = optimum
        first = labels[np.flatnonzero(labels)[0]]
        if not B.any():  # the last node of H is isolated: v is the null vector of the rest
            return float(first) * v[:n]
        return self._first_eigenvector(y, B[:, 0] - B[:, 1], first)

    def _first_eigenvector(self, y: FloatArray, a: FloatArray, first: np.int8) -> FloatArray:
        """Return the first eigenvector of H with label weights ``a``, signed by the first label."""
        n = y.size
        diagonal = np.append(1.0 + y, np.abs(a).sum())

        def product(x: FloatArray) -> FloatArray:
            x = np.ravel(x)
            image = diagonal * x
            image[:n] -= self.weights @ x[:n].astype(np.float32) + a * x[n]
            image[n] -= a @ x[:n]
            return image

        H = LinearOperator((n + 1, n + 1), matvec=product, dtype=np.float64)
        jacobi = LinearOperator(H.shape, matvec=lambda x: np.ravel(x) / np.abs(diagonal))
        start = np.append(np.sign(a), 1.0)
        with warnings.catch_warnings(action="ignore"):
            _, found = lobpcg(H, start[:, None], M=jacobi, tol=1e-5, maxiter=300, largest=False)
        v = np.asarray(found[:n, 0])
        return float(first) * float(np.sign(v[np.flatnonzero(a)[0]])) * v
