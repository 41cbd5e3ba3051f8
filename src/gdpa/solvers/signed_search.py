"""Good labels and a proved bound for couplings of both signs: search plus relaxation or cycles.

The semidefinite relaxation (``sdr_sphere``) gives a dual point s and a factor V. The bound is
``constant - (1 + t) 1's``, where a factorisation of ``(1 + t) diag(s) - P`` proves t. If P is too
large for that, t is estimated from an eigenvalue. Roundings of V are among the starts of the search
(``search``). The sum of all absolute couplings is always a valid bound.

For sparse couplings odd cycles (``cycle_tree``) give a better bound than the relaxation, which is
then only rounded. They come last, because they stop as soon as they prove the best signs.
"""

from __future__ import annotations

import itertools
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..arrays import FloatArray, NDArray
from ..errors import UnsupportedProblemError
from ..gershgorin.bounds import rounding_margin
from ..linalg.operator import EPS
from ..linalg.psd_proof import can_prove
from ..memory import check_memory
from ..problem import Problem, ReducedForm
from ..solution import BoundStatus
from ..threads import effective_jobs, one_thread
from .base import Outcome, Run, Solver, StopSolver
from .basis_pursuit import gershgorin_bound
from .branch_and_cut import cycle_tree, details_of, lower_bound, report_tree, suits_cycles
from .manifold_lbfgs import descend, inner
from .safe_bound import SMALLEST
from .sdr_sphere import SphereProduct, proved_bound, scaled_couplings, solve_spheres
from .search import Limits, search
from .triangle import triangle_bound

BOUNDS = ("auto", "sdr", "triangle", "cycles", "gershgorin", "none")
# Work for the odd cycles of bound="auto", in pivots of the simplex method. On graphs of 800 to
# 10,000 nodes this takes about as long as the search.
_PIVOTS = 20_000


@dataclass(eq=False)
class _Relaxed:
    """An approximate solution of the semidefinite relaxation, with its dual point s."""

    V: FloatArray
    value: float
    s: FloatArray
    tol: float
    provable: bool
    options: dict[str, Any]


@dataclass(eq=False)
class _Bound:
    """What is known about the bound, and the factor V for the search."""

    details: dict[str, Any]
    V: FloatArray | None = None
    lower_bound: float = -np.inf
    status: BoundStatus = "none"
    optimal: bool = False
    dual: FloatArray | None = None


def estimated_bound(
    form: ReducedForm, s: FloatArray, *, tol: float, deadline: float, random_state: int
) -> tuple[float, FloatArray] | None:
    """Scale s by the largest eigenvalue of the scaled couplings plus its residual."""
    B = scaled_couplings(form, s)

    def product(x: FloatArray) -> FloatArray:
        if time.monotonic() > deadline:
            raise TimeoutError
        return np.asarray(B @ x)

    start = np.random.default_rng(random_state).standard_normal(s.size)
    operator = LinearOperator(B.shape, matvec=product, dtype=np.float64)
    try:
        _, vectors = eigsh(operator, 1, which="LA", ncv=20, maxiter=50, tol=tol, v0=start)
    except (ArpackNoConvergence, TimeoutError):
        return None
    v = vectors[:, 0]
    image = B @ v
    value = inner(v, image)
    residual = image - value * v
    raised = max(1.0, value + np.sqrt(inner(residual, residual))) * s
    return form.constant - float(raised.sum()), raised


def descended(
    form: ReducedForm,
    *,
    rank: int,
    tol: float,
    max_iter: int,
    random_state: int,
    memory: int = 6,
    deadline: float = np.inf,
) -> tuple[FloatArray, float, FloatArray]:
    """Return unit rows V near a stationary point of the relaxation, its value and dual point."""
    spheres = SphereProduct(form)
    rng = np.random.default_rng(random_state)
    V = spheres.move(rng.standard_normal((form.P.shape[0], rank)), np.zeros(()))
    point = spheres.evaluate(V)
    small = 0
    for point, decrease in itertools.islice(descend(spheres, V, memory=memory), max_iter):
        # The eigenvalue converges like the square root of the value.
        small = small + 1 if decrease <= tol**2 * abs(point.value) else 0
        if small == 3 or time.monotonic() > deadline:
            break
    return point.where, point.value, 0.5 * point.curvature.ravel()


