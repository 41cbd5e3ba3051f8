"""Eigenvector of the smallest eigenvalue of a symmetric matrix: preconditioned LOBPCG.

GDPA needs the first eigenvector of the dual's matrix once per iteration, of a matrix that has
changed little since the last one: hence the warm start, and a stop that is decided on the residual
``|A v - lambda v|`` as computed, not as updated. Reference: A. Knyazev, "Toward the optimal
preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001).
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
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..errors import ConvergenceWarning
from .operand import Operand, positive_int, positive_number, threads
from .preconditioners import Preconditioner, chebyshev, eigen_two_level, make_preconditioner
from .two_level import coarse_count, patches

__all__ = ["EigenResult", "first_eigenvector"]

# Iterations after which a coarse correction is built, and rebuilt from a better vector.
COARSE_AT = (12, 25, 50, 100, 200, 400)
# Not when about so many iterations are left.
LITTLE = 12


@dataclass(frozen=True)
class EigenResult:
    """First eigenpair of a symmetric matrix.

    Parameters
    ----------
    value : float
        Rayleigh quotient of `vector`: the smallest eigenvalue, from above.
    vector : ndarray of shape (n,)
        Unit vector. Its sign is fixed: the first entry that is not small is positive.
    residual : float
        ``|A v - value v|``, computed from `vector`.
    iterations : int
        Iterations of LOBPCG.
    matvecs : int
        Products of the matrix with one vector.
    converged : bool
        Whether ``residual <= tol * |A|``, with the largest absolute row sum as the norm (for an
        operator: an estimate by the power method).
    method : str
        What gave the vector: "dense", "start" (the given one was good enough), "lobpcg", "eigsh" or
        "shift-invert".
    message : str
        Why it stopped, in words.
    """

    value: float
    vector: NDArray[np.float64]
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str


@dataclass
class _Pair:
    """An eigenpair candidate with its residual as computed."""

    value: float
    vector: NDArray[np.float64]
    residual: float
    method: str


def first_eigenvector(
    A: Any,
    *,
    v0: Any = None,
    tol: float = 1e-8,
    max_iter: int = 500,
    preconditioner: Any = "auto",
    dense_below: int = 300,
    block_size: int = 1,
    diagonal: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    callback: Callable[[Mapping[str, Any]], Any] | None = None,
) -> EigenResult:
    """Compute the eigenvector of the smallest (most negative) eigenvalue.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
        Symmetric matrix; need not be definite.
    v0 : array-like of shape (n,), optional
        Start, usually the first eigenvector of a matrix nearby. If it already meets the tolerance
        it is returned after one product; no vector can then tell that it is not a higher one.
    tol : float, default=1e-8
        Accept when ``|A v - lambda v| <= tol * |A|``.
    max_iter : int, default=500
        Most iterations of LOBPCG before the fall-back (Lanczos, or shift-and-invert where a sparse
        factorisation is cheap).
    preconditioner : None, str, callable or LinearOperator, default="auto"
        Approximate inverse: "jacobi"; "auto", a Chebyshev polynomial of degree 3 in the
        Jacobi-scaled matrix (Jacobi itself where the matrix is far from diagonally dominant) and,
        when it takes many iterations, a coarse correction (:mod:`gdpa.linalg.two_level`) built from
        the iterate; "two-level", the same with the coarse correction early; "amg" (extra ``amg``);
        or one's own. Iterations of "auto" cost four products each.
    dense_below : int, default=300
        Smaller matrices are handed to LAPACK.
    block_size : int, default=1
        Vectors iterated together. More help where the smallest eigenvalues are close together.
    diagonal : array-like of shape (n,), optional
        Diagonal of a ``LinearOperator``.
    n_jobs : int, optional
        Threads for large sparse products; all processors, at most 8, by default. The result does
        not depend on it.
    random_state : int, default=0
        Seed of the start, where none is given.
    callback : callable, optional
        Called once per iteration with a mapping (iteration, value, residual); returning True stops.

    Returns
    -------
    EigenResult
        Eigenpair, residual and how it was found.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not met by LOBPCG nor by the fall-back.
    """
    tol = positive_number(tol, "tol")
    max_iter = positive_int(max_iter, "max_iter")
    block_size = positive_int(block_size, "block_size")
    dense_below = positive_int(dense_below, "dense_below", least=0)
    operand = Operand(A, diagonal=diagonal, n_jobs=threads(n_jobs))
    start = _check_start(v0, operand.n)
    # Residuals below rounding cannot be reached.
    threshold = max(tol, 4 * np.finfo(float).eps) * operand.norm()
    iterations, note = 0, "tolerance met"
    if operand.n < max(dense_below, 3 * block_size + 2):
        _, V = linalg.eigh(operand.toarray(), subset_by_index=[0, 0])
        best = _measured(operand, V[:, 0], "dense")
    else:
        best = _measured(operand, _first_guess(operand.n, start, random_state), "start")
        if start is None or best.residual > threshold:
            M = _Correction(preconditioner, operand)
            best, iterations, note = _lobpcg(
                operand, best.vector, M, threshold, max_iter, block_size, random_state, callback
            )
            if best.residual > threshold and note != "stopped by the callback":
                best, note = _fall_back(operand, best, threshold, max_iter, note)
    converged = best.residual <= threshold
    message = f"{note}, residual {best.residual:.2e} (threshold {threshold:.2e})"
    if not converged:
        warnings.warn(
            f"first_eigenvector did not converge: {message}", ConvergenceWarning, stacklevel=2
        )
    return EigenResult(
        value=float(np.ldexp(best.value, operand.exponent)),
        vector=_fix_sign(best.vector),
        residual=float(np.ldexp(best.residual, operand.exponent)),
        iterations=iterations,
        matvecs=operand.matvecs,
        converged=converged,
        method=best.method,
        message=message,
    )


def _check_start(v0: Any, n: int) -> NDArray[np.float64] | None:
    if v0 is None:
        return None
    v = np.asarray(v0, dtype=np.float64)
    if v.shape != (n,):
        raise ValueError(f"v0 must have shape ({n},), got {v.shape}")
    if not np.isfinite(v).all() or not v.any():
        raise ValueError("v0 must be finite and not zero")
    return np.asarray(v / np.abs(v).max())


def _first_guess(
    n: int, start: NDArray[np.float64] | None, random_state: int
) -> NDArray[np.float64]:
    if start is not None:
        return start
    # Near the constant vector (the answer for a plain Laplacian), but not exactly any eigenvector.
    return 1.0 + 0.05 * np.random.default_rng(random_state).standard_normal(n)


def _measured(operand: Operand, v: NDArray[np.float64], method: str) -> _Pair:
    v = v / np.linalg.norm(v)
    w = operand.dot(v)
    value = float(v @ w)
    return _Pair(value, v, float(np.linalg.norm(w - value * v)), method)


def _fix_sign(v: NDArray[np.float64]) -> NDArray[np.float64]:
    # The odd threshold keeps ties of round ratios (entries 1 and 1/2, say) away from the decision.
    size = np.abs(v)
    lead = int(np.argmax(size >= 0.618034 * size.max()))
    return v if v[lead] > 0 else -v


def _ritz(
    S: NDArray[np.float64], AS: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Lowest Ritz values and coefficients in the span of the rows of `S`.

    Directions that depend on the others, to rounding, are left out.
    """
    G = S @ S.T
    scale = np.sqrt(np.diagonal(G))
    if not np.isfinite(scale).all():
        return None
    scale = np.where(scale > 0, scale, 1.0)
    weights, U = np.linalg.eigh(G / np.outer(scale, scale))
    keep = weights > 1e-12
    basis = (U[:, keep] / np.sqrt(weights[keep])) / scale[:, None]
    T = basis.T @ (S @ AS.T) @ basis
    values, Q = np.linalg.eigh((T + T.T) / 2)
    return values[:count], basis @ Q[:, :count]


