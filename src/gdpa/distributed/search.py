"""Neighbours of the points of a part, in its own cells and in those around it.

How many cells to visit is chosen as in the search of one machine: the true neighbours of a sample
of points are found by an exhaustive pass over all parts, and cells are added until the sample
reaches the recall asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.cell_space import CellSpace
from ..graph.cells import enough_probes, visits_needed, within_reach
from ..graph.features import row_blocks, thin_duplicates
from ..graph.neighbor_graph import SCALE_NEIGHBOR, local_scales
from ..graph.neighbors import RECALL_SAMPLE, TARGET_RECALL
from ..graph.search import pair_distances
from ..policy import DEFAULT_POLICY
from .manifest import Output
from .sample import load_plan
from .shuffle import kept_points, load_cells, load_points, part_file
from .store import Folder

__all__ = [
    "choose_probes",
    "draw_queries",
    "find_true",
    "most_alike",
    "nearest_points",
    "search_part",
]

# Queries that are compared at a time.
QUERIES = 8_192
# Cells in which neighbours of the sample are looked for first, to know how far others may be.
FEW_PROBES = 2


def most_alike(n_neighbors: int) -> int:
    """Identical points that a search meets: as many as a list can hold, and the query itself."""
    return max(n_neighbors, SCALE_NEIGHBOR) + 2


def draw_queries(
    output: Output, *, starts: list[int], n_neighbors: int, seed: int
) -> dict[str, Any]:
    """Points, of all parts, on which the search is tuned, and within which distance to look."""
    n, folder = starts[-1], output.folder
    plan = load_plan(folder.url)
    rng = np.random.default_rng(seed)
    node = np.sort(rng.choice(n, min(n, RECALL_SAMPLE), replace=False))
    part = np.searchsorted(starts, node, side="right") - 1
    X = [
        folder.read_array(part_file(p, "X"), i - starts[p], i - starts[p] + 1)
        for p, i in zip(part.tolist(), node.tolist(), strict=True)
    ]
    Q = np.concatenate(X)
    home = plan.space.home(Q)
    order = np.argsort(home, kind="stable")
    reach, k = np.empty(node.size), min(n_neighbors, n - 1)
    _, distance = nearest_points(
        folder, plan.space, plan.bounds, np.asarray(starts), Q[order], home[order], k,
        FEW_PROBES, node[order],
    )  # fmt: skip
    reach[order] = distance.max(axis=1, initial=0.0)
    output.array("search/queries.npy", Q)
    output.array("search/query-nodes.npy", node)
    output.array("search/query-reach.npy", reach)
    return {"queries": int(node.size)}


def find_true(output: Output, *, part: int, starts: list[int], n_neighbors: int) -> dict[str, Any]:
    """Points of one part that may be neighbours of the queries, by exhaustive search."""
    folder = output.folder
    plan = load_plan(folder.url)
    Q = folder.read_array("search/queries.npy")
    X = folder.read_array(part_file(part, "X"))
    ends = folder.read_array(part_file(part, "ends"))
    n_kept = int(folder.read_array(part_file(part, "near-ends"))[-1])
    # Of many duplicates only some: more would push others out of the lists.
    kept = kept_points(folder, part, X.shape[0], n_kept)
    points = X if kept is None else X[kept]
    reach = folder.read_array("search/query-reach.npy")
    query, found, distance = within_reach(Q, points, reach, plan.space.scale)
    local = found if kept is None else kept[found]
    cell = np.searchsorted(ends, local, side="right") - 1 + plan.bounds[part]
    output.array(f"search/{part:05d}.true-query.npy", query.astype(np.int32))
    output.array(f"search/{part:05d}.true-node.npy", local + starts[part])
    output.array(f"search/{part:05d}.true-cell.npy", cell.astype(np.int32))
    output.array(f"search/{part:05d}.true-distance.npy", distance)
    return {}


def choose_probes(
    output: Output, *, starts: list[int], n_neighbors: int, recall: float | None
) -> dict[str, Any]:
    """Cells that each point visits, such that the sample reaches the recall asked for."""
    folder = output.folder
    plan = load_plan(folder.url)
    space, parts = plan.space, range(plan.n_parts)
    Q, own = folder.read_array("search/queries.npy"), folder.read_array("search/query-nodes.npy")
    query, node, cell, distance = (
        np.concatenate([folder.read_array(f"search/{p:05d}.true-{what}.npy") for p in parts])
        for what in ("query", "node", "cell", "distance")
    )
    others = np.flatnonzero(node != own[query])
    others = others[np.lexsort((node[others], distance[others], query[others]))]
    k = min(n_neighbors, starts[-1] - 1)
    first = np.searchsorted(query[others], np.arange(own.size))
    best = others[first[:, None] + np.arange(k)]
    truth, true_cells = distance[best], cell[best]
    sizes = np.concatenate([np.diff(folder.read_array(part_file(p, "ends"))) for p in parts])
    target = TARGET_RECALL if recall is None else recall
    many = Q.shape[1] > DEFAULT_POLICY.tree_features
    limit = DEFAULT_POLICY.scanned_points if recall is None and many else np.inf
    needed, scanned = visits_needed(
        space.placed(Q), space.centers.centers, sizes, np.arange(sizes.size), true_cells
    )
    probes, most = enough_probes(needed, scanned, target, limit)
    home = space.home(Q)
    by_cell = np.argsort(home, kind="stable")
    residual = space.residual(Q[by_cell], home[by_cell]).astype(np.float32)
    while True:
        # Whoever visits the cell of a neighbour finds it there.
        visited = space.visited(residual, home[by_cell], probes)
        met = (true_cells[by_cell][:, :, None] == visited[:, None, :]).any(axis=2)
        reached = float(met.mean()) if k else 1.0
        if reached >= target or probes >= most:
            break
        probes = min(most, probes + 1 + probes // 12)
    scales = local_scales(truth)
    positive = truth[truth > 0]
    return {
        "probes": int(probes),
        "recall": reached,
        "scale": float(np.median(scales)) if positive.size else 1.0,
    }


def nearest_points(
    folder: Folder,
    space: CellSpace,
    bounds: NDArray[np.intp],
    starts: NDArray[np.int64],
    Q: NDArray[Any],
    home: NDArray[np.int32],
    k: int,
    probes: int,
    own: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nearest points of queries among all points, in the cells that they visit.

    Parameters
    ----------
    folder : Folder
        The work folder.
    space : CellSpace
        The cells.
    bounds, starts : ndarray of shape (n_parts + 1,)
        First cell and first node of each part.
    Q : ndarray of shape (n_queries, n_features)
        Queries, sorted by cell.
    home : ndarray of int of shape (n_queries,)
        Their cells.
    k : int
        How many neighbours, at most the number of (other) points.
    probes : int
        Cells to visit; more where those hold fewer than k points.
    own : ndarray of shape (n_queries,) or None
        Nodes of the queries if they are among the points: no point is its own neighbour.

    Returns
    -------
    node : ndarray of int64 of shape (n_queries, k)
        Neighbours, nearest first, ties by number.
    distance : ndarray of shape (n_queries, k)
        Their distances.
    """
    nodes = np.empty((home.size, k), dtype=np.int64)
    distances = np.empty((home.size, k))
    wanted = k + (own is not None)
    waiting = np.arange(home.size)
    while waiting.size:
        residual = space.residual(Q[waiting], home[waiting]).astype(np.float32)
        visited = np.empty((waiting.size, min(probes, space.centers.n_cells)), dtype=np.int32)
        for rows in row_blocks(waiting.size, 1, QUERIES):
            visited[rows] = space.visited(residual[rows], home[waiting[rows]], visited.shape[1])
        join = load_cells(folder, space, np.unique(visited), bounds, starts)
        index = np.empty((waiting.size, wanted), dtype=join.order.dtype)
        full = np.empty(waiting.size, dtype=bool)
        for rows in row_blocks(waiting.size, 1, QUERIES):
            best = join.best(residual[rows], home[waiting[rows]], visited[rows], wanted)
            index[rows], full[rows] = best.index, best.count == wanted
        del residual, visited
        # The neighbours as they are given: distances by differences, not by products.
        found, index = waiting[full], index[full]
        met = np.zeros(join.order.size, dtype=bool)
        met[index.ravel()] = True
        place = np.cumsum(met, dtype=index.dtype)
        place -= 1
        node = join.order[met]
        del join
        X = load_points(folder, node, starts) if node.size else Q[:0]
        for rows in row_blocks(found.size, 1, QUERIES):
            mine, near = found[rows], place[index[rows]]
            distance, number = pair_distances(Q[mine], X, near, space.scale), node[near]
            if own is not None:
                distance[number == own[mine, None]] = np.inf
            order = np.lexsort((number, distance), axis=1)[:, :k]
            nodes[mine] = np.take_along_axis(number, order, 1)
            distances[mine] = np.take_along_axis(distance, order, 1)
        # Few points in the cells around: the other queries look further.
        waiting = waiting[~full]
        if waiting.size and probes >= space.centers.n_cells:
            raise AssertionError("every cell was visited and points are missing")
        probes = min(space.centers.n_cells, 4 * probes)
    return nodes, distances


