"""Conjugate gradients for symmetric positive definite systems with many right-hand sides.

The system is scaled to unit diagonal and to right-hand sides of order one, so weights from 1e-300
to 1e300 are allowed. Small systems are factorised. Each column is iterated separately, in its own
thread if there are several threads. (A product with all columns at once reads the matrix less often
but is no faster, because the inner loops over few columns are slow.) The true residual is computed
in double precision before a column is accepted; if it is too large, another round follows. Rounds
may use single precision (iterative refinement), which halves the memory traffic.
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

from ..arrays import FloatArray
from ..checks import check_positive
from ..errors import ConvergenceWarning, unknown_choice
from ..policy import DEFAULT_POLICY, Policy
from ..threads import effective_jobs, in_threads
from . import preconditioners
from .operator import Difference, Matrix, MatrixLike, UnitDiagonal, inner_product
from .preconditioners import Preconditioner, PreconditionerLike

# A function of vectors, precision and number of threads, like Matrix.dot.
Product: TypeAlias = Callable[[NDArray[Any], Any, int], NDArray[Any]]

REACHED = "residual reached"
# Rounding errors prevent a larger reduction of the residual in one round of single precision.
SINGLE_REDUCTION = 5e-6


@dataclass(frozen=True)
class SPDResult:
    """Solution of a symmetric positive definite system.

    Parameters
    ----------
    x : ndarray
        Solution, with the shape of the right-hand side. It never contains NaN.
    residual : float
        Largest relative residual of a column, ``|S (b - A x)| / |S b|`` with
        ``S = diag(A)^-1/2``, computed from the final `x`.
    iterations : int
        Number of iterations of conjugate gradients (0 for a factorisation).
    matvecs : int
        Number of matrix-vector products.
    converged : bool
        Whether the tolerance was met.
    method : str
        "dense-cholesky", "dense-eigh" (for singular systems), "cg", or "cholesky-cg": a
        factorisation, followed by iterations that correct its rounding errors.
    message : str
        Why the solver stopped.
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

    If a singular system has a solution, one is returned (for dense systems the one of smallest norm
    in the scaled variables). Otherwise the result is marked as not converged.

    Parameters
    ----------
    A : sparse array, ndarray, Matrix or Difference of shape (n, n)
        Symmetric positive semi-definite matrix.
    B : array-like of shape (n,) or (n, k)
        Right-hand sides.
    x0 : array-like with the shape of B, optional
        Initial guess.
    tol : float, default=1e-6
        Relative residual required for every column (see :class:`SPDResult`).
    max_iter : int, optional
        Maximum number of iterations. The default is ten times the number of unknowns, at most
        10,000.
    preconditioner : None, str or callable, default="auto"
        "jacobi"; "two-level" (Jacobi plus a coarse system, :mod:`gdpa.linalg.two_level`); "auto",
        which selects "two-level" if Jacobi would need many iterations; or a callable that applies a
        symmetric positive definite approximation of the inverse of `A`. None is the same as
        "jacobi", because the system is scaled to unit diagonal.
    dense_below : int, optional
        Factorise systems with fewer unknowns. The default is set by `policy` (500).
    n_jobs : int, optional
        Number of threads, see :func:`gdpa.threads.effective_jobs`. It does not affect the result.
    callback : callable, optional
        Called once per iteration with a mapping (iteration, residual). Return True to stop.
    policy : Policy, optional
        Sizes above which single precision, threads and a coarse system are used.

    Returns
    -------
    SPDResult
        Solution, residual and statistics of the solver.

    Warns
    -----
    ConvergenceWarning
        If the tolerance is not met.
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
    # Small systems use one thread: skip finding out how many there are.
    threads = 1 if n_jobs is None and n < policy.single_rows else effective_jobs(n_jobs)
    b, exponent = unit.scaled(rhs)
    size = np.linalg.norm(b, axis=0)
    Y = np.zeros_like(b)
    products = 0
    M, method = _unit_preconditioner(preconditioner, unit, tol, b.shape[1], policy, dense)
    R = b.copy(order="F")
    with np.errstate(over="ignore", invalid="ignore"):  # the initial guess may be huge
        if M is not None and method != "cg":
            Y = np.asfortranarray(M(b))
        elif start is not None:
            Y = np.asfortranarray(np.ldexp(start, -exponent) * unit.inverse[:, None])
        if Y.any():
            R -= unit.dot(Y, np.float64, threads)
            products = b.shape[1]
        worse = ~(np.linalg.norm(R, axis=0) <= size)  # than starting at zero
    Y[:, worse] = 0.0
    R[:, worse] = b[:, worse]

    def watch(iteration: int, columns: list[Column]) -> bool:
        assert callback is not None
        worst = max(float(np.sqrt(c.square) / size[c.number]) for c in columns)
        return callback({"iteration": iteration, "residual": worst}) is True

    # Single precision is enough for loose tolerances.
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
    Y[:, bad] = 0.0
    norms[bad] = size[bad]
    relative = np.divide(norms, size, out=np.zeros_like(norms), where=size > 0)
    # A zero row of the matrix cannot match a non-zero right-hand side.
    relative = np.where(rhs[unit.dead].any(axis=0), np.maximum(relative, 1.0), relative)
    residual = float(relative.max(initial=0.0))
    message = f"{why}, relative residual {residual:.2e} (tol {tol:.1e})"
    if residual > tol:
        warnings.warn(f"solve_spd did not converge: {message}", ConvergenceWarning, stacklevel=2)
    with np.errstate(over="ignore"):
        X = np.ldexp(unit.s[:, None] * Y, exponent)
    x = np.nan_to_num(X).reshape(np.shape(B))  # replace overflow by the largest float
    return SPDResult(x, residual, iterations, products + more, residual <= tol, method, message)


