"""Base class of all solvers: one signature, and the steps that all methods share.

:meth:`Solver.solve` checks the problem, removes unreached nodes, solves trivial problems, calls the
method's :meth:`Solver._solve` on the rest, and assembles the :class:`~gdpa.Solution`. A method
therefore sees only problems in which every node is connected to a label or to evidence, both
classes occur, and at least one node is unlabelled.

To add a solver, write a file with one frozen keyword-only dataclass that derives from
:class:`Solver`. Declare its class attributes, implement ``_solve(problem, run) -> Outcome``, and
add one line to ``registry.py``.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import memory
from ..checks import check_positive, check_vector
from ..errors import (
    ConvergenceWarning,
    DegenerateProblemWarning,
    UnreachedWarning,
    UnsupportedProblemError,
    nearest_name,
    require,
)
from ..problem import BinaryQuadratic, GraphProblem, Problem
from ..solution import BoundStatus, DualVariables, Solution
from .safe_bound import safe_bound

Callback = Callable[[Mapping[str, Any]], Any]


STOPPED = "stopped by the callback"


class StopSolver(Exception):
    """Raised by :meth:`Run.report` when the callback asks to stop."""


class OtherMethodsError(UnsupportedProblemError):
    """The method cannot solve this kind of problem; the registry lists methods that can."""


@dataclass(frozen=True)
class Outcome:
    """Result of :meth:`Solver._solve`.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes,)
        Real values whose signs are the labels.
    labels : ndarray, optional
        Labels, where they are not simply the signs of the scores.
    lower_bound, bound_status, bound_kind, iterations, converged, message, dual, info
        As in :class:`~gdpa.Solution`.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8] | None = None
    lower_bound: float = -np.inf
    bound_status: BoundStatus = "none"
    bound_kind: str = "relaxation"
    iterations: int = 0
    converged: bool = True
    message: str = "done"
    dual: DualVariables | Mapping[str, NDArray[np.float64]] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: Any, scores: NDArray[np.float64], **facts: Any) -> Outcome:
        """Return the outcome of an iteration: how it ended, its scores and other fields."""
        facts |= {"iterations": result.iterations, "converged": result.converged}
        return cls(scores, message=result.message, **facts)

    @classmethod
    def optimal(cls, problem: Problem, labels: NDArray[np.int8], message: str = "done") -> Outcome:
        """Return the outcome for labels known to be optimal; their objective is the bound."""
        return cls(
            scores=labels.astype(np.float64),
            labels=labels,
            lower_bound=problem.objective(labels),
            bound_status="certified",
            bound_kind="optimum",
            message=message,
        )


