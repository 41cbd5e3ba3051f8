"""The parts of a graph as groups, one for each worker, controlled from the client.

The client submits calls for all groups. What a group needs from others is passed from worker to
worker. What the parts return is added up in the order of the parts. The rows of the hubs are held
by the client; see :mod:`gdpa.distributed.rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import FloatArray
from .cluster import Runner
from .rows import GroupRows, load_group

# Of the memory of a worker, the share that the rows of the graph may take. The state of a solve and
# the messages need the rest.
ROWS_SHARE = 0.5


def count_sent(rows: GroupRows) -> int:
    """Return the number of values that a group sends in a step, for one column."""
    return rows.n_sent


def empty_hubs(url: str, n_parts: int) -> GroupRows:
    """Return the rows of the hubs if there are none."""
    keys = np.empty(0, dtype=np.int64)
    return GroupRows(url, range(n_parts, n_parts), [0], (), keys, 0, (), np.empty(0))


class Groups:
    """The rows of a work folder, on the workers.

    Parameters
    ----------
    runner : Runner
        Runs the calls.
    halo : list of list of int
        For each part, the number of nodes of each other part that its rows are linked to.
    n_hubs : int
        Number of hubs; they are the part after the last.
    memory : float
        Bytes of memory of a worker. If the rows of the graph need more than half of it, they are
        read from the work folder in every step.
    """

    def __init__(self, runner: Runner, halo: list[list[int]], n_hubs: int, memory: float) -> None:
        self.runner = runner
        self.url = runner.folder.url
        self.n_parts = len(halo)
        self.n_hubs = n_hubs
        if any(len(own) != self.n_parts for own in halo):
            raise IndexError(f"the halo of a part is not a list of {self.n_parts} numbers")
        n_groups = min(self.n_parts, runner.n_workers)
        self.bounds = [-(-group * self.n_parts // n_groups) for group in range(n_groups + 1)]
        self.numbers = range(n_groups)
        first = self.bounds[:-1]
        counts = np.add.reduceat(np.add.reduceat(np.array(halo), first, 0), first, 1)
        self.near = [[q for q in self.numbers if q != p and counts[p, q]] for p in self.numbers]
        self.rows = [
            runner.submit(load_group, self.url, p, self.bounds, n_hubs, ROWS_SHARE * memory)
            for p in self.numbers
        ]
        self.hubs = empty_hubs(self.url, self.n_parts)
        if n_hubs:
            self.hubs = load_group(self.url, 0, [self.n_parts, self.n_parts + 1], 0, np.inf)

    @property
    def halo_size(self) -> int:
        """Number of values that travel between groups in a step, for one column."""
        return int(sum(self.gather(count_sent, self.rows)))

    def each(self, function: Callable[..., object], *arguments: object) -> list[Any]:
        """Submit a call for each group; of an argument that is a list, each group gets one item."""
        return [
            self.runner.submit(function, *(a[p] if isinstance(a, list) else a for a in arguments))
            for p in self.numbers
        ]

    def gather(self, function: Callable[..., object], *arguments: object) -> list[Any]:
        """Return the results of a call for each group."""
        return self.runner.gather(self.each(function, *arguments))

    def by_part(self, function: Callable[..., object], *arguments: object) -> list[Any]:
        """Return what a call returns for each part, in the order of the parts."""
        return [part for group in self.gather(function, *arguments) for part in group]

    def halo(self, function: Callable[..., object], *arguments: list[Any]) -> list[list[Any]]:
        """Submit, for each group, the calls that return what it needs from other groups."""
        return [
            [self.runner.submit(function, *(a[q] for a in arguments), p) for q in self.near[p]]
            for p in self.numbers
        ]

    def exchange(
        self, function: Callable[..., object], halo: list[list[Any]], *arguments: object
    ) -> list[Any]:
        """Submit a call for each group, with the values that it needs from other groups."""
        return [
            self.runner.submit(
                function, *(a[p] if isinstance(a, list) else a for a in arguments), *halo[p]
            )
            for p in self.numbers
        ]


def total_of(parts: list[FloatArray], like: FloatArray) -> FloatArray:
    """Return the sum of arrays in their order; zeros if there are none."""
    return np.asarray(sum(parts, start=np.zeros_like(like)))
