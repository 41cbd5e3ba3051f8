"""Eigenvector of the smallest eigenvalue of a symmetric matrix: preconditioned LOBPCG.

GDPA computes the first eigenvector of the dual matrix once per iteration. The matrix changes little
between iterations, so the solver accepts a warm start. Convergence is decided by the recomputed
residual ``|A v - lambda v|``, not by the updated one.

The basis is [x, w, p]: current vector, preconditioned residual, last step. ``A x`` and ``A p`` are
updated by the same linear combinations, so an iteration costs one product. Vectors are stored as
contiguous rows and combined in place, because temporaries would cost as much as the sparse product.

Reference: A. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23
(2001).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..checks import check_positive, check_vector
from ..errors import ConvergenceWarning
from ..threads import effective_jobs, one_thread
from .operator import Matrix, MatrixLike
from .preconditioners import Correction, Counted, PreconditionerLike

# Matrices with a largest entry in this range are not rescaled: no product over- or underflows.
SAFE_LOW = 1e-100
SAFE_HIGH = 1e100
# Share of rows below the row sum that scales the tolerance, so that neither rows with large weights
# (a labelled node, the apex) nor a few nearly isolated nodes determine it.
SCALE_QUANTILE = 0.05
# If rounding alone is larger than this, relative to that row sum and to the eigenvalue, no residual
# proves convergence.
MOST_RESIDUAL = 1e-3


@dataclass(frozen=True)
class EigenResult:
    """First eigenpair of a symmetric matrix.

    Parameters
    ----------
    value : float
        Rayleigh quotient of `vector`, an upper bound of the smallest eigenvalue.
    vector : ndarray of shape (n,)
        Unit vector. The sign is chosen so that the first entry that is not small is positive.
    residual : float
        ``|A v - value v|``, computed from `vector`.
    iterations : int
        Number of LOBPCG iterations.
    matvecs : int
        Number of matrix-vector products.
    converged : bool
        Whether ``residual <= tol * s``, where s is the 5 % quantile of the absolute row sums.
    method : str
        Method that computed the vector: "dense", "start" (the given start met the tolerance),
        "lobpcg", "eigsh" or "shift-invert".
    message : str
        Why the solver stopped.
    """

    value: float
    vector: NDArray[np.float64]
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str


class Product(Protocol):
    """What LOBPCG needs of a symmetric matrix."""

    n: int

    def dot(self, x: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Return ``A x``."""


