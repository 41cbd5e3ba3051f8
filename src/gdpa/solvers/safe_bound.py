"""Certified bounds, rounded in the safe direction.

A method that proves labels to be optimal returns their objective as the bound. That number is the
result of rounded sums and may exceed the exact optimum by a few units in the last place. So a
certified bound is at most the objective minus :func:`~gdpa.gershgorin.bounds.rounding_margin`.
Where all sums are exact, as for integers, nothing is subtracted.

Numbers below 1e-290 lose digits when they are halved or multiplied. There, nothing is certified.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..gershgorin.bounds import rounding_margin
from ..problem import BinaryQuadratic, Problem
from ..problem.exact_sums import exact_sums

# Below this, rounding errors are no longer proportional to the numbers.
SMALLEST = 1e-290


def safe_bound(problem: Problem, objective: float, bound: float) -> float | None:
    """Return a bound that rounding errors cannot have raised above the optimum.

    Parameters
    ----------
    problem : GraphProblem or BinaryQuadratic
        The problem.
    objective : float
        Computed objective of some labels.
    bound : float
        A lower bound, proved apart from rounding errors of the objective and of the problem's own
        sums.

    Returns
    -------
    float or None
        The bound; None if the numbers are too small for any.
    """
    numbers = _numbers(problem)
    largest = max(float(np.abs(part).max(initial=0.0)) for part in numbers)
    if 0.0 < largest < SMALLEST:
        return None
    margin = rounding_margin(problem)
    if bound <= objective - margin or _exact(problem, numbers):
        return bound
    return objective - margin


def _numbers(problem: Problem) -> tuple[FloatArray, ...]:
    if isinstance(problem, BinaryQuadratic):
        return problem.P.data, np.array([problem.constant])
    return problem.adjacency.data, problem.diagonal, problem.bias


def _exact(problem: Problem, numbers: tuple[FloatArray, ...]) -> bool:
    """Return whether the sums that state the problem and its objective are not rounded."""
    if isinstance(problem, BinaryQuadratic) and problem.rounded:
        return False
    return exact_sums(*numbers)
