"""The iteration behind the first eigenvector: LOBPCG with a preconditioner that improves.

The basis is [X, W, P]: current vectors, preconditioned residuals, last steps. ``A X`` and ``A P``
follow the same linear combinations, so an iteration costs one product per column. Vectors are rows
(contiguous) and combined in place: beside one sparse product, temporaries would cost as much again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from .preconditioners import (
    Counted,
    Preconditioner,
    chebyshev,
    eigen_two_level,
    make_preconditioner,
)
from .two_level import coarse_count, patches

__all__ = ["Correction", "Pair", "lobpcg", "measured"]

# Smaller matrices do not repay a coarse correction.
COARSE_ROWS = 2000
# Iterations after which a coarse correction is built, and rebuilt from a better vector.
BUILD_AT = (7, 14, 25, 60, 100, 200, 400)
# Not when about so many iterations are left, which would cost less than it.
LITTLE = 20
# Share of all nodes that makes a neighbourhood a hub: H_bar with many labels has two.
HUB = 0.05
# Patches per square root of the number of entries.
SHARE = 0.38


@dataclass
class Pair:
    """An eigenpair candidate with its residual as computed."""

    value: float
    vector: NDArray[np.float64]
    residual: float
    method: str


def measured(A: Counted, v: NDArray[np.float64], method: str) -> Pair:
    """The Rayleigh quotient and the residual of a vector, by one product."""
    v = v / np.linalg.norm(v)
    w = A.dot(v)
    value = float(v @ w)
    w -= value * v
    return Pair(value, v, float(np.linalg.norm(w)), method)


class Correction:
    """The preconditioner of an iteration, which may be rebuilt from a better iterate.

    Parameters
    ----------
    spec : None, str, callable or LinearOperator
        As the argument `preconditioner` of :func:`gdpa.linalg.first_eigenvector`.
    A : Counted
        The matrix.
    warm : bool
        Whether a start is known: then few iterations may do without a coarse correction.
    """

    def __init__(self, spec: Any, A: Counted, *, warm: bool) -> None:
        self.A = A
        self.base: Preconditioner | None = make_preconditioner(spec, A.operator)
        self.schedule: tuple[int, ...] = ()
        self.residuals: list[float] = []
        self.patch: NDArray[np.int32] | None = None
        self.first: NDArray[np.float64] | None = None
        named = isinstance(spec, str) and spec in ("auto", "two-level")
        large = spec == "two-level" or A.n >= COARSE_ROWS if named else False
        if named and not large:
            self.base = chebyshev(A) or self.base
        self.current = self.base
        if large and A.csr is not None and A.n >= 2 and self.base is not None:
            self.schedule = BUILD_AT
            if spec == "auto" and self._has_hub():
                self.schedule = BUILD_AT[2:]
            elif not warm:
                self._build(None)

    def _has_hub(self) -> bool:
        """Whether a row reaches so many others that no mode is slow: one may do without a start."""
        assert self.A.csr is not None
        return int(np.diff(self.A.csr.indptr).max()) > HUB * self.A.n

    def __call__(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the present preconditioner."""
        return R if self.current is None else self.current(R)

    def guess(self, random_state: int) -> NDArray[np.float64]:
        """Start: the best vector made of patches, or near the constant one.

        The constant vector is the answer for a plain Laplacian. Noise keeps either from being an
        eigenvector that is not the first.
        """
        noise = np.random.default_rng(random_state).standard_normal(self.A.n)
        if self.first is None:
            return 1.0 + 0.05 * noise
        noise *= 0.01 * float(np.linalg.norm(self.first)) / np.sqrt(noise.size)
        noise += self.first
        return noise

    def refresh(
        self, iteration: int, vector: NDArray[np.float64], residual: float, threshold: float
    ) -> None:
        """Rebuild if it is time, and the end is not near anyway."""
        self.residuals.append(residual)
        if iteration not in self.schedule:
            return
        past = iteration // 2
        rate = np.log(self.residuals[past] / residual) / (iteration - past)
        if rate * LITTLE <= np.log(residual / threshold):
            self._build(vector)

    def _build(self, vector: NDArray[np.float64] | None) -> None:
        assert self.base is not None
        assert self.A.csr is not None
        count = coarse_count(self.A.csr, share=SHARE)
        if self.patch is None:
            self.patch = patches(self.A.csr, count)
        self.current, self.first = eigen_two_level(self.A.csr, vector, self.base, self.patch, count)


