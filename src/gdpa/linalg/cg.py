"""Conjugate gradients for :func:`gdpa.linalg.solve_spd`: in double precision, or single on the way.

The true residual is computed in double precision before it is believed. Loose tolerances, and those
of large systems, are reached by single precision on the way there (mixed precision, iterative
refinement, :mod:`gdpa.linalg.columns`): it moves half the bytes. The columns of a block have their
own step sizes and leave it when they have converged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .columns import NOT_DEFINITE, REORDER_AFTER, single_round
from .inner import inner_product
from .operand import FEW_COLUMNS, ShortProducts
from .preconditioners import Preconditioner

__all__ = ["Stop", "System", "conjugate_gradients", "laid_out"]

# Coarser tolerances than this are left to single precision; from so many rows on, all are.
SINGLE_TOL = 1e-5
SINGLE_ROWS = 50_000


class System(Protocol):
    """What the iteration knows of a system: ``dot(y) = b`` in variables of ordinary size."""

    b: NDArray[np.float64]
    b_norm: NDArray[np.float64]
    exponent: NDArray[np.int64]

    def dot(self, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Product with the scaled matrix."""

    def single(self) -> ShortProducts | None:
        """The same for a vector in single precision, if the matrix allows it."""


@dataclass(frozen=True)
class Stop:
    """When to stop: see the arguments of :func:`gdpa.linalg.solve_spd`."""

    tol: float
    limit: int
    stable_after: int | None
    stable_tol: float
    callback: Callable[[Mapping[str, Any]], Any] | None


def _labels(Y: NDArray[np.float64], exponent: NDArray[np.int64]) -> NDArray[Any]:
    if Y.shape[1] == 1:
        return Y[:, 0] > 0
    shift = np.clip(exponent - exponent.max(), -1000, 0)
    return np.asarray(np.argmax(np.ldexp(Y, shift), axis=1))


