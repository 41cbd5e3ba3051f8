"""GDPA, the paper's algorithm: linear programs aligned by first eigenvectors.

An iteration on the split dual (:mod:`gdpa.problem.dual`) computes the first eigenvector v of H_bar
and solves the LP of :mod:`gdpa.solvers.gdpa_lp`. The iterations end when the objective is constant.
Labels are read off the dual point. ``gdpa/paper.py`` has the same algorithm in the order and
notation of the paper.

Known properties:

* The split dual does not depend on the labels: every label weight a >= 0 belongs to an optimal
  point. On the combinatorial Laplacian the paper's start is already optimal.
* ``a = 0`` is always an optimum of the LP. It is the only one if ``r_i = v_apex / v_i`` differs
  from 1 at every label. On the normalised Laplacian this is the case, and any exact LP solver
  erases the labels (``Solution.erased``). On the combinatorial Laplacian a simplex solver does.
* At an optimal point with heavy labels, the first eigenvector of H is the harmonic function with a
  negative self-loop (:mod:`gdpa.solvers.gdpa_recovery`). It classifies well as long as that
  self-loop is small. With few labels, or classes that overlap, all nodes get one class.
  Complementary slackness at the same point does not have this defect.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from ..arrays import FloatArray
from ..checks import check_positive
from ..errors import DegenerateProblemWarning, nearest_name
from ..gershgorin.bounds import realign, trivial_bound
from ..gershgorin.discs import discs
from ..problem import BinaryQuadratic, GraphProblem
from ..problem.dual import (
    DualVariables,
    apply_H_bar,
    build_H_bar,
    dual_objective,
    optimal_point,
    oriented,
    paper_start,
)
from . import gdpa_lp
from .base import Outcome, Run, Solver, StopSolver
from .gdpa_recovery import (
    SAFE_RATIO,
    NodeRows,
    first_eigenvector_of_H,
    safe_label_weight,
    smallest_eigenvalue_bound,
)

# Labels count as erased if their weights a are below this multiple of the largest degree. It is the
# tolerance of the linear programs: a solver may return 1e-17 instead of 0.
ERASED = 1e-9


@dataclass(frozen=True, kw_only=True)
class GDPA(Solver):
    """Gershgorin disc perfect alignment, as the paper states it.

    The defaults are the paper's, with the sign of the majority. They erase the labels if ``a = 0``
    is the LP's only optimum (normalised Laplacian) or the LP solver prefers it (``lp="highs"``);
    then all unlabelled nodes get one class. To classify, use ``start="optimal"``,
    ``label_weight="auto"`` and ``recovery="auto"``, which :class:`~gdpa.GDPAClassifier` does.

    Parameters
    ----------
    lp : {"closed-form", "highs", "interior-point"} or callable, default="closed-form"
        LP solver. "closed-form" is exact, costs O(nnz), and keeps the incumbent if it is optimal.
        "highs" is a simplex solver. "interior-point" (extra ``sdp``) stops inside the optimal face.
        A callable ``lp(problem, v, incumbent)`` replaces the program: it receives the problem, the
        first eigenvector of H_bar and the last :class:`~gdpa.solvers.gdpa_lp.LPPoint`, and returns
        the next. :func:`~gdpa.solvers.gdpa_lp.constraints` has the rows of the discs.
    recovery : {"eigenvector", "linear", "auto"}, default="eigenvector"
        How labels are read off the dual point: as signs of the first eigenvector of H, or by
        complementary slackness, ``(L + diag(y)) x = a xh`` with the y and a of the last LP. "auto"
        uses the eigenvector where it provably stays near slackness, and slackness elsewhere; see
        :mod:`gdpa.solvers.gdpa_recovery`.
    start : {"paper", "optimal"}, default="paper"
        Initial dual point: that of the paper, or the optimum of the split dual. An LP solver that
        keeps its incumbent does not leave the latter.
    label_weight : float or "auto", default=1
        Initial weight a of all labels. "auto" is 100 times the largest degree of a labelled node,
        with which the eigenvector differs from the labels by at most 2 % of its largest entry.
    sign : {"majority", "first"}, default="majority"
        Sign of the eigenvector: that of most known labels, or that of the first one, as in the
        paper. With one wrong entry at the first label, "first" turns every label around.
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`. `tol` is the relative change of the objective that ends
        the loop, and the relative residual of linear recovery, which starts from `x0`. The callback
        receives at every iteration the iteration, the objective, its change, lambda_min of H_bar,
        and the arrays y, z, v and discs (:class:`~gdpa.gershgorin.Discs` of H_bar, aligned by v)
        with which the program of that iteration was set up, and ``y_next`` and ``z_next``, its
        result. The arrays are not kept in ``history``.
    """

    name: ClassVar[str] = "gdpa"
    summary: ClassVar[str] = "the paper's algorithm: linear programs with aligned discs"
    kind: ClassVar[str] = "relaxation"
    bytes_per_edge: ClassVar[float] = 76.0
    binary_quadratic: ClassVar[bool] = True
    choices: ClassVar[dict[str, Any]] = {
        "recovery": ("eigenvector", "linear", "auto"),
        "start": ("paper", "optimal"),
        "sign": ("majority", "first"),
    }

    lp: str | gdpa_lp.Engine = "closed-form"
    recovery: str = "eigenvector"
    start: str = "paper"
    label_weight: float | Literal["auto"] = 1.0
    sign: Literal["majority", "first"] = "majority"
    max_iter: int = 100

    def __post_init__(self) -> None:
        """Check the options of this method."""
        super().__post_init__()
        if self.label_weight != "auto":
            check_positive(self.label_weight, "label_weight")
        if not callable(self.lp) and self.lp not in gdpa_lp.ENGINES:
            hint = nearest_name(self.lp, list(gdpa_lp.ENGINES))
            raise ValueError(f"lp={self.lp!r} is not known; {hint}, or a callable")

    def _solve(self, problem: GraphProblem | BinaryQuadratic, run: Run) -> Outcome:
        if isinstance(problem, BinaryQuadratic):
            return self._solve_anchored(problem, run)
        with run.stage("bound"):
            bound = trivial_bound(problem)
        dual, converged, message = self._loop(problem, run)
        largest = float(np.abs(dual.z).max(initial=0.0))
        erased = bool(problem.n_labeled and largest <= ERASED * problem.diagonal.max(initial=0.0))
        if erased:
            message += "; the linear program erased the labels (a = 0)"
            warnings.warn(
                "the linear program erased the labels: the weight a of every label is 0, so the "
                "result does not depend on them (lp='closed-form' with start='optimal' keeps "
                "them)",
                DegenerateProblemWarning,
                stacklevel=6,
            )
        with run.stage("recovery"):
            found = self._recover(problem, dual)
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
        weight = self.label_weight
        dual = start(problem, safe_label_weight(problem) if weight == "auto" else weight)
        point = gdpa_lp.LPPoint(dual.y, np.abs(dual.z), dual_objective(problem, dual))
        v = np.append(np.ones(n + 1), -1.0)
        program = self.lp if callable(self.lp) else gdpa_lp.ENGINES[self.lp]
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
                    new = program(problem, v, point)
                change = point.objective - new.objective
                scale = 1.0 + np.abs(point.y).sum()
                # The LP solver's point is used even if the objective is unchanged, because recovery
                # depends on its position on the optimal face.
                point = new
                values = {
                    "iteration": iteration,
                    "objective": point.objective,
                    "change": change,
                    "lambda_min": lmin,
                    "eigenvector_iterations": steps,
                    "kept": point.kept,
                }
                run.report_with(partial(_details, problem, dual, v, point), values)
                if abs(change) <= self.tol * scale:
                    return point.dual(problem), True, "the objective is constant"
        except StopSolver:
            message = "stopped by the callback"
        return point.dual(problem), False, message

    def _recover(self, problem: GraphProblem, dual: DualVariables) -> Outcome:
        """Return the scores by the chosen recovery, and how it was chosen."""
        rows = NodeRows(problem, dual)
        if not rows.q.any():  # the labels are erased
            if self.recovery == "eigenvector":
                return self._eigenvector(rows)
            return Outcome(np.zeros(problem.n_nodes), info={"recovery": "linear"})
        if self.recovery == "eigenvector":
            return self._eigenvector(rows)
        if self.recovery == "linear":
            return self._slackness(rows)
        # No eigenvalue above this can be shown to be safe, because the constant mode bounds mu.
        limit = SAFE_RATIO * rows.constant_mode
        found = self._eigenvector(rows, give_up_above=limit)
        ratio = np.inf
        if found.converged and found.info["eigenvalue"] <= limit:
            least = smallest_eigenvalue_bound(rows)
            ratio = max(found.info["eigenvalue"], 0.0) / least if least > 0 else np.inf
        about = "the first eigenvalue of H over the smallest one of its unlabelled part"
        if ratio <= SAFE_RATIO:
            reason = f"lambda / mu is at most {ratio:.2g}: {about}"
        else:
            found = self._slackness(rows)
            reason = f"lambda / mu is not proved to be below {SAFE_RATIO:g}: {about}"
        return replace(found, info={**found.info, "ratio_bound": ratio, "reason": reason})

    def _slackness(self, rows: NodeRows) -> Outcome:
        """Return the scores by complementary slackness."""
        slack = rows.solve(tol=self.tol, x0=None if self.x0 is None else np.asarray(self.x0))
        return Outcome(
            slack.x,
            converged=slack.converged,
            message=slack.message,
            info={"recovery": "linear", "residual": slack.residual, "matvecs": slack.products},
        )

    def _eigenvector(self, rows: NodeRows, *, give_up_above: float = np.inf) -> Outcome:
        """Return the first eigenvector of H, signed to agree with the known labels."""
        found = first_eigenvector_of_H(
            rows, tol=self.tol, give_up_above=give_up_above, random_state=self.random_state
        )
        scores = oriented(rows.problem, found.vector, self.sign) * np.sqrt(found.vector.size)
        info = {"recovery": "eigenvector", "eigenvalue": found.value, "matvecs": found.products}
        return Outcome(scores, converged=found.converged, message=found.message, info=info)


def _details(
    problem: GraphProblem, dual: DualVariables, v: FloatArray, point: gdpa_lp.LPPoint
) -> dict[str, Any]:
    """Return the arrays of one iteration for the callback."""
    after = point.dual(problem)
    return {
        "y": dual.y,
        "z": dual.z,
        "v": v,
        "discs": discs(build_H_bar(problem, dual), v=v),
        "y_next": after.y,
        "z_next": after.z,
    }
