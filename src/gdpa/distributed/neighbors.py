"""Find the neighbours of the points of a part, in its own cells and in those around it.

The number of cells to visit is chosen as in the search on one machine. An exhaustive search over
all parts finds the true neighbours of a sample of points; then the number of cells is increased
until the search finds the requested share of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.cell_space import CellSpace
from ..graph.cells import enough_probes, visits_needed, within_reach
from ..graph.features import row_blocks, thin_duplicates
from ..graph.neighbor_graph import SCALE_NEIGHBOR, local_scales
from ..graph.neighbors import TARGET_RECALL
from ..graph.search import pair_distances
from ..policy import DEFAULT_POLICY
from .folder import Folder
from .manifest import Output
from .parts import load_cells, points_of, searched_points
from .plan import load_plan, query_rows

# Queries per block.
QUERIES = 8_192


def max_duplicates(n_neighbors: int) -> int:
    """Return how many identical points a search keeps: enough for a full list of neighbours."""
    return max(n_neighbors, SCALE_NEIGHBOR) + 2


def exact_neighbors(output: Output, *, part: int, seed: int, n_rows: int) -> dict[str, Any]:
    """Find all points of a part that may be neighbours of the sampled points."""
    folder = output.folder
    plan = load_plan(folder.url)
    Q, reach = folder.load("plan/plan", "queries", "reach")
    X, row, ends, near_ends = folder.load(f"parts/{part:05d}", "X", "row", "ends", "near_ends")
    kept = searched_points(folder, part, row.size, int(near_ends[-1]))
    query, point, distance = within_reach(Q, X[kept], reach, plan.space.scale)
    point = kept[point]
    others = row[point] != query_rows(n_rows, seed)[query]
    query = query[others]
    point = point[others]
    distance = distance[others]
    cell = np.searchsorted(ends, point, side="right") - 1 + plan.bounds[part]
    found = np.stack([query, row[point], cell])
    output.save(f"search/{part:05d}", exact=found, exact_distance=distance)
    return {}


def choose_probes(
    output: Output, *, n_rows: int, n_neighbors: int, recall: float | None
) -> dict[str, Any]:
    """Choose how many cells to visit so that the sample reaches the requested recall."""
    folder = output.folder
    plan = load_plan(folder.url)
    space = plan.space
    parts = range(plan.bounds.size - 1)
    (Q,) = folder.load("plan/plan", "queries")
    exact = [folder.load(f"search/{p:05d}", "exact", "exact_distance") for p in parts]
    found, distance = (np.concatenate(own, axis=-1) for own in zip(*exact, strict=True))
    query, row, cell = found
    k = min(n_neighbors, n_rows - 1)
    order = np.lexsort((row, distance, query))
    first = np.searchsorted(query[order], np.arange(Q.shape[0]))
    best = order[first[:, None] + np.arange(k)]
    distance = distance[best]
    cells = cell[best]
    sizes = np.concatenate([np.diff(folder.read_array(f"parts/{p:05d}.ends.npy")) for p in parts])
    target = TARGET_RECALL if recall is None else recall
    many = Q.shape[1] > DEFAULT_POLICY.tree_features
    limit = DEFAULT_POLICY.scanned_points if recall is None and many else np.inf
    needed, scanned = visits_needed(
        space.placed(Q), space.centers.centers, sizes, np.arange(sizes.size), cells
    )
    probes, most = enough_probes(needed, scanned, target, limit)
    home = space.home(Q)
    by_cell = np.argsort(home, kind="stable")
    residual = space.residual(Q[by_cell], home[by_cell]).astype(np.float32)
    while True:
        # A query finds a neighbour if it visits its cell.
        visited = space.visited(residual, home[by_cell], probes)
        met = (cells[by_cell][:, :, None] == visited[:, None, :]).any(axis=2)
        reached = float(met.mean())
        if reached >= target or probes >= most:
            break
        probes = min(most, probes + 1 + probes // 12)
    scale = float(np.median(local_scales(distance))) if distance.any() else 1.0
    return {"probes": int(probes), "recall": reached, "scale": scale}


def nearest_points(
    folder: Folder,
    starts: NDArray[np.int64],
    Q: NDArray[Any],
    home: NDArray[np.int32],
    k: int,
    probes: int,
    own: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k nearest nodes of each query, and their distances.

    Queries are sorted by cell. Each visits `probes` cells, or more if these have fewer than k
    points. `own` are the nodes of queries that are themselves points of the fit: a point is not
    its own neighbour. Ties are sorted by node.
    """
    plan = load_plan(folder.url)
    space: CellSpace = plan.space
    nodes = np.empty((home.size, k), dtype=np.int64)
    distances = np.empty((home.size, k))
    wanted = k + (own is not None)
    waiting = np.arange(home.size)
    while waiting.size:
        residual = space.residual(Q[waiting], home[waiting]).astype(np.float32)
        visited = np.empty((waiting.size, min(probes, space.centers.n_cells)), dtype=np.int32)
        for rows in row_blocks(waiting.size, 1, QUERIES):
            visited[rows] = space.visited(residual[rows], home[waiting[rows]], visited.shape[1])
        join = load_cells(folder, space, np.unique(visited), plan.bounds, starts)
        index = np.empty((waiting.size, wanted), dtype=join.order.dtype)
        full = np.empty(waiting.size, dtype=bool)
        for rows in row_blocks(waiting.size, 1, QUERIES):
            best = join.best(residual[rows], home[waiting[rows]], visited[rows], wanted)
            index[rows], full[rows] = best.index, best.count == wanted
        del residual, visited
        # Compute final distances from the original features, by differences.
        complete = waiting[full]
        index = index[full]
        met = np.zeros(join.order.size, dtype=bool)
        met[index.ravel()] = True
        place = np.cumsum(met, dtype=index.dtype)
        place -= 1
        node = join.order[met]
        del join
        X = points_of(folder, node, starts) if node.size else Q[:0]
        for rows in row_blocks(complete.size, 1, QUERIES):
            mine = complete[rows]
            near = place[index[rows]]
            distance = pair_distances(Q[mine], X, near, space.scale)
            number = node[near]
            if own is not None:
                distance[number == own[mine, None]] = np.inf
            order = np.lexsort((number, distance), axis=1)[:, :k]
            nodes[mine] = np.take_along_axis(number, order, 1)
            distances[mine] = np.take_along_axis(distance, order, 1)
        # The other queries found fewer than k points, so they visit more cells.
        waiting = waiting[~full]
        if waiting.size and probes >= space.centers.n_cells:
            raise AssertionError("points are missing after a search of all cells")
        probes = min(space.centers.n_cells, 4 * probes)
    return nodes, distances


