"""The data sets that choose the defaults, and draws of labels from them.

Two folders are read, and neither has to exist:

- ``$GDPA_CORPUS``: ``tables/*.csv`` (last column ``target``), ``text/*.csv`` (``text``, ``label``)
  with ``text/*-minilm.npz``, ``networks/*.npz``, ``images/*.npz``;
- ``$GDPA_DATA_HOME``: the networks and texts that earlier defaults were chosen on.

A task is a set, a number of labels and a draw. Rows of tables, texts and pictures are drawn anew in
every draw, at most :data:`ROWS`; networks are taken whole.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROWS = 1_500
SCORED_ROWS = 3_000  # of a network; more say little about an error
AT_RANDOM = "random"
LABELS = ("1", "2", "5", "20", AT_RANDOM)
RANDOM_LABELS = 10  # labels drawn from all rows, for each class
KINDS = ("table", "embedding", "bag of words", "links", "pictures")


@dataclass(frozen=True)
class DataSet:
    """A set of the corpus.

    Parameters
    ----------
    name : str
        Its name, unique in the corpus.
    kind : str
        One of :data:`KINDS`.
    X : DataFrame, ndarray or csr_array
        Features: a frame of raw cells for a table, otherwise numbers.
    y : ndarray of int of shape (n_rows,)
        Classes; -1 where they are unknown.
    links : csr_array or None
        Links of a network.
    shape : tuple of int, optional
        Height, width and channels of pictures.
    """

    name: str
    kind: str
    X: Any
    y: Any
    links: Any = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Task:
    """A data set with a few labels.

    Parameters
    ----------
    data : DataSet
        The rows of this draw.
    codes : ndarray of int of shape (n_rows,)
        Given classes, -1 where they are hidden.
    scored : ndarray of int
        Unlabelled rows that count.
    """

    data: DataSet
    codes: Any
    scored: Any


def folders() -> dict[str, Path]:
    """Return the folders that exist."""
    found = {}
    for name in ("GDPA_CORPUS", "GDPA_DATA_HOME"):
        path = Path(os.environ.get(name, ""))
        if os.environ.get(name) and path.is_dir():
            found[name] = path
    return found


def _numbers(values: Any) -> Any:
    """Number the classes 0, 1, ... in sorted order; -1 stays -1."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        known = values >= 0
        codes = np.full(values.size, -1)
        codes[known] = np.unique(values[known], return_inverse=True)[1]
        return codes
    return np.unique(values.astype(str), return_inverse=True)[1]


def tables(root: Path) -> Iterator[DataSet]:
    """Read the tables as frames of raw cells."""
    import pandas as pd

    for path in sorted(root.glob("tables/*.csv")):
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)
        target = frame.pop("target").astype(str).to_numpy(dtype=str)
        yield DataSet(path.stem, "table", frame, _numbers(target))


def embeddings(root: Path) -> Iterator[DataSet]:
    """Read the embedded texts."""
    for path in sorted(root.glob("text/*-minilm.npz")):
        with np.load(path) as stored:
            X = stored["X"].astype(np.float32)
            yield DataSet(path.stem.replace("-", " "), "embedding", X, _numbers(stored["y"]))


def bags_of_words(root: Path) -> Iterator[DataSet]:
    """Read the texts as term frequencies."""
    import pandas as pd
    from sklearn.feature_extraction.text import TfidfVectorizer

    for path in sorted(root.glob("text/*.csv")):
        frame = pd.read_csv(path, keep_default_na=False)
        vectorizer = TfidfVectorizer(min_df=2, sublinear_tf=True)
        X = sp.csr_array(vectorizer.fit_transform(frame["text"]))
        label = frame["label"].to_numpy(dtype=str)
        yield DataSet(f"{path.stem} words", "bag of words", X, _numbers(label))


def networks(root: Path, folder: str = "networks") -> Iterator[DataSet]:
    """Read the networks with features."""
    for path in sorted(root.glob(f"{folder}/*.npz")):
        with np.load(path) as stored:
            if "X" in stored:
                X = stored["X"]
            elif "node_features" in stored:
                X = stored["node_features"].astype(np.float64)
            else:
                parts = (stored["data"].astype(np.float64), stored["indices"], stored["indptr"])
                X = sp.csr_array(parts, shape=tuple(stored["shape"]))
            y = stored["y"] if "y" in stored else stored["node_labels"]
            i, j = stored["edges"].T
            ends = np.concatenate([i, j]), np.concatenate([j, i])
            W = sp.csr_array(sp.coo_array((np.ones(2 * i.size), ends), shape=(y.size, y.size)))
            W.data[:] = 1.0
            yield DataSet(path.stem, "links", X, _numbers(y), W)


