"""The system of linear recovery at large: products with the graph in place of a matrix.

    (D + diag(a + gamma + e) - A) x = rhs   scaled to unit diagonal: y - t * (A (t * y))

Clamped labels are masked. What "auto" takes as preconditioner depends on how many steps Jacobi
would need: none further, a coarse system, or on full graphs a Cholesky factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from ..linalg.cg import laid_out
from ..linalg.operand import Operand, ShortProducts, single_is_safe, threads
from ..linalg.preconditioners import Preconditioner, cholesky, two_level
from ..linalg.spd import cg_steps

__all__ = ["ImplicitSystem", "as_columns", "shared_operand"]

FloatArray = NDArray[np.float64]

# From so many nodes on the system is not stored; if Jacobi does not get there within so many steps,
# it gets a coarse system too.
IMPLICIT_NODES = 5_000
JACOBI_STEPS = 80
# With more steps than this to come an order of the nodes with neighbours near is found at once.
LONG = 25
# Graphs with a fourth of all possible edges and so many nodes may be factorised: it takes the
# memory of the graph, and the time of so many products with it (and one more per so many nodes).
FULL_NODES = (500, 5_000)
FACTOR_PRODUCTS, FACTOR_NODES = 12, 400


def as_columns(targets: FloatArray) -> FloatArray:
    """Targets as a matrix, also where no node is labelled (evidence alone)."""
    return targets[:, None] if targets.ndim == 1 else targets


def shared_operand(adjacency: sp.csr_array, *, order: Any = None) -> Operand:
    """An adjacency prepared for several solves: what it costs to look through it is paid once.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Symmetric, as :func:`gdpa.graph.laplacian_parts` gives it.
    order : array-like of int of shape (n_nodes,), optional
        An order of the nodes in which neighbours are near each other, if one is known. It has no
        influence on the scores beyond rounding.

    Returns
    -------
    Operand
        For `operand` of :func:`gdpa.solvers.recovery.linear_recovery`.
    """
    return Operand(adjacency, n_jobs=threads(None), rescale=False, order=order, checked=True)


def _is_full(adjacency: sp.csr_array) -> bool:
    """Whether a dense array of its size takes about the memory of the graph."""
    n = adjacency.shape[0]
    return bool(FULL_NODES[0] <= n <= FULL_NODES[1] and 4 * adjacency.nnz >= n * n)


class ImplicitSystem(LinearOperator):  # type: ignore[misc]
    """The system scaled to unit diagonal, as products with the adjacency: nothing is copied.

    ``y - t * (A (t * y))`` with ``t = diag(K)^-1/2``, and 0 at clamped labels, whose rows and
    columns are thereby left out. Cutting them out of a sparse matrix, and subtracting it from a
    diagonal, costs as much as dozens of products.
    """

    def __init__(
        self, operand: Operand, total: FloatArray, clamped: Any, values: FloatArray
    ) -> None:
        super().__init__(np.dtype(np.float64), operand.matrix.shape)
        self.operand = operand
        self.is_long = False
        self.root = np.sqrt(total)
        self.t = 1.0 / self.root
        self.t[clamped] = 0.0
        self.clamped, self.values = clamped, values
        self.rhs: FloatArray = np.empty((0, 0))

    @classmethod
    def of(
        cls,
        adjacency: sp.csr_array,
        diagonal: FloatArray,
        labeled: NDArray[np.intp],
        targets: FloatArray,
        tol: float,
        preconditioner: Any,
        system: dict[str, Any],
        operand: Operand | None = None,
    ) -> ImplicitSystem | None:
        """Build it where it is the fastest way: many nodes or edges, few of them clamped."""
        n, columns = diagonal.size, as_columns(targets)
        a = np.asarray(system.get("label_weight", np.inf), dtype=np.float64)
        clamp = bool(np.isinf(a).all())
        many = n >= IMPLICIT_NODES or (preconditioner == "auto" and _is_full(adjacency))
        if not many or np.isinf(a).any() != clamp or (clamp and 4 * labeled.size > n):
            return None
        bias, weight = system.get("bias"), system.get("bias_weight")
        total = diagonal + system.get("self_loop", 0.0)
        rhs = np.zeros((n, columns.shape[1]))
        if bias is not None:
            rhs += np.asarray(bias, dtype=np.float64).reshape(n, -1)
            total = total + (np.abs(rhs).sum(axis=1) if weight is None else weight)
        if not clamp:
            total = total.copy()
            total[labeled] += a
        # Weights out of the ordinary are left to the matrix, whose solver scales them with care.
        if total.min() <= 1e-100 or total.max() >= 1e100:
            return None
        if not (preconditioner is None or isinstance(preconditioner, str)):
            return None
        if preconditioner not in (None, "jacobi", "auto"):
            return None
        nodes = labeled if clamp else labeled[:0]
        operand = shared_operand(adjacency) if operand is None else operand
        self = cls(operand, total, nodes, columns if clamp else columns[:0])
        if clamp:
            rhs += operand.matrix[labeled].T @ columns
        else:
            rhs[labeled] += a.reshape(-1, 1) * columns
        self.rhs = laid_out(rhs)
        self.rhs *= self.t[:, None]
        return self

    def preconditioner(self, spec: str | None, tol: float) -> str | Preconditioner:
        """What "auto" stands for here."""
        if spec != "auto":
            return "jacobi"
        steps, n = cg_steps(self.excess(), tol), self.t.size
        self.is_long = steps > LONG
        products = steps * self.rhs.shape[1]
        if _is_full(self.operand.matrix) and products > FACTOR_PRODUCTS + n / FACTOR_NODES:
            factor = cholesky(self.toarray())
            return "jacobi" if factor is None else factor
        return "two-level" if steps > JACOBI_STEPS else "jacobi"

    def two_level(self) -> Preconditioner | None:
        """The coarse system, see :mod:`gdpa.linalg.two_level`, in the variables of this one."""
        return two_level(self.operand.matrix, self.t, diagonal=np.square(self.root))

    def toarray(self) -> FloatArray:
        """The matrix, made in place: what passes over all its entries is the cost of it."""
        C = np.asarray(self.operand.matrix.toarray())
        C *= -self.t[:, None]
        C *= self.t
        C[np.diag_indices(self.t.size)] += 1.0
        return C

    def excess(self) -> float:
        """Bound of the smallest eigenvalue from above, by the constant vector."""
        free = self.t > 0
        rows = self.operand.matrix[self.clamped]
        # The sum over all pairs of free nodes, from all pairs and the rows of the clamped nodes.
        pairs = float(self.operand.matrix.data.sum()) - 2.0 * float(rows.data.sum())
        pairs += float(rows.data[~free[rows.indices]].sum())
        weight = float(np.square(self.root[free]).sum())
        return 1.0 - pairs / max(weight, 1e-300)

    def _matmat(self, Y: FloatArray) -> FloatArray:
        out = self.operand.dot(self.t[:, None] * Y)
        out *= -self.t[:, None]
        out += Y
        return out

    def _matvec(self, y: FloatArray) -> FloatArray:
        return self._matmat(y.reshape(-1, 1))

    def single(self) -> ShortProducts | None:
        """Products with vectors in single precision; None where the weights do not allow it."""
        if not single_is_safe(self.operand, self.t):
            return None
        if self.is_long:
            self.operand.reorder()
        return ShortProducts(self.operand, self.t, complement=True)

    def scaled(self, X: FloatArray | None) -> FloatArray | None:
        """A start in the variables of the system."""
        if X is None:
            return None
        Y = X * self.root[:, None]
        Y[self.clamped] = 0.0
        return Y

    def unscaled(self, Y: FloatArray) -> FloatArray:
        """Scores of all nodes."""
        scores = Y / self.root[:, None]
        scores[self.clamped] = self.values
        return scores