@dataclass(frozen=True, kw_only=True)
class SignedSearch(Solver):
    """Search for good labels, and bound the objective by a relaxation.

    ``info`` has ``sdr_value``, the value of the semidefinite relaxation at its factor, and the
    ``bound_method``. If that is "cycles", it also has the ``certificate`` for :func:`gdpa.prove`
    and the size of the linear programs. ``seconds`` has the time of each stage.

    Parameters
    ----------
    tol : float, default=2e-4
        Accepted gap between the value of the relaxation and its bound, relative to the value.
    bound : {"auto", "sdr", "triangle", "cycles", "gershgorin", "none"}, default="auto"
        Source of the bound. "sdr": the semidefinite relaxation. "triangle": the same with triangle
        inequalities, for about a hundred variables. "cycles": odd cycles, for sparse couplings.
        "gershgorin": diagonal dominance in changing bases, for comparison with about fifty
        variables. "none": no bound. "auto": odd cycles with limited work for sparse couplings if
        the extra ``cuts`` is installed, and the relaxation otherwise or if it is better.
    effort : float, default=1.0
        Factor for the sweeps, recombinations and populations of the search.
    time_limit : float, optional
        Seconds after which the search returns the best signs so far. The relaxation uses at most
        half of the time, but a factorisation that has started is completed; odd cycles use at least
        four tenths. With a time limit results depend on the machine.
    n_jobs : int, default=1
        Number of threads of the search, -1 for all cores; the result does not depend on it.
    """

    name = "search"
    summary = "annealing, bifurcation and tabu search on replicas, with a proved bound"
    kind = "heuristic"
    binary_quadratic = True
    signed = True
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"bound": BOUNDS}
    positive: ClassVar[tuple[str, ...]] = ("effort",)

    tol: float = 2e-4
    bound: str = "auto"
    effort: float = 1.0
    time_limit: float | None = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Check the time limit and the number of threads too."""
        super().__post_init__()
        effective_jobs(self.n_jobs)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit={self.time_limit!r} must be a positive number or None")

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        form = problem.reduced()
        started = time.monotonic()
        largest = float(np.abs(form.P.data).max(initial=0.0))
        if 0.0 < largest < SMALLEST:
            advice = "multiply all numbers by 1e290"
            raise UnsupportedProblemError(f"the largest coupling is {largest:.3g}; {advice}")
        limit = np.inf if self.time_limit is None else self.time_limit
        by_cycles = self.bound == "cycles" or (self.bound == "auto" and suits_cycles(form))
        found = _Bound(details={"bound_method": "sdr" if self.bound == "auto" else self.bound})
        relaxed = None
        if by_cycles:
            if self.bound == "auto":
                relaxed = self._relaxed(form, run, started + 0.5 * limit)
                found.V = relaxed.V
        elif self.bound != "none":
            self._bound(form, found, run, started + 0.5 * limit)
        message = "search ended"
        stopped = False
        signs = np.ones(form.P.shape[0], dtype=np.int8)
        try:
            with run.stage("search"):
                until = started + (0.6 if by_cycles else 1.0) * limit
                signs = self._search(form, largest, found.V, run, until)
            stopped = time.monotonic() >= until
        except StopSolver:
            message = "stopped by the callback"
            stopped = True
        if by_cycles:
            signs = self._cycles(form, signs, relaxed, found, run, started + limit)
            if run.stopped:
                message = "stopped by the callback"
                stopped = True
        if stopped and not run.stopped:
            message = f"stopped by the time limit of {limit:g} s"
        signs = signs * signs[form.apex]
        labels = problem.spread(np.delete(signs, form.apex))
        objective = problem.objective(labels)
        bound = min(found.lower_bound - rounding_margin(problem), objective)
        return Outcome(
            scores=labels.astype(np.float64),
            labels=labels,
            lower_bound=objective if found.optimal else bound,
            bound_status=found.status,
            bound_kind="optimum" if found.optimal else "relaxation",
            iterations=len(run.history),
            converged=found.optimal or not stopped,
            message="optimal" if found.optimal else message,
            dual=None if found.dual is None else {"s": found.dual},
            info=found.details,
        )

    def _search(
        self, form: ReducedForm, scale: float, V: FloatArray | None, run: Run, deadline: float
    ) -> NDArray[np.int8]:
        starts = None
        if self.x0 is not None:
            x0 = np.where(np.asarray(self.x0)[form.nodes] < 0, -1.0, 1.0)
            starts = np.insert(x0, form.apex, 1.0)[:, None].astype(np.float32)
        return search(
            form.P,
            limits=Limits.for_size(form.P.shape[0], form.P.nnz, self.effort, deadline),
            V=V,
            starts=starts,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            report=lambda value: run.report(objective=form.constant - scale * value),
        )

    def _bound(self, form: ReducedForm, found: _Bound, run: Run, deadline: float) -> None:
        """Set the factor V, the lower bound, its status and the dual point."""
        n = form.P.shape[0]
        if self.bound in ("triangle", "gershgorin"):
            # 14 dense matrices at the peak, measured with 400 to 700 rows
            what = f"bound={self.bound!r} with {n} variables"
            check_memory(112.0 * n * n, what, "bound='sdr' accepts any number of variables")
        if self.bound == "gershgorin":
            with run.stage("bound"):
                upper, found.details["bounds_per_basis"] = gershgorin_bound(form.P.toarray())
            found.lower_bound = form.constant - upper
            found.status = "certified"
            return
        self._prove(form, self._relaxed(form, run, deadline), found, run, deadline)
        if self.bound == "triangle":
            with run.stage("triangles"), one_thread():
                tighter = triangle_bound(
                    form.P.toarray(), should_stop=lambda: time.monotonic() > deadline
                )
            found.details["n_triangles"] = tighter.n_triangles
            bound = form.constant - tighter.bound
            if bound > found.lower_bound or found.status != "certified":
                found.lower_bound = bound
                found.status = "certified"
                found.dual = None

    def _relaxed(self, form: ReducedForm, run: Run, deadline: float) -> _Relaxed:
        """Solve the semidefinite relaxation approximately, without a proof."""
        n = form.P.shape[0]
        provable = can_prove(form.P)
        huge = n > 200_000
        most = 40 if provable else 8 if huge else 16
        options: dict[str, Any] = {
            "rank": min(int(np.ceil(np.sqrt(2.0 * n))) + 1, most),
            "max_iter": self.max_iter if provable else min(self.max_iter, 100),
            "memory": 3 if huge else 6,
            "random_state": self.random_state,
        }
        # Large problems use a larger tolerance, because accurate eigenvalues take most of the time.
        tol = self.tol if provable else 5.0 * self.tol
        with run.stage("relaxation"):
            V, value, s = descended(form, tol=tol, deadline=deadline, **options)
        return _Relaxed(V, value, s, tol, provable, options)

    def _prove(
        self, form: ReducedForm, relaxed: _Relaxed, found: _Bound, run: Run, deadline: float
    ) -> None:
        """Set V, and the bound that the relaxation proves."""
        V = relaxed.V
        value = relaxed.value
        s = relaxed.s
        tol = relaxed.tol
        with run.stage("proof"):
            if relaxed.provable:
                step = 0.1 * tol * abs(value) / float(s.sum())
                proved = proved_bound(form, s, step=step, deadline=deadline)
            else:
                seed = self.random_state
                proved = estimated_bound(form, s, tol=tol, deadline=deadline, random_state=seed)
        loose = proved is None or value - proved[0] > 4.0 * tol * abs(value)
        if relaxed.provable and loose and time.monotonic() < deadline:
            # The point is a saddle. Eigenvectors give directions of descent.
            late = Run(lambda _: time.monotonic() > deadline, seconds=run.seconds)
            spheres = solve_spheres(form, **relaxed.options, tol=5.0 * tol, start=None, run=late)
            V = spheres.V
            value = spheres.value
            with run.stage("proof"):
                proved = proved_bound(form, spheres.s, deadline=deadline) or proved
        found.V = V
        found.details["sdr_value"] = value
        # The sum of all couplings is a bound even if there was no time for another.
        total = float(np.abs(form.P.data).sum()) * (1.0 + form.P.nnz * EPS)
        found.lower_bound = form.constant - total
        found.status = "certified"
        if proved is not None and proved[0] > found.lower_bound:
            found.lower_bound, found.dual = proved
            found.status = "certified" if relaxed.provable else "estimated"

    def _cycles(
        self,
        form: ReducedForm,
        signs: NDArray[np.int8],
        relaxed: _Relaxed | None,
        found: _Bound,
        run: Run,
        deadline: float,
    ) -> NDArray[np.int8]:
        """Set the bound by odd cycles, or by the relaxation if that is better; return the signs."""
        pivots = None
        if self.bound == "auto":
            pivots = int(_PIVOTS * max(self.effort, 0.1))
        with run.stage("cycles"):
            tree = cycle_tree(
                form,
                deadline=-np.inf if run.stopped else deadline,
                max_nodes=1,
                max_pivots=pivots,
                random_state=self.random_state,
                useful=None if relaxed is None else relaxed.value,
            )
            tree.offer(signs)
            with suppress(StopSolver):
                tree.grow(lambda nodes, bound: report_tree(form, tree, run, nodes, bound))
        found.lower_bound = lower_bound(form, tree)
        found.status = "certified"
        found.optimal = tree.optimal
        if relaxed is not None and not found.optimal:
            found.details["sdr_value"] = relaxed.value
            if relaxed.value > found.lower_bound:  # the relaxation may be better
                by_cycles = found.lower_bound
                self._prove(form, relaxed, found, run, deadline)
                if found.status == "certified" and found.lower_bound > by_cycles:
                    return tree.signs
                found.lower_bound = by_cycles
                found.status = "certified"
                found.dual = None
        found.details |= {"bound_method": "cycles", **details_of(tree)}
        return tree.signs
