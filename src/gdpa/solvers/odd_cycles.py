"""Odd-cycle inequalities of the cut polytope, and how to find those that a point violates.

A cycle crosses every cut an even number of times. So if F is an odd number of edges of a cycle C,
every cut x (x_e = 1 where the cut separates the ends of e) satisfies

    x(F) - x(C without F) <= |F| - 1 .

*Trees.* Round every edge to 0 or 1 along a spanning tree of edges that are nearly integral. Every
other edge that disagrees with the sides found closes a cycle that is often violated. If all
violated cycles consist of integral edges, a minimum spanning tree finds one of them.

*Shortest paths* find a violated inequality if there is one (Barahona, Mahjoub 1986). In a graph
with two copies of every node, an edge of length x_e stays in its copy and one of length 1 - x_e
changes it. A path of length below 1 between the two copies of a node is a violated cycle. A
violated cycle has an edge that is not integral unless a tree finds it, so only ends of such edges
need a search.

*Chords.* A cycle with a chord is the sum of two shorter cycles, one of which is violated even more
per edge. Only cycles without chords are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, dijkstra, minimum_spanning_tree

from ..arrays import FloatArray, NDArray
from .triangle import violated_triangles

# Edges closer to 0 or 1 than this are integral.
_INTEGRAL = 1e-6
# Spanning trees per round, all but the first with random lengths added.
_TREES = 4
_NOISE = 0.1
# Shortest paths are searched from so many nodes at a time, until so many cycles are found.
_BATCH = 100
_MANY = 200
# Violated triangles are listed directly if at least this share of all pairs are edges.
_DENSE = 0.25
# Shortest paths are searched if the trees find fewer cycles than this.
_FEW = 20


@dataclass(frozen=True)
class Cycle:
    """An odd-cycle inequality.

    Parameters
    ----------
    nodes : tuple of int
        The nodes in order; the last one is joined to the first one.
    odd : tuple of bool
        For each node, whether the edge from it to the next node belongs to F.
    edges : tuple of int
        Numbers of these edges.
    """

    nodes: tuple[int, ...]
    odd: tuple[bool, ...]
    edges: tuple[int, ...]

    @property
    def right_side(self) -> int:
        """The right side |F| - 1."""
        return sum(self.odd) - 1

    @property
    def signs(self) -> list[float]:
        """The coefficients of the edges: +1 in F, -1 elsewhere."""
        return [1.0 if odd else -1.0 for odd in self.odd]

    @property
    def key(self) -> frozenset[tuple[int, bool]]:
        """What is equal for equal inequalities."""
        return frozenset(zip(self.edges, self.odd, strict=True))


@dataclass(frozen=True, eq=False)
class EdgeGraph:
    """A graph with numbered edges.

    Parameters
    ----------
    n : int
        Number of nodes.
    first, second : ndarray of int
        Ends of the edges.
    """

    n: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    @cached_property
    def number(self) -> list[dict[int, int]]:
        """Number of the edge, by node and neighbour."""
        number: list[dict[int, int]] = [{} for _ in range(self.n)]
        for e, (u, v) in enumerate(zip(self.first.tolist(), self.second.tolist(), strict=True)):
            number[u][v] = number[v][u] = e
        return number

    @property
    def m(self) -> int:
        """Number of edges."""
        return int(self.first.size)


class Separator:
    """Finds violated odd-cycle inequalities of points between 0 and 1.

    Parameters
    ----------
    graph : EdgeGraph
        The graph.
    random_state : int
        Seed of the random lengths of the trees.
    """

    def __init__(self, graph: EdgeGraph, random_state: int = 0) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(random_state)

    def find(self, x: FloatArray, *, most: int, least: float = 1e-4) -> list[Cycle]:
        """Return violated inequalities without chords, the most violated ones first.

        Parameters
        ----------
        x : ndarray of shape (m,)
            The point.
        most : int
            Maximum number of inequalities.
        least : float, default=1e-4
            Inequalities that are violated by less are left out.

        Returns
        -------
        list of Cycle
            Different inequalities; empty only if none is violated by more than `least`.
        """
        found = {cycle.key: cycle for cycle in self._cheap(x, most, least)}
        if len(found) < min(most, _FEW):
            found |= {cycle.key: cycle for cycle in self._shortest(x, least)}
        values = x.tolist()
        ranked = sorted(found.values(), key=lambda cycle: -_distance(cycle, values))
        return ranked[:most]

    def _cheap(self, x: FloatArray, most: int, least: float) -> Iterator[Cycle]:
        if self.graph.m >= _DENSE * self.graph.n * (self.graph.n - 1) / 2:
            yield from self._triangles(x, most)
        for k in range(_TREES):
            noise = self.rng.random(x.size) * _NOISE if k else np.zeros(x.size)
            yield from self._tree_cycles(x, noise, least)

    def rounded(self, x: FloatArray) -> NDArray[np.int8]:
        """Return signs that follow x along a minimum spanning tree."""
        parent, order, _ = self._tree(np.minimum(x, 1.0 - x))
        signs = np.ones(self.graph.n, dtype=np.int8)
        for v in order:
            u = parent[v]
            if u >= 0:
                cut = x[self.graph.number[u][v]] > 0.5
                signs[v] = -signs[u] if cut else signs[u]
        return signs

    def _tree(self, length: FloatArray) -> tuple[list[int], list[int], list[int]]:
        """Return parents, an order from the roots, and depths of a minimum spanning forest."""
        n = self.graph.n
        ends = (self.graph.first, self.graph.second)
        # An edge of length 0 would be no edge.
        lengths = sp.csr_array((length + 1e-6, ends), shape=(n, n))
        tree = minimum_spanning_tree(lengths)
        tree = sp.csr_array(tree + tree.T)
        parent = [-1] * n
        depth = [0] * n
        seen = np.zeros(n, dtype=bool)
        whole: list[int] = []
        for root in range(n):
            if seen[root]:
                continue
            order, before = breadth_first_order(tree, root, directed=False)
            seen[order] = True
            whole.extend(order.tolist())
            for v in order[1:].tolist():
                parent[v] = int(before[v])
                depth[v] = depth[parent[v]] + 1
        return parent, whole, depth

    def _tree_cycles(self, x: FloatArray, noise: FloatArray, least: float) -> Iterator[Cycle]:
        """Yield violated cycles of one edge and a path of a spanning tree."""
        number = self.graph.number
        distance = np.minimum(x, 1.0 - x)
        parent, _, depth = self._tree(distance + noise)
        lengths = distance.tolist()
        values = x.tolist()
        ends = zip(self.graph.first.tolist(), self.graph.second.tolist(), strict=True)
        for e, (u, v) in enumerate(ends):
            if parent[u] == v or parent[v] == u:
                continue
            left = [u]
            right = [v]
            total = lengths[e]
            while u != v and total < 1.0:
                if depth[u] >= depth[v]:
                    up = parent[u]
                    total += lengths[number[u][up]]
                    u = up
                    left.append(u)
                else:
                    up = parent[v]
                    total += lengths[number[v][up]]
                    v = up
                    right.append(v)
            if u == v:
                # The meeting point is the last node of both lists.
                yield from self._violated(left + right[-2::-1], values, least)

    def _triangles(self, x: FloatArray, most: int) -> Iterator[Cycle]:
        """Yield the most violated triangles."""
        n = self.graph.n
        X = np.full((n, n), np.nan)
        X[self.graph.first, self.graph.second] = 1.0 - 2.0 * x
        X[self.graph.second, self.graph.first] = 1.0 - 2.0 * x
        nodes, signs = violated_triangles(X, most)
        for (a, b, c), (ab, ac, bc) in zip(nodes.tolist(), signs.tolist(), strict=True):
            # 1 + ab X_ab + ac X_ac + bc X_bc >= 0 has x with sign ab: positive signs are in F.
            yield self._cycle([a, b, c], [ab > 0, bc > 0, ac > 0])

    def _shortest(self, x: FloatArray, least: float) -> Iterator[Cycle]:
        """Yield violated cycles from shortest paths between the copies of a node.

        The sources are tried in random order, until many cycles are found or none is left.
        """
        n = self.graph.n
        i = self.graph.first
        j = self.graph.second
        fractional = (x > _INTEGRAL) & (x < 1.0 - _INTEGRAL)
        sources = np.unique(i[fractional])
        sources = self.rng.permutation(sources)
        found = 0
        rows = np.concatenate((i, i + n, i, i + n))
        columns = np.concatenate((j, j + n, j + n, j))
        stay, change = x + 1e-9, 1.0 - x + 1e-9  # an edge of length 0 would be no edge
        lengths = np.concatenate((stay, stay, change, change))
        values = x.tolist()
        doubled = sp.csr_array((lengths, (rows, columns)), shape=(2 * n, 2 * n))
        for start in range(0, sources.size, _BATCH):
            if found >= _MANY:
                return
            batch = sources[start : start + _BATCH]
            distance, before = dijkstra(
                doubled, directed=False, indices=batch, return_predecessors=True, limit=1.0
            )
            for row, source in enumerate(batch.tolist()):
                if distance[row, source + n] < 1.0 - least:
                    path = [source + n]
                    while path[-1] != source:
                        path.append(int(before[row, path[-1]]))
                    found += 1
                    yield from self._violated(_simple([p % n for p in path]), values, least)

    def _violated(self, nodes: list[int], values: list[float], least: float) -> Iterator[Cycle]:
        """Yield the most violated inequality of a cycle after removing chords, if any."""
        if len(nodes) < 3:
            return
        edges = [self.graph.number[u][v] for u, v in pairwise([*nodes, nodes[0]])]
        odd = [values[e] > 0.5 for e in edges]
        if sum(odd) % 2 == 0:
            nearest = min(range(len(edges)), key=lambda k: abs(values[edges[k]] - 0.5))
            odd[nearest] = not odd[nearest]
        cycle = Cycle(tuple(nodes), tuple(odd), tuple(edges))
        if violation(cycle, values) > least:
            yield self._without_chords(cycle, values)

    def _cycle(self, nodes: list[int], odd: Iterable[bool]) -> Cycle:
        edges = tuple(self.graph.number[u][v] for u, v in pairwise([*nodes, nodes[0]]))
        return Cycle(tuple(nodes), tuple(odd), edges)

    def _without_chords(self, cycle: Cycle, values: list[float]) -> Cycle:
        """Split at chords and keep the part with the larger violation per edge."""
        while len(cycle.nodes) > 3:
            position = {v: k for k, v in enumerate(cycle.nodes)}
            chord = self._chord(cycle, position)
            if chord is None:
                return cycle
            a, b = chord
            parts = []
            for start, stop in ((a, b), (b, a + len(cycle.nodes))):
                places = [k % len(cycle.nodes) for k in range(start, stop + 1)]
                nodes = [cycle.nodes[k] for k in places]
                odd = [cycle.odd[k] for k in places[:-1]]
                # The chord closes the part; it is in F where that makes |F| odd.
                odd.append(sum(odd) % 2 == 0)
                parts.append(self._cycle(nodes, odd))
            cycle = max(parts, key=lambda part: _distance(part, values))
        return cycle

    def _chord(self, cycle: Cycle, position: dict[int, int]) -> tuple[int, int] | None:
        size = len(cycle.nodes)
        for a, u in enumerate(cycle.nodes):
            near = self.graph.number[u]
            inside = near if len(near) < size else cycle.nodes
            for v in inside:
                b = position.get(v)
                if b is not None and v in near and b > a + 1 and (a, b) != (0, size - 1):
                    return a, b
        return None


def violation(cycle: Cycle, values: list[float]) -> float:
    """Return by how much a point violates an inequality; negative if it does not."""
    pairs = zip(cycle.edges, cycle.odd, strict=True)
    return sum(values[e] if odd else -values[e] for e, odd in pairs) - cycle.right_side


def _distance(cycle: Cycle, values: list[float]) -> float:
    """Return the distance of a point from the half-space of an inequality."""
    return violation(cycle, values) / math.sqrt(len(cycle.edges))


def _simple(walk: list[int]) -> list[int]:
    """Return the first closed part of a walk between two copies of a node.

    A shortest path visits a node twice only in both copies. The part in between is an odd cycle.
    """
    seen: dict[int, int] = {}
    for k, node in enumerate(walk):
        if node in seen:
            return walk[seen[node] : k]
        seen[node] = k
    return walk[:-1]
