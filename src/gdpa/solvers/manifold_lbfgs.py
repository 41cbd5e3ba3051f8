"""Limited-memory BFGS on a manifold: the descent behind the low-rank semidefinite relaxation.

One product with the couplings per iteration, in general: the step of length 1 is nearly always
accepted, since the diagonal of the Hessian is known and preconditions it. Old pairs are used as
they are, and the final direction is projected to the tangent space (transport by projection; Huang,
Gallivan, Absil, "A Broyden class of quasi-Newton methods for Riemannian optimization", 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the manifold with what is known there.

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
        Products with the couplings at this point, for whoever computes a bound.
    noise : float
        Differences of values below this are rounding.
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
        """Value and gradient at a point."""
        ...

    def move(self, where: FloatArray, step: FloatArray) -> FloatArray:
        """Retraction: go from a point along a tangent vector and back to the manifold."""
        ...

    def project(self, where: FloatArray, vector: FloatArray) -> FloatArray:
        """Project a vector to the tangent space at a point."""
        ...


def inner(a: FloatArray, b: FloatArray) -> float:
    """Inner product without BLAS: the same result whatever the number of threads.

    It also spares short vectors the waiting of threads for each other.
    """
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


@dataclass
class _Memory:
    """The last few pairs of steps and gradient changes."""

    size: int

    def __post_init__(self) -> None:
        self.pairs: list[tuple[FloatArray, FloatArray, float]] = []

    def add(self, step: FloatArray, change: FloatArray) -> None:
        curvature = inner(step, change)
        if curvature > 1e-10 * np.sqrt(inner(step, step) * inner(change, change)):
            self.pairs.append((step, change, 1.0 / curvature))
            del self.pairs[: -self.size]

    def direction(self, point: Point) -> FloatArray:
        """Inverse Hessian estimate times the gradient (two-loop recursion)."""
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
    """Walk downhill; the caller decides when to stop.

    Parameters
    ----------
    manifold : Manifold
        What to minimise.
    start : ndarray
        First point.
    memory : int, default=6
        Pairs that are kept.

    Yields
    ------
    point : Point
        The next point, the start included.
    decrease : float
        What the last quadratic model promised to gain; infinite at the start. The walk ends where
        no descent is left that rounding does not hide.
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
    """First of 1, 1/2, 1/4, ... along the direction with a sufficient decrease."""
    for length in 0.5 ** np.arange(12):
        candidate = manifold.evaluate(manifold.move(point.where, -length * direction))
        if candidate.value <= point.value - 1e-4 * length * slope + point.noise:
            return candidate
    return None
