"""Linear programs that grow by rows: maximise w'x over [0, 1] subject to odd-cycle inequalities.

HiGHS solves them by interior points or by the dual simplex method. With the extra ``cuts`` (package
highspy) the simplex method starts from the last basis; with SciPy alone there are no interior
points, and every program is solved from the beginning, which is much slower for more than a few
hundred edges.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..errors import require
from .odd_cycles import Cycle

# Reduced costs are accurate to this, in units of the mean weight. Weights of a few hundred thousand
# with integer cuts need a bound that is accurate to 1e-7 of the sum.
_TOLERANCE = 1e-9
# Relative gap of an interior point.
_TOLERANCE_INSIDE = 1e-3


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """A solution of the linear program.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Edges, between 0 and 1.
    y : ndarray of shape (rows,)
        Multipliers of the inequalities, not negative.
    slack : ndarray of shape (rows,)
        Right side minus left side of the inequalities at x.
    finished : bool
        Whether the optimum was reached before the deadline. The multipliers are valid anyway.
    """

    x: FloatArray
    y: FloatArray
    slack: FloatArray
    finished: bool


class Program(Protocol):
    """A linear program with rows that can be added and dropped."""

    iterations: int
    has_interior: bool  # whether it can return interior points

    def add(self, cycles: list[Cycle]) -> None:
        """Add inequalities."""

    def drop(self, rows: NDArray[np.intp]) -> None:
        """Remove inequalities."""

    def fix(self, values: dict[int, int]) -> None:
        """Fix these edges at 0 or 1 and free all others."""

    def solve(self, deadline: float, *, interior: bool = False) -> ProgramSolution:
        """Solve the program, or stop at a value of ``time.monotonic()``.

        With `interior`, the solution is an interior point of low accuracy.
        """


def cycle_program(weights: FloatArray) -> Program:
    """Return an empty program for the weights of the edges: by highspy if it is installed."""
    if has_highspy():
        return HighsProgram(weights)
    return ScipyProgram(weights)


def has_highspy() -> bool:
    """Return whether the extra ``cuts`` is installed."""
    return importlib.util.find_spec("highspy") is not None


def _mean_size(weights: FloatArray) -> float:
    """Return the mean absolute weight; 1 without edges."""
    return float(np.abs(weights).mean()) if weights.size else 1.0


class HighsProgram:
    """The program in HiGHS, which keeps its basis when rows are added or dropped."""

    has_interior = True

    def __init__(self, weights: FloatArray) -> None:
        highspy = require("highspy", "cuts")
        m = weights.size
        self.iterations = 0
        self.right: list[float] = []
        self.fixed: dict[int, int] = {}
        self.scale = _mean_size(weights)
        self.highs: Any = highspy.Highs()
        options = {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",
            "solver": "simplex",
            "run_crossover": "off",
            "ipm_optimality_tolerance": _TOLERANCE_INSIDE,
            "dual_feasibility_tolerance": _TOLERANCE,
            "primal_feasibility_tolerance": _TOLERANCE,
        }
        for name, value in options.items():
            self.highs.setOptionValue(name, value)
        self.highs.addVars(m, np.zeros(m), np.ones(m))
        columns = np.arange(m, dtype=np.int32)
        self.highs.changeColsCost(m, columns, -weights / self.scale)

    def add(self, cycles: list[Cycle]) -> None:
        """Add inequalities."""
        if not cycles:
            return
        starts = np.cumsum([0, *(len(cycle.edges) for cycle in cycles)])
        right = [float(cycle.right_side) for cycle in cycles]
        self.highs.addRows(
            len(cycles),
            np.full(len(cycles), -np.inf),
            np.array(right),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate([cycle.edges for cycle in cycles]).astype(np.int32),
            np.concatenate([cycle.signs for cycle in cycles]),
        )
        self.right += right

    def drop(self, rows: NDArray[np.intp]) -> None:
        """Remove inequalities."""
        self.highs.deleteRows(rows.size, rows.astype(np.int32))
        self.right = np.delete(self.right, rows).tolist()

    def fix(self, values: dict[int, int]) -> None:
        """Fix these edges at 0 or 1 and free all others."""
        for edge in self.fixed.keys() - values.keys():
            self.highs.changeColBounds(edge, 0.0, 1.0)
        for edge, value in values.items():
            if self.fixed.get(edge) != value:
                self.highs.changeColBounds(edge, float(value), float(value))
        self.fixed = dict(values)

    def solve(self, deadline: float, *, interior: bool = False) -> ProgramSolution:
        """Solve the program, or stop at a value of ``time.monotonic()``."""
        left = max(deadline - time.monotonic(), 0.0)
        self.highs.setOptionValue("solver", "ipm" if interior else "simplex")
        used = self.highs.getRunTime()
        self.highs.setOptionValue("time_limit", min(used + left, 1e20))
        self.highs.run()
        info = self.highs.getInfo()
        self.iterations += max(int(info.simplex_iteration_count), 0)
        if interior:
            # One step factorises a matrix of the rows, which costs about as much as so many pivots.
            self.iterations += max(int(info.ipm_iteration_count), 0) * (1 + len(self.right) // 100)
        solution = self.highs.getSolution()
        finished = str(self.highs.getModelStatus()).endswith("kOptimal")
        x = np.clip(np.array(solution.col_value), 0.0, 1.0)
        y = np.maximum(-np.array(solution.row_dual), 0.0) * self.scale
        slack = np.array(self.right) - np.array(solution.row_value)
        return ProgramSolution(x, y, slack, finished)


class ScipyProgram:
    """The program in ``scipy.optimize.linprog``, solved from the beginning every time."""

    has_interior = False

    def __init__(self, weights: FloatArray) -> None:
        self.iterations = 0
        self.scale = _mean_size(weights)
        self.cost = -weights / self.scale
        self.cycles: list[Cycle] = []
        self.bounds = np.tile([0.0, 1.0], (weights.size, 1))

    def add(self, cycles: list[Cycle]) -> None:
        """Add inequalities."""
        self.cycles += cycles

    def drop(self, rows: NDArray[np.intp]) -> None:
        """Remove inequalities."""
        gone = set(rows.tolist())
        self.cycles = [cycle for k, cycle in enumerate(self.cycles) if k not in gone]

    def fix(self, values: dict[int, int]) -> None:
        """Fix these edges at 0 or 1 and free all others."""
        self.bounds[:] = [0.0, 1.0]
        for edge, value in values.items():
            self.bounds[edge] = value

    def solve(self, deadline: float, *, interior: bool = False) -> ProgramSolution:
        """Solve the program, or stop at a value of ``time.monotonic()``."""
        from scipy.optimize import linprog

        m = self.cost.size
        right = np.array([cycle.right_side for cycle in self.cycles], dtype=np.float64)
        matrix = None
        if self.cycles:
            starts = np.cumsum([0, *(len(cycle.edges) for cycle in self.cycles)])
            columns = np.concatenate([cycle.edges for cycle in self.cycles])
            signs = np.concatenate([cycle.signs for cycle in self.cycles])
            matrix = sp.csr_array((signs, columns, starts), shape=(right.size, m))
        left = max(deadline - time.monotonic(), 1e-3)
        found = linprog(
            self.cost,
            A_ub=matrix,
            b_ub=right if self.cycles else None,
            bounds=self.bounds,
            method="highs-ds",
            options={"time_limit": min(left, 1e9), "presolve": False},
        )
        self.iterations += int(getattr(found, "nit", 0) or 0)
        if found.x is None:  # stopped by the time limit
            return ProgramSolution(np.full(m, 0.5), np.zeros(right.size), right * 0.0, False)
        x = np.clip(found.x, 0.0, 1.0)
        y = np.maximum(-found.ineqlin.marginals, 0.0) if self.cycles else np.zeros(0)
        slack = right - matrix @ x if matrix is not None else right
        return ProgramSolution(x, y * self.scale, slack, found.status == 0)
