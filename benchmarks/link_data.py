"""Networks for the links benchmark: Cora, and generated ones like it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Numbers of nodes, classes, words and links a node, words a document, and the share of links within
# a class, as the three networks have them. Classes consist of groups, as topics do; some labels
# are those of another class, so that accuracies are near the published ones.
KINDS: Mapping[str, Mapping[str, Any]] = {
    "like Cora": {
        "n": 2_708,
        "k": 7,
        "words": 1_433,
        "length": 18,
        "degree": 3.9,
        "within": 0.9,
        "own": 0.45,
        "mixed": 0.08,
    },
    "like Citeseer": {
        "n": 3_327,
        "k": 6,
        "words": 3_703,
        "length": 32,
        "degree": 2.7,
        "within": 0.88,
        "own": 0.5,
        "mixed": 0.12,
    },
    "like PubMed": {
        "n": 19_717,
        "k": 3,
        "words": 500,
        "length": 50,
        "degree": 4.5,
        "within": 0.85,
        "own": 0.25,
        "mixed": 0.12,
    },
}
GROUPS = 10


def cora() -> tuple[Any, Any, NDArray[np.int64], tuple[Any, Any]] | None:
    """Features, links, classes and the public split; None where the file is not at hand."""
    home = os.environ.get("GDPA_DATA_HOME")
    path = None if home is None else Path(home, "cora.npz")
    if path is None or not path.exists():
        return None
    with np.load(path) as data:
        shape = tuple(int(s) for s in data["shape"])
        indices, indptr = data["feature_indices"], data["feature_indptr"]
        X = sp.csr_array((np.ones(indices.size), indices, indptr), shape=shape)
        i, j = data["edges"].T
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        W = sp.csr_array(sp.coo_array((np.ones(2 * i.size), ends), shape=(shape[0], shape[0])))
        split = data["public_train"], data["public_test"]
        return X, W, data["labels"].astype(np.int64), split


def random_split(truth: NDArray[Any], seed: int, per_class: int = 20) -> tuple[Any, Any]:
    """So many labels of each class; all other nodes are the test."""
    rng = np.random.default_rng(seed)
    classes = range(int(truth.max()) + 1)
    train = [rng.choice(np.flatnonzero(truth == c), per_class, replace=False) for c in classes]
    known = np.concatenate(train)
    return known, np.setdiff1d(np.arange(truth.size), known)


def _of_group(group: NDArray[Any], pull: NDArray[Any], rng: Any) -> Any:
    """A function that draws, for given groups, one member each with chances as `pull` says."""
    order = np.argsort(group, kind="stable")
    sums = np.cumsum(pull[order])
    sizes = np.bincount(group)
    ends = np.cumsum(sizes)
    below = np.where(ends - sizes > 0, sums[np.maximum(ends - sizes - 1, 0)], 0.0)

    def draw(wanted: NDArray[Any]) -> NDArray[Any]:
        top = sums[ends[wanted] - 1]
        at = np.searchsorted(sums, below[wanted] + rng.random(wanted.size) * (top - below[wanted]))
        return order[np.minimum(at, group.size - 1)]

    return draw


def citation_like(kind: str, seed: int) -> tuple[Any, Any, NDArray[np.int64]]:
    """Documents with words and links; degrees have a long tail, some nodes no link.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    seed : int
        Seed.

    Returns
    -------
    X : csr_array
        Which words a document has; TF-IDF where there are few words.
    W : csr_array
        Links.
    truth : ndarray of int
        Classes.
    """
    p = KINDS[kind]
    n, k, words = p["n"], p["k"], p["words"]
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(k, 8.0))
    topic = rng.choice(k, n, p=shares)
    group = topic * GROUPS + rng.integers(0, GROUPS, n)
    pull = rng.pareto(2.5, n) + 0.3
    pull[rng.random(n) < 0.015] = 1e-9
    m = round(n * p["degree"] / 2 * 1.08)
    everyone = np.zeros(n, dtype=np.int64)
    first = _of_group(everyone, pull, rng)(np.zeros(m, dtype=np.int64))
    u = rng.random(m)
    second = _of_group(everyone, pull, rng)(np.zeros(m, dtype=np.int64))
    near = _of_group(topic, pull, rng)(topic[first])
    nearest = _of_group(group, pull, rng)(group[first])
    second = np.where(u < 0.8 * p["within"], nearest, np.where(u < p["within"], near, second))
    proper = first != second
    ends = first[proper], second[proper]
    W = sp.coo_array((np.ones(ends[0].size), ends), shape=(n, n)).tocsr()
    W = sp.csr_array(W + W.T)
    W.data[:] = 1.0
    X = _words(topic, group, k, words, p["length"], p["own"], rng)
    if words <= 500:
        seen = np.bincount(X.indices, minlength=words) + 1.0
        X = sp.csr_array(X @ sp.diags_array(np.log(n / seen) + 0.1))
    truth = np.where(rng.random(n) < p["mixed"], rng.choice(k, n, p=shares), topic)
    return X, W, truth


def _words(
    topic: NDArray[Any],
    group: NDArray[Any],
    k: int,
    words: int,
    length: int,
    own: float,
    rng: Any,
) -> sp.csr_array:
    """Words of each document: some of its topic, some of its group, the rest of the language."""
    common = rng.permutation(1.0 / np.arange(1, words + 1) ** 0.7)
    topics = common * rng.gamma(0.25, size=(k, words))
    groups = topics[np.arange(k * GROUPS) // GROUPS] * rng.gamma(0.3, size=(k * GROUPS, words))
    lists = [np.cumsum(a / a.sum(axis=-1, keepdims=True), axis=-1) for a in (topics, groups)]
    spoken = np.cumsum(common / common.sum())
    counts = np.maximum(1, rng.poisson(1.25 * length, topic.size))
    document = np.repeat(np.arange(topic.size), counts)
    u, v = rng.random(document.size), rng.random(document.size)
    word = np.searchsorted(spoken, v)
    for table, of, chosen in (
        (lists[0], topic, u < own / 2),
        (lists[1], group, (u >= own / 2) & (u < own)),
    ):
        at = np.flatnonzero(chosen)
        for value in np.unique(of):
            rows = at[of[document[at]] == value]
            word[rows] = np.searchsorted(table[value], v[rows])
    word = np.minimum(word, words - 1)
    X = sp.coo_array((np.ones(word.size), (document, word)), shape=(topic.size, words)).tocsr()
    X.data[:] = 1.0
    return sp.csr_array(X)
