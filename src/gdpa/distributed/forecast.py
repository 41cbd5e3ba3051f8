"""Estimate time, memory and disk space of a spread before it starts.

All edges are read once to count the nodes. Then the same code runs on a connected piece of the
graph around a label, in this process. Its times are scaled to the whole graph:

- reading, sorting and building rows in proportion to the edges,
- a step of the solve in proportion to entries and nodes,
- the number of steps by :func:`scaled_steps`.

These are processor times. The load of the machine tells how long they take (:func:`slowdown`).

The number of steps is the least certain, because it depends on the whole graph.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from ..arrays import NDArray
from ..threads import effective_jobs
from . import coarse
from .cluster import Workers
from .conjugate_gradients import MOST_COLUMNS
from .edges import EdgeColumns, Edges, read_edges
from .ids import Keys, mix
from .inputs import Inputs, open_inputs
from .iteration import MANY_STEPS
from .label_spreading import (
    PIECE_ROWS,
    SpreadOptions,
    SpreadResult,
    default_parts,
    disk_bytes,
    spread,
)
from .rows import ENTRY_BYTES
from .spread_plan import NodeLabels, read_labels

# Edges that are held in memory, at most, to choose the piece from.
MOST_EDGES = 10_000_000
# Nodes of the piece.
PIECE_NODES = 50_000
# Bytes of the table that counts nodes, as a power of two: accurate up to a few hundred million.
TABLE_BITS = 26
# Measured with NumPy 2: bytes of a worker with all modules loaded, and for each entry of a part
# while its rows are built.
WORKER_BYTES = 2.2e8
BUILD_BYTES = 100.0
# A step costs as much for a node as for this number of entries.
NODE_ENTRIES = 6.0
# Processor seconds to start local workers: once, and for each; and of the messages of a step, for
# each worker. Measured on networks of 1e5 and 1e6 edges with one, two and four workers.
START_SECONDS = 0.5
WORKER_SECONDS = 0.4
STEP_SECONDS = 0.01


@dataclass(frozen=True)
class SpreadForecast:
    """Estimated cost of a spread.

    Parameters
    ----------
    nodes, edges : int
        Estimated number of nodes, and number of rows of the edge files.
    parts, workers : int
        Number of parts and of workers.
    steps : int
        Estimated number of steps of the solve; each reads the graph once.
    seconds : dict
        Estimated seconds of each stage.
    worker_bytes : float
        Estimated peak memory of a worker.
    disk_bytes : float
        Estimated size of the work folder at its largest.
    moved_bytes : float
        Estimated bytes that travel between workers in the solve.
    whole : bool
        Whether the piece that was solved is the whole graph.
    """

    nodes: int
    edges: int
    parts: int
    workers: int
    steps: int
    seconds: dict[str, float]
    worker_bytes: float
    disk_bytes: float
    moved_bytes: float
    whole: bool

    @property
    def total_seconds(self) -> float:
        """Estimated seconds of the whole run."""
        return sum(self.seconds.values())


def forecast_spread(
    edges: str | Sequence[str],
    labels: str | Sequence[str],
    *,
    options: SpreadOptions | None = None,
    workers: Workers | None = None,
) -> SpreadForecast:
    """Estimate the cost of :func:`~gdpa.distributed.spread`; nothing is started or kept.

    Parameters
    ----------
    edges, labels : str or sequence of str
        As for :func:`~gdpa.distributed.spread`.
    options : SpreadOptions, optional
        What to compute.
    workers : Workers, optional
        Where to compute it. Of a scheduler only `n_workers` is used.

    Returns
    -------
    SpreadForecast
        The estimate.
    """
    options = options or SpreadOptions()
    workers = workers or Workers()
    started_cpu = time.process_time()
    inputs = open_inputs(edges, piece_rows=PIECE_ROWS)
    columns = EdgeColumns.of(
        inputs, options.source, options.target, options.weight, options.hash_seed
    )
    given = open_inputs(labels)
    known = read_labels(given, columns, options.node, options.label, options.unlabeled)
    open_seconds = time.process_time() - started_cpu
    nodes, kept = read_all(inputs, columns, known.keys)
    read_seconds = time.process_time() - started_cpu - open_seconds
    piece = choose_piece(kept, known)
    started = time.perf_counter()
    started_cpu = time.process_time()
    result = run_piece(piece, options)
    # On a busy machine the stages of the piece took longer than their processor time.
    taken = time.perf_counter() - started
    busy_share = min(1.0, (time.process_time() - started_cpu) / max(taken, 1e-3))
    in_process = workers.scheduler == "synchronous"
    n_workers = workers.n_workers or (1 if in_process else effective_jobs(-1))
    n_parts = options.n_parts or default_parts(2 * inputs.n_rows, n_workers, options.part_entries)
    n_groups = min(n_workers, n_parts)
    whole = piece.weight.size == inputs.n_rows
    steps = result.steps if whole else scaled_steps(result, nodes)

    is_remote = isinstance(workers.scheduler, str) and not in_process
    n_cores = n_groups if is_remote else effective_jobs(-1)
    # Seconds of a processor second that all workers share, and of one that is a single worker's.
    alone = 1.0 if is_remote else slowdown(n_groups, n_cores)
    shared = alone / n_groups
    share = inputs.n_rows / max(piece.weight.size, 1)
    part = {name: seconds * busy_share for name, seconds in result.seconds.items()}
    work = 2 * inputs.n_rows + NODE_ENTRIES * nodes
    piece_work = 2 * result.edges + NODE_ENTRIES * result.nodes
    n_classes = len(known.classes)
    n_batches = -(-n_classes // MOST_COLUMNS)
    solved = sum(s for name, s in part.items() if name.startswith("scores"))
    step = solved / max(result.steps, 1) * n_classes / len(result.classes)
    step *= shared * work / piece_work
    start = open_seconds
    if not in_process:
        step += STEP_SECONDS * n_groups * n_batches * alone
        start += START_SECONDS + WORKER_SECONDS * n_workers
    seconds = {
        "start": start * alone,
        "read edges": shared * (read_seconds + share * part["split edges"]),
        "build rows": shared * share * (part["build rows"] + part["components"]),
        "solve": steps * step,
        "write predictions": shared * nodes / result.nodes * part["write predictions"],
    }
    halo = count_halo(kept, n_groups) * min(inputs.n_rows / max(kept.source.size, 1), 1e3)
    halo = min(halo, nodes * (n_groups - 1.0))
    n_columns = min(n_classes, MOST_COLUMNS)
    return SpreadForecast(
        nodes=nodes,
        edges=inputs.n_rows,
        parts=n_parts,
        workers=n_workers,
        steps=steps,
        seconds=seconds,
        worker_bytes=worker_bytes(
            n_entries=2 * inputs.n_rows,
            n_nodes=nodes,
            n_halo=halo / n_groups,
            n_parts=n_parts,
            n_groups=n_groups,
            n_columns=n_columns,
        ),
        disk_bytes=disk_bytes(inputs.n_rows, columns.weight is not None, columns.text),
        moved_bytes=8.0 * n_classes * steps * halo,
        whole=whole,
    )


def slowdown(n_processes: int, n_cores: int) -> float:
    """Return the seconds that a processor second takes if so many more processes start now."""
    load = 0.0
    if hasattr(os, "getloadavg"):
        load = max(os.getloadavg()[0] - 1.0, 0.0)  # without this process
    return max(1.0, (load + n_processes) / n_cores)


def read_all(inputs: Inputs, columns: EdgeColumns, labeled: Keys) -> tuple[int, Edges]:
    """Return the estimated number of nodes, and the first edges.

    Nodes set marks in a table of bytes, addressed by a hash; the count is corrected for nodes that
    share a byte (linear counting, Whang, Vander-Zanden and Taylor 1990).
    """
    shift = np.uint64(64 - TABLE_BITS)
    table = np.zeros(2**TABLE_BITS, dtype=bool)
    table[mix(labeled.view(np.uint64)) >> shift] = True
    kept: list[Edges] = []
    held = 0
    for piece in inputs.pieces:
        found = read_edges(piece, columns)
        for keys in (found.source, found.target):
            table[mix(np.ascontiguousarray(keys).view(np.uint64)) >> shift] = True
        if held < MOST_EDGES:
            kept.append(replace(found, names=None))
            held += found.source.size
    free = max(1.0 - np.count_nonzero(table) / table.size, 1.0 / table.size)
    nodes = round(-table.size * np.log(free))
    weights = [each.weight for each in kept if each.weight is not None]
    return nodes, Edges(
        np.concatenate([each.source for each in kept]),
        np.concatenate([each.target for each in kept]),
        np.concatenate(weights) if weights else None,
        None,
    )


@dataclass(frozen=True)
class GraphPiece:
    """Edges between some nodes, numbered from 0, and the labels of some of them."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[Any]
    labeled: NDArray[np.intp]
    codes: NDArray[np.int32]


