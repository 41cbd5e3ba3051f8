"""The modified dual (Dual') by an interior-point method (Clarabel), for small graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ..problem import GraphProblem
from .base import Outcome, Run, Solver
from .conic import clarabel_bytes, solve_clarabel
from .modified_dual import solve_modified_dual
from .sdr_form import check_dense_size

__all__ = ["ModifiedDualInteriorPoint"]


@dataclass(frozen=True, kw_only=True)
class ModifiedDualInteriorPoint(Solver):
    """Modified dual of the paper by Clarabel; labels from the first eigenvector of H.

    Parameters
    ----------
    tol : float, default=1e-6
        Tolerance of gap and feasibility.
    max_iter : int, default=200
        Most steps.

    Notes
    -----
    The optimum is a face and the labels depend on its point, see
    :mod:`gdpa.solvers.modified_dual`. Memory grows with n^4.
    """

    name = "modified-dual-interior-point"
    summary = "the paper's modified dual by interior point (Clarabel), small graphs"
    kind = "relaxation"
    extras = (("clarabel", "sdp"),)

    max_iter: int = 200

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes + 2
        advice = "modified-dual-admm, sdr-interior-point, sdr-low-rank"
        check_dense_size(self.name, problem, n, clarabel_bytes(n), advice)
        engine = partial(solve_clarabel, tol=self.tol, max_iter=self.max_iter)
        return solve_modified_dual(problem, run, engine, "Clarabel")
