"""Read weighted edges from Parquet files, and sort their ends into parts of the nodes.

A row ``source, target, weight`` is an undirected edge; rows about the same two nodes, in either
direction, are added up. A task reads one piece of a file. It writes each edge twice, as an entry of
the row of each end, sorted by the part that the row belongs to.

Parts are ranges of keys (:mod:`gdpa.distributed.ids`) with about the same number of entries, chosen
by a sample. A *hub* is a node with so many edges that its row would fill a part. Its row is not
stored, because every neighbour stores the same edge; see :mod:`gdpa.distributed.rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..tables import TableError
from .folder import Folder
from .ids import Keys, Names, integer_keys, is_text, text_keys
from .inputs import Inputs, Piece
from .manifest import Output

# Sums of weights outside of this range could overflow or lose all precision.
SMALLEST_WEIGHT = 1e-290
LARGEST_WEIGHT = 1e290
# Number of sampled ends of edges; they place the bounds of parts within a few per cent.
SAMPLE_ENDS = 1_000_000
# A node with fewer sampled ends is no hub, because its number of edges is not known well enough.
LEAST_HUB_SAMPLE = 30


@dataclass(frozen=True)
class EdgeColumns:
    """The columns of an edge file.

    Parameters
    ----------
    source, target : str
        Columns with the two ends of an edge.
    weight : str or None
        Column with its weight; None if all weights are 1.
    text : bool
        Whether identifiers are text.
    hash_seed : int
        Seed of the hashes of text.
    """

    source: str
    target: str
    weight: str | None
    text: bool
    hash_seed: int

    @classmethod
    def of(
        cls, inputs: Inputs, source: str, target: str, weight: str | None, hash_seed: int
    ) -> EdgeColumns:
        """Check the columns of the input; the default of `weight` is "weight", if there is one."""
        kinds = []
        for column in (source, target):
            try:
                kinds.append(is_text(inputs.column_type(column)))
            except TableError as error:
                raise TableError(f"column {column!r} of {inputs.paths[0]}: {error}") from error
        if kinds[0] != kinds[1]:
            raise TableError(
                f"column {source!r} of {inputs.paths[0]} is {inputs.column_type(source)}, but "
                f"{target!r} is {inputs.column_type(target)}; store both in the same way"
            )
        if weight is None:
            if "weight" in dict(inputs.schema):
                weight = "weight"
        elif not inputs.column_type(weight).startswith(("int", "uint", "float", "double", "half")):
            raise TableError(
                f"column {weight!r} of {inputs.paths[0]} is {inputs.column_type(weight)}; weights "
                "must be numbers"
            )
        return cls(source, target, weight, kinds[0], hash_seed)


@dataclass(frozen=True)
class Edges:
    """The edges of a piece: keys of the two ends, weights (None: all 1), and names of nodes."""

    source: Keys
    target: Keys
    weight: FloatArray | None
    names: Names | None


def read_edges(piece: Piece, columns: EdgeColumns) -> Edges:
    """Read and check the edges of a piece."""
    import pyarrow as pa

    wanted = [columns.source, columns.target, *([columns.weight] if columns.weight else [])]
    table = piece.read(list(dict.fromkeys(wanted)))
    weight = None
    if columns.weight is not None:
        weight = _weights(table.column(columns.weight), piece, columns.weight)
    ends = [table.column(columns.source), table.column(columns.target)]
    if not columns.text:
        source, target = (
            integer_keys(column, piece, name)
            for column, name in zip(ends, (columns.source, columns.target), strict=True)
        )
        return Edges(source, target, weight, None)
    texts = [column.cast(pa.large_string()) for column in ends]
    source, from_source = text_keys(texts[0], piece, columns.source, columns.hash_seed)
    target, from_target = text_keys(texts[1], piece, columns.target, columns.hash_seed)
    names = Names.of(
        pa.concat_arrays([from_source.arrow(), from_target.arrow()]), columns.hash_seed
    )
    return Edges(source, target, weight, names.unique())


def _weights(column: Any, piece: Piece, name: str) -> FloatArray:
    """Return weights; raise an error that names the first row with an invalid one."""
    import pyarrow as pa

    weight = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    with np.errstate(invalid="ignore"):
        valid = (weight == 0) | ((weight >= SMALLEST_WEIGHT) & (weight <= LARGEST_WEIGHT))
    if not valid.all():
        row = int(np.argmin(valid))
        raise TableError(
            f"{piece.place(row)}: weight {column[row].as_py()!r} in column {name!r} must be 0 or "
            f"a number between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        )
    return np.asarray(weight, dtype=np.float64)


def sample_edges(
    output: Output, *, piece: Piece, number: int, columns: EdgeColumns, stride: int
) -> dict[str, Any]:
    """Check the edges of a piece, and write the ends of every `stride`-th edge.

    Returns the number of self-loops, and the smallest and largest positive weight.
    """
    edges = read_edges(piece, columns)
    rows = slice(-piece.first % stride, None, stride)
    ends = np.concatenate([edges.source[rows], edges.target[rows]])
    output.save(f"sample/{number:06d}", ends=ends)
    positive = np.ones(1)
    if edges.weight is not None:
        positive = edges.weight[edges.weight > 0]
    return {
        "loops": int(np.count_nonzero(edges.source == edges.target)),
        "smallest": float(positive.min(initial=LARGEST_WEIGHT)),
        "largest": float(positive.max(initial=SMALLEST_WEIGHT)),
    }


@dataclass(frozen=True)
class Layout:
    """Which part each node belongs to.

    Parameters
    ----------
    bounds : ndarray of int of shape (n_parts - 1,)
        Keys that separate parts; a bound belongs to the part above it.
    hubs : ndarray of int
        Keys of the hubs, ascending. They form one more part.
    """

    bounds: Keys
    hubs: Keys

    @property
    def n_parts(self) -> int:
        """Number of parts, without that of the hubs."""
        return self.bounds.size + 1

    def part_of(self, keys: Keys) -> NDArray[np.intp]:
        """Return the part of each node; that of a hub is `n_parts`."""
        part = np.searchsorted(self.bounds, keys, side="right")
        part[self.is_hub(keys)] = self.n_parts
        return part

    def is_hub(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which nodes are hubs."""
        if not self.hubs.size:
            return np.zeros(keys.shape, dtype=bool)
        place = np.minimum(np.searchsorted(self.hubs, keys), self.hubs.size - 1)
        return np.asarray(self.hubs[place] == keys)

    @classmethod
    def load(cls, folder: Folder) -> Layout:
        """Read the layout of a work folder."""
        bounds, hubs = folder.load("plan/plan", "bounds", "hubs")
        return cls(bounds, hubs)


