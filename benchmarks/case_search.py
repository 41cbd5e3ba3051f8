"""Approximate neighbour search: cells compared with faiss, and the effect of recall.

    python -m benchmarks --case search scan-limit image-search

`search`: 10 neighbours of points in 20 Gaussian clusters, both searches tuned to the same recall on
the same sample, two threads.

`scan-limit`: with many features the last true neighbours are expensive and hardly nearer than
others. Errors of the classifier with 1 % labels, for several limits on the points that are compared
with each; features of five kinds, two draws of each.

`image-search`: 10 neighbours of MNIST images (``$GDPA_DATA_HOME/mnist.npz``), the first rows of a
permutation. CPU seconds of one thread (those of compiling, in each new process, apart), recall of
1,000 images whose neighbours are found by comparing them with all others, and the errors of the
labels that "class-sizes" and the harmonic function give on the graph (equal weights): by cells with
several limits, and by hnswlib and pynndescent (where installed) with several efforts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
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
IMAGE_LIMITS = (1_000, 2_000, 3_000, 10_000)
IMAGE_EFFORTS = (20, 50)  # of hnswlib, while it inserts and while it searches
IMAGE_TREES = (4,)  # of pynndescent
IMAGE_SAMPLE = 1_000
LIMITS = (1_000, 3_000, 10**9)


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
    from gdpa.estimators.labels import encode_labels
    from gdpa.estimators.options import CheckedOptions
    from gdpa.estimators.single_graph import fit_single_graph
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
                options = CheckedOptions(n_neighbors=10, algorithm="approximate", policy=policy)
                coding = encode_labels(codes)
                state = fit_single_graph(X, coding, options)
                wrong = coding.classes[state.codes][hidden] != truth[hidden]
                name = f"{limit:,}" if limit < 10**9 else "no limit"
                row[f"recall, {name}"] = state.first.graph.neighbors.index.measured_recall
                row[f"error %, {name}"] = 100.0 * float(wrong.mean())
            rows.append(row)
    return rows


def image_searches(X: Any, k: int) -> dict[str, Callable[[], Any]]:
    """Searches that return the k neighbours of each row, without the row itself."""
    from gdpa.graph.neighbors import NeighborIndex
    from gdpa.policy import Policy

    def cells(limit: int) -> Any:
        policy = Policy(scanned_points=limit)
        index = NeighborIndex(X, algorithm="approximate", n_jobs=1, policy=policy)
        return index.neighbors(k).indices

    def hnsw(effort: int) -> Any:
        import hnswlib

        index = hnswlib.Index(space="l2", dim=X.shape[1])
        index.init_index(len(X), M=16, ef_construction=effort, random_seed=0)
        index.set_num_threads(1)
        index.add_items(X)
        index.set_ef(max(effort, k + 1))
        return index.knn_query(X, k + 1)[0][:, 1:]

    def descent(trees: int) -> Any:
        from pynndescent import NNDescent

        index = NNDescent(X, n_neighbors=k + 1, n_trees=trees, random_state=0, n_jobs=1)
        return index.neighbor_graph[0][:, 1:]

    found: dict[str, Callable[[], Any]] = {}
    for limit in IMAGE_LIMITS:
        found[f"cells, {limit:,} points"] = partial(cells, limit)
    for effort in IMAGE_EFFORTS:
        found[f"hnswlib, effort {effort}"] = partial(hnsw, effort)
    for trees in IMAGE_TREES:
        found[f"pynndescent, {trees} trees"] = partial(descent, trees)
    return found


def reach(X: Any, sample: Any, k: int) -> Any:
    """Squared distances of the sampled rows to their k-th neighbour, the rows left out."""
    squares, found = np.einsum("ij,ij->i", X, X), []
    for block in np.array_split(sample, -(-sample.size // 250)):
        D = squares - 2.0 * (X[block] @ X.T)  # without the squares of the rows themselves
        D[np.arange(block.size), block] = np.inf
        found.append(np.partition(D, k - 1, axis=1)[:, k - 1] + squares[block])
    return np.concatenate(found)


def run_images(n: int = 70_000, k: int = 10, seeds: int = 2) -> Any:
    """Recall, CPU seconds and errors of each search of images."""
    import scipy.sparse as sp

    from gdpa.graph.adjacency import laplacian_parts
    from gdpa.problem import ClassProblem
    from gdpa.solvers.base import Run
    from gdpa.solvers.class_sizes import ClassSizes
    from gdpa.system import LabeledSystem

    from .few_labels import images

    X, y = images("mnist")
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X, y = np.ascontiguousarray(X[rows]), y[rows]
    n, out = len(y), []
    sample = np.sort(np.random.default_rng(1).choice(n, min(n, IMAGE_SAMPLE), replace=False))
    farthest = reach(X, sample, k)
    for name, search in image_searches(X, k).items():
        start = time.process_time()
        try:
            if name.startswith("pynndescent"):
                image_searches(X[:500], k)[name]()
            compiling, start = time.process_time() - start, time.process_time()
            indices = np.asarray(search())
        except ImportError:
            continue
        seconds = time.process_time() - start
        gaps = X[sample][:, None] - X[indices[sample]]
        hits = (gaps**2).sum(axis=2) <= farthest[:, None] * (1.0 + 1e-4)  # rounding errors
        hits &= indices[sample] != sample[:, None]
        ones = np.ones(indices.size)
        A = sp.csr_array((ones, (np.repeat(np.arange(n), k), indices.ravel())), shape=(n, n))
        W = sp.csr_array((A + A.T) / 2)
        adjacency, diagonal = laplacian_parts(W, "normalized")
        row: dict[str, Any] = {"search": name, "recall": np.mean(hits), "cpu_s": seconds}
        row["compile_cpu_s"] = compiling if name.startswith("pynndescent") else None
        for count in (1, 5):
            errors = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                known = [
                    rng.choice(np.flatnonzero(y == c), count, replace=False) for c in range(10)
                ]
                labeled = np.sort(np.concatenate(known))
                targets = np.eye(10)[y[labeled]]
                problem = ClassProblem(W, "normalized", adjacency, diagonal, labeled, targets)
                sized = ClassSizes(n_jobs=1, trial=3, sweeps=0).rounds(problem, targets, Run())
                loop = 0.03 * float(diagonal.mean())
                system = LabeledSystem(adjacency, diagonal, labeled, targets, self_loop=loop)
                plain = system.solve(tol=1e-3).x.argmax(axis=1)
                errors.append([100.0 * (found != y).mean() for found in (sized.labels, plain)])
            sized_error, plain_error = np.mean(errors, axis=0)
            row[f"class sizes, {count} labels, error %"] = sized_error
            row[f"harmonic, {count} labels, error %"] = plain_error
        out.append(row)
    return out
