"""A prediction does not depend on the rows beside it, nor on their order or number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier

from .outcome import RIGHT, generator, must, quiet

METHODS = ("harmonic", "harmonic", "gdpa", "min-cut", "spectral", "glr-box", "poisson", "vote")


def rows_of(rng: np.random.Generator, n: int, codes: np.ndarray, kind: str) -> Any:
    """Features with ties: repeated rows, whole numbers, copies of fitted rows."""
    X = rng.normal(size=(n, 4)) + 2.0 * codes[:, None]
    if kind == "integers":
        X = np.round(X)
    elif kind == "repeated":
        X = X[rng.integers(max(2, n // 3), size=n)]
    elif kind == "single":
        X = X.astype(np.float32)
    elif kind == "columns":
        X = np.asfortranarray(X)
    elif kind == "sparse":
        X = sp.csr_array(np.hstack([np.round(X), np.zeros((n, 110))]))
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-8, 8, 4)
    return X


def run(seed: int) -> str:
    """One model, asked for the same rows in several batches."""
    rng = generator("batches", seed)
    n, m = int(rng.integers(12, 60)), int(rng.integers(2, 25))
    codes = rng.integers(2, size=n + m)
    codes[:4] = 0, 1, 0, 1
    kinds = ("plain", "integers", "repeated", "single", "columns", "sparse", "scales")
    X = rows_of(rng, n + m, codes, str(rng.choice(kinds)))
    y = np.where(rng.random(n) < 0.5, codes[:n], -1)
    y[:4] = codes[:4]
    which = rng.random()
    linked = False
    model: Any
    if which < 0.06:
        model, linked = CommitteeClassifier(), rng.random() < 0.5
    elif which < 0.2:
        model = GDPAClassifier(graph=str(rng.choice(["knn", "full"])))
    else:
        full = rng.random() < 0.3 and not sp.issparse(X)
        model = GraphClassifier(method=str(rng.choice(METHODS)), graph="full" if full else "knn")
    links = sp.csr_array((rng.random((m, n)) < 0.2).astype(float))
    W = np.triu(rng.random((n, n)) < 0.2, 1)
    with quiet():
        adjacency = {"adjacency": sp.csr_array((W | W.T).astype(float))} if linked else {}
        model.fit(X[:n], y, **adjacency)
        new = X[n:]

        def ask(rows: np.ndarray) -> np.ndarray:
            more = {"adjacency": links[rows]} if linked else {}
            return np.asarray(model.predict_proba(new[rows], **more))

        compare(rng, ask, m)
    return RIGHT


def compare(rng: np.random.Generator, ask: Callable[[np.ndarray], np.ndarray], m: int) -> None:
    """All rows at once, one by one, in another order, repeated, in batches."""
    whole = ask(np.arange(m))
    order = rng.permutation(m)
    must(np.array_equal(ask(order), whole[order]), "another order, another prediction")
    single = np.vstack([ask(np.array([i])) for i in range(m)])
    must(np.array_equal(single, whole), "a row alone is predicted otherwise")
    size = int(rng.integers(2, 9))
    parts = [ask(order[i : i + size]) for i in range(0, m, size)]
    must(np.array_equal(np.vstack(parts), whole[order]), "predictions depend on the batch")
    again = rng.integers(m, size=2 * m)
    must(np.array_equal(ask(again), whole[again]), "a repeated row is predicted otherwise")
