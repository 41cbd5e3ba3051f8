"""Exact optimum of small problems by branch and bound with triangle bounds.

A node of the tree fixes some variables relative to the apex: their rows are merged into the apex's
row with a sign, when the node is expanded, so that open nodes contain no dense matrix. The node is
dropped if its proved ``triangle_bound`` shows that it contains no better value. If all couplings
are multiples of one number, values are multiples of a step, and a bound less than one step above
the best value is enough. Nodes with few free variables are enumerated. While the tree is not empty,
the bound of the problem is the largest bound of an open node.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..errors import UnsupportedProblemError
from ..gershgorin.bounds import rounding_margin
from ..memory import check_memory
from ..problem import Problem
from ..problem.binary_quadratic import value_step
from ..threads import one_thread
from .base import Outcome, Run, Solver, StopSolver
from .search import Limits, search
from .triangle import Cuts, TriangleBound, triangle_bound

_ENUMERATE = 12  # nodes with at most this many free variables are enumerated


@dataclass(frozen=True, eq=False)
class _Node:
    """The fixed variables of a node; its couplings are computed when it is expanded.

    `start` is the bound of the parent, which both children share, and the row that the parent's
    couplings have for the variable that was fixed last.
    """

    fixed: tuple[tuple[int, int], ...]
    bound: float
    start: tuple[TriangleBound, int] | None = None

    def dual_point(self) -> tuple[FloatArray, Cuts] | None:
        """Return the diagonal and the inequalities of the parent, with the last variable merged."""
        if self.start is None:
            return None
        found, row = self.start
        sign = self.fixed[-1][1]
        return np.delete(found.y, row), found.cuts.merged(row, found.y.size - 1, sign)


@dataclass(frozen=True, eq=False)
class _Part:
    """Couplings of the free rows and the apex (the last row) after fixing some variables."""

    P: FloatArray
    base: float
    free: NDArray[np.intp]

    @classmethod
    def of(cls, P: FloatArray, fixed: tuple[tuple[int, int], ...]) -> _Part:
        """Merge fixed variables into the apex, each with its sign."""
        n = P.shape[0]
        signs = np.zeros(n)
        signs[-1] = 1.0
        for variable, sign in fixed:
            signs[variable] = sign
        merged = P @ signs
        free = np.flatnonzero(signs == 0)
        part = np.zeros((free.size + 1, free.size + 1))
        part[:-1, :-1] = P[np.ix_(free, free)]
        part[-1, :-1] = part[:-1, -1] = merged[free]
        return cls(part, float(signs @ merged), free)


@dataclass(frozen=True, kw_only=True)
class BranchAndBound(Solver):
    """Find the exact optimum by branch and bound, or a gap at the limits.

    ``info`` has ``nodes``, the number of computed bounds, and ``optimal``, whether the labels are
    proved to be optimal.

    Parameters
    ----------
    max_iter : int, default=10000
        Maximum number of nodes of the tree.
    time_limit : float, default=60
        Seconds after which the best value and the bound so far are returned.
    effort : float, default=0.3
        Effort of the initial search.
    n_jobs : int, default=1
        Number of threads of the initial search.
    largest : int, default=500
        Maximum number of variables.
    """

    name = "branch-and-bound"
    summary = "exact optimum of small problems by branch and bound on triangle bounds"
    kind = "exact"
    binary_quadratic = True
    signed = True
    whole: ClassVar[dict[str, int]] = {"largest": 1}
    positive: ClassVar[tuple[str, ...]] = ("time_limit", "effort")

    max_iter: int = 10_000
    time_limit: float = 60.0
    effort: float = 0.3
    n_jobs: int = 1
    largest: int = 500

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        form = problem.reduced()
        n = form.P.shape[0]
        if n > self.largest + 1:
            raise UnsupportedProblemError(
                f"method {self.name!r} accepts up to largest={self.largest} variables, but the "
                f"problem has {n}; method 'search' accepts any number"
            )
        # As for the triangle bound of "search".
        what = f"method {self.name!r} with {n} variables"
        check_memory(112.0 * n * n, what, "method 'search' accepts any number")
        order = np.append(np.delete(np.arange(n), form.apex), form.apex)
        dense = form.P.toarray()[order][:, order]
        tree = _Tree(dense, time.monotonic() + self.time_limit, self.max_iter)
        message = ""
        stopped = False
        try:
            with run.stage("search"):
                tree.start(self.effort, self.random_state, self.n_jobs)
            with run.stage("tree"), one_thread():
                for value, bound in tree.grow():
                    run.report(objective=form.constant - value, lower_bound=form.constant - bound)
        except StopSolver:
            message = "stopped by the callback"
            stopped = True
        labels = problem.spread(tree.signs[:-1].astype(np.int8))
        objective = problem.objective(labels)
        margin = rounding_margin(problem)
        bound = form.constant - tree.bound - margin
        # A closed tree proves that the labels are optimal, up to the rounding of huge couplings.
        slack = 2.0 * margin + 1e-8 * abs(objective)
        optimal = tree.closed and (tree.exact or objective - bound <= slack)
        return Outcome(
            scores=labels.astype(np.float64),
            labels=labels,
            lower_bound=objective if optimal and tree.exact else min(bound, objective),
            bound_status="certified",
            bound_kind="optimum" if optimal else "relaxation",
            iterations=tree.nodes,
            converged=optimal and not stopped,
            message=message or ("optimal" if optimal else tree.message or "limited by rounding"),
            info={"nodes": tree.nodes, "optimal": optimal},
        )


class _Tree:
    """The open nodes, best bound first, and the best signs so far."""

    def __init__(self, P: FloatArray, deadline: float, max_nodes: int) -> None:
        self.P = P
        self.deadline = deadline
        self.max_nodes = max_nodes
        n = P.shape[0]
        self.signs = np.ones(n)
        self.value = float(P.sum())
        self.step = value_step(sp.csr_array(P))
        self.exact = self.step > 0
        self.margin = 16.0 * (n + 8) * float(np.finfo(np.float64).eps) * float(np.abs(P).sum())
        # A node stays open only if its bound exceeds the best value by this much.
        self.excess = 0.999 * self.step if self.exact else 1e-10 * float(np.abs(P).sum())
        self.root_bound = float(np.abs(P).sum())
        self.done = 0.0  # largest bound of a dropped node
        self.heap: list[tuple[float, int, _Node]] = []
        self.nodes = 0
        self.started = False
        self.message = ""
        self.count = itertools.count()

    @property
    def closed(self) -> bool:
        """Whether no node is open, so that the best value is the optimum."""
        return self.started and not self.heap and not self.message

    @property
    def bound(self) -> float:
        """Upper bound of the value of the problem."""
        if not self.started:
            return self.root_bound
        open_bound = -self.heap[0][0] if self.heap else -np.inf
        closed = self.value if self.exact else max(self.value, self.done)
        return max(closed, open_bound)

    def start(self, effort: float, random_state: int, n_jobs: int) -> None:
        """Find good signs before the first bound."""
        n = self.P.shape[0]
        if n - 1 > _ENUMERATE:
            P = sp.csr_array(self.P)
            limits = Limits.for_size(n, P.nnz, effort, self.deadline)
            found = search(P, limits=limits, random_state=random_state, n_jobs=n_jobs)
            self._offer(found.astype(np.float64) * float(found[-1]))
        self._push(_Node((), self.root_bound))
        self.started = True

    def _offer(self, signs: FloatArray) -> None:
        value = float(signs @ self.P @ signs)
        if value > self.value:
            self.signs = signs
            self.value = value

    def _push(self, node: _Node) -> None:
        heapq.heappush(self.heap, (-node.bound, next(self.count), node))

    def _needless(self, bound: float) -> bool:
        return bool(bound + self.margin < self.value + self.excess)

    def grow(self) -> Iterator[tuple[float, float]]:
        """Expand the node with the largest bound repeatedly; yield value and bound."""
        while self.heap:
            if time.monotonic() > self.deadline or self.nodes >= self.max_nodes:
                self.message = "time limit" if self.nodes < self.max_nodes else "max_iter reached"
                return
            node = heapq.heappop(self.heap)[2]
            free = self.P.shape[0] - 1 - len(node.fixed)
            if free > _ENUMERATE and self._needless(node.bound):
                self._drop(node.bound)
                continue
            self.nodes += 1
            part = _Part.of(self.P, node.fixed)
            if free <= _ENUMERATE:
                self._enumerate(node, part)
            else:
                self._branch(node, part)
            yield self.value, self.bound

    def _drop(self, bound: float) -> None:
        self.done = max(self.done, bound + self.margin) if self.done else bound + self.margin

    def _branch(self, node: _Node, part: _Part) -> None:
        target = self.value + self.excess - self.margin - part.base
        found: TriangleBound = triangle_bound(
            part.P,
            target=target,
            start=node.dual_point(),
            should_stop=lambda: time.monotonic() > self.deadline,
        )
        bound = min(node.bound, found.bound + part.base)
        rounded = np.where(found.X[:, -1] < 0, -1.0, 1.0)
        self._offer(self._whole(node, part, rounded[:-1]))
        if self._needless(bound):
            self._drop(bound)
            return
        # Branch on the most undecided variable of X.
        row = int(np.argmin(np.abs(found.X[:-1, -1])))
        kept = replace(found, X=np.empty((0, 0)))  # open nodes need no dense matrix
        for sign in (1, -1):
            fixed = (*node.fixed, (int(part.free[row]), sign))
            self._push(_Node(fixed, bound, (kept, row)))

    def _whole(self, node: _Node, part: _Part, free: FloatArray) -> FloatArray:
        signs = np.ones(self.P.shape[0])
        signs[part.free] = free
        for variable, sign in node.fixed:
            signs[variable] = sign
        return signs

    def _enumerate(self, node: _Node, part: _Part) -> None:
        k = part.free.size
        bits = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
        Z = np.concatenate((2.0 * bits - 1.0, np.ones((2**k, 1))), axis=1)
        values = np.einsum("ij,ij->i", Z @ part.P, Z)
        self._offer(self._whole(node, part, Z[int(np.argmax(values)), :-1]))
        self._drop(float(values.max()) + part.base)
