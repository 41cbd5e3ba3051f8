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
from .lobpcg import Correction, Pair, lobpcg, measured
from .one_thread import one_thread
from .operand import Operand, positive_int, positive_number, threads

__all__ = ["EigenResult", "first_eigenvector"]


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
        Approximate inverse: "jacobi"; "two-level", Jacobi and a coarse correction
        (:mod:`gdpa.linalg.two_level`), which gives the start, too, and is rebuilt from the iterate;
        "auto", the same for sparse matrices with at least 2000 rows (after a warm start, or where
        some node neighbours much of the graph, only once it takes more than a few iterations), a
        Chebyshev polynomial in the Jacobi-scaled matrix for smaller ones; "amg" (extra ``amg``); or
        one's own.
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
        best = measured(operand, V[:, 0], "dense")
    else:
        best = Pair(np.inf, np.empty(0), np.inf, "start")
        if start is not None:
            best = measured(operand, start, "start")
        if best.residual > threshold:
            M = Correction(preconditioner, operand, warm=start is not None)
            first = M.guess(random_state) if start is None else best.vector
            # Inner products of a few vectors: BLAS' threads cost more than they bring, and their
            # number would show in the last digits.
            with one_thread():
                best, iterations, note = lobpcg(
                    operand, first, M, threshold, max_iter, block_size, random_state, callback
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


def _fix_sign(v: NDArray[np.float64]) -> NDArray[np.float64]:
    # The odd threshold keeps ties of round ratios (entries 1 and 1/2, say) away from the decision.
    size = np.abs(v)
    lead = int(np.argmax(size >= 0.618034 * size.max()))
    return v if v[lead] > 0 else -v


def _fall_back(
    operand: Operand, best: Pair, threshold: float, max_iter: int, note: str
) -> tuple[Pair, str]:
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
        candidates.append(measured(operand, v, method))
        if candidates[-1].residual <= threshold and candidates[-1].value <= best.value + threshold:
            return candidates[-1], f"LOBPCG: {note}; {method} took over"
    return min(
        candidates, key=lambda pair: pair.residual
    ), f"{note}; fall-back did not converge either"


def _shift_invert(operand: Operand, best: Pair) -> NDArray[np.float64]:
    # Gershgorin's bound lies below the whole spectrum, so the nearest eigenvalue is the first; a
    # shift just below the Ritz value is far better when it is below the spectrum, too.
    matrix = sp.csc_array(operand.matrix)
    shift = best.value - max(best.residual, 1e-10 * max(operand.largest, abs(best.value)))
    _, V = eigsh(matrix, k=1, sigma=shift, which="LM", v0=best.vector, tol=0)
    return np.asarray(V[:, 0])


def _lanczos(operand: Operand, best: Pair, threshold: float, max_iter: int) -> NDArray[np.float64]:
    operator = LinearOperator((operand.n, operand.n), matvec=operand.dot, dtype=np.float64)
    ncv = min(operand.n - 1, 64)
    # About as many products as LOBPCG was allowed, and a fair try at least.
    restarts = max(20, max_iter // (ncv - 1))
    relative = threshold / max(abs(best.value), operand.largest) / 4
    _, V = eigsh(operator, k=1, which="SA", v0=best.vector, tol=relative, ncv=ncv, maxiter=restarts)
    return np.asarray(V[:, 0])
