r"""Semidefinite relaxation for non-negative couplings: unit vectors on half a circle.

With W >= 0 among the nodes and any c towards the apex, the relaxation

    min  constant - <W, V V'> - 2 c' V v_apex     over unit rows v_i, of any dimension,

has an optimum in the plane, on half a circle: ``v_i = (cos t_i, sin t_i)``, ``0 <= t_i <= pi``,
``v_apex = (1, 0)``.

*Proof.* Write x = cos t and y = sin t. Let t be stationary with y > 0, and let s_i = |(W V)_i + c_i
v_apex|. Stationarity is ``(diag(s) - W) y = 0`` and ``(diag(s) - W) x = c``. By the first equation
A = diag(s) - W is positive semi-definite, because it is a Z-matrix with A y >= 0 for a positive y
(its Gershgorin discs, aligned by y, all begin at 0). The second equation gives the Schur complement
of the apex, ``c' A^+ c = c' x``, so ``s_apex = c' x`` completes a feasible dual point. Its value
equals the primal value.

Away from stationarity the bound is :func:`gdpa.gershgorin.bounds.aligned_bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..gershgorin.bounds import aligned_bound
from ..gershgorin.discs import raised_diagonal
from ..linalg.operator import EPS
from ..linalg.spd import Column, conjugate_gradients
from .base import Run, StopSolver
from .manifold_lbfgs import Point, descend, inner
from .switching import SwitchedForm, nearby_numbering

_EDGE = 1e-9  # angles keep this distance from 0 and pi, so that y stays positive


class HalfCircle:
    """Energy of the angles; an evaluation takes one product of W with two columns.

    Parameters
    ----------
    form : SwitchedForm
        Non-negative W, and c.
    """

    def __init__(self, form: SwitchedForm) -> None:
        self.W = form.W
        self.c = form.c
        self.constant = form.constant
        self.total = float(self.W.data.sum()) + 2.0 * float(np.abs(self.c).sum())
        self.floor = max(EPS * self.total / max(self.c.size, 1), 1e-300)
        self.products = 0

    def times(self, columns: FloatArray) -> FloatArray:
        """Multiply by W and count the product."""
        self.products += 1
        return np.asarray(self.W @ columns)

    def evaluate(self, where: FloatArray) -> Point:
        """Return the energy and its derivative at the angles `where`."""
        V = np.empty((where.size, 2))
        np.cos(where, out=V[:, 0])
        np.sin(where, out=V[:, 1])
        G = self.times(V)
        # einsum sums in blocks, which avoids a copy of V * G and long chains of rounding.
        coupling = float(np.einsum("ij,ij->j", V, G).sum()) + 2.0 * inner(self.c, V[:, 0])
        pull = G[:, 0] + self.c
        gradient = 2.0 * (pull * V[:, 1] - G[:, 1] * V[:, 0])
        curvature = 2.0 * np.maximum(np.hypot(pull, G[:, 1]), self.floor)
        noise = 4.0 * EPS * (abs(self.constant) + self.total)
        return Point(where, self.constant - coupling, gradient, curvature, G, noise)

    def move(self, where: FloatArray, step: FloatArray) -> FloatArray:
        """Rotate the vectors, and reflect those that leave the half circle.

        With W >= 0 the reflection y -> |y| never raises the energy.
        """
        turned = np.abs(np.mod(where + step + np.pi, 2.0 * np.pi) - np.pi)
        return np.clip(turned, _EDGE, np.pi - _EDGE)

    def project(self, where: FloatArray, vector: FloatArray) -> FloatArray:
        """Return `vector`, because angles are unconstrained."""
        return vector


@dataclass
class HalfCircleResult:
    """Angles, their value, and the bound with the pair (x, y) that proves it."""

    angles: FloatArray
    value: float
    bound: float
    x: FloatArray
    y: FloatArray
    iterations: int
    products: int
    converged: bool
    message: str
    polishes: int = 0

    def keep(
        self, circle: HalfCircle, x: FloatArray, y: FloatArray, Wx: FloatArray, Wy: FloatArray
    ) -> None:
        """Keep the pair (x, y) if its bound is better."""
        bound = aligned_bound(circle.W, circle.c, circle.constant, x, y, Wx, Wy)
        if bound > self.bound:
            self.bound = bound
            self.x = x
            self.y = y


def solve_half_circle(
    form: SwitchedForm,
    *,
    tol: float,
    max_iter: int,
    memory: int,
    start: FloatArray | None,
    run: Run,
) -> HalfCircleResult:
    """Minimise over the half circle until value and bound agree.

    Parameters
    ----------
    form : SwitchedForm
        Non-negative W, and c.
    tol : float
        Accepted gap between value and bound, relative to the value.
    max_iter : int
        Maximum number of descent steps.
    memory : int
        Number of pairs kept by the quasi-Newton method.
    start : ndarray of shape (n,), optional
        Initial scores in [-1, 1].
    run : Run
        Receives value, bound and products of each iteration.
    """
    with run.stage("order"):
        form, order = nearby_numbering(form)
        if start is not None and order is not None:
            start = start[order]
    circle = HalfCircle(form)
    with run.stage("start"):
        angles = _start(circle, start)
    scale = max(1e-6 * circle.total, 1e-300)
    best = HalfCircleResult(angles, np.inf, -np.inf, angles, angles, 0, 0, False, "")
    next_polish = 0
    products = np.empty((0, 2))
    walk = descend(circle, angles, memory=memory)
    try:
        while True:
            with run.stage("descent"):
                point, _ = next(walk, (None, 0.0))
            if point is not None:
                best.angles = point.where
                best.value = point.value
                products = point.products
                best.iterations += 1
            allowed = tol * max(abs(best.value), scale)
            with run.stage("bound"):
                best.keep(circle, np.cos(best.angles), np.sin(best.angles), *products.T)
                if best.value - best.bound > allowed and (
                    point is None or best.iterations >= next_polish
                ):
                    tried = _polish(best, circle, products, allowed, last=point is None)
                    next_polish = best.iterations + 4 if tried else 0
                # After the descent has ended, only finer polishing can improve the bound.
                for _ in range(4 if point is None else 0):
                    if best.value - best.bound > allowed:
                        _polish(best, circle, products, allowed, last=True)
            run.report(
                iteration=best.iterations,
                value=best.value,
                bound=best.bound,
                products=circle.products,
            )
            if best.value - best.bound <= allowed:
                best.converged = True
                best.message = "value and bound agree"
                break
            if point is None:
                best.message = "no descent left; the bound is not within the tolerance"
                break
            if best.iterations > max_iter:
                best.message = f"max_iter={max_iter} reached"
                break
    except StopSolver:
        best.message = "stopped by the callback"
    best.products = circle.products
    if order is not None:
        place = np.argsort(order)
        best.angles, best.x, best.y = (v[place] for v in (best.angles, best.x, best.y))
    return best


def _start(circle: HalfCircle, start: FloatArray | None) -> FloatArray:
    """Return angles after a few sweeps ``v_i <- normalise((W V)_i + c_i v_apex)``, with y > 0."""
    n = circle.c.size
    V = np.zeros((n, 2))
    V[:, 1] = 1.0
    if start is not None:
        V[:, 0] = np.clip(start, -1.0, 1.0)
        V[:, 1] = np.sqrt(np.maximum(1.0 - V[:, 0] ** 2, 1e-4))
    for _ in range(3):
        G = circle.times(V)
        G[:, 0] += circle.c
        length = np.hypot(G[:, 0], G[:, 1])
        V = np.where((length > 0)[:, None], G / np.maximum(length, 1e-300)[:, None], V)
    return np.clip(np.arctan2(V[:, 1], V[:, 0]), _EDGE, np.pi - _EDGE)


def _polish(
    best: HalfCircleResult, circle: HalfCircle, products: FloatArray, allowed: float, *, last: bool
) -> bool:
    """Look for a better pair (x, y) than the angles give; return False if none could help."""
    # Where the relaxation is tight, y tends to 0 and the angles lose its proportions. One step of
    # inverse iteration, ((1 + d) diag(s) - W) y = d diag(s) y0, aligns the discs to within d.
    # Raising s_i slightly costs 1 - x_i^2 times the raise after A x = c is solved again. To first
    # order d costs a quarter of the allowed gap, and it shrinks with every further polish. Any
    # positive y and any x give a bound, so the bound is checked during the conjugate gradients.
    W = circle.W
    c = circle.c
    constant = circle.constant
    x = np.cos(best.angles)
    Wx = products[:, 0]
    s = np.maximum(np.hypot(Wx + c, products[:, 1]), circle.floor)
    wish = constant - float((s * (1.0 + x * x) - x * Wx + 2.0 * np.abs(c - s * x + Wx)).sum())
    if best.value - wish > 0.6 * allowed and not last:
        return False
    loss = float((s * (1.0 - x * x)).sum())
    most = max(0.1 * 0.1**best.polishes, 1e-8)
    d = float(np.clip(0.25 * allowed / max(loss, 1e-300), 1e-8, most))
    best.polishes += 1
    y = np.maximum(np.sin(best.angles), 1e-3)
    b = d * s * y

    def aligned(y: FloatArray, residual: FloatArray) -> bool:
        Wy = np.maximum((1.0 + d) * s * y - b + residual, 0.0)  # by the recurrence, no product
        if y.min() > 0 and aligned_bound(W, c, constant, x, y, Wx, Wy) > best.bound:
            best.keep(circle, x, y, Wx, circle.times(y))
        return best.value - best.bound <= allowed

    y = _solved(circle, (1.0 + d) * s, b, y, aligned)
    if best.value - best.bound <= allowed or y.min() <= 0:
        return True
    Wy = circle.times(y)
    # A smaller s than this would make A singular and A x = c unsolvable, even where the discs
    # allow it. The bound itself uses the smallest valid s for the x that is found.
    s = np.maximum(raised_diagonal(W, y, Wy), s)

    def settled(x: FloatArray, residual: FloatArray) -> bool:
        best.keep(circle, x, y, s * x - c + residual, Wy)
        return best.value - best.bound <= allowed

    _solved(circle, s, c, x, settled)
    return True


def _solved(
    circle: HalfCircle,
    diagonal: FloatArray,
    b: FloatArray,
    start: FloatArray,
    enough: Callable[[FloatArray, FloatArray], bool],
) -> FloatArray:
    """Solve ``(diag(diagonal) - W) z = b``; `enough` sees every fifth iterate and may stop it."""

    def dot(z: FloatArray, _dtype: Any = None, _n_jobs: int = 1) -> FloatArray:
        return diagonal * z - circle.times(z)

    def watch(step: int, columns: list[Column]) -> bool:
        return step % 5 == 0 and enough(z + columns[0].x, columns[0].r)

    z = start.copy()
    r = b - dot(z)
    conjugate_gradients(
        dot,
        b[:, None],
        z[:, None],
        r[:, None],
        np.array([1e-7 * np.linalg.norm(r)]),
        limit=100,
        M=lambda r: r / diagonal,
        watch=watch,
    )
    enough(z, r)
    return z