class Corrects(Protocol):
    """A preconditioner that may be rebuilt during the iteration."""

    def refresh(
        self, iteration: int, x: NDArray[np.float64], residual: float, threshold: float, /
    ) -> None:
        """Rebuild it from the current vector, where that is worthwhile."""

    def __call__(self, r: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Return the correction for a residual."""


class Pair(NamedTuple):
    """Approximate eigenpair with its computed residual."""

    value: float
    vector: NDArray[np.float64]
    residual: float
    method: str


def first_eigenvector(
    A: MatrixLike,
    *,
    v0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 500,
    preconditioner: PreconditionerLike = "auto",
    dense_below: int = 300,
    random_state: int = 0,
    callback: Callable[[Mapping[str, Any]], Any] | None = None,
) -> EigenResult:
    """Compute the eigenvector of the smallest (most negative) eigenvalue.

    Parameters
    ----------
    A : sparse array or ndarray of shape (n, n)
        Symmetric matrix, possibly indefinite.
    v0 : array-like of shape (n,), optional
        Start, usually the first eigenvector of a similar matrix. If it already meets the tolerance,
        it is returned after one product, even if it belongs to a higher eigenvalue.
    tol : float, default=1e-8
        Stop when ``|A v - lambda v| <= tol * s``, where s is the 5 % quantile of the absolute row
        sums. Their maximum would let a single heavy row, such as that of the apex of a graph with
        heavy labels, loosen the tolerance for all nodes.
    max_iter : int, default=500
        Maximum number of LOBPCG iterations before the fallback (Lanczos, or shift-and-invert if a
        sparse factorisation is cheap).
    preconditioner : None, str or callable, default="auto"
        "jacobi"; "two-level", which is Jacobi plus a coarse correction
        (:mod:`gdpa.linalg.two_level`) that also provides the start and is rebuilt from the iterate;
        a callable that applies an approximate inverse; or "auto". "auto" selects "two-level" for
        sparse matrices with at least 2000 rows and a Chebyshev polynomial in the Jacobi-scaled
        matrix for smaller ones. After a warm start, or if some node is adjacent to much of the
        graph, "auto" builds the coarse correction only after a few iterations.
    dense_below : int, default=300
        Use LAPACK for matrices with fewer rows.
    random_state : int, default=0
        Random seed of the start if `v0` is not given.
    callback : callable, optional
        Called once per iteration with a mapping (iteration, value, residual). Return True to stop.

    Returns
    -------
    EigenResult
        Eigenpair, residual and statistics of the solver.

    Warns
    -----
    ConvergenceWarning
        If neither LOBPCG nor the fallback met the tolerance.
    """
    tol = check_positive(tol, "tol")
    max_iter = check_positive(max_iter, "max_iter", 1)
    dense_below = check_positive(dense_below, "dense_below", 0)
    A, exponent = _ordinary(A)
    start = _check_start(v0, A.n)
    scale, largest = _row_scales(A)
    # Residuals below the rounding error cannot be reached.
    threshold = max(tol * scale, 4 * np.finfo(float).eps * largest)
    iterations = 0
    note = "tolerance met"
    if A.n < max(dense_below, 5):
        dense = A.matrix.toarray()
        _, V = linalg.eigh(dense, subset_by_index=[0, 0])
        if not np.isfinite(V).all():
            # With entries of extremely different sizes, LAPACK's fastest driver divides by zero.
            V = linalg.eigh(dense, driver="ev")[1][:, :1]
        best = measured(A, V[:, 0], "dense")
    else:
        nothing = Pair(np.inf, np.empty(0), np.inf, "start")
        best = nothing if start is None else measured(A, start, "start")
        if best.residual > threshold:
            M = Correction(preconditioner, A, warm=start is not None)
            first = M.guess(random_state) if start is None else best.vector
            # For inner products of a few vectors, BLAS threads cost more than they save, and the
            # result would depend on their number.
            with one_thread():
                best, iterations, note = lobpcg(A, first, M, threshold, max_iter, callback)
            if best.residual > threshold and note != "stopped by the callback":
                best, note = _fall_back(A, best, threshold, max_iter, note)
    converged = best.residual <= min(threshold, MOST_RESIDUAL * max(scale, abs(best.value)))
    message = f"{note}, residual {best.residual:.2e} (threshold {threshold:.2e})"
    if not converged:
        warnings.warn(
            f"first_eigenvector did not converge: {message}", ConvergenceWarning, stacklevel=2
        )
    return EigenResult(
        value=float(np.ldexp(best.value, exponent)),
        vector=_fix_sign(best.vector),
        residual=float(np.ldexp(best.residual, exponent)),
        iterations=iterations,
        matvecs=A.products,
        converged=converged,
        method=best.method,
        message=message,
    )


def _row_scales(A: Counted) -> tuple[float, float]:
    """Return a low quantile of the absolute row sums that are not zero, and their maximum."""
    sums = np.sort(np.asarray(abs(A.matrix.matrix).sum(axis=1), dtype=np.float64).ravel())
    largest = float(sums[-1])
    sums = sums[np.searchsorted(sums, 0.0, side="right") :]
    return (float(sums[int(SCALE_QUANTILE * sums.size)]) if sums.size else 1.0), largest


def _check_start(v0: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return the validated start, scaled to a largest entry of 1."""
    if v0 is None:
        return None
    v = check_vector(v0, n, "v0")
    if not v.any():
        raise ValueError("v0 must not be zero")
    return np.asarray(v / np.abs(v).max())


def _fix_sign(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return v or -v such that the first entry that is not small is positive."""
    # An unusual threshold, so that rounding does not decide for entries such as 1 and 1/2.
    size = np.abs(v)
    lead = int(np.argmax(size >= 0.618034 * size.max()))
    return v if v[lead] > 0 else -v


def _ordinary(A: MatrixLike) -> tuple[Counted, int]:
    """Return the matrix, divided by a power of two if its entries are extreme, and the exponent."""
    matrix = Matrix(A)
    exponent = 0
    if not SAFE_LOW <= (matrix.largest or 1.0) <= SAFE_HIGH:
        exponent = int(np.clip(np.frexp(matrix.largest)[1], -1000, 1000))
        matrix = Matrix(matrix.matrix * 2.0**-exponent, checked=True)
    return Counted(matrix, effective_jobs(None)), exponent


def _fall_back(
    A: Counted, best: Pair, threshold: float, max_iter: int, note: str
) -> tuple[Pair, str]:
    """Run Lanczos from the best vector, after shift-and-invert if a factorisation is cheap."""
    size = max(abs(best.value), A.matrix.largest)
    ncv = min(A.n - 1, 64)
    # About as many products as LOBPCG may use, but at least 20 restarts.
    restarts = max(20, max_iter // (ncv - 1))
    plain = {"which": "SA", "tol": threshold / size / 4, "ncv": ncv, "maxiter": restarts}
    operator = LinearOperator((A.n, A.n), matvec=A.dot, dtype=np.float64)
    tries: dict[str, tuple[Any, dict[str, Any]]] = {"eigsh": (operator, plain)}
    if A.n <= 5000 or (A.csr is not None and A.csr.nnz <= 5 * A.n):
        # A shift just below the Ritz value. If it is below the spectrum, the nearest eigenvalue is
        # the smallest one.
        shift = best.value - max(best.residual, 1e-10 * size)
        stored = sp.csc_array(A.matrix.matrix)
        tries = {"shift-invert": (stored, {"sigma": shift, "tol": 0}), **tries}
    for method, (matrix, options) in tries.items():
        with suppress(ArpackError, RuntimeError, linalg.LinAlgError):
            pair = measured(A, eigsh(matrix, k=1, v0=best.vector, **options)[1][:, 0], method)
            # A larger Rayleigh quotient than that of LOBPCG belongs to another eigenvector.
            if pair.residual < best.residual and pair.value <= best.value + threshold:
                best = pair
        if best.residual <= threshold:
            return best, f"LOBPCG: {note}; {method} took over"
    return best, f"{note}; the fallback did not converge either"


def measured(A: Product, v: NDArray[np.float64], method: str) -> Pair:
    """Return a vector with its Rayleigh quotient and residual, computed by one product."""
    v = v / np.linalg.norm(v)
    w = A.dot(v)
    value = float(v @ w)
    w -= value * v
    return Pair(value, v, float(np.linalg.norm(w)), method)


def _ritz(
    S: NDArray[np.float64], AS: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]] | None:
    """Return the lowest Ritz value on the span of the rows of S, and its coefficients.

    Directions that are linearly dependent up to rounding are dropped.
    """
    G, T = np.empty((2, len(S), len(S)))
    for i, x in enumerate(S):  # for so few rows, dot products are faster than matmul
        for j in range(i + 1):
            G[i, j] = G[j, i] = x @ S[j]
            T[i, j] = T[j, i] = x @ AS[j]
    scale = np.sqrt(np.diagonal(G))
    if not (np.isfinite(scale).all() and np.isfinite(T).all()):
        return None
    scale = np.where(scale > 0, scale, 1.0)
    weights, U = np.linalg.eigh(G / (scale[:, None] * scale))
    keep = weights > 1e-12
    basis = (U[:, keep] / np.sqrt(weights[keep])) / scale[:, None]
    values, Q = np.linalg.eigh(basis.T @ T @ basis)
    return float(values[0]), basis @ Q[:, 0]


def lobpcg(
    A: Product,
    start: NDArray[np.float64],
    M: Corrects,
    threshold: float,
    max_iter: int,
    callback: Callable[[Mapping[str, Any]], Any] | None,
    second: NDArray[np.float64] | None = None,
) -> tuple[Pair, int, str]:
    """Run LOBPCG; return the pair, the number of iterations and the stopping reason.

    Updated products are recomputed before convergence is accepted. `second` is another vector with
    which the start is combined.
    """
    S, AS = np.zeros((2, 3, A.n))
    S[0], AS[0] = start, A.dot(start)
    r = np.empty(A.n)
    used = 1  # number of basis rows in use, in the order x, w, p
    if second is not None:
        S[1], AS[1] = second, A.dot(second)
        used = 2
    iteration = failed_checks = 0
    while True:
        ritz = _ritz(S[:used], AS[:used])
        if ritz is None:
            return measured(A, S[0], "lobpcg"), iteration, "basis broke down"
        value, c = ritz
        for V in (S, AS):  # p = c_w w + c_p p, x = c_x x + p
            V[2] = c[1:] @ V[1:used]
            V[0] *= c[0]
            V[0] += V[2]
        np.multiply(S[0], -value, out=r)
        r += AS[0]
        residual = float(np.sqrt(r @ r))
        if residual <= threshold:
            pair = measured(A, S[0], "lobpcg")
            failed_checks += 1
            if pair.residual <= threshold or failed_checks > 3:
                note = "tolerance met" if pair.residual <= threshold else "stalled at rounding"
                return pair, iteration, note
            # The updated products have drifted: recompute A x and restart without w and p.
            AS[0], used = A.dot(S[0]), 1
            continue
        if callback is not None and iteration:
            report = {"iteration": iteration, "value": value, "residual": residual}
            if callback(report) is True:
                return measured(A, S[0], "lobpcg"), iteration, "stopped by the callback"
        if iteration >= max_iter:
            return measured(A, S[0], "lobpcg"), iteration, "max_iter reached"
        M.refresh(iteration, S[0], residual, threshold)
        S[1] = M(r)
        S[1] -= (S[1] @ S[0]) * S[0]
        AS[1] = A.dot(S[1])
        used = min(used + 1, 3)
        iteration += 1
