"""Rows to the parts that their cells belong to: pieces are sorted by cell, parts gather their runs.

A piece writes one sorted file, not one per part; a part reads its run of it. Within a part points
are sorted by cell and, within a cell, by row: their numbers over all parts, the nodes of the graph,
follow each other in space and do not depend on who read what first.

What a search compares is kept beside the points, in single precision and without those of which
there are too many alike: a task reads much of its neighbours' parts, and holds only that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.cell_space import CellSpace
from ..graph.cells import CellJoin, relative_points
from ..graph.features import row_blocks, thin_duplicates
from .inputs import Piece
from .manifest import Output
from .sample import load_plan
from .store import Folder

__all__ = ["assign", "gather", "kept_points", "load_cells", "load_points", "part_file"]

# Rows that are read at a time where some of them are looked for.
READ_ROWS = 2**15


def part_file(part: int, what: str) -> str:
    """Name of a file of a part."""
    return f"parts/{part:05d}.{what}.npy"


def assign(
    output: Output, *, piece: Piece, number: int, features: list[str], plan_url: str, base: str
) -> dict[str, Any]:
    """Encode a piece, find the cell of each row, and write the rows sorted by cell."""
    plan = load_plan(plan_url)
    X = plan.features(piece.read(features), f"{piece.path} (from row {piece.within + 1})")
    home = plan.space.home(X)
    order = np.argsort(home, kind="stable")
    home = home[order]
    output.array(f"{base}/{number:06d}.X.npy", X[order])
    output.array(f"{base}/{number:06d}.home.npy", home)
    output.array(f"{base}/{number:06d}.row.npy", order.astype(np.int64) + piece.first)
    return {"ends": np.searchsorted(home, plan.bounds).tolist()}


def runs_of(
    folder: Folder, base: str, what: str, ends: list[list[int]], part: int
) -> list[NDArray[Any]]:
    """What the pieces hold for a part."""
    return [
        folder.read_array(f"{base}/{number:06d}.{what}.npy", own[part], own[part + 1])
        for number, own in enumerate(ends)
        if own[part + 1] > own[part]
    ]


def gather(
    output: Output, *, part: int, ends: list[list[int]], base: str, alike: int
) -> dict[str, Any]:
    """Collect the points of a part, cell by cell; a search meets at most `alike` identical ones."""
    folder = output.folder
    plan = load_plan(folder.url)
    low, high = plan.bounds[part : part + 2].tolist()
    total = sum(own[part + 1] - own[part] for own in ends)
    if not total:
        home, row = np.empty(0, np.int32), np.empty(0, np.int64)
        X = np.empty((0, plan.factors.size))
    else:
        home = np.concatenate(runs_of(folder, base, "home", ends, part))
        order = np.argsort(home, kind="stable")
        row = np.concatenate(runs_of(folder, base, "row", ends, part))[order]
        X = np.concatenate(runs_of(folder, base, "X", ends, part))[order]
        home = home[order]
    known = folder.read_array("plan/labeled.npy")
    place = np.searchsorted(known, row)
    place[place == known.size] = 0
    labeled = np.flatnonzero(known[place] == row)
    output.array(part_file(part, "X"), X)
    output.array(part_file(part, "row"), row)
    output.array(part_file(part, "labeled"), labeled)
    output.array(part_file(part, "label"), place[labeled])
    cells = np.arange(low, high + 1)
    output.array(part_file(part, "ends"), np.searchsorted(home, cells))
    kept = thin_duplicates(X, alike).kept
    if kept is not None:
        output.array(part_file(part, "kept"), kept)
        X, home = X[kept], home[kept]
    output.array(part_file(part, "near-ends"), np.searchsorted(home, cells))
    near = np.empty((home.size, plan.factors.size + 1), dtype=np.float32)
    for rows in row_blocks(home.size, 8 * near.shape[1]):
        near[rows] = relative_points(X[rows], plan.space, home[rows])
    output.array(part_file(part, "near"), near)
    return {"points": int(total)}


def load_cells(
    folder: Folder,
    space: CellSpace,
    cells: NDArray[Any],
    bounds: NDArray[np.intp],
    starts: NDArray[np.int64],
) -> CellJoin:
    """Points of some cells of any part, ready to be searched.

    Parameters
    ----------
    folder : Folder
        The work folder.
    space : CellSpace
        The cells.
    cells : ndarray of int
        Numbers of those to load, ascending.
    bounds : ndarray of shape (n_parts + 1,)
        Cells of the parts.
    starts : ndarray of shape (n_parts + 1,)
        First node of each part.

    Returns
    -------
    CellJoin
        The points; their numbers are nodes, ascending.
    """
    wide = np.int32 if starts[-1] < 2**31 else np.int64
    spans, node = [], [np.empty(0, dtype=wide)]
    sizes = np.zeros(space.centers.n_cells, dtype=np.intp)
    part = np.searchsorted(bounds, cells, side="right") - 1
    for p in np.unique(part):
        ends = folder.read_array(part_file(p, "near-ends"))
        kept = kept_points(folder, p, int(starts[p + 1] - starts[p]), int(ends[-1]))
        own = cells[part == p] - bounds[p]
        # Cells that follow each other are read at once.
        for run in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1):
            start, stop = int(ends[run[0]]), int(ends[run[-1] + 1])
            if start == stop:
                continue
            spans.append((p, start, stop))
            sizes[run + bounds[p]] = np.diff(ends[run[0] : run[-1] + 2])
            local = np.arange(start, stop) if kept is None else kept[start:stop]
            node.append((local + starts[p]).astype(wide))
    order = np.concatenate(node)
    points = np.empty((order.size, space.offset.size + 1), dtype=np.float32)
    done = 0
    for p, start, stop in spans:
        points[done : done + stop - start] = folder.read_array(part_file(p, "near"), start, stop)
        done += stop - start
    return CellJoin(points, np.concatenate([[0], np.cumsum(sizes)]), order, space)


def kept_points(folder: Folder, part: int, n: int, n_kept: int) -> NDArray[np.intp] | None:
    """Which of the n points of a part a search meets; None stands for all."""
    return None if n == n_kept else folder.read_array(part_file(part, "kept"))


def load_points(
    folder: Folder, nodes: NDArray[np.integer[Any]], starts: NDArray[np.int64]
) -> NDArray[Any]:
    """Features of some nodes of any part, ascending; only these are held."""
    found = []
    part = np.searchsorted(starts, nodes, side="right") - 1
    for p in np.unique(part):
        local = nodes[part == p] - starts[p]
        for mine in np.split(local, np.flatnonzero(np.diff(local // READ_ROWS)) + 1):
            rows = folder.read_array(part_file(p, "X"), int(mine[0]), int(mine[-1]) + 1)
            found.append(rows[mine - mine[0]])
    return np.concatenate(found)
