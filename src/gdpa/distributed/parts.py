"""Sort encoded rows into parts, each of which holds the points of some cells.

A task encodes one piece and writes its rows sorted by cell; a part then reads its range of every
piece. Points are sorted by cell and then by row. Their position across all parts is the node
number, so it does not depend on the order in which tasks ran.

A part also stores its points in single precision, without surplus duplicates. A search reads only
this smaller copy of the parts around it.
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

IntArray = NDArray[np.integer[Any]]


def encode(
    output: Output, *, piece: Piece, number: int, features: list[str], plan_url: str
) -> dict[str, Any]:
    """Encode a piece and write its rows sorted by cell."""
    plan = load_plan(plan_url)
    X = plan.features(piece.read(features), f"{piece.path} (from row {piece.within + 1})")
    home = plan.space.home(X)
    order = np.argsort(home, kind="stable")
    home = home[order]
    row = order.astype(np.int64) + piece.first
    output.save(f"encoded/{number:06d}", X=X[order], home=home, row=row)
    return {"ends": np.searchsorted(home, plan.bounds).tolist()}


def sorted_rows(
    folder: Folder, ends: list[list[int]], part: int
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]:
    """Return the features, cells and numbers of the rows of a part, from all pieces."""
    pieces = [
        folder.load(f"encoded/{i:06d}", "X", "home", "row", start=own[part], stop=own[part + 1])
        for i, own in enumerate(ends)
    ]
    X, home, row = map(np.concatenate, zip(*pieces, strict=True))
    order = np.argsort(home, kind="stable")
    return X[order], home[order], row[order]


def gather(
    output: Output, *, part: int, ends: list[list[int]], max_duplicates: int
) -> dict[str, Any]:
    """Collect and write the points of a part, sorted by cell."""
    folder = output.folder
    base = f"parts/{part:05d}"
    plan = load_plan(folder.url)
    X, home, row = sorted_rows(folder, ends, part)
    (known,) = folder.load("plan/plan", "labeled")
    place = np.searchsorted(known, row)
    place[place == known.size] = 0
    labeled = np.flatnonzero(known[place] == row)
    cells = np.arange(plan.bounds[part], plan.bounds[part + 1] + 1)
    output.save(base, X=X, row=row, labeled=labeled, label=place[labeled])
    output.save(base, ends=np.searchsorted(home, cells))
    kept = thin_duplicates(X, max_duplicates).kept
    if kept is not None:
        output.save(base, kept=kept)
        X = X[kept]
        home = home[kept]
    near = np.empty((home.size, plan.factors.size + 1), dtype=np.float32)
    for rows in row_blocks(home.size, 8 * near.shape[1]):
        near[rows] = relative_points(X[rows], plan.space, home[rows])
    output.save(base, near=near, near_ends=np.searchsorted(home, cells))
    return {"points": int(row.size)}


def searched_points(folder: Folder, part: int, n: int, n_kept: int) -> NDArray[np.intp]:
    """Return the points of a part that a search compares: all but surplus duplicates."""
    return np.arange(n) if n == n_kept else folder.read_array(f"parts/{part:05d}.kept.npy")


def load_cells(
    folder: Folder,
    space: CellSpace,
    cells: IntArray,
    bounds: NDArray[np.intp],
    starts: NDArray[np.int64],
) -> CellJoin:
    """Return a search structure with the points of the given cells, in ascending order."""
    wide = np.int32 if starts[-1] < 2**31 else np.int64
    spans = []
    nodes = [np.empty(0, dtype=wide)]
    sizes = np.zeros(space.centers.n_cells, dtype=np.intp)
    part = np.searchsorted(bounds, cells, side="right") - 1
    for p in np.unique(part):
        ends = folder.read_array(f"parts/{p:05d}.near_ends.npy")
        kept = searched_points(folder, p, int(starts[p + 1] - starts[p]), int(ends[-1]))
        own = cells[part == p] - bounds[p]
        # Read consecutive cells at once.
        for run in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1):
            start = int(ends[run[0]])
            stop = int(ends[run[-1] + 1])
            if start < stop:
                spans.append((p, start, stop))
                sizes[run + bounds[p]] = np.diff(ends[run[0] : run[-1] + 2])
                nodes.append((kept[start:stop] + starts[p]).astype(wide))
    order = np.concatenate(nodes)
    points = np.empty((order.size, space.offset.size + 1), dtype=np.float32)
    done = 0
    for p, start, stop in spans:
        near = folder.read_array(f"parts/{p:05d}.near.npy", start, stop)
        points[done : done + stop - start] = near
        done += stop - start
    return CellJoin(points, np.concatenate([[0], np.cumsum(sizes)]), order, space)


def points_of(
    folder: Folder, nodes: IntArray, starts: NDArray[np.int64], file: str = "parts/{:05d}.X.npy"
) -> NDArray[Any]:
    """Return the features, or the values in another file, of nodes in ascending order."""
    values = []
    part = np.searchsorted(starts, nodes, side="right") - 1
    for p in np.unique(part).tolist():
        local = nodes[part == p] - starts[p]
        # Read blocks of rows, and keep only the requested ones in memory.
        for mine in np.split(local, np.flatnonzero(np.diff(local // 2**15)) + 1):
            rows = folder.read_array(file.format(p), int(mine[0]), int(mine[-1]) + 1)
            values.append(rows[mine - mine[0]])
    return np.concatenate(values)
