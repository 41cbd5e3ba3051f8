"""Reproduce the effective behaviour of the authors' program.

The authors' program is ``gdpa.m`` of https://github.com/bobchengyang/GDPA_matlab. This module keeps
its scale of the Laplacian, the merged row, and the kind and tolerance of the LP. The authors repeat
the LP without bounds and use LOBPCG from a random start. Here there is one LP, and the entries of
the eigenvector are exact.

The steps are: the normalised Laplacian times 1e-15, H with one last row (the two split rows
merged), one LP by an interior-point method at tolerance 1e-5, and labels from the first eigenvector
of H. The Laplacian is far below the solver's tolerance. On unlabelled nodes the interior point
leaves ``y_u`` at some multiple of its barrier parameter, above the eigenvalue of the vector ``(xh,
1)`` on labelled nodes and apex. The first eigenvector becomes ``x_u ~ W_ul xh``, a one-step vote.
This order is certain on the central path, where a row's slack is the barrier parameter over its
multiplier (1 for labelled nodes and apex, 1/2 for the others). Therefore the slacks of the central
path are used, not those of the solver's last iterate.

The entries of this eigenvector on unlabelled nodes are about 1e-9, below the resolution of a
general eigenvalue solver. They are computed from their own rows of ``(H - lmin) v = 0``. The
authors did not do this: in one run out of thirteen their error count differs from that of the vote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray
from ...linalg import first_eigenvector, solve_spd
from ...problem import GraphProblem
from ...problem.dual import DualVariables, build_H, dual_objective, oriented
from ..base import Outcome, Run, Solver
from ..gdpa_lp import clarabel_lp

LAPLACIAN_SCALE = 1e-15
LP_TOLERANCE = 1e-5


def _merged_lp(problem: GraphProblem) -> tuple[FloatArray, FloatArray]:
    """Solve one LP with one row for the apex, y >= 0 and 0 <= a <= 1, aligned by all ones."""
    # The optimal face is unbounded in a. The bound on a keeps the central path finite.
    n = problem.n_nodes
    m = problem.n_labeled
    q = np.where(problem.labels == 0, np.abs(problem.bias), 0.0)
    base = np.append(problem.adjacency @ np.ones(n) - problem.diagonal + q, q.sum())
    a_node = sp.csr_array((-np.ones(m), (problem.labeled, np.arange(m))), shape=(n, m))
    a_rows = sp.vstack([a_node, sp.csr_array(-np.ones((1, m)))])
    rows = sp.hstack([sp.eye_array(n + 1), a_rows])
    box = sp.eye_array(n + 1 + m, format="csr")
    G = sp.vstack([rows, box, -box[n + 1 :]], format="csr")
    g = np.concatenate([base, np.zeros(n + 1 + m), np.full(m, -1.0)])
    cost = np.append(np.ones(n + 1), np.full(m, -2.0))
    # Scaled by the evidence, because the solver would otherwise report infeasibility.
    unit = max(1.0, float(np.abs(base).max()))
    t, slack = clarabel_lp(cost, G, g / unit, LP_TOLERANCE)
    t = unit * t
    slack = unit * slack
    a = np.maximum(t[n + 1 :], 0.0)
    return base + slack[: n + 1] - a_rows @ a, a


@dataclass(frozen=True, kw_only=True)
class GDPAPublished(Solver):
    """Follow the authors' program, which is effectively a one-step vote.

    Parameters
    ----------
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`; the single linear program has a fixed tolerance.
    """

    name: ClassVar[str] = "gdpa-published"
    summary: ClassVar[str] = "the authors' program after one linear program, effectively a vote"
    kind: ClassVar[str] = "heuristic"
    bytes_per_edge: ClassVar[float] = 166.0
    extras: ClassVar[tuple[tuple[str, str], ...]] = (("clarabel", "sdp"),)

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        normal = GraphProblem(problem.W, problem.labels, bias=problem.bias, laplacian="normalized")
        scaled = normal.scaled(LAPLACIAN_SCALE)
        with run.stage("lp"):
            y, a = _merged_lp(scaled)
        dual = DualVariables(y=y, z=-problem.labels[problem.labeled] * a)
        # The result is ignored, because only recovery is left.
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
    """Return the first eigenvector of H, signed by the first label, accurate in every entry."""
    H = build_H(problem, dual)
    u = problem.unlabeled
    rest = np.append(problem.labeled, problem.n_nodes)
    rows = H[u]
    # Labelled nodes and apex are coupled to the others by only 1e-15, so their block is enough.
    block = first_eigenvector(H[rest][:, rest], tol=1e-14, dense_below=rest.size + 1)
    K = (rows[:, u] - sp.diags_array(np.full(u.size, block.value))).tocsr()
    v = np.zeros(problem.n_nodes + 1)
    if K.diagonal().min() > 0:
        v[rest] = block.vector
        # The division by the scale keeps the solve away from denormal numbers.
        drive = -(rows[:, rest] @ v[rest]) / LAPLACIAN_SCALE
        v[u] = LAPLACIAN_SCALE * np.asarray(solve_spd(K, drive, tol=1e-10).x).ravel()
    else:
        # The spectrum spans twelve decades, so a factorisation is used while it is affordable.
        v = first_eigenvector(H, tol=1e-12, dense_below=3000).vector
    scores = oriented(problem, v, sign="first").copy()
    largest = np.abs(scores[u]).max()
    scores[u] /= largest if largest > 0 else 1.0
    scores[problem.labeled] = problem.labels[problem.labeled]
    return scores
