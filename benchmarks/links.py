"""A graph and features together: accuracy on a citation network, noise on either side, size.

    python -m benchmarks.links                    # what is missing in benchmarks/links.json
    python -m benchmarks.links --parts cora size  # only these
    python -m benchmarks.links --again cora       # measure a part again
    python -m benchmarks.links --write            # only print the results

Parts:

- *cora*: ``cora.npz`` in ``$GDPA_DATA_HOME`` (or what ``load_citation("cora")`` reads):
  the public split and ten random ones of 20 labels a class, default arguments; beside it the graph
  alone (``graph="precomputed"``), the features alone, and a simplified graph convolution by
  scikit-learn's logistic regression (two steps of smoothing, best of four penalties on the test
  rows themselves);
- *generated*: networks with the size, degrees, words and homophily of Cora, Citeseer and PubMed;
- *noise*: links without information, features of noise, links between unlike classes;
- *size*: a million nodes, 16 features, two and ten classes, beside the graph alone;
- *memory*: a million nodes, ten million edges, 100 features.

Seconds are CPU time with one thread. Measurements of *size* and *memory* are interleaved, each in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.datasets import linked_classes

from .link_data import KINDS, citation_like, cora, random_split
from .link_page import page
from .machine import describe

HERE = Path(__file__).parent
STORE = HERE / "links.json"
SPLITS = 10
SEEDS = 5
REPEATS = 2
SIZES = ("size", "memory")


# --- what is measured


def fit(how: str, X: Any, W: Any, y: Any) -> tuple[Any, Any]:
    """Labels of all nodes, and the classifier where it is ours."""
    if how == "both":
        model = CommitteeClassifier().fit(X, y, adjacency=W)
    elif how == "graph alone":
        model = GraphClassifier(graph="precomputed").fit(W, y)
    elif how == "features alone":
        model = CommitteeClassifier().fit(X, y)
    else:
        return convolution(X, W, y), None
    return model.transduction_, model


def convolution(X: Any, W: Any, y: Any) -> list[Any]:
    """Logistic regression on features smoothed two steps, for each of four penalties."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    A = sp.csr_array(W + sp.eye_array(W.shape[0]))
    root = sp.diags_array(1.0 / np.sqrt(A.sum(axis=1)))
    S = sp.csr_array(root @ A @ root)
    Z = S @ (S @ sp.csr_array(normalize(X)))
    known = y >= 0
    return [
        LogisticRegression(C=C, max_iter=300).fit(Z[known], y[known]).predict(Z)
        for C in (1.0, 10.0, 100.0, 1000.0)
    ]


def judged(how: str, X: Any, W: Any, truth: Any, train: Any, test: Any) -> dict[str, Any]:
    """Accuracy on the test rows, CPU seconds, and the graph's share in the answer."""
    y = np.full(truth.size, -1)
    y[train] = truth[train]
    start = time.process_time()
    labels, model = fit(how, X, W, y)
    seconds = time.process_time() - start
    found = labels if isinstance(labels, list) else [labels]
    result = {
        "accuracy": max(100.0 * float((label[test] == truth[test]).mean()) for label in found),
        "cpu": seconds,
    }
    if how == "both":
        result["graph share"] = float(model.graph_share_[test].mean())
    return result


HOWS = ("both", "graph alone", "features alone", "smoothed features, scikit-learn")


def run_cora(how: str, split: str) -> dict[str, Any]:
    """One split of the citation network."""
    X, W, truth, public = cora()
    train, test = public if split == "public" else random_split(truth, int(split))
    return judged(how, X, W, truth, train, test)


def run_generated(how: str, kind: str, seed: int) -> dict[str, Any]:
    """One generated network."""
    X, W, truth = citation_like(kind, seed)
    return judged(how, X, W, truth, *random_split(truth, seed))


NOISE = {
    "links without information": {"homophily": 1.0 / 3.0},
    "features of noise": {"separation": 0.0},
    "links between unlike classes": {"homophily": 0.05},
    "both informative": {},
}


