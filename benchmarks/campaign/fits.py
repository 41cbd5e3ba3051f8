"""Fits over all options and kinds of labels, and what must hold of each."""

from __future__ import annotations

import dataclasses
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier
from gdpa.estimators import GraphOptions

from . import inputs
from .outcome import RIGHT, generator, must, quiet, refused

OPTIONS: dict[str, tuple[Any, ...]] = {
    "n_neighbors": ("auto", 1, 3, 10, 50),
    "bandwidth": ("self-tuning", "median", 1.0, 1e-3, 1e6),
    "rescale": (None, "minmax", "standard"),
    "laplacian": ("normalized", "combinatorial"),
    "algorithm": ("auto", "exact", "approximate"),
    "method": ("harmonic",) * 4 + ("gdpa", "min-cut", "spectral", "glr-box"),
    "label_weight": ("auto", "auto", 1.0, float("inf"), 1e-6, 1e6),
    "self_loop": ("auto", "auto", 0.0, 0.1, 1e3),
    "class_prior": (None, None, "labeled"),
    "abstain_below": (None, None, 0.6),
    "tol": (1e-6, 1e-3, 1e-9),
    "n_jobs": (None, 1, 2),
    "random_state": (0, 1, None),
}


def make_model(rng: np.random.Generator, unlabeled: Any, *, committee: bool = False) -> Any:
    """An estimator with a few options away from the default."""
    which = rng.random()
    # The default committee costs many members: a share of the cases.
    model: Any = CommitteeClassifier() if committee or which < 0.05 else GraphClassifier()
    if not committee and 0.05 <= which < 0.1:
        model = GDPAClassifier()
    chosen: dict[str, Any] = {"unlabeled": unlabeled}
    shape: dict[str, Any] = {}
    for name, values in OPTIONS.items():
        value = values[int(rng.integers(len(values)))]
        if rng.random() < 0.3:
            (chosen if name in model.get_params() else shape)[name] = value
    if type(model) is GraphClassifier:
        chosen["graph"] = "full" if which > 0.8 else "knn"
    elif "models" in model.get_params() and rng.random() < 0.3:
        chosen["models"] = LogisticRegression()
    known = {field.name for field in dataclasses.fields(GraphOptions)}
    if "options" in model.get_params():
        chosen["options"] = GraphOptions(**{k: v for k, v in shape.items() if k in known})
    return model.set_params(**chosen)


def graph_of(model: Any) -> str:
    """The kind of graph; a committee chooses its own."""
    return getattr(model, "graph", "auto")


def run(seed: int) -> str:
    """One fit."""
    rng = generator("fits", seed)
    data = inputs.make(rng)
    model = make_model(rng, data.unlabeled)
    X = data.X
    if rng.random() < 0.08 and type(model) is GraphClassifier:
        model.set_params(graph="precomputed")
        X = weights(rng, data)
    with quiet():
        try:
            model.fit(X, data.y)
        except (ValueError, MemoryError) as error:
            return refused(error)
        check_fit(model, data, X)
        if graph_of(model) != "precomputed":
            check_new_rows(rng, model, data)
        extra = rng.random()
        if extra < 0.05:
            check_stored(model, X)
        elif extra < 0.10:
            check_renamed(model, data, X)
        elif extra < 0.15 and graph_of(model) != "precomputed":
            check_permuted(rng, model, data)
        elif extra < 0.20 and graph_of(model) != "precomputed":
            check_scaled(rng, model, data)
        elif extra < 0.25:
            check_growing(rng, model, data, X)
    return RIGHT


def weights(rng: np.random.Generator, data: inputs.Data) -> Any:
    """A random graph in place of features."""
    n = data.known.size
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    W *= 10.0 ** rng.uniform(-3, 3)
    return sp.csr_array(W + W.T) if rng.random() < 0.5 else W + W.T


def check_fit(model: Any, data: inputs.Data, X: Any) -> None:
    """What must hold on the fitted samples."""
    n = data.known.size
    classes = list(model.classes_)
    labels = list(model.transduction_)
    must(len(labels) == n, "a label for every sample")
    must(all(label in classes for label in labels), "labels outside the classes")
    must(len(classes) == len({str(t) for t in data.truth[data.known]}), "the classes of y")
    given = [str(t) == str(v) for t, v in zip(data.truth, labels, strict=True)]
    must(np.array(given)[data.known].all(), "a given label is not kept in transduction_")
    probabilities_hold(model.label_scores_, n, len(classes))
    must(np.isfinite(model.objective_), f"objective_ {model.objective_}")
    if graph_of(model) == "precomputed":
        return
    first = model.predict_proba(X)
    probabilities_hold(first, n, len(classes))
    second = model.predict_proba(X.copy())
    must(np.array_equal(first, second), "predict_proba differs between X and a copy of it")


def probabilities_hold(p: np.ndarray, n: int, k: int) -> None:
    """Shape, range and sum."""
    must(p.shape == (n, k), f"probabilities of shape {p.shape}")
    must(np.isfinite(p).all(), "probabilities that are not finite")
    must((p >= 0).all() and np.allclose(p.sum(axis=1), 1.0, atol=1e-6), "no probabilities")


def check_new_rows(rng: np.random.Generator, model: Any, data: inputs.Data) -> None:
    """Any finite row gets a label."""
    rows = inputs.new_rows(rng, data.X)
    probabilities_hold(model.predict_proba(rows), rows.shape[0], model.classes_.size)
    labels = model.predict(rows)
    must(len(labels) == rows.shape[0], "a label for every row")
    must(
        np.isfinite(np.asarray(model.decision_function(rows), dtype=float)).all()
        or model.classes_.size == 1,
        "decision_function is not finite",
    )


