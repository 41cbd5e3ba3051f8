"""The authors' program for the modified dual, to explain their column CDCS-20.

Their file ``cdcs20.m`` (https://github.com/bobchengyang/GDPA_matlab) hands CDCS, at tolerance 1e-3
and with at most 1,000 iterations,

    min  sum y_i + p ((1 + S)/2 - S_plus) + q ((1 + S)/2 - S_minus) + b'z
    s.t. blkdiag(-L + diag(y), 1e15 + p/2, -1e15 + q/2)  with  z_i -+ (p - q)/2  at (i, apex)  psd,

where S is the sum of b = 2 xh, over the positive and the negative labels S_plus and S_minus. The
Laplacian is not scaled, has the wrong sign, and the signs of z are not imposed; the numbers 1e15 on
the two apex corners are beyond what a solver with relative tolerance 1e-3 resolves beside entries
of L. Labels are read off H(y, z) with L in its right sign and y_(N+1) = p + q. CDCS is not
available in Python, so SCS takes its place at the same settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from gdpa.problem import GraphProblem
from gdpa.problem.dual import build_H, oriented
from gdpa.solution import DualVariables
from gdpa.solvers.base import Outcome, Run, Solver
from gdpa.solvers.conic import LMI, scs_bytes, solve_scs
from gdpa.solvers.sdr_form import check_dense_size


def authors_lmi(problem: GraphProblem, corner: float) -> LMI:
    """State the authors' program in the variables (y, p, q, z)."""
    n, known = problem.n_nodes, problem.labeled
    b = 2.0 * problem.labels[known]
    positive = b > 0
    F0 = np.zeros((n + 2, n + 2))
    F0[:n, :n] = -problem.L.toarray()
    F0[n, n], F0[n + 1, n + 1] = corner, -corner
    apex = np.where(positive, n, n + 1)
    toward_q = np.where(positive, 0.5, -0.5)
    p, q, z = np.full(known.size, n), np.full(known.size, n + 1), n + 2 + np.arange(known.size)
    index = np.arange(n + 2)
    share = (1.0 + b.sum()) / 2.0
    sums = [share - b[positive].sum(), share - b[~positive].sum()]
    return LMI(
        c=np.concatenate([np.ones(n), sums, b]),
        F0=F0,
        variable=np.concatenate([index, z, p, q]).astype(np.intp),
        row=np.concatenate([index, known, known, known]).astype(np.intp),
        column=np.concatenate([index, apex, apex, apex]).astype(np.intp),
        value=np.concatenate([np.ones(n), [0.5, 0.5], np.ones(known.size), -toward_q, toward_q]),
        nonnegative=np.empty(0, dtype=np.intp),
    )


@dataclass(frozen=True, kw_only=True)
class ModifiedDualPublished(Solver):
    """The authors' program for the modified dual, by SCS in place of CDCS.

    Parameters
    ----------
    tol : float, default=1e-3
        Absolute and relative tolerance of SCS.
    max_iter : int, default=1000
        Most iterations of SCS.
    corner : float, default=1e15
        What the authors add to one apex corner and subtract from the other.
    """

    name = "modified-dual-published"
    summary = "the authors' program for the modified dual, by SCS"
    kind = "relaxation"
    extras = (("scs", "sdp"),)

    tol: float = 1e-3
    max_iter: int = 1000
    corner: float = 1e15

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes
        advice = "sdr-interior-point, sdr-low-rank"
        check_dense_size(self.name, problem, n + 2, scs_bytes(n + 2), advice)
        with run.stage("solve"):
            result = solve_scs(
                authors_lmi(problem, self.corner), tol=self.tol, max_iter=self.max_iter
            )
        x = np.nan_to_num(result.x)
        dual = DualVariables(y=np.append(x[:n], x[n] + x[n + 1]), z=x[n + 2 :])
        with run.stage("eigenvector"):
            vector = eigh(build_H(problem, dual).toarray(), subset_by_index=[0, 0])[1][:, 0]
        return Outcome(
            scores=oriented(problem, vector, sign="first"),
            iterations=result.iterations,
            converged=result.converged,
            message=result.message,
            dual=dual,
        )
