"""The modified dual by ADMM at the tolerances of the paper's authors, to explain their column.

Theirs is CDCS at tolerance 1e-3 with at most 1,000 iterations, on data in which the Laplacian is
smaller than all else by 1e-15; ours is SCS with the same settings. The Laplacian is then below
every tolerance and the solver's own rounding decides: by symmetry all unlabelled nodes get nearly
one y, and the first eigenvector of H is the one-step vote where that y lies above the smallest
eigenvalue of the labelled part, and one class or chance where it lies below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..problem import GraphProblem
from ..problem.dual import build_H
from ..solution import DualVariables
from .base import Outcome, Run, Solver
from .conic import scs_bytes, solve_scs
from .modified_dual import modified_dual_lmi
from .sdr_form import check_dense_size

__all__ = ["ModifiedDualPublished"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ModifiedDualPublished(Solver):
    """Modified dual by SCS as the authors set CDCS; labels from the first eigenvector of H.

    Parameters
    ----------
    tol : float, default=1e-3
        Absolute and relative tolerance of SCS.
    max_iter : int, default=1000
        Most iterations of SCS.
    laplacian_scale : float, default=1e-15
        Factor of the Laplacian.

    Notes
    -----
    ``info["above"]`` says whether the unlabelled nodes' diagonal lies above the smallest eigenvalue
    of the labelled part: then the labels are the vote's. There is no bound.
    """

    name = "modified-dual-published"
    summary = "the paper's modified dual by ADMM at the authors' tolerances"
    kind = "relaxation"
    extras = (("scs", "sdp"),)

    tol: float = 1e-3
    max_iter: int = 1000
    laplacian_scale: float = 1e-15

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes
        check_dense_size(
            self.name, problem, n + 2, scs_bytes(n + 2), "sdr-interior-point, sdr-low-rank"
        )
        with run.stage("solve"):
            lmi = modified_dual_lmi(problem)
            scaled = replace(lmi, F0=lmi.F0 * self.laplacian_scale)
            result = solve_scs(scaled, tol=self.tol, max_iter=self.max_iter)
        signs = problem.labels[problem.labeled].astype(np.float64)
        a = np.maximum(result.x[n + 1 :], 0.0)
        dual = DualVariables(y=result.x[: n + 1], z=-signs * a)
        with run.stage("eigenvector"):
            H = build_H(problem, dual).toarray()
            H[:n, :n] += (self.laplacian_scale - 1.0) * problem.L.toarray()
            H[np.arange(n), np.arange(n)] = dual.y[:-1] + self.laplacian_scale * problem.diagonal
            scores, above = _first_eigenvector(problem, H)
        return Outcome(
            scores=scores,
            iterations=result.iterations,
            converged=result.converged,
            message=f"SCS: {result.status}",
            dual=dual,
            info={"above": above, "laplacian_scale": self.laplacian_scale},
        )


def _first_eigenvector(problem: GraphProblem, H: FloatArray) -> tuple[FloatArray, bool]:
    """First eigenvector of H turned by the first label; small entries from their own rows."""
    u, rest = problem.unlabeled, np.append(problem.labeled, problem.n_nodes)
    value, block = eigh(H[np.ix_(rest, rest)], subset_by_index=[0, 0])
    K = H[np.ix_(u, u)] - value[0] * np.eye(u.size)
    above = bool(np.diag(K).min(initial=1.0) > 0)
    v = np.zeros(problem.n_nodes + 1)
    if above:
        v[rest] = block[:, 0]
        v[u] = np.linalg.solve(K, -H[np.ix_(u, rest)] @ block[:, 0])
    else:
        v = eigh(H, subset_by_index=[0, 0])[1][:, 0]
    first = problem.labeled[:1]
    side = float(problem.labels[first[0]] * v[first[0]]) if first.size else float(v[-1])
    scores = np.asarray((v if side >= 0 else -v)[:-1])
    largest = float(np.abs(scores[u]).max(initial=0.0))
    if largest > 0:
        scores[u] /= largest
    scores[problem.labeled] = problem.labels[problem.labeled]
    return scores, above
