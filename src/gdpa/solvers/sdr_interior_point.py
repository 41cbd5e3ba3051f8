"""Solve the semidefinite relaxation by a primal-dual interior point for ``diag(X) = 1``.

On the reduced form (labelled nodes merged into one apex) the relaxation and its dual are

    max <P, X>,  X_ii = 1, X psd        min 1's,  Z = diag(s) - P psd,

and one step of Helmberg, Rendl, Vanderbei and Wolkowicz (1996, "An interior-point method for
semidefinite programming") linearises ``Z X = mu I`` to

    (Z^-1 o X) ds = mu diag(Z^-1) - 1,      dX = mu Z^-1 - X - sym(Z^-1 diag(ds) X),

where o is the entrywise product. All matrices are dense with n rows, and a step costs O(n^3). A
Mehrotra predictor aims for mu = 0 and measures how far it gets. The corrector adds the predictor's
second-order term, whose diagonal needs no matrix product. Both points stay feasible, so every step
has a valid bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from ..arrays import FloatArray
from .base import Run, StopSolver
from .conic import ConicResult
from .sdr_form import DenseForm, DenseSDR


@dataclass(frozen=True, kw_only=True)
class SDRInteriorPoint(DenseSDR):
    """Solve the semidefinite relaxation by an interior-point method, with a certified bound.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the duality gap is below `tol` times the value of the relaxation.
    max_iter : int, default=100
        Maximum number of steps; about 10 are usual.
    keep_matrix : bool, default=False
        Keep the matrix X of the reduced form as ``info["X"]``.

    Notes
    -----
    Scores are the apex column of X, and labels are their signs. ``info["sdr_value"]`` is the value
    of the relaxation at X. ``info["effective_rank"]`` is 1 exactly where X has rank one.
    """

    name = "sdr-interior-point"
    summary = "semidefinite relaxation, interior-point method, certified bound"

    max_iter: int = 100

    def _bytes(self, n: int) -> float:
        # Ten matrices are in memory at the peak, including the certificate and the sparse input.
        return 80.0 * n**2

    def _find(self, form: DenseForm, run: Run) -> ConicResult:
        return interior_point(
            form.P,
            tol=self.tol,
            max_iter=self.max_iter,
            shift=form.constant / form.scale,
            report=lambda *values: run.report(**form.values(*values)),
        )


def interior_point(
    P: FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    shift: float = 0.0,
    report: Callable[[float, float], None] | None = None,
) -> ConicResult:
    """Maximise ``<P, X>`` over correlation matrices X; both X and s are strictly feasible.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, zero diagonal, mean absolute row sum near 1.
    tol : float, default=1e-6
        Stop when the gap is at most `tol` times ``|shift - value|``, or `tol` times 1e-3 of the
        value if that is larger.
    max_iter : int, default=100
        Maximum number of steps.
    shift : float, default=0.0
        Constant of the objective, in units of P.
    report : callable, optional
        Called with the primal and dual values after each step; may raise StopSolver.
    """
    n = P.shape[0]
    P = np.asfortranarray(P)
    flat = P.ravel("K")
    row_sums = np.abs(P).sum(axis=0)
    # Diagonally dominant and therefore feasible. The second term keeps zero rows off the boundary.
    s = 1.1 * row_sums + 0.1 * max(float(row_sums.mean()), 1e-300)
    X = np.eye(n, order="F")

    def factor(s: FloatArray) -> FloatArray | None:
        Z = -P
        Z.ravel("K")[:: n + 1] += s
        L, failed = lapack.dpotrf(Z, lower=1, clean=1, overwrite_a=1)
        return None if failed else L

    def result(converged: bool, message: str) -> ConicResult:
        return ConicResult(s, X, step, converged, message)

    # Rounding of <P, X> and of 1's. Below this not even the sign of the gap is known.
    rounding = n * np.finfo(float).eps * float(row_sums.sum())
    step = 0
    L = factor(s)
    primal = float(flat @ X.ravel("K"))
    dual = float(s.sum())
    gap = dual - primal
    while L is not None:
        if gap + rounding <= tol * max(abs(shift - dual), 1e-3 * abs(dual)):
            return result(True, "gap below tolerance")
        if gap <= rounding:
            break
        if step >= max_iter:
            return result(
                False, f"gap {gap / max(abs(shift - dual), 1e-300):.2g} after {step} steps"
            )
        inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)  # lower triangle only
        schur, failed = lapack.dpotrf(inverse * X, lower=1, clean=0, overwrite_a=1)
        if failed:
            break
        inverse_diagonal = inverse.diagonal().copy()
        # Predictor: mu = 0.
        ds, _ = lapack.dpotrs(schur, np.full(n, -1.0), lower=1)
        slope = ds
        G = blas.dsymm(1.0, inverse, slope[:, None] * X, lower=1)
        dX = _negated_symmetric(G)
        dX -= X
        # At full length the predictor ends on the boundary, so a trial of 1 would fail.
        length = _primal_length(X, dX, 0.97, 0.7)
        dual_length = 0.97
        while dual_length > 1e-8 and factor(s + dual_length * ds) is None:
            dual_length *= 0.7
        reached = dual + dual_length * float(ds.sum())
        reached -= primal + length * float(flat @ dX.ravel("K"))
        mu = (gap / n) * min(max(reached / gap, 0.05), 1.0) ** 2
        # Corrector: its second-order term has diagonal (Z^-1 o dX) ds, a product with a vector.
        bend = inverse * dX  # lower triangle only
        second = blas.dsymv(1.0, bend, slope, lower=1)
        ds, _ = lapack.dpotrs(schur, mu * inverse_diagonal - 1.0 - second, lower=1)
        G = blas.dsymm(1.0, inverse, ds[:, None] * X + slope[:, None] * dX, lower=1)
        # Adding both halves counts the diagonal of Z^-1 twice.
        G -= 2.0 * mu * inverse
        G.ravel("K")[:: n + 1] += mu * inverse_diagonal
        dX = _negated_symmetric(G)
        dX -= X
        length = _primal_length(X, dX, 1.0, 0.9)
        dual_length = 1.0
        while (new_L := factor(s + dual_length * ds)) is None and dual_length > 1e-8:
            dual_length *= 0.9
        if dual_length < 1.0:
            dual_length *= 0.95
            new_L = factor(s + dual_length * ds)
        if length < 1.0:
            length *= 0.95
        if new_L is None or max(length, dual_length) < 1e-4:
            break
        dX *= length
        X += dX
        s = s + dual_length * ds
        L = new_L
        step += 1
        primal = float(flat @ X.ravel("K"))
        dual = float(s.sum())
        gap = dual - primal
        if report is not None:
            try:
                report(primal, dual)
            except StopSolver:
                return result(False, "stopped by the callback")
    return result(False, f"rounding stopped progress at gap {gap / max(abs(dual), 1e-300):.2g}")


def _negated_symmetric(G: FloatArray) -> FloatArray:
    """Return ``-(G + G') / 2`` with contiguous columns."""
    S = np.empty_like(G, order="F")
    np.add(G, G.T, out=S)
    S *= -0.5
    return S


def _primal_length(X: FloatArray, dX: FloatArray, first: float, factor: float) -> float:
    """Return the longest first * factor^k with X + length dX positive definite, or 0."""
    length = first
    while length > 1e-8:
        _, failed = lapack.dpotrf(X + length * dX, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return length
        length *= factor
    return 0.0
