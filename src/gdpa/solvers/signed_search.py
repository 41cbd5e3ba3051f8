"""Good labels and a proved bound for couplings of both signs: search plus relaxation.

The semidefinite relaxation (``sdr_sphere``) gives a dual point s and a factor V. The bound is
``constant - (1 + t) 1's``, where a factorisation of ``(1 + t) diag(s) - P`` proves t. If P is too
large for that, t is estimated from an eigenvalue. Roundings of V are among the starts of the search
(``search``). The sum of all absolute couplings is always a valid bound.
"""

from __future__ import annotations

import itertools
import time
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
from .manifold_lbfgs import descend, inner
from .sdr_sphere import SphereProduct, proved_bound, scaled_couplings, solve_spheres
from .search import Limits, search
from .triangle import triangle_bound

BOUNDS = ("sdr", "triangle", "gershgorin", "none")


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
    ``bound_method``. ``seconds`` has the times of search, relaxation and proof.

    Parameters
    ----------
    tol : float, default=2e-4
        Accepted gap between the value of the relaxation and its bound, relative to the value.
    bound : {"sdr", "triangle", "gershgorin", "none"}, default="sdr"
        Source of the bound: the semidefinite relaxation; the same with triangle inequalities, for
        about a hundred variables; diagonal dominance in changing bases, for comparison with about
        fifty variables; or no bound.
    effort : float, default=1.0
        Factor for the sweeps, recombinations and populations of the search.
    time_limit : float, optional
        Seconds after which the search returns the best signs so far. The relaxation uses at most
        half of the time, but a factorisation that has started is completed. With a time limit
        results depend on the machine.
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
    bound: str = "sdr"
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
        form, started = problem.reduced(), time.monotonic()
        largest = float(np.abs(form.P.data).max(initial=0.0))
        if 0.0 < largest < 1e-290:
            advice = "multiply all numbers by 1e290"
            raise UnsupportedProblemError(f"the largest coupling is {largest:.3g}; {advice}")
        limit = np.inf if self.time_limit is None else self.time_limit
        message, stopped = "search ended", False
        details: dict[str, Any] = {"bound_method": self.bound}
        V = None
        bound, dual = -np.inf, None
        status: BoundStatus = "none"
        if self.bound != "none":
            V, bound, status, dual = self._bound(form, details, run, started + 0.5 * limit)
        signs = np.ones(form.P.shape[0], dtype=np.int8)
        try:
            with run.stage("search"):
                signs = self._search(form, largest, V, run, started + limit)
        except StopSolver:
            message, stopped = "stopped by the callback", True
        if not stopped and time.monotonic() >= started + limit:
            message, stopped = f"stopped by the time limit of {limit:g} s", True
        signs = signs * signs[form.apex]
        labels = problem.spread(np.delete(signs, form.apex))
        bound -= rounding_margin(problem)
        return Outcome(
            scores=labels.astype(np.float64),
            labels=labels,
            lower_bound=min(bound, problem.objective(labels)),
            bound_status=status,
            bound_kind="relaxation",
            iterations=len(run.history),
            converged=not stopped,
            message=message,
            dual=None if dual is None else {"s": dual},
            info=details,
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

    def _bound(
        self, form: ReducedForm, details: dict[str, Any], run: Run, deadline: float
    ) -> tuple[FloatArray | None, float, BoundStatus, FloatArray | None]:
        """Return the factor V, the lower bound, its status and the dual point."""
        n = form.P.shape[0]
        if self.bound != "sdr":  # 14 dense matrices at the peak, measured with 400 to 700 rows
            what = f"bound={self.bound!r} with {n} variables"
            check_memory(112.0 * n * n, what, "bound='sdr' accepts any number of variables")
        if self.bound == "gershgorin":
            with run.stage("bound"):
                upper, details["bounds_per_basis"] = gershgorin_bound(form.P.toarray())
            return None, form.constant - upper, "certified", None
        provable, huge = can_prove(form.P), n > 200_000
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
        with run.stage("proof"):
            if provable:
                step = 0.1 * tol * abs(value) / float(s.sum())
                found = proved_bound(form, s, step=step, deadline=deadline)
            else:
                seed = self.random_state
                found = estimated_bound(form, s, tol=tol, deadline=deadline, random_state=seed)
        loose = found is None or value - found[0] > 4.0 * tol * abs(value)
        if provable and loose and time.monotonic() < deadline:
            # The point is a saddle. Eigenvectors give directions of descent.
            late = Run(lambda _: time.monotonic() > deadline, seconds=run.seconds)
            spheres = solve_spheres(form, **options, tol=5.0 * tol, start=None, run=late)
            V, value = spheres.V, spheres.value
            with run.stage("proof"):
                found = proved_bound(form, spheres.s, deadline=deadline) or found
        details["sdr_value"] = value
        # The sum of all couplings is a bound even if there was no time for another.
        total = float(np.abs(form.P.data).sum()) * (1.0 + form.P.nnz * EPS)
        bound: float = form.constant - total
        dual: FloatArray | None = None
        status: BoundStatus = "certified"
        if found is not None and found[0] > bound:
            bound, dual = found
            status = "certified" if provable else "estimated"
        if self.bound == "triangle":
            with run.stage("triangles"), one_thread():
                tighter = triangle_bound(
                    form.P.toarray(), should_stop=lambda: time.monotonic() > deadline
                )
            details["n_triangles"] = tighter.n_triangles
            if form.constant - tighter.bound > bound or status != "certified":
                bound, status, dual = form.constant - tighter.bound, "certified", None
        return V, bound, status, dual