def search_part(
    output: Output, *, part: int, starts: list[int], n_neighbors: int, probes: int, scale: float
) -> dict[str, Any]:
    """Find the neighbours and scales of the points of a part, and its edges to other parts."""
    folder = output.folder
    ends, X = folder.load(f"parts/{part:05d}", "ends", "X")
    first = int(load_plan(folder.url).bounds[part])
    home = np.repeat(np.arange(first, first + ends.size - 1, dtype=np.int32), np.diff(ends))
    own = np.arange(starts[part], starts[part + 1])
    wanted = min(starts[-1] - 1, max(n_neighbors, SCALE_NEIGHBOR))
    node = np.empty((own.size, wanted), dtype=np.int64)
    distance = np.empty((own.size, wanted))
    rest = np.arange(own.size)
    thinned = thin_duplicates(X, max_duplicates(n_neighbors))
    if thinned.groups is not None:
        thinned.fill(node, distance)
        node += starts[part]
        rest = np.delete(rest, thinned.groups[0])
    node[rest], distance[rest] = nearest_points(
        folder, np.asarray(starts), X[rest], home[rest], wanted, probes, own[rest]
    )
    k = min(n_neighbors, wanted)
    scales = local_scales(distance, scale)
    node = node[:, :k]
    distance = distance[:, :k]
    away = np.flatnonzero((node.ravel() < starts[part]) | (node.ravel() >= starts[part + 1]))
    away = away[np.argsort(node.ravel()[away], kind="stable")]
    targets = node.ravel()[away]
    output.save(
        f"search/{part:05d}",
        node=node,
        distance=distance,
        scale=scales,
        targets=targets,
        sources=away // k + starts[part],
        apart=distance.ravel()[away],
    )
    return {"ends": np.searchsorted(targets, starts).tolist()}
