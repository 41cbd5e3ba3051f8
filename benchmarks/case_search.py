"""Approximate neighbour search: cells beside faiss' inverted file, and how much recall is worth.

    python -m benchmarks --case search scan-limit

`search`: 10 neighbours of points in 20 Gaussian clusters, both searches tuned to the same recall on
the same sample, two threads.

`scan-limit`: with many features the last true neighbours are expensive and hardly nearer than
others. Errors of the classifier with 1 % labels, for several limits on the points that are compared
with each; features of five kinds, two draws of each.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .classification import clusters, hide

KINDS = (
    "clusters 50",
    "clusters 20",
    "informative 10 of 20",
    "surface 6 in 50",
    "surface 12 in 30",
)
LIMITS = (1_000, 2_000, 3_000, 4_000, 8_000, 10**9)


def run(sizes: tuple[tuple[int, int], ...] = ((100_000, 8), (100_000, 50), (1_000_000, 8))) -> Any:
    """Seconds of both searches at the same recall."""
    from gdpa.graph import NeighborIndex

    rows = []
    for n, d in sizes:
        X, _, _ = clusters(n, d, 0.01)
        row: dict[str, Any] = {"points": n, "features": d}
        for algorithm, name in (("approximate", "cells"), ("faiss", "faiss")):
            start = time.perf_counter()
            cpu = time.process_time()
            index = NeighborIndex(X, algorithm=algorithm, n_jobs=2, recall=0.98)
            row[f"{name}_recall"] = index.neighbors(10).recall
            row[f"{name}_s"] = time.perf_counter() - start
            row[f"{name}_cpu_s"] = time.process_time() - cpu
        row["ratio"] = row["faiss_s"] / row["cells_s"]
        rows.append(row)
    return rows


def features(kind: str, n: int, seed: int) -> tuple[Any, Any]:
    """Features with classes 0 and 1."""
    from sklearn.datasets import make_classification

    from gdpa.datasets import gaussian_clusters

    rng = np.random.default_rng(seed)
    name, *numbers = kind.replace(" in", "").replace(" of", "").split()
    if name == "clusters":
        d = int(numbers[0])
        X, y = gaussian_clusters(
            n, n_features=d, separation={50: 0.55, 20: 0.85}[d], random_state=seed
        )
        return X, (y > 0).astype(np.int64)
    inner, d = (int(number) for number in numbers)
    if name == "informative":
        return make_classification(
            n, n_features=d, n_informative=inner, n_redundant=0, n_clusters_per_class=4,
            class_sep=1.5, random_state=seed,
        )  # fmt: skip
    Z = rng.standard_normal((n, inner))
    X = np.tanh(Z @ rng.standard_normal((inner, d))) + np.sin(Z @ rng.standard_normal((inner, d)))
    X += 0.1 * rng.standard_normal((n, d))
    return X, (np.sin(2 * Z[:, 0]) + Z[:, 1] > 0).astype(np.int64)


def run_limits(n: int = 30_000, kinds: tuple[str, ...] = KINDS, seeds: int = 2) -> Any:
    """Recall and error for each limit."""
    from gdpa.estimators.fitting import fit_state
    from gdpa.estimators.labels import encode_labels
    from gdpa.estimators.options import FitOptions
    from gdpa.policy import Policy

    rows = []
    for kind in kinds:
        for seed in range(seeds):
            X, y = features(kind, n, seed)
            truth, codes = hide(y, 0.01, seed)
            hidden = codes < 0
            row: dict[str, Any] = {"features": kind, "draw": seed}
            for limit in LIMITS:
                policy = Policy(scanned_points=limit)
                options = FitOptions(n_neighbors=10, algorithm="approximate", policy=policy)
                coding = encode_labels(codes)
                state = fit_state(X, coding, options)
                wrong = coding.classes[state.labels][hidden] != truth[hidden]
                name = f"{limit:,}" if limit < 10**9 else "no limit"
                row[f"recall, {name}"] = state.graph.neighbors.recall
                row[f"error %, {name}"] = 100.0 * float(wrong.mean())
            rows.append(row)
    return rows