def choose_layout(ends: Keys, stride: int, n_parts: int, hub_entries: int) -> Layout:
    """Return parts of about the same number of entries, given the sampled ends of edges."""
    keys, counts = np.unique(ends, return_counts=True)
    least = max(hub_entries / stride, LEAST_HUB_SAMPLE if stride > 1 else 1)
    is_hub = counts > least
    ordinary = np.repeat(keys[~is_hub], counts[~is_hub])
    bounds = np.empty(0, dtype=np.int64)
    if ordinary.size:
        cuts = np.arange(1, n_parts) * ordinary.size // n_parts
        bounds = np.unique(ordinary[cuts])
        bounds = bounds[bounds > ordinary[0]]
    return Layout(bounds, keys[is_hub])


def split_edges(
    output: Output, *, piece: Piece, number: int, columns: EdgeColumns
) -> dict[str, Any]:
    """Write the entries of the rows of both ends of each edge, sorted by part.

    The row of a hub gets only its edges to hubs. A self-loop becomes one entry on the diagonal,
    which only shows that the node exists.
    """
    layout = Layout.load(output.folder)
    edges = read_edges(piece, columns)
    # The two entries of an edge are neighbours, so rows see repeated edges in the order of input.
    row = np.column_stack([edges.source, edges.target]).ravel()
    column = np.column_stack([edges.target, edges.source]).ravel()
    part = layout.part_of(row)
    kept = part < layout.n_parts
    kept |= layout.is_hub(column)
    part = part[kept]
    order = np.argsort(part.astype(np.uint16), kind="stable")
    base = f"edges/{number:06d}"
    output.save(base, row=row[kept][order], column=column[kept][order])
    if edges.weight is not None:
        output.save(base, weight=np.repeat(edges.weight, 2)[kept][order])
    limits = np.arange(layout.n_parts + 2)
    result: dict[str, Any] = {"ends": np.searchsorted(part[order], limits).tolist()}
    if edges.names is not None:
        result["name_ends"] = save_names(output, base, edges.names, layout)
    return result


def save_names(output: Output, base: str, names: Names, layout: Layout) -> list[int]:
    """Write names sorted by part; return where the names of each part start."""
    part = layout.part_of(names.keys)
    order = np.argsort(part, kind="stable")
    names = names.take(order)
    output.save(base, name_key=names.keys, name_bytes=names.content, name_end=names.ends)
    ends: list[int] = np.searchsorted(part[order], np.arange(layout.n_parts + 2)).tolist()
    return ends


def load_names(folder: Folder, bases: list[str], ends: list[list[int]], part: int) -> Names:
    """Return each name of a part once, sorted by key."""
    keys = []
    contents = []
    sizes = []
    for base, own in zip(bases, ends, strict=True):
        first, last = own[part : part + 2]
        (key,) = folder.load(base, "name_key", start=first, stop=last)
        (end,) = folder.load(base, "name_end", start=first, stop=last + 1)
        (content,) = folder.load(base, "name_bytes", start=int(end[0]), stop=int(end[-1]))
        keys.append(key)
        contents.append(content)
        sizes.append(np.diff(end))
    ends_of = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Names(np.concatenate(keys), np.concatenate(contents), ends_of).unique()
