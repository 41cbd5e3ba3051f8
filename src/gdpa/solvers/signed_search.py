"""A good answer and a proved bound for couplings of both signs: search beside a relaxation.

The semidefinite relaxation (``sdr_sphere``) gives a dual point s and a factor V. The bound is
``constant - (1 + t) 1's`` for a t that a factorisation of ``(1 + t) diag(s) - P`` proves; V,
rounded, is among the starts of the search (``search``).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..gershgorin.bounds import rounding_margin
from ..linalg.psd_proof import can_prove, lowest_eigenvalue_bound
from ..problem import Problem, ReducedForm
from ..solution import BoundStatus
from ..threads import effective_jobs, one_thread
from .base import Outcome, Run, Solver, StopSolver
from .basis_pursuit import gershgorin_bound
from .manifold_lbfgs import descend
from .sdr_sphere import SphereProduct, solve_spheres
from .search import Limits, search
from .triangle import triangle_bound

__all__ = ["SignedSearch", "proved_bound"]

FloatArray = NDArray[np.float64]

BOUNDS = ("sdr", "triangle", "gershgorin", "none")
_EPS = float(np.finfo(np.float64).eps)


def proved_bound(
    form: ReducedForm, s: FloatArray, *, step: float = 2e-5
) -> tuple[float, FloatArray] | None:
    """Raise s in proportion until a factorisation proves ``diag(s) - P`` psd.

    Parameters
    ----------
    form : ReducedForm
        The couplings and the constant.
    s : ndarray of shape (n,)
        Positive dual point, nearly feasible.
    step : float, default=2e-5
        The first relative raise; tripled until the proof succeeds.

    Returns
    -------
    bound : float
        Lower bound of the problem; only the rounding of the constant is not accounted for.
    s : ndarray
        The feasible dual point.
    """
    n = s.size
    d = 1.0 / np.sqrt(s)
    B = (sp.diags_array(d) @ form.P @ sp.diags_array(d)).tocsr()
    identity = sp.diags_array(np.ones(n))
    # B is wrong by three roundings per entry; that moves an eigenvalue by no more than a row's sum.
    rounding = 8.0 * _EPS * (1.0 + float(abs(B).sum(axis=1).max()))
    t = step
    for _ in range(20):
        lowest = lowest_eigenvalue_bound(((1.0 + t) * identity - B).tocsr())
        if lowest is not None:
            t += rounding - lowest
            return form.constant - (1.0 + t) * float(s.sum()) * (1.0 + n * _EPS), (1.0 + t) * s
        t *= 3.0
    return None


def descended(
    form: ReducedForm, *, rank: int, tol: float, max_iter: int, random_state: int
) -> tuple[FloatArray, float, FloatArray]:
    """Unit rows V near a stationary point of the relaxation, its value, and the dual point."""
    spheres = SphereProduct(form)
    rng = np.random.default_rng(random_state)
    V = spheres.move(rng.standard_normal((form.P.shape[0], rank)), np.zeros(()))
    point = spheres.evaluate(V)
    small = 0
    for point, decrease in itertools.islice(descend(spheres, V), max_iter):
        # A smallest eigenvalue converges like the root of the value.
        small = small + 1 if decrease <= tol**2 * abs(point.value) else 0
        if small == 3:
            break
    return point.where, point.value, 0.5 * point.curvature.ravel()


@dataclass(frozen=True, kw_only=True)
class SignedSearch(Solver):
    """Search on blocks of replicas for the value, a relaxation for the bound.

    ``info`` has ``sdr_value``, the value of the semidefinite relaxation at its factor, and the
    ``bound_method``. ``seconds`` has the time of search, relaxation and proof.

    Parameters
    ----------
    tol : float, default=2e-4
        Accepted gap between the value of the relaxation and its bound, relative to the value.
    bound : {"sdr", "triangle", "gershgorin", "none"}, default="sdr"
        Where the bound comes from: the semidefinite relaxation; the same with triangle
        inequalities, for some hundred variables; diagonal dominance in changing bases, for some
        fifty variables and comparison; or no bound.
    effort : float, default=1.0
        Factor on the sweeps, recombinations and populations of the search.
    time_limit : float, optional
        Seconds after which the search ends with the best signs so far. Results then depend on the
        machine. The relaxation is not cut short.
    n_jobs : int, default=1
        Threads of the search, -1 for all cores; the result does not depend on it.
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
        """Check the time limit and the threads too."""
        super().__post_init__()
        effective_jobs(self.n_jobs)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit={self.time_limit!r} must be a positive number or None")

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        form = problem.reduced()
        message, stopped = "search ended", False
        details: dict[str, Any] = {"bound_method": self.bound}
        V = None
        bound, dual = -np.inf, None
        status: BoundStatus = "none"
        if self.bound != "none":
            V, bound, status, dual = self._bound(form, details, run)
        signs = np.ones(form.P.shape[0], dtype=np.int8)
        try:
            with run.stage("search"):
                signs = self._search(form, V, run)
        except StopSolver:
            message, stopped = "stopped by the callback", True
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

    def _search(self, form: ReducedForm, V: FloatArray | None, run: Run) -> NDArray[np.int8]:
        deadline = np.inf if self.time_limit is None else time.monotonic() + self.time_limit
        scale = float(np.abs(form.P.data).max())
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
        self, form: ReducedForm, details: dict[str, Any], run: Run
    ) -> tuple[FloatArray | None, float, BoundStatus, FloatArray | None]:
        """Factor, lower bound, status and dual point."""
        n = form.P.shape[0]
        if self.bound == "gershgorin":
            with run.stage("bound"):
                upper, details["bounds_per_basis"] = gershgorin_bound(form.P.toarray())
            return None, form.constant - upper, "certified", None
        rank = min(int(np.ceil(np.sqrt(2.0 * n))) + 1, 40 if n <= 200_000 else 12)
        options: dict[str, Any] = {"rank": rank, "tol": self.tol, "random_state": self.random_state}
        status: BoundStatus = "certified"
        proved = None
        if can_prove(form.P):
            with run.stage("relaxation"):
                V, value, s = descended(form, max_iter=self.max_iter, **options)
            with run.stage("proof"):
                allowed = self.tol * abs(value) / float(s.sum())
                proved = proved_bound(form, s, step=0.1 * allowed)
        if proved is not None and value - proved[0] <= 4.0 * self.tol * abs(value):
            bound, s = proved
        else:
            # A saddle, or too large for a proof: eigenvalues show the way and estimate the bound.
            # The last digits of an eigenvalue cost most of the time.
            found = solve_spheres(
                form,
                **options | {"tol": 5.0 * self.tol},
                max_iter=self.max_iter if n <= 200_000 else min(self.max_iter, 200),
                memory=6 if n <= 200_000 else 3,
                prove_below=0,
                start=None,
                run=Run(seconds=run.seconds),
            )
            V, value, bound, s, status = found.V, found.value, found.bound, found.s, found.status
            with run.stage("proof"):
                proved = proved_bound(form, s) if can_prove(form.P) else None
            if proved is not None:
                (bound, s), status = proved, "certified"
        details["sdr_value"] = value
        dual: FloatArray | None = s
        if self.bound == "triangle":
            with run.stage("triangles"), one_thread():
                tighter = triangle_bound(form.P.toarray())
            details["n_triangles"] = tighter.n_triangles
            if form.constant - tighter.bound > bound or status != "certified":
                bound, status, dual = form.constant - tighter.bound, "certified", None
        return V, bound, status, dual