def choose_piece(edges: Edges, labels: NodeLabels) -> GraphPiece:
    """Return the edges between the nodes closest to one of the labels."""
    keys, place = np.unique(np.concatenate([edges.source, edges.target]), return_inverse=True)
    source = place[: edges.source.size]
    target = place[edges.source.size :]
    weight = np.ones(source.size) if edges.weight is None else edges.weight
    position = np.minimum(np.searchsorted(keys, labels.keys), keys.size - 1)
    present = np.flatnonzero(keys[position] == labels.keys)
    chosen = np.ones(keys.size, dtype=bool)
    if keys.size > PIECE_NODES:
        W = sp.csr_array((weight > 0, (source, target)), shape=(keys.size, keys.size))
        counts = np.bincount(np.concatenate([source, target]), minlength=keys.size)
        starts = position[present] if present.size else np.array([int(counts.argmax())])
        # The label with the median degree: neither a hub nor a leaf.
        start = starts[np.argsort(counts[starts], kind="stable")[starts.size // 2]]
        near = breadth_first_order(W, start, directed=False, return_predecessors=False)
        chosen = np.zeros(keys.size, dtype=bool)
        chosen[near[:PIECE_NODES]] = True
    number = np.cumsum(chosen) - 1
    inside = chosen[source] & chosen[target]
    mine = present[chosen[position[present]]]
    labeled = number[position[mine]]
    codes = labels.codes[mine]
    if np.unique(codes).size < 2:  # the number of steps does not depend on the classes
        count = max(2, labeled.size)
        labeled = np.unique(np.append(labeled, [0, int(number[-1])]))[:count]
        codes = np.arange(labeled.size, dtype=np.int32) % 2
    return GraphPiece(
        number[source[inside]].astype(np.int32),
        number[target[inside]].astype(np.int32),
        weight[inside],
        labeled,
        codes,
    )


def run_piece(piece: GraphPiece, options: SpreadOptions) -> SpreadResult:
    """Spread the labels of a piece in this process."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="gdpa-plan-") as name:
        folder = Path(name)
        table = {"source": piece.source, "target": piece.target, "weight": piece.weight}
        pq.write_table(pa.table(table), folder / "edges.parquet")
        labels = {"node": piece.labeled, "label": piece.codes}
        pq.write_table(pa.table(labels), folder / "labels.parquet")
        return spread(
            os.fspath(folder / "edges.parquet"),
            os.fspath(folder / "labels.parquet"),
            out=folder / "out",
            options=SpreadOptions(
                method=options.method,
                label_weight=options.label_weight,
                self_loop=options.self_loop,
                laplacian=options.laplacian,
                tol=options.tol,
            ),
            workers=Workers(scheduler="synchronous"),
        )


def scaled_steps(result: SpreadResult, nodes: int) -> int:
    """Return the number of steps on a graph with more nodes than the piece that was solved.

    Few steps mean that all nodes are close to each other; then distances, and with them the number
    of steps, grow like the logarithm of the number of nodes. Many steps mean that the coarse level
    is in use; then they grow with the size of its patches, like the root of their diameter.
    """
    if result.steps < MANY_STEPS:
        ratio = np.log(nodes) / np.log(max(result.nodes, 3))
    else:
        before, after = (
            n / max(sum(coarse.patch_counts([n])), 1) for n in (max(result.nodes, 1), nodes)
        )
        ratio = (after / before) ** 0.25
    return round(result.steps * max(float(ratio), 1.0))


def count_halo(edges: Edges, n_groups: int) -> int:
    """Return how many values travel in a step, if nodes are divided by their keys."""
    ends = np.concatenate([edges.source, edges.target])
    places = np.arange(1, n_groups) * ends.size // n_groups
    bounds = np.sort(np.partition(ends, places)[places]) if n_groups > 1 else ends[:0]
    group = np.searchsorted(bounds, ends, side="right")
    other = np.concatenate([group[edges.source.size :], group[: edges.source.size]])
    count = 0
    for number in range(n_groups):
        count += np.unique(ends[(other == number) & (group != number)]).size
    return count


def worker_bytes(
    *,
    n_entries: int,
    n_nodes: int,
    n_halo: float,
    n_parts: int,
    n_groups: int,
    n_columns: int,
) -> float:
    """Return the estimated peak memory of a worker: building a part, or solving.

    Parameters
    ----------
    n_entries, n_nodes : int
        Entries and nodes of the graph.
    n_halo : float
        Nodes of other workers whose values a worker receives.
    n_parts, n_groups : int
        Number of parts, and of workers that have some.
    n_columns : int
        Classes that are solved for together.
    """
    build = BUILD_BYTES * n_entries / n_parts
    # Scores, residual, direction, product, correction, and two temporary arrays of the same size;
    # then keys, degrees, the diagonal and its inverse, scale, tags and patches.
    state = n_nodes / n_groups * (7 * 8 * n_columns + 64)
    halo = n_halo * (16 * n_columns + 16)
    return WORKER_BYTES + max(build, ENTRY_BYTES * n_entries / n_groups + state + halo)
