"""The rows of the graph that belong to a part, or to the parts of one worker.

A part owns some nodes, each with a key; keys ascend within a part and from part to part. The
columns of its rows are its own nodes and its *halo*: the nodes of other parts that its rows are
linked to. Columns are sorted by key, so a row lists its neighbours in the same order whichever
parts are combined, and sums over them are the same to the last bit.

A *hub* is a node with so many edges that its row would fill a part. The weights between the nodes
of a part and the hubs are a separate block C of columns. The row of the hubs is the sum of the
transposed blocks of all parts. So a hub adds no more to a part than its own edges there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..graph.adjacency import csr_from_parts
from .folder import Folder
from .manifest import Output

# Bytes of a stored entry: a weight and a column.
ENTRY_BYTES = 12


def write_rows(
    output: Output,
    part: int,
    W: sp.csr_array,
    *,
    nodes: NDArray[np.int64],
    halo: NDArray[np.int64],
    halo_ends: NDArray[np.integer[Any]],
    degree: FloatArray,
) -> dict[str, Any]:
    """Write the rows of a part; return how many nodes of the halo belong to each part.

    Parameters
    ----------
    output : Output
        The work folder.
    part : int
        The part.
    W : csr_array
        Weights; the columns are the own nodes and the halo, sorted by key.
    nodes, halo : ndarray of int
        Keys of the own nodes and of the halo.
    halo_ends : ndarray of int
        Where the nodes of each part start in the halo.
    degree : ndarray
        Degrees of the own nodes, including edges to hubs.
    """
    output.save(
        f"rows/{part:05d}",
        data=W.data,
        indices=W.indices.astype(np.int32),
        indptr=W.indptr.astype(np.int64),
        nodes=nodes,
        halo=halo,
        halo_ends=np.asarray(halo_ends),
        degree=degree,
    )
    own = W.indices - int(halo_ends[part])
    inside = np.count_nonzero((own >= 0) & (own < W.shape[0]))
    return {
        "nodes": int(nodes.size),
        "halo": np.diff(halo_ends).tolist(),
        "nonzeros": int(W.nnz),
        "degree": float(degree.sum()),
        "largest_degree": float(degree.max(initial=0.0)),
        "cut": int(W.nnz - inside),
    }


def in_order(own: NDArray[Any], halo: NDArray[Any], below: int) -> NDArray[Any]:
    """Return the values of the own nodes and of the halo, in the order of the columns."""
    return np.concatenate([halo[..., :below], own, halo[..., below:]], axis=-1)


def columns_between(W: sp.csr_array, first: int, last: int) -> sp.csr_array:
    """Return some consecutive columns of a matrix."""
    inside = (W.indices >= first) & (W.indices < last)
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    counts = np.bincount(row[inside], minlength=W.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)  # as SciPy's graph functions expect
    shape = (W.shape[0], last - first)
    return csr_from_parts(W.data[inside], W.indices[inside] - first, indptr, shape)


def no_hubs(n_rows: int) -> sp.csr_array:
    """Return the block of columns of the hubs if there are none."""
    return sp.csr_array((n_rows, 0))


@dataclass(frozen=True)
class PartBlock:
    """The weights of a part, in memory or on disk.

    Parameters
    ----------
    url : str
        The work folder.
    part : int
        The part.
    span : slice
        The rows of the part in its group.
    shape : tuple of int
        Shape of the weights in the file.
    columns : ndarray of int
        Column of the group for each column of the part.
    matrix : csr_array or None
        The weights, with the columns of the group; None if they are read for each product.
    """

    url: str
    part: int
    span: slice
    shape: tuple[int, int]
    columns: NDArray[np.int32]
    matrix: sp.csr_array | None = None

    def read(self) -> sp.csr_array:
        """Read the weights, with the columns of the part."""
        data, indices, indptr = Folder(self.url).load(
            f"rows/{self.part:05d}", "data", "indices", "indptr"
        )
        if data.size < 2**31:
            indptr = indptr.astype(np.int32)
        return csr_from_parts(data, indices, indptr, self.shape)

    def in_memory(self, n_columns: int) -> PartBlock:
        """Return this block with its weights in memory."""
        W = self.read()
        indices = self.columns[W.indices]
        matrix = csr_from_parts(W.data, indices, W.indptr, (self.shape[0], n_columns))
        nothing = np.empty(0, dtype=np.int32)
        return PartBlock(self.url, self.part, self.span, self.shape, nothing, matrix)

    def weights(self) -> tuple[sp.csr_array, NDArray[np.int32] | None]:
        """Return the weights, and the column of the group for each of their columns.

        The latter is None if they already have the columns of the group.
        """
        if self.matrix is not None:
            return self.matrix, None
        return self.read(), self.columns

    def between_own_nodes(self, below: int) -> sp.csr_array:
        """Return the weights between the nodes of the part; `below` is that of the group."""
        W, columns = self.weights()
        first = below + self.span.start
        if columns is not None:
            first = int(np.searchsorted(columns, first))
        return columns_between(W, first, first + W.shape[0])

    def product(self, z: FloatArray) -> FloatArray:
        """Return the weights times each row of `z`, which has the columns of the group."""
        if self.matrix is not None:
            return np.stack([self.matrix @ row for row in z])
        W = self.read()
        return np.stack([W @ row[self.columns] for row in z])

    def rows(self, z: FloatArray, places: NDArray[np.intp]) -> FloatArray:
        """Return the given rows of the weights times `z`."""
        if self.matrix is not None:
            return np.asarray(self.matrix[places] @ z.T)
        return np.asarray(self.read()[places] @ z[:, self.columns].T)


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
    blocks : tuple of PartBlock
        Weights of each part.
    keys : ndarray of int
        Keys of the columns: the own nodes and the halo.
    below : int
        Number of nodes of the halo before the own nodes.
    hubs : tuple of csr_array
        For each part, the weights between its nodes and the hubs.
    degree : ndarray
        Degree of each node.
    send : list of ndarray of int
        Rows that each other group needs.
    labeled, label, code, fold : ndarray of int
        Labelled rows, the numbers of their labels, their classes and folds.
    """

    url: str
    parts: range
    ends: list[int]
    blocks: tuple[PartBlock, ...]
    keys: NDArray[np.int64]
    below: int
    hubs: tuple[sp.csr_array, ...]
    degree: FloatArray
    send: list[NDArray[np.intp]] = field(default_factory=list)
    labeled: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    label: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    code: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    fold: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        held = [block.matrix for block in self.blocks if block.matrix is not None]
        entries = sum(int(W.nnz) for W in (*held, *self.hubs))
        return 16 * self.degree.size + 8 * self.keys.size + ENTRY_BYTES * entries

    @property
    def spans(self) -> list[slice]:
        """Rows of each part."""
        return [slice(low, high) for low, high in pairwise(self.ends)]

    @property
    def n_sent(self) -> int:
        """Number of values that other groups need, for one column."""
        return sum(int(places.size) for places in self.send)

    def columns_of(self, values: FloatArray, halo: Sequence[FloatArray]) -> FloatArray:
        """Return values in the order of the columns."""
        joined = np.hstack([np.empty((values.shape[0], 0)), *halo])
        return in_order(values, joined, self.below)

    def product(
        self, values: FloatArray, halo: Sequence[FloatArray], hub_values: FloatArray
    ) -> FloatArray:
        """Return the weights times each row of `values`, which has one column per node.

        Parameters
        ----------
        values : ndarray of shape (n_columns, n_rows)
            Values of the own nodes.
        halo : sequence of ndarray
            Values of the nodes of other groups, in the order of the groups.
        hub_values : ndarray of shape (n_columns, n_hubs)
            Values of the hubs.
        """
        z = self.columns_of(values, halo)
        out = np.empty_like(values)
        for block, hubs in zip(self.blocks, self.hubs, strict=True):
            out[:, block.span] = block.product(z)
            if hub_values.size:
                out[:, block.span] += (hubs @ hub_values.T).T
        return out

    def for_hubs(self, values: FloatArray) -> list[FloatArray]:
        """Return what each part adds to the product of the hubs."""
        return [
            np.asarray((hubs.T @ values[:, span].T).T)
            for hubs, span in zip(self.hubs, self.spans, strict=True)
        ]