def search_part(
    output: Output,
    *,
    part: int,
    starts: list[int],
    n_neighbors: int,
    probes: int,
    fallback_scale: float,
) -> dict[str, Any]:
    """Neighbours and scales of the points of a part, and its edges to other parts."""
    folder = output.folder
    plan = load_plan(folder.url)
    ends = folder.read_array(part_file(part, "ends"))
    low = int(plan.bounds[part])
    X = folder.read_array(part_file(part, "X"))
    home = np.repeat(np.arange(low, low + ends.size - 1, dtype=np.int32), np.diff(ends))
    own = np.arange(starts[part], starts[part + 1])
    asked = min(starts[-1] - 1, max(n_neighbors, SCALE_NEIGHBOR))
    about = folder, plan.space, plan.bounds, np.asarray(starts)
    thinned = thin_duplicates(X, most_alike(n_neighbors))
    if thinned.groups is None:
        node, distance = nearest_points(*about, X, home, asked, probes, own)
    else:
        node, distance = np.empty((own.size, asked), dtype=np.int64), np.empty((own.size, asked))
        thinned.fill(node, distance)
        node += starts[part]
        rest = np.delete(np.arange(own.size), thinned.groups[0])
        node[rest], distance[rest] = nearest_points(
            *about, X[rest], home[rest], asked, probes, own[rest]
        )
    del X
    scale = local_scales(distance, fallback_scale)
    k = min(n_neighbors, asked)
    node, distance = node[:, :k], distance[:, :k]
    output.array(f"search/{part:05d}.node.npy", node)
    output.array(f"search/{part:05d}.distance.npy", distance)
    output.array(f"search/{part:05d}.scale.npy", scale)
    away = np.flatnonzero((node.ravel() < starts[part]) | (node.ravel() >= starts[part + 1]))
    target = node.ravel()[away]
    by_target = np.argsort(target, kind="stable")
    away, target = away[by_target], target[by_target]
    output.array(f"search/{part:05d}.to.npy", target)
    output.array(f"search/{part:05d}.from.npy", away // max(k, 1) + starts[part])
    output.array(f"search/{part:05d}.apart.npy", distance.ravel()[away])
    return {"ends": np.searchsorted(target, starts).tolist()}
