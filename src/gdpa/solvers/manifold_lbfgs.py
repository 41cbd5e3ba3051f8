"""Limited-memory BFGS on a manifold, for the low-rank semidefinite relaxation.

An iteration usually takes one product with the couplings: steps of length 1 are nearly always
accepted, because the known diagonal of the Hessian is the preconditioner. Old pairs are not
transported; only the final direction is projected to the tangent space (Huang, Gallivan, Absil, "A
Broyden class of quasi-Newton methods for Riemannian optimization", 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the manifold with its value and derivatives.

    Parameters
    ----------
    where : ndarray
        The point.
    value : float
        Function value.
    gradient : ndarray
        Riemannian gradient, shaped as `where`.
    curvature : ndarray
        Positive diagonal that approximates the Hessian; broadcasts to `where`.
    products : ndarray
        Products with the couplings at this point, for computing bounds.
    noise : float
        Smaller differences of values are rounding errors.
    """

    where: FloatArray
    value: float
    gradient: FloatArray
    curvature: FloatArray
    products: FloatArray
    noise: float


class Manifold(Protocol):
    """A function on a manifold."""

    def evaluate(self, where: FloatArray) -> Point:
        """Return the value and the gradient at a point."""

    def move(self, where: FloatArray, step: FloatArray) -> FloatArray:
        """Move from a point along a tangent vector and back to the manifold (retraction)."""

    def project(self, where: FloatArray, vector: FloatArray) -> FloatArray:
        """Project a vector to the tangent space at a point."""


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product without BLAS, so that it does not depend on the thread count."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


@dataclass
class _Memory:
    """The last few pairs of steps and gradient changes."""

    size: int
    pairs: list[tuple[FloatArray, FloatArray, float]] = field(default_factory=list)

    def add(self, step: FloatArray, change: FloatArray) -> None:
        curvature = inner(step, change)
        if curvature > 1e-10 * np.sqrt(inner(step, step) * inner(change, change)):
            self.pairs.append((step, change, 1.0 / curvature))
            del self.pairs[: -self.size]

    def direction(self, point: Point) -> FloatArray:
        """Return the inverse Hessian estimate times the gradient (two-loop recursion)."""
        q = point.gradient.copy()
        weights = []
        for step, change, inverse in reversed(self.pairs):
            weight = inverse * inner(step, q)
            weights.append(weight)
            q -= weight * change
        if self.pairs:
            _, change, inverse = self.pairs[-1]
            q /= inverse * inner(change, change / point.curvature)
        q /= point.curvature
        for (step, change, inverse), weight in zip(self.pairs, reversed(weights), strict=True):
            q += (weight - inverse * inner(change, q)) * step
        return q


def descend(
    manifold: Manifold, start: FloatArray, *, memory: int = 6
) -> Iterator[tuple[Point, float]]:
    """Minimise a function on a manifold; the caller decides when to stop.

    Parameters
    ----------
    manifold : Manifold
        The function.
    start : ndarray
        First point.
    memory : int, default=6
        Number of pairs kept.

    Yields
    ------
    point : Point
        The next point, beginning with the start.
    decrease : float
        Decrease predicted by the last quadratic model; infinite at the start. The iteration ends
        when further decrease is below rounding.
    """
    point = manifold.evaluate(start)
    yield point, np.inf
    pairs = _Memory(memory)
    while True:
        direction = manifold.project(point.where, pairs.direction(point))
        slope = inner(point.gradient, direction)
        if slope <= 0 and pairs.pairs:
            pairs.pairs.clear()
            continue
        if slope <= point.noise:
            return
        following = _line_search(manifold, point, direction, slope)
        if following is None:
            if not pairs.pairs:
                return
            pairs.pairs.clear()
            continue
        old_gradient = manifold.project(following.where, point.gradient)
        step = manifold.project(following.where, following.where - point.where)
        pairs.add(step, following.gradient - old_gradient)
        point = following
        yield point, 0.5 * slope


def _line_search(
    manifold: Manifold, point: Point, direction: FloatArray, slope: float
) -> Point | None:
    """Return the first point at step 1, 1/2, 1/4, ... with a sufficient decrease."""
    for length in 0.5 ** np.arange(12):
        candidate = manifold.evaluate(manifold.move(point.where, -length * direction))
        if candidate.value <= point.value - 1e-4 * length * slope + point.noise:
            return candidate
    return None
