"""Symmetric positive definite systems with many right-hand sides.

Linear recovery, ``(L + diag(y)) x = a * xh``, is one such system. All right-hand sides share each
product with the matrix; every column has its own step sizes (conjugate gradients, column-wise) and
leaves the block when it has converged. Small systems are factorised (dense Cholesky).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from ..errors import ConvergenceWarning
from .cg import Stop, conjugate_gradients, laid_out
from .operand import (
    SAFE_HIGH,
    SAFE_LOW,
    Operand,
    ShortProducts,
    positive_int,
    positive_number,
    single_is_safe,
    threads,
)
from .preconditioners import Preconditioner, make_preconditioner, two_level

__all__ = ["SPDResult", "solve_spd"]


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
        Whether the tolerance was met, or the labels were stable where that was asked for.
    method : str
        "dense-cholesky", "dense-eigh" (singular) or "cg".
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
    A: Any,
    B: Any,
    *,
    x0: Any = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    preconditioner: Any = "auto",
    dense_below: int = 500,
    stable_after: int | None = None,
    stable_tol: float = 1e-2,
    diagonal: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[Mapping[str, Any]], Any] | None = None,
) -> SPDResult:
    """Solve ``A X = B`` for a symmetric positive (semi-)definite matrix.

    The system is first scaled to unit diagonal and right-hand sides of unit length, so that weights
    from 1e-300 to 1e300 are handled. A singular system gets a solution if there is one (the dense
    path: that of least length in the scaled variables), and is reported as not converged otherwise.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
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
    dense_below : int, default=500
        Systems with fewer unknowns are factorised.
    stable_after : int, optional
        Stop too when the labels (signs for one column, the largest column otherwise) have not
        changed for so many iterations in a row and the residual is below `stable_tol`.
    stable_tol : float, default=1e-2
        See `stable_after`.
    diagonal : array-like of shape (n,), optional
        Diagonal of a ``LinearOperator``.
    n_jobs : int, optional
        Threads for large sparse products; all processors, at most 8, by default. The result does
        not depend on it.
    callback : callable, optional
        Called once per iteration with a mapping (iteration, residual); returning True stops.

    Returns
    -------
    SPDResult
        Solution, residual and how it was found.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not met.
    """
    tol = positive_number(tol, "tol")
    stable_tol = positive_number(stable_tol, "stable_tol")
    n_jobs = threads(n_jobs)
    dense_below = positive_int(dense_below, "dense_below", least=0)
    if stable_after is not None:
        stable_after = positive_int(stable_after, "stable_after")
    operand = Operand(A, diagonal=diagonal, n_jobs=n_jobs, rescale=False)
    n = operand.n
    limit = min(10 * n, 10_000) if max_iter is None else positive_int(max_iter, "max_iter")
    rhs = _check_block(B, "B", n)
    start = None if x0 is None else _check_block(x0, "x0", n)
    if start is not None and start.shape != rhs.shape:
        raise ValueError(f"x0 has shape {np.shape(x0)}, B has shape {np.shape(B)}")
    system = _Scaled(operand, rhs)
    if n < dense_below:
        y, method = _dense(system)
        iterations, why, R = 0, "factorised", None
    else:
        M, own = _scaled_preconditioner(preconditioner, operand, system, tol)
        rule = Stop(tol, limit, stable_after, stable_tol, callback)
        y, R, iterations, why = conjugate_gradients(
            system, system.scaled(start), M, rule, any_precision=own
        )
        method = "cg"
    y, residual = system.checked(y, R)
    converged = residual <= tol or why == "labels stable"
    message = f"{why}, relative residual {residual:.2e} (tol {tol:.1e})"
    if not converged:
        warnings.warn(f"solve_spd did not converge: {message}", ConvergenceWarning, stacklevel=2)
    x = system.unscaled(y).reshape(np.shape(B))
    return SPDResult(x, residual, iterations, operand.matvecs, converged, method, message)


def _check_block(B: Any, name: str, n: int) -> NDArray[np.float64]:
    block = np.asarray(B, dtype=np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {block.shape}")
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must be finite; it contains NaN or infinity")
    return block.reshape(n, -1)


class _Scaled:
    """``S A S y = S b / 2**e`` with S = diag(A)^-1/2 and e chosen per column; ``x = 2**e S y``."""

    def __init__(self, operand: Operand, rhs: NDArray[np.float64]) -> None:
        diagonal = operand.diagonal()
        if diagonal is None:
            diagonal = np.ones(operand.n)
        if (diagonal < 0).any():
            worst = int(np.argmin(diagonal))
            raise ValueError(
                f"A must be positive semi-definite; diagonal entry {worst} is {diagonal[worst]!r}"
            )
        # A zero on the diagonal of a semi-definite matrix means a zero row: no unknown there.
        self.dead = diagonal == 0
        self.s: NDArray[np.float64] | None = None
        if (diagonal != 1.0).any():
            with np.errstate(divide="ignore"):
                self.s = np.where(self.dead, 0.0, 1.0 / np.sqrt(diagonal))
        self.operand = operand
        self.inconsistent = rhs[self.dead].any(axis=0)
        b, self.exponent = self._normalised(rhs)
        self.b = laid_out(b)
        self.b_norm = np.linalg.norm(self.b, axis=0)

    def _normalised(
        self, rhs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``S rhs`` as columns of ordinary size and their powers of two."""
        if self._is_moderate(rhs):
            b = rhs * (1.0 if self.s is None else self.s[:, None])
            size = np.maximum(b.max(axis=0, initial=0.0), -b.min(axis=0, initial=0.0))
            common = np.frexp(size)[1].astype(np.int64)
            b *= np.ldexp(1.0, -common)
            return b, common
        mantissa, power = np.frexp(rhs)
        if self.s is not None:
            # Mantissas and exponents apart: s times the right-hand side may leave the range of
            # floats on the way to values that do not.
            s_mantissa, s_power = np.frexp(self.s[:, None])
            mantissa = mantissa * s_mantissa
            power = power + s_power
        lowest = np.iinfo(np.int32).min // 2
        power = np.where(mantissa == 0, lowest, power)
        top = power.max(axis=0, initial=lowest)
        exponent = np.where((mantissa != 0).any(axis=0), top, 0).astype(np.int64)
        return np.ldexp(mantissa, np.maximum(power - exponent, -1100)), exponent

    def _is_moderate(self, rhs: NDArray[np.float64]) -> bool:
        """Whether no product of scale and right-hand side comes near the limits of floats."""
        high, low = float(rhs.max(initial=0.0)), float(rhs.min(initial=0.0))
        if max(high, -low) > SAFE_HIGH:
            return False
        if self.s is not None and float(self.s.max()) > SAFE_HIGH:
            return False
        columns = np.maximum(rhs.max(axis=0, initial=0.0), -rhs.min(axis=0, initial=0.0))
        least = 1.0 if self.s is None else float(self.s[~self.dead].min(initial=1.0))
        return bool(((columns > SAFE_LOW) | (columns == 0)).all()) and least > SAFE_LOW

    def dot(self, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """``S A S Y``."""
        out = self.operand.dot(self.times_s(Y))
        if self.s is not None:
            out *= self.s[:, None]
        return out

    def single(self) -> ShortProducts | None:
        """``S A S y`` in single precision, where the entries are far from its limits.

        An operator may have it as its own method `single`.
        """
        operand = self.operand
        if operand.kind == "operator":
            make = getattr(operand.matrix, "single", None)
            short: ShortProducts | None = make() if make is not None and self.s is None else None
            if short is not None:
                short.counter = operand.counter
            return short
        if operand.kind != "sparse" or not single_is_safe(operand, self.s):
            return None
        return ShortProducts(operand, self.s)

    def times_s(self, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """``S Y``, or `Y` itself where S is the identity."""
        return Y if self.s is None else self.s[:, None] * Y

    def scaled(self, X: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Given unknowns in scaled variables."""
        if X is None:
            return None
        with np.errstate(divide="ignore", over="ignore"):
            Y = np.ldexp(X, -self.exponent)
            if self.s is not None:
                Y *= np.where(self.dead, 0.0, 1.0 / self.s)[:, None]
        return np.where(np.isfinite(Y), Y, 0.0)

    def unscaled(self, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solution in the caller's variables (overflow to the largest number)."""
        with np.errstate(over="ignore"):
            X = np.ldexp(self.times_s(Y), self.exponent)
        return np.asarray(np.nan_to_num(X))

    def checked(
        self, Y: NDArray[np.float64], R: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], float]:
        """`Y`, with columns that are worse than zero replaced by zero, and the largest residual.

        `R` is ``b - A Y`` if that was computed already.
        """
        if R is None:
            Y = np.where(np.isfinite(Y), Y, 0.0)
            R = self.b - self.dot(Y)
        norms = np.linalg.norm(R, axis=0)
        bad = ~(norms <= self.b_norm)
        if bad.any():
            Y = np.where(bad, 0.0, Y)
            norms = np.where(bad, self.b_norm, norms)
        relative = np.divide(norms, self.b_norm, out=np.zeros_like(norms), where=self.b_norm > 0)
        relative = np.where(self.inconsistent, np.maximum(relative, 1.0), relative)
        return Y, float(relative.max(initial=0.0))


def _scaled_preconditioner(
    spec: Any, operand: Operand, system: _Scaled, tol: float
) -> tuple[Preconditioner | None, bool]:
    """Approximate inverse in the scaled variables, and whether it takes any precision.

    None for Jacobi, which the scaling is.
    """
    if isinstance(spec, str) and spec == "auto":
        spec = "two-level" if _is_slow(operand, system, tol) else "jacobi"
    if spec is None or (isinstance(spec, str) and spec == "jacobi"):
        return None, True
    if isinstance(spec, str) and spec == "two-level":
        if operand.kind == "operator":
            make = getattr(operand.matrix, "two_level", None)  # an operator may have its own
            if make is None or system.s is not None:
                raise ValueError("preconditioner='two-level' needs a matrix, not a LinearOperator")
            return make(), True
        with np.errstate(over="ignore", invalid="ignore"):
            return two_level(sp.csr_array(operand.matrix), system.s), True
    with np.errstate(over="ignore", invalid="ignore"):
        M = make_preconditioner(spec, operand)
    if M is None or system.s is None:
        return M, False
    with np.errstate(divide="ignore"):
        inverse = np.where(system.dead, 0.0, 1.0 / system.s)[:, None]

    def apply(R: NDArray[np.float64]) -> NDArray[np.float64]:
        out = M(inverse * R)
        out *= inverse
        return out

    return apply, False


def _is_slow(operand: Operand, system: _Scaled, tol: float) -> bool:
    """Whether Jacobi will take so many iterations that the set-up of a coarse system pays.

    The constant vector bounds the smallest eigenvalue of the scaled matrix from above by
    ``1'A1 / trace(A)``, which gives a number of iterations by the Chebyshev bound.
    """
    diagonal = operand.diagonal()
    if operand.kind != "sparse" or diagonal is None or operand.n < 2000:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        excess = float(operand.matrix.data.sum() / diagonal.sum())
    if not np.isfinite(excess):
        return False
    return bool(cg_steps(excess, tol) * system.b.shape[1] > 45)


def cg_steps(smallest: float, tol: float) -> float:
    """Steps of conjugate gradients on a spectrum in [smallest, 2], by the Chebyshev bound."""
    return float(0.5 * np.sqrt(2.0 / max(smallest, 1e-12)) * np.log(2.0 / tol))


def _dense(system: _Scaled) -> tuple[NDArray[np.float64], str]:
    """Cholesky; the pseudo-inverse where the matrix is numerically singular."""
    C = system.operand.toarray().copy()
    if system.s is not None:
        C = (system.s[:, None] * C) * system.s
    n = C.shape[0]
    C[system.dead, system.dead] = 1.0
    try:
        factor = linalg.cholesky(C, lower=True, check_finite=False)
        pivots = np.diagonal(factor)
        if pivots.min() ** 2 > 10 * n * np.finfo(float).eps:
            y = linalg.cho_solve((factor, True), system.b, check_finite=False)
            y += linalg.cho_solve((factor, True), system.b - C @ y, check_finite=False)
            return y, "dense-cholesky"
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(C)
    keep = values > n * np.finfo(float).eps * max(abs(values[0]), values[-1])
    V = vectors[:, keep]
    return V @ ((V.T @ system.b) / values[keep][:, None]), "dense-eigh"
