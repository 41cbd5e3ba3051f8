"""GDPA, the paper's algorithm: linear programs aligned by first eigenvectors.

An iteration on the split dual (:mod:`gdpa.problem.dual`) computes the first eigenvector v of H_bar
and solves the LP of :mod:`gdpa.solvers.gdpa_lp`. The iterations end when the objective is constant.
Labels are read off the dual point. ``gdpa/paper.py`` has the same algorithm in the order and
notation of the paper.

Known properties:

* The split dual does not depend on the labels: every label weight a >= 0 belongs to an optimal
point.
  On the combinatorial Laplacian the paper's start is already optimal.
* ``a = 0`` is always an optimum of the LP. It is the only one if ``r_i = v_apex / v_i`` differs
from 1
  at every label. On the normalised Laplacian this is the case, and any exact LP solver erases the
  labels (``info["erased"]``). On the combinatorial Laplacian a simplex solver does.
* The constant mode dominates the first eigenvector of H unless the graph clearly separates the
  classes. Then all nodes get one class. Linear recovery does not have this defect.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..errors import DegenerateProblemWarning
from ..gershgorin.bounds import realign, trivial_bound
from ..linalg import first_eigenvector, solve_spd
from ..problem import BinaryQuadratic, GraphProblem
from ..problem.dual import (
    DualVariables,
    apex_weights,
    apply_H_bar,
    build_H,
    build_H_bar,
    dual_objective,
    optimal_point,
    oriented,
    paper_start,
)
from . import gdpa_lp
from .base import Outcome, Run, Solver, StopSolver


@dataclass(frozen=True, kw_only=True)
class GDPA(Solver):
    """Gershgorin disc perfect alignment, as the paper states it.

    The method erases the labels if ``a = 0`` is the LP's only optimum (normalised Laplacian) or the
    LP solver prefers it (``lp="highs"``). Then all unlabelled nodes get one class. It is provided
    for study: for labels use "harmonic", for a bound "sdr-low-rank".

    Parameters
    ----------
    lp : {"closed-form", "highs", "interior-point"}, default="closed-form"
        LP solver. "closed-form" is exact, costs O(nnz), and keeps the incumbent if it is optimal.
        "highs" is a simplex solver. "interior-point" (extra ``sdp``) stops inside the optimal face.
    recovery : {"eigenvector", "linear"}, default="eigenvector"
        How labels are read off the dual point: as signs of the first eigenvector of H, or by
        complementary slackness, ``(L + diag(y)) x = a xh`` with the y and a of the last LP.
    start : {"paper", "optimal"}, default="paper"
        Initial dual point: that of the paper, or the optimum of the split dual. An LP solver that
        keeps its incumbent does not leave the latter.
    label_weight : float, default=1
        Initial weight a of all labels.
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`. `tol` is the relative change of the objective that ends
        the loop, and the relative residual of linear recovery, which starts from `x0`.
    """

    name: ClassVar[str] = "gdpa"
    summary: ClassVar[str] = "the paper's algorithm: linear programs with aligned discs"
    kind: ClassVar[str] = "relaxation"
    binary_quadratic: ClassVar[bool] = True
    positive: ClassVar[tuple[str, ...]] = ("label_weight",)
    choices: ClassVar[dict[str, Any]] = {
        "lp": gdpa_lp.ENGINES,
        "recovery": ("eigenvector", "linear"),
        "start": ("paper", "optimal"),
    }

    lp: str = "closed-form"
    recovery: str = "eigenvector"
    start: str = "paper"
    label_weight: float = 1.0
    max_iter: int = 100

    def _solve(self, problem: GraphProblem | BinaryQuadratic, run: Run) -> Outcome:
        if isinstance(problem, BinaryQuadratic):
            return self._solve_anchored(problem, run)
        with run.stage("bound"):
            bound = trivial_bound(problem)
        dual, converged, message = self._loop(problem, run)
        erased = bool(problem.n_labeled and not dual.z.any())
        if erased:
            message += "; the linear program erased the labels (a = 0)"
        with run.stage("recovery"):
            recover = self._eigenvector if self.recovery == "eigenvector" else self._linear
            found = recover(problem, dual)
        return replace(
            found,
            lower_bound=bound,
            bound_status="certified",
            bound_kind="trivial",
            iterations=len(run.history),
            converged=converged and found.converged,
            message=message if found.converged else found.message,
            dual=dual,
            info={"dual_objective": dual_objective(problem, dual), "erased": erased, **found.info},
        )

    def _solve_anchored(self, problem: BinaryQuadratic, run: Run) -> Outcome:
        """Fix the anchor, whose couplings become the linear term of a graph problem."""
        if problem.reduced().P[[problem.anchor]].nnz == 0:  # a constant is optimal
            return Outcome.optimal(problem, np.ones(problem.n_nodes, dtype=np.int8))
        inner, shift = problem.graph_problem()
        x0 = None if self.x0 is None else np.delete(np.asarray(self.x0), problem.anchor)
        # Warnings about one class or unreached nodes are irrelevant here.
        with warnings.catch_warnings(action="ignore"):
            solution = replace(self, x0=x0).solve(inner)
        run.history.extend(solution.history)
        run.seconds.update(solution.seconds)
        facts = {f.name: getattr(solution, f.name) for f in fields(Outcome)}
        return replace(
            Outcome(**facts),
            scores=problem.spread(solution.scores),
            labels=problem.spread(solution.labels),
            lower_bound=solution.lower_bound + shift,
        )

    def _loop(self, problem: GraphProblem, run: Run) -> tuple[DualVariables, bool, str]:
        """Align and solve the LP until its objective is constant."""
        n = problem.n_nodes
        start = paper_start if self.start == "paper" else optimal_point
        dual = start(problem, self.label_weight)
        point = gdpa_lp.LPPoint(dual.y, np.abs(dual.z), dual_objective(problem, dual))
        v = np.append(np.ones(n + 1), -1.0)
        message = f"the objective still changes after max_iter={self.max_iter} iterations"
        try:
            for iteration in range(1, self.max_iter + 1):
                with run.stage("eigenvector"):
                    dual = point.dual(problem)
                    product = partial(apply_H_bar, problem, dual)
                    size = float(np.abs(problem.diagonal + dual.y[:-1]).max() + abs(dual.y[-1]))
                    matrix = partial(build_H_bar, problem, dual)
                    v, lmin, steps = realign(product, v, size, matrix, self.random_state)
                with run.stage("lp"):
                    new = gdpa_lp.ENGINES[self.lp](problem, v, point)
                change = point.objective - new.objective
                scale = 1.0 + np.abs(point.y).sum()
                # The LP solver's point is used even if the objective is unchanged, because recovery
                # depends on its position on the optimal face.
                point = new
                run.report(
                    iteration=iteration,
                    objective=point.objective,
                    change=change,
                    lambda_min=lmin,
                    eigenvector_iterations=steps,
                    kept=point.kept,
                )
                if abs(change) <= self.tol * scale:
                    return point.dual(problem), True, "the objective is constant"
        except StopSolver:
            message = "stopped by the callback"
        return point.dual(problem), False, message

    def _linear(self, problem: GraphProblem, dual: DualVariables) -> Outcome:
        """Solve the rows of the nodes in ``H (x, 1) = 0`` (complementary slackness)."""
        drive = apex_weights(problem, dual.z)
        if not drive.any():
            warnings.warn(
                "the LP returned a = 0 for every label: the dual point has lost the labels, and "
                "all scores are 0 (lp='closed-form' with start='optimal' keeps them)",
                DegenerateProblemWarning,
                stacklevel=7,
            )
            return Outcome(np.zeros(problem.n_nodes))
        K = problem.L + sp.diags_array(dual.y[:-1])
        result = solve_spd(K, drive, x0=self.x0, tol=self.tol)
        info = {"residual": result.residual, "matvecs": result.matvecs}
        return Outcome(result.x, converged=result.converged, message=result.message, info=info)

    def _eigenvector(self, problem: GraphProblem, dual: DualVariables) -> Outcome:
        """Return the first eigenvector of H, signed so that the first label is correct."""
        H = build_H(problem, dual)
        result = first_eigenvector(H, tol=1e-9, random_state=self.random_state)
        scores = oriented(problem, result.vector) * np.sqrt(result.vector.size)
        return Outcome(scores, converged=result.converged, message=result.message)
