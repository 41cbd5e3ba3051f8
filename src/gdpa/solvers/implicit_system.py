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

from ..linalg.operator import SINGLE_HIGH, Matrix
from ..linalg.ordering import near_order, permuted
from ..linalg.preconditioners import Preconditioner, TwoLevel, cholesky, two_level
from ..linalg.spd import cg_steps

__all__ = ["ImplicitSystem", "SharedAdjacency", "as_columns", "shared_operand"]

FloatArray = NDArray[np.float64]

# From so many nodes on the system is not stored; if Jacobi does not get there within so many steps,
# it gets a coarse system too.
IMPLICIT_NODES = 5_000
JACOBI_STEPS = 80
# Graphs with a fourth of all possible edges and so many nodes may be factorised: it takes the
# memory of the graph, and the time of so many products with it (and one more per so many nodes).
FULL_NODES = (500, 5_000)
FACTOR_PRODUCTS, FACTOR_NODES = 12, 400


def as_columns(targets: FloatArray) -> FloatArray:
    """Targets as a matrix, also where no node is labelled (evidence alone)."""
    return targets[:, None] if targets.ndim == 1 else targets


class SharedAdjacency:
    """An adjacency prepared for several solves, its nodes in an order with neighbours near."""

    def __init__(self, adjacency: sp.csr_array, known: Any = None) -> None:
        self.order = near_order(adjacency, known)
        if self.order is not None:
            adjacency = permuted(adjacency, self.order)
        self.operator = Matrix(adjacency, checked=True)

    def inward(self, values: FloatArray) -> FloatArray:
        """Rows in the order of this adjacency."""
        return values if self.order is None else values[self.order]

    def outward(self, values: FloatArray) -> FloatArray:
        """Rows in the order of the nodes."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


def shared_operand(adjacency: sp.csr_array, *, order: Any = None) -> SharedAdjacency:
    """Prepare an adjacency; `order` is one in which neighbours are near, if the search knows it."""
    return SharedAdjacency(adjacency, order)


def _is_full(adjacency: sp.csr_array) -> bool:
    """Whether a dense array of its size takes about the memory of the graph."""
    n = adjacency.shape[0]
    return bool(FULL_NODES[0] <= n <= FULL_NODES[1] and 4 * adjacency.nnz >= n * n)


class ImplicitSystem:
    """The system scaled to unit diagonal, as products with the adjacency: nothing is copied.

    ``y - t * (A (t * y))`` with ``t = diag(K)^-1/2``, and 0 at clamped labels, whose rows and
    columns are thereby left out. Cutting them out of a sparse matrix, and subtracting it from a
    diagonal, costs as much as dozens of products.
    """

    def __init__(
        self,
        shared: SharedAdjacency,
        adjacency: sp.csr_array,
        total: FloatArray,
        clamped: Any,
        values: FloatArray,
    ) -> None:
        self.shared, self.adjacency = shared, adjacency
        self.shape = adjacency.shape
        self.root = np.sqrt(total)
        self.t = 1.0 / self.root
        self.t[clamped] = 0.0
        inside = shared.inward(self.t)
        high, low = float(inside.max()), float(inside.min(initial=1.0, where=inside > 0))
        self.single = shared.operator.single and 1 / SINGLE_HIGH < low <= high < SINGLE_HIGH
        with np.errstate(over="ignore"):
            short = inside[:, None].astype(np.float32)
        self.scales = {np.dtype(np.float64): inside[:, None], np.dtype(np.float32): short}
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
        operand: SharedAdjacency | None = None,
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
        self = cls(operand, adjacency, total, nodes, columns if clamp else columns[:0])
        if clamp:
            rhs += adjacency[labeled].T @ columns
        else:
            rhs[labeled] += a.reshape(-1, 1) * columns
        rhs *= self.t[:, None]
        self.rhs = operand.inward(rhs)
        return self

    def preconditioner(self, spec: str | None, tol: float) -> str | Preconditioner:
        """What "auto" stands for here."""
        if spec != "auto":
            return "jacobi"
        steps, n = cg_steps(self.excess(), tol), self.t.size
        products = steps * self.rhs.shape[1]
        if _is_full(self.adjacency) and products > FACTOR_PRODUCTS + n / FACTOR_NODES:
            factor = cholesky(self.toarray())
            return "jacobi" if factor is None else factor
        return (self.two_level() or "jacobi") if steps > JACOBI_STEPS else "jacobi"

    def two_level(self) -> TwoLevel | None:
        """The coarse system, see :mod:`gdpa.linalg.two_level`, in the variables of this one."""
        inside = self.shared.inward
        A = self.shared.operator.matrix
        return two_level(A, inside(self.t), diagonal=np.square(inside(self.root)))

    def toarray(self) -> FloatArray:
        """The matrix, made in place: what passes over all its entries is the cost of it."""
        C = np.asarray(self.adjacency.toarray())
        C *= -self.t[:, None]
        C *= self.t
        C[np.diag_indices(self.t.size)] += 1.0
        return C

    def excess(self) -> float:
        """Bound of the smallest eigenvalue from above, by the constant vector."""
        free = self.t > 0
        rows = self.adjacency[self.clamped]
        # The sum over all pairs of free nodes, from all pairs and the rows of the clamped nodes.
        pairs = float(self.adjacency.data.sum()) - 2.0 * float(rows.data.sum())
        pairs += float(rows.data[~free[rows.indices]].sum())
        weight = float(np.square(self.root[free]).sum())
        return 1.0 - pairs / max(weight, 1e-300)

    def diagonal(self) -> FloatArray:
        """Ones."""
        return np.ones(self.shape[0])

    def dot(self, Y: NDArray[Any], dtype: Any = np.float64, n_jobs: int = 1) -> NDArray[Any]:
        """``y - t * (A (t * y))`` for a block of columns."""
        t: Any = self.scales[np.dtype(dtype)]
        out = self.shared.operator.dot(t * Y, dtype, n_jobs)
        out *= -t
        out += Y
        return out

    def scaled(self, X: FloatArray | None) -> FloatArray | None:
        """A start in the variables of the system."""
        if X is None:
            return None
        Y = X * self.root[:, None]
        Y[self.clamped] = 0.0
        return self.shared.inward(Y)

    def unscaled(self, Y: FloatArray) -> FloatArray:
        """Scores of all nodes."""
        scores = self.shared.outward(Y) / self.root[:, None]
        scores[self.clamped] = self.values
        return scores
