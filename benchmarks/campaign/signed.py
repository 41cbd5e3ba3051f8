"""Maximum cuts, QUBOs and Ising models of any sign, against all assignments one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

import gdpa
from gdpa import BinaryQuadratic

from .outcome import RIGHT, generator, must, quiet, refused
from .solves import SLOW, best_of


def problem_of(rng: np.random.Generator) -> Any:
    """A random problem of at most nine variables."""
    n = int(rng.integers(2, 10))
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 1))
    kind = rng.random()
    if kind < 0.3:
        A = np.rint(2 * A)  # ties, and steps that a bound can be rounded to
    elif kind < 0.5:
        A *= 10.0 ** rng.uniform(-150, 150, (n, n))
    elif kind < 0.6:
        A *= 10.0 ** rng.uniform(-320, 308)
    elif kind < 0.65:  # sums beyond the largest number
        A = np.sign(A) * 1.7e308
    A = np.triu(A, 1)
    A = A + A.T
    match int(rng.integers(4)):
        case 0:
            return BinaryQuadratic.max_cut(A)
        case 1:
            return BinaryQuadratic.qubo(A + np.diag(rng.normal(size=n)))
        case 2:
            return BinaryQuadratic.ising(rng.normal(size=n) if rng.random() < 0.7 else None, A)
        case _:
            return BinaryQuadratic(A, anchor=int(rng.integers(n)))


def run(seed: int) -> str:
    """One problem, one method."""
    rng = generator("signed", seed)
    names = [m.name for m in gdpa.list_methods() if m.signed] + ["auto"]
    method = str(rng.choice(names))
    if method in SLOW and rng.random() < 0.8:
        method = "auto"
    with quiet():
        try:
            problem = problem_of(rng)
            solution = gdpa.solve(problem, method)
        except (ValueError, MemoryError) as error:
            return refused(error)
        best, slack = best_of(problem)
        allowed = (0, 1) if problem.domain == "binary" else (-1, 1)
        must(np.isin(solution.labels, allowed).all(), f"labels other than {allowed}")
        must(np.isfinite(solution.objective), f"objective {solution.objective}")
        must(np.isfinite(problem.value(solution.labels)), "the value is not finite")
        must(not np.isnan(solution.gap), "gap NaN")
        must(np.isfinite(solution.scores).all(), "scores that are not finite")
        must(solution.objective >= best - slack, f"{solution.objective!r} below {best!r}")
        if solution.bound_status == "certified":
            bound = solution.lower_bound
            must(bound <= best + slack, f"false bound {bound!r} > {best!r} by {solution.method}")
        if solution.method == "branch-and-bound" and solution.converged:
            limit = best + slack + 1e-8 * abs(best)
            must(solution.objective <= limit, f"called optimal: {solution.objective!r}, {best!r}")
    return RIGHT
