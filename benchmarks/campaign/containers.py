"""The same labels, features and weights in different containers give the same model."""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from gdpa import GraphClassifier

from .outcome import RIGHT, generator, must, quiet

WORDS = ("a", "b", "C#", "nan", "None", "0", "-2", "\u00e4", " x", "1.0")


def object_array(values: list[Any]) -> np.ndarray:
    """The values as they are."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def masked(values: list[Any]) -> Any:
    """Unknown labels are masked; below the mask is a label that must not be used."""
    known = [v for v in values if v is not None]
    filled = [known[0] if v is None else v for v in values]
    return np.ma.array(filled, mask=[v is None for v in values])


# Containers of labels, None where unknown, and of those that have no None but a marker.
WITH_NONE: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": object_array,
    "series": lambda y: pd.Series(y, dtype=object),
    "category": lambda y: pd.Series(y, dtype=object).astype("category"),
    "nullable": lambda y: pd.Series(y, dtype="string" if isinstance(known(y), str) else "Int64"),
    "arrow": pa.array,
    "chunks": lambda y: pa.chunked_array([y[:1], y[1:]], type=pa.array(y).type),
    "polars": pl.Series,
    "mask": masked,
}
WITH_MARKER: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "array": np.array,
    "objects": object_array,
    "series": pd.Series,
    "category": lambda y: pd.Series(y).astype("category"),
    "index": pd.Index,
    "arrow": pa.array,
    "polars": pl.Series,
    "python array": lambda y: np.array(y) if isinstance(y[0], str) else array.array("q", y),
}


def known(y: list[Any]) -> Any:
    """The first label."""
    return next(v for v in y if v is not None)


def feature_containers(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    """The same numbers, small integers, in several containers."""
    rows, columns = np.nonzero(X)
    half = (X[rows, columns] / 2).astype(np.int8)
    doubled = (np.tile(half, 2), (np.tile(rows, 2), np.tile(columns, 2)))
    return {
        "columns": np.asfortranarray(X),
        "list": X.tolist(),
        "view": np.hstack([X, X])[:, : X.shape[1]],
        "masked": np.ma.array(X.copy()),
        "integers": X.astype(np.int16),
        "memory": memoryview(X.copy()),
        "duplicates": sp.coo_array(doubled, shape=X.shape),
        "csc": sp.csc_array(X),
    }


def weight_containers(rng: np.random.Generator, W: np.ndarray) -> dict[str, Any]:
    """The same even weights in several containers."""
    i, j = np.nonzero(W)
    half = (W[i, j] / 2).astype(np.int8)
    order = rng.permutation(2 * half.size)
    doubled = np.tile(half, 2)[order], (np.tile(i, 2)[order], np.tile(j, 2)[order])
    upper = i < j
    edges = np.column_stack([i[upper], j[upper], W[i, j][upper]])
    names = [f"n{k}" for k in rng.permutation(len(W))]
    return {
        "csr": sp.csr_array(W),
        "lil": sp.lil_array(W),
        "bytes": sp.coo_array(doubled, shape=W.shape),
        "frame": pd.DataFrame(W, index=names, columns=names),
        "masked": np.ma.array(W),
        "edges": [(int(a), int(b), float(w)) for a, b, w in rng.permutation(edges)],
    }


def run(seed: int) -> str:
    """One data set in two containers, and a change of the input after the fit."""
    rng = generator("containers", seed)
    n, k = int(rng.integers(8, 25)), int(rng.integers(2, 4))
    codes = rng.integers(k, size=n)
    codes[:k] = range(k)
    classes: list[Any] = [int(c) for c in rng.choice(50, k, replace=False)]
    if rng.random() < 0.6:
        classes = [str(c) for c in rng.choice(WORDS, k, replace=False)]
    elif rng.random() < 0.3:
        classes = [c + 2**53 for c in classes]  # numbers that a float cannot tell apart
    unknown = rng.random(n) < 0.4
    unknown[:k] = False
    truth = [classes[c] for c in codes]
    X = 2.0 * rng.integers(-20, 20, (n, 3)) + 30.0 * codes[:, None]
    with quiet():
        if rng.random() < 0.5:
            y = [None if gap else t for t, gap in zip(truth, unknown, strict=True)]
            name = str(rng.choice(list(WITH_NONE)))
            given, marker = WITH_NONE[name](y), None
        else:
            marker = "-1" if isinstance(classes[0], str) else -1
            y = [marker if gap else t for t, gap in zip(truth, unknown, strict=True)]
            name = str(rng.choice(list(WITH_MARKER)))
            given, marker = WITH_MARKER[name](y), -1
        model = GraphClassifier(unlabeled=marker).fit(X, given)
        must(sorted(map(str, model.classes_)) == sorted(map(str, classes)), f"classes in {name}")
        used = model.ensemble_.labels.codes >= 0
        must(np.array_equal(used, ~unknown), f"unknown labels in {name}")
        kept = [str(v) for v in np.asarray(model.transduction_)[~unknown]]
        must(kept == [str(t) for t, gap in zip(truth, unknown, strict=True) if not gap], name)
        numbers = np.where(unknown, -1, codes)
        if rng.random() < 0.6:
            same_features(rng, X, numbers)
        else:
            same_weights(rng, n, numbers)
    return RIGHT


def same_features(rng: np.random.Generator, X: np.ndarray, y: np.ndarray) -> None:
    """Features in a container, which is changed after the fit."""
    forms = feature_containers(rng, X)
    name = str(rng.choice(list(forms)))
    want = GraphClassifier().fit(X, y).predict_proba(X)
    model = GraphClassifier().fit(forms[name], y)
    must(np.allclose(model.predict_proba(X), want, atol=1e-9), f"features as {name}")
    before = model.predict_proba(X)
    content = getattr(forms[name], "data", forms[name])
    if name != "list":
        np.asarray(content)[...] *= -1
    must(np.array_equal(model.predict_proba(X), before), f"the model changes with {name}")


def same_weights(rng: np.random.Generator, n: int, y: np.ndarray) -> None:
    """Weights in a container."""
    W = np.triu(2.0 * rng.integers(1, 60, (n, n)) * (rng.random((n, n)) < 0.4), 1)
    W[np.arange(n - 1), np.arange(1, n)] = 2.0
    W += W.T
    forms = weight_containers(rng, W)
    name = str(rng.choice(list(forms)))
    want = GraphClassifier(graph="precomputed").fit(W, y).label_scores_
    got = GraphClassifier(graph="precomputed").fit(forms[name], y).label_scores_
    must(np.array_equal(got, want), f"weights as {name}")
