"""Conjugate gradients in single precision, column by column, all columns in step.

A round solves for a residual that was computed in double precision, as far as single precision can
be believed; :func:`gdpa.linalg.cg.conjugate_gradients` adds the rounds up (iterative refinement).
Every column is a vector of its own: a sparse product with a vector is faster per column than one
with a block, the columns run on one thread each, and the outcome does not depend on how many
threads there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .inner import inner_product
from .operand import ShortProducts

if TYPE_CHECKING:
    from .cg import Stop, System

__all__ = ["NOT_DEFINITE", "single_round"]

FloatArray = NDArray[np.float64]

NOT_DEFINITE = "matrix is singular or not positive definite"
# A round reduces the residual no further than this: rounding errors come next.
SINGLE_REDUCTION = 5e-6
# Steps after which a better order of the nodes is looked for: fewer do not repay it.
REORDER_AFTER = 6


class _Column:
    """State of one column: correction x, residual r, direction p."""

    def __init__(self, number: int, residual: FloatArray, order: Any) -> None:
        self.number = number
        r = residual.astype(np.float32)
        self.r = r if order is None else r[order]
        self.x = np.zeros_like(self.r)
        self.p = self.r.copy()
        self.square = inner_product(self.r, self.r)
        self.rho = self.square
        self.fresh, self.good = True, True
        self.target = 0.0

    def advance(self, product: ShortProducts, split: bool) -> None:
        """One step."""
        if not self.fresh:
            self.p *= np.float32(self.square / self.rho)
            self.p += self.r
            self.rho = self.square
        self.fresh = False
        q = product.quick(self.p, split=split)
        curvature = inner_product(self.p, q)
        self.good = bool(0 < curvature < np.inf and self.rho > 0)
        if not self.good:
            return
        alpha = np.float32(self.rho / curvature)
        q *= alpha
        self.r -= q
        np.multiply(self.p, alpha, out=q)
        self.x += q
        self.square = inner_product(self.r, self.r)

    @property
    def norm(self) -> float:
        """Length of the residual."""
        return float(np.sqrt(self.square))

    def reorder(self, order: NDArray[np.int32]) -> None:
        """Go over to another order."""
        self.x, self.r, self.p = self.x[order], self.r[order], self.p[order]


def single_round(
    system: System,
    Y: FloatArray,
    R: FloatArray,
    active: NDArray[np.intp],
    rule: Stop,
    iterations: int,
    short: ShortProducts,
) -> tuple[int, str]:
    """Add to columns of `Y` the solution for their residuals `R`.

    Parameters
    ----------
    system : System
        The system, in double precision.
    Y, R : ndarray of shape (n, k)
        Solution, changed in place, and its residual.
    active : ndarray of int
        Columns to work on.
    rule : Stop
        When to stop.
    iterations : int
        Iterations made so far.
    short : ShortProducts
        Products in single precision.

    Returns
    -------
    iterations : int
        Iterations made now.
    why : str
        Why it stopped.
    """
    columns = [_Column(int(j), R[:, j], short.order) for j in active]
    for column in columns:
        wanted = 0.9 * rule.tol * float(system.b_norm[column.number])
        column.target = max(wanted, SINGLE_REDUCTION * column.norm)
    running, made = columns, 0
    why = "residual reached"
    while running:
        if iterations >= rule.limit:
            why = "max_iter reached"
            break
        _advance(running, short)
        iterations, made = iterations + 1, made + 1
        if not all(column.good for column in running):
            why = NOT_DEFINITE
            break
        if rule.callback is not None:
            worst = max(column.norm / float(system.b_norm[column.number]) for column in running)
            if rule.callback({"iteration": iterations, "residual": worst}) is True:
                why = "stopped by the callback"
                break
        running = [column for column in running if column.norm > column.target]
        if running and made == REORDER_AFTER and short.reorder():
            assert short.order is not None
            for column in columns:
                column.reorder(short.order)
    for column in columns:
        if short.order is None:
            Y[:, column.number] += column.x
        else:
            Y[short.order, column.number] += column.x
    return iterations, why


def _advance(running: list[_Column], short: ShortProducts) -> None:
    """One step of each column: a thread per column, or all threads for one column."""
    short.count(len(running))
    if len(running) < max(short.n_jobs, 2):
        for column in running:
            column.advance(short, True)
        return
    if short.n_jobs == 1:
        for column in running:
            column.advance(short, False)
        return
    list(short.short.pool().map(lambda column: column.advance(short, False), running))
