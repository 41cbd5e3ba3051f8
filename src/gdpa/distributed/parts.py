"""Rows to the parts that their cells belong to: pieces are sorted by cell, parts gather their runs.

A piece writes one sorted file, not one per part; a part reads its run of it. Within a part points
are sorted by cell and, within a cell, by row: their numbers over all parts, the nodes of the graph,
follow each other in space and do not depend on who read what first.

What a search compares is kept beside the points, in single precision and with at most a few
identical ones: a task reads much of its neighbours' parts, and holds only that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.cell_space import CellSpace
from ..graph.cells import CellJoin, relative_points
from ..graph.features import row_blocks, thin_duplicates
from .folder import Folder
from .inputs import Piece
from .manifest import Output
from .plan import load_plan

__all__ = ["encode", "gather", "load_cells", "part_file", "points_of", "sorted_rows"]

IntArray = NDArray[np.integer[Any]]


def part_file(part: int, what: str) -> str:
    """Return the name of a file of a part."""
    return f"parts/{part:05d}.{what}.npy"


def encode(
    output: Output, *, piece: Piece, number: int, features: list[str], plan_url: str
) -> dict[str, Any]:
    """Encode a piece, find the cell of each row, and write the rows sorted by cell."""
    plan = load_plan(plan_url)
    X = plan.features(piece.read(features), f"{piece.path} (from row {piece.within + 1})")
    home = plan.space.home(X)
    order = np.argsort(home, kind="stable")
    home = home[order]
    output.array(f"encoded/{number:06d}.X.npy", X[order])
    output.array(f"encoded/{number:06d}.home.npy", home)
    output.array(f"encoded/{number:06d}.row.npy", order.astype(np.int64) + piece.first)
    return {"ends": np.searchsorted(home, plan.bounds).tolist()}


def sorted_rows(
    folder: Folder, ends: list[list[int]], part: int
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]:
    """Return features, cells and numbers of the rows that the pieces hold for a part."""
    X, home, row = (
        np.concatenate(
            [
                folder.read_array(f"encoded/{number:06d}.{what}.npy", *own[part : part + 2])
                for number, own in enumerate(ends)
            ]
        )
        for what in ("X", "home", "row")
    )
    order = np.argsort(home, kind="stable")
    return X[order], home[order], row[order]


def gather(
    output: Output, *, part: int, ends: list[list[int]], max_duplicates: int
) -> dict[str, Any]:
    """Collect the points of a part, cell by cell."""
    folder = output.folder
    plan = load_plan(folder.url)
    X, home, row = sorted_rows(folder, ends, part)
    known = folder.read_array("plan/labeled.npy")
    place = np.searchsorted(known, row)
    place[place == known.size] = 0
    labeled = np.flatnonzero(known[place] == row)
    cells = np.arange(plan.bounds[part], plan.bounds[part + 1] + 1)
    output.array(part_file(part, "X"), X)
    output.array(part_file(part, "row"), row)
    output.array(part_file(part, "labeled"), labeled)
    output.array(part_file(part, "label"), place[labeled])
    output.array(part_file(part, "ends"), np.searchsorted(home, cells))
    kept = thin_duplicates(X, max_duplicates).kept
    if kept is not None:
        output.array(part_file(part, "kept"), kept)
        X, home = X[kept], home[kept]
    output.array(part_file(part, "near-ends"), np.searchsorted(home, cells))
    near = np.empty((home.size, plan.factors.size + 1), dtype=np.float32)
    for rows in row_blocks(home.size, 8 * near.shape[1]):
        near[rows] = relative_points(X[rows], plan.space, home[rows])
    output.array(part_file(part, "near"), near)
    return {"points": int(row.size)}


def searched_points(folder: Folder, part: int, n: int, n_kept: int) -> NDArray[np.intp]:
    """Return which of the n points of a part a search compares: all but surplus duplicates."""
    return np.arange(n) if n == n_kept else folder.read_array(part_file(part, "kept"))


def load_cells(
    folder: Folder,
    space: CellSpace,
    cells: IntArray,
    bounds: NDArray[np.intp],
    starts: NDArray[np.int64],
) -> CellJoin:
    """Return the points of some cells (ascending) of any part, ready to be searched."""
    wide = np.int32 if starts[-1] < 2**31 else np.int64
    spans, nodes = [], [np.empty(0, dtype=wide)]
    sizes = np.zeros(space.centers.n_cells, dtype=np.intp)
    part = np.searchsorted(bounds, cells, side="right") - 1
    for p in np.unique(part):
        ends = folder.read_array(part_file(p, "near-ends"))
        kept = searched_points(folder, p, int(starts[p + 1] - starts[p]), int(ends[-1]))
        own = cells[part == p] - bounds[p]
        # Cells that follow each other are read at once.
        for run in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1):
            start, stop = int(ends[run[0]]), int(ends[run[-1] + 1])
            if start < stop:
                spans.append((p, start, stop))
                sizes[run + bounds[p]] = np.diff(ends[run[0] : run[-1] + 2])
                nodes.append((kept[start:stop] + starts[p]).astype(wide))
    order = np.concatenate(nodes)
    points = np.empty((order.size, space.offset.size + 1), dtype=np.float32)
    done = 0
    for p, start, stop in spans:
        points[done : done + stop - start] = folder.read_array(part_file(p, "near"), start, stop)
        done += stop - start
    return CellJoin(points, np.concatenate([[0], np.cumsum(sizes)]), order, space)


def points_of(
    folder: Folder, nodes: IntArray, starts: NDArray[np.int64], file: str = "parts/{:05d}.X.npy"
) -> NDArray[Any]:
    """Return the features (or what another file holds) of nodes of any part, ascending."""
    values = []
    part = np.searchsorted(starts, nodes, side="right") - 1
    for p in np.unique(part).tolist():
        local = nodes[part == p] - starts[p]
        # Some rows at a time: only those that are asked for are held.
        for mine in np.split(local, np.flatnonzero(np.diff(local // 2**15)) + 1):
            rows = folder.read_array(file.format(p), int(mine[0]), int(mine[-1]) + 1)
            values.append(rows[mine - mine[0]])
    return np.concatenate(values)