def laid_out(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """`X` in the order of memory that is fastest for its number of columns.

    Few columns: column by column. Row by row, every scaling of columns would be loops of that few
    steps, which cost as much as the product with the matrix.
    """
    return np.asarray(X, order="F" if X.shape[1] <= FEW_COLUMNS else "C")


def _column_dot(X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
    # Not by BLAS: its threads take longer to wake than this takes, and their number would show in
    # the last digits.
    return np.asarray(np.einsum("ij,ij->j", X, Y))


def conjugate_gradients(
    system: System,
    start: NDArray[np.float64] | None,
    M: Preconditioner | None,
    rule: Stop,
    *,
    any_precision: bool = True,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, int, str]:
    """Column-wise conjugate gradients, restarted where the true residual was left behind.

    Parameters
    ----------
    system : System
        The system.
    start : ndarray of shape (n, k) or None
        Where to start; columns that are worse than zero are not used.
    M : callable or None
        Preconditioner.
    rule : Stop
        When to stop.
    any_precision : bool, default=True
        Whether `M` takes vectors in single precision.

    Returns
    -------
    Y : ndarray of shape (n, k)
        The solution.
    R : ndarray of shape (n, k) or None
        Its residual, if that was computed.
    iterations : int
        Iterations made.
    why : str
        Why it stopped.
    """
    Y = np.zeros_like(system.b) if start is None else laid_out(start.copy())
    R = system.b.copy(order="K")
    if start is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # a start beyond all measure
            R -= system.dot(Y)
            worse = ~(np.linalg.norm(R, axis=0) <= system.b_norm)
        Y[:, worse] = 0.0
        R[:, worse] = system.b[:, worse]
    one = Y.shape[1] == 1 and rule.stable_after is None
    short = None
    if _may_be_single(Y, M, rule, any_precision) and system.b_norm.any():
        short = system.single()
    if one and M is not None and not any_precision:
        M = _for_vectors(M)
    iterations = 0
    previous = np.full(Y.shape[1], np.inf)
    while True:
        norms = np.linalg.norm(R, axis=0)
        open_columns = np.flatnonzero(norms > rule.tol * system.b_norm)
        if open_columns.size == 0:
            return Y, R, iterations, "residual reached"
        if (norms[open_columns] > 0.5 * previous[open_columns]).all():
            if short is None:
                return Y, R, iterations, "stagnated"
            short = None  # single precision has given what it can
        previous = norms
        if short is not None and M is None:
            iterations, why = single_round(system, Y, R, open_columns, rule, iterations, short)
        elif one:
            iterations, why = _cg_single(system, Y[:, 0], R[:, 0], M, rule, iterations, short)
        else:
            iterations, why = _cg_round(system, Y, R, open_columns, M, rule, iterations)
        if why not in ("residual reached", NOT_DEFINITE):
            return Y, None, iterations, why
        if why == NOT_DEFINITE:
            if short is None:
                return Y, None, iterations, why
            short, previous = None, np.full(Y.shape[1], np.inf)
        R = system.b - system.dot(Y)


def _may_be_single(
    Y: NDArray[np.float64], M: Preconditioner | None, rule: Stop, any_precision: bool
) -> bool:
    """Whether to look for single precision on the way."""
    if rule.stable_after is not None or not any_precision:
        return False
    if Y.shape[0] >= SINGLE_ROWS and M is None:
        return True
    return Y.shape[1] == 1 and rule.tol >= SINGLE_TOL


def _for_vectors(M: Preconditioner) -> Preconditioner:
    """A preconditioner of blocks, for vectors."""
    return lambda r: M(r[:, None])[:, 0]


def _cg_single(
    system: System,
    y: NDArray[np.float64],
    residual: NDArray[np.float64],
    M: Preconditioner | None,
    rule: Stop,
    iterations: int,
    short: ShortProducts | None,
) -> tuple[int, str]:
    """One column: add to `y` the solution for `residual`, by as few passes over memory as can be.

    In single precision where a product for it is given.
    """
    r: Any
    product: Callable[[Any], Any]
    apply: Callable[[Any], Any] | None = M
    if short is None:
        r, product = residual.copy(), lambda v: system.dot(v[:, None])[:, 0]
    else:
        r, product = residual.astype(np.float32), short
        if short.order is not None:
            r = r[short.order]
    x = np.zeros_like(r)
    step = np.empty_like(r)
    number = r.dtype.type
    size = float(system.b_norm[0])
    target = 0.9 * rule.tol * size
    square = inner_product(r, r)
    why = "residual reached"
    p: NDArray[Any] | None = None
    made = 0
    rho = 1.0
    while True:
        z = r if apply is None else apply(r)
        new = square if apply is None else inner_product(r, z)
        if p is None:
            p = z.copy()
        else:
            p *= number(new / rho)
            p += z
        rho = new
        if iterations >= rule.limit:
            why = "max_iter reached"
            break
        q = product(p)
        iterations += 1
        curvature = inner_product(p, q)
        if not (0 < curvature < np.inf and rho > 0):
            why = NOT_DEFINITE
            break
        alpha = number(rho / curvature)
        np.multiply(p, alpha, out=step)
        x += step
        q *= alpha
        r -= q
        square = inner_product(r, r)
        norm = np.sqrt(square)
        if rule.callback is not None:
            report = {"iteration": iterations, "residual": float(norm / size)}
            if rule.callback(report) is True:
                why = "stopped by the callback"
                break
        if not norm > target:
            break
        made += 1
        late = made == REORDER_AFTER and short is not None and apply is None
        if late and short is not None and short.reorder():
            x, r, p = x[short.order], r[short.order], p[short.order]
    if short is None or short.order is None:
        y += x
    else:
        y[short.order] += x
    return iterations, why


def _cg_round(
    system: System,
    Y: NDArray[np.float64],
    R_all: NDArray[np.float64],
    active: NDArray[np.intp],
    M: Preconditioner | None,
    rule: Stop,
    iterations: int,
) -> tuple[int, str]:
    """Iterate on the `active` columns of `Y` in place until their recursive residual is small."""
    R = laid_out(R_all[:, active].copy())
    target = 0.9 * rule.tol * system.b_norm[active]
    P = R if M is None else laid_out(M(R))
    P = P.copy(order="K")
    rho = _column_dot(R, P)
    step = np.empty_like(P)  # big temporaries cost as much as the arithmetic
    labels, stable, broke = None, 0, False
    while active.size:
        if iterations >= rule.limit:
            return iterations, "max_iter reached"
        Q = system.dot(P)
        iterations += 1
        curvature = _column_dot(P, Q)
        good = (curvature > 0) & (rho > 0) & np.isfinite(curvature)
        alpha = np.divide(rho, curvature, out=np.zeros_like(rho), where=good)
        broke = broke or not good.all()
        np.multiply(P, alpha, out=step)
        if active.size == Y.shape[1]:
            Y += step
        else:
            Y[:, active] += step
        Q *= alpha
        R -= Q
        norms = np.sqrt(_column_dot(R, R))
        worst = float((norms / system.b_norm[active]).max())
        if rule.callback is not None:
            report = {"iteration": iterations, "residual": worst}
            if rule.callback(report) is True:
                return iterations, "stopped by the callback"
        if rule.stable_after is not None:
            now = _labels(Y, system.exponent)
            same = labels is not None and bool((now == labels).all())
            stable, labels = (stable + 1 if same else 0), now
            if stable >= rule.stable_after and worst <= rule.stable_tol:
                return iterations, "labels stable"
        stay = (norms > target) & good
        if not stay.any():
            break
        if not stay.all():
            active, target = active[stay], target[stay]
            R, P, rho = laid_out(R[:, stay]), laid_out(P[:, stay]), rho[stay]
            step = np.empty_like(P)
        Z = R if M is None else laid_out(M(R))
        new = _column_dot(R, Z)
        P *= new / rho
        P += Z
        rho = new
    return (
        iterations,
        NOT_DEFINITE if broke else "residual reached",
    )
