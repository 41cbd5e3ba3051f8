"""Symmetric positive definite systems with many right-hand sides: one loop of conjugate gradients.

The system is scaled to unit diagonal and right-hand sides of ordinary length, so that weights from
1e-300 to 1e300 are handled; small ones are factorised. In the loop every column has its own step
sizes and leaves when it has converged. The true residual is computed in double precision before it
is believed, and a round that left it behind is followed by another. Where single precision is
allowed rounds are made in it as far as it goes (iterative refinement): it moves half the bytes, and
its columns are vectors of their own, one per thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import ConvergenceWarning
from ..policy import DEFAULT_POLICY, Policy
from ..threads import effective_jobs, in_threads
from .operator import (
    Matrix,
    UnitDiagonal,
    as_operator,
    check_positive,
    inner_product,
    laid_out,
)
from .preconditioners import (
    Preconditioner,
    cholesky,
    factor_solve,
    make_preconditioner,
    two_level,
)
from .results import SPDResult

__all__ = ["Columns", "cg_steps", "conjugate_gradients", "solve_spd"]

FloatArray = NDArray[np.float64]
# Vectors, precision and threads to products, as in Operator.dot.
Product: TypeAlias = Callable[[NDArray[Any], Any, int], NDArray[Any]]

NOT_DEFINITE = "matrix is singular or not positive definite"
REACHED = "residual reached"
# Coarser tolerances than this are left to single precision.
SINGLE_TOL = 1e-5
# A round in single precision reduces the residual no further: rounding errors come next.
SINGLE_REDUCTION = 5e-6


def solve_spd(
    A: Any,
    B: Any,
    *,
    x0: Any = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    preconditioner: Any = "auto",
    dense_below: int | None = None,
    diagonal: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[Mapping[str, Any]], Any] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> SPDResult:
    """Solve ``A X = B`` for a symmetric positive (semi-)definite matrix.

    A singular system gets a solution if there is one (the dense path: that of least length in the
    scaled variables), and is reported as not converged otherwise.

    Parameters
    ----------
    A : sparse array, ndarray, LinearOperator or Operator of shape (n, n)
        Symmetric positive semi-definite matrix.
    B : array-like of shape (n,) or (n, k)
        Right-hand sides.
    x0 : array-like of the shape of B, optional
        Start of the iteration.
    tol : float, default=1e-6
        Relative residual to be reached by every column (see :class:`SPDResult`).
    max_iter : int, optional
        Most iterations. Ten times the number of unknowns, at most 10,000, by default.
    preconditioner : None, str, callable or LinearOperator, default="auto"
        "jacobi"; "two-level" (Jacobi and a coarse system, :mod:`gdpa.linalg.two_level`); "auto",
        the second where the first would take many iterations; "amg" (extra ``amg``); or an
        approximate inverse of `A` of one's own, symmetric positive definite. None is the same as
        "jacobi", because of the scaling.
    dense_below : int, optional
        Systems with fewer unknowns are factorised: 500 by default, as `policy` says.
    diagonal : array-like of shape (n,), optional
        Diagonal of a ``LinearOperator``.
    n_jobs : int, optional
        Threads, see :func:`gdpa.threads.effective_jobs`. The result does not depend on it.
    callback : callable, optional
        Called once per iteration with a mapping (iteration, residual); returning True stops.
    policy : Policy, optional
        From which sizes on single precision, threads and a coarse system pay.

    Returns
    -------
    SPDResult
        Solution, residual and how it was found.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not met.
    """
    tol = check_positive(tol, "tol")
    operator = as_operator(A, diagonal, policy)
    n = operator.shape[0]
    limit = min(10 * n, 10_000) if max_iter is None else check_positive(max_iter, "max_iter", 1)
    least = policy.dense_below if dense_below is None else dense_below
    dense = n < check_positive(least, "dense_below", 0)
    rhs = _check_block(B, "B", n)
    start = None if x0 is None else _check_block(x0, "x0", n)
    if start is not None and start.shape != rhs.shape:
        raise ValueError(f"x0 has shape {np.shape(x0)}, B has shape {np.shape(B)}")
    # Of small systems nobody needs to know how many threads there are.
    threads = 1 if n_jobs is None and n < policy.single_rows else effective_jobs(n_jobs)
    unit = UnitDiagonal(operator)
    b, exponent = unit.scaled(rhs)
    size = np.linalg.norm(b, axis=0)
    if dense:
        Y, method = factor_solve(unit.toarray(), b)
        R, iterations, products, why = None, 0, 0, "factorised"
    else:
        M, method = _unit_preconditioner(preconditioner, unit, tol, b.shape[1], policy)
        Y, R, begun = np.zeros_like(b), b, 0
        if start is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # a start beyond all measure
                Y = np.ldexp(start, -exponent) * unit.inverse
                Y = laid_out(np.where(np.isfinite(Y), Y, 0.0))
                R = b - unit.dot(Y, np.float64, threads)
                worse = ~(np.linalg.norm(R, axis=0) <= size)  # than zero
            Y[:, worse], R[:, worse], begun = 0.0, b[:, worse], b.shape[1]

        def watch(iteration: int, blocks: list[Columns]) -> bool:
            assert callback is not None
            worst = max(float((np.sqrt(c.square) / size[c.numbers]).max()) for c in blocks)
            return callback({"iteration": iteration, "residual": worst}) is True

        loose = n >= policy.single_rows or (b.shape[1] == 1 and tol >= SINGLE_TOL)
        Y, R, iterations, products, why = conjugate_gradients(
            unit.dot,
            b,
            Y,
            R,
            tol * size,
            limit=limit,
            M=M,
            single=loose and M is None and unit.single,
            n_jobs=threads,
            watch=None if callback is None else watch,
        )
        products += begun
    if R is None:
        Y = np.where(np.isfinite(Y), Y, 0.0)
        R, products = b - unit.dot(Y, np.float64, threads), products + b.shape[1]
    norms = np.linalg.norm(R, axis=0)
    bad = ~(norms <= size)  # columns worse than zero
    if bad.any():
        Y, norms = np.where(bad, 0.0, Y), np.where(bad, size, norms)
    relative = np.divide(norms, size, out=np.zeros_like(norms), where=size > 0)
    # A right-hand side where the matrix has a zero row cannot be met.
    relative = np.where(rhs[unit.dead].any(axis=0), np.maximum(relative, 1.0), relative)
    residual = float(relative.max(initial=0.0))
    message = f"{why}, relative residual {residual:.2e} (tol {tol:.1e})"
    if residual > tol:
        warnings.warn(f"solve_spd did not converge: {message}", ConvergenceWarning, stacklevel=2)
    with np.errstate(over="ignore"):
        X = np.ldexp(unit.s * Y, exponent)
    x = np.nan_to_num(X).reshape(np.shape(B))  # overflow to the largest number
    return SPDResult(x, residual, iterations, products, residual <= tol, method, message)


def _check_block(B: Any, name: str, n: int) -> FloatArray:
    block = np.asarray(B, dtype=np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {block.shape}")
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must be finite; it contains NaN or infinity")
    return block.reshape(n, -1)


def _column_dots(X: NDArray[Any], Y: NDArray[Any]) -> FloatArray:
    if X.flags.f_contiguous:
        return np.array(list(map(inner_product, X.T, Y.T)))
    # Not by BLAS: its threads take longer to wake than this takes, and their number would show in
    # the last digits.
    return np.asarray(np.einsum("ij,ij->j", X, Y))


@dataclass(eq=False)
class Columns:
    """Some columns on their way."""

    numbers: NDArray[np.intp]  # of the whole
    X: NDArray[Any]  # solution for the residual that they began with
    R: NDArray[Any]  # what is left of it
    square: FloatArray  # squared lengths of R
    rho: FloatArray  # its inner products with the preconditioned one, last step
    good: NDArray[np.bool_]  # whether the curvature was positive
    P: NDArray[Any] | None = None  # direction

    def advance(self, dot: Product, M: Preconditioner | None, n_jobs: int) -> None:
        """One step; columns whose curvature is not positive are not `good` and stay put."""
        Z = self.R if M is None else laid_out(M(self.R))
        rho = self.square if M is None else _column_dots(self.R, Z)
        if self.P is None:
            self.P = Z.copy(order="K")
        else:
            self.P *= (rho / self.rho).astype(Z.dtype)
            self.P += Z
        self.rho = rho
        Q = dot(self.P, self.P.dtype, n_jobs)
        curvature = _column_dots(self.P, Q)
        self.good = (curvature > 0) & np.isfinite(curvature) & (rho > 0)
        length = np.divide(rho, curvature, out=np.zeros_like(rho), where=self.good).astype(Q.dtype)
        Q *= length
        self.R -= Q
        self.X += np.multiply(self.P, length, out=Q)  # no further temporary: they cost as much
        self.square = _column_dots(self.R, self.R)

    def leave(self, whole: FloatArray, done: NDArray[np.bool_]) -> None:
        """Add some columns to their place in the whole, and go on without them."""
        if not done.any():
            return
        whole[:, self.numbers[done]] += self.X[:, done]
        stay = ~done
        self.numbers, self.square, self.rho = self.numbers[stay], self.square[stay], self.rho[stay]
        if self.P is not None and stay.any():
            self.X, self.R, self.P = (laid_out(part[:, stay]) for part in (self.X, self.R, self.P))


def conjugate_gradients(
    dot: Product,
    B: FloatArray,
    X: FloatArray,
    R: FloatArray,
    target: FloatArray,
    *,
    limit: int,
    M: Preconditioner | None = None,
    single: bool = False,
    n_jobs: int = 1,
    watch: Callable[[int, list[Columns]], bool] | None = None,
) -> tuple[FloatArray, FloatArray | None, int, int, str]:
    """Solve ``A X = B`` for a positive definite matrix.

    Parameters
    ----------
    dot : callable
        Product with A, as :meth:`gdpa.linalg.operator.Operator.dot`.
    B : ndarray of shape (n, k)
        Right-hand sides.
    X, R : ndarray of shape (n, k)
        Where to start, changed in place, and ``B - A X``.
    target : ndarray of shape (k,)
        Length that the residual of each column must reach.
    limit : int
        Most iterations.
    M : callable, optional
        Preconditioner.
    single : bool, default=False
        Whether rounds may be made in single precision.
    n_jobs : int, default=1
        Threads. The result does not depend on them.
    watch : callable, optional
        Called with the number of each iteration and the columns on their way; True stops.

    Returns
    -------
    X : ndarray of shape (n, k)
        The solution.
    R : ndarray of shape (n, k) or None
        Its residual, if that was computed.
    iterations, products : int
        Iterations made, and products with one vector.
    why : str
        Why it stopped.
    """
    iterations = products = 0
    previous = np.full(target.shape, np.inf)
    while True:
        norms = np.linalg.norm(R, axis=0)
        open_columns = np.flatnonzero(norms > target)
        if open_columns.size == 0:
            return X, R, iterations, products, REACHED
        if (norms[open_columns] > 0.5 * previous[open_columns]).all():
            if not single:
                return X, R, iterations, products, "stagnated"
            single = False  # it has given what it can
        previous, enough, blocks = norms, 0.9 * target, []
        if single:
            enough = np.maximum(enough, SINGLE_REDUCTION * norms)
        dtype = np.float32 if single else np.float64
        for part in np.split(open_columns, open_columns.size if single else 1):
            residual = laid_out(R[:, part].astype(dtype))
            square = _column_dots(residual, residual)
            start, good = np.zeros_like(residual), np.ones(part.size, dtype=bool)
            blocks.append(Columns(part, start, residual, square, square, good))
        width, indefinite, why = open_columns.size, False, REACHED
        while blocks:
            if iterations >= limit:
                why = "max_iter reached"
                break
            # A thread for each block, or all of them for each product.
            if n_jobs > 1 and len(blocks) >= n_jobs:
                in_threads(partial(Columns.advance, dot=dot, M=M, n_jobs=1), blocks, n_jobs)
            else:
                for block in blocks:
                    block.advance(dot, M, n_jobs)
            iterations, products = iterations + 1, products + width
            if watch is not None and watch(iterations, blocks):
                why = "stopped by the callback"
                break
            width, running = 0, blocks
            blocks = []
            for block in running:
                indefinite |= not block.good.all()
                block.leave(X, (np.sqrt(block.square) <= enough[block.numbers]) | ~block.good)
                width += block.numbers.size
                blocks += [block] if block.numbers.size else []
        for block in blocks:
            block.leave(X, np.ones(block.numbers.size, dtype=bool))
        if why != REACHED or (indefinite and not single):
            return X, None, iterations, products, NOT_DEFINITE if indefinite else why
        if indefinite:
            single, previous = False, np.full(target.shape, np.inf)
        R = B - dot(X, np.float64, n_jobs)
        products += X.shape[1]


def cg_steps(smallest: float, tol: float) -> float:
    """Steps of conjugate gradients on a spectrum in [smallest, 2], by the Chebyshev bound."""
    return float(0.5 * np.sqrt(2.0 / np.maximum(smallest, 1e-12)) * np.log(2.0 / tol))


def _unit_preconditioner(
    spec: Any, unit: UnitDiagonal, tol: float, columns: int, policy: Policy
) -> tuple[Preconditioner | None, str]:
    """Approximate inverse in the scaled variables, and what the method is called with it."""
    name = _chosen(unit, tol, columns, policy) if isinstance(spec, str) and spec == "auto" else spec
    if name is None or name == "jacobi":  # which the scaling is
        return None, "cg"
    if name == "cholesky":
        M = cholesky(unit.toarray())
        return M, "cg" if M is None else "cholesky-cg"
    operator, inverse = unit.operator, unit.inverse
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "two-level":
            matrix = unit.minus or operator
            if not isinstance(matrix, Matrix):
                raise ValueError("preconditioner='two-level' needs a matrix, not a LinearOperator")
            total = None if unit.minus is None else operator.diagonal()
            return two_level(sp.csr_array(matrix.matrix), unit.s[:, 0], diagonal=total), "cg"
        M = make_preconditioner(spec, operator)
    return None if M is None else lambda R: inverse * M(inverse * R), "cg"


def _chosen(unit: UnitDiagonal, tol: float, columns: int, policy: Policy) -> str:
    """What "auto" stands for, by the steps that Jacobi would take: so that set-up pays."""
    n, steps = unit.shape[0], cg_steps(unit.smallest(), tol)
    full = unit.minus is not None and 4 * unit.minus.matrix.nnz >= n * n
    worth = steps * columns > policy.factor_products + n / policy.factor_nodes
    if full and worth and policy.full_least <= n <= policy.full_most:
        return "cholesky"
    slow = n >= policy.slow_rows and steps > policy.jacobi_steps
    return "two-level" if slow else "jacobi"
