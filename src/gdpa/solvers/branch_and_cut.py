"""Proved optima of sparse problems by odd cycles: search, a linear program, and branches."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import NDArray
from ..gershgorin.bounds import rounding_margin
from ..memory import check_memory
from ..problem import Problem, ReducedForm
from ..problem.cut_form import CutForm, is_sparse
from ..threads import effective_jobs
from .base import Outcome, Run, Solver, StopSolver
from .cycle_program import has_highspy
from .cycle_tree import CycleTree
from .search import Limits, search

# Assumed bytes per edge of a linear program with its rows and factors.
_BYTES_PER_EDGE = 2e4


def suits_cycles(form: ReducedForm) -> bool:
    """Return whether odd cycles are likely to give a better bound than the relaxation, in time."""
    return has_highspy() and is_sparse(form.P.shape[0], form.P.nnz // 2)


def cycle_tree(
    form: ReducedForm,
    *,
    deadline: float,
    max_nodes: int,
    max_pivots: int | None,
    random_state: int,
    useful: float | None = None,
) -> CycleTree:
    """Return the tree of a reduced form, or raise MemoryError if it would be too large.

    With `useful`, a lower bound of the objective, growing stops if it cannot be improved.
    """
    edges = form.P.nnz // 2
    what = f"odd cycles of {edges} couplings"
    check_memory(_BYTES_PER_EDGE * edges, what, "bound='sdr' accepts any number of couplings")
    cut_form = CutForm.of_reduced(form)
    cut = None
    if useful is not None:
        cut = (Fraction(form.constant) - Fraction(useful) - cut_form.constant) / cut_form.unit
    return CycleTree(
        cut_form,
        useful=cut,
        deadline=deadline,
        max_nodes=max_nodes,
        max_pivots=max_pivots,
        random_state=random_state,
    )


def lower_bound(form: ReducedForm, tree: CycleTree) -> float:
    """Return the lower bound of the objective that a tree proves, rounded to nearest."""
    upper = tree.form.value(tree.form.rounded_down(tree.bound))
    return float(Fraction(form.constant) - upper)


def details_of(tree: CycleTree) -> dict[str, Any]:
    """Return what a solution reports about a tree."""
    return {
        "nodes": tree.nodes,
        "rounds": tree.rounds,
        "pivots": tree.program.iterations,
        "reduced_nodes": tree.graph.n,
        "reduced_couplings": tree.graph.m,
        "optimal": tree.optimal,
        "certificate": tree.certificate(),
    }


def report_tree(form: ReducedForm, tree: CycleTree, run: Run, nodes: int, bound: Fraction) -> None:
    """Report the best value and a bound in units, as the tree calls it."""
    constant = Fraction(form.constant)
    run.report(
        nodes=nodes,
        objective=float(constant - tree.form.value(tree.cut)),
        bound=float(constant - tree.form.value(bound)),
    )


@dataclass(frozen=True, kw_only=True)
class BranchAndCut(Solver):
    """Find the exact optimum of a sparse problem by odd cycles and branches.

    ``info`` has ``nodes`` and ``rounds`` of the linear programs, the size of the reduced problem,
    ``optimal``, and the ``certificate`` for :func:`gdpa.prove`.

    Parameters
    ----------
    max_iter : int, default=10000
        Maximum number of nodes of the tree.
    time_limit : float, default=900
        Seconds after which the best value and the bound so far are returned.
    effort : float, default=1.0
        Effort of the initial search.
    n_jobs : int, default=1
        Number of threads of the initial search.
    """

    name = "branch-and-cut"
    summary = "exact optimum of sparse problems by odd cycles and branches"
    kind = "exact"
    binary_quadratic = True
    signed = True
    positive: ClassVar[tuple[str, ...]] = ("time_limit", "effort")

    max_iter: int = 10_000
    time_limit: float = 900.0
    effort: float = 1.0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Check the number of threads too."""
        super().__post_init__()
        effective_jobs(self.n_jobs)

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        form = problem.reduced()
        deadline = time.monotonic() + self.time_limit
        with run.stage("reduce"):
            tree = cycle_tree(
                form,
                deadline=deadline,
                max_nodes=self.max_iter,
                max_pivots=None,
                random_state=self.random_state,
            )
        message = ""
        try:
            with run.stage("search"):
                tree.offer(self._search(form, deadline, run))
            with run.stage("cycles"):
                tree.grow(lambda nodes, bound: report_tree(form, tree, run, nodes, bound))
            message = tree.message
        except StopSolver:
            message = "stopped by the callback"
        signs = tree.signs * tree.signs[form.apex]
        labels = problem.spread(np.delete(signs, form.apex))
        optimal = tree.optimal
        objective = problem.objective(labels)
        bound = lower_bound(form, tree) - rounding_margin(problem)
        return Outcome(
            scores=labels.astype(np.float64),
            labels=labels,
            lower_bound=objective if optimal else min(bound, objective),
            bound_status="certified",
            bound_kind="optimum" if optimal else "relaxation",
            iterations=tree.nodes,
            converged=not message,
            message=message or ("optimal" if optimal else "limited by rounding"),
            info=details_of(tree),
        )

    def _search(self, form: ReducedForm, deadline: float, run: Run) -> NDArray[np.int8]:
        starts = None
        if self.x0 is not None:
            x0 = np.where(np.asarray(self.x0)[form.nodes] < 0, -1.0, 1.0)
            starts = np.insert(x0, form.apex, 1.0)[:, None].astype(np.float32)
        scale = float(np.abs(form.P.data).max())
        return search(
            form.P,
            limits=Limits.for_size(form.P.shape[0], form.P.nnz, self.effort, deadline),
            starts=starts,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            report=lambda value: run.report(objective=form.constant - scale * value),
        )
