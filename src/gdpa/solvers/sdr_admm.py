"""SDR by ADMM (SCS), the paper's other way to the relaxation (it used CDCS).

The reduced form is given to SCS as ``min 1's, diag(s) - P psd``, whose dual variable is the X of
the relaxation. ADMM stops with residuals, so both points are repaired: X is scaled to a unit
diagonal, and s is raised until a factorisation proves it feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problem import Problem
from .base import Outcome, Run, Solver, StopSolver
from .conic import scs_bytes, solve_scs
from .sdr_form import check_dense_size, dense_form, reduced_size, sdr_outcome, with_unit_diagonal
from .sdr_interior_point import sdr_lmi

__all__ = ["SDRADMM"]


@dataclass(frozen=True, kw_only=True)
class SDRADMM(Solver):
    """Semidefinite relaxation by ADMM, with a certified bound.

    Parameters
    ----------
    tol : float, default=1e-5
        Absolute and relative tolerance of SCS.
    max_iter : int, default=20000
        Most iterations of SCS.
    keep_matrix : bool, default=False
        Keep the matrix X of the reduced form as ``info["X"]``.

    Notes
    -----
    Scores are the apex column of X. ``info["sdr_value"]`` is the value of the relaxation at X.
    """

    name = "sdr-admm"
    summary = "semidefinite relaxation by ADMM (SCS), certified bound"
    kind = "relaxation"
    binary_quadratic = True
    signed = True
    extras = (("scs", "sdp"),)

    tol: float = 1e-5
    max_iter: int = 20000
    keep_matrix: bool = False

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        n = reduced_size(problem)
        advice = "sdr-low-rank"
        check_dense_size(self.name, problem, n, scs_bytes(n), advice)
        with run.stage("reduce"):
            form = dense_form(problem)
        with run.stage("solve"):
            result = solve_scs(sdr_lmi(form.P), tol=self.tol, max_iter=self.max_iter)
            X = with_unit_diagonal(result.X)
        converged, message = result.converged, f"SCS: {result.status}"
        upper = form.constant - form.scale * float((form.P * X).sum())
        lower = form.constant - form.scale * float(result.x.sum())
        try:
            run.report(primal=upper, dual=lower, gap=upper - lower)
        except StopSolver:
            converged, message = False, "stopped by the callback"
        with run.stage("certify"):
            return sdr_outcome(
                problem,
                form,
                X,
                result.x,
                keep_matrix=self.keep_matrix,
                iterations=result.iterations,
                converged=converged,
                message=message,
            )
