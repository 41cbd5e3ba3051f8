"""The harmonic function: labels kept exactly, every other node the weighted mean of its neighbours.

    L_uu x_u = W_ul xh (+ h)

It is the labelled system with an infinite label weight and no self-loop (Laplace learning).
Evidence enters as an edge of weight |h| to a node with label sign(h). The objective is convex, so
its tangent at the solution bounds every labelling from below (:func:`convexity_bound`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..problem import GraphProblem
from ..system import LabeledSystem
from .base import Outcome, Run, Solver

__all__ = ["Harmonic", "convexity_bound"]


@dataclass(frozen=True, kw_only=True)
class Harmonic(Solver):
    """Harmonic extension of the labels.

    Parameters
    ----------
    preconditioner : str, default="auto"
        See :func:`gdpa.linalg.solve_spd`.
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`.
    """

    name: ClassVar[str] = "harmonic"
    summary: ClassVar[str] = "harmonic function / Laplace learning (limit of infinite label weight)"
    kind: ClassVar[str] = "limit"

    preconditioner: Any = "auto"

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        with run.stage("solve"):
            result = LabeledSystem.of_signs(problem).solve(
                tol=self.tol, max_iter=self.max_iter, x0=self.x0, preconditioner=self.preconditioner
            )
        run.report(iteration=result.iterations, residual=result.residual)
        return Outcome(
            scores=result.x,
            lower_bound=convexity_bound(problem, result.x),
            bound_status="certified",
            iterations=result.iterations,
            converged=result.converged,
            message=result.message,
            info={"residual": result.residual, "matvecs": result.matvecs},
        )


def convexity_bound(problem: GraphProblem, x: NDArray[np.float64]) -> float:
    """Lower bound of the problem from the tangent of its convex objective at `x`.

    For every labelling b, ``f(b) >= f(x) + 2 g'(b - x)`` with ``g = L x - h``, and the right-hand
    side is smallest at ``b = -sign(g)`` on the free nodes. At the minimiser over the box it is the
    relaxation's value; anywhere else it is still a proof.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    x : ndarray of shape (n_nodes,)
        Real values that agree with the labels.

    Returns
    -------
    float
        The bound, lowered by a bound on the rounding errors of the sums.
    """
    gradient = problem.diagonal * x - problem.adjacency @ x - problem.bias
    value = float(x @ gradient - problem.bias @ x)
    free = problem.unlabeled
    tangent = np.abs(gradient[free]) + gradient[free] * x[free]
    size = float(np.abs(x).max(initial=1.0)) ** 2
    magnitude = size * float(problem.diagonal.sum() + problem.adjacency.data.sum())
    magnitude += size * float(np.abs(problem.bias).sum())
    terms = np.sqrt(problem.adjacency.nnz + problem.n_nodes)
    margin = 8.0 * np.finfo(float).eps * terms * magnitude
    return float(value - 2.0 * float(tangent.sum()) - margin)
