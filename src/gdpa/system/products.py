"""The labelled system at large: products with the graph in place of a matrix.

    y - t * (A (t * y)),   t = diag(K)^-1/2, 0 at kept labels

Cutting labels out of a sparse matrix, and subtracting it from a diagonal, costs as much as dozens
of products. The nodes of a large graph are put, once, into an order in which neighbours are near.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..linalg.operator import Matrix
from ..linalg.ordering import near_order, permuted
from ..linalg.preconditioners import cholesky, two_level
from ..linalg.threads import effective_jobs
from ..policy import DEFAULT_POLICY, Policy

__all__ = ["Arranged", "ScaledProducts", "arrange"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Arranged:
    """An adjacency prepared for several solves, its nodes in an order that the cache likes.

    Parameters
    ----------
    matrix : Matrix
        The adjacency, in `order`.
    order : ndarray of int, optional
        Node of each row; as given by default.
    """

    matrix: Matrix
    order: NDArray[Any] | None = None


def arrange(
    adjacency: sp.csr_array,
    order: Any = None,
    ordered: bool = True,
    policy: Policy = DEFAULT_POLICY,
    n_jobs: int | None = None,
) -> Arranged:
    """Prepare an adjacency for several solves: what it costs to look through it is paid once.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Symmetric, as :func:`gdpa.graph.laplacian_parts` gives it.
    order : array-like of int of shape (n_nodes,), optional
        An order of the nodes in which neighbours are near each other, if one is known.
    ordered : bool, default=True
        Whether to look for an order at all; few steps do not repay it.
    policy : Policy
        From how many rows on an order pays.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    Arranged
        For `arranged` of :class:`~gdpa.system.LabeledSystem`. Scores do not depend on it beyond
        rounding.
    """
    near = None
    if ordered and adjacency.shape[0] >= policy.order_rows:
        near = near_order(adjacency, order, policy)
    if near is not None:
        adjacency = permuted(adjacency, near, n_jobs=effective_jobs(n_jobs))
    return Arranged(Matrix(adjacency, checked=True, policy=policy), near)


class ScaledProducts:
    """The system scaled to unit diagonal, as an operator.

    Parameters
    ----------
    graph : Arranged
        The adjacency.
    total : ndarray of shape (n_nodes,)
        Diagonal of the system.
    kept : ndarray of int
        Nodes whose labels are kept; their rows and columns are left out.
    """

    def __init__(self, graph: Arranged, total: FloatArray, kept: NDArray[np.intp]) -> None:
        self.graph, self.kept, self.total = graph, kept, total
        # Rows in their own order, not a copy, where there is no other.
        self.order: Any = slice(None) if graph.order is None else graph.order
        self.root = np.sqrt(total)
        t = 1.0 / self.root
        t[kept] = 0.0
        t = t[self.order]
        with np.errstate(over="ignore"):  # `single` says no then
            self.t: dict[Any, NDArray[Any]] = {
                np.dtype(np.float64): t,
                np.dtype(np.float32): t.astype(np.float32),
            }
        low = float(t.min(initial=1.0, where=t > 0))
        self.single = bool(graph.matrix.single and low > 1e-9 and float(t.max()) < 1e9)
        self.shape = graph.matrix.shape

    def diagonal(self) -> FloatArray:
        """Ones."""
        return np.ones(self.shape[0])

    def dot(self, Y: NDArray[Any], dtype: Any = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """``Y - t * (A (t * Y))``."""
        t = self.t[np.dtype(dtype)]
        t = t if Y.ndim == 1 else t[:, None]
        out = self.graph.matrix.dot(t * Y, dtype, n_jobs)
        out *= t
        return np.asarray(np.subtract(Y, out, out=out))

    def right(self, B: FloatArray) -> FloatArray:
        """A right-hand side, in the variables of the operator."""
        return np.asarray(B[self.order] * self.t[np.dtype(np.float64)][:, None])

    def start(self, X: FloatArray) -> FloatArray:
        """Scores to start from, in the variables of the operator."""
        Y = X * self.root[:, None]
        Y[self.kept] = 0.0
        return np.asarray(Y[self.order])

    def scores(self, Y: FloatArray) -> FloatArray:
        """Scores of all nodes; 0 at kept labels."""
        X = np.empty_like(Y)
        X[self.order] = Y
        X /= self.root[:, None]
        return X

    def preconditioner(self, steps: float, columns: int, policy: Policy) -> Any:
        """What "auto" stands for: nothing, a coarse system, or on full graphs a factor.

        `steps` is what Jacobi would take.
        """
        n = self.shape[0]
        worth = steps * columns > policy.factor_products + n / policy.factor_nodes
        few = policy.full_least <= n <= policy.full_most
        # A graph with a fourth of all edges: a dense array takes about its memory.
        if worth and few and 4 * self.graph.matrix.matrix.nnz >= n * n:
            return cholesky(self.toarray()) or "jacobi"
        if steps <= policy.jacobi_steps:
            return "jacobi"
        total = self.total[self.order]
        scale = self.t[np.dtype(np.float64)]
        return two_level(self.graph.matrix.matrix, scale, diagonal=total) or "jacobi"

    def toarray(self) -> FloatArray:
        """The matrix, made in place: what passes over all its entries is the cost of it."""
        t = self.t[np.dtype(np.float64)]
        C = np.asarray(self.graph.matrix.matrix.toarray())
        C *= -t[:, None]
        C *= t
        C[np.diag_indices(self.shape[0])] += 1.0
        return C
