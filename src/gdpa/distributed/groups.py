"""Groups of parts that one worker solves together, and what they need of the others.

The halo of a group are the nodes outside that its rows touch (level 1), the neighbours of these
(level 2), and so on up to its depth. A group of depth s also holds the rows of its fringe, the
levels below s: it can take s steps, repeating those of the fringe, before it asks the others
again. The values of its own nodes are the same to the last bit at any depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.adjacency import csr_from_parts
from .chebyshev import Rows, inverse_root
from .rows import Shard, load_shard, places
from .shuffle import part_file
from .store import Folder, open_folder

__all__ = ["FRINGE", "MOST_DEPTH", "Group", "Loaded", "group_bounds", "load_group", "look_around"]

# Rows of the fringe that may be solved twice, as a share of the own ones, and steps between two
# exchanges at most. A call costs some milliseconds, a twentieth of the rows less than that.
FRINGE, MOST_DEPTH = 0.05, 8


def group_bounds(n_parts: int, n_workers: int) -> tuple[int, ...]:
    """First part of each group, and the number of parts: a group for each worker."""
    n_groups = min(n_parts, n_workers)
    return tuple(-(-group * n_parts // n_groups) for group in range(n_groups + 1))


@dataclass(frozen=True)
class Group:
    """Consecutive parts.

    Parameters
    ----------
    number : int
        Which of the groups.
    bounds : tuple of int
        First part of each group, and the number of parts.
    starts : tuple of int
        First node of each part, and the number of nodes.
    depth : int
        Steps between two exchanges.
    """

    number: int
    bounds: tuple[int, ...]
    starts: tuple[int, ...]
    depth: int = 1

    @property
    def parts(self) -> range:
        """The parts."""
        return range(*self.bounds[self.number : self.number + 2])

    @property
    def low(self) -> int:
        """First node."""
        return self.starts[self.parts.start]

    @property
    def high(self) -> int:
        """Node after the last one."""
        return self.starts[self.parts.stop]

    def part_of(self, nodes: NDArray[np.int64]) -> list[tuple[int, slice]]:
        """Parts of nodes, ascending, and which of the nodes belong to each."""
        ends = np.searchsorted(nodes, self.starts)
        return [(int(p), slice(ends[p], ends[p + 1])) for p in np.flatnonzero(np.diff(ends))]


@dataclass(frozen=True)
class Loaded:
    """What a worker needs of a group.

    Parameters
    ----------
    rows : Rows
        Its rows, those of the fringe last.
    take : ndarray of shape (n_groups + 1,)
        Where the nodes of each group begin in the halo.
    fringe, outer : ndarray of bool of shape (n_halo,)
        Nodes of the halo whose rows are here, and the others.
    send : ndarray of int
        Own rows that others have in their halos, group by group.
    ends : ndarray of shape (n_groups + 1,)
        Where those of each group begin.
    labeled, label : ndarray of int
        Labelled rows, and which of all labels they have.
    """

    rows: Rows
    take: NDArray[np.intp]
    fringe: NDArray[np.bool_]
    outer: NDArray[np.bool_]
    send: NDArray[np.intp]
    ends: NDArray[np.int64]
    labeled: NDArray[np.intp]
    label: NDArray[np.intp]


def _columns(shard: Shard, low: int, high: int) -> NDArray[np.int64]:
    """Nodes of the columns of a shard."""
    own = np.arange(low, high)
    return np.insert(shard.halo, np.repeat(np.searchsorted(shard.halo, low), own.size), own)


def _first_level(folder: Folder, group: Group) -> NDArray[np.int64]:
    """Nodes outside that own rows touch."""
    found = []
    for part in group.parts:
        nodes = folder.read_array(f"rows/{part:05d}.halo.npy")
        found.append(nodes[(nodes < group.low) | (nodes >= group.high)])
    return np.unique(np.concatenate(found))


def look_around(url: str, group: Group) -> list[int]:
    """Find the levels around a group, and write them for the others.

    Returns
    -------
    list of int
        Nodes of the first 1, 2, ... levels: as many as may be of use.
    """
    folder = open_folder(url)
    halo = last = _first_level(folder, group)
    level = np.ones(halo.size, dtype=np.int64)
    sizes = [int(halo.size)]
    while sizes[-1] <= FRINGE * (group.high - group.low) and len(sizes) < MOST_DEPTH:
        near = [np.empty(0, dtype=np.int64)]
        for part, mine in group.part_of(last):
            low, high = group.starts[part : part + 2]
            shard = load_shard(folder, part)
            touched = np.unique(shard.W[last[mine] - low].indices)
            near.append(_columns(shard, low, high)[touched])
        nodes = np.unique(np.concatenate(near))
        outside = (nodes < group.low) | (nodes >= group.high)
        last = np.setdiff1d(nodes[outside], halo, assume_unique=True)
        level = np.concatenate([level, np.full(last.size, len(sizes) + 1)])
        halo = np.concatenate([halo, last])
        order = np.argsort(halo, kind="stable")
        halo, level = halo[order], level[order]
        sizes.append(int(halo.size))
    folder.write_array(_levels_file(group, group.number), np.stack([halo, level]))
    return sizes


def _levels_file(group: Group, number: int) -> str:
    return f"deep/{len(group.bounds) - 1:05d}.{number:05d}.npy"


def _needed(folder: Folder, group: Group, other: int) -> NDArray[np.int64]:
    """Own nodes that another group has in its halo."""
    found = [np.empty(0, dtype=np.int64)]
    if other == group.number:
        return found[0]
    if group.depth > 1:
        nodes, level = folder.read_array(_levels_file(group, other))
        inside = (nodes >= group.low) & (nodes < group.high)
        return np.asarray(nodes[inside & (level <= group.depth)])
    counts, parts = folder.read_array("rows/counts.npy"), group.parts
    for part in range(*group.bounds[other : other + 2]):
        first, last = (int(counts[:end, part].sum()) for end in (parts.start, parts.stop))
        if first < last:
            found.append(folder.read_array(f"rows/{part:05d}.halo.npy", first, last))
    return np.unique(np.concatenate(found))


def load_group(folder: Folder, group: Group, dtype: Any) -> Loaded:
    """Put the rows of a group together, with weights of a type."""
    low, high, parts = group.low, group.high, group.parts
    n = high - low
    if group.depth > 1:
        halo, level = folder.read_array(_levels_file(group, group.number))
        halo, level = halo[level <= group.depth], level[level <= group.depth]
        fringe = level < group.depth
    else:
        halo = _first_level(folder, group)
        fringe = np.zeros(halo.size, dtype=bool)
    blocks, root, extra = [], [], []
    labeled, label = [], []
    for part, mine in [(p, None) for p in parts] + group.part_of(halo[fringe]):
        shard = load_shard(folder, part)
        first, last = group.starts[part : part + 2]
        place = places(_columns(shard, first, last), low, high, halo)
        own = folder.read_array(part_file(part, "labeled"))
        which = folder.read_array(part_file(part, "label"))
        W, degrees, base = shard.W, shard.degree, first - low
        if mine is not None:
            local = halo[fringe][mine] - first
            W, degrees, base = W[local], degrees[local], n + mine.start
            at = np.searchsorted(local, own)
            here = at < local.size
            here[here] = local[at[here]] == own[here]
            own, which = at[here], which[here]
            extra.append(W.data)
        with np.errstate(under="ignore"):
            data = W.data.astype(dtype, copy=False)
        shape = (W.shape[0], n + halo.size)
        blocks.append(csr_from_parts(data, place[W.indices], W.indptr, shape))
        root.append(inverse_root(degrees))
        labeled.append(own + base)
        label.append(which)

    def weights(number: int) -> NDArray[np.float64]:
        if number >= len(parts):
            return np.asarray(extra[number - len(parts)])
        return folder.read_array(f"rows/{parts[number]:05d}.data.npy")

    outside = [np.empty(0)]
    for part, mine in group.part_of(halo[~fringe]):
        theirs = folder.read_array(f"rows/{part:05d}.degree.npy")
        outside.append(inverse_root(theirs[halo[~fringe][mine] - group.starts[part]]))
    send = [_needed(folder, group, other) - low for other in range(len(group.bounds) - 1)]
    column = np.arange(halo.size)
    below = int(np.searchsorted(halo, low))
    column[below:] += n
    rows = Rows(
        tuple(blocks), len(parts), slice(below, below + n), column[fringe], column[~fringe],
        np.concatenate(root), np.concatenate(outside), weights,
    )  # fmt: skip
    return Loaded(
        rows,
        np.searchsorted(halo, np.asarray(group.starts)[list(group.bounds)]),
        fringe,
        ~fringe,
        np.concatenate(send).astype(np.intp),
        np.concatenate([[0], np.cumsum([nodes.size for nodes in send])]).astype(np.int64),
        np.concatenate(labeled),
        np.concatenate(label),
    )
