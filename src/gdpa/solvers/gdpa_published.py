"""What the authors of the paper ran, as far as their results show it.

The normalised Laplacian times 1e-15, H with its one last row (the two split rows merged), one LP by
an interior-point method at tolerance 1e-5, labels from the first eigenvector of H. With the
Laplacian below the solver's own rounding, the LP leaves ``y_u`` near 1e-6 on unlabelled nodes, and
the first eigenvector becomes ``x_u ~ W_ul xh``: a one-step vote.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..dual import build_H, dual_objective
from ..graph.laplacian import laplacian_parts
from ..linalg import first_eigenvector
from ..problem import GraphProblem
from ..solution import DualVariables
from .base import Outcome, Run
from .gdpa_lp import clarabel_lp

__all__ = ["LAPLACIAN_SCALE", "LP_TOLERANCE", "published"]

LAPLACIAN_SCALE = 1e-15
LP_TOLERANCE = 1e-5


def _merged_lp(
    A: sp.csr_array,
    diagonal: NDArray[np.float64],
    q_fixed: NDArray[np.float64],
    problem: GraphProblem,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One LP with one row for the apex, at the aligned eigenvector of all ones."""
    n, m = problem.n_nodes, problem.n_labeled
    base = A @ np.ones(n) - diagonal + q_fixed
    a_node = sp.csr_array((-np.ones(m), (problem.labeled, np.arange(m))), shape=(n, m))
    a_apex = sp.csr_array(-np.ones((1, m)))
    G = sp.block_array([[sp.eye_array(n, n + 1), a_node], [_last_unit(n), a_apex]], format="csr")
    g = np.append(base, q_fixed.sum())
    cost = np.append(np.ones(n + 1), np.full(m, -2.0))
    t = clarabel_lp(cost, G, g, n + 1, LP_TOLERANCE)
    return t[: n + 1], np.maximum(t[n + 1 :], 0.0)


def _last_unit(n: int) -> sp.csr_array:
    return sp.csr_array(([1.0], ([0], [n])), shape=(1, n + 1))


def published(problem: GraphProblem, run: Run) -> Outcome:
    """Run the published variant.

    Parameters
    ----------
    problem : GraphProblem
        The problem; its weights are normalised whatever Laplacian it names.
    run : Run
        Book-keeping.

    Returns
    -------
    Outcome
        Scores without a bound.
    """
    A, diagonal = laplacian_parts(problem.W, "normalized")
    scaled = GraphProblem(
        problem.W, problem.labels, bias=problem.bias * LAPLACIAN_SCALE, laplacian="normalized"
    )
    scaled.adjacency, scaled.diagonal = A * LAPLACIAN_SCALE, diagonal * LAPLACIAN_SCALE
    q_fixed = np.where(scaled.labels == 0, np.abs(scaled.bias), 0.0)
    with run.stage("lp"):
        y, a = _merged_lp(scaled.adjacency, scaled.diagonal, q_fixed, scaled)
    dual = DualVariables(y=y, z=-problem.labels[problem.labeled] * a)
    run.report(iteration=1, objective=dual_objective(scaled, dual))
    with run.stage("recovery"):
        result = first_eigenvector(build_H(scaled, dual), tol=1e-14)
    v = result.vector
    first = problem.labeled[:1]
    sign = problem.labels[first[0]] * v[first[0]] if first.size else v[-1]
    scores = (1.0 if sign >= 0 else -1.0) * v[:-1]
    return Outcome(
        scores=scores / np.abs(scores).max(initial=np.finfo(float).tiny),
        iterations=1,
        message="one LP, as published",
        dual=dual,
        info={"laplacian_scale": LAPLACIAN_SCALE, "lp_tolerance": LP_TOLERANCE},
    )
