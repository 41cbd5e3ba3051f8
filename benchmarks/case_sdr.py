"""The true semidefinite relaxation at scale: low-rank factors against interior point.

    python -m benchmarks.case_sdr [--sizes 24428 1000000]

Two overlapping clouds in five dimensions, 10-NN graph. At 24,428 nodes half of them are labelled,
and the interior point is timed at N = 250, 500, 1000 and extrapolated by its own growth between
the last two; at a million nodes 1 % are labelled. `gap` is between the value of the relaxation and
the lower bound, relative to the value; `peak_mb` is the peak memory of the process so far. CPU time
is printed beside wall time, since the first does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import numpy as np

import gdpa
from gdpa.graph import neighbor_graph

INTERIOR_POINT_SIZES = (250, 500, 1000)


def clouds(n: int, share: float, seed: int = 0) -> tuple[gdpa.GraphProblem, np.ndarray]:
    """Problem and true labels; about 11 % of the points lie on the other side of the middle."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 1.25 * truth
    W = neighbor_graph(X, 10)
    labels = np.where(rng.random(n) < share, truth, 0)
    return gdpa.GraphProblem(W, labels), truth


def timed(call) -> tuple[float, float, object]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return time.perf_counter() - wall, time.process_time() - cpu, value


def interior_point_seconds(n: int, repeats: int = 3) -> tuple[float, float]:
    """CPU seconds of the interior point at n nodes, half labelled, extrapolated, and the growth."""
    medians = []
    for size in INTERIOR_POINT_SIZES:
        problem, _ = clouds(size, 0.5)
        runs = [
            timed(lambda p=problem: gdpa.solve(p, "sdr-interior-point")) for _ in range(repeats)
        ]
        medians.append(statistics.median(cpu for _, cpu, _ in runs))
    ratio = INTERIOR_POINT_SIZES[-1] / INTERIOR_POINT_SIZES[-2]
    growth = float(np.log(medians[-1] / medians[-2]) / np.log(ratio))
    return medians[-1] * (n / INTERIOR_POINT_SIZES[-1]) ** growth, growth


def run(sizes: tuple[int, ...] = (24_428, 1_000_000), tol: float = 1e-2) -> list[dict]:
    rows = []
    for n in sizes:
        share = 0.5 if n < 100_000 else 0.01
        problem, truth = clouds(n, share)
        wall, cpu, solution = timed(lambda p=problem: gdpa.solve(p, "sdr-low-rank", tol=tol))
        row = {
            "nodes": n,
            "labelled": share,
            "wall_s": wall,
            "cpu_s": cpu,
            "products": solution.info["products"],
            "value": solution.info["sdr_value"],
            "bound": solution.lower_bound,
            "gap": solution.info["sdr_gap"],
            "status": solution.bound_status,
            "error": float((solution.labels != truth)[problem.unlabeled].mean()),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if n < 100_000:
            row["interior_point_s"], row["growth"] = interior_point_seconds(n)
            row["ratio"] = row["interior_point_s"] / cpu
        rows.append(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[24_428, 1_000_000])
    parser.add_argument("--tol", type=float, default=1e-2)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        for entry in run((size,), arguments.tol):
            print(
                "  ".join(
                    f"{k} {v:.5g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()
                ),
                flush=True,
            )
