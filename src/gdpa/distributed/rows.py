"""Rows of the symmetric graph that belong to a part, and which nodes of other parts they touch.

    w_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j))   where j is a neighbour of i or i one of j

The columns of a shard are the part's own nodes and its halo, the nodes of other parts that its rows
touch, all in order of their numbers: a row lists its neighbours in the same order whichever parts
are put together, and sums over them are the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import csr_from_parts, degrees
from ..graph.neighbor_graph import kernel_weights
from .manifest import Output
from .store import Folder

__all__ = ["Shard", "build_rows", "load_shard", "places", "write_counts", "write_shard"]


@dataclass(frozen=True)
class Shard:
    """Rows of the graph.

    Parameters
    ----------
    W : csr_array of shape (n_own, n_own + n_halo)
        Weights; columns in the order of the nodes.
    degree : ndarray of shape (n_own,)
        Row sums.
    halo : ndarray of int64 of shape (n_halo,)
        Nodes of other parts, ascending.
    """

    W: sp.csr_array
    degree: NDArray[np.float64]
    halo: NDArray[np.int64]


def build_rows(
    output: Output, *, part: int, starts: list[int], ends: list[list[int]]
) -> dict[str, Any]:
    """Put the rows of a part together: its own lists, and what others' lists say about it."""
    folder = output.folder
    low, high = starts[part], starts[part + 1]
    node = folder.read_array(f"search/{part:05d}.node.npy")
    distance = folder.read_array(f"search/{part:05d}.distance.npy")
    n, k = node.shape
    others = [p for p, own in enumerate(ends) if p != part and own[part + 1] > own[part]]
    from_, to, apart = (
        _joined([folder.read_array(f"search/{p:05d}.{what}.npy", *ends[p][part : part + 2])
                 for p in others], kind)
        for what, kind in (("from", np.int64), ("to", np.int64), ("apart", np.float64))
    )  # fmt: skip
    away = (node < low) | (node >= high)
    halo = np.union1d(node[away], from_)
    scale = _scales(folder, part, starts, halo)

    below = int(np.searchsorted(halo, low))
    columns = places(node, low, high, halo)
    order = np.argsort(columns, axis=1)
    columns = np.take_along_axis(columns, order, 1)
    distance = np.take_along_axis(distance, order, 1)
    w = kernel_weights(distance, scale[below : below + n, None], scale[columns]).ravel()
    rows = np.repeat(np.arange(n, dtype=np.int32), k)
    shape = (n, n + halo.size)
    wide = np.int32 if n * k < 2**31 else np.int64
    row_ends = np.arange(0, n * k + 1, max(k, 1), dtype=wide)
    lists = csr_from_parts(w, columns.ravel(), row_ends, shape)
    own = columns.ravel() - below
    mine = (own >= 0) & (own < n)
    theirs, at = places(from_, low, high, halo), (to - low).astype(np.int32)
    back = kernel_weights(apart, scale[at + below], scale[theirs])
    transposed = sp.csr_array(
        (
            np.concatenate([w[mine], back]),
            (
                np.concatenate([own[mine], at]),
                np.concatenate([rows[mine] + np.int32(below), theirs]),
            ),
        ),
        shape=shape,
    )
    W = lists.maximum(transposed)
    W.sort_indices()
    return write_shard(output, part, W, halo, starts)


def write_shard(
    output: Output, part: int, W: sp.csr_array, halo: NDArray[np.int64], starts: list[int]
) -> dict[str, Any]:
    """Write a shard; its record says how much of its halo each other part holds."""
    output.array(f"rows/{part:05d}.data.npy", W.data)
    output.array(f"rows/{part:05d}.indices.npy", W.indices.astype(np.int32))
    output.array(f"rows/{part:05d}.indptr.npy", W.indptr.astype(np.int64))
    output.array(f"rows/{part:05d}.degree.npy", degrees(W))
    output.array(f"rows/{part:05d}.halo.npy", halo)
    ends = np.searchsorted(halo, starts)
    own = W.indices - ends[part]
    inside = np.count_nonzero((own >= 0) & (own < W.shape[0]))
    return {"halo": ends.tolist(), "nonzeros": int(W.nnz), "cut": int(W.nnz - inside)}


def write_counts(output: Output, *, counts: list[list[int]]) -> dict[str, Any]:
    """How many nodes each part (row) has to share with each other one (column)."""
    output.array("rows/counts.npy", np.asarray(counts, dtype=np.int64))
    return {}


def places(nodes: NDArray[Any], low: int, high: int, halo: NDArray[np.int64]) -> NDArray[np.int32]:
    """Columns of nodes, among own ones from `low` to `high` and a halo, in order of numbers."""
    below = np.searchsorted(halo, low)
    columns = (nodes - (low - below)).astype(np.int32)
    outside = (nodes < low) | (nodes >= high)
    place = np.searchsorted(halo, nodes[outside])
    columns[outside] = np.where(place < below, place, place + (high - low))
    return columns


def load_shard(folder: Folder, part: int) -> Shard:
    """Read a shard."""
    data, indices, indptr, degree, halo = (
        folder.read_array(f"rows/{part:05d}.{what}.npy")
        for what in ("data", "indices", "indptr", "degree", "halo")
    )
    if data.size < 2**31:
        indptr = indptr.astype(np.int32)
    W = csr_from_parts(data, indices, indptr, (degree.size, degree.size + halo.size))
    return Shard(W, degree, halo)


def _joined(arrays: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)


def _scales(
    folder: Folder, part: int, starts: list[int], halo: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scales of the part's own nodes and of its halo, in the order of the columns."""
    found = []
    ends = np.searchsorted(halo, starts)
    for p in range(len(starts) - 1):
        if p == part or ends[p] < ends[p + 1]:
            scale = folder.read_array(f"search/{p:05d}.scale.npy")
            nodes = halo[ends[p] : ends[p + 1]] - starts[p]
            found.append(scale if p == part else scale[nodes])
    return np.concatenate(found)
