"""Reductions of maximum cuts: smaller graphs with the same optimum, and the way back.

1. *Elimination.* The best side of a node v with at most three neighbours depends only on how these
   are divided. There are at most four ways to divide three nodes, so the contribution of v is a
   constant plus three edges between its neighbours, exactly. This covers isolated nodes, pendant
   nodes, bridges to them, chains of nodes of degree two, and degree three (star to triangle).
2. *A heavy edge.* If ``|w_uv|`` is at least the sum of all other ``|w_vk|``, v is best placed
   opposite to u (positive weight) or with u (negative weight), whatever the other nodes do.
3. *Twins.* If ``w_vk = a w_uk`` for all other nodes k, the nodes u and v prefer the same side
   (a > 0) or opposite sides (a < 0). They are merged if the edge between them agrees.

Elimination keeps the bound of the odd-cycle relaxation unchanged: the cut polytope of four nodes is
given by triangle inequalities, and the relaxation of graphs that share a triangle is the
intersection of the two (Barahona, Mahjoub 1986).

Components, blocks that share a node or a bridge, and graphs whose weights have one sign or get one
by switching sides need no step of their own: cycles lie within blocks, so the relaxation is the sum
over blocks, and it is exact without any cycle where the positive edges are a cut.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .cut_form import CutForm

Graph = dict[int, dict[int, Fraction]]
# (v,) eliminates v; (u, v, side) merges v with u: side +1 with it, -1 opposite to it.
Step = tuple[int] | tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced graph, and how it was reached.

    Parameters
    ----------
    graph : dict of dict
        Exact weight by node and neighbour, in the units of the original form.
    constant : Fraction
        To be added to the cut of the reduced graph.
    steps : tuple of tuple of int
        The reductions, in order.
    n : int
        Number of nodes of the original graph.
    """

    graph: Graph
    constant: Fraction
    steps: tuple[Step, ...]
    neighbors: tuple[dict[int, Fraction], ...]
    n: int

    def undo(self, signs: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return signs of all nodes from signs of the nodes that are left.

        Parameters
        ----------
        signs : ndarray of int8 of shape (n,)
            Signs; those of removed nodes are ignored.

        Returns
        -------
        ndarray of int8 of shape (n,)
            Signs with the best sides of the removed nodes.
        """
        whole = np.array(signs, dtype=np.int8)
        for step, near in zip(reversed(self.steps), reversed(self.neighbors), strict=True):
            if len(step) == 3:
                u, v, side = step
                whole[v] = side * whole[u]
            else:
                gain = sum(weight * int(whole[u]) for u, weight in near.items())
                whole[step[0]] = -1 if gain > 0 else 1
        return whole


def reduce_cut(form: CutForm) -> Reduction:
    """Apply the reductions until none applies any more.

    Parameters
    ----------
    form : CutForm
        The maximum cut.

    Returns
    -------
    Reduction
        The rest of the graph, the constant, and the steps.
    """
    graph: Graph = {v: {} for v in range(form.n)}
    for (i, j), weight in zip(form.pairs, form.weights, strict=True):
        graph[i][j] = graph[j][i] = Fraction(weight)
    reducer = _Reducer(graph)
    reducer.run()
    return Reduction(
        graph=graph,
        constant=reducer.constant,
        steps=tuple(reducer.steps),
        neighbors=tuple(reducer.neighbors),
        n=form.n,
    )


class _Reducer:
    """A graph under reduction, with a queue of the nodes whose edges have changed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constant = Fraction(0)
        self.steps: list[Step] = []
        self.neighbors: list[dict[int, Fraction]] = []
        self.queue = deque(graph)
        self.queued = set(graph)

    def run(self) -> None:
        """Reduce nodes until the queue is empty; each step removes a node, so this ends."""
        while self.queue:
            v = self.queue.popleft()
            self.queued.discard(v)
            if v not in self.graph:
                continue
            if len(self.graph[v]) <= 3:
                self._eliminate(v)
                continue
            partner = self._heavy(v) or self._twin(v)
            if partner is not None:
                self._merge(*partner)

    def _touch(self, v: int) -> None:
        if v not in self.queued:
            self.queued.add(v)
            self.queue.append(v)

    def _add(self, u: int, v: int, weight: Fraction) -> None:
        total = self.graph[u].get(v, Fraction(0)) + weight
        for a, b in ((u, v), (v, u)):
            if total:
                self.graph[a][b] = total
            else:
                self.graph[a].pop(b, None)
        self._touch(u)
        self._touch(v)

    def _remove(self, v: int) -> dict[int, Fraction]:
        near = self.graph.pop(v)
        for u in near:
            del self.graph[u][v]
            self._touch(u)
        return near

    def _eliminate(self, v: int) -> None:
        near = self._remove(v)
        self.steps.append((v,))
        self.neighbors.append(near)
        ends = list(near)
        zero = Fraction(0)
        a, b, c = [*near.values(), zero, zero, zero][:3]
        together = max(zero, a + b + c)
        alone = (max(a, b + c), max(b, a + c), max(c, a + b))
        self.constant += together
        for first, second, third in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            weight = (alone[first] + alone[second] - alone[third] - together) / 2
            if weight:
                self._add(ends[first], ends[second], weight)

    def _heavy(self, v: int) -> tuple[int, int, int] | None:
        """Return (u, v, side) if the edge to u outweighs all others of v."""
        near = self.graph[v]
        u = max(near, key=lambda k: abs(near[k]))
        rest = sum(abs(weight) for weight in near.values()) - abs(near[u])
        if abs(near[u]) < rest:
            return None
        return u, v, -1 if near[u] > 0 else 1

    def _twin(self, v: int) -> tuple[int, int, int] | None:
        """Return (u, v, side) if the edges of u and v are in the same proportion."""
        near = self.graph[v]
        # A twin is a neighbour of all neighbours but itself: look around the least connected one.
        around = min(near, key=lambda k: len(self.graph[k]))
        for u in (around, *self.graph[around]):
            if u == v or len(self.graph[u]) != len(near):
                continue
            side = self._proportion(u, v)
            if side * self.graph[u].get(v, Fraction(0)) <= 0 and side:
                return u, v, side
        return None

    def _proportion(self, u: int, v: int) -> int:
        """Return the sign of the common ratio of the edges of u and v, or 0 if there is none."""
        own = self.graph[u]
        ratio = None
        for k, weight in self.graph[v].items():
            if k == u:
                continue
            if k not in own:
                return 0
            if ratio is None:
                ratio = weight / own[k]
            elif weight != ratio * own[k]:
                return 0
        return 0 if ratio is None else (1 if ratio > 0 else -1)

    def _merge(self, u: int, v: int, side: int) -> None:
        near = self._remove(v)
        self.steps.append((u, v, side))
        self.neighbors.append(near)
        if side < 0:
            self.constant += sum(near.values())
        for k, weight in near.items():
            if k != u:
                self._add(u, k, side * weight)