def sure(p: np.ndarray) -> np.ndarray:
    """Rows whose first class is clearly ahead: rounding cannot turn them."""
    if p.shape[1] == 1:
        return np.ones(len(p), dtype=bool)
    top = np.sort(p, axis=1)
    return top[:, -1] - top[:, -2] > 1e-4


def check_stored(model: Any, X: Any) -> None:
    """Saved, loaded, pickled: the same predictions."""
    copy = pickle.loads(pickle.dumps(model))
    want = model.label_scores_ if graph_of(model) == "precomputed" else model.predict_proba(X)
    got = copy.label_scores_ if graph_of(model) == "precomputed" else copy.predict_proba(X)
    must(np.array_equal(want, got), "a pickle predicts otherwise")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        try:
            model.save(path)
        except ValueError:
            return
        loaded = type(model).load(path)
    got = loaded.label_scores_ if graph_of(model) == "precomputed" else loaded.predict_proba(X)
    must(np.allclose(want, got, atol=1e-9), "a loaded model predicts otherwise")
    must(list(model.classes_) == list(loaded.classes_), "a loaded model has other classes")


def untuned(model: Any) -> Any:
    """The same estimator without anything chosen from data, which ties may turn."""
    from sklearn.base import clone

    fresh = clone(model)
    fixed = {"label_weight": 1.0, "self_loop": 0.1, "n_neighbors": 3}
    fixed |= {"models": None, "abstain_below": None, "random_state": 0}
    if "options" in model.get_params():
        fixed["options"] = dataclasses.replace(model.options, algorithm="exact")
    fixed["class_prior"] = None  # classes of equal mass are a tie that no score shows
    return fresh.set_params(**{k: v for k, v in fixed.items() if k in fresh.get_params()})


def the_papers(model: Any) -> bool:
    """Whether the paper's algorithm decides: its linear programs have many optimal points."""
    return isinstance(model, GDPAClassifier) or getattr(model, "method", "") == "gdpa"


def check_renamed(model: Any, data: inputs.Data, X: Any) -> None:
    """Other names in another order: the same partition."""
    first = untuned(model).fit(X, data.y)
    k = first.classes_.size
    order = {str(c): f"n{k - i}" for i, c in enumerate(first.classes_)}
    y = np.array(
        [order[str(t)] if know else "?" for t, know in zip(data.truth, data.known, strict=True)]
    )
    second = untuned(model).set_params(unlabeled="?").fit(X, y)
    clear = sure(first.label_scores_) & sure(second.label_scores_)
    want = [order[str(v)] for v in first.transduction_]
    got = list(second.transduction_)
    same = np.array([a == b for a, b in zip(want, got, strict=True)])
    must(same[clear].all(), "renamed classes get other labels")


def check_permuted(rng: np.random.Generator, model: Any, data: inputs.Data) -> None:
    """Rows in another order: the same labels."""
    if the_papers(model):
        return  # its tree of classes and its eigenvectors have ties that no score shows
    rescale = model.options.rescale
    if not data.plain or (rescale == "standard" and data.X.shape[1] == 1):
        return  # equal distances: which neighbour is taken depends on the order
    if getattr(model, "method", "") == "spectral" and data.kind == "outlier":
        return  # the outlier's entry of the eigenvector is rounding: so is its sign
    order = rng.permutation(data.known.size)
    # A committee's trees are drawn at random, its folds dealt row by row: a graph is asked.
    if graph_of(model) == "auto":
        model = GraphClassifier(unlabeled=model.unlabeled, options=model.options)
    first, second = untuned(model), untuned(model)
    first.fit(data.X, data.y)
    second.fit(data.X[order], data.y[order])
    clear = sure(first.label_scores_)[order] & sure(second.label_scores_)
    same = np.array(
        [
            str(a) == str(b)
            for a, b in zip(first.transduction_[order], second.transduction_, strict=True)
        ]
    )
    must(same[clear].all(), "rows in another order get other labels")


def check_scaled(rng: np.random.Generator, model: Any, data: inputs.Data) -> None:
    """Features times a power of two: exactly the same distances, up to that power."""
    if not data.plain or the_papers(model):
        return  # the paper's kernel has a width of its own, and its programs have ties
    if isinstance(model.options.bandwidth, float):
        return
    factor = 2.0 ** int(rng.integers(-200, 200))
    first = untuned(model).fit(data.X, data.y)
    second = untuned(model).fit(data.X * factor, data.y)
    clear = sure(first.label_scores_) & sure(second.label_scores_)
    same = np.array(
        [str(a) == str(b) for a, b in zip(first.transduction_, second.transduction_, strict=True)]
    )
    must(same[clear].all(), f"features times {factor:g} give other labels")


def check_growing(rng: np.random.Generator, model: Any, data: inputs.Data, X: Any) -> None:
    """Questions and answers."""
    free = np.flatnonzero(~data.known)
    if free.size == 0:
        return
    asked = model.query(min(3, free.size))
    must(set(np.asarray(asked).tolist()) <= set(free.tolist()), "query names labelled samples")
    where = int(rng.choice(free))
    answer = model.classes_[int(rng.integers(model.classes_.size))]
    model.add_labels([where], [answer])
    must(str(model.transduction_[where]) == str(answer), "an added label is not kept")
    probabilities_hold(model.label_scores_, data.known.size, model.classes_.size)
