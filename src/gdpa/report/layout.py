"""Where to draw the nodes of a graph: principal components, then springs and repulsion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph import neighbor_graph

__all__ = ["MOST_NODES", "Picture", "picture"]

MOST_NODES = 800
MOST_EDGES = 2500
ROUNDS = 40


@dataclass(frozen=True)
class Picture:
    """Nodes to draw, their places and the edges between them.

    Parameters
    ----------
    nodes : ndarray of int
        Which nodes are drawn.
    positions : ndarray of shape (n_drawn, 2)
        Places in the unit square.
    edges : ndarray of shape (n_edges, 2)
        Pairs of drawn nodes.
    """

    nodes: NDArray[np.intp]
    positions: NDArray[np.float64]
    edges: NDArray[np.intp]


def picture(
    W: sp.csr_array, X: Any, *, keep: NDArray[np.intp], most: int = MOST_NODES, seed: int = 0
) -> Picture:
    """Choose nodes and places for them.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    X : ndarray of shape (n_nodes, n_features) or None
        Features, on comparable scales; they give the first places, and the neighbours of a sample.
    keep : ndarray of int
        Nodes that should be drawn if there is room (labelled ones).
    most : int, default=800
        Most nodes to draw.
    seed : int, default=0
        Seed of the sample.

    Returns
    -------
    Picture
        The picture.
    """
    n = W.shape[0]
    rng = np.random.default_rng(seed)
    if n <= most:
        nodes = np.arange(n)
        inner = W
    else:
        # A few labelled ones: rings around all of them would hide the rest.
        first = keep if keep.size <= most // 12 else rng.choice(keep, most // 12, replace=False)
        rest = np.setdiff1d(np.arange(n), first)
        nodes = np.sort(np.concatenate([first, rng.choice(rest, most - first.size, False)]))
        if X is None:
            inner = W[nodes][:, nodes]
        else:
            # Neighbours within the sample: of the graph's own edges hardly one would be left.
            inner = neighbor_graph(X[nodes], n_neighbors=min(6, nodes.size - 1))
    start = rng.standard_normal((nodes.size, 2)) if X is None else _principal(X[nodes])
    positions = _springs(inner, start)
    upper = sp.triu(inner, 1).tocoo()
    edges = np.column_stack([upper.coords[0], upper.coords[1]]).astype(np.intp)
    if edges.shape[0] > MOST_EDGES:
        edges = edges[np.sort(rng.choice(edges.shape[0], MOST_EDGES, replace=False))]
    return Picture(nodes, positions, edges)


def _principal(X: Any) -> NDArray[np.float64]:
    """First two principal components, their signs fixed."""
    A = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    A = A - A.mean(axis=0)
    scale = float(np.abs(A).max(initial=0.0)) or 1.0
    U, s, _ = np.linalg.svd(A / scale, full_matrices=False)
    out = np.zeros((A.shape[0], 2))
    k = min(2, s.size)
    out[:, :k] = U[:, :k] * s[:k]
    out *= np.where(out[np.abs(out).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return out


def _springs(W: sp.csr_array, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fruchterman-Reingold from a given start: edges pull, all pairs push, steps shrink."""
    n = start.shape[0]
    spread = start.std(axis=0)
    P = ((start - start.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    if spread[1] == 0:  # nothing to tell the nodes apart: spiral, so that none hides another
        angle = np.arange(n) * 2.399963
        P += 0.05 * np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
    P *= np.float32(0.3)
    pull = sp.csr_array(W != 0, dtype=np.float32)
    degree = np.asarray(pull.sum(axis=1)).ravel()[:, None]
    ideal = np.float32(1.0 / np.sqrt(n))
    for round_ in range(ROUNDS):
        squares = (P * P).sum(axis=1)
        distance = squares[:, None] + squares[None, :] - 2.0 * (P @ P.T)
        push = ideal * ideal / np.maximum(distance, 1e-4 * ideal * ideal)
        np.fill_diagonal(push, 0.0)
        force = push.sum(axis=1)[:, None] * P - push @ P
        # Springs: linear, so that far ends come together in few rounds.
        force -= (degree * P - pull @ P) * np.float32(0.25) + np.float32(0.08) * P
        length = np.sqrt((force * force).sum(axis=1))[:, None]
        step = np.float32(0.12 * (1.0 - round_ / ROUNDS))
        P += force / np.maximum(length, 1e-9) * np.minimum(length, step)
    low, high = np.quantile(P, [0.005, 0.995], axis=0)
    size = np.where(high > low, high - low, 1.0)
    return np.asarray(np.clip((P - low) / size, 0.0, 1.0), dtype=np.float64)
