"""Positions of nodes for displays and reports.

:func:`positions_of` places all nodes by features or eigenvectors. :func:`picture` places a readable
number of nodes by a spring layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from ..arrays import FloatArray, NDArray
from ..graph import neighbor_graph
from ..graph.adjacency import degrees

MOST_EDGES = 2500
ROUNDS = 40


def positions_of(W: sp.csr_array, X: Any = None) -> FloatArray:
    """Return two coordinates per node.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    X : array-like or sparse matrix of shape (n_nodes, n_features), optional
        Features.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        Two features unchanged, the principal components of more, or eigenvectors of the graph.
    """
    n = W.shape[0]
    if X is None:
        return spectral_positions(W)
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] != n:
        raise ValueError(f"X must have {n} rows, one per node, got shape {X.shape}")
    if X.shape[1] > 2:
        return _principal_positions(X)
    X = np.asarray(X.toarray() if sp.issparse(X) else X)
    # With one feature, the node number is the second coordinate.
    return X if X.shape[1] == 2 else np.column_stack([X, np.arange(n) / max(n, 1)])


def _principal_positions(X: Any) -> FloatArray:
    """Return the first two principal components; a missing second one is zero."""
    from sklearn.decomposition import PCA

    n_components = min(2, *X.shape)
    if sp.issparse(X) and n_components == min(X.shape):
        X = X.toarray()  # ARPACK cannot compute all components
    positions = np.zeros((X.shape[0], 2))
    scale = float(abs(X).max()) or 1.0  # avoids overflow of squares
    pca = PCA(n_components, svd_solver="arpack" if sp.issparse(X) else "auto", random_state=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # constant features
        positions[:, :n_components] = scale * pca.fit_transform(X / scale)
    return positions


def spectral_positions(W: sp.csr_array) -> FloatArray:
    """Return the second and third eigenvector of the normalised Laplacian, with fixed signs."""
    n = W.shape[0]
    d = degrees(W)
    scale = 1.0 / np.sqrt(np.where(d > 0, d, 1.0))
    A = sp.diags_array(scale) @ W @ sp.diags_array(scale)
    if n < 100:
        _, V = np.linalg.eigh(A.toarray())
    else:
        # A fixed start vector makes the result deterministic.
        _, V = eigsh(A, k=3, which="LA", v0=np.random.default_rng(0).standard_normal(n))
    second = V[:, ::-1][:, 1:3] * scale[:, None]
    signs = np.where(second[np.abs(second).argmax(axis=0), np.arange(second.shape[1])] < 0, -1, 1)
    return np.asarray(np.pad(second * signs, ((0, 0), (0, 2 - second.shape[1]))))


def _spring_positions(W: sp.csr_array, start: FloatArray) -> FloatArray:
    """Return a Fruchterman-Reingold layout in the unit square; the cost is quadratic in nodes."""
    n = start.shape[0]
    spread = start.std(axis=0)
    P = ((start - start.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    if spread[1] == 0:  # on a line: a spiral separates nodes at the same position
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
        # Linear springs bring distant neighbours together in few rounds.
        force -= (degree * P - pull @ P) * np.float32(0.25) + np.float32(0.08) * P
        length = np.sqrt((force * force).sum(axis=1))[:, None]
        step = np.float32(0.12 * (1.0 - round_ / ROUNDS))
        P += force / np.maximum(length, 1e-9) * np.minimum(length, step)
    low, high = np.quantile(P, [0.005, 0.995], axis=0)
    size = np.where(high > low, high - low, 1.0)
    return np.asarray(np.clip((P - low) / size, 0.0, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class Picture:
    """Nodes to draw, their positions in the unit square, and edges as pairs of drawn nodes."""

    nodes: NDArray[np.intp]
    positions: NDArray[np.float64]
    edges: NDArray[np.intp]


def picture(
    W: sp.csr_array, X: Any, *, keep: NDArray[np.intp], most: int = 800, seed: int = 0
) -> Picture:
    """Choose the nodes to draw and their positions.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    X : ndarray of shape (n_nodes, n_features) or None
        Features on comparable scales, for the start of the layout and the neighbours of a sample.
    keep : ndarray of int
        Nodes to prefer, such as labelled ones.
    most : int, default=800
        Maximum number of nodes to draw.
    seed : int, default=0
        Random seed of the sample.

    Returns
    -------
    Picture
        Nodes, positions and edges.
    """
    n = W.shape[0]
    rng = np.random.default_rng(seed)
    if n <= most:
        nodes = np.arange(n)
        inner = W
    else:
        # Limit the preferred nodes: rings around all of them would hide the rest.
        first = keep if keep.size <= most // 12 else rng.choice(keep, most // 12, replace=False)
        rest = np.setdiff1d(np.arange(n), first)
        nodes = np.sort(np.concatenate([first, rng.choice(rest, most - first.size, False)]))
        if X is None:
            inner = W[nodes][:, nodes]
        else:
            # Link neighbours within the sample, which has hardly any edges of the graph.
            inner = neighbor_graph(X[nodes], n_neighbors=min(6, nodes.size - 1))
    start = rng.standard_normal((nodes.size, 2)) if X is None else _principal_positions(X[nodes])
    positions = _spring_positions(inner, start)
    upper = sp.triu(inner, 1).tocoo()
    edges = np.column_stack([upper.coords[0], upper.coords[1]]).astype(np.intp)
    if edges.shape[0] > MOST_EDGES:
        edges = edges[np.sort(rng.choice(edges.shape[0], MOST_EDGES, replace=False))]
    return Picture(nodes, positions, edges)