def _check_block(B: ArrayLike, name: str, n: int) -> FloatArray:
    """Return B as an array of shape (n, k), or raise ValueError."""
    block = np.asarray(B, dtype=np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {block.shape}")
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must be finite; it contains NaN or infinity")
    return block.reshape(n, -1)


@dataclass(eq=False)
class Column:
    """State of conjugate gradients for one right-hand side."""

    number: int
    x: NDArray[Any]  # correction of the solution in this round
    r: NDArray[Any]  # residual
    square: float  # squared norm of r
    rho: float = 1.0  # inner product of r and the preconditioned r, from the last step
    good: bool = True  # whether the curvature was positive
    p: NDArray[Any] | None = None  # search direction

    def advance(self, dot: Product, M: Preconditioner | None, n_jobs: int) -> None:
        """Take one step. If the curvature is not positive, clear `good` and do not move."""
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
            self.x += np.multiply(self.p, length, out=q)  # reuses q: temporaries are expensive
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
    """Solve ``A X = B`` and return the numbers of iterations and products and the stopping reason.

    `dot` multiplies A by a vector, like :meth:`gdpa.linalg.Matrix.dot`. X (initial guess) and
    ``R = B - A X`` are updated in place until the norm of each column of R is at most its `target`.
    With `single`, rounds may use single precision. `watch` is called with the iteration number and
    the active columns, and stops the iteration by returning True.
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
            single = False  # single precision cannot reduce the residual further
        previous = norms
        enough = 0.9 * target
        columns = []
        why = REACHED
        if single:
            enough = np.maximum(enough, SINGLE_REDUCTION * norms)
        for j in open_columns.tolist():
            r = R[:, j].astype(np.float32 if single else np.float64)
            columns.append(Column(j, np.zeros_like(r), r, inner_product(r, r)))
        running = columns.copy()
        while running and why == REACHED and iterations < limit:
            # Either one thread per column, or all threads for each product.
            if M is None and 1 < n_jobs <= len(running):
                in_threads(partial(Column.advance, dot=dot, M=M, n_jobs=1), running, n_jobs)
            else:
                for column in running:
                    column.advance(dot, M, n_jobs)
            iterations = iterations + 1
            products = products + len(running)
            if watch is not None and watch(iterations, running):
                why = "stopped by the callback"
            for column in running.copy():
                if not column.good or np.sqrt(column.square) <= enough[column.number]:
                    running.remove(column)
        if running and why == REACHED:
            why = "max_iter reached"
        products = products + len(columns)
        definite = True
        for column in columns:
            j = column.number
            X[:, j] += column.x
            R[:, j] = B[:, j] - dot(X[:, j], np.float64, n_jobs)
            definite &= column.good
        if why != REACHED or not (definite or single):
            why = why if definite else "matrix is singular or not positive definite"
            return iterations, products, why
        if not definite:
            single = False
            previous = np.full(target.shape, np.inf)


def _unit_preconditioner(
    spec: PreconditionerLike,
    unit: UnitDiagonal,
    tol: float,
    columns: int,
    policy: Policy,
    dense: bool,
) -> tuple[Preconditioner | None, str]:
    """Return the preconditioner in the scaled variables, and the name of the resulting method."""
    if dense:
        return preconditioners.dense_inverse(unit.toarray())
    if not (spec is None or isinstance(spec, str)):  # an array compares element by element
        inverse = unit.inverse
        custom = preconditioners.checked_callable(spec)
        # A user-supplied preconditioner expects blocks of columns.
        return lambda r: inverse * custom((inverse * r)[:, None])[:, 0], "cg"
    name = choose_preconditioner(unit, tol, columns, policy) if spec == "auto" else spec
    if name is None or name == "jacobi":  # the scaling is already Jacobi
        return None, "cg"
    if name == "cholesky":
        M = preconditioners.cholesky(unit.toarray())
        return M, "cg" if M is None else "cholesky-cg"
    if name == "two-level":
        total = unit.diagonal if unit.subtracted else None
        with np.errstate(over="ignore", invalid="ignore"):
            return preconditioners.two_level(
                sp.csr_array(unit.matrix.matrix), unit.s, diagonal=total
            ), "cg"
    raise unknown_choice("preconditioner", name, preconditioners.PRECONDITIONERS)


def choose_preconditioner(unit: UnitDiagonal, tol: float, columns: int, policy: Policy) -> str:
    """Return the preconditioner that "auto" selects, from the estimated iterations of Jacobi."""
    n = unit.shape[0]
    smallest = np.maximum(unit.smallest(), 1e-12)
    # The Chebyshev bound for a spectrum in [smallest, 2].
    steps = 0.5 * np.sqrt(2.0 / smallest) * np.log(2.0 / tol)
    full = unit.subtracted and 4 * unit.matrix.matrix.nnz >= n * n
    worth = steps * columns > policy.factor_products + n / policy.factor_nodes
    if full and worth and policy.full_least <= n <= policy.full_most:
        return "cholesky"
    slow = n >= policy.slow_rows and steps > policy.jacobi_steps
    return "two-level" if slow else "jacobi"
