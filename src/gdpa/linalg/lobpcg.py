"""The iteration behind the first eigenvector: LOPCG with a preconditioner that improves.

The basis is [x, w, p]: current vector, preconditioned residual, last step. ``A x`` and ``A p``
follow the same linear combinations, so an iteration costs one product. Vectors are rows
(contiguous) and combined in place: beside one sparse product, temporaries would cost as much again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

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

# Iterations after which a coarse correction is built, and rebuilt from a better vector.
BUILD_AT = (7, 14, 25, 60, 100, 200, 400)


class Pair(NamedTuple):
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
    spec : None, str or callable
        As the argument `preconditioner` of :func:`gdpa.linalg.first_eigenvector`.
    A : Counted
        The matrix.
    warm : bool
        Whether a start is known: then few iterations may do without a coarse correction.
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
        # Smaller matrices do not repay a coarse correction.
        auto, small = spec == "auto", A.n < 2000
        if auto and small:
            self.base = chebyshev(A) or self.base
        self.current = self.base
        if (spec == "two-level" or (auto and not small)) and A.csr is not None and A.n >= 2:
            self.schedule = BUILD_AT
            # A neighbourhood of a twentieth of all nodes is a hub: H_bar with many labels has two.
            if auto and int(np.diff(A.csr.indptr).max()) > 0.05 * A.n:
                self.schedule = BUILD_AT[2:]  # no mode is slow: one may do without a start
            elif not warm:
                self._build(None)

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
        # Not when about 20 iterations are left, which would cost less than it.
        if rate * 20 <= np.log(residual / threshold):
            self._build(vector)

    def _build(self, vector: NDArray[np.float64] | None) -> None:
        """Coarse functions: the pieces of a vector on the patches, constant ones without it."""
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
    """Lowest Ritz values of the space of some rows, and their coefficients.

    Directions that depend on the others, to rounding, are left out.
    """
    G, T = np.empty((2, len(S), len(S)))
    for i, x in enumerate(S):  # a product of so few rows is slower than dot products one by one
        for j in range(i + 1):
            G[i, j] = G[j, i] = x @ S[j]
            T[i, j] = T[j, i] = x @ AS[j]
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
    return None if failed else (float(values[0]), basis @ Q[:, 0])


def lobpcg(
    A: Counted,
    start: NDArray[np.float64],
    M: Correction,
    threshold: float,
    max_iter: int,
    callback: Callable[[Mapping[str, Any]], Any] | None,
) -> tuple[Pair, int, str]:
    """Locally optimal preconditioned conjugate gradients: the pair, iterations, why it stopped.

    Products that were carried along are computed afresh before convergence is believed.
    """
    S, AS = np.zeros((2, 3, A.n))
    S[0], AS[0] = start, A.dot(start)
    r = np.empty(A.n)
    used = 1  # rows of the basis in use: first x, then w, then p
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
            # The updated products have drifted: compute them again and forget the direction.
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
