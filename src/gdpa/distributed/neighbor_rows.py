"""The rows of the neighbour graph that belong to a part.

    w_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j))   where j is a neighbour of i or i one of j

The key of a node is its number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import NDArray
from ..graph.adjacency import csr_from_parts, degrees
from ..graph.neighbor_graph import kernel_weights
from .manifest import Output
from .parts import points_of
from .rows import in_order, write_rows


def build_rows(
    output: Output, *, part: int, starts: list[int], ends: list[list[int]]
) -> dict[str, Any]:
    """Build the rows of a part from its own lists of neighbours and those of other parts."""
    folder = output.folder
    low = starts[part]
    high = starts[part + 1]
    node, distance = folder.load(f"search/{part:05d}", "node", "distance")
    n, k = node.shape
    # The list of a part's edges to itself is empty, so it can be read like the others.
    others = [
        folder.load(f"search/{p:05d}", "sources", "targets", "apart", start=low, stop=high)
        for p, (low, high) in enumerate(own[part : part + 2] for own in ends)
    ]
    sources, targets, apart = map(np.concatenate, zip(*others, strict=True))
    halo = np.union1d(node[(node < low) | (node >= high)], sources)
    below = int(np.searchsorted(halo, low))
    nodes = in_order(np.arange(low, high), halo, below)
    scale = points_of(folder, nodes, np.asarray(starts), "search/{:05d}.scale.npy")

    columns = columns_of(node, low, high, halo)
    order = np.argsort(columns, axis=1)
    columns = np.take_along_axis(columns, order, 1)
    distance = np.take_along_axis(distance, order, 1)
    w = kernel_weights(distance, scale[below : below + n, None], scale[columns]).ravel()
    shape = (n, n + halo.size)
    wide = np.int32 if n * k < 2**31 else np.int64
    lists = csr_from_parts(w, columns.ravel(), np.arange(0, n * k + 1, k, dtype=wide), shape)
    own = columns.ravel() - below
    inside = (own >= 0) & (own < n)
    rows = np.repeat(np.arange(n, dtype=np.int32), k)
    theirs = columns_of(sources, low, high, halo)
    at = (targets - low).astype(np.int32)
    back = kernel_weights(apart, scale[at + below], scale[theirs])
    i = np.concatenate([own[inside], at])
    j = np.concatenate([rows[inside] + np.int32(below), theirs])
    transposed = sp.csr_array((np.concatenate([w[inside], back]), (i, j)), shape=shape)
    W = lists.maximum(transposed)
    W.sort_indices()
    return write_rows(
        output,
        part,
        W,
        nodes=np.arange(low, high),
        halo=halo,
        halo_ends=np.searchsorted(halo, starts),
        degree=degrees(W),
    )


def columns_of(
    nodes: NDArray[Any], low: int, high: int, halo: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return the columns of nodes, given the own nodes `low` to `high` and the halo."""
    below = np.searchsorted(halo, low)
    columns = (nodes - (low - below)).astype(np.int32)
    outside = (nodes < low) | (nodes >= high)
    place = np.searchsorted(halo, nodes[outside])
    columns[outside] = np.where(place < below, place, place + (high - low))
    return columns
