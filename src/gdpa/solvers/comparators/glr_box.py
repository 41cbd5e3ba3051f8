"""GLR-box: the paper's problem (P) with labels relaxed to the box [-1, 1].

    min  x' L x - 2 h' x    over  -1 <= x <= 1,  labels fixed.

It is convex. Without the box the minimiser solves ``L_uu x_u = A_ul label + h``. If this solution
lies in the box, it is also the minimiser over the box. For the combinatorial Laplacian without
evidence this follows from the maximum principle; otherwise the solution is checked. A quadratic
program with bounds (Clarabel, extra ``sdp``) is solved only if the solution leaves the box.

Every labelling lies in the box, so the value of the relaxation is a lower bound of (P). The
returned bound is that of the tangent at the solution. It holds at any point, so it does not depend
on the accuracy of the solver (:func:`~gdpa.gershgorin.bounds.tangent_bound`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray
from ...gershgorin.bounds import tangent_bound
from ...linalg import solve_spd
from ...problem import GraphProblem
from ..base import Outcome, Run, Solver
from ..conic import clarabel_qp


@dataclass(frozen=True, kw_only=True)
class GLRBox(Solver):
    """Solve the box relaxation of the graph Laplacian regulariser.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative residual of the linear system, and gap of the quadratic program.
    """

    name = "glr-box"
    summary = "labels relaxed to [-1, 1]: a quadratic program with box constraints"
    kind = "relaxation"
    bytes_per_edge = 90.0

    tol: float = 1e-8

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        u = problem.unlabeled
        with run.stage("setup"):
            A_uu = problem.adjacency[u][:, u]
            K = (sp.diags_array(problem.diagonal[u]) - A_uu).tocsr()
            c = problem.vote
        # K is singular without labels. Without evidence every component has a label.
        evidence = bool(problem.bias.any())
        inactive = False
        message = ""
        iterations = 0
        converged = False
        x = np.zeros(u.size)
        if problem.n_labeled:
            with run.stage("harmonic"):
                result = solve_spd(
                    K,
                    c,
                    x0=None if self.x0 is None else self.x0[u],
                    tol=self.tol,
                    max_iter=self.max_iter,
                    preconditioner="jacobi",
                    callback=run.watch,
                )
            x = result.x
            iterations = result.iterations
            converged = result.converged
            message = result.message
            # By the maximum principle only errors of the iteration leave the box in this case.
            sure = problem.laplacian == "combinatorial" and not evidence
            reach = float(np.abs(x).max())
            inactive = sure or (converged and reach <= 1.0 + 10.0 * self.tol)
        if not inactive:
            with run.stage("box-qp"):
                x, steps, converged, message = _box_qp(K, c, self.tol, self.max_iter)
            iterations += steps
        scores = problem.labels.astype(np.float64)
        scores[u] = np.clip(x, -1.0, 1.0)
        with run.stage("bound"):
            bound = tangent_bound(problem, scores)
        return Outcome(
            scores=scores,
            lower_bound=bound,
            bound_status="certified",
            bound_kind="box",
            iterations=iterations,
            converged=converged,
            message=message,
            info={"box": "inactive" if inactive else "active"},
        )


def _box_qp(
    K: sp.csr_array, c: FloatArray, tol: float, max_iter: int
) -> tuple[FloatArray, int, bool, str]:
    """Minimise ``x' K x - 2 c' x`` over the box by Clarabel."""
    n = c.size
    scale = max(float(K.diagonal().max()), float(np.abs(c).max()))
    scaled = sp.csr_array((K.data / scale, K.indices, K.indptr), shape=K.shape)
    eye = sp.eye_array(n)
    box = sp.vstack([eye, -eye])
    result = clarabel_qp(scaled * 2.0, -2.0 * (c / scale), box, np.ones(2 * n), tol, max_iter)
    x = np.asarray(result.x, dtype=np.float64)
    status = str(result.status)
    if not np.isfinite(x).all():
        return np.zeros(n), int(result.iterations), False, f"box QP: {status}"
    return x, int(result.iterations), status == "Solved", f"box QP: {status}"