def pictures_at_home(root: Path) -> Iterator[DataSet]:
    """Read MNIST and a part of CIFAR-10."""
    for name, shape in (("mnist", (28, 28)), ("cifar-2000", (32, 32, 3))):
        path = root / f"{name}.npz"
        if path.exists():
            with np.load(path) as stored:
                X = stored["X"].reshape(stored["y"].size, -1)
                unit = 255.0 if X.dtype == np.uint8 else 1.0
                rows = (X / unit).astype(np.float32)
                yield DataSet(name, "pictures", rows, _numbers(stored["y"]), shape=shape)


def cora_network() -> Iterator[DataSet]:
    """Read Cora."""
    from ..link_data import cora

    found = cora()
    if found is not None:
        yield DataSet("cora", "links", found[0], found[2], found[1])


def pictures(root: Path) -> Iterator[DataSet]:
    """Read pictures as one flat row each, with values between 0 and 1."""
    for path in sorted(root.glob("images/*.npz")):
        if path.stem.endswith("-features"):
            continue
        with np.load(path) as stored:
            X = stored["X"]
            rows = (X.reshape(len(X), -1) / 255.0).astype(np.float32)
            yield DataSet(path.stem, "pictures", rows, _numbers(stored["y"]), shape=X.shape[1:])


def data_sets(kinds: tuple[str, ...] = KINDS) -> Iterator[DataSet]:
    """Read all sets of these kinds."""
    found = folders()
    corpus, home = found.get("GDPA_CORPUS"), found.get("GDPA_DATA_HOME")
    readers: dict[str, list[tuple[Any, Path | None]]] = {
        "table": [(tables, corpus)],
        "embedding": [(embeddings, corpus), (embeddings, home)],
        "bag of words": [(bags_of_words, corpus), (bags_of_words, home)],
        "links": [(networks, corpus)],
        "pictures": [(pictures, corpus), (pictures_at_home, home)],
    }
    for kind in kinds:
        for reader, root in readers[kind]:
            if root is not None:
                yield from reader(root)
        if kind == "links" and home is not None:
            yield from networks(home, "graphs")
            yield from cora_network()


def take(X: Any, rows: Any) -> Any:
    """Return some rows of a frame or an array."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def draw(data: DataSet, labels: str, number: int, most_rows: int = ROWS) -> Task:
    """Draw rows and labels.

    Parameters
    ----------
    data : DataSet
        A set.
    labels : str
        Labels of each class, but never more than half of its rows; or "random": labels drawn from
        all rows, :data:`RANDOM_LABELS` for each class, of two classes at least.
    number : int
        Number of the draw.
    most_rows : int, default=1500
        Rows of sets other than networks.

    Returns
    -------
    Task
        Rows whose class has no label are not scored.
    """
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), number])
    if data.links is None and data.y.size > most_rows:
        rows = np.sort(rng.choice(data.y.size, most_rows, replace=False))
        data = DataSet(data.name, data.kind, take(data.X, rows), data.y[rows], None, data.shape)
    sizes = np.bincount(data.y[data.y >= 0])
    kept = np.flatnonzero(sizes >= 2)  # a class of one row cannot be scored
    usable = np.isin(data.y, kept)
    if labels == AT_RANDOM:
        rows = np.flatnonzero(usable)
        wanted = min(RANDOM_LABELS * kept.size, rows.size // 2)
        known = rng.choice(rows, wanted, replace=False)
        while np.unique(data.y[known]).size < 2:
            known = rng.choice(rows, wanted, replace=False)
    else:
        chosen = []
        for c in kept.tolist():
            rows = np.flatnonzero(data.y == c)
            chosen.append(rng.choice(rows, min(int(labels), rows.size // 2), replace=False))
        known = np.concatenate(chosen)
    codes = np.full(data.y.size, -1)
    codes[known] = data.y[known]
    free = np.flatnonzero((codes < 0) & np.isin(data.y, np.unique(data.y[known])))
    if free.size > SCORED_ROWS:
        free = np.sort(rng.choice(free, SCORED_ROWS, replace=False))
    return Task(data, codes, free)
