"""First eigenvector, N = 20,000 by default: this package beside unpreconditioned SciPy LOBPCG.

Both stop at the same residual and use one thread. Time is the median of interleaved repeats, CPU
time (which other work on the machine disturbs less) and wall time. Warm start: the diagonal changes
a little, and the last eigenvector is the start. Run with ``python -m benchmarks.case_eigenvector
[--nodes 20000]``. Below 2,000 nodes "auto" is a Chebyshev polynomial, then a coarse system.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lobpcg
from scipy.spatial import cKDTree

from gdpa.linalg import first_eigenvector

CASES = (
    # name, dimensions of the uniform points (0: 20 Gaussian clusters in 8), bandwidth, matrix
    ("plane, self-tuned, L + diag(y)", 2, None, "combinatorial"),
    ("plane, fixed bandwidth, L + diag(y)", 2, 1.0, "combinatorial"),
    ("plane, self-tuned, normalised L + diag(y)", 2, None, "normalized"),
    ("clusters, self-tuned, L + diag(y)", 0, None, "combinatorial"),
    ("clusters, fixed bandwidth, L + diag(y)", 0, 1.0, "combinatorial"),
    ("clusters, self-tuned, H_bar, 1 % labels", 0, None, "split"),
    ("clusters, self-tuned, H_bar, 50 % labels", 0, None, "split-half"),
    ("plane, self-tuned, H_bar, 50 % labels", 2, None, "split-half"),
)


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """BLAS in one thread, for both sides."""
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def neighbour_graph(n: int, dimension: int, bandwidth: float | None, seed: int = 0) -> sp.csr_array:
    """10-nearest-neighbour graph; `bandwidth` in units of the mean distance to the 7th."""
    rng = np.random.default_rng(seed)
    if dimension:
        X = rng.random((n, dimension))
    else:
        centres = 1.6 * rng.standard_normal((20, 8))
        X = centres[rng.integers(0, 20, n)] + rng.standard_normal((n, 8))
    distance, index = cKDTree(X).query(X, 11, workers=-1)
    sigma = distance[:, 7]
    near, index = distance[:, 1:], index[:, 1:]
    if bandwidth is None:
        weight = np.exp(-(near**2) / (sigma[:, None] * sigma[index]))
    else:
        weight = np.exp(-(near**2) / (bandwidth * sigma.mean()) ** 2)
        weight = np.maximum(weight, 1e-8)
    W = sp.csr_array((weight.ravel(), (np.repeat(np.arange(n), 10), index.ravel())), shape=(n, n))
    return sp.csr_array(W.maximum(W.T))


def matrix(W: sp.csr_array, kind: str, seed: int = 0) -> sp.csr_array:
    """Generalised Laplacian with some self-loops, or the split matrix of the dual."""
    n = W.shape[0]
    rng = np.random.default_rng(seed)
    degree = np.asarray(W.sum(axis=1))
    count = n // 2 if kind == "split-half" else n // 100
    labeled = rng.choice(n, count, replace=False)
    a = np.zeros(n)
    a[labeled] = rng.uniform(0.5, 1.5, count)
    if kind == "normalized":
        s = sp.diags_array(1 / np.sqrt(degree))
        return sp.csr_array(sp.eye_array(n) + sp.diags_array(a) - s @ W @ s)
    top = sp.csr_array(sp.diags_array(degree + a) - W)
    if kind == "combinatorial":
        return top
    positive = np.where(np.arange(n) < n // 2, a, 0.0)
    g = sp.csr_array(np.column_stack([-positive, a - positive]))
    # A little more than the sums on the last two diagonals, so that the vector is not known.
    corner = sp.diags_array([1.1 * positive.sum(), 1.05 * (a - positive).sum()])
    return sp.csr_array(sp.block_array([[top, g], [g.T, corner]]))


def run(
    n: int = 20_000,
    tol: float = 1e-6,
    repeats: int = 3,
    max_iter: int = 1000,
    cases: tuple[tuple[str, int, float | None, str], ...] = CASES,
) -> list[dict[str, Any]]:
    """Measure all cases.

    `tol` is relative to the typical size of the matrix, its median diagonal: one residual for both.
    """
    rows = []
    for name, dimension, bandwidth, kind in cases:
        A = matrix(neighbour_graph(n, dimension, bandwidth), kind)
        norm = float(np.asarray(abs(A).sum(axis=1)).max())
        target = tol * float(np.median(A.diagonal()))
        start = np.random.default_rng(0).standard_normal((A.shape[0], 1))
        change = sp.diags_array(1e-4 * np.random.default_rng(1).standard_normal(A.shape[0]))
        B = sp.csr_array(A + change)
        options: dict[str, Any] = {"tol": target / norm, "max_iter": max_iter, "n_jobs": 1}
        wall: dict[str, list[float]] = {}
        cpu: dict[str, list[float]] = {}

        def timed(
            key: str,
            call: Callable[[], Any],
            wall: dict[str, list[float]] = wall,
            cpu: dict[str, list[float]] = cpu,
        ) -> Any:
            tick, process = time.perf_counter(), time.process_time()
            value = call()
            cpu.setdefault(key, []).append(time.process_time() - process)
            wall.setdefault(key, []).append(time.perf_counter() - tick)
            return value

        results: dict[str, Any] = {}
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for repeat in range(repeats):
                if repeat == 0 or wall["scipy"][0] < 20:
                    value, vector, history = timed(
                        "scipy",
                        lambda A=A, start=start, target=target: lobpcg(
                            A,
                            start,
                            largest=False,
                            tol=target,
                            maxiter=max_iter,
                            retResidualNormsHistory=True,
                        ),
                    )
                for mode in ("jacobi", "auto"):
                    results[mode] = timed(
                        mode,
                        lambda A=A, mode=mode, o=options: first_eigenvector(
                            A, preconditioner=mode, **o
                        ),
                    )
                results["warm"] = timed(
                    "warm",
                    lambda B=B, v=results["auto"].vector, o=options: first_eigenvector(
                        B, v0=v, **o
                    ),
                )
            cold = first_eigenvector(B, **options)
        median = {key: statistics.median(times) for key, times in wall.items()}
        spent = {key: statistics.median(times) for key, times in cpu.items()}
        v = vector[:, 0]
        rows.append(
            {
                "case": name,
                "scipy_seconds": median["scipy"],
                "scipy_iterations": len(history),
                "scipy_residual": float(np.linalg.norm(A @ v - value[0] * v)),
                "target": target,
                "jacobi_seconds": median["jacobi"],
                "jacobi_iterations": results["jacobi"].iterations,
                "auto_seconds": median["auto"],
                "auto_iterations": results["auto"].iterations,
                "auto_residual": results["auto"].residual,
                "value_difference": results["auto"].value - float(value[0]),
                "method": results["auto"].method,
                "auto_products": results["auto"].matvecs,
                "scipy_cpu_s": spent["scipy"],
                "auto_cpu_s": spent["auto"],
                "ratio": median["scipy"] / median["auto"],
                "cpu_ratio": spent["scipy"] / spent["auto"],
                "warm_iterations": results["warm"].iterations,
                "cold_iterations": cold.iterations,
                "warm_seconds": median["warm"],
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=20_000)
    n = parser.parse_args().nodes
    print(
        f"{'case':44} {'scipy':>12} {'jacobi':>12} {'auto':>12} {'ratio':>6} {'CPU':>6}"
        f" {'warm/cold':>10}"
    )
    for case in CASES:
        row = run(n, cases=(case,))[0]
        cells = [
            f"{row[f'{key}_iterations']:>5d} {row[f'{key}_seconds']:6.3f}s"
            for key in ("scipy", "jacobi", "auto")
        ]
        missed = "" if row["scipy_residual"] <= 1.1 * row["target"] else " (SciPy missed)"
        print(
            f"{row['case']:44} {cells[0]:>12} {cells[1]:>12} {cells[2]:>12} {row['ratio']:6.1f} "
            f"{row['cpu_ratio']:6.1f} "
            f"{row['warm_iterations']:>4d}/{row['cold_iterations']:<5d} {row['method']} "
            f"{row['value_difference']:+.1e}{missed}",
            flush=True,
        )


if __name__ == "__main__":
    main()
