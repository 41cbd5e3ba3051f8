"""Gains of single precision, node order and the package's own product loop, one by one.

    python -m benchmarks.case_products [--nodes 1000000] [--dimensions 8] [--repeats 5]

10-NN graph of 20 Gaussian clusters. Products in units of SciPy's ``W @ x`` in
double precision with the nodes as given; solves of the labelled system (1 % labels kept, self-loop
0.01, tolerance 1e-6) in units of SciPy's own ``cg``, Jacobi-scaled, on the matrix as given and on
one whose nodes were put in order. One thread, CPU time, medians of interleaved repeats. What is not
faster than its neighbour in this list has no place in the package.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from gdpa.graph.adjacency import laplacian_parts
from gdpa.graph.neighbor_graph import neighbor_graphs
from gdpa.linalg import Matrix, solve_spd
from gdpa.policy import Policy
from gdpa.system import arrange
from gdpa.threads import one_thread


def interleaved(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each job."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def permuted(A: sp.csr_array, order: Any) -> sp.csr_array:
    """The matrix with its nodes in another order."""
    rows, place = A[order], np.empty(order.size, dtype=np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return sp.csr_array((rows.data, place[rows.indices], rows.indptr), shape=A.shape)


def show(title: str, seconds: dict[str, float], unit: str) -> None:
    """Print a table of times in units of one of them."""
    print(f"\n{title}")
    for name, value in seconds.items():
        print(f"  {name:58s}{value:9.4f} s{value / seconds[unit]:8.2f}")


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(argv)
    n, policy = options.nodes, Policy(order_rows=1)
    rng = np.random.default_rng(0)
    d = options.dimensions
    centres = 1.5 * rng.standard_normal((20, d))
    X = (centres[rng.integers(0, 20, n)] + rng.standard_normal((n, d))).astype(np.float32)
    graph = neighbor_graphs(X, [10], n_jobs=-1)[0]
    A, diagonal = laplacian_parts(graph.W, "normalized")
    order = arrange(A, policy).order
    given = {"as given": A, "breadth first, lengths together": permuted(A, order)}
    x = rng.standard_normal(n)
    short = x.astype(np.float32)
    jobs: dict[str, Callable[[], Any]] = {}
    for name, matrix in given.items():
        operator = Matrix(matrix, checked=True)
        operator.dot(short, np.float32)
        jobs[f"double precision, {name}"] = lambda o=operator: o.dot(x)
        jobs[f"single precision, {name}"] = lambda o=operator: o.dot(short, np.float32)
    with one_thread():
        show(
            f"Products, {n} nodes", interleaved(jobs, options.repeats), "double precision, as given"
        )
        start = time.process_time()
        arrange(A, policy)
        print(f"  {'(to arrange the matrix once)':58s}{time.process_time() - start:9.4f} s")
        labeled = rng.choice(n, n // 100, replace=False)
        free = np.ones(n, dtype=bool)
        free[labeled] = False
        K = sp.csr_array(sp.diags_array(diagonal + 0.01) - A)[free][:, free]
        b = np.asarray(A[free][:, labeled] @ rng.choice([-1.0, 1.0], labeled.size))
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n)
        place = np.argsort(rank[free])
        scaled = sp.diags_array(1.0 / np.sqrt(K.diagonal()))
        S, s_b = sp.csr_array(scaled @ K @ scaled), scaled @ b
        P, p_b = permuted(S, place), s_b[place]
        solves: dict[str, Callable[[], Any]] = {
            "scipy.sparse.linalg.cg, nodes as given": lambda: cg(S, s_b, rtol=1e-6),
            "scipy.sparse.linalg.cg, nodes in order": lambda: cg(P, p_b, rtol=1e-6),
            "solve_spd, nodes as given": lambda: solve_spd(S, s_b, preconditioner="jacobi"),
            "solve_spd, nodes in order": lambda: solve_spd(P, p_b, preconditioner="jacobi"),
            "solve_spd, nodes in order, double precision": lambda: solve_spd(
                P, p_b, preconditioner="jacobi", policy=Policy(single_rows=2**62)
            ),
        }
        repeats = min(options.repeats, 3)
        show("Solves", interleaved(solves, repeats), "scipy.sparse.linalg.cg, nodes in order")


if __name__ == "__main__":
    main()
