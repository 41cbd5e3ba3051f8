"""The sequence of linear programs that :func:`gdpa.gershgorin.linearize` solves.

See ``linearization.py`` for the two update rules and their properties.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import ConvergenceWarning
from .alignment import align
from .family import AffineFamily
from .linear_program import LARGEST_RATIO, Blocks, ProgramResult, inner_program, outer_bound

Callback = Callable[[Mapping[str, Any]], Any]
Oracle = Callable[[FloatArray], tuple[float, Any]]


@dataclass(frozen=True)
class Point:
    """Parameter vector with the first eigenpair of its matrix."""

    theta: FloatArray
    lambda_min: float
    v: FloatArray

    @classmethod
    def at(cls, family: AffineFamily, theta: FloatArray, v: FloatArray | None = None) -> Point:
        """Align ``A(theta)``, starting from `v` if given."""
        # Every positive v is valid. Its accuracy only affects the quality of the LP.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            aligned = align(family.comparison(theta), v=v)
        return cls(theta, aligned.lambda_min, np.abs(aligned.v))


@dataclass(frozen=True)
class LinearizationPoint:
    """State of the linearisation after one linear program.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,)
        Best parameters so far. For a linear objective, the optimum of this program.
    objective : float
        Objective at `theta`.
    multipliers : ndarray of shape (n_nodes,)
        Multipliers of the disc rows, which are the diagonal of the dual matrix.
    blocks : Blocks
        2x2 blocks available to this program.
    """

    theta: FloatArray
    objective: float
    multipliers: FloatArray
    blocks: Blocks
    _matrices: AffineFamily
    _program: tuple[AffineFamily, FloatArray, FloatArray]

    @property
    def v(self) -> FloatArray:
        """Absolute values of the first eigenvector of ``A(theta)``, computed on access."""
        return Point.at(self._matrices, self.theta).v

    @property
    def lower_bound(self) -> float:
        """Lower bound of the optimum, from the multipliers; each access solves a linear program."""
        family, c, bounds = self._program
        if family.colors is None:
            return -np.inf
        v = np.sqrt(self.multipliers)
        top = float(v.max(initial=0.0))
        v = np.maximum(v, top / LARGEST_RATIO) if top > 0 else np.ones_like(v)
        bound = outer_bound(family, c, bounds, v)
        return bound if bound < np.inf else -np.inf

    @property
    def gap(self) -> float:
        """``objective - lower_bound``."""
        return self.objective - self.lower_bound


class ProgramSequence:
    """The sequence of LPs with its incumbent and its history.

    A convex objective becomes an additional parameter t that is bounded below by tangents. Every LP
    adds one tangent.
    """

    def __init__(
        self,
        family: AffineFamily,
        c: FloatArray | Oracle,
        bounds: FloatArray,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        self.oracle = c if callable(c) else None
        self.matrices = family
        if callable(c):
            family = family.extended(0.0)
            bounds = np.vstack([bounds, [-np.inf, np.inf]])
            c = np.append(np.zeros(family.n_parameters - 1), 1.0)
        self.family = family
        self.c = c
        self.bounds = bounds
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.theta: FloatArray | None = None
        self.objective = np.inf
        self.point: LinearizationPoint | None = None
        self.blocks: Blocks | None = None
        self.history: list[Mapping[str, Any]] = []
        self.converged = False
        self.message = f"stopped after max_iter={max_iter} linear programs"

    def evaluate(self, theta: FloatArray) -> float:
        """Return the objective at `theta`; add the tangent of a convex one to the constraints."""
        if self.oracle is None:
            return float(self.c @ theta)
        value, gradient = self.oracle(theta.copy())
        g = np.asarray(gradient, dtype=np.float64)
        if g.shape != theta.shape or not (np.isfinite(value) and np.isfinite(g).all()):
            raise ValueError(
                f"c must return a finite value and {theta.size} finite derivatives, got {value!r} "
                f"and shape {g.shape}"
            )
        self.family = self.family.with_rows(np.append(g, -1.0), float(g @ theta - value))
        return float(value)

    def start(self, theta: FloatArray) -> None:
        """Make a feasible point the incumbent."""
        self.theta, self.objective = theta, self.evaluate(theta)

    def _solve(self, blocks: Blocks) -> ProgramResult | None:
        """Solve one LP; set `message` and return None if the solver found no optimum."""
        program = inner_program(self.family, self.c, self.bounds, blocks)
        if program.status == "unbounded":
            # Every ray of the LP is a ray of psd matrices, so the psd problem is unbounded too.
            raise ValueError(
                "the objective is unbounded below: along some direction of theta it decreases "
                "without limit while the matrix stays psd; pass bounds"
            )
        if program.status == "optimal":
            return program
        if self.theta is None and program.status == "infeasible":
            raise ValueError(
                "no theta within the bounds gives every edge its sign, so the problem is infeasible"
            )
        self.message = f"the LP solver stopped: {program.message}"
        return None

    def _record(self, **values: Any) -> bool:
        """Add an entry to the history and return whether the callback requests a stop."""
        entry = MappingProxyType({"iteration": len(self.history) + 1, **values})
        self.history.append(entry)
        if self.callback is not None and self.callback(entry) is True:
            self.message = "stopped by the callback"
            return True
        return False

    def _point(self, x: FloatArray, blocks: Blocks) -> LinearizationPoint:
        """Return the current state with the multipliers x."""
        assert self.theta is not None
        program = (self.family, self.c, self.bounds)
        return LinearizationPoint(self.theta, self.objective, x, blocks, self.matrices, program)

    def by_multipliers(self, blocks: Blocks) -> Iterator[LinearizationPoint]:
        """Solve LPs and add the blocks that violate dual feasibility, until there are none."""
        while len(self.history) < self.max_iter:
            self.blocks = blocks
            program = self._solve(blocks)
            if program is None:
                break
            theta = program.theta if self.oracle is None else program.theta[:-1]
            before = self.objective
            value = self.evaluate(theta)
            if self.oracle is None or value < before:
                self.theta = theta
                self.objective = value
            diagonal = np.maximum(self.family.diagonal(program.theta), 0.0)
            i = self.family.i
            j = self.family.j
            excess = np.maximum(program.y - 2 * np.sqrt(program.x[i] * program.x[j]), 0.0)
            # Edge weights of a psd matrix are at most sqrt(A_ii A_jj), which bounds the possible
            # gain. The mean is added because a zero diagonal entry may become positive.
            room = diagonal + (diagonal.mean() or 1.0)
            above = self.objective - float(self.c @ program.theta)  # 0 for a linear objective
            violation = float(excess @ np.sqrt(room[i] * room[j])) + above
            size = float(np.abs(self.c * program.theta).sum() + program.x @ room)
            stop = self._record(
                objective=self.objective, violation=violation, blocks=int(blocks.edge.size)
            )
            self.point = self._point(program.x, blocks)
            yield self.point
            if violation <= self.tol * size:
                self.converged = True
                self.message = "the multipliers are dual feasible"
                break
            if stop:
                break
            # Unused blocks are dropped only after progress, to prevent cycling.
            fell = before - self.objective > 1e-3 * self.tol * size
            following = self._next_blocks(blocks, program, excess, drop=fell and above == 0.0)
            if following is None and above <= self.tol * size:
                self.message = (
                    f"reached the largest allowed ratio of two entries of v, {LARGEST_RATIO:g}; "
                    "the optimum is probably approached without being attained"
                )
                break
            blocks = following or blocks

    def _next_blocks(
        self, blocks: Blocks, program: ProgramResult, excess: FloatArray, *, drop: bool
    ) -> Blocks | None:
        """Return the blocks to keep plus, per violated edge, that with ratio ``sqrt(X_jj / X_ii)``.

        Return None if there is no new block.
        """
        family = self.family
        low = np.full(family.n_edges, np.inf)
        high = np.zeros(family.n_edges)
        np.minimum.at(low, blocks.edge, blocks.ratio)
        np.maximum.at(high, blocks.edge, blocks.ratio)
        x = np.maximum(program.x, np.finfo(float).tiny)
        ratio = np.sqrt(x[family.j]) / np.sqrt(x[family.i])
        # A zero multiplier would give an infinite ratio: limit the change per step to a factor 10.
        ratio = np.clip(ratio, low / 10.0, high * 10.0)
        ratio = np.clip(ratio, 1 / LARGEST_RATIO, LARGEST_RATIO)
        keep = (program.share > 0) | (not drop)
        bare = np.ones(family.n_edges, dtype=bool)
        bare[blocks.edge[keep]] = False
        # Without a block, an edge could never have weight again.
        add = np.flatnonzero(bare | (excess > 1e-12 * program.x.max(initial=0.0)))
        new = Blocks(add, ratio[add])
        if blocks.joined(new).n_distinct() == blocks.n_distinct():
            return None
        return Blocks(blocks.edge[keep], blocks.ratio[keep]).joined(new)

    def by_eigenvector(self, v: FloatArray) -> Iterator[LinearizationPoint]:
        """Align the discs at every optimum, until the objective stops decreasing."""
        while len(self.history) < self.max_iter:
            blocks = Blocks.from_scaling(self.family, v)
            program = self._solve(blocks)
            if program is None:
                break
            improved = self.objective - float(self.c @ program.theta)
            if improved > 0 or not self.history:
                self.theta, self.objective = program.theta, float(self.c @ program.theta)
            self.point = self._point(v * v, blocks)
            stop = self._record(objective=self.objective, blocks=int(blocks.edge.size))
            yield self.point
            size = float(np.abs(self.c * self.point.theta).sum())
            if improved <= self.tol * size and len(self.history) > 1:
                self.converged = True
                self.message = "the objective no longer decreases"
                break
            if stop:
                break
            v = Point.at(self.family, self.point.theta).v
