"""Where to draw the nodes of a graph: features, principal components, eigenvectors, springs.

One place for displays and reports: positions of all nodes (:func:`positions_of`), and a picture of
as many nodes as can be told apart (:func:`picture`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from ..errors import nearest_name
from ..graph import neighbor_graph
from ..graph.adjacency import degrees

__all__ = [
    "LAYOUTS",
    "MOST_NODES",
    "Picture",
    "picture",
    "positions_of",
    "principal_positions",
    "spectral_positions",
    "spring_positions",
]

FloatArray = NDArray[np.float64]

LAYOUTS = ("auto", "features", "pca", "spectral")
MOST_NODES = 800
MOST_EDGES = 2500
ROUNDS = 40


def positions_of(W: sp.csr_array, X: Any = None, layout: str = "auto") -> FloatArray:
    """Two coordinates per node.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    X : array-like or sparse matrix of shape (n_nodes, n_features), optional
        Features.
    layout : {"auto", "features", "pca", "spectral"}, default="auto"
        The two features themselves, their main directions, or the graph's eigenvectors. "auto"
        takes the first that is possible.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        The positions.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r} is not known; {nearest_name(layout, list(LAYOUTS))}")
    n = W.shape[0]
    if X is None:
        if layout in ("features", "pca"):
            raise ValueError(f"layout={layout!r} needs X")
        return spectral_positions(W)
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] != n:
        raise ValueError(f"X must have {n} rows, one per node, got shape {X.shape}")
    if layout == "spectral":
        return spectral_positions(W)
    if layout == "features" or (layout == "auto" and X.shape[1] == 2):
        if X.shape[1] != 2:
            raise ValueError(f"layout='features' needs two features, X has {X.shape[1]}")
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if X.shape[1] == 1:
        column = X.toarray() if sp.issparse(X) else X
        # One feature: the order of the nodes is the second coordinate.
        return np.column_stack([column[:, 0], np.arange(n) / max(n, 1)])
    return principal_positions(X)


def principal_positions(X: Any) -> FloatArray:
    """First two principal components, the largest entry of each positive.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_nodes, n_features)
        Features.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        The positions; 0 where there is no second component.
    """
    from sklearn.decomposition import PCA

    n, d = X.shape
    out = np.zeros((n, 2))
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    if 1e-100 < largest < 1e100:
        largest = 1.0
    largest = largest or 1.0
    few = min(n, d)
    if few <= 2:
        A = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64) / largest
        U, s, _ = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)
        out[:, : min(2, s.size)] = (U * s)[:, :2]
    else:
        solver = "arpack" if sp.issparse(X) else "auto"
        out[:] = PCA(2, svd_solver=solver, random_state=0).fit_transform(X / largest)
    signs = np.where(out[np.abs(out).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return np.asarray(out * (signs * largest))


def spectral_positions(W: sp.csr_array) -> FloatArray:
    """Second and third eigenvector of the normalised Laplacian.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        The positions, the largest entry of each coordinate positive.
    """
    n = W.shape[0]
    d = degrees(W)
    scale = 1.0 / np.sqrt(np.where(d > 0, d, 1.0))
    A = sp.diags_array(scale) @ W @ sp.diags_array(scale)
    if n < 100:
        _, V = np.linalg.eigh(A.toarray())
        V = V[:, ::-1]
    else:
        # The start is fixed, so that the picture is the same each time.
        start = np.random.default_rng(0).standard_normal(n)
        _, V = eigsh(A, k=3, which="LA", v0=start)
        V = V[:, ::-1]
    V = V[:, 1:3] * scale[:, None]
    if V.shape[1] < 2:
        V = np.hstack([V, np.zeros((n, 2 - V.shape[1]))])
    signs = np.sign(V[np.abs(V).argmax(axis=0), np.arange(2)])
    return np.asarray(V * np.where(signs == 0, 1.0, signs))


def spring_positions(W: sp.csr_array, start: FloatArray) -> FloatArray:
    """Fruchterman-Reingold from a given start: edges pull, all pairs push, steps shrink.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph, of a few hundred nodes: all pairs are looked at.
    start : ndarray of shape (n_nodes, 2)
        First positions.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        Positions in the unit square.
    """
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
    start = rng.standard_normal((nodes.size, 2)) if X is None else principal_positions(X[nodes])
    positions = spring_positions(inner, start)
    upper = sp.triu(inner, 1).tocoo()
    edges = np.column_stack([upper.coords[0], upper.coords[1]]).astype(np.intp)
    if edges.shape[0] > MOST_EDGES:
        edges = edges[np.sort(rng.choice(edges.shape[0], MOST_EDGES, replace=False))]
    return Picture(nodes, positions, edges)
