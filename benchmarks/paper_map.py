"""Where the first eigenvector of H classifies: label share x overlap of the classes x graph.

    python -m benchmarks.paper_map            # two Gaussian clouds of 600 points
    python -m benchmarks.paper_map --sets     # and the paper's sets and cod-rna, 10 neighbours

Each cell has the error of the first eigenvector of H, of complementary slackness at the same dual
point, of the recovery that the theorem chooses, and of the harmonic function, with
rho = lambda / mu, the number on which the theorem (docs/theory.md, fact 7) depends. No error is
measured on a label that a method has seen.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from gdpa import GraphProblem
from gdpa.graph import neighbor_graph
from gdpa.solvers.registry import solve

from .machine import describe
from .paper_data import GRAPHS, clouds, write

STORE = Path(__file__).parent / "paper_map.json"
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
DISTANCES = (0.5, 1.0, 1.5, 2.0, 3.0)
POINTS = 600
DRAWS = 3
HEAVY: dict[str, Any] = {"start": "optimal", "label_weight": "auto"}
RECOVERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "eigenvector": ("gdpa", HEAVY),
    "slackness": ("gdpa", {**HEAVY, "recovery": "linear"}),
    "chosen": ("gdpa", {**HEAVY, "recovery": "auto"}),
    "as written": ("gdpa", {"lp": "highs", "sign": "first"}),
    "harmonic": ("harmonic", {}),
}
COD_RNA = (970, 4891, 24_432, 97_713)
MOST_HIGHS = 5_000  # nodes up to which the loop as written is run


def errors(problem: GraphProblem, truth: NDArray[np.int8], *, written: bool) -> dict[str, Any]:
    """Return the error in percent of each recovery, and what was chosen.

    With `written`, also that of the loop as the paper states it.
    """
    found: dict[str, Any] = {}
    hidden = problem.unlabeled
    for name, (method, options) in RECOVERIES.items():
        if name == "as written" and not written:
            continue
        solution = solve(problem, method, **options)
        wrong = solution.labels[hidden] != truth[hidden]
        found[name] = round(100.0 * float(wrong.mean()), 4)
        if name == "eigenvector":
            found["lambda"] = float(solution.info["eigenvalue"])
        if name == "chosen":
            found["recovery"] = solution.info["recovery"]
    return found


def smallest_eigenvalue(problem: GraphProblem) -> float:
    """Return mu, the smallest eigenvalue of K_uu, by LAPACK."""
    A = problem.adjacency.toarray()
    u = problem.unlabeled
    K = np.diag(A.sum(axis=1)) - A
    return float(linalg.eigh(K[np.ix_(u, u)], subset_by_index=[0, 0], eigvals_only=True)[0])


def measure_clouds(draws: int) -> list[dict[str, Any]]:
    """Measure every cell of the map."""
    rows = []
    for graph in GRAPHS:
        for share in SHARES:
            for distance in DISTANCES:
                for seed in range(draws):
                    problem, truth = clouds(
                        POINTS, share=share, distance=distance, graph=graph, seed=seed
                    )
                    row = {"graph": graph, "share": share, "distance": distance, "seed": seed}
                    row |= errors(problem, truth, written=False)
                    row["rho"] = round(row.pop("lambda") / smallest_eigenvalue(problem), 6)
                    rows.append(row)
            print(f"{graph}, {100 * share:g} % labels", flush=True)
    return rows


def measure_sets() -> list[dict[str, Any]]:
    """Measure the paper's sets (split 1 of every fold) and cod-rna on neighbour graphs."""
    from reproduction.datasets import load
    from reproduction.protocol import PAPER_DATASETS, RESCALINGS, paper_problems

    rows = []
    for rescaling in RESCALINGS:
        for name in PAPER_DATASETS:
            found = []
            for run in paper_problems(load(name), rescaling, splits=[1]):
                W = neighbor_graph(run.X, min(10, run.y.size - 1))
                problem = GraphProblem(W, run.labels, laplacian="normalized")
                found.append(errors(problem, run.y, written=True))
            means = {
                key: round(float(np.mean([row[key] for row in found])), 4)
                for key in RECOVERIES
                if key in found[0]
            }
            by_eigenvector = sum(row["recovery"] == "eigenvector" for row in found)
            rows.append(
                {
                    "set": name,
                    "rescaling": rescaling,
                    "runs": len(found),
                    "eigenvector runs": by_eigenvector,
                    **means,
                }
            )
            print(rescaling, name, means, flush=True)
    data = load("cod-rna")
    for n in COD_RNA:
        rng = np.random.default_rng(0)
        keep = np.sort(rng.permutation(data.y.size)[:n])
        truth = data.y[keep].astype(np.int8)
        labels = np.where(rng.permutation(n) < n // 2, truth, 0)
        low, high = data.X[keep].min(axis=0), data.X[keep].max(axis=0)
        X = (data.X[keep] - low) / np.where(high > low, high - low, 1.0)
        problem = GraphProblem(neighbor_graph(X, 10), labels, laplacian="normalized")
        found_here = errors(problem, truth, written=n <= MOST_HIGHS)
        found_here.pop("lambda")
        rows.append({"set": "cod-rna", "n": n, "runs": 1, **found_here})
        print("cod-rna", n, found_here, flush=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_map", description=__doc__)
    parser.add_argument("--sets", action="store_true", help="also the paper's sets and cod-rna")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, default=STORE)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    start = time.time()
    machine = describe()
    rows = measure_clouds(options.draws)
    if options.sets:
        rows += measure_sets()
    results = {"commit": machine["commit"], "machine": machine, "rows": rows}
    results["minutes"] = round((time.time() - start) / 60, 1)
    write(options.out, results)
    print(f"wrote {options.out}; python -m benchmarks.evidence writes the page")
    return 0


if __name__ == "__main__":
    sys.exit(main())
