"""Approximate neighbour search: cells compared with faiss, and the effect of recall.

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
    rows = []
    for n, d in sizes:
        X, _, _ = clusters(n, d, 0.01)
        row: dict[str, Any] = {"points": n, "features": d}
        for name, search in (
            ("cells", lambda X: cells_recall(X, 10, 0.98)),
            ("faiss", lambda X: faiss_recall(X, 10, 0.98)),
        ):
            start = time.perf_counter()
            cpu = time.process_time()
            row[f"{name}_recall"] = search(X)
            row[f"{name}_s"] = time.perf_counter() - start
            row[f"{name}_cpu_s"] = time.process_time() - cpu
        row["ratio"] = row["faiss_s"] / row["cells_s"]
        rows.append(row)
    return rows


def cells_recall(X: Any, k: int, recall: float) -> float:
    """Search all neighbours with the package's own cells."""
    from gdpa.graph.neighbors import NeighborIndex

    return NeighborIndex(X, algorithm="approximate", n_jobs=2, recall=recall).neighbors(k).recall


def faiss_recall(X: Any, k: int, recall: float, n_sample: int = 256) -> float:
    """Search all neighbours with faiss' inverted file, tuned to the recall on a sample."""
    try:
        import faiss
    except ImportError as error:
        raise SystemExit("this case needs faiss: pip install 'gdpa[bench]'") from error
    faiss.omp_set_num_threads(2)
    X = np.ascontiguousarray(X, dtype=np.float32)
    n, d = X.shape
    # Measured: in few dimensions scanning costs more than choosing cells, so there are more.
    n_cells = max(1, min(n, int((3 if d <= 16 else 2) * np.sqrt(n))))
    quantizer = faiss.IndexFlatL2(d)
    index = faiss.IndexIVFFlat(quantizer, d, n_cells)
    index.cp.niter, index.cp.seed = 6, 0
    rng = np.random.default_rng(0)
    index.train(X[np.sort(rng.choice(n, min(n, 32 * n_cells), replace=False))])
    index.add(X)
    sample = X[np.sort(rng.choice(n, min(n, n_sample), replace=False))]
    exact = faiss.IndexFlatL2(d)
    exact.add(X)
    reach = exact.search(sample, k + 1)[0][:, -1:] * (1 + 1e-6)
    index.nprobe = 2
    while True:
        hits = (index.search(sample, k + 1)[0] <= reach).sum(axis=1) - 1  # not the point itself
        found = float(hits.mean()) / k
        if found >= recall or index.nprobe == n_cells:
            break
        index.nprobe = min(n_cells, index.nprobe + 1 + index.nprobe // 12)
    index.search(X, k + 1)
    return found


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
    from gdpa.estimators.ensemble import fit_single_graph
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
                state = fit_single_graph(X, coding, options)
                wrong = coding.classes[state.codes][hidden] != truth[hidden]
                name = f"{limit:,}" if limit < 10**9 else "no limit"
                row[f"recall, {name}"] = state.first.graph.neighbors.index.measured_recall
                row[f"error %, {name}"] = 100.0 * float(wrong.mean())
            rows.append(row)
    return rows
