"""One LP of the GDPA loop: closed form against HiGHS, and the closed form at a million nodes.

    python -m benchmarks.case_lp

The graph is a 10-NN graph of random points in three dimensions (about 10 million non-zeros at a
million nodes), one node in a hundred labelled; v is a random positive vector.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import numpy as np

import gdpa
from gdpa.graph import neighbor_graph
from gdpa.solvers.gdpa_lp import closed_form, highs


def make_problem(n: int, seed: int = 0) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    W = neighbor_graph(rng.random((n, 3)), n_neighbors=9 if n >= 10**6 else 10)
    labels = np.zeros(n, dtype=np.int8)
    where = rng.permutation(n)[: max(2, n // 100)]
    labels[where] = rng.choice([-1, 1], where.size)
    labels[where[:2]] = 1, -1
    return gdpa.GraphProblem(W, labels)


def timed(call) -> tuple[float, object]:
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def run(sizes: tuple[int, ...] = (24_428, 1_000_000), repeats: int = 3) -> list[dict]:
    rows = []
    for n in sizes:
        problem = make_problem(n)
        v = np.exp(0.1 * np.random.default_rng(1).normal(size=n + 2))
        ours, theirs = [], []
        for _ in range(repeats):  # interleaved
            seconds, point = timed(lambda p=problem, v=v: closed_form(p, v))
            ours.append(seconds)
            if n <= 50_000:
                seconds, vertex = timed(lambda p=problem, v=v: highs(p, v))
                theirs.append(seconds)
                assert abs(vertex.objective - point.objective) <= 1e-8 * np.abs(point.y).sum()
        whole, solution = timed(lambda p=problem: gdpa.solve(p, self_loop=0.01))
        rows.append(
            {
                "nodes": n,
                "nonzeros": int(problem.W.nnz),
                "closed_form_s": statistics.median(ours),
                "highs_s": statistics.median(theirs) if theirs else None,
                "ratio": statistics.median(theirs) / statistics.median(ours) if theirs else None,
                "iteration_s": solution.seconds["eigenvector"] + solution.seconds["lp"],
                "solve_s": whole,
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            }
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[24_428, 1_000_000])
    for row in run(tuple(parser.parse_args().sizes)):
        print({k: round(x, 4) if isinstance(x, float) else x for k, x in row.items()})
