"""The sequence of linear programs behind :func:`gdpa.gershgorin.linearize`, by either rule.

What the rules are and what they reach is told in ``linearization.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import ConvergenceWarning
from .alignment import align
from .discs import FloatArray
from .family import AffineFamily
from .linear_program import LARGEST_RATIO, Blocks, ProgramResult, inner_program, outer_bound

Callback = Callable[[Mapping[str, Any]], Any]
Oracle = Callable[[FloatArray], tuple[float, Any]]


@dataclass(frozen=True)
class Point:
    """A parameter vector with the first eigenpair of its matrix."""

    theta: FloatArray
    lambda_min: float
    v: FloatArray

    @classmethod
    def at(cls, family: AffineFamily, theta: FloatArray, v: FloatArray | None = None) -> Point:
        """Align ``A(theta)``, starting from `v` where one is given."""
        with warnings.catch_warnings():
            # Every positive v is valid; how well it is aligned only decides how good the LP is.
            warnings.simplefilter("ignore", ConvergenceWarning)
            aligned = align(family.comparison(theta), v=v)
        return cls(theta, aligned.lambda_min, np.abs(aligned.v))


class InfeasibleError(Exception):
    """The first LP has no feasible point."""


@dataclass(frozen=True)
class LinearizationPoint:
    """Where the linearisation stands after one linear program.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,)
        The best parameters so far; with linear costs those of this program.
    objective : float
        Their objective.
    multipliers : ndarray of shape (n_nodes,)
        Multipliers of the disc rows: the diagonal of the dual matrix.
    blocks : Blocks
        2x2 blocks that the program could choose among.
    """

    theta: FloatArray
    objective: float
    multipliers: FloatArray
    blocks: Blocks
    _program: tuple[AffineFamily, FloatArray, FloatArray]
    _tail: int

    @property
    def v(self) -> FloatArray:
        """First eigenvector of ``A(theta)``, in absolute value; computed when asked for."""
        family, _, _ = self._program
        return Point.at(family, np.append(self.theta, np.zeros(self._tail))).v

    @property
    def lower_bound(self) -> float:
        """Bound of the optimum from the multipliers: one more linear program, when asked for."""
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
    """The sequence of LPs, its incumbent and its history.

    A convex objective is a last parameter t above its tangents: every LP adds one tangent.
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
        if callable(c):
            family, bounds = family.extended(0.0), np.vstack([bounds, [-np.inf, np.inf]])
            c = np.append(np.zeros(family.n_parameters - 1), 1.0)
        self.family, self.c, self.bounds = family, c, bounds
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.theta: FloatArray | None = None
        self.objective = np.inf
        self.point: LinearizationPoint | None = None
        self.blocks: Blocks | None = None
        self.history: list[Mapping[str, Any]] = []
        self.converged = False
        self.message = f"stopped after max_iter={max_iter} linear programs"

    def evaluate(self, theta: FloatArray) -> float:
        """Objective at `theta`; a convex one leaves its tangent among the constraints."""
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
        """Take a feasible point as the incumbent."""
        self.theta, self.objective = theta, self.evaluate(theta)

    def _solve(self, blocks: Blocks) -> ProgramResult | None:
        """One LP; None (and a message) where the solver has no answer to go on with."""
        program = inner_program(self.family, self.c, self.bounds, blocks)
        if program.status == "unbounded":
            # A ray of the LP is a ray of psd matrices: the psd problem is unbounded too.
            raise ValueError(
                "the objective is unbounded below: some direction of theta lowers it for ever "
                "and keeps the matrix psd; give bounds"
            )
        if program.status == "optimal":
            return program
        if self.theta is None and program.status == "infeasible":
            raise InfeasibleError
        self.message = f"the LP solver stopped: {program.message}"
        return None

    def _record(self, **values: Any) -> bool:
        """Keep an entry of the history; whether the callback asks to stop."""
        entry = MappingProxyType({"iteration": len(self.history) + 1, **values})
        self.history.append(entry)
        if self.callback is not None and self.callback(entry) is True:
            self.message = "stopped by the callback"
            return True
        return False

    def _point(self, theta: FloatArray, x: FloatArray, blocks: Blocks) -> LinearizationPoint:
        program = (self.family, self.c, self.bounds)
        tail = 0 if self.oracle is None else 1
        return LinearizationPoint(theta, self.objective, x, blocks, program, tail)

    def by_multipliers(self, blocks: Blocks) -> Iterator[LinearizationPoint]:
        """Offer the LP the blocks its multipliers ask for, until they ask for none."""
        while len(self.history) < self.max_iter:
            self.blocks = blocks
            program = self._solve(blocks)
            if program is None:
                break
            theta = program.theta if self.oracle is None else program.theta[:-1]
            before, value = self.objective, self.evaluate(theta)
            if self.oracle is None or value < before:
                self.theta, self.objective = theta, value
            diagonal = np.maximum(self.family.diagonal(program.theta), 0.0)
            i, j = self.family.i, self.family.j
            excess = np.maximum(program.y - 2 * np.sqrt(program.x[i] * program.x[j]), 0.0)
            # A psd matrix has weights of at most sqrt(A_ii A_jj): what the excess can be worth. The
            # mean is added because a diagonal entry that is zero now need not stay so.
            room = diagonal + (diagonal.mean() or 1.0)
            above = self.objective - float(self.c @ program.theta)  # 0 for a linear objective
            violation = float(excess @ np.sqrt(room[i] * room[j])) + above
            size = float(np.abs(self.c * program.theta).sum() + program.x @ room)
            stop = self._record(
                objective=self.objective, violation=violation, blocks=int(blocks.edge.size)
            )
            assert self.theta is not None
            self.point = self._point(self.theta, program.x, blocks)
            yield self.point
            if violation <= self.tol * size:
                self.converged = True
                self.message = "the multipliers ask for no other block"
                break
            if stop:
                break
            # Unused blocks are dropped only when that cannot lead round in a circle.
            fell = before - self.objective > 1e-3 * self.tol * size
            following = self._next_blocks(blocks, program, excess, drop=fell and above == 0.0)
            if following is None and above <= self.tol * size:
                self.message = (
                    f"stopped at the largest ratio of two entries of v, {LARGEST_RATIO:g}: the "
                    "optimum seems to be approached without being attained"
                )
                break
            blocks = following or blocks

    def _next_blocks(
        self, blocks: Blocks, program: ProgramResult, excess: FloatArray, *, drop: bool
    ) -> Blocks | None:
        """Blocks in use, and per violated edge the one with ratio ``sqrt(X_jj / X_ii)``.

        None where every block asked for is there already.
        """
        family = self.family
        low = np.full(family.n_edges, np.inf)
        high = np.zeros(family.n_edges)
        np.minimum.at(low, blocks.edge, blocks.ratio)
        np.maximum.at(high, blocks.edge, blocks.ratio)
        x = np.maximum(program.x, np.finfo(float).tiny)
        ratio = np.sqrt(x[family.j]) / np.sqrt(x[family.i])
        # A multiplier of zero asks for an infinite ratio: one step changes it by no more than 10.
        ratio = np.clip(ratio, low / 10.0, high * 10.0)
        ratio = np.clip(ratio, 1 / LARGEST_RATIO, LARGEST_RATIO)
        keep = (program.share > 0) | (not drop)
        bare = np.ones(family.n_edges, dtype=bool)
        bare[blocks.edge[keep]] = False
        # Without a block an edge could never get weight again.
        add = np.flatnonzero(bare | (excess > 1e-12 * program.x.max(initial=0.0)))
        following = Blocks(
            np.concatenate([blocks.edge[keep], add]),
            np.concatenate([blocks.ratio[keep], ratio[add]]),
        )
        every = np.column_stack(
            [
                np.concatenate([blocks.edge, add]),
                np.round(np.log(np.concatenate([blocks.ratio, ratio[add]])), 12),
            ]
        )
        distinct = len(np.unique(every, axis=0))
        return following if distinct > len(np.unique(every[: blocks.edge.size], axis=0)) else None

    def by_eigenvector(self, v: FloatArray) -> Iterator[LinearizationPoint]:
        """Re-align at every optimum, until the objective no longer moves."""
        while len(self.history) < self.max_iter:
            blocks = Blocks.from_scaling(self.family, v)
            program = self._solve(blocks)
            if program is None:
                break
            improved = self.objective - float(self.c @ program.theta)
            if improved > 0 or not self.history:
                self.theta, self.objective = program.theta, float(self.c @ program.theta)
            assert self.theta is not None
            self.point = self._point(self.theta, v * v, blocks)
            stop = self._record(objective=self.objective, blocks=int(blocks.edge.size))
            yield self.point
            size = float(np.abs(self.c * self.theta).sum())
            if improved <= self.tol * size and len(self.history) > 1:
                self.converged = True
                self.message = "the objective no longer moves"
                break
            if stop:
                break
            v = Point.at(self.family, self.theta).v
