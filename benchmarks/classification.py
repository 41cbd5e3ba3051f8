"""Whole pipelines on points in space: the function that the classification cases measure."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .peers import PEERS
from .runner import Measurement
from .worker import forget_peak, peak_mb, resident_mb

# Chosen once, at 100,000 points and 1 % labels, so that 10-NN graphs err on about 11 %.
SEPARATION = {8: 1.3, 50: 0.55}


def clusters(n: int, n_features: int, share: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """20 Gaussian clusters in two classes: features, classes, and classes with -1 for unknown."""
    from gdpa.datasets import gaussian_clusters

    X, y = gaussian_clusters(
        n,
        n_features=n_features,
        separation=SEPARATION[n_features],
        dtype=np.float32,
        random_state=seed,
    )
    return X, *hide((y > 0).astype(np.int64), share, seed)


def hide(truth: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Keep a random share of the classes; -1 elsewhere."""
    n = truth.size
    known = np.random.default_rng(seed + 1).permutation(n)[: max(2, round(share * n))]
    codes = np.full(n, -1, dtype=np.int64)
    codes[known] = truth[known]
    return truth, codes


def rna(share: float, n: int | None, seed: int = 0) -> tuple[Any, Any, Any]:
    """cod-rna, standardised, in float32."""
    from reproduction.datasets import load

    data = load("cod-rna")
    X = np.asarray(data.X, dtype=np.float64)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    truth = (np.asarray(data.y) > 0).astype(np.int64)
    if n is not None:
        part = np.random.default_rng(seed).permutation(truth.size)[:n]
        X, truth = X[part], truth[part]
    return X, *hide(truth, share, seed)


def fit(
    peer: str,
    data: str = "clusters",
    n: int | None = None,
    n_features: int = 8,
    share: float = 0.01,
    seed: int = 0,
    n_jobs: int = 2,
) -> dict[str, Any]:
    """Time one pipeline from features to labels, with its error and its peak memory."""
    if data == "clusters":
        assert n is not None
        X, truth, codes = clusters(n, n_features, share, seed)
    else:
        X, truth, codes = rna(share, n, seed)
    notes: dict[str, Any] = {}
    run = PEERS[peer].load(notes)
    few, _, few_codes = clusters(200, 8, 0.2)
    run(few, few_codes, n_jobs)  # what a library imports at its first fit is not timed
    before = resident_mb()
    forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    predicted = np.asarray(run(X, codes, n_jobs))
    seconds = time.perf_counter() - start
    hidden = codes < 0
    result = {
        "seconds": seconds,
        "error_percent": 100.0 * float((predicted[hidden] != truth[hidden]).mean()),
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "above_data_mb": peak_mb() - before,
    }
    model = notes.pop("model", None)
    result.update(notes)
    if model is not None:
        result.update(_about(model))
    return result


def _about(model: Any) -> dict[str, Any]:
    """What a fitted CommitteeClassifier says about its graph and its solve."""
    graph = model.ensemble_.first.graph
    return {
        "recall": float(graph.neighbors.recall),
        "nonzeros": int(graph.W.nnz),
        "search": graph.neighbors.algorithm,
        "self_loop": float(model.ensemble_.tuning.setting.self_loop),
        "iterations": int(model.ensemble_.first.run.iterations),
    }


def pipelines(
    peers: list[str], *, limit: float = 300.0, repeats: dict[str, int] | None = None, **data: Any
) -> list[Measurement]:
    """One measurement per peer on the same data."""
    return [
        Measurement(
            label=peer,
            function="benchmarks.classification:fit",
            arguments={"peer": peer, **data},
            repeats=(repeats or {}).get(peer),
            limit=limit,
            needs=(*PEERS[peer].needs, "psutil"),
        )
        for peer in peers
    ]
