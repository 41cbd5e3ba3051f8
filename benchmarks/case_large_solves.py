"""The exact cut and the semidefinite relaxation on large graphs: time, memory and proved gap.

Two overlapping clouds in five dimensions, 10-NN graph, 1 % of the nodes labelled. For `min-cut` the
gap is that between its labelling and the certified bound; for `sdr-low-rank` it is that between the
value of the relaxation and its bound, relative to the value.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gdpa
from gdpa.graph import neighbor_graph

from .worker import peak_mb


def clouds(n: int, share: float = 0.01, seed: int = 0) -> tuple[gdpa.GraphProblem, Any]:
    """Problem and true labels; about 11 % of the points lie on the other side of the middle."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 1.25 * truth
    W = neighbor_graph(X, 10)
    return gdpa.GraphProblem(W, np.where(rng.random(n) < share, truth, 0)), truth


def run(sizes: tuple[int, ...] = (100_000, 1_000_000)) -> list[dict[str, Any]]:
    """Solve both problems at each size."""
    rows = []
    for n in sizes:
        problem, truth = clouds(n)
        for method, options in (("sdr-low-rank", {"tol": 1e-2}), ("min-cut", {})):
            start, cpu = time.perf_counter(), time.process_time()
            solution = gdpa.solve(problem, method, **options)
            wrong = (solution.labels != truth)[problem.unlabeled]
            rows.append(
                {
                    "nodes": n,
                    "method": method,
                    "seconds": time.perf_counter() - start,
                    "cpu_s": time.process_time() - cpu,
                    "gap": solution.info.get("sdr_gap", solution.gap),
                    "bound_status": solution.bound_status,
                    "error_percent": 100.0 * float(wrong.mean()),
                    "peak_mb": peak_mb(),
                }
            )
    return rows
