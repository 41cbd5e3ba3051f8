r"""Draw a sample of rows on which rows to label next are compared, whatever the data size.

Scores on a graph are the mean of a Gaussian field with covariance ``K = (L + gamma)^-1``. A label
at node i subtracts ``K_:i K_i: / K_ii`` from it. The variance given the labels shows where little
is known yet. K is dense, so it is computed for a sample of the rows with a neighbour graph of its
own. A labelled row outside the sample is modelled as ``w' f + noise``, where w are its weights to
its neighbours in the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from ..arrays import FloatArray, NDArray
from ..graph import neighbor_graph
from ..graph.adjacency import component_labels

# Sample size. K then takes 32 MB and a third of a second.
SKETCH_ROWS = 2000
NEIGHBORS = 10
# Self-loop relative to a diagonal of 1. Fits with few labels use the same value.
SELF_LOOP = 0.01
# Only the latest labelled rows count, because their covariance is factorised for each query.
MOST_KNOWN = 1000


@dataclass(frozen=True)
class Sketch:
    """A sample of rows, and the covariance of scores on its neighbour graph.

    Parameters
    ----------
    rows : ndarray of int of shape (n_sampled,)
        The sample, ascending.
    points : ndarray or csr_array of shape (n_sampled, n_features)
        Their features.
    covariance : ndarray of shape (n_sampled, n_sampled)
        K.
    components : ndarray of int of shape (n_sampled,)
        Component of each sampled row in the neighbour graph.
    place : ndarray of int of shape (n_rows,), optional
        For a sample of a graph: position of the sampled row that represents each row.
    """

    rows: NDArray[np.intp]
    points: Any
    covariance: FloatArray
    components: NDArray[np.intp]
    place: NDArray[np.intp]

    def weights(self, X: Any) -> FloatArray:
        """Return the weights of other rows to the sample, which add up to ``1 / (1 + gamma)``."""
        from sklearn.neighbors import NearestNeighbors

        k = min(NEIGHBORS, self.rows.size)
        search = NearestNeighbors(n_neighbors=k).fit(self.points)
        distance, near = search.kneighbors(X)
        scale = np.maximum(distance[:, -1:], 1e-300)
        w = np.exp(-((distance / scale) ** 2))
        out = np.zeros((X.shape[0], self.rows.size))
        np.put_along_axis(out, near, w / w.sum(axis=1, keepdims=True) / (1.0 + SELF_LOOP), axis=1)
        return out

    def given(self, known: NDArray[np.intp], outside: FloatArray | None = None) -> Conditioned:
        """Condition the field on labelled rows.

        Parameters
        ----------
        known : ndarray of int
            Positions of labelled rows in the sample.
        outside : ndarray of shape (n_outside, n_sampled), optional
            :meth:`weights` of labelled rows outside the sample.
        """
        K = self.covariance
        cross = K[known]
        noise = np.zeros(known.size)
        inner = cross[:, known]
        if outside is not None and outside.shape[0]:
            extra = sp.csr_array(outside) @ K  # few weights per row
            far = sp.csr_array(outside) @ extra.T
            inner = np.block([[inner, extra[:, known].T], [extra[:, known], far]])
            cross = np.vstack([cross, extra])
            noise = np.concatenate([noise, np.ones(outside.shape[0])])
        jitter = 1e-9 * max(float(np.diagonal(inner).max(initial=0.0)), 1.0)
        inner = inner + np.diag(noise + jitter)
        factor = np.asarray(np.linalg.cholesky(inner), dtype=np.float64) if inner.size else inner
        return Conditioned(K, factor, cross)


@dataclass(frozen=True)
class Conditioned:
    """The field given labels, with covariance ``C = K - H' H``.

    H is the factor's solve with `cross`. Variances of a few nodes do not need all of it.

    Parameters
    ----------
    covariance : ndarray of shape (n_sampled, n_sampled)
        K.
    factor : ndarray of shape (n_known, n_known)
        Cholesky factor of the covariance of the known rows.
    cross : ndarray of shape (n_known, n_sampled)
        Covariances of the known rows and the sample, or H.
    solved : bool, default=False
        Whether `cross` is H.
    """

    covariance: FloatArray
    factor: FloatArray
    cross: FloatArray
    solved: bool = False

    @cached_property
    def half(self) -> FloatArray:
        """H."""
        return self._half(slice(None))

    def _half(self, nodes: Any) -> FloatArray:
        """Return columns of H."""
        if "half" in self.__dict__:
            return self.half[:, nodes]
        cross = self.cross[:, nodes]
        if self.solved or not cross.size:
            return cross
        # In parts, because the solver stops all other threads of the process.
        parts = np.array_split(cross, cross.shape[1] // 100 + 1, axis=1)
        return np.hstack([scipy.linalg.solve_triangular(self.factor, p, lower=True) for p in parts])

    def scores(self, targets: FloatArray) -> FloatArray:
        """Return the mean of the field for `targets`: one row per known row, the sample's first."""
        if not self.factor.size:
            return np.zeros((self.covariance.shape[0], targets.shape[1]))
        inner = scipy.linalg.solve_triangular(self.factor, targets, lower=True)
        return np.asarray(self.half.T @ inner)

    def variances(self, nodes: NDArray[np.intp]) -> FloatArray:
        """Return the variances of some nodes, which are entries of the diagonal of C."""
        half = self._half(nodes)
        variance = self.covariance[nodes, nodes] - (half * half).sum(axis=0)
        return np.asarray(np.maximum(variance, 0.0))

    def correlations(self, node: int) -> FloatArray:
        """Return the correlations of one node with all, clipped to [0, 1]; 0 with known nodes."""
        column = self.covariance[:, node] - self.half.T @ self.half[:, node]
        size = np.sqrt(self.variances(np.arange(column.size)))
        scale = size * size[node]
        rho = np.divide(column, scale, out=np.zeros_like(column), where=scale > 1e-9)
        return np.asarray(np.clip(rho, 0.0, 1.0))

    def condition_on(self, node: int) -> Conditioned:
        """Condition on one more row of the sample; the covariance does not depend on its label."""
        column = self.covariance[:, node] - self.half.T @ self.half[:, node]
        size = np.sqrt(max(column[node], 1e-12))
        m = self.factor.shape[0]
        factor = np.zeros((m + 1, m + 1))
        factor[:m, :m] = self.factor
        factor[m, :m], factor[m, m] = self.half[:, node], size
        half = np.vstack([self.half, column / size])
        return Conditioned(self.covariance, factor, half, solved=True)


