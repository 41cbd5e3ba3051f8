"""GDPA: the paper's algorithm, a sequence of linear programs aligned by first eigenvectors.

One iteration on the split dual (see :mod:`gdpa.dual`): the first eigenvector v of H_bar, then the
LP of :mod:`gdpa.solvers.gdpa_lp`, until the objective stops moving. Labels are then recovered from
the dual point, by default through the linear system of :mod:`gdpa.system`.

What decides the design:

* The split dual does not see the labels: its optimal face contains every label weight a >= 0, and
  the start of the paper lies on it. The loop therefore starts on the face, with the exact first
  eigenvector ``(1, .., 1, 1, -1)``, and ends after one iteration that proves optimality.
* A simplex solver returns the vertex a = 0, which erases the labels. The closed form keeps the
  incumbent where it is optimal.
* The first eigenvector of H is dominated by the constant mode. Linear recovery is not.

The certified lower bound is that of the discs of the reduced form
(:mod:`gdpa.gershgorin.label_discs`); it is the optimum of the aligned LP.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dual import apply_H_bar, build_H, build_H_bar, dual_objective, optimal_point
from ..errors import DegenerateProblemWarning, nearest_name
from ..gershgorin.label_discs import class_bounds, disc_bounds, realign
from ..linalg import first_eigenvector
from ..policy import DEFAULT_POLICY, Policy
from ..problem import BinaryQuadratic, ClassProblem, GraphProblem
from ..solution import ClassSolution, DualVariables
from ..system import Arranged, LabeledSystem
from . import gdpa_lp
from .base import Outcome, Run, Solver, StopSolver

__all__ = ["GDPA"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GDPA(Solver):
    """Gershgorin disc perfect alignment.

    Parameters
    ----------
    lp : {"closed-form", "highs", "interior-point"}, default="closed-form"
        Engine of the LP. "closed-form" is exact, O(nnz), and keeps the incumbent where it is
        optimal. "highs" is a simplex solver: it returns a = 0, and the labels are lost.
        "interior-point" (extra ``sdp``) stops inside the optimal face.
    recovery : {"linear", "eigenvector"}, default="linear"
        How labels are read off the dual point: the linear system, or the first eigenvector of H.
    label_weight : float, default=inf
        Weight a of the labels: the point of the optimal face that the loop starts from and, with
        linear recovery, how strongly labels are held. Infinite: they are kept exactly (the dual
        point is then reported for a = 1).
    self_loop : float, array-like of shape (n_nodes,) or "dual", default=0
        Self-loop gamma in linear recovery, a pull towards 0 that localises the labels' influence.
        "dual": whatever the loop's y says.
    preconditioner : str, default="auto"
        Of the linear solve and of the eigenvector; see :mod:`gdpa.linalg`.
    preset : {None, "paper"}, default=None
        "paper": the text to the letter (start, simplex, labels from the first eigenvector of H).
        What the authors ran is a method of its own, "gdpa-published".
    policy : Policy
        Size limits of the linear solve.
    arranged : Arranged, optional
        The adjacency of a :class:`~gdpa.problem.ClassProblem`, prepared for several solves.
    linear_max_iter : int, optional
        Most iterations of the linear solve.
    n_jobs : int, optional
        Threads of the linear solve; results do not depend on it.
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`. `tol` is the relative residual of the recovery and the
        relative change of the objective that ends the loop; `x0` warm-starts the recovery.
    """

    name: ClassVar[str] = "gdpa"
    summary: ClassVar[str] = "Gershgorin disc perfect alignment: a sequence of closed-form LPs"
    kind: ClassVar[str] = "relaxation"
    binary_quadratic: ClassVar[bool] = True

    lp: str = "closed-form"
    recovery: str = "linear"
    label_weight: float = np.inf
    self_loop: Any = 0.0
    preconditioner: Any = "auto"
    preset: str | None = None
    max_iter: int = 100
    policy: Policy = DEFAULT_POLICY
    arranged: Arranged | None = None
    linear_max_iter: int | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for option, choices in (("lp", gdpa_lp.ENGINES), ("recovery", ("linear", "eigenvector"))):
            value = getattr(self, option)
            if value not in choices:
                raise ValueError(f"{option}={value!r}; {nearest_name(value, list(choices))}")
        if not (isinstance(self.label_weight, int | float) and self.label_weight > 0):
            raise ValueError(
                f"label_weight={self.label_weight!r} must be a positive number; inf keeps labels"
            )
        if isinstance(self.self_loop, str):
            if self.self_loop != "dual":
                raise ValueError(
                    f"self_loop={self.self_loop!r}; accepted: a number, one per node, or 'dual'"
                )
        elif not np.isfinite(np.asarray(self.self_loop, dtype=np.float64)).all():
            raise ValueError("self_loop must be finite")
        if self.preset is None:
            return
        if self.preset != "paper":
            raise ValueError(
                f"preset={self.preset!r}; accepted: None or 'paper' (the authors' program is the "
                "method 'gdpa-published')"
            )
        decided = {"lp": "highs", "recovery": "eigenvector", "label_weight": 1.0}
        for option, value in (decided | {"self_loop": "dual"}).items():
            if getattr(self, option) is not type(self).__dataclass_fields__[option].default:
                raise ValueError(f"preset={self.preset!r} decides {option}; give one of the two")
            object.__setattr__(self, option, value)

    def _solve(self, problem: GraphProblem | BinaryQuadratic, run: Run) -> Outcome:
        if isinstance(problem, BinaryQuadratic):
            return self._solve_anchored(problem, run)
        with run.stage("bound"):
            known, bias = problem.labeled, problem.bias[:, None]
            signs = problem.labels[known, None].astype(np.float64)
            bounds = disc_bounds(problem.adjacency, problem.diagonal, known, signs, bias)
        dual, iterations, converged, message = self._loop(problem, run)
        recover = self._eigenvector if self.recovery == "eigenvector" else self._linear
        with run.stage("recovery"):
            found = recover(problem, dual)
        return replace(
            found,
            lower_bound=float(bounds[0]),
            bound_status="certified" if np.isfinite(bounds[0]) else "none",
            iterations=iterations,
            converged=converged and found.converged,
            message=message if found.converged else found.message,
            dual=dual,
            info={"dual_objective": dual_objective(problem, dual), **found.info},
        )

    def _solve_classes(self, problem: ClassProblem, run: Run) -> ClassSolution:
        """All classes by one block of right-hand sides, each class with the bound of its discs."""
        options = {"arranged": self.arranged, "policy": self.policy, "n_jobs": self.n_jobs}
        system = LabeledSystem.of_classes(problem, self.label_weight, self.self_loop, **options)
        with run.stage("bound"):
            bounds = class_bounds(problem)
        with run.stage("recovery"):
            solved = system.solve(callback=self.callback, **self._linear_options())
        return ClassSolution(
            method=self.name,
            scores=solved.x,
            lower_bounds=bounds,
            iterations=solved.iterations,
            matvecs=solved.matvecs,
            residual=solved.residual,
            converged=solved.converged,
            exact=solved.method != "cg",
            message=solved.message,
            seconds=MappingProxyType(dict(run.seconds)),
        )

    def _solve_anchored(self, problem: BinaryQuadratic, run: Run) -> Outcome:
        """Fix the anchor: its couplings are evidence, and the rest is a graph problem."""
        n, anchor = problem.n_nodes, problem.anchor
        form = problem.reduced()
        if form.P[[anchor]].nnz == 0:  # no coupling to the anchor: a constant is optimal
            value = problem.objective(np.ones(n))
            return Outcome(np.ones(n), lower_bound=value, bound_status="certified")
        inner, shift = problem.graph_problem()
        x0 = None if self.x0 is None else np.delete(np.asarray(self.x0), anchor)
        with warnings.catch_warnings():
            # "One class" and "unreached" are ordinary here: couplings of one sign, loose parts.
            warnings.simplefilter("ignore")
            solution = replace(self, x0=x0).solve(inner)
        run.history.extend(solution.history)
        run.seconds.update(solution.seconds)
        return Outcome(
            scores=problem.spread(solution.scores),
            labels=problem.spread(solution.labels),
            lower_bound=solution.lower_bound + shift,
            bound_status=solution.bound_status,
            iterations=solution.iterations,
            converged=solution.converged,
            message=solution.message,
            dual=solution.dual,
            info=solution.info,
        )

    def _loop(self, problem: GraphProblem, run: Run) -> tuple[DualVariables, int, bool, str]:
        n = problem.n_nodes
        a = self.label_weight if np.isfinite(self.label_weight) else 1.0
        dual = optimal_point(problem, a)
        if self.preset == "paper":
            y = np.zeros(n + 1)
            y[problem.labeled] = 1.0
            y[-1] = problem.n_labeled + np.abs(problem.bias).sum()
            y[:-1] += np.abs(problem.bias) * (problem.labels == 0)
            dual = DualVariables(y=y, z=dual.z)
        point = gdpa_lp.LPPoint(dual.y, np.abs(dual.z), dual_objective(problem, dual))
        v = np.ones(n + 2)
        v[n + 1] = -1.0
        options = {"preconditioner": self.preconditioner, "random_state": self.random_state}
        converged = False
        message = f"the objective still moves after max_iter={self.max_iter} iterations"
        try:
            for iteration in range(1, self.max_iter + 1):
                with run.stage("eigenvector"):
                    dual = point.dual(problem)
                    product = partial(apply_H_bar, problem, dual)
                    size = float(np.abs(problem.diagonal + dual.y[:-1]).max() + abs(dual.y[-1]))
                    matrix = partial(build_H_bar, problem, dual)
                    v, lmin, steps = realign(product, v, size=size, matrix=matrix, **options)
                with run.stage("lp"):
                    new = gdpa_lp.ENGINES[self.lp](problem, v, point)
                change = point.objective - new.objective
                scale = 1.0 + np.abs(point.y).sum()
                # The engine's word is final: even where the objective stands still, its point on
                # the face is the one that recovery reads (and a simplex solver's has no labels).
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
                    message, converged = "the objective stopped moving", True
                    break
        except StopSolver:
            message = "stopped by the callback"
        return point.dual(problem), len(run.history), converged, message

    def _linear_options(self) -> dict[str, Any]:
        return {
            "tol": self.tol,
            "max_iter": self.linear_max_iter,
            "x0": self.x0,
            "preconditioner": self.preconditioner,
        }

    def _linear(self, problem: GraphProblem, dual: DualVariables) -> Outcome:
        a: Any = self.label_weight
        gamma, bias = self.self_loop, problem.bias
        if self.lp != "closed-form" or isinstance(gamma, str):
            a = np.abs(dual.z)
        if isinstance(gamma, str):
            bias = np.where(problem.labels == 0, bias, 0.0)
            gamma = dual.y[:-1] - np.abs(bias)
            gamma[problem.labeled] -= a
        elif np.ndim(gamma) and np.shape(gamma) != (problem.n_nodes,):
            raise ValueError(
                f"self_loop must be a number or have one entry per node ({problem.n_nodes}), "
                f"got shape {np.shape(gamma)}"
            )
        if not np.any(a) and not bias.any():
            warnings.warn(
                "the LP returned a = 0 for every label: the dual point no longer knows the labels, "
                "and all scores are 0 (use lp='closed-form')",
                DegenerateProblemWarning,
                stacklevel=7,
            )
            return Outcome(np.zeros(problem.n_nodes), info={"erased": True})
        options = {"evidence": bias if bias.any() else None, "policy": self.policy}
        system = LabeledSystem.of_signs(
            problem, label_weight=a, self_loop=gamma, n_jobs=self.n_jobs, **options
        )
        result = system.solve(**self._linear_options())
        info = {
            "residual": result.residual,
            "matvecs": result.matvecs,
            "linear_iterations": result.iterations,
            "linear_solver": result.method,
        }
        return Outcome(result.x, converged=result.converged, message=result.message, info=info)

    def _eigenvector(self, problem: GraphProblem, dual: DualVariables) -> Outcome:
        result = first_eigenvector(
            build_H(problem, dual),
            tol=1e-9,
            preconditioner=self.preconditioner,
            random_state=self.random_state,
        )
        v = result.vector
        first = problem.labeled[:1]
        sign = problem.labels[first[0]] * v[first[0]] if first.size else v[-1]
        scores = (1.0 if sign >= 0 else -1.0) * v[:-1] * np.sqrt(v.size)
        return Outcome(scores, converged=result.converged, message=result.message)
