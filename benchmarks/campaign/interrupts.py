"""Ctrl-C at a random moment of a threaded fit: an exception, and an interpreter that goes on."""

from __future__ import annotations

import functools
import signal
import time
from typing import Any

import numpy as np

import gdpa

from .outcome import RIGHT, generator, must, quiet

KINDS = (*["graph"] * 9, "committee")


@functools.cache
def task(kind: str) -> tuple[Any, Any, Any, float]:
    """Features, labels, the labels of a fit that nobody disturbs, and its seconds."""
    rng = np.random.default_rng(0)
    n = 5000 if kind == "graph" else 120
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 5)) + 2.0 * codes[:, None]
    y = np.where(rng.random(n) < 0.1, codes, -1)
    y[:3] = 0, 1, 2
    fit(kind, X, y)  # what is imported and compiled once
    start = time.perf_counter()
    labels = fit(kind, X, y)
    return X, y, labels, time.perf_counter() - start


def fit(kind: str, X: Any, y: Any) -> Any:
    """The labels of a fit in four threads."""
    make = gdpa.GraphClassifier if kind == "graph" else gdpa.CommitteeClassifier
    return make(n_jobs=4).fit(X, y).transduction_


def run(seed: int) -> str:
    """One interrupt, and now and then a fit afterwards that must be as before."""
    rng = generator("interrupts", seed)
    with quiet():
        kind = KINDS[seed % len(KINDS)]
        X, y, labels, seconds = task(kind)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        stopped = 0
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-4, float(rng.uniform(0, seconds))))
            fit(kind, X, y)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            stopped = 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if rng.random() < 0.1:
            must(np.array_equal(fit(kind, X, y), labels), "another result after an interrupt")
    return f"{RIGHT}|interrupts={stopped}"
