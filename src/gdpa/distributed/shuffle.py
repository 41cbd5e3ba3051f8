"""Rows to the parts that their cells belong to: pieces are sorted by cell, parts gather their runs.

A piece writes one sorted file, not one per part; a part reads its run of it. Within a part points
are sorted by cell and, within a cell, by row: their numbers over all parts, the nodes of the graph,
follow each other in space and do not depend on who read what first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import Piece
from .manifest import Output
from .sample import load_plan
from .store import Folder

__all__ = ["assign", "gather", "load_cells", "part_file"]


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


def gather(output: Output, *, part: int, ends: list[list[int]], base: str) -> dict[str, Any]:
    """Collect the points of a part, cell by cell."""
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
    output.array(part_file(part, "ends"), np.searchsorted(home, np.arange(low, high + 1)))
    return {"points": int(total)}


def load_cells(
    folder: Folder, cells: NDArray[Any], bounds: NDArray[np.intp], starts: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]:
    """Points of some cells of any part.

    Parameters
    ----------
    folder : Folder
        The work folder.
    cells : ndarray of int
        Numbers of cells, ascending.
    bounds : ndarray of shape (n_parts + 1,)
        Cells of the parts.
    starts : ndarray of shape (n_parts + 1,)
        First node of each part.

    Returns
    -------
    X : ndarray of shape (n_points, n_features)
        The points.
    home : ndarray of int32 of shape (n_points,)
        Their cells, ascending.
    node : ndarray of int64 of shape (n_points,)
        Their numbers over all parts, ascending.
    """
    spans, home, node = [], [], []
    part = np.searchsorted(bounds, cells, side="right") - 1
    for p in np.unique(part):
        ends = folder.read_array(part_file(p, "ends"))
        own = cells[part == p] - bounds[p]
        # Cells that follow each other are read at once.
        for run in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1):
            start, stop = int(ends[run[0]]), int(ends[run[-1] + 1])
            if start == stop:
                continue
            spans.append((p, start, stop))
            home.append(np.repeat(run + bounds[p], np.diff(ends[run[0] : run[-1] + 2])))
            node.append(np.arange(start, stop) + starts[p])
    if not spans:
        return np.empty((0, 0)), np.empty(0, np.int32), np.empty(0, np.int64)
    first = folder.read_array(part_file(spans[0][0], "X"), 0, 1)
    X = np.empty((sum(stop - start for _, start, stop in spans), first.shape[1]), first.dtype)
    done = 0
    for p, start, stop in spans:
        X[done : done + stop - start] = folder.read_array(part_file(p, "X"), start, stop)
        done += stop - start
    return X, np.concatenate(home).astype(np.int32), np.concatenate(node)
