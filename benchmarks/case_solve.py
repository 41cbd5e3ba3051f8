"""The linear solve in units of one sparse product with the graph, and how it grows.

    python -m benchmarks.case_solve [--sizes 10000 100000] [--million] [--repeats 3]

20 Gaussian clusters in 8 dimensions, 10-NN graph, 1 % labels clamped, tolerance 1e-4. The unit is
the time of ``W @ x`` by SciPy in double precision, nodes in the order given. `units` is the whole
of the labelled system (building the system, preconditioner, iteration); `spd_units` is `solve_spd`
alone on the matrix as stored. Both are measured one after the other with the unit, in CPU time and
with BLAS in one thread. The exponent is that of the time in the number of edges, by least squares.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from gdpa.datasets import gaussian_clusters
from gdpa.graph import neighbor_graph
from gdpa.linalg import solve_spd
from gdpa.system import LabeledSystem

from .case_eigenvector import one_thread

SYSTEMS = (("normalised, gamma 0", True, 0.0), ("normalised, gamma 0.01", True, 0.01))
SYSTEMS += (("combinatorial, gamma 0", False, 0.0),)


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and its value."""
    start = time.process_time()
    value = call()
    return time.process_time() - start, value


def product_seconds(W: sp.csr_array, x: np.ndarray, repeats: int = 5) -> float:
    """Median CPU seconds of ``W @ x``; several in a row where one is too short to be timed."""
    count = max(1, 1_000_000 // W.shape[0])
    times = [cpu(lambda: [W @ x for _ in range(count)])[0] / count for _ in range(repeats)]
    return statistics.median(times)


def run(
    sizes: tuple[int, ...] = (10_000, 100_000), repeats: int = 3, tol: float = 1e-4
) -> list[dict[str, Any]]:
    """Measure all systems at all sizes; the last row of a system has the exponents."""
    rows: list[dict[str, Any]] = []
    with one_thread():
        for n in sizes:
            X, y = gaussian_clusters(n, n_features=8, n_clusters=20, random_state=0)
            W = sp.csr_array(neighbor_graph(X, n_neighbors=10))
            rows += _measure(W, np.where(y > 0, 1.0, -1.0), repeats, tol)
    for name, _, _ in SYSTEMS:
        mine = [row for row in rows if row["system"] == name]
        if len(mine) > 1:
            edges = np.log([row["nonzeros"] for row in mine])
            for key in ("solve", "product"):
                seconds = np.log([row[f"{key}_cpu_s"] for row in mine])
                mine[-1][f"{key}_exponent"] = float(np.polyfit(edges, seconds, 1)[0])
    return rows


def _measure(W: sp.csr_array, truth: np.ndarray, repeats: int, tol: float) -> list[dict[str, Any]]:
    n = W.shape[0]
    rng = np.random.default_rng(0)
    labeled = np.sort(rng.choice(n, n // 100, replace=False))
    x = rng.standard_normal(n)
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = sp.diags_array(1 / np.sqrt(degree))
    normalized = sp.csr_array(root @ W @ root)
    rows = []
    for name, normal, gamma in SYSTEMS:
        A, diagonal = (normalized, np.ones(n)) if normal else (W, degree)
        system = LabeledSystem(A, diagonal, labeled, truth[labeled], self_loop=gamma)
        K, rhs = system.matrix(), system.rhs[system.unknown]
        units, stored, unit, seconds = [], [], [], []
        for _ in range(repeats):
            unit.append(product_seconds(W, x))
            spent, whole = cpu(lambda s=system: replace(s).solve(tol=tol))
            alone, result = cpu(lambda K=K, rhs=rhs: solve_spd(K, rhs, tol=tol, n_jobs=1))
            seconds.append(spent)
            units.append(spent / unit[-1])
            stored.append(alone / unit[-1])
        rows.append(
            {
                "system": name,
                "nodes": n,
                "nonzeros": int(W.nnz),
                "product_cpu_s": statistics.median(unit),
                "solve_cpu_s": statistics.median(seconds),
                "units": statistics.median(units),
                "spd_units": statistics.median(stored),
                "iterations": whole.iterations,
                "spd_iterations": result.iterations,
                "residual": whole.residual,
                "converged": whole.converged and result.converged,
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    sizes = (*arguments.sizes, *((1_000_000,) if arguments.million else ()))
    for row in run(sizes, arguments.repeats):
        cells = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
        print("  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
