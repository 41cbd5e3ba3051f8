"""Harmonic function: every unlabelled node is the weighted mean of its neighbours.

    (L + diag(a + gamma)) x = a xh (+ h)

is the labelled system of :mod:`gdpa.system`. With an infinite label weight a and no self-loop gamma
its solution is the harmonic function (Laplace learning, Gaussian fields): ``L_uu x_u = W_ul xh``. A
self-loop keeps the influence of labels local. A finite weight lets the graph override labels. A
linear term h acts as an edge of weight |h| to a node with label sign(h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import FloatArray
from ..gershgorin.bounds import relaxation_bound, trivial_bound
from ..linalg.preconditioners import PreconditionerLike
from ..policy import DEFAULT_POLICY, Policy
from ..problem import GraphProblem
from ..system import LabeledSystem
from .base import Outcome, Run, Solver


@dataclass(frozen=True, kw_only=True)
class Harmonic(Solver):
    """Solve for the harmonic function of the labels, or the more general labelled system.

    Parameters
    ----------
    label_weight : float, default=inf
        Weight a of the labels; an infinite weight keeps them exactly.
    self_loop : float or array-like of shape (n_nodes,), default=0
        Self-loop gamma, which pulls scores to 0 and keeps the influence of labels local.
    preconditioner : str, default="auto"
        See :func:`gdpa.linalg.solve_spd`.
    bound : {"relaxation", "trivial"}, default="relaxation"
        Lower bound of a binary problem: the better of the trivial bound and the bound of the
        semidefinite relaxation by aligned discs
        (:func:`~gdpa.gershgorin.bounds.relaxation_bound`, four products with the graph), or the
        trivial bound alone.
    policy : Policy
        Size limits of the linear solve.
    n_jobs : int, optional
        Threads of the linear solve; results do not depend on it.
    tol, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`.
    max_iter : int, optional
        Maximum number of iterations of the linear solve; the default is that of
        :func:`gdpa.linalg.solve_spd`.
    """

    name: ClassVar[str] = "harmonic"
    summary: ClassVar[str] = (
        "harmonic function: every unlabelled node is the mean of its neighbours"
    )
    kind: ClassVar[str] = "limit"
    bytes_per_edge: ClassVar[float] = 10.0
    choices: ClassVar[dict[str, Any]] = {"bound": ("relaxation", "trivial")}

    label_weight: float = np.inf
    self_loop: float | FloatArray = 0.0
    preconditioner: PreconditionerLike = "auto"
    bound: str = "relaxation"
    max_iter: int | None = None  # type: ignore[assignment]
    policy: Policy = DEFAULT_POLICY
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check the options of this method."""
        super().__post_init__()
        if not (isinstance(self.label_weight, int | float) and self.label_weight > 0):
            raise ValueError(
                f"label_weight={self.label_weight!r} must be a positive number; inf keeps labels"
            )
        if not np.isfinite(np.asarray(self.self_loop, dtype=np.float64)).all():
            raise ValueError("self_loop must be finite")

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        if np.ndim(self.self_loop) and np.shape(self.self_loop) != (problem.n_nodes,):
            raise ValueError(
                f"self_loop must be a number or have one entry per node ({problem.n_nodes}), "
                f"got shape {np.shape(self.self_loop)}"
            )
        system = LabeledSystem(
            problem.adjacency,
            problem.diagonal,
            problem.labeled,
            problem.labels[problem.labeled].astype(np.float64),
            label_weight=self.label_weight,
            self_loop=self.self_loop,
            evidence=problem.bias if problem.bias.any() else None,
            policy=self.policy,
            n_jobs=self.n_jobs,
        )
        with run.stage("solve"):
            result = system.solve(
                tol=self.tol,
                max_iter=self.max_iter,
                x0=self.x0,
                preconditioner=self.preconditioner,
                callback=run.watch,
            )
        with run.stage("bound"):
            bounds = {"trivial": trivial_bound(problem)}
            if self.bound == "relaxation" and bounds["trivial"] > -np.inf:
                bounds["relaxation"] = relaxation_bound(problem, result.x)
            kind = max(bounds, key=bounds.__getitem__)
        return Outcome.of(
            result,
            result.x,
            lower_bound=bounds[kind],
            bound_status="certified",
            bound_kind=kind,
            info={
                "residual": result.residual,
                "matvecs": result.matvecs,
                "linear_solver": result.method,
            },
        )
