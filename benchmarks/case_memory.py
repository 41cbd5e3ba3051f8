"""Memory of a fit on 20,000 points with 50 features, in multiples of its graph."""

from __future__ import annotations

from typing import Any

from .classification import clusters
from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import forget_peak, peak_mb, resident_mb


def fit(n: int, n_features: int) -> dict[str, Any]:
    """Peak and lasting memory of one fit above what data and imports take."""
    import time

    import gdpa

    # A first fit on few points: what libraries load once is not the fit's memory.
    X, _, codes = clusters(2_000, n_features, 0.05)
    gdpa.CommitteeClassifier(n_neighbors=10, n_jobs=2).fit(X, codes)
    X, truth, codes = clusters(n, n_features, 0.01)
    before = resident_mb()
    forget_peak()
    start = time.perf_counter()
    model = gdpa.CommitteeClassifier(n_neighbors=10, n_jobs=2).fit(X, codes)
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
    """One measurement."""
    n = 5_000 if quick else 20_000
    return [
        Measurement(
            f"{n:,} x 50",
            "benchmarks.case_memory:fit",
            {"n": n, "n_features": 50},
            limit=120.0,
            needs=("psutil",),
        )
    ]


def claims(medians: Medians) -> list[Claim]:
    """What a fitted model keeps: at most five times the graph above the data."""
    label = next(iter(medians))
    return [
        Claim(
            "fitted memory above the data, in graphs",
            value_of(medians, label, "kept_over_graph"),
            5.0,
            at_least=False,
        ),
    ]


CASE = Case(
    "memory-20000x50",
    "Memory of a fit, 20,000 points x 50 features",
    plan,
    claims,
    ("seconds", "graph_mb", "data_mb", "fit_kept_mb", "kept_over_graph", "fit_peak_mb"),
)
