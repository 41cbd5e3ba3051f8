"""Fits on features and links together: graphs that nobody would draw, rows without either."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gdpa.graph import Links

from . import fits, inputs
from .outcome import RIGHT, generator, must, quiet, refused

KINDS = (
    "classes",
    "random",
    "decades",
    "huge",
    "tiny",
    "empty",
    "star",
    "complete",
    "two parts",
    "loops",
    "whole numbers",
    "hubs",
)
# Refused by name, each of them.
DAMAGES = ("one-sided", "negative", "nan", "infinite", "too small", "words")


def run(seed: int) -> str:
    """One fit with links."""
    rng = generator("links", seed)
    data = inputs.make(rng)
    n = data.known.size
    W = graph(rng, str(rng.choice(KINDS)), n, data.truth)
    damage = str(rng.choice(DAMAGES)) if n > 2 and rng.random() < 0.08 else ""
    given = damaged(rng, W, damage) if damage else shaped(rng, W)
    with quiet():
        model = fits.make_model(rng, data.unlabeled, committee=True)
        try:
            model.fit(data.X, data.y, adjacency=given)
        except (ValueError, MemoryError) as error:
            return refused(error)
        must(not damage, f"a graph that is {damage} was taken")
        check_fit(model, data)
        check_rows(rng, model, data, W)
        extra = rng.random()
        if extra < 0.1:
            fits.check_growing(rng, model, data, data.X)
        elif extra < 0.2:
            fits.check_stored(model, data.X)
    return RIGHT


def graph(rng: np.random.Generator, kind: str, n: int, truth: np.ndarray) -> np.ndarray:
    """Symmetric weights of one kind."""
    U = np.triu(rng.random((n, n)) < 0.2, 1) * rng.random((n, n))
    if kind == "classes":
        same = np.array([[str(a) == str(b) for b in truth] for a in truth])
        U = np.triu(rng.random((n, n)) < np.where(same, 0.3, 0.03), 1).astype(float)
    elif kind == "decades":
        U *= 10.0 ** rng.uniform(-100, 100, (n, n))
    elif kind == "huge":
        U *= 10.0 ** float(rng.choice([100, 155, 300]))
    elif kind == "tiny":
        U *= 10.0 ** -float(rng.choice([100, 155, 300, 320]))
    elif kind == "empty":
        U = np.zeros((n, n))
    elif kind == "star":
        U = np.zeros((n, n))
        U[0, 1:] = 1.0
    elif kind == "complete":
        U = np.triu(np.ones((n, n)), 1)
    elif kind == "two parts":
        U[: n // 2, n // 2 :] = 0.0
    elif kind == "whole numbers":
        U = np.round(3 * U)
    elif kind == "hubs":
        U[: max(1, n // 10)] = np.triu(np.ones((n, n)), 1)[: max(1, n // 10)] * 1e6
    W = U + U.T
    if kind == "loops":
        W[np.diag_indices(n)] = rng.random(n)
    return W


def shaped(rng: np.random.Generator, W: np.ndarray) -> Any:
    """The same graph in one of the forms that are taken."""
    form = int(rng.integers(5))
    if form == 0:
        return W
    if form == 1:
        return sp.csr_array(W)
    if form == 2:  # entries in two halves, some of them explicit zeros
        half = sp.coo_array(W / 2.0)
        data = np.concatenate([half.data, half.data, [0.0]])
        rows = np.concatenate([half.coords[0], half.coords[0], [0]])
        columns = np.concatenate([half.coords[1], half.coords[1], [0]])
        return sp.coo_array((data, (rows, columns)), shape=W.shape)
    if form == 3:
        return Links(sp.csr_array(W))
    return sp.csc_matrix(W)


def damaged(rng: np.random.Generator, W: np.ndarray, damage: str) -> Any:
    """A graph that must be refused."""
    W = W.copy()
    n = W.shape[0]
    at = (0, n - 1)
    if damage == "one-sided":
        W[at] = 2.0 * W.max() + 1.0
        return W
    if damage == "too small":
        return W[:-1, :-1]
    if damage == "words":
        return np.where(W > 0, "linked", "not")
    W[at] = W[at[::-1]] = {"negative": -1.0, "nan": np.nan, "infinite": np.inf}[damage]
    return sp.csr_array(W) if rng.random() < 0.5 else W


def check_fit(model: Any, data: inputs.Data) -> None:
    """What must hold on the fitted samples."""
    n, k = data.known.size, model.classes_.size
    fits.probabilities_hold(model.label_scores_, n, k)
    labels = [str(v) for v in model.transduction_]
    given = np.array([str(t) == v for t, v in zip(data.truth, labels, strict=True)])
    must(given[data.known].all(), "a given label is not kept in transduction_")
    must(np.isfinite(model.objective_), f"objective_ {model.objective_}")
    share = getattr(model, "graph_share_", None)
    if share is not None:
        must(np.isfinite(share).all() and (share >= 0).all(), "graph_share_ is no share")
        must((share <= 1.0 + 1e-9).all(), "graph_share_ above 1")


def check_rows(rng: np.random.Generator, model: Any, data: inputs.Data, W: np.ndarray) -> None:
    """New rows by features, by links, by both, and with links to nobody."""
    rows = inputs.new_rows(rng, data.X)
    m, n, k = rows.shape[0], data.known.size, model.classes_.size
    links = rng.random((m, n)) * (rng.random((m, n)) < 0.3)
    links *= 10.0 ** float(rng.choice([0, 0, -300, 100, 300]))
    links[0] = W[0]
    links[-1] = 0.0
    given = sp.csr_array(links) if rng.random() < 0.5 else links
    for X, adjacency in ((rows, None), (None, given), (rows, given)):
        try:
            found = model.predict_proba(X, adjacency=adjacency)
        except ValueError as error:
            refused(error)
            alone = adjacency is None and "adjacency=" in str(error)  # the links alone carry it
            must(alone or n < 3, "a finite row was refused")
            continue
        fits.probabilities_hold(found, m, k)
        must(len(model.predict(X, adjacency=adjacency)) == m, "a label for every row")
    if model.ensemble_.linked:
        share = model.graph_share(rows, adjacency=given)
        must(np.isfinite(share).all() and (share >= 0).all(), "graph_share is no share")
