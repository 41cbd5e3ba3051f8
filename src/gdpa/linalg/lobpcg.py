"""LOBPCG for one eigenvector, with a preconditioner that is rebuilt from better iterates.

The basis is [x, w, p]: current vector, preconditioned residual, last step. ``A x`` and ``A p`` are
updated by the same linear combinations, so an iteration costs one product. Vectors are stored as
contiguous rows and combined in place, because temporaries would cost as much as the sparse product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .preconditioners import (
    PRECONDITIONERS,
    Counted,
    Preconditioner,
    PreconditionerLike,
    chebyshev,
    checked_callable,
    jacobi,
    with_coarse,
)
from .two_level import CoarseSpace, coarse_count, patches

# Iterations at which the coarse correction is built or rebuilt from the current vector.
BUILD_AT = (7, 14, 25, 60, 100, 200, 400)


class Pair(NamedTuple):
    """Approximate eigenpair with its computed residual."""

    value: float
    vector: NDArray[np.float64]
    residual: float
    method: str


def measured(A: Counted, v: NDArray[np.float64], method: str) -> Pair:
    """Return a vector with its Rayleigh quotient and residual, computed by one product."""
    v = v / np.linalg.norm(v)
    w = A.dot(v)
    value = float(v @ w)
    w -= value * v
    return Pair(value, v, float(np.linalg.norm(w)), method)


class Correction:
    """Preconditioner that can be rebuilt from a better iterate.

    Parameters
    ----------
    spec : None, str or callable
        As the argument `preconditioner` of :func:`gdpa.linalg.first_eigenvector`.
    A : Counted
        The matrix.
    warm : bool
        Whether the user gave a start. The coarse correction is then built only if needed.
    """

    def __init__(self, spec: PreconditionerLike, A: Counted, *, warm: bool) -> None:
        self.A = A
        self.base: Preconditioner | None = None
        if spec in PRECONDITIONERS:
            self.base = jacobi(A.matrix.diagonal())
        elif spec is not None:
            self.base = checked_callable(spec)
        self.schedule: tuple[int, ...] = ()
        self.residuals: list[float] = []
        self.patch: NDArray[np.int32] | None = None
        self.first: NDArray[np.float64] | None = None
        # For small matrices, building a coarse correction costs more than it saves.
        auto, small = spec == "auto", A.n < 2000
        if auto and small:
            self.base = chebyshev(A) or self.base
        self.current = self.base
        if (spec == "two-level" or (auto and not small)) and A.csr is not None and A.n >= 2:
            self.schedule = BUILD_AT
            # A node adjacent to 5 % of all nodes is a hub. H_bar with many labels has two.
            if auto and int(np.diff(A.csr.indptr).max()) > 0.05 * A.n:
                self.schedule = BUILD_AT[2:]  # convergence is fast with hubs: build it late
            elif not warm:
                self._build(None)

    def __call__(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the current preconditioner."""
        return R if self.current is None else self.current(R)

    def guess(self, random_state: int) -> NDArray[np.float64]:
        """Return a start: the first coarse eigenvector or the constant vector, plus noise.

        The constant vector is the first eigenvector of a graph Laplacian. The noise prevents
        convergence to a higher eigenvector.
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
        """Rebuild the coarse correction at scheduled iterations, unless convergence is near."""
        self.residuals.append(residual)
        if iteration not in self.schedule:
            return
        past = iteration // 2
        rate = np.log(self.residuals[past] / residual) / (iteration - past)
        # The last 20 or so iterations cost less than a rebuild.
        if rate * 20 <= np.log(residual / threshold):
            self._build(vector)

    def _build(self, vector: NDArray[np.float64] | None) -> None:
        """Build the coarse correction from `vector` (default: ones) restricted to the patches."""
        assert self.A.csr is not None
        count = coarse_count(self.A.csr, share=0.38)
        if self.patch is None:
            self.patch = patches(self.A.csr, count)
        coarse = CoarseSpace(self.A.csr, self.patch, count, vector)
        gap = coarse.gap_inverse()
        self.current, self.first = self.base, None
        if gap is not None:
            self.first = np.asarray(coarse.Z @ gap[0])
            self.current = with_coarse(coarse.Z, gap[1], self.base)


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
    A: Counted,
    start: NDArray[np.float64],
    M: Correction,
    threshold: float,
    max_iter: int,
    callback: Callable[[Mapping[str, Any]], Any] | None,
) -> tuple[Pair, int, str]:
    """Run LOBPCG; return the pair, the number of iterations and the stopping reason.

    Updated products are recomputed before convergence is accepted.
    """
    S, AS = np.zeros((2, 3, A.n))
    S[0], AS[0] = start, A.dot(start)
    r = np.empty(A.n)
    used = 1  # number of basis rows in use, in the order x, w, p
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
