"""Positions of a graph's nodes in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from ..errors import nearest_name
from ..graph import degrees

__all__ = ["LAYOUTS", "positions_of", "spectral_positions"]

FloatArray = NDArray[np.float64]

LAYOUTS = ("auto", "features", "pca", "spectral")


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
    from sklearn.decomposition import PCA

    return np.asarray(
        PCA(2, svd_solver="arpack" if sp.issparse(X) else "auto", random_state=0).fit_transform(X)
    )


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
