"""The modified dual (Dual') by ADMM (SCS); the paper used CDCS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ..problem import GraphProblem
from .base import Outcome, Run, Solver
from .conic import scs_bytes, solve_scs
from .modified_dual import solve_modified_dual
from .sdr_form import check_dense_size

__all__ = ["ModifiedDualADMM"]


@dataclass(frozen=True, kw_only=True)
class ModifiedDualADMM(Solver):
    """Modified dual of the paper by SCS; labels from the first eigenvector of H.

    Parameters
    ----------
    tol : float, default=1e-5
        Absolute and relative tolerance of SCS.
    max_iter : int, default=20000
        Most iterations of SCS.

    Notes
    -----
    The optimum is a face and the labels depend on its point, see
    :mod:`gdpa.solvers.modified_dual`.
    """

    name = "modified-dual-admm"
    summary = "the paper's modified dual by ADMM (SCS)"
    kind = "relaxation"
    extras = (("scs", "sdp"),)

    tol: float = 1e-5
    max_iter: int = 20000

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes + 2
        check_dense_size(self.name, problem, n, scs_bytes(n), "sdr-interior-point, sdr-low-rank")
        engine = partial(solve_scs, tol=self.tol, max_iter=self.max_iter)
        return solve_modified_dual(problem, run, engine, "SCS")
