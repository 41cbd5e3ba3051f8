"""Graphs whose nodes have names: rows follow a stated order, or the graph is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp

from gdpa import GraphClassifier, classify
from gdpa.graph import Links, from_edges, from_networkx

from .outcome import CLEAR, RIGHT, generator, must, quiet, refused

NAMES = ("numbers", "numpy numbers", "words", "digits", "from one", "pairs", "floats", "mixed")


def node_names(rng: np.random.Generator, kind: str, n: int) -> list[Any]:
    """Names of the nodes, in the order of the rows."""
    if kind == "numbers":
        return list(range(n))
    if kind == "numpy numbers":
        return [np.int32(i) for i in range(n)]
    order = rng.permutation(n)
    return {
        "words": [f"n{i}" for i in order],
        "digits": [str(i) for i in order],
        "from one": [int(i) + 1 for i in order],
        "pairs": [(int(i), "x") for i in order],
        "floats": [float(i) + 0.5 for i in order],
        "mixed": [int(i) + n if i % 2 else f"n{i}" for i in order],
    }[kind]


def run(seed: int) -> str:
    """One graph, built in a random order."""
    rng = generator("nodes", seed)
    n = int(rng.integers(4, 30))
    W = np.triu(rng.integers(1, 9, (n, n)) * (rng.random((n, n)) < rng.uniform(0.1, 0.6)), 1)
    W = (W + W.T).astype(float)
    y = np.where(rng.random(n) < 0.5, rng.integers(2, size=n), -1)
    y[:2] = 0, 1
    kind = str(rng.choice(NAMES))
    names = node_names(rng, kind, n)
    G = nx.MultiGraph() if rng.random() < 0.2 else nx.Graph()
    pairs = [(i, j) for i in range(n) for j in range(i) if W[i, j]]
    for k in rng.permutation(len(pairs)):
        i, j = pairs[k] if rng.random() < 0.5 else pairs[k][::-1]
        if G.is_multigraph() and W[i, j] > 1:  # parallel edges are added
            G.add_edge(names[i], names[j], weight=W[i, j] - 1)
            G.add_edge(names[i], names[j], weight=1)
        else:
            G.add_edge(names[i], names[j], weight=W[i, j])
    G.add_nodes_from(names[i] for i in rng.permutation(n))
    with quiet():
        want = GraphClassifier(graph="precomputed").fit(sp.csr_array(W), y)
        ways = ["none", "nodes", "index", "moved index", "named graph"]
        # scikit-learn does not accept frames whose columns have names of several types.
        way = str(rng.choice(ways if kind == "mixed" else [*ways, "frame"]))
        return check(rng, G, W, y, names, kind, way, want)


def check(
    rng: np.random.Generator,
    G: Any,
    W: np.ndarray,
    y: np.ndarray,
    names: list[Any],
    kind: str,
    way: str,
    want: Any,
) -> str:
    """Fit in one way of stating the order."""
    n = len(names)
    model = GraphClassifier(graph="precomputed")
    numbered = kind in ("numbers", "numpy numbers")
    if way == "none" and not numbered:
        for fit in (lambda: model.fit(G, y), lambda: classify(G, y)):
            try:
                fit()
            except ValueError as error:
                must("nodes=" in str(error), "the error does not say how to state the order")
                refused(error)
            else:
                must(False, f"{kind} without an order are accepted")
        return CLEAR
    order = np.arange(n)
    if way == "none":
        model.fit(G, y)
    elif way == "nodes":
        order = rng.permutation(n)
        model.fit(G, y[order], nodes=[names[i] for i in order])
    elif way in ("index", "moved index"):
        if way == "moved index":
            order = rng.permutation(n)
        index = pd.Index([names[i] for i in order], tupleize_cols=False)
        if numbered and not np.array_equal(order, np.arange(n)):
            try:
                model.fit(G, pd.Series(y[order], index=index))
            except ValueError as error:
                return refused(error)
            must(False, "two different orders are accepted")
        model.fit(G, pd.Series(y[order], index=index))
    elif way == "named graph":
        graph = from_networkx(G, nodes=names)
        must(list(graph.nodes) == names, "the order of a named graph")
        must(np.array_equal(graph.W.toarray(), W), "the weights of a named graph")
        model.fit(Links(graph), y) if rng.random() < 0.5 else model.fit(graph, y)
    else:
        moved = rng.permutation(n)
        labels = pd.Index(names, tupleize_cols=False)
        frame = pd.DataFrame(W, index=labels, columns=labels).iloc[:, moved]
        if np.array_equal(moved, np.arange(n)):
            model.fit(frame, y)
        else:
            try:
                model.fit(frame, y)
            except ValueError as error:
                return refused(error)
            must(False, "a frame with columns in another order is accepted")
    # To rounding: a system whose rows are permuted is factorised in another order.
    same = np.allclose(model.label_scores_, want.label_scores_[order], atol=1e-7)
    must(same, "rows are not those of the names")
    edges = [(names[i], names[j], W[i, j]) for i in range(n) for j in range(i) if W[i, j]]
    if edges and kind in ("words", "digits", "from one"):
        listed = from_edges(pd.DataFrame(edges))
        at = {name: i for i, name in enumerate(names)}
        rows = [at[name] for name in listed.nodes]
        must(np.array_equal(listed.W.toarray(), W[np.ix_(rows, rows)]), "a list of edges")
    return RIGHT
