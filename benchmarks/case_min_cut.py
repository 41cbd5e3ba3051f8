"""The exact minimum cut on large graphs: time, memory, certified gap and classification error.

    python -m benchmarks.case_min_cut [--sizes 100000 1000000]

The same clouds as in case_sdr, 1 % labelled. `flow_s` is the part spent in SciPy's maximum flow.
"""

from __future__ import annotations

import argparse
import resource

import gdpa

from .case_sdr import clouds, timed


def run(sizes: tuple[int, ...] = (100_000, 1_000_000)) -> list[dict]:
    rows = []
    for n in sizes:
        problem, truth = clouds(n, 0.01)
        wall, cpu, solution = timed(lambda p=problem: gdpa.solve(p, "min-cut"))
        rows.append(
            {
                "nodes": n,
                "nonzeros": int(problem.W.nnz),
                "wall_s": wall,
                "cpu_s": cpu,
                "flow_s": solution.seconds["flow"],
                "passes": solution.iterations,
                "objective": solution.objective,
                "certified_gap": solution.gap,
                "error": float((solution.labels != truth)[problem.unlabeled].mean()),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    for size in parser.parse_args().sizes:
        for entry in run((size,)):
            print(
                "  ".join(
                    f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()
                ),
                flush=True,
            )
