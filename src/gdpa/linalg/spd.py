"""Symmetric positive definite systems with many right-hand sides: one loop of conjugate gradients.

The system is scaled to unit diagonal and right-hand sides of ordinary length, so that weights from
1e-300 to 1e300 are handled; small ones are factorised. In the loop every column is a vector of its
own, with a thread of its own where there are several: a product with all of them at once reads the
matrix less often, and loses as much to loops over few columns. The true residual is computed in
double precision before it is believed, and a round that left it behind is followed by another.
Where single precision is allowed rounds are made in it as far as it goes (iterative refinement): it
moves half the bytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..errors import ConvergenceWarning
from ..policy import DEFAULT_POLICY, Policy
from ..threads import effective_jobs, in_threads
from .operator import (
    Difference,
    Matrix,
    MatrixLike,
    UnitDiagonal,
    check_positive,
    inner_product,
)
from .preconditioners import (
    Preconditioner,
    PreconditionerLike,
    checked_callable,
    cholesky,
    dense_inverse,
    two_level,
)

FloatArray = NDArray[np.float64]
# Vectors, precision and threads to products, as in Matrix.dot.
Product: TypeAlias = Callable[[NDArray[Any], Any, int], NDArray[Any]]

REACHED = "residual reached"
# A round in single precision reduces the residual no further: rounding errors come next.
SINGLE_REDUCTION = 5e-6


@dataclass(frozen=True)
class SPDResult:
    """Solution of a symmetric positive definite system.

    Parameters
    ----------
    x : ndarray
        Solution, of the shape of the right-hand side. Never NaN.
    residual : float
        Largest relative residual over the columns, computed from `x` at the end, in the norm in
        which the matrix has unit diagonal: ``|S (b - A x)| / |S b|``, ``S = diag(A)^-1/2``.
    iterations : int
        Iterations of conjugate gradients (0 for a factorisation).
    matvecs : int
        Products of the matrix with one vector.
    converged : bool
        Whether the tolerance was met.
    method : str
        "dense-cholesky", "dense-eigh" (singular), "cg", or "cholesky-cg": a factorisation, and as
        many steps as its rounding takes.
    message : str
        Why it stopped, in words.
    """

    x: NDArray[np.float64]
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str


def solve_spd(
    A: MatrixLike | Matrix | Difference,
    B: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    preconditioner: PreconditionerLike = "auto",
    dense_below: int | None = None,
    n_jobs: int | None = None,
    callback: Callable[[Mapping[str, Any]], Any] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> SPDResult:
    """Solve ``A X = B`` for a symmetric positive (semi-)definite matrix.

    A singular system gets a solution if there is one (the dense path: that of least length in the
    scaled variables), and is reported as not converged otherwise.

    Parameters
    ----------
    A : sparse array, ndarray, Matrix or Difference of shape (n, n)
        Symmetric positive semi-definite matrix.
    B : array-like of shape (n,) or (n, k)
        Right-hand sides.
    x0 : array-like of the shape of B, optional
        Start of the iteration.
    tol : float, default=1e-6
        Relative residual to be reached by every column (see :class:`SPDResult`).
    max_iter : int, optional
        Most iterations. Ten times the number of unknowns, at most 10,000, by default.
    preconditioner : None, str or callable, default="auto"
        "jacobi"; "two-level" (Jacobi and a coarse system, :mod:`gdpa.linalg.two_level`); "auto",
        the second where the first would take many iterations; or an approximate inverse of `A` of
        one's own, symmetric positive definite. None is the same as "jacobi", because of the
        scaling.
    dense_below : int, optional
        Systems with fewer unknowns are factorised: 500 by default, as `policy` says.
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
    unit = UnitDiagonal(A if isinstance(A, Matrix | Difference) else Matrix(A, policy=policy))
    n = unit.shape[0]
    limit = min(10 * n, 10_000) if max_iter is None else check_positive(max_iter, "max_iter", 1)
    least = policy.dense_below if dense_below is None else dense_below
    dense = n < check_positive(least, "dense_below", 0)
    rhs = _check_block(B, "B", n)
    start = None if x0 is None else _check_block(x0, "x0", n)
    if start is not None and start.shape != rhs.shape:
        raise ValueError(f"x0 has shape {np.asarray(x0).shape}, B has shape {np.shape(B)}")
    # Of small systems nobody needs to know how many threads there are.
    threads = 1 if n_jobs is None and n < policy.single_rows else effective_jobs(n_jobs)
    b, exponent = unit.scaled(rhs)
    size = np.linalg.norm(b, axis=0)
    Y, products = np.zeros_like(b), 0
    M, method = _unit_preconditioner(preconditioner, unit, tol, b.shape[1], policy, dense)
    R = b.copy(order="F")
    with np.errstate(over="ignore", invalid="ignore"):  # a start may be beyond all measure
        if M is not None and method != "cg":
            Y = np.asfortranarray(M(b))
        elif start is not None:
            Y = np.asfortranarray(np.ldexp(start, -exponent) * unit.inverse[:, None])
        if Y.any():
            R -= unit.dot(Y, np.float64, threads)
            products = b.shape[1]
        worse = ~(np.linalg.norm(R, axis=0) <= size)  # than zero
    Y[:, worse], R[:, worse] = 0.0, b[:, worse]

    def watch(iteration: int, columns: list[Column]) -> bool:
        assert callback is not None
        worst = max(float(np.sqrt(c.square) / size[c.number]) for c in columns)
        return callback({"iteration": iteration, "residual": worst}) is True

    # Coarse tolerances are left to single precision.
    loose = n >= policy.single_rows or (b.shape[1] == 1 and tol >= 1e-5)
    iterations, more, why = conjugate_gradients(
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
    norms = np.linalg.norm(R, axis=0)
    bad = ~(norms <= size)  # columns worse than zero
    Y[:, bad], norms[bad] = 0.0, size[bad]
    relative = np.divide(norms, size, out=np.zeros_like(norms), where=size > 0)
    # A right-hand side where the matrix has a zero row cannot be met.
    relative = np.where(rhs[unit.dead].any(axis=0), np.maximum(relative, 1.0), relative)
    residual = float(relative.max(initial=0.0))
    message = f"{why}, relative residual {residual:.2e} (tol {tol:.1e})"
    if residual > tol:
        warnings.warn(f"solve_spd did not converge: {message}", ConvergenceWarning, stacklevel=2)
    with np.errstate(over="ignore"):
        X = np.ldexp(unit.s[:, None] * Y, exponent)
    x = np.nan_to_num(X).reshape(np.shape(B))  # overflow to the largest number
    return SPDResult(x, residual, iterations, products + more, residual <= tol, method, message)


def _check_block(B: ArrayLike, name: str, n: int) -> FloatArray:
    block = np.asarray(B, dtype=np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {block.shape}")
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must be finite; it contains NaN or infinity")
    return block.reshape(n, -1)


@dataclass(eq=False)
class Column:
    """One column on its way."""

    number: int
    x: NDArray[Any]  # solution for the residual that it began with
    r: NDArray[Any]  # what is left of it
    square: float  # squared length of r
    rho: float = 1.0  # its inner product with the preconditioned one, last step
    good: bool = True  # whether the curvature was positive
    p: NDArray[Any] | None = None  # direction

    def advance(self, dot: Product, M: Preconditioner | None, n_jobs: int) -> None:
        """One step; where the curvature is not positive it is not `good`, and stays put."""
        z = self.r if M is None else M(self.r)
        rho = self.square if M is None else inner_product(self.r, z)
        if self.p is None:
            self.p = z.copy()
        else:
            self.p *= z.dtype.type(rho / self.rho)
            self.p += z
        self.rho = rho
        q = dot(self.p, self.p.dtype, n_jobs)
        curvature = inner_product(self.p, q)
        self.good = bool(rho > 0 and 0 < curvature < np.inf)
        if self.good:
            length = q.dtype.type(rho / curvature)
            q *= length
            self.r -= q
            self.x += np.multiply(self.p, length, out=q)  # no further temporary: they cost as much
            self.square = inner_product(self.r, self.r)


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
    watch: Callable[[int, list[Column]], bool] | None = None,
) -> tuple[int, int, str]:
    """Solve ``A X = B`` for a positive definite matrix.

    Parameters
    ----------
    dot : callable
        Product of A with a vector, as :meth:`gdpa.linalg.Matrix.dot`.
    B : ndarray of shape (n, k)
        Right-hand sides.
    X, R : ndarray of shape (n, k)
        Where to start, and ``B - A X``; both are changed in place.
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
            return iterations, products, REACHED
        if (norms[open_columns] > 0.5 * previous[open_columns]).all():
            if not single:
                return iterations, products, "stagnated"
            single = False  # it has given what it can
        previous, enough, columns, why = norms, 0.9 * target, [], REACHED
        if single:
            enough = np.maximum(enough, SINGLE_REDUCTION * norms)
        for j in open_columns.tolist():
            r = R[:, j].astype(np.float32 if single else np.float64)
            columns.append(Column(j, np.zeros_like(r), r, inner_product(r, r)))
        running = columns.copy()
        while running and why == REACHED and iterations < limit:
            # A thread for each column, or all of them for each product.
            if M is None and 1 < n_jobs <= len(running):
                in_threads(partial(Column.advance, dot=dot, M=M, n_jobs=1), running, n_jobs)
            else:
                for column in running:
                    column.advance(dot, M, n_jobs)
            iterations, products = iterations + 1, products + len(running)
            if watch is not None and watch(iterations, running):
                why = "stopped by the callback"
            for column in running.copy():
                if not column.good or np.sqrt(column.square) <= enough[column.number]:
                    running.remove(column)
        if running and why == REACHED:
            why = "max_iter reached"
        products, definite = products + len(columns), True
        for column in columns:
            j = column.number
            X[:, j] += column.x
            R[:, j] = B[:, j] - dot(X[:, j], np.float64, n_jobs)
            definite &= column.good
        if why != REACHED or not (definite or single):
            return (
                iterations,
                products,
                why if definite else "matrix is singular or not positive definite",
            )
        if not definite:
            single, previous = False, np.full(target.shape, np.inf)


def _unit_preconditioner(
    spec: PreconditionerLike,
    unit: UnitDiagonal,
    tol: float,
    columns: int,
    policy: Policy,
    dense: bool,
) -> tuple[Preconditioner | None, str]:
    """Approximate inverse in the scaled variables, and what the method is called with it."""
    if dense:
        return dense_inverse(unit.toarray())
    name = _chosen(unit, tol, columns, policy) if isinstance(spec, str) and spec == "auto" else spec
    if name is None or name == "jacobi":  # which the scaling is
        return None, "cg"
    if name == "cholesky":
        M = cholesky(unit.toarray())
        return M, "cg" if M is None else "cholesky-cg"
    if name == "two-level":
        total = unit.diagonal if unit.subtracted else None
        with np.errstate(over="ignore", invalid="ignore"):
            return two_level(sp.csr_array(unit.matrix.matrix), unit.s, diagonal=total), "cg"
    inverse, own = unit.inverse, checked_callable(spec)
    # One's own takes blocks of columns.
    return lambda r: inverse * own((inverse * r)[:, None])[:, 0], "cg"


def _chosen(unit: UnitDiagonal, tol: float, columns: int, policy: Policy) -> str:
    """What "auto" stands for, by the steps that Jacobi would take: so that set-up pays."""
    n, smallest = unit.shape[0], np.maximum(unit.smallest(), 1e-12)
    # The Chebyshev bound for a spectrum in [smallest, 2].
    steps = 0.5 * np.sqrt(2.0 / smallest) * np.log(2.0 / tol)
    full = unit.subtracted and 4 * unit.matrix.matrix.nnz >= n * n
    worth = steps * columns > policy.factor_products + n / policy.factor_nodes
    if full and worth and policy.full_least <= n <= policy.full_most:
        return "cholesky"
    slow = n >= policy.slow_rows and steps > policy.jacobi_steps
    return "two-level" if slow else "jacobi"
