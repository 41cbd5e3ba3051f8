"""Time of the solve in sparse products, and growth of graph, solve and memory with size.

The product is SciPy's own, ``W @ x``, on one thread. The solve is the whole stage on a graph that
is there: from labels to scores at tolerance 1e-4, one right-hand side, 1 % labels, at the self-loop
that the classifier takes there (0.01) and without one (harmonic). Points as in the case "million".
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from .classification import clusters
from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import forget_peak, peak_mb, resident_mb

TOL = 1e-4


def stages(n: int, repeats: int = 5, share: float = 0.01) -> dict[str, Any]:
    """Graph, product and solve for n points, one after the other, each with its own memory."""
    from gdpa.graph.adjacency import laplacian_parts
    from gdpa.graph.neighbor_graph import neighbor_graphs
    from gdpa.system import LabeledSystem

    X, _, codes = clusters(n, 8, share)
    labeled = np.flatnonzero(codes >= 0)
    signs = np.where(codes[labeled] > 0, 1.0, -1.0)
    neighbor_graphs(clusters(200, 8, share)[0], [10], n_jobs=2)  # imports are not timed
    before = resident_mb()
    forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    built = neighbor_graphs(X, [10], n_jobs=2)[0]
    graph_s, graph_cpu = time.perf_counter() - start, time.process_time() - cpu
    graph_peak = peak_mb() - before
    W = built.W
    search, recall = built.algorithm, built.recall
    del built
    adjacency, diagonal = laplacian_parts(W, "normalized")
    graph_mb = (W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / 1e6
    x = np.random.default_rng(0).normal(size=n)
    times: dict[str, list[float]] = {"product": [], "solve": [], "harmonic": []}
    iterations = {}
    before = resident_mb()
    forget_peak()
    for _ in range(repeats):  # interleaved
        inner = max(1, 2_000_000 // W.nnz)
        start = time.perf_counter()
        for _ in range(inner):
            W @ x
        times["product"].append((time.perf_counter() - start) / inner)
        for name, loop in (("solve", 0.01), ("harmonic", 0.0)):
            start = time.perf_counter()
            system = LabeledSystem(adjacency, diagonal, labeled, signs, self_loop=loop)
            found = system.solve(tol=TOL)
            times[name].append(time.perf_counter() - start)
            iterations[name] = found.iterations
            assert found.converged
    product, solve, harmonic = (statistics.median(times[k]) for k in times)
    return {
        "nodes": n,
        "edges": int(W.nnz) // 2,
        "graph_s": graph_s,
        "graph_cpu_s": graph_cpu,
        "product_s": product,
        "solve_s": solve,
        "products_per_solve": solve / product,
        "iterations": iterations["solve"],
        "harmonic_s": harmonic,
        "products_per_harmonic": harmonic / product,
        "harmonic_iterations": iterations["harmonic"],
        "graph_mb": graph_mb,
        "graph_peak_mb": graph_peak,
        "graph_peak_ratio": graph_peak / graph_mb,
        "graph_peak_bytes": 1e6 * graph_peak / n,
        "solve_peak_mb": peak_mb() - before,
        "search": search,
        "recall": recall,
    }


def _plan(sizes: tuple[int, ...]) -> list[Measurement]:
    return [
        Measurement(
            label=f"n = {n:,}",
            function="benchmarks.case_growth:stages",
            arguments={"n": n},
            repeats=1 if n > 100_000 else None,
            limit=300.0,
            needs=("psutil",),
        )
        for n in sizes
    ]


def exponent(medians: Medians, key: str, *, against: str, least: int = 0) -> float | None:
    """Slope of log `key` over log `against`, by least squares over the sizes from `least` on."""
    rows = [r for r in medians.values() if r.get("status") == "ok" and r["nodes"] >= least]
    if len(rows) < 2:
        return None
    x = np.log([float(r[against]) for r in rows])
    y = np.log([max(float(r[key]), 1e-12) for r in rows])
    return float(np.polyfit(x, y, 1)[0])


def claims_growth(medians: Medians) -> list[Claim]:
    """Exponents from a thousand to a million points."""
    found = []
    for text, key, against, bound in (
        ("graph, in points", "graph_s", "nodes", 1.5),
        ("solve, in edges, from 10,000 points on", "solve_s", "edges", 1.15),
        ("memory of the graph, in points", "graph_mb", "nodes", 1.05),
        ("peak memory of building it, in points, from 10,000 on", "graph_peak_mb", "nodes", 1.15),
    ):
        least = 10_000 if "10,000" in text else 0
        slope = exponent(medians, key, against=against, least=least)
        found.append(Claim(f"growth exponent: {text}", slope, bound, at_least=False))
    return found


def plan_ten(quick: bool) -> list[Measurement]:
    """One million, and ten times as many, once each."""
    sizes = (6_000, 60_000) if quick else (1_000_000, 10_000_000)
    function, needs = "benchmarks.case_growth:stages", ("psutil",)
    return [
        Measurement(f"n = {n:,}", function, {"n": n, "repeats": 1}, 1, 3600.0, needs) for n in sizes
    ]


def claims_ten(medians: Medians) -> list[Claim]:
    """Memory of a point."""
    memory = value_of(medians, list(medians)[-1], "graph_peak_bytes")
    return [Claim("peak memory of building the graph, bytes a point", memory, 500.0, False)]


CASES = (
    Case(
        "growth-ten-million",
        "Graph and solve, from one million points to ten",
        plan_ten,
        claims_ten,
        (
            "edges",
            "graph_s",
            "graph_cpu_s",
            "solve_s",
            "graph_mb",
            "graph_peak_mb",
            "graph_peak_bytes",
            "solve_peak_mb",
            "recall",
        ),
        default=False,
    ),
    Case(
        "growth",
        "Growth of graph, solve and memory",
        lambda quick: _plan(
            (1_000, 10_000, 30_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
        ),
        claims_growth,
        (
            "edges",
            "search",
            "recall",
            "graph_s",
            "product_s",
            "solve_s",
            "products_per_solve",
            "iterations",
            "graph_mb",
            "graph_peak_mb",
            "solve_peak_mb",
        ),
    ),
)
