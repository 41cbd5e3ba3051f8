"""Graphs for the benchmarks of the paper's system: two Gaussian clouds, and how they are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdpa import GraphProblem
from gdpa.graph import full_graph, neighbor_graph, rescale_minmax

GRAPHS = ("neighbours", "full")
FEATURES = 5


def clouds(
    n: int, *, share: float, distance: float, graph: str, seed: int
) -> tuple[GraphProblem, NDArray[np.int8]]:
    """Return two Gaussian clouds with some labels, as a problem, and the true labels.

    Parameters
    ----------
    n : int
        Number of points, in 5 dimensions.
    share : float
        Share of the points whose label is known.
    distance : float
        Half of the distance between the centres, in standard deviations.
    graph : {"neighbours", "full"}
        Ten nearest neighbours, or the paper's graph of all pairs of min-max features.
    seed : int
        Random seed.
    """
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    X = rng.normal(size=(n, FEATURES))
    X[:, 0] += distance * truth
    labels = np.zeros(n, dtype=np.int8)
    known = rng.permutation(n)[: max(2, round(share * n))]
    labels[known] = truth[known]
    if graph == "full":
        W = full_graph(rescale_minmax(X), bandwidth=1.0)
    else:
        W = neighbor_graph(X, 10)
    return GraphProblem(W, labels, laplacian="normalized"), truth


def write(path: Path, results: dict[str, Any]) -> None:
    """Store results, one line per row."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in results["rows"])
    rest = {key: value for key, value in results.items() if key != "rows"}
    head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in rest.items())
    path.write_text(f'{{\n{head} "rows": [\n{rows}\n ]\n}}\n', encoding="utf-8")
