"""Memory of a fit on 20,000 points with 50 features, in multiples of its graph."""

from __future__ import annotations

from typing import Any

from .classification import clusters
from .peers import DEFAULT, SINGLE_GRAPH
from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import forget_peak, peak_mb, resident_mb


def fit(n: int, n_features: int, graph: bool) -> dict[str, Any]:
    """Peak and lasting memory of one fit above what data and imports take."""
    import time

    import gdpa

    make = gdpa.GraphClassifier if graph else gdpa.CommitteeClassifier
    # A first fit on few points: what libraries load once is not the fit's memory.
    X, _, codes = clusters(2_000, n_features, 0.05)
    make(n_neighbors=10, n_jobs=2).fit(X, codes)
    X, truth, codes = clusters(n, n_features, 0.01)
    before = resident_mb()
    forget_peak()
    start = time.perf_counter()
    model = make(n_neighbors=10, n_jobs=2).fit(X, codes)
    seconds = time.perf_counter() - start
    W = model.graph_
    graph = (W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / 1e6
    hidden = codes < 0
    return {
        "seconds": seconds,
        "error_percent": 100.0 * float((model.transduction_ != truth)[hidden].mean()),
        "graph_mb": graph,
        "data_mb": X.nbytes / 1e6,
        "fit_peak_mb": peak_mb() - before,
        "fit_kept_mb": resident_mb() - before,
        "peak_over_graph": (peak_mb() - before) / graph,
        "kept_over_graph": (resident_mb() - before) / graph,
    }


def plan(quick: bool) -> list[Measurement]:
    """Measure both classifiers."""
    return [
        Measurement(
            name,
            "benchmarks.case_memory:fit",
            {"n": 5_000 if quick else 20_000, "n_features": 50, "graph": name == SINGLE_GRAPH},
            limit=120.0,
            needs=("psutil",),
        )
        for name in (DEFAULT, SINGLE_GRAPH)
    ]


def claims(medians: Medians) -> list[Claim]:
    """What a fitted graph keeps: at most five times the graph above the data."""
    kept = value_of(medians, SINGLE_GRAPH, "kept_over_graph")
    return [Claim("fitted single graph: memory above the data / graph", kept, 5.0, False)]


CASE = Case(
    "memory-20000x50",
    "Memory of a fit, 20,000 points x 50 features",
    plan,
    claims,
    ("seconds", "graph_mb", "data_mb", "fit_kept_mb", "kept_over_graph", "fit_peak_mb"),
)