def sketch_rows(
    X: Any, *, candidates: NDArray[np.intp] | None = None, size: int = SKETCH_ROWS, seed: Any = 0
) -> Sketch:
    """Sample rows and compute their covariance.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features on comparable scales.
    candidates : ndarray of int, optional
        Rows to sample from; all rows by default.
    size : int, default=2000
        Maximum number of sampled rows.
    seed : int or sequence of int, default=0
        Random seed.
    """
    rows = np.arange(X.shape[0]) if candidates is None else candidates
    if rows.size > size:
        rows = np.random.default_rng(seed).choice(rows, size, replace=False)
    rows = np.sort(rows)
    points = X[rows]
    if rows.size == 1:
        W = sp.csr_array((1, 1))
    else:
        W = neighbor_graph(points, n_neighbors=min(NEIGHBORS, rows.size - 1))
    return _sketch(rows, W, points)


def sketch_graph(W: sp.csr_array, *, size: int = SKETCH_ROWS, seed: Any = 0) -> Sketch:
    """Sample nodes of a graph; each sampled node represents the nodes nearest to it.

    The weight between two sampled nodes is the sum of the weights between the nodes that they
    represent.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    size : int, default=2000
        Maximum number of sampled nodes.
    seed : int or sequence of int, default=0
        Random seed.
    """
    n = W.shape[0]
    if n <= size:
        return _sketch(np.arange(n), W, place=np.arange(n))
    rows = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    _, _, source = dijkstra(
        W, indices=rows, min_only=True, unweighted=True, return_predecessors=True
    )
    # One node represents each component without a sampled node.
    lost = np.flatnonzero(source < 0)
    if lost.size:
        component = component_labels(W)[1]
        _, first = np.unique(component[lost], return_index=True)
        stand = np.full(int(component.max()) + 1, -1)
        stand[component[lost[first]]] = lost[first]
        source[lost] = stand[component[lost]]
        rows = np.sort(np.concatenate([rows, lost[first][:size]]))
    place = np.minimum(np.searchsorted(rows, source), rows.size - 1)
    P = sp.csr_array((np.ones(n), (np.arange(n), place)), shape=(n, rows.size))
    coarse = (P.T @ W @ P).tocsr()
    coarse.setdiag(0.0)
    coarse.eliminate_zeros()
    return _sketch(rows, coarse, place=place)


def _sketch(
    rows: NDArray[np.intp], W: sp.csr_array, points: Any = None, place: Any = None
) -> Sketch:
    """Invert the normalised Laplacian with the self-loop, and find the components."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    S = (sp.diags_array(root) @ W @ sp.diags_array(root)).toarray()
    A = (1.0 + SELF_LOOP) * np.eye(degree.size) - S
    factor = scipy.linalg.cho_factor(A, lower=True)
    K = np.asarray(scipy.linalg.cho_solve(factor, np.eye(degree.size)))
    components = np.asarray(component_labels(W)[1], dtype=np.intp)
    return Sketch(rows, points, K, components, np.arange(0) if place is None else place)