def run_noise(how: str, kind: str, seed: int) -> dict[str, Any]:
    """2,000 nodes, three classes, a tenth of the labels."""
    X, truth, W = linked_classes(2_000, random_state=seed, **NOISE[kind])
    rng = np.random.default_rng(seed)
    train = rng.permutation(truth.size)[:200]
    return judged(how, X, W, truth, train, np.setdiff1d(np.arange(truth.size), train))


def run_size(how: str, n: int, k: int, d: int, degree: float, turn: int) -> dict[str, Any]:
    """Many nodes, 1 % of the labels; memory of the process, data included."""
    import resource

    X, truth, W = linked_classes(n, n_classes=k, n_features=d, degree=degree, random_state=0)
    rng = np.random.default_rng(0)
    train = rng.permutation(n)[: n // 100]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    start = time.perf_counter()
    result = judged(how, X, W, truth, train, np.setdiff1d(np.arange(n), train))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return result | {
        "wall": time.perf_counter() - start,
        "data GB": before,
        "peak GB": peak,
        "edges": int(W.nnz // 2),
    }


RUNS: dict[str, Callable[..., dict[str, Any]]] = {
    "cora": run_cora,
    "generated": run_generated,
    "noise": run_noise,
    "size": run_size,
    "memory": run_size,
}


def plan(part: str, n: int) -> list[dict[str, Any]]:
    """Arguments of every measurement of a part, in the order in which they run."""
    if part == "cora":
        splits = ["public", *map(str, range(SPLITS))]
        return [{"how": how, "split": split} for split in splits for how in HOWS]
    if part == "generated":
        hows = (HOWS[0], HOWS[3])
        return [
            {"how": how, "kind": kind, "seed": seed}
            for kind in KINDS
            for seed in range(REPEATS)
            for how in hows
        ]
    if part == "noise":
        return [
            {"how": how, "kind": kind, "seed": seed}
            for kind in NOISE
            for seed in range(SEEDS)
            for how in HOWS[:3]
        ]
    if part == "memory":
        return [{"how": "both", "n": n, "k": 4, "d": 100, "degree": 20.0, "turn": 0}]
    return [
        {"how": how, "n": n, "k": k, "d": 16, "degree": 10.0, "turn": turn}
        for turn in range(REPEATS)
        for k in (2, 10)
        for how in ("graph alone", "both")
    ]


# --- running and storing


def store() -> dict[str, dict[str, Any]]:
    """What has been measured."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def save(results: dict[str, dict[str, Any]]) -> None:
    """Write the store, whole or not at all."""
    lines = []
    for part, cells in results.items():
        body = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cells.items())
        lines.append(f" {json.dumps(part)}: {{\n  {body}\n }}")
    text = STORE.with_suffix(".part")
    text.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(text, STORE)


def in_this(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One measurement in this process."""
    return RUNS[part](**arguments)


def in_process(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One measurement in a process of its own, with one thread."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.links", "--one", part, json.dumps(arguments)],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"{part} {arguments}: {ended.stderr[-2000:]}")
    return dict(json.loads(ended.stdout))


def measure(parts: list[str], again: list[str], n: int) -> None:
    """Run what is missing, and write it down after every measurement."""
    results, commit = store(), describe()["commit"]
    for part in parts:
        if part == "cora" and cora() is None:
            print("no Cora: set GDPA_DATA_HOME to a folder with cora.npz")
            continue
        if part in again:
            results[part] = {}
        cells = results.setdefault(part, {})
        for arguments in plan(part, n):
            key = json.dumps(arguments, sort_keys=True)
            if key not in cells:
                run = in_process if part in SIZES else in_this
                cells[key] = {**run(part, arguments), "commit": commit}
                print(part, key, cells[key], flush=True)
                save(results)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.links", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--again", nargs="+", choices=list(RUNS), default=[], metavar="PART")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of size and memory")
    parser.add_argument("--write", action="store_true", help="print the results, measure nothing")
    parser.add_argument("--one", nargs=2, metavar=("PART", "JSON"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.one:
        part, arguments = options.one
        print(json.dumps(RUNS[part](**json.loads(arguments))))
        return 0
    if not options.write:
        measure(options.again or options.parts, options.again, options.nodes)
    print(page(store()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
