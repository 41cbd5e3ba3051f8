"""The paper's modified dual (Dual') as a semidefinite program, and labels from its optimum.

With ``z_i = -xh_i a_i``, ``a >= 0``,

    (Dual')  min  1'y + b'z   subject to   H_bar(y, z) psd,   a >= 0,

over all N nodes and both halves of the split apex. As in the paper, labelled nodes are not merged.
The labels are ``sign(xh_1 v_1 v)``, where v is the first eigenvector of H(y*, z*).

The optimal points form a face (see :mod:`gdpa.problem.dual`): every a >= 0 is optimal and
determines y. Therefore the labels depend on the point of the face at which a solver stops. An
interior-point method stops inside the face, ADMM where its path meets it. Two solvers may agree on
the value and disagree on the labels. This is a property of (Dual'), not of the solvers.

The labels are not good either. Inside the face lmin(H) > 0 and the constant mode dominates v, so on
the paper's full graphs all unlabelled nodes get one class. The two halves of the apex enter
differently, so the label weights differ between the classes, and the linear system of
:mod:`gdpa.system` with these weights is one-sided too. The authors' results for this method depend
on where their solver stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ...linalg.operator import EPS
from ...problem import GraphProblem
from ...problem.dual import DualVariables, build_H, build_H_bar, dual_objective, oriented
from ..base import Outcome, Run, Solver
from ..conic import LMI, ConicResult, clarabel_bytes, scs_bytes, solve_clarabel, solve_scs
from ..sdr_form import check_dense_size, proved_shift


def modified_dual_lmi(problem: GraphProblem) -> LMI:
    """State (Dual') in the variables (y, a), with ``c = (1, -2)`` and N + 2 rows of H_bar.

    Evidence h is a fixed edge of weight |h| to the half of the apex with its sign.
    """
    n = problem.n_nodes
    known = problem.labeled
    m = known.size
    # The halves of the apex.
    plus = n
    minus = n + 1
    F0 = build_H_bar(problem, DualVariables(np.zeros(n + 1), np.zeros(m))).toarray()

    signs = problem.labels[known]
    a = n + 1 + np.arange(m)
    positive = np.flatnonzero(signs > 0)
    index = np.arange(n)
    ones = np.ones(positive.size)
    variable = np.concatenate([index, [n], a, a[positive], a[positive]])
    halves = np.repeat([plus, minus], positive.size)
    row = np.concatenate([index, [minus], known, halves])
    column = np.concatenate([index, [minus], np.where(signs > 0, plus, minus), halves])
    value = np.concatenate([np.ones(n + 1), -signs.astype(np.float64), ones, -ones])
    cost = np.concatenate([np.ones(n + 1), np.full(m, -2.0)])
    return LMI(cost, F0, variable, row, column, value, nonnegative=a)


class _ModifiedDual(Solver):
    """Solve (Dual') by a conic solver and read the labels off H.

    The bound is ``-(1'y + b'z)``. It is certified where a factorisation proves that H is positive
    semi-definite after y is raised slightly. By Fact 1 it cannot exceed ``1'L1 - 2 sum_u |h|``.
    """

    kind = "relaxation"
    conic: ClassVar[Callable[..., ConicResult]]
    bytes_for: ClassVar[Callable[..., float]]
    advice: ClassVar[str] = "sdr-interior-point, sdr-low-rank"

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes
        check_dense_size(self.name, problem, n + 2, self.bytes_for(n + 2), self.advice)
        with run.stage("solve"):
            lmi = modified_dual_lmi(problem)
            # Conic solvers use absolute tolerances. A power of two makes the scaling exact.
            mean = float(problem.diagonal.mean()) + float(np.abs(problem.bias).mean())
            scale = float(2.0 ** np.ceil(np.log2(max(mean, 1e-290))))
            scaled = replace(lmi, F0=lmi.F0 / scale)
            result = self.conic(scaled, tol=self.tol, max_iter=self.max_iter)
            x = result.x * scale
        converged = result.converged
        message = result.message
        a = np.maximum(x[n + 1 :], 0.0)
        signs = problem.labels[problem.labeled].astype(np.float64)
        dual = DualVariables(y=x[: n + 1], z=-signs * a)
        H = np.asfortranarray(build_H(problem, dual).toarray())
        with run.stage("eigenvector"):
            values, vectors = eigh(H, subset_by_index=[0, 0], check_finite=False)
        with run.stage("certify"):
            dual, bound = _certified(problem, dual, H)
        info = {"dual_value": dual_objective(problem, dual), "lowest_eigenvalue": float(values[0])}
        if run.watch(info):
            converged = False
            message = "stopped by the callback"
        return Outcome(
            scores=oriented(problem, vectors[:, 0], sign="first"),
            lower_bound=bound,
            bound_status="certified",
            iterations=result.iterations,
            converged=converged,
            message=message,
            dual=dual,
            info=info,
        )


@dataclass(frozen=True, kw_only=True)
class ModifiedDualADMM(_ModifiedDual):
    """Solve the paper's modified dual by SCS (the paper used CDCS).

    Labels come from the first eigenvector of H. They depend on the point of the optimal face at
    which the solver stops.

    Parameters
    ----------
    tol : float, default=1e-5
        Absolute and relative tolerance of SCS.
    max_iter : int, default=20000
        Maximum number of SCS iterations.
    """

    name = "modified-dual-admm"
    summary = "the paper's modified dual, ADMM (SCS)"
    extras = (("scs", "sdp"),)
    conic = staticmethod(solve_scs)
    bytes_for = staticmethod(scs_bytes)

    tol: float = 1e-5
    max_iter: int = 20000


@dataclass(frozen=True, kw_only=True)
class ModifiedDualInteriorPoint(_ModifiedDual):
    """Solve the paper's modified dual by Clarabel; memory grows with n^4.

    Labels come from the first eigenvector of H. They depend on the point of the optimal face at
    which the solver stops.

    Parameters
    ----------
    tol : float, default=1e-6
        Tolerance on gap and feasibility.
    max_iter : int, default=200
        Maximum number of steps.
    """

    name = "modified-dual-interior-point"
    summary = "the paper's modified dual, interior point (Clarabel), for small graphs"
    extras = (("clarabel", "sdp"),)
    conic = staticmethod(solve_clarabel)
    bytes_for = staticmethod(clarabel_bytes)
    advice = "modified-dual-admm, sdr-interior-point, sdr-low-rank"

    max_iter: int = 200


def _certified(
    problem: GraphProblem, dual: DualVariables, H: NDArray[np.float64]
) -> tuple[DualVariables, float]:
    """Raise y until H is provably positive semi-definite, and return the resulting bound."""
    shift = proved_shift(H)
    if shift is None:
        return dual, -np.inf
    proved = DualVariables(y=dual.y + shift, z=dual.z)
    known = problem.labeled
    fixed = 2.0 * float(problem.bias[known] @ problem.labels[known])
    # Covers the rounding of L_ii + y_i and of the sums in the bound.
    size = float(np.abs(proved.y).sum() + 2.0 * np.abs(dual.z).sum()) + abs(fixed)
    size += float(np.abs(problem.diagonal).sum()) + shift
    slack = 8.0 * EPS * (H.shape[0] + 2) * size
    return proved, -dual_objective(problem, proved) - fixed - slack
