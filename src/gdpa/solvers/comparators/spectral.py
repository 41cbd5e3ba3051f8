"""SPEC: signs of the top eigenvector.

The constraint ``x_i^2 = 1`` of ``max x' P x`` is replaced by ``|x|^2 = n``. The maximiser is the
top eigenvector of P. Labels are its signs, oriented so that the anchor is +1. For a graph problem
the anchor is the apex of the reduced form, which represents the labelled nodes. Since sign vectors
have length sqrt(n),

    x' P x <= n lmax(P),   so that   objective >= constant - n lmax(P).

The bound is certified if a Cholesky factorisation proves lmax (dense, up to 2,000 variables).
Otherwise it is estimated from the Ritz value and its residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import first_eigenvector
from ...problem import GraphProblem, Problem
from ..base import Outcome, Run, Solver
from .sdcut import proved_smallest_eigenvalue


@dataclass(frozen=True, kw_only=True)
class Spectral(Solver):
    """Round the top eigenvector of the quadratic form to signs.

    Parameters
    ----------
    tol : float, default=1e-8
        Residual of the eigenvector, relative to the norm of the matrix.
    """

    name = "spectral"
    summary = "SPEC: signs of the top eigenvector"
    kind = "relaxation"
    bytes_per_edge = 68.0
    binary_quadratic = True
    signed = True

    tol: float = 1e-8

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        with run.stage("setup"):
            if isinstance(problem, GraphProblem):
                form = problem.reduced()
                P = form.P
                constant = form.constant
                apex = form.apex
                start = None if self.x0 is None else np.append(self.x0[form.nodes], 1.0)
            else:
                # The diagonal is included, because the paper's P has ones there.
                P = problem.P
                constant = 0.0
                apex = problem.anchor
                start = self.x0
        n = P.shape[0]
        with run.stage("eigenvector"):
            result = first_eigenvector(
                -P,
                v0=start,
                tol=self.tol,
                max_iter=self.max_iter,
                preconditioner=None,
                random_state=self.random_state,
                callback=run.watch,
            )
            v = -result.vector if result.vector[apex] < 0 else result.vector
        with run.stage("bound"):
            proved = None
            if n <= 2000:  # 32 MB dense
                proved = proved_smallest_eigenvalue(-P.toarray(), result.value)
            smallest = result.value - result.residual if proved is None else proved
            # -x'Px >= n lmin(-P). The margin covers the rounding of the sum.
            rounding = 4.0 * np.finfo(float).eps * (abs(constant) + abs(n * smallest))
            bound = constant + n * smallest - rounding
        return Outcome.of(
            result,
            problem.spread(v[:-1]) if isinstance(problem, GraphProblem) else v,
            lower_bound=bound,
            bound_status="estimated" if proved is None else "certified",
            bound_kind="eigenvalue",
            info={"eigenvalue": -result.value, "residual": result.residual},
        )