def load_group(
    url: str, number: int, bounds: Sequence[int], n_hubs: int, budget: float
) -> GroupRows:
    """Read the rows of a group, parts ``bounds[number]`` to ``bounds[number + 1]``.

    Parameters
    ----------
    url : str
        The work folder.
    number : int
        The group.
    bounds : sequence of int
        First part of each group, and the number of parts.
    n_hubs : int
        Number of hubs.
    budget : float
        Maximum number of bytes of weights to hold in memory. The weights of further parts are read
        from the folder for each product.
    """
    folder = Folder(url)
    parts = range(bounds[number], bounds[number + 1])

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([folder.read_array(name.format(part)) for part in parts])

    own_nodes = [folder.read_array(f"rows/{part:05d}.nodes.npy") for part in parts]
    nodes = np.concatenate(own_nodes)
    ends = [0, *np.cumsum([own.size for own in own_nodes]).tolist()]
    halo = np.unique(np.concatenate(list(_other_halo(folder, parts))))
    below = int(np.searchsorted(halo, nodes[0])) if nodes.size else 0
    columns = in_order(nodes, halo, below)
    blocks = []
    left = budget
    for part, own, (low, high) in zip(parts, own_nodes, pairwise(ends), strict=True):
        part_halo, halo_ends = folder.load(f"rows/{part:05d}", "halo", "halo_ends")
        part_columns = in_order(own, part_halo, int(halo_ends[part]))
        place = np.searchsorted(columns, part_columns).astype(np.int32)
        shape = (own.size, part_columns.size)
        block = PartBlock(url, part, slice(low, high), shape, place)
        indptr = folder.read_array(f"rows/{part:05d}.indptr.npy")
        size = ENTRY_BYTES * int(indptr[-1])
        if size <= left:
            left -= size
            block = block.in_memory(columns.size)
        blocks.append(block)
    hubs = tuple(
        _read_hubs(folder, part, own.size, n_hubs)
        for part, own in zip(parts, own_nodes, strict=True)
    )
    shifts = zip(parts, ends, strict=False)
    label = joined("parts/{:05d}.label.npy")
    codes, folds = folder.load("plan/plan", "codes", "folds")
    return GroupRows(
        url=url,
        parts=parts,
        ends=ends,
        blocks=tuple(blocks),
        keys=columns,
        below=below,
        hubs=hubs,
        degree=joined("rows/{:05d}.degree.npy"),
        send=list(_rows_to_send(folder, number, bounds, nodes)),
        labeled=np.concatenate(
            [folder.read_array(f"parts/{part:05d}.labeled.npy") + low for part, low in shifts]
        ),
        label=label,
        code=codes[label],
        fold=folds[label],
    )