class _Correction:
    """The preconditioner of an iteration, which may be rebuilt from a better iterate."""

    def __init__(self, spec: Any, operand: Operand) -> None:
        self.base: Preconditioner | None = make_preconditioner(spec, operand)
        if isinstance(spec, str) and spec in ("auto", "two-level"):
            self.base = chebyshev(operand) or self.base
        self.current = self.base
        self.residuals: list[float] = []
        self.operand = operand
        coarse = isinstance(spec, str) and spec in ("auto", "two-level")
        # When to rebuild: the better the vector, the better the pieces of it.
        self.schedule: tuple[int, ...] = ()
        self.patch: NDArray[np.int32] | None = None
        if coarse and operand.kind == "sparse" and self.base is not None:
            self.schedule = COARSE_AT if spec == "auto" else (4, *COARSE_AT)

    def __call__(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        return R if self.current is None else self.current(R)

    def refresh(
        self, iteration: int, vector: NDArray[np.float64], residual: float, threshold: float
    ) -> None:
        """Rebuild if it is time, and the end is not near anyway."""
        self.residuals.append(residual)
        if iteration not in self.schedule or self.base is None:
            return
        rate = np.log(self.residuals[iteration // 2] / residual) / (iteration - iteration // 2)
        if rate * LITTLE > np.log(residual / threshold):
            return
        A = self.operand.matrix
        count = coarse_count(A)
        if self.patch is None:
            self.patch = patches(A, count)
        self.current = eigen_two_level(A, vector, self.base, self.patch, count)


def _lobpcg(
    operand: Operand,
    start: NDArray[np.float64],
    M: _Correction,
    threshold: float,
    max_iter: int,
    block_size: int,
    random_state: int,
    callback: Callable[[Mapping[str, Any]], Any] | None,
) -> tuple[_Pair, int, str]:
    """Locally optimal block preconditioned conjugate gradients; only the first pair must converge.

    The basis is [X, W, P]: current vectors, preconditioned residuals, last steps. ``A X`` and
    ``A P`` follow the same linear combinations, so an iteration costs one product per column; they
    are computed afresh before convergence is believed.
    """
    n, b = operand.n, block_size
    # Rows, not columns: each vector is contiguous.
    S, AS = np.zeros((3 * b, n)), np.zeros((3 * b, n))
    X, W, P = S[:b], S[b : 2 * b], S[2 * b :]
    AX, AW, AP = AS[:b], AS[b : 2 * b], AS[2 * b :]
    X[0] = start
    if b > 1:
        X[1:] = M(np.random.default_rng(random_state + 1).standard_normal((n, b - 1))).T
    used = 2 * b  # rows of the basis in use: P comes with the second iteration

    def products(V: NDArray[np.float64]) -> NDArray[np.float64]:
        return operand.dot(V[0])[None] if b == 1 else operand.dot(np.ascontiguousarray(V.T)).T

    def restart() -> NDArray[np.float64]:
        X[:] = np.linalg.qr(X.T)[0].T
        AX[:] = products(X)
        values, C = np.linalg.eigh(X @ AX.T)
        X[:], AX[:] = C.T @ X, C.T @ AX
        return np.asarray(values)

    values = restart()
    best = _Pair(np.inf, X[0].copy(), np.inf, "lobpcg")
    failed_checks = 0
    iteration = 0
    while True:
        R = AX - values[:, None] * X
        first = float(np.linalg.norm(R[0]))
        if first <= threshold:
            pair = _measured(operand, X[0], "lobpcg")
            failed_checks += 1
            if pair.residual <= threshold or failed_checks > 3:
                note = "tolerance met" if pair.residual <= threshold else "stalled at rounding"
                return pair, iteration, note
            # The updated products have drifted: compute them again and forget the direction.
            values, used = restart(), 2 * b
            R = AX - values[:, None] * X
            first = float(np.linalg.norm(R[0]))
        if first < best.residual:
            best.value, best.residual = float(values[0]), first
            best.vector[:] = X[0]
        if callback is not None and iteration:
            report = {"iteration": iteration, "value": float(values[0]), "residual": first}
            if callback(report) is True:
                return _measured(operand, X[0], "lobpcg"), iteration, "stopped by the callback"
        if iteration >= max_iter:
            return _measured(operand, best.vector, "lobpcg"), iteration, "max_iter reached"
        M.refresh(iteration, X[0], first, threshold)
        W[:] = M(R[0])[None] if b == 1 else M(np.ascontiguousarray(R.T)).T
        W -= (W @ X.T) @ X
        AW[:] = products(W)
        found = _ritz(S[:used], AS[:used], b)
        if found is None or found[0].size < b:
            return _measured(operand, best.vector, "lobpcg"), iteration, "basis broke down"
        values, C = found
        P[:], AP[:] = C[b:].T @ S[b:used], C[b:].T @ AS[b:used]
        X[:], AX[:] = C[:b].T @ X + P, C[:b].T @ AX + AP
        used = 3 * b
        iteration += 1


def _fall_back(
    operand: Operand, best: _Pair, threshold: float, max_iter: int, note: str
) -> tuple[_Pair, str]:
    """Lanczos from the best vector; shift-and-invert first where a factorisation is cheap."""
    cheap = operand.kind != "operator" and (operand.n <= 5000 or operand.nnz <= 5 * operand.n)
    tries: list[str] = (["shift-invert"] if cheap else []) + ["eigsh"]
    candidates = [best]
    for method in tries:
        try:
            v = (
                _shift_invert(operand, best)
                if method == "shift-invert"
                else _lanczos(operand, best, threshold, max_iter)
            )
        except (ArpackError, RuntimeError, linalg.LinAlgError):
            continue
        if v is None or not np.isfinite(v).all() or not v.any():
            continue
        candidates.append(_measured(operand, v, method))
        if candidates[-1].residual <= threshold and candidates[-1].value <= best.value + threshold:
            return candidates[-1], f"LOBPCG: {note}; {method} took over"
    return min(
        candidates, key=lambda pair: pair.residual
    ), f"{note}; fall-back did not converge either"


def _shift_invert(operand: Operand, best: _Pair) -> NDArray[np.float64]:
    # Gershgorin's bound lies below the whole spectrum, so the nearest eigenvalue is the first; a
    # shift just below the Ritz value is far better when it is below the spectrum, too.
    matrix = sp.csc_array(operand.matrix)
    shift = best.value - max(best.residual, 1e-10 * max(operand.largest, abs(best.value)))
    _, V = eigsh(matrix, k=1, sigma=shift, which="LM", v0=best.vector, tol=0)
    return np.asarray(V[:, 0])


def _lanczos(operand: Operand, best: _Pair, threshold: float, max_iter: int) -> NDArray[np.float64]:
    operator = LinearOperator((operand.n, operand.n), matvec=operand.dot, dtype=np.float64)
    ncv = min(operand.n - 1, 64)
    # About as many products as LOBPCG was allowed, and a fair try at least.
    restarts = max(20, max_iter // (ncv - 1))
    relative = threshold / max(abs(best.value), operand.largest) / 4
    _, V = eigsh(operator, k=1, which="SA", v0=best.vector, tol=relative, ncv=ncv, maxiter=restarts)
    return np.asarray(V[:, 0])
