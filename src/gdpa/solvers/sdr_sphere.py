"""Semidefinite relaxation for couplings of any sign: unit vectors in r dimensions.

This is the Burer-Monteiro factorisation ``X = V V'`` with unit rows: ``min constant - <P, V V'>``
over the product of spheres. At a stationary point ``(diag(s) - P) V = 0`` with s_i = |(P V)_i|. V
is a global optimum exactly when diag(s) - P is positive semi-definite. Otherwise its first
eigenvector is a direction of descent in one more dimension (the "staircase" of Boumal, Voroninski,
Bandeira 2016).

*The bound.* Let D = diag(s)^-1/2, and let -t be the smallest eigenvalue of I - D P D, or 0 if that
is positive. Then ``(1 + t) diag(s) - P`` is positive semi-definite, so

    SDR >= constant - (1 + t) sum s .

Scaling by D raises all s_i by the same factor, which costs less than the same amount where they
differ. The bound is an estimate from the eigenvalue and its residual until a factorisation proves
it (:func:`proved_bound`).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from ..errors import ConvergenceWarning
from ..linalg import first_eigenvector
from ..linalg.operator import EPS
from ..linalg.psd_proof import lowest_eigenvalue_bound
from ..problem import ReducedForm
from ..solution import BoundStatus
from .base import Run, StopSolver
from .manifold_lbfgs import Point, descend


class SphereProduct:
    """Energy of unit rows; an evaluation takes one product of P and V.

    Parameters
    ----------
    form : ReducedForm
        The couplings and the constant.
    """

    def __init__(self, form: ReducedForm) -> None:
        self.P = form.P
        self.constant = form.constant
        self.total = float(np.abs(self.P.data).sum())
        self.floor = max(1e-12 * self.total / self.P.shape[0], 1e-300)
        self.products = 0

    def evaluate(self, where: FloatArray) -> Point:
        """Return the energy and its Riemannian gradient at the unit rows `where`."""
        self.products += 1
        G = np.asarray(self.P @ where)
        along = np.einsum("ij,ij->i", where, G)
        gradient = -2.0 * (G - along[:, None] * where)
        s = np.maximum(np.sqrt(np.einsum("ij,ij->i", G, G)), self.floor)
        noise = 4.0 * EPS * (abs(self.constant) + self.total)
        return Point(
            where, self.constant - float(along.sum()), gradient, 2.0 * s[:, None], G, noise
        )

    def move(self, where: FloatArray, step: FloatArray) -> FloatArray:
        """Add the step and normalise the rows."""
        moved = where + step
        moved /= np.sqrt(np.einsum("ij,ij->i", moved, moved))[:, None]
        return moved

    def project(self, where: FloatArray, vector: FloatArray) -> FloatArray:
        """Remove the component along each row."""
        return np.asarray(vector - np.einsum("ij,ij->i", where, vector)[:, None] * where)


@dataclass
class SphereResult:
    """Unit rows, their value, and the bound with its dual point."""

    V: FloatArray
    value: float
    bound: float
    s: FloatArray
    status: BoundStatus
    iterations: int
    products: int
    converged: bool
    message: str


@dataclass(frozen=True, eq=False)
class DualBound:
    """A bound, its dual point, and the direction that would improve V."""

    bound: float
    s: FloatArray
    lowest: float
    vector: FloatArray
    matvecs: int


def dual_bound(form: ReducedForm, s: FloatArray, *, allowed: float, random_state: int) -> DualBound:
    """Scale a nearly feasible s until it is dual feasible, and return the estimated bound.

    The bound is an estimate, because the computed eigenvalue may not be the smallest one. The
    accepted gap `allowed` determines the accuracy of the eigenvalue.
    """
    n = s.size
    B = scaled_couplings(form, s)
    total = float(s.sum())
    A = (sp.diags_array(np.ones(n)) - B).tocsr()
    tol = float(np.clip(0.05 * allowed / max(total, 1e-300), 1e-9, 1e-3))
    # The residual is added below.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        eigen = first_eigenvector(A, tol=tol, max_iter=200, random_state=random_state)
    longest = float(np.abs(B).sum(axis=1).max())
    rounding = 16.0 * EPS * (1.0 + longest)
    raised = 1.0 + max(0.0, eigen.residual - eigen.value) + rounding
    bound = form.constant - raised * total
    return DualBound(bound, raised * s, eigen.value, eigen.vector, eigen.matvecs)


def scaled_couplings(form: ReducedForm, s: FloatArray) -> sp.csr_array:
    """Return ``D P D`` with ``D = diag(s)^-1/2``."""
    d = sp.diags_array(1.0 / np.sqrt(s))
    return (d @ form.P @ d).tocsr()


def proved_bound(
    form: ReducedForm, s: FloatArray, *, step: float = 2e-5, deadline: float = np.inf
) -> tuple[float, FloatArray] | None:
    """Scale s until a factorisation proves ``diag(s) - P`` positive semi-definite.

    Parameters
    ----------
    form : ReducedForm
        The couplings and the constant.
    s : ndarray of shape (n,)
        Positive dual point, nearly feasible.
    step : float, default=2e-5
        First relative increase; tripled until the proof succeeds.
    deadline : float, optional
        No factorisation is started after this value of ``time.monotonic()``.

    Returns
    -------
    bound : float
        Lower bound of the problem, up to the rounding of the constant.
    s : ndarray
        The feasible dual point.
    """
    n = s.size
    B = scaled_couplings(form, s)
    identity = sp.diags_array(np.ones(n))
    # Three roundings per entry of B move an eigenvalue by at most their largest row sum.
    rounding = 8.0 * EPS * (1.0 + float(abs(B).sum(axis=1).max()))
    t = step
    for _ in range(20):
        if time.monotonic() > deadline:
            break
        lowest = lowest_eigenvalue_bound(((1.0 + t) * identity - B).tocsr())
        if lowest is not None:
            t += rounding - lowest
            return form.constant - (1.0 + t) * float(s.sum()) * (1.0 + n * EPS), (1.0 + t) * s
        t *= 3.0
    return None


def solve_spheres(
    form: ReducedForm,
    *,
    rank: int,
    tol: float,
    max_iter: int,
    memory: int,
    random_state: int,
    start: FloatArray | None,
    run: Run,
) -> SphereResult:
    """Minimise over unit rows until value and bound agree.

    Parameters
    ----------
    form : ReducedForm
        The couplings and the constant.
    rank : int
        Initial dimension of the rows. It grows by half if the bound shows that V is not a global
        optimum.
    tol : float
        Accepted gap between value and bound, relative to the value.
    max_iter : int
        Maximum number of descent steps.
    memory : int
        Number of pairs kept by the quasi-Newton method.
    random_state : int
        Random seed of the initial rows.
    start : ndarray of shape (n,), optional
        Initial scores in [-1, 1] for the component along the apex.
    run : Run
        Receives value, bound and products of each iteration.
    """
    spheres = SphereProduct(form)
    rng = np.random.default_rng(random_state)
    V = rng.standard_normal((form.P.shape[0], rank))
    if start is not None:
        V /= np.sqrt(np.einsum("ij,ij->i", V, V) * rank)[:, None]
        V[:, 0] = start
    V = spheres.move(V, np.zeros_like(V))
    scale = max(1e-6 * spheres.total, 1e-300)
    best = SphereResult(V, np.inf, -np.inf, np.zeros(0), "none", 0, 0, False, "")
    # An eigenvalue is computed when the predicted decrease is below this fraction of the gap.
    settled = 0.1
    eigen_products = 0
    walk = descend(spheres, V, memory=memory)
    s = np.zeros(0)

    def improve_bound() -> DualBound:
        nonlocal eigen_products
        allowed = tol * max(abs(best.value), scale)
        with run.stage("bound"):
            found = dual_bound(form, s, allowed=allowed, random_state=random_state)
        eigen_products += found.matvecs
        if found.bound > best.bound:
            best.bound = found.bound
            best.s = found.s
            best.status = "estimated"
        return found

    try:
        while True:
            with run.stage("descent"):
                point, decrease = next(walk, (None, 0.0))
            if point is not None:
                best.V = point.where
                best.value = point.value
                s = 0.5 * point.curvature.ravel()
                best.iterations += 1
            allowed = tol * max(abs(best.value), scale)
            found = None
            if decrease <= settled * allowed:
                found = improve_bound()
            run.report(
                iteration=best.iterations,
                value=best.value,
                bound=best.bound,
                products=spheres.products + eigen_products,
            )
            if best.value - best.bound <= allowed:
                best.converged = True
                best.message = "value and bound agree"
                break
            if best.iterations > max_iter:
                best.message = f"max_iter={max_iter} reached"
                break
            if found is not None and (point is None or settled <= 2e-5):
                if -found.lowest * float(s.sum()) <= 0.1 * allowed and point is None:
                    best.message = "no descent left; the bound is not within the tolerance"
                    break
                # Further dimensions lead out of a saddle point or a local optimum.
                walk = descend(spheres, _raised(spheres, best.V, found.vector, s), memory=memory)
                settled = 0.1
            elif found is not None:
                settled *= 0.1
    except StopSolver:
        best.message = "stopped by the callback"
    if best.status == "none":
        found = improve_bound()
        best.bound = found.bound
        best.s = found.s
        best.status = "estimated"
    best.products = spheres.products + eigen_products
    return best


def _raised(spheres: SphereProduct, V: FloatArray, vector: FloatArray, s: FloatArray) -> FloatArray:
    """Add one dimension along the first eigenvector, and further ones with a little noise."""
    n, rank = V.shape
    # With sqrt(2 n) dimensions generic stationary points are optimal.
    extra = max(min((rank - 1) // 2, int(np.ceil(np.sqrt(2.0 * n))) - rank), 0)
    u = vector / np.sqrt(s)
    u = u / np.abs(u).max()
    noise = 1e-3 * np.random.default_rng(rank).standard_normal((n, extra))
    candidates = []
    for length in (1.0, 0.3, 0.1, 0.03):
        W = spheres.move(np.column_stack((V, length * u, noise)), np.zeros(()))
        candidates.append((spheres.evaluate(W).value, length, W))
    return min(candidates, key=lambda entry: entry[:2])[2]
