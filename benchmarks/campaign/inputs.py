"""Hostile but finite features and labels of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

KINDS = (
    "normal",
    "blobs",
    "duplicates",
    "constant",
    "one point",
    "integers",
    "huge",
    "tiny",
    "mixed scales",
    "one column apart",
    "outlier",
    "collinear",
    "float32",
    "sparse",
    "zeros and ones",
    "far from zero",
    "sparse decades",
    "embedding",
    "largest",
)
MARKERS = ("number", "none", "nan", "text")
LABELS = ("int", "negative", "float", "bool", "text", "object", "numpy text", "wide text")


@dataclass(frozen=True)
class Data:
    """One data set: features, labels with unknown ones, and how unknown ones are marked."""

    X: Any
    y: Any
    unlabeled: Any
    known: np.ndarray
    truth: np.ndarray
    kind: str

    @property
    def plain(self) -> bool:
        """Whether distances are distinct and of ordinary size, so that nothing is a tie."""
        return self.kind in ("normal", "blobs", "outlier", "one column apart")


def features(rng: np.random.Generator, kind: str, n: int, d: int, codes: np.ndarray) -> Any:
    """Features of one kind; classes are apart in some of them."""
    X = rng.normal(size=(n, d)) + codes[:, None] * rng.uniform(0, 3)
    if kind == "duplicates":
        X = X[rng.integers(max(1, n // 3), size=n)]
    elif kind == "constant":
        X[:, rng.integers(d)] = rng.normal()
    elif kind == "one point":
        X[:] = X[0]
    elif kind == "integers":
        X = np.round(2 * X)
    elif kind == "huge":
        X *= 10.0 ** rng.choice([20, 100, 153, 155, 200, 300])
    elif kind == "tiny":
        X *= 10.0 ** -float(rng.choice([20, 100, 155, 160, 200, 300]))
    elif kind == "mixed scales":
        X *= 10.0 ** rng.uniform(-150, 150, d)
    elif kind == "one column apart":
        X[:, 0] *= 1e6
    elif kind == "outlier":
        X[rng.integers(n)] *= 1e4
    elif kind == "collinear":
        X = np.outer(X[:, 0], rng.normal(size=d))
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = sp.csr_array(X * (rng.random((n, d)) < 0.4))
        X.eliminate_zeros()
    elif kind == "zeros and ones":
        X = (X > 0).astype(float)
    elif kind == "far from zero":
        X += 10.0 ** rng.uniform(3, 15)
    elif kind == "embedding":  # rows of length 1 in many dimensions, in single precision
        X = np.hstack([X, rng.normal(size=(n, 30))])
        X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    elif kind == "largest":
        X *= rng.choice([1e307, 1.7e308]) / np.abs(X).max()
    elif kind == "sparse decades":
        X = sp.csr_array(X * (rng.random((n, d)) < 0.4) * 10.0 ** rng.uniform(-150, 150, (n, d)))
        X.eliminate_zeros()
    return X


def names(rng: np.random.Generator, kind: str, k: int) -> list[Any]:
    """Names of `k` classes."""
    return {
        "int": list(range(k)),
        "negative": [-7 * (i + 1) for i in range(k)],
        "float": [(0.5 if rng.random() < 0.2 else 0.0) + i for i in range(k)],
        "bool": [False, True],
        "text": ["a", "b", "c", "d", "e"][:k],
        "object": ["ä", "=1+1", "", " x ", "a,b"][:k],
        "numpy text": list(np.array(["zz", "y", "xxx", "w", "v"][:k])),
        "wide text": ["a" * 300, "b" * 2, "c\n", "\x1b[31m", "<b>"][:k],
    }[kind]


def make(rng: np.random.Generator, *, largest: int = 40) -> Data:
    """One random data set."""
    kind = str(rng.choice(KINDS))
    n = int(rng.integers(2, largest))
    d = int(rng.integers(1, 7))
    label_kind = str(rng.choice(LABELS))
    k = 2 if label_kind == "bool" else int(rng.choice([1, 2, 2, 2, 3, 4, 5]))
    codes = rng.integers(k, size=n)
    X = features(rng, kind, n, d, codes)
    share = rng.choice([0.1, 0.3, 0.6, 0.9, 1.0])
    known = rng.random(n) < share
    known[rng.integers(n)] = True
    for c in range(k):  # mostly at least one of each
        of_class = np.flatnonzero(codes == c)
        if of_class.size and rng.random() < 0.9:
            known[of_class[0]] = True
    if rng.random() < 0.2:  # noise
        codes = np.where(rng.random(n) < 0.2, rng.integers(k, size=n), codes)
    values = names(rng, label_kind, k)
    truth = np.array([values[c] for c in codes], dtype=object)
    marker = str(rng.choice(MARKERS))
    unlabeled = {"number": -1, "none": None, "nan": float("nan"), "text": "?"}[marker]
    y: list[Any] = [t if know else unlabeled for t, know in zip(truth, known, strict=True)]
    # A blank string is an unknown label, whatever the marker is.
    known &= np.array([not isinstance(t, str) or bool(t.strip()) for t in truth])
    if label_kind in ("int", "negative", "float") and marker == "number" and rng.random() < 0.7:
        return Data(X, np.array(y), unlabeled, known, truth, kind)
    container = np.empty(n, dtype=object)
    container[:] = y
    return Data(X, container, unlabeled, known, truth, kind)


def new_rows(rng: np.random.Generator, X: Any) -> Any:
    """Rows to predict: near, between, and as far as a number can be."""
    A = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    rows = [A[rng.integers(A.shape[0])], A.mean(axis=0) if np.abs(A).max() < 1e300 else A[0]]
    for size in rng.choice([1e3, 1e20, 1e100, 1e154, 1e200, 1.7e308], 2, replace=False):
        rows.append(size * rng.choice([-1.0, 0.0, 1.0], A.shape[1]))
    rows.append(np.full(A.shape[1], 1e-310))
    return sp.csr_array(np.array(rows)) if sp.issparse(X) else np.array(rows)
