"""Upper bounds of a maximum cut by odd cycles, and a tree of branches where a gap remains.

The graph is reduced (:mod:`gdpa.problem.reductions`). A linear program over the edges grows by
violated odd-cycle inequalities until its value proves the best cut, or no inequality is violated.
Then an edge is fixed at 0 in one branch and at 1 in the other; inequalities hold in all branches.

*Exact bounds.* The multipliers y >= 0 of the inequalities ``a_k x <= r_k`` are rounded to rational
numbers. For any such numbers every cut has weight at most

    sum_k y_k r_k + sum_e max(0, w_e - sum_k y_k a_ke) ,

which is computed with integers. So the bound holds however inaccurate the linear program was. It is
rounded down to a multiple of the step of the problem.

*Planar graphs*, and all graphs without a K5 minor, need no branches: the inequalities describe the
cut polytope (Barahona, Mahjoub 1986).
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..problem.cut_form import CutForm
from ..problem.reductions import reduce_cut
from .cycle_program import ProgramSolution, cycle_program
from .odd_cycles import Cycle, EdgeGraph, Separator
from .search import Annealer, crossover

# Denominators of the rounded multipliers; the first one that proves the best cut is used.
_DENOMINATORS = (1, 2, 12, 120, 2**10, 2**14, 2**18, 2**24, 2**32, 2**40)
_GAP_DENOMINATOR = 2**24
# Inequalities that are violated by less than this are not worth a row; interior points, which are
# less accurate, have to violate them by more.
_LEAST_VIOLATION = 1e-4
_LEAST_INSIDE = 1e-2
# Rows with more slack than this in so many successive rounds are dropped.
_SLACK = 1e-7
_OLDEST = 4
_SLACK_INSIDE = 1e-2
_OLDEST_INSIDE = 2
# A branch is made if the gap shrank by less than this share in so many rounds. Inequalities found
# at the root help all branches.
_SLOW = 0.1
_SLOW_ROOT = 0.01
_PATIENCE = 6
# Without a step, a gap of this share of the sum of all weights is considered closed.
_SMALLEST_GAP = 1e-10
# Integer weights with more binary digits than this are scaled down for the linear program.
_MOST_DIGITS = 500

Report = Callable[[int, Fraction], None]


@dataclass(frozen=True, eq=False)
class Leaf:
    """Cycles with multipliers, which prove a bound."""

    cycles: tuple[Cycle, ...] = ()
    multipliers: tuple[int, ...] = ()
    denominator: int = 1


@dataclass(eq=False)
class _Node:
    """A part of all cuts: those with the given edges at 0 or 1."""

    fixed: dict[int, int]
    bound: Fraction
    leaf: Leaf
    branch: int | None = None
    parts: list[_Node] = field(default_factory=list)


class CycleTree:
    """Bounds the cuts of a graph, by one linear program and branches.

    Parameters
    ----------
    form : CutForm
        The maximum cut.
    deadline : float
        Value of ``time.monotonic()`` at which to stop.
    max_nodes : int
        Maximum number of nodes of the tree.
    max_pivots : int or None
        Maximum number of pivots of the simplex method, which does not depend on the machine.
    useful : Fraction or None
        A bound in units of the form. Growing stops if the bound will not fall below it, judged by
        the limit of a geometric series through the last three rounds.
    random_state : int
        Seed of the separation.

    Attributes
    ----------
    signs : ndarray of int8
        The best signs found or given.
    cut : int
        Their cut, in units of the form.
    bound : Fraction
        Upper bound of all cuts in units of the form, not yet rounded down.
    """

    def __init__(
        self,
        form: CutForm,
        *,
        deadline: float = np.inf,
        max_nodes: int = 1,
        max_pivots: int | None = None,
        useful: Fraction | None = None,
        random_state: int = 0,
    ) -> None:
        self.form = form
        self.useful = useful
        self.deadline = deadline
        self.max_nodes = max_nodes
        self.max_pivots = max_pivots
        self.reduction = reduce_cut(form)
        self.names = sorted(self.reduction.graph)
        index = {v: k for k, v in enumerate(self.names)}
        graph = self.reduction.graph
        edges = [(u, v) for u in self.names for v in sorted(graph[u]) if u < v]
        weights = [graph[u][v] for u, v in edges]
        self.graph = EdgeGraph(
            n=len(self.names),
            first=np.array([index[u] for u, _ in edges], dtype=np.intp),
            second=np.array([index[v] for _, v in edges], dtype=np.intp),
        )
        self.scale = lcm(*(weight.denominator for weight in weights))
        self.weights = [int(weight * self.scale) for weight in weights]
        self.size = sum(abs(weight) for weight in form.weights)
        # The weights of numbers like 1e-300 and 1e300 in a common unit exceed the largest float.
        digits = int(max((abs(weight) for weight in weights), default=0)).bit_length()
        self.float_unit = 2 ** max(digits - _MOST_DIGITS, 0)
        self.float_weights = np.array([float(weight / self.float_unit) for weight in weights])
        self.signs = np.ones(form.n, dtype=np.int8)
        self.cut = 0
        self.nodes = 0
        self.rounds = 0
        self.message = ""
        self.separator = Separator(self.graph, random_state)
        self.program = cycle_program(self.float_weights)
        self.rows: list[Cycle] = []
        self.ages = np.zeros(0, dtype=np.intp)
        top = self.reduction.constant + Fraction(sum(w for w in self.weights if w > 0), self.scale)
        self.root = _Node(fixed={}, bound=top, leaf=Leaf())
        self.open: list[tuple[Fraction, int, int, _Node]] = []
        self.counter = itertools.count()
        self.closed_bound = Fraction(0)

    @property
    def bound(self) -> Fraction:
        """Upper bound of all cuts: the largest bound of a leaf of the tree."""
        return max(node.bound for node in self._leaves())

    @property
    def optimal(self) -> bool:
        """Whether the best cut is proved to be optimal."""
        return self.form.rounded_down(self.bound) <= self.cut

    def _leaves(self) -> list[_Node]:
        leaves = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.parts:
                stack += node.parts
            else:
                leaves.append(node)
        return leaves

    def offer(self, signs: NDArray[np.int8]) -> None:
        """Keep signs if their cut is larger than the best one."""
        cut = self.form.cut(signs)
        if cut > self.cut:
            self.signs = np.array(signs, dtype=np.int8)
            self.cut = cut

    @property
    def _excess(self) -> Fraction:
        """A bound below the best cut plus this is good enough."""
        smallest = Fraction(_SMALLEST_GAP) * self.size
        return max(Fraction(self.form.step), smallest)

    def _closes(self, bound: Fraction) -> bool:
        return bound < self.cut + self._excess

    def grow(self, report: Report | None = None) -> None:
        """Bound the root, then branch at the node with the largest bound, up to the limits.

        Parameters
        ----------
        report : callable, optional
            Called in every round with the number of nodes and the current bound in units; it may
            raise an exception to stop.
        """
        self._push(self.root)
        while self.open:
            if time.monotonic() > self.deadline:
                self.message = "time limit"
                return
            if self.nodes >= self.max_nodes:
                self.message = f"max_iter={self.max_nodes} nodes"
                return
            node = heapq.heappop(self.open)[-1]
            if self._closes(node.bound):
                continue
            self.nodes += 1
            solution = self._tighten(node, report)
            if self._closes(node.bound) or solution is None:
                continue
            if self._stopped():
                return
            self._split(node, solution.x)

    def _push(self, node: _Node) -> None:
        # Among equal bounds the deepest node comes first: it leads to a cut soonest.
        heapq.heappush(self.open, (-node.bound, -len(node.fixed), next(self.counter), node))

    def _stopped(self) -> bool:
        if time.monotonic() > self.deadline:
            self.message = "time limit"
        elif self.max_pivots is not None and self.program.iterations > self.max_pivots:
            self.message = "pivot limit"
        return bool(self.message)

    def _tighten(self, node: _Node, report: Report | None) -> ProgramSolution | None:
        """Add violated inequalities while that helps; set the bound and the leaf of the node.

        The root is solved by interior points first: they violate more inequalities by more, so
        that the bound falls faster than with vertices, and most bounds end there.
        """
        if self.graph.m == 0:
            self.offer(self.reduction.undo(self.signs))
            return None
        self.program.fix(node.fixed)
        interior = node is self.root and self.program.has_interior
        history: list[float] = []
        while True:
            solution = self.program.solve(self.deadline, interior=interior)
            self.rounds += 1
            value = self._float_bound(solution.y, node.fixed)
            history.append(value)
            if report is not None:
                try:
                    report(self.nodes, Fraction(value) * self.float_unit)
                except BaseException:
                    self._prove(node, solution.y)
                    raise
            done = value < self._target or self._stopped() or self._hopeless(history)
            if not done and not self._helps(node, history):
                done = not interior
                if interior:  # Vertices are accurate, and violate what interior points do not.
                    self._prove(node, solution.y)
                    interior = False
                    history.clear()
                    continue
            if not done and not self._separate(solution, interior=interior):
                self._prove(node, solution.y)
                done = not interior
                interior = False
                history.clear()
            if done:
                self._prove(node, solution.y)
                self._round(solution.x)
                return solution

    def _hopeless(self, history: list[float]) -> bool:
        """Return whether the bound will not become useful if its steps go on shrinking alike."""
        if self.useful is None or len(history) < 3:
            return False
        before = history[-3] - history[-2]
        gained = history[-2] - history[-1]
        if 0 < gained < before:
            limit = history[-1] - gained * gained / (before - gained)
            if limit > self._in_floats(self.useful):
                self.message = "another bound is better"
        return bool(self.message)

    def _helps(self, node: _Node, history: list[float]) -> bool:
        """Return whether the last rounds have closed enough of the gap to go on."""
        if len(history) <= _PATIENCE:
            return True
        before = history[-1 - _PATIENCE] - self._target
        gained = history[-1 - _PATIENCE] - history[-1]
        return gained > (_SLOW_ROOT if node is self.root else _SLOW) * before

    def _separate(self, solution: ProgramSolution, *, interior: bool) -> bool:
        """Add violated inequalities and drop old ones; return whether there were any."""
        most = max(300, self.graph.m // 3)
        least = _LEAST_INSIDE if interior else _LEAST_VIOLATION
        found = self.separator.find(solution.x, most=most, least=least)
        if not found:
            return False
        if self.rounds % 5 == 0:
            self._round(solution.x)
        loose = solution.slack > (_SLACK_INSIDE if interior else _SLACK)
        self.ages = np.where(loose, self.ages + 1, 0)
        old = np.flatnonzero(self.ages >= (_OLDEST_INSIDE if interior else _OLDEST))
        if old.size > 0.1 * len(self.rows):
            self.program.drop(old)
            gone = set(old.tolist())
            self.rows = [row for k, row in enumerate(self.rows) if k not in gone]
            self.ages = np.delete(self.ages, old)
        self.program.add(found)
        self.rows += found
        self.ages = np.concatenate((self.ages, np.zeros(len(found), dtype=np.intp)))
        return True

    @property
    def _target(self) -> float:
        """A bound below this proves the best cut, in multiples of `float_unit`."""
        return self._in_floats(self.cut + self._excess)

    def _in_floats(self, amount: Fraction) -> float:
        """Return an amount as a floating-point number, in multiples of `float_unit`."""
        return float(amount / self.float_unit)

    def _float_bound(self, y: FloatArray, fixed: dict[int, int]) -> float:
        """Return the bound of multipliers in floating point, in multiples of `float_unit`."""
        rest = self.float_weights.copy()
        total = self._in_floats(self.reduction.constant)
        for k in np.flatnonzero(y).tolist():
            row = self.rows[k]
            rest[list(row.edges)] -= y[k] * np.array(row.signs)
            total += y[k] * row.right_side
        value = np.maximum(rest, 0.0)
        for edge, side in fixed.items():
            value[edge] = rest[edge] * side
        return total + float(value.sum())

    def _prove(self, node: _Node, y: FloatArray) -> None:
        """Round multipliers to rational numbers; keep them if their exact bound is better."""
        used = np.flatnonzero(y > 0).tolist()
        cycles = [self.rows[k] for k in used]
        hopeful = self._float_bound(y, node.fixed) < self._target
        for denominator in _DENOMINATORS if hopeful else (_GAP_DENOMINATOR,):
            whole = [round(float(y[k]) * denominator) * self.float_unit for k in used]
            bound = self._exact_bound(cycles, whole, denominator, node.fixed)
            if bound < node.bound:
                kept = [k for k, multiplier in enumerate(whole) if multiplier]
                node.bound = bound
                node.leaf = Leaf(
                    cycles=tuple(cycles[k] for k in kept),
                    multipliers=tuple(whole[k] for k in kept),
                    denominator=denominator,
                )
            if self._closes(node.bound):
                return

    def _exact_bound(
        self, cycles: list[Cycle], multipliers: list[int], denominator: int, fixed: dict[int, int]
    ) -> Fraction:
        """Return the bound of rational multipliers, without rounding."""
        rest = [weight * denominator for weight in self.weights]
        total = 0
        for cycle, multiplier in zip(cycles, multipliers, strict=True):
            amount = multiplier * self.scale
            total += amount * cycle.right_side
            for edge, odd in zip(cycle.edges, cycle.odd, strict=True):
                rest[edge] += -amount if odd else amount
        for edge, left in enumerate(rest):
            total += left * fixed[edge] if edge in fixed else max(left, 0)
        return self.reduction.constant + Fraction(total, denominator * self.scale)

    def _round(self, x: FloatArray) -> None:
        """Offer the signs that follow x along a tree, improved by flips of nodes and of parts."""
        small = self.separator.rounded(x)
        self._offer_reduced(small)
        better = self._annealer.descend(small[:, None].astype(np.float32))
        best = self.signs[self.names][:, None].astype(np.float32)
        # Of every connected part where two cuts differ, the better side is taken.
        self._offer_reduced(crossover(self._couplings, better, best)[:, 0].astype(np.int8))

    def _offer_reduced(self, small: NDArray[np.int8]) -> None:
        """Offer signs of the nodes that are left after the reductions."""
        whole = np.ones(self.form.n, dtype=np.int8)
        whole[self.names] = small
        self.offer(self.reduction.undo(whole))

    @cached_property
    def _annealer(self) -> Annealer:
        return Annealer(self._couplings, np.random.default_rng(0))

    @cached_property
    def _couplings(self) -> sp.csr_array:
        """The reduced graph as couplings, larger where nodes should agree."""
        scaled = -self.float_weights / np.abs(self.float_weights).max()
        ends = (self.graph.first, self.graph.second)
        upper = sp.coo_array((scaled, ends), shape=(self.graph.n, self.graph.n))
        return sp.csr_array(upper + upper.T)

    def _split(self, node: _Node, x: FloatArray) -> None:
        """Fix the most undecided edge that the fixed edges do not decide."""
        sides = _Sides(self.graph.n)
        for edge in node.fixed:
            sides.join(int(self.graph.first[edge]), int(self.graph.second[edge]), 1)
        score = np.abs(self.float_weights) * np.minimum(x, 1.0 - x)
        for edge in np.argsort(-score, kind="stable").tolist():
            u = int(self.graph.first[edge])
            v = int(self.graph.second[edge])
            if sides.of(u)[0] != sides.of(v)[0]:
                break
        else:
            return
        node.branch = edge
        for value in (0, 1):
            part = _Node(fixed={**node.fixed, edge: value}, bound=node.bound, leaf=node.leaf)
            node.parts.append(part)
            self._push(part)

    def certificate(self) -> dict[str, Any]:
        """Return the reductions and the tree, as a proof file has them."""
        return {
            "reductions": [list(step) for step in self.reduction.steps],
            "tree": self._stated(self.root, _Sides(self.graph.n)),
        }

    def _stated(self, node: _Node, sides: _Sides) -> dict[str, Any]:
        if node.branch is None:
            return self._stated_leaf(node.leaf, sides)
        u = int(self.graph.first[node.branch])
        v = int(self.graph.second[node.branch])
        (a, s), (b, t) = sides.of(u), sides.of(v)
        stated: dict[str, Any] = {"branch": [self.names[a], self.names[b]]}
        for value, part in enumerate(node.parts):
            side = -1 if value else 1  # of u and v
            inside = sides.copied()
            inside.join(u, v, side)
            stated["same" if side * s * t > 0 else "different"] = self._stated(part, inside)
        return stated

    def _stated_leaf(self, leaf: Leaf, sides: _Sides) -> dict[str, Any]:
        """Return cycles with multipliers in terms of the nodes that are not merged with others."""
        cycles = []
        for cycle, multiplier in zip(leaf.cycles, leaf.multipliers, strict=True):
            walk = []
            trivial = False
            places = [sides.of(v) for v in cycle.nodes]
            for k, (root, sign) in enumerate(places):
                following, other = places[(k + 1) % len(places)]
                odd = cycle.odd[k] != (sign != other)
                if root != following:
                    name = self.names[root] + 1
                    walk.append(-name if odd else name)
                elif odd:
                    trivial = True
            if not trivial and len(walk) > 2:
                cycles.append([multiplier, *walk])
        return {"denominator": leaf.denominator, "cycles": cycles}


class _Sides:
    """Nodes that are merged with others, on the same side or on opposite sides."""

    def __init__(self, n: int) -> None:
        self.place = [(v, 1) for v in range(n)]

    def copied(self) -> _Sides:
        copy = _Sides(0)
        copy.place = list(self.place)
        return copy

    def of(self, v: int) -> tuple[int, int]:
        """Return the node that stands for v, and the side of v relative to it."""
        return self.place[v]

    def join(self, u: int, v: int, side: int) -> None:
        """Merge v and all nodes merged with it into the node that stands for u."""
        (a, s), (b, t) = self.place[u], self.place[v]
        if a != b:
            for k, (root, sign) in enumerate(self.place):
                if root == b:
                    self.place[k] = (a, sign * side * s * t)
