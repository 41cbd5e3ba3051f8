"""The rows of the symmetric graph that belong to a part, or to the parts of one worker.

    w_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j))   where j is a neighbour of i or i one of j

The columns of these rows are the part's own nodes and its halo: the nodes of other parts that its
rows are linked to. Columns are sorted by node number, so a row lists its neighbours in the same
order whichever parts are combined, and sums over them are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..graph.adjacency import csr_from_parts, degrees
from ..graph.neighbor_graph import kernel_weights
from ..system.rows import inverse_root
from .folder import Folder
from .manifest import Output
from .parts import points_of


def build_rows(
    output: Output, *, part: int, starts: list[int], ends: list[list[int]]
) -> dict[str, Any]:
    """Build the rows of a part from its own lists of neighbours and those of other parts."""
    folder = output.folder
    low, high = starts[part], starts[part + 1]
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
    theirs, at = columns_of(sources, low, high, halo), (targets - low).astype(np.int32)
    back = kernel_weights(apart, scale[at + below], scale[theirs])
    i = np.concatenate([own[inside], at])
    j = np.concatenate([rows[inside] + np.int32(below), theirs])
    transposed = sp.csr_array((np.concatenate([w[inside], back]), (i, j)), shape=shape)
    W = lists.maximum(transposed)
    W.sort_indices()
    return write_rows(output, part, W, halo, starts)


def write_rows(
    output: Output, part: int, W: sp.csr_array, halo: NDArray[np.int64], starts: Sequence[int]
) -> dict[str, Any]:
    """Write rows; return how many nodes of the halo belong to each other part."""
    ends = np.searchsorted(halo, starts)
    own = W.indices - ends[part]
    output.save(
        f"rows/{part:05d}", data=W.data, indices=W.indices.astype(np.int32),
        indptr=W.indptr.astype(np.int64), degree=degrees(W), halo=halo, halo_ends=ends,
    )  # fmt: skip
    inside = np.count_nonzero((own >= 0) & (own < W.shape[0]))
    counts = np.diff(ends).tolist()
    return {"halo": counts, "nonzeros": int(W.nnz), "cut": int(W.nnz - inside)}


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


def in_order(own: NDArray[Any], halo: NDArray[Any], below: int) -> NDArray[Any]:
    """Return the values of the own nodes and of the halo, in the order of the columns."""
    return np.concatenate([halo[..., :below], own, halo[..., below:]], axis=-1)


@dataclass(frozen=True)
class GroupRows:
    """Rows of consecutive parts that belong to one worker.

    Parameters
    ----------
    url : str
        The work folder.
    parts : range
        The parts.
    ends : list of int
        First row of each part, and the number of rows.
    blocks : tuple of csr_array of float32
        Weights, a block for each part; the columns are the own nodes and the halo.
    below : int
        Number of nodes of the halo before the own nodes.
    root, halo_root : ndarray
        ``degree^-1/2`` of the own nodes and of the halo, 0 for nodes without a neighbour.
    send : list of ndarray of int
        Rows that each other group needs.
    labeled, label, code, fold : ndarray of int
        Labelled rows, the numbers of their labels, their classes and folds.
    """

    url: str
    parts: range
    ends: list[int]
    blocks: tuple[sp.csr_array, ...]
    below: int
    root: FloatArray
    halo_root: FloatArray
    send: list[NDArray[np.intp]]
    labeled: NDArray[np.intp]
    label: NDArray[np.intp]
    code: NDArray[np.int32]
    fold: NDArray[np.int32]

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return 24 * self.root.size + sum(8 * int(block.nnz) for block in self.blocks)

    def product(self, values: NDArray[Any], halo: NDArray[Any]) -> NDArray[Any]:
        """Return ``S W S`` times each row of `values`, with ``S = diag(degree)^-1/2``.

        The product has the precision of `values`; weights in double precision are read from file.
        """
        root, halo_root = self.root.astype(values.dtype), self.halo_root.astype(values.dtype)
        z = in_order(values * root, halo * halo_root, self.below)
        out = np.empty_like(values)
        for block, span in self.blocks_in(values.dtype):
            for j in range(values.shape[0]):
                out[j, span] = block @ z[j]
        out *= root
        return out

    def blocks_in(self, dtype: np.dtype[Any]) -> Iterator[tuple[sp.csr_array, slice]]:
        """Yield the weights of each part in the given precision, and its rows."""
        spans = pairwise(self.ends)
        for part, block, (low, high) in zip(self.parts, self.blocks, spans, strict=True):
            W = block
            if dtype != np.float32:
                data = Folder(self.url).read_array(f"rows/{part:05d}.data.npy")
                W = csr_from_parts(data, block.indices, block.indptr, block.shape)
            yield W, slice(low, high)


def load_group(url: str, number: int, bounds: Sequence[int], starts: Sequence[int]) -> GroupRows:
    """Read the rows of a group, parts ``bounds[number]`` to ``bounds[number + 1]``."""
    folder = Folder(url)
    parts = range(bounds[number], bounds[number + 1])
    low, high = starts[parts.start], starts[parts.stop]

    def joined(name: str, shift: bool = False) -> NDArray[Any]:
        base = [starts[p] - low if shift else 0 for p in parts]
        files = [name.format(p) for p in parts]
        return np.concatenate([folder.read_array(f) + b for f, b in zip(files, base, strict=True)])

    halo = np.unique(joined("rows/{:05d}.halo.npy"))
    halo = halo[(halo < low) | (halo >= high)]
    blocks = []
    for part in parts:
        data, indices, indptr, own_halo = folder.load(
            f"rows/{part:05d}", "data", "indices", "indptr", "halo"
        )
        first, last = starts[part : part + 2]
        below = int(np.searchsorted(own_halo, first))
        nodes = in_order(np.arange(first, last), own_halo, below)
        with np.errstate(under="ignore"):
            data = data.astype(np.float32)
        if data.size < 2**31:
            indptr = indptr.astype(np.int32)
        columns = columns_of(nodes, low, high, halo)[indices]
        blocks.append(csr_from_parts(data, columns, indptr, (last - first, high - low + halo.size)))
    send = []
    for other in range(len(bounds) - 1):
        needed = [np.empty(0, dtype=np.int64)]
        for part in range(bounds[other], bounds[other + 1]) if other != number else ():
            (ends,) = folder.load(f"rows/{part:05d}", "halo_ends")
            first, last = int(ends[parts.start]), int(ends[parts.stop])
            needed += folder.load(f"rows/{part:05d}", "halo", start=first, stop=last)
        send.append(np.unique(np.concatenate(needed)) - low)
    halo_degree = np.empty(0)
    if halo.size:
        halo_degree = points_of(folder, halo, np.asarray(starts), "rows/{:05d}.degree.npy")
    label = joined("parts/{:05d}.label.npy")
    codes, folds = folder.load("plan/plan", "codes", "folds")
    return GroupRows(
        url,
        parts,
        [starts[p] - low for p in range(parts.start, parts.stop + 1)],
        tuple(blocks),
        int(np.searchsorted(halo, low)),
        inverse_root(joined("rows/{:05d}.degree.npy")),
        inverse_root(halo_degree),
        send,
        joined("parts/{:05d}.labeled.npy", shift=True),
        label,
        codes[label],
        folds[label],
    )