def _read_hubs(folder: Folder, part: int, n_rows: int, n_hubs: int) -> sp.csr_array:
    """Return the weights between the nodes of a part and the hubs."""
    if not n_hubs:
        return no_hubs(n_rows)
    data, indices, indptr = folder.load(f"hubs/{part:05d}", "data", "indices", "indptr")
    return csr_from_parts(data, indices, indptr, (n_rows, n_hubs))


def _other_halo(folder: Folder, parts: range) -> Iterator[NDArray[np.int64]]:
    """Yield the nodes of other groups that the rows of each part are linked to."""
    yield np.empty(0, dtype=np.int64)
    for part in parts:
        (ends,) = folder.load(f"rows/{part:05d}", "halo_ends")
        for first, last in ((0, parts.start), (parts.stop, ends.size - 1)):
            yield from folder.load(
                f"rows/{part:05d}", "halo", start=int(ends[first]), stop=int(ends[last])
            )


def _rows_to_send(
    folder: Folder, number: int, bounds: Sequence[int], nodes: NDArray[np.int64]
) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of a group that each group needs."""
    first = bounds[number]
    last = bounds[number + 1]
    for other, span in enumerate(pairwise(bounds)):
        needed = [np.empty(0, dtype=np.int64)]
        for part in range(*span) if other != number else ():
            (ends,) = folder.load(f"rows/{part:05d}", "halo_ends")
            start = int(ends[first])
            stop = int(ends[last])
            needed += folder.load(f"rows/{part:05d}", "halo", start=start, stop=stop)
        yield np.searchsorted(nodes, np.unique(np.concatenate(needed)))
