"""Labels spread over generated networks, by parts and by other packages.

Two kinds of networks. *Power law*: both ends of an edge are drawn with probability proportional to
``rank^-0.6``; four of five edges stay within one of two communities; ten edges per node. *Planar*:
a square grid. Weights are uniform between 0.5 and 1.5, and 1,000 nodes are labelled. Memory is the
peak of one worker. Bytes are those of values that travel between workers in the solve.

Other packages get the graph as a SciPy matrix in memory; reading the edges is not counted.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import peak_mb

NEEDS = ("distributed", "pyarrow", "psutil")
LABELS = 1_000
EDGES_PER_FILE = 5_000_000


def edge_blocks(kind: str, n_edges: int, seed: int = 0) -> Any:
    """Yield sources, targets and weights, a few million at a time."""
    rng = np.random.default_rng(seed)
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
    """Spread labels by a local cluster; `place` is a folder to keep the network in."""
    from distributed import default_client
    from gdpa.distributed import Workers, spread

    folder = Path(tempfile.mkdtemp(prefix="gdpa-spread-"))
    network = Path(place) / f"{kind.replace(' ', '-')}-{n_edges}" if place else folder / "in"
    peaks: list[float] = []

    def watch(event: Any) -> None:
        if event.stage == "write predictions" and event.done == event.total:
            peaks.extend(default_client().run(peak_mb).values())
        print(event.stage, event.done, event.total, round(event.seconds, 1), file=sys.stderr)

    try:
        write_network(network, kind, n_edges)
        start = time.perf_counter()
        result = spread(
            str(network / "edges"),
            str(network / "labels.parquet"),
            out=folder / "out",
            workers=Workers(n_workers=workers, memory_limit=memory_limit),
            callback=watch,
        )
        seconds = time.perf_counter() - start
        solve = result.seconds["scores"]
        return {
            "edges": result.edges,
            "nodes": result.nodes,
            "seconds": seconds,
            "read_s": result.seconds["sample edges"] + result.seconds["split edges"],
            "rows_s": result.seconds["build rows"],
            "solve_s": solve,
            "step_s": solve / max(result.steps, 1),
            "passes": result.steps,
            "moved_gb": result.bytes_moved / 1e9,
            "worker_peak_gb": max(peaks) / 1e3,
            "parts": result.parts,
            "residual": result.residual,
            "load": os.getloadavg()[1],
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


def one_machine(kind: str, n_edges: int) -> dict[str, Any]:
    """Solve the same system with the ordinary solver."""
    from gdpa.graph.adjacency import laplacian_parts
    from gdpa.system import LabeledSystem

    W = matrix_of(kind, n_edges)
    _, nodes, codes = labels_of(kind, n_edges)
    start = time.perf_counter()
    adjacency, diagonal = laplacian_parts(W, "combinatorial")
    system = LabeledSystem(adjacency, diagonal, nodes, np.eye(2)[codes], n_jobs=2)
    result = system.solve(tol=1e-10)
    return {
        "seconds": time.perf_counter() - start,
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
    start = time.perf_counter()
    DiffusionClassifier().fit_predict(matrix, labels)
    diffusion = time.perf_counter() - start
    start = time.perf_counter()
    Propagation().fit_predict(matrix, labels)
    return {
        "seconds": diffusion,
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
    start = time.perf_counter()
    harmonic_function(graph)
    return {
        "seconds": time.perf_counter() - start,
        "passes": 30,
        "worker_peak_gb": peak_mb() / 1e3,
        "load": os.getloadavg()[1],
    }


KINDS = ("power law", "planar")


def plan(quick: bool, sizes: tuple[int, ...] = (1_000_000, 10_000_000)) -> list[Measurement]:
    """Every kind and size: parts with one, two and four workers, and other packages."""
    name = "benchmarks.case_spread"
    found = []
    for n_edges in (20_000,) if quick else sizes:
        for kind in KINDS:
            about = {"kind": kind, "n_edges": n_edges}
            label = f"{kind}, {n_edges:.0e} edges"
            for workers in (1, 2, 4):
                found.append(
                    Measurement(
                        f"{label}, {workers} workers", f"{name}:spread_parts",
                        about | {"workers": workers}, 1, 3600.0, NEEDS,
                    )
                )  # fmt: skip
            for other, function, needs in (
                ("ordinary solver", "one_machine", ()),
                ("scikit-network", "with_scikit_network", ("sknetwork",)),
                ("NetworkX", "with_networkx", ("networkx",)),
            ):
                found.append(
                    Measurement(f"{label}, {other}", f"{name}:{function}", about, 1, 3600.0, needs)
                )
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
    "edges", "nodes", "seconds", "read_s", "rows_s", "solve_s", "step_s", "passes", "moved_gb",
    "worker_peak_gb", "parts", "residual", "load",
)  # fmt: skip
CASES = (
    Case("spread", "Labels on generated networks", plan, columns=COLUMNS, default=False),
    Case(
        "spread-hundred-million",
        "Labels on networks of 100,000,000 edges",
        plan_hundred_million,
        claims_hundred_million,
        COLUMNS,
        default=False,
    ),
)
