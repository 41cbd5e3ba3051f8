"""Build the rows of a part of the nodes from the entries that were sorted into it.

Repeated entries are added up in ascending order of their weights, so the sums do not depend on the
order of the input. Self-loops are dropped: they cancel in the Laplacian.

A part also gets its connected components and its *borders*, from which
:mod:`gdpa.distributed.components` finds the nodes that are connected to a label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..graph.adjacency import component_labels, csr_from_parts, degrees
from .edges import Layout, load_names
from .folder import Folder
from .ids import Keys, Names
from .manifest import Output
from .rows import columns_between, in_order, write_rows


def sum_entries(
    row: NDArray[np.integer[Any]],
    column: NDArray[np.integer[Any]],
    weight: FloatArray,
    shape: tuple[int, int],
) -> sp.csr_array:
    """Return a matrix of entries; repeated entries are added up, smallest weight first."""
    key = row.astype(np.int64) * shape[1] + column
    order = np.argsort(key)
    key = key[order]
    weight = weight[order]
    is_first = np.ones(key.size, dtype=bool)
    is_first[1:] = key[1:] != key[:-1]
    first = np.flatnonzero(is_first)
    if first.size < key.size:
        is_repeated = ~is_first
        is_repeated[:-1] |= ~is_first[1:]
        repeated = np.flatnonzero(is_repeated)
        weight[repeated] = weight[repeated][np.lexsort((weight[repeated], key[repeated]))]
        weight = np.add.reduceat(weight, first)
        key = key[first]
    width = max(shape[1], 1)
    counts = np.bincount(key // width, minlength=shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_from_parts(weight, (key % width).astype(np.int32), indptr, shape)


def read_entries(
    folder: Folder, ends: list[list[int]], part: int, weighted: bool
) -> tuple[Keys, Keys, FloatArray]:
    """Return the row, column and weight of the entries of a part, from all pieces."""
    names = ("row", "column", *(["weight"] if weighted else []))
    pieces = [
        folder.load(f"edges/{i:06d}", *names, start=own[part], stop=own[part + 1])
        for i, own in enumerate(ends)
    ]
    row, column, *weights = map(np.concatenate, zip(*pieces, strict=True))
    return row, column, weights[0] if weights else np.ones(row.size)


def build_edge_rows(
    output: Output,
    *,
    part: int,
    ends: list[list[int]],
    weighted: bool,
    name_bases: list[str],
    name_ends: list[list[int]],
) -> dict[str, Any]:
    """Build and write the rows of a part, its block of hubs, its labels and names."""
    folder = output.folder
    layout = Layout.load(folder)
    row_key, column_key, weight = read_entries(folder, ends, part, weighted)
    (label_keys,) = folder.load("plan/plan", "label_keys")
    label = np.flatnonzero(layout.part_of(label_keys) == part)

    row_keys, row = np.unique(row_key, return_inverse=True)
    nodes = np.union1d(row_keys, label_keys[label])
    row = np.searchsorted(nodes, row_keys)[row]
    is_edge = (row_key != column_key) & (weight > 0)
    row = row[is_edge]
    column_key = column_key[is_edge]
    weight = weight[is_edge]
    del row_key, is_edge

    column_keys, column = np.unique(column_key, return_inverse=True)
    del column_key
    is_hub = layout.is_hub(column_keys)
    home = layout.part_of(column_keys)
    halo = column_keys[(home != part) & ~is_hub]
    halo_ends = np.searchsorted(layout.part_of(halo), np.arange(layout.n_parts + 1))
    below = int(halo_ends[part])
    columns = in_order(nodes, halo, below)
    # The column of an ordinary node, or the number of a hub.
    place = np.where(
        is_hub, np.searchsorted(layout.hubs, column_keys), np.searchsorted(columns, column_keys)
    )
    to_hub = is_hub[column]
    column = place[column]
    ordinary = ~to_hub
    W = sum_entries(row[ordinary], column[ordinary], weight[ordinary], (nodes.size, columns.size))
    degree = degrees(W)
    if layout.hubs.size:
        shape = (nodes.size, layout.hubs.size)
        C = sum_entries(row[to_hub], column[to_hub], weight[to_hub], shape)
        degree = degree + degrees(C)
        output.save(f"hubs/{part:05d}", data=C.data, indices=C.indices, indptr=C.indptr)
        output.save(f"hubs/{part:05d}", degree=np.asarray(C.sum(axis=0)).ravel())
    else:
        C = sp.csr_array((nodes.size, 0))
    save_labels(output, part, np.searchsorted(nodes, label_keys[label]), label)
    if name_bases:
        save_names_of_nodes(output, part, nodes, name_bases, name_ends)
    save_borders(output, part, W, C, below)
    return write_rows(
        output, part, W, nodes=nodes, halo=halo, halo_ends=halo_ends, degree=degree
    ) | {"to_hubs": int(C.nnz)}


def build_hub_rows(
    output: Output,
    *,
    n_parts: int,
    ends: list[list[int]],
    weighted: bool,
    name_bases: list[str],
    name_ends: list[list[int]],
) -> dict[str, Any]:
    """Write the hubs as one more part: the weights between them, their degrees and labels."""
    folder = output.folder
    layout = Layout.load(folder)
    hubs = layout.hubs
    row, column, weight = read_entries(folder, ends, n_parts, weighted)
    is_edge = (row != column) & (weight > 0)
    shape = (hubs.size, hubs.size)
    W = sum_entries(
        np.searchsorted(hubs, row[is_edge]),
        np.searchsorted(hubs, column[is_edge]),
        weight[is_edge],
        shape,
    )
    degree = degrees(W)
    for part in range(n_parts) if hubs.size else ():
        degree = degree + folder.read_array(f"hubs/{part:05d}.degree.npy")
    (label_keys,) = folder.load("plan/plan", "label_keys")
    label = np.flatnonzero(layout.is_hub(label_keys))
    save_labels(output, n_parts, np.searchsorted(hubs, label_keys[label]), label)
    if name_bases:
        save_names_of_nodes(output, n_parts, hubs, name_bases, name_ends)
    return write_rows(
        output,
        n_parts,
        W,
        nodes=hubs,
        halo=np.empty(0, dtype=np.int64),
        halo_ends=np.zeros(n_parts + 2, dtype=np.int64),
        degree=degree,
    )


def save_labels(
    output: Output, part: int, labeled: NDArray[np.intp], label: NDArray[np.intp]
) -> None:
    """Write the labelled rows of a part and the numbers of their labels, sorted by row."""
    order = np.argsort(labeled)
    output.save(f"parts/{part:05d}", labeled=labeled[order], label=label[order])


def save_borders(output: Output, part: int, W: sp.csr_array, C: sp.csr_array, below: int) -> None:
    """Write the connected components of a part, and what each of them is linked to outside."""
    n = W.shape[0]
    count, component = component_labels(columns_between(W, below, below + n))
    inside = (W.indices >= below) & (W.indices < below + n)
    row = np.repeat(np.arange(n), np.diff(W.indptr))
    component = component.astype(np.int32)
    outside = W.indices[~inside]
    halo = np.where(outside < below, outside, outside - n)
    border = _distinct_pairs(component[row[~inside]], halo, W.shape[1] - n)
    hub_row = np.repeat(np.arange(n), np.diff(C.indptr))
    to_hub = _distinct_pairs(component[hub_row], C.indices, C.shape[1])
    output.save(
        f"borders/{part:05d}",
        component=component,
        count=np.array([count]),
        border_component=border[0],
        border_halo=border[1],
        hub_component=to_hub[0],
        hub_number=to_hub[1],
    )


def _distinct_pairs(
    first: NDArray[Any], second: NDArray[Any], width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct pairs of two columns, sorted."""
    width = max(width, 1)
    pairs = np.unique(first.astype(np.int64) * width + second)
    return (pairs // width).astype(np.int32), (pairs % width).astype(np.int32)


def save_names_of_nodes(
    output: Output, part: int, nodes: Keys, bases: list[str], ends: list[list[int]]
) -> None:
    """Write the names of the nodes of a part; raise an error if two of them share a key."""
    names = load_names(output.folder, bases, ends, part)
    names = names.take(np.searchsorted(names.keys, nodes))
    output.save(f"names/{part:05d}", content=names.content, ends=names.ends)


def read_node_ids(folder: Folder, part: int, text: bool) -> Any:
    """Return the identifiers of the nodes of a part as an Arrow array."""
    import pyarrow as pa

    (nodes,) = folder.load(f"rows/{part:05d}", "nodes")
    if not text:
        return pa.array(nodes)
    content, ends = folder.load(f"names/{part:05d}", "content", "ends")
    return Names(nodes, content, ends).arrow()