def _ritz(
    G: NDArray[np.float64], T: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Lowest Ritz values and coefficients from the inner products of a basis, plain and with A.

    Directions that depend on the others, to rounding, are left out.
    """
    scale = np.sqrt(np.diagonal(G))
    if not np.isfinite(scale).all():
        return None
    scale = np.where(scale > 0, scale, 1.0)
    unit = G / (scale[:, None] * scale)
    # LAPACK by hand: the checks around it take longer than matrices of this size.
    factor, failed = lapack.dpotrf(unit, lower=1)
    if not failed and np.diagonal(factor).min() > 1e-6:
        basis = lapack.dtrtri(factor, lower=1)[0].T / scale[:, None]
    else:
        weights, U = np.linalg.eigh(unit)
        keep = weights > 1e-12
        basis = (U[:, keep] / np.sqrt(weights[keep])) / scale[:, None]
    small = basis.T @ T @ basis
    values, Q, failed = lapack.dsyevd((small + small.T) / 2)
    return None if failed else (values[:count], basis @ Q[:, :count])


def _inner_products(
    S: NDArray[np.float64], AS: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``S S'`` and ``S A S'`` for the rows of S."""
    k = S.shape[0]
    if k > 3:
        return S @ S.T, S @ AS.T
    # A product of so few rows is slower than its dot products one by one.
    G, T = np.empty((k, k)), np.empty((k, k))
    for i in range(k):
        for j in range(i, k):
            G[i, j] = G[j, i] = S[i] @ S[j]
            T[i, j] = T[j, i] = S[i] @ AS[j]
    return G, T


def _advance(V: NDArray[np.float64], C: NDArray[np.float64], b: int, used: int) -> None:
    """New vectors and last steps, in place: ``P = W C_w + P C_p``, ``X = X C_x + P``, as rows."""
    X, W, P = V[:b], V[b : 2 * b], V[2 * b :]
    if b > 1:
        P[:] = C[b:].T @ V[b:used]
        X[:] = C[:b].T @ X + P
        return
    P *= C[2, 0] if used == 3 else 0.0
    blas.daxpy(W[0], P[0], a=C[1, 0])
    X *= C[0, 0]
    X += P


def lobpcg(
    A: Counted,
    start: NDArray[np.float64],
    M: Correction,
    threshold: float,
    max_iter: int,
    block_size: int,
    random_state: int,
    callback: Callable[[Mapping[str, Any]], Any] | None,
) -> tuple[Pair, int, str]:
    """Locally optimal block preconditioned conjugate gradients; only the first pair must converge.

    Products that were carried along are computed afresh before convergence is believed.

    Parameters
    ----------
    A : Counted
        The matrix.
    start : ndarray of shape (n,)
        First vector of the block; the others are random.
    M : Correction
        Preconditioner.
    threshold : float
        Residual to be reached.
    max_iter, block_size, random_state, callback
        As in :func:`gdpa.linalg.first_eigenvector`.

    Returns
    -------
    Pair
        The first pair.
    int
        Iterations.
    str
        Why it stopped.
    """
    n, b = A.n, block_size
    S, AS = np.zeros((3 * b, n)), np.zeros((3 * b, n))
    R = np.empty((b, n))
    S[0] = start
    if b > 1:
        S[1:b] = M(np.random.default_rng(random_state + 1).standard_normal((n, b - 1))).T
    used = 2 * b  # rows of the basis in use: P comes with the second iteration

    def products(V: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(A.dot(V[0])[None] if b == 1 else A.dot(np.ascontiguousarray(V.T)).T)

    def restart() -> NDArray[np.float64]:
        S[:b] = np.linalg.qr(S[:b].T)[0].T
        AS[:b] = products(S[:b])
        values, C = np.linalg.eigh(S[:b] @ AS[:b].T)
        if b > 1:
            S[:b], AS[:b] = C.T @ S[:b], C.T @ AS[:b]
        return np.asarray(values)

    def residuals() -> float:
        np.multiply(S[:b], values[:, None], out=R)
        np.subtract(AS[:b], R, out=R)
        return float(np.sqrt(R[0] @ R[0]))

    values = restart()
    best = Pair(np.inf, S[0].copy(), np.inf, "lobpcg")
    failed_checks = 0
    iteration = 0
    while True:
        first = residuals()
        if first <= threshold:
            pair = measured(A, S[0], "lobpcg")
            failed_checks += 1
            if pair.residual <= threshold or failed_checks > 3:
                note = "tolerance met" if pair.residual <= threshold else "stalled at rounding"
                return pair, iteration, note
            # The updated products have drifted: compute them again and forget the direction.
            values, used = restart(), 2 * b
            first = residuals()
        if first < best.residual:
            best.value, best.residual = float(values[0]), first
            best.vector[:] = S[0]
        if callback is not None and iteration:
            report = {"iteration": iteration, "value": float(values[0]), "residual": first}
            if callback(report) is True:
                return measured(A, S[0], "lobpcg"), iteration, "stopped by the callback"
        if iteration >= max_iter:
            return measured(A, best.vector, "lobpcg"), iteration, "max_iter reached"
        M.refresh(iteration, S[0], first, threshold)
        X, W = S[:b], S[b : 2 * b]
        if b == 1:
            W[0] = M(R[0])
            blas.daxpy(X[0], W[0], a=-(W[0] @ X[0]))
        else:
            W[:] = M(np.ascontiguousarray(R.T)).T
            W -= (W @ X.T) @ X
        AS[b : 2 * b] = products(W)
        ritz = _ritz(*_inner_products(S[:used], AS[:used]), b)
        if ritz is None or ritz[0].size < b:
            return measured(A, best.vector, "lobpcg"), iteration, "basis broke down"
        values, C = ritz
        _advance(S, C, b, used)
        _advance(AS, C, b, used)
        used = 3 * b
        iteration += 1
