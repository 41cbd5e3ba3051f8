"""What the authors of the paper ran, as far as their results show it.

The normalised Laplacian times 1e-15, H with its one last row (the two split rows merged), one LP by
an interior-point method at tolerance 1e-5, labels from the first eigenvector of H. The Laplacian is
far below the solver's tolerance: the interior point leaves ``y_u`` at some multiple of its barrier
parameter on unlabelled nodes, above the eigenvalue of the vector ``(xh, 1)`` on labelled nodes and
apex, and the first eigenvector becomes ``x_u ~ W_ul xh``: a one-step vote. On the central path the
order of the two is certain (a row's slack is the barrier parameter over its multiplier, 1 for
labelled nodes and apex, 1/2 for the others), so the slacks are taken from there; at a solver's own
last iterate it depends on how far off the path that is.

Entries of that eigenvector on unlabelled nodes are some 1e-9, below what a general eigenvalue
solver resolves, so they are computed from their own rows of ``(H - lmin) v = 0``. (The authors' did
not do so: in one run out of thirteen their error count is not the vote's.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..linalg import first_eigenvector, solve_spd
from ..problem import GraphProblem
from ..problem.dual import DualVariables, build_H, dual_objective, oriented
from .base import Outcome, Run, Solver
from .gdpa_lp import clarabel_lp

LAPLACIAN_SCALE = 1e-15
LP_TOLERANCE = 1e-5

FloatArray = NDArray[np.float64]


def _merged_lp(problem: GraphProblem) -> tuple[FloatArray, FloatArray]:
    """One LP with one row for the apex, y >= 0 and 0 <= a <= 1, at the aligned vector of all ones.

    The optimal face is unbounded in a; a box keeps the central path, and so the solver, on it.
    """
    n, m = problem.n_nodes, problem.n_labeled
    q = np.where(problem.labels == 0, np.abs(problem.bias), 0.0)
    base = np.append(problem.adjacency @ np.ones(n) - problem.diagonal + q, q.sum())
    a_node = sp.csr_array((-np.ones(m), (problem.labeled, np.arange(m))), shape=(n, m))
    a_rows = sp.vstack([a_node, sp.csr_array(-np.ones((1, m)))])
    rows = sp.hstack([sp.eye_array(n + 1), a_rows])
    box = sp.eye_array(n + 1 + m, format="csr")
    G = sp.vstack([rows, box, -box[n + 1 :]], format="csr")
    g = np.concatenate([base, np.zeros(n + 1 + m), np.full(m, -1.0)])
    cost = np.append(np.ones(n + 1), np.full(m, -2.0))
    # Evidence of any size: in its own unit, else the solver takes the program for infeasible.
    unit = max(1.0, float(np.abs(base).max()))
    t, slack = clarabel_lp(cost, G, g / unit, LP_TOLERANCE)
    t, slack = unit * t, unit * slack
    a = np.maximum(t[n + 1 :], 0.0)
    return base + slack[: n + 1] - a_rows @ a, a


@dataclass(frozen=True, kw_only=True)
class GDPAPublished(Solver):
    """What the authors ran; in effect a one-step vote.

    Parameters
    ----------
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`; there is one linear program, at a tolerance of its own.
    """

    name: ClassVar[str] = "gdpa-published"
    summary: ClassVar[str] = "GDPA as the authors ran it: one linear program, in effect a vote"
    kind: ClassVar[str] = "heuristic"
    extras: ClassVar[tuple[tuple[str, str], ...]] = (("clarabel", "sdp"),)

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        normal = GraphProblem(problem.W, problem.labels, bias=problem.bias, laplacian="normalized")
        scaled = normal.scaled(LAPLACIAN_SCALE)
        with run.stage("lp"):
            y, a = _merged_lp(scaled)
        dual = DualVariables(y=y, z=-problem.labels[problem.labeled] * a)
        # There is nothing to stop: recovery is all that is left.
        run.watch({"iteration": 1, "objective": dual_objective(scaled, dual)})
        with run.stage("recovery"):
            scores = _first_eigenvector(scaled, dual)
        return Outcome(
            scores=scores,
            iterations=1,
            message="one LP, as published",
            dual=dual,
            info={"laplacian_scale": LAPLACIAN_SCALE, "lp_tolerance": LP_TOLERANCE},
        )


def _first_eigenvector(problem: GraphProblem, dual: DualVariables) -> FloatArray:
    """First eigenvector of H, signed by the first label, each entry to high relative accuracy."""
    H = build_H(problem, dual)
    u = problem.unlabeled
    rest = np.append(problem.labeled, problem.n_nodes)
    rows = H[u]
    # Labelled nodes and apex are coupled to the others by 1e-15 only: their block alone decides.
    block = first_eigenvector(H[rest][:, rest], tol=1e-14, dense_below=rest.size + 1)
    K = (rows[:, u] - sp.diags_array(np.full(u.size, block.value))).tocsr()
    v = np.zeros(problem.n_nodes + 1)
    if K.diagonal().min() > 0:
        v[rest] = block.vector
        # Only their own rows see these entries; the scale takes the solve out of the denormals.
        drive = -(rows[:, rest] @ v[rest]) / LAPLACIAN_SCALE
        v[u] = LAPLACIAN_SCALE * np.asarray(solve_spd(K, drive, tol=1e-10).x).ravel()
    else:
        # The spectrum spans twelve decades: factorise while that is affordable.
        v = first_eigenvector(H, tol=1e-12, dense_below=3000).vector
    scores = oriented(problem, v).copy()
    largest = np.abs(scores[u]).max()
    scores[u] /= largest if largest > 0 else 1.0
    scores[problem.labeled] = problem.labels[problem.labeled]
    return scores