@dataclass
class Run:
    """History, stage times and user callback of one solve.

    Reported objectives and bounds are increased by `shift`, the constant of the user's problem.
    """

    callback: Callback | None = None
    history: list[Mapping[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    shift: float = 0.0
    stopped: bool = False  # whether the callback has asked to stop

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to stage `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def report(self, **values: Any) -> None:
        """Record one iteration and call the callback; raise StopSolver if that returns True."""
        self.report_with(None, values)

    def report_with(
        self, details: Callable[[], Mapping[str, Any]] | None, values: dict[str, Any]
    ) -> None:
        """Report an iteration; `details` returns large values, which only the callback receives."""
        shifted = ("objective", "lower_bound", "value", "bound", "primal", "dual")
        values |= {name: values[name] + self.shift for name in shifted if name in values}
        entry = MappingProxyType(values)
        self.history.append(entry)
        if self.callback is not None:
            if details is not None:
                entry = MappingProxyType({**entry, **details()})
            answer = self.callback(entry)
            if isinstance(answer, bool | np.bool_) and answer:
                self.stopped = True
                raise StopSolver

    def watch(self, values: Mapping[str, Any]) -> bool:
        """Report an iteration and return whether the callback asks to stop."""
        try:
            self.report(**values)
        except StopSolver:
            return True
        return False


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """Base of all methods.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative tolerance of the method's stopping rule.
    max_iter : int, default=1000
        Maximum number of iterations of the outermost loop.
    x0 : array-like of shape (n_nodes,), optional
        Initial scores (zeros and ones for a QUBO), for methods that can use them.
    callback : callable, optional
        Called once per iteration with a mapping of reported values, and once at the end by methods
        that do not iterate. Returning True stops the method, which then returns its best point,
        marked as not converged.
    random_state : int, default=0
        Random seed.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    kind: ClassVar[str]  # "exact", "relaxation", "heuristic" or "limit"
    binary_quadratic: ClassVar[bool] = False  # accepts BinaryQuadratic too
    signed: ClassVar[bool] = False  # accepts negative couplings
    extras: ClassVar[tuple[tuple[str, str], ...]] = ()  # (module, extra) that must be installed
    # Accepted option values: names, integers with their minimum, and positive numbers.
    choices: ClassVar[Mapping[str, Collection[str]]] = {}
    whole: ClassVar[Mapping[str, int]] = {}
    positive: ClassVar[tuple[str, ...]] = ()
    # Peak memory of a solve beyond that of the problem, in bytes per edge, measured on graphs of
    # all pairs. It is 0 for methods that need little or check their memory themselves.
    bytes_per_edge: ClassVar[float] = 0.0

    tol: float = 1e-6
    max_iter: int = 1000
    x0: Any = None
    callback: Callback | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the options against the declarations; None is valid if it is the default."""
        for option in ("tol", *self.positive):
            check_positive(getattr(self, option), option)
        for option, least in {"max_iter": 1, **self.whole}.items():
            value = getattr(self, option)
            if value is not None or getattr(type(self), option) is not None:
                check_positive(value, option, least)
        for option, accepted in self.choices.items():
            value = getattr(self, option)
            if value not in accepted:
                hint = nearest_name(value, list(accepted))
                raise ValueError(f"{option}={value!r} is not known; {hint}")
        if self.callback is not None and not callable(self.callback):
            raise ValueError("callback must be callable or None")

    @abstractmethod
    def _solve(self, problem: Any, run: Run) -> Outcome:
        """Solve a problem that :meth:`solve` has checked."""

    def solve(self, problem: Problem) -> Solution:
        """Solve `problem`.

        Parameters
        ----------
        problem : GraphProblem or BinaryQuadratic
            The problem.

        Returns
        -------
        Solution
            Labels, scores, bounds and history.

        Raises
        ------
        UnsupportedProblemError
            If the method cannot solve this problem.
        MissingExtraError
            If the method needs an extra that is not installed.
        MemoryError
            If the method needs more memory than is available.
        """
        for module, extra in self.extras:
            require(module, extra)
        self._check_problem(problem)
        need = self.bytes_per_edge * problem.n_edges
        if need > memory.MIN_CHECKED_BYTES:
            memory.check_memory(
                need,
                f"method {self.name!r} on a graph with {problem.n_edges} edges",
                "use a sparse graph, such as gdpa.graph.neighbor_graph",
            )
        x0 = None if self.x0 is None else check_vector(self.x0, problem.n_nodes, "x0")
        run = Run(callback=self.callback)
        if isinstance(problem, GraphProblem):
            return self._solve_graph(problem, x0, run)
        return self._solve_quadratic(problem, x0, run)

    def _check_problem(self, problem: Problem) -> None:
        if not isinstance(problem, GraphProblem | BinaryQuadratic):
            raise TypeError(
                "problem must be a gdpa.GraphProblem or a gdpa.BinaryQuadratic, "
                f"got {type(problem).__name__}"
            )
        if isinstance(problem, BinaryQuadratic) and not self.binary_quadratic:
            raise OtherMethodsError(
                f"method {self.name!r} accepts a GraphProblem, not a BinaryQuadratic"
            )
        if problem.signed and not self.signed:
            raise OtherMethodsError(
                f"method {self.name!r} needs non-negative couplings, but the problem has negative "
                "ones"
            )

    def _solve_graph(
        self, problem: GraphProblem, x0: NDArray[np.float64] | None, run: Run
    ) -> Solution:
        n = problem.n_nodes
        if problem.unlabeled.size == 0:
            outcome = Outcome.optimal(problem, problem.labels, "all nodes are labelled")
            return self._assemble(problem, outcome, run)
        if problem.signed:  # with negative weights a constant labelling need not be optimal
            if problem.reduced().P.nnz:
                return self._assemble(problem, self._run(problem, x0, run), run)
            labels = np.where(problem.labels == 0, problem.majority, problem.labels)
            return self._assemble(problem, Outcome.optimal(problem, labels.astype(np.int8)), run)
        with run.stage("reach"):
            reached = problem.reached
        unreached = np.flatnonzero(~reached)
        if unreached.size:
            warnings.warn(
                f"{unreached.size} of {n} nodes are in components without a label or evidence; "
                f"they get the majority label ({problem.majority:+d}) and score 0 (see "
                "Solution.unreached)",
                UnreachedWarning,
                stacklevel=4,
            )
        only = problem.only_class
        if only is not None:
            warnings.warn(
                f"only class {only:+d} occurs among labels and evidence; every node gets it",
                DegenerateProblemWarning,
                stacklevel=4,
            )
            outcome = Outcome.optimal(problem, np.full(n, only, dtype=np.int8), "one class only")
            outcome = replace(outcome, scores=outcome.scores * reached)
            return self._assemble(problem, outcome, run, unreached)
        if not unreached.size:
            return self._assemble(problem, self._run(problem, x0, run), run)
        part = problem.restricted(reached)
        if part.unlabeled.size:
            outcome = self._run(part, None if x0 is None else x0[reached], run)
        else:
            outcome = Outcome.optimal(part, part.labels)
        # A constant labelling is optimal on components without labels. This is its objective.
        rest = np.where(reached, 0.0, 1.0)
        rest_value = float(problem.diagonal @ rest - rest @ (problem.adjacency @ rest))
        scores = np.zeros(n)
        scores[reached] = outcome.scores
        labels = np.full(n, problem.majority, dtype=np.int8)
        labels[reached] = _signs(outcome, part)
        whole = replace(
            outcome,
            scores=scores,
            labels=labels,
            lower_bound=outcome.lower_bound + rest_value,
            info={**outcome.info, "solved_nodes": np.flatnonzero(reached)},
        )
        return self._assemble(problem, whole, run, unreached)

    def _solve_quadratic(
        self, problem: BinaryQuadratic, x0: NDArray[np.float64] | None, run: Run
    ) -> Solution:
        plain, shift = problem.plain()
        run.shift = shift
        if plain.n_edges == 0:
            outcome = Outcome.optimal(plain, np.ones(plain.n_nodes, dtype=np.int8))
        else:
            start = None if x0 is None else problem.signs(x0)
            outcome = self._run(plain, start, run)
        if outcome.bound_status == "certified":
            # If values are multiples of a step, a gap below one step proves the optimum.
            objective = plain.objective(_signs(outcome, plain))
            if objective - outcome.lower_bound < 0.999 * plain.step:
                outcome = replace(outcome, lower_bound=objective, bound_kind="optimum")
        if plain is not problem:
            signs = _signs(outcome, plain)
            bound = outcome.lower_bound + shift
            bound -= 4.0 * float(np.finfo(np.float64).eps) * (abs(bound) + abs(shift))
            if outcome.lower_bound == plain.objective(signs):  # optimal
                bound = problem.objective(problem.assignment(signs[: problem.n_nodes]))
            outcome = replace(
                outcome,
                labels=signs[: problem.n_nodes],
                scores=outcome.scores[: problem.n_nodes],
                lower_bound=bound,
                info={k: v + shift if k == "sdr_value" else v for k, v in outcome.info.items()},
            )
        return self._assemble(problem, outcome, run)

    def _run(self, problem: Problem, x0: NDArray[np.float64] | None, run: Run) -> Outcome:
        solver = replace(self, x0=x0) if self.x0 is not None else self
        outcome = solver._solve(problem, run)
        # Methods without iterations report once, when they are done.
        if not run.history:
            run.watch({"iteration": max(outcome.iterations, 1)})
        if run.stopped and outcome.converged and outcome.bound_kind != "optimum":
            outcome = replace(outcome, converged=False, message=STOPPED)
        if not outcome.converged:
            warnings.warn(
                f"{self.name} did not converge: {outcome.message}", ConvergenceWarning, stacklevel=5
            )
        return outcome

    def _assemble(
        self,
        problem: Problem,
        outcome: Outcome,
        run: Run,
        unreached: NDArray[np.intp] | None = None,
    ) -> Solution:
        scores = np.asarray(outcome.scores, dtype=np.float64)
        if not np.isfinite(scores).all():
            raise FloatingPointError(
                f"{self.name} produced a score that is not finite; please report this problem"
            )
        labels = _signs(outcome, problem)
        facts = vars(outcome) | {
            "scores": scores,
            "labels": labels,
            "info": MappingProxyType(dict(outcome.info)),
        }
        objective = problem.objective(labels)
        if outcome.bound_status == "certified":
            bound = safe_bound(problem, objective, outcome.lower_bound)
            facts |= {"bound_status": "estimated"} if bound is None else {"lower_bound": bound}
        if facts["bound_status"] == "none" or not np.isfinite(facts["lower_bound"]):
            facts |= {"lower_bound": -np.inf, "bound_status": "none", "bound_kind": "none"}
        return Solution(
            method=self.name,
            objective=objective,
            history=tuple(run.history),
            seconds=MappingProxyType(dict(run.seconds)),
            unreached=np.empty(0, dtype=np.intp) if unreached is None else unreached,
            sense="minimise" if isinstance(problem, GraphProblem) else problem.sense,
            **facts,
        )


def _signs(outcome: Outcome, problem: Problem) -> NDArray[np.int8]:
    """Return the labels of an outcome: known labels kept, ties to the majority, anchor +1."""
    if outcome.labels is not None:
        labels = np.array(outcome.labels, dtype=np.int8)
    elif isinstance(problem, GraphProblem):
        tie = problem.majority
        labels = np.where(outcome.scores == 0, tie, np.sign(outcome.scores)).astype(np.int8)
    else:
        labels = np.where(outcome.scores < 0, -1, 1).astype(np.int8)
    if isinstance(problem, GraphProblem):
        known = problem.labeled
        labels[known] = problem.labels[known]
        return labels
    return problem.assignment(labels)
