r"""A sample of the rows on which questions are weighed, whatever the size of the data.

Scores on a graph are the mean of a Gaussian field with covariance ``K = (L + gamma)^-1``; a label
at node i takes ``K_:i K_i: / K_ii`` off it. So the variance of the field given the labels says
where little is known yet. K is dense, so it is held for a sample of the rows, with a neighbour
graph of its own. A labelled row outside the sample is ``w' f + noise``, w being its weights to its
neighbours in the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import NearestNeighbors

from ..graph import neighbor_graph
from ..graph.adjacency import component_labels

FloatArray = NDArray[np.float64]

# Rows of the sample: K takes 32 MB and a third of a second.
SKETCH_ROWS = 2000
NEIGHBORS = 10
# Self-loop, against a diagonal of 1: the one that fits take with few labels.
SELF_LOOP = 0.01
# Labelled rows taken into account, the latest: their covariance is factorised anew for a question.
MOST_KNOWN = 1000


@dataclass(frozen=True)
class Sketch:
    """Rows of a sample, and the covariance of scores on their neighbour graph.

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
    weights_between : csr_array of shape (n_sampled, n_sampled)
        The neighbour graph.
    place : ndarray of int of shape (n_rows,), optional
        Position in the sample of the row that stands for each row; of a sample of a graph.
    """

    rows: NDArray[np.intp]
    points: Any
    covariance: FloatArray
    components: NDArray[np.intp]
    weights_between: sp.csr_array
    place: NDArray[np.intp] = field(default_factory=lambda: np.arange(0))

    def weights(self, X: Any) -> FloatArray:
        """Weights of other rows to the sample, adding up to ``1 / (1 + gamma)``.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features)
            The rows' features.

        Returns
        -------
        ndarray of shape (n_rows, n_sampled)
            The weights.
        """
        k = min(NEIGHBORS, self.rows.size)
        search = NearestNeighbors(n_neighbors=k).fit(self.points)
        distance, near = search.kneighbors(X)
        scale = np.maximum(distance[:, -1:], 1e-300)
        w = np.exp(-((distance / scale) ** 2))
        out = np.zeros((X.shape[0], self.rows.size))
        np.put_along_axis(out, near, w / w.sum(axis=1, keepdims=True) / (1.0 + SELF_LOOP), axis=1)
        return out

    def given(self, known: NDArray[np.intp], outside: FloatArray | None = None) -> Conditioned:
        """Condition on labelled rows.

        Parameters
        ----------
        known : ndarray of int
            Labelled rows, as positions in the sample.
        outside : ndarray of shape (n_outside, n_sampled), optional
            :meth:`weights` of labelled rows outside the sample.

        Returns
        -------
        Conditioned
            The field given the labels.
        """
        K = self.covariance
        cross = K[:, known]
        noise = np.zeros(known.size)
        inner = K[np.ix_(known, known)]
        if outside is not None and outside.shape[0]:
            extra = K @ outside.T
            far = outside @ extra
            inner = np.block([[inner, extra[known]], [extra[known].T, far]])
            cross = np.hstack([cross, extra])
            noise = np.concatenate([noise, np.ones(outside.shape[0])])
        jitter = 1e-9 * max(float(np.diagonal(inner).max(initial=0.0)), 1.0)
        inner = inner + np.diag(noise + jitter)
        factor = np.asarray(np.linalg.cholesky(inner), dtype=np.float64) if inner.size else inner
        half = scipy.linalg.solve_triangular(factor, cross.T, lower=True) if inner.size else cross.T
        return Conditioned(K, factor, half)


@dataclass(frozen=True)
class Conditioned:
    """The field given labels: ``C = K - H' H``, and the mean for any labels at the known rows.

    Parameters
    ----------
    covariance : ndarray of shape (n_sampled, n_sampled)
        K.
    factor : ndarray of shape (n_known, n_known)
        Cholesky factor of the covariance of the known rows.
    half : ndarray of shape (n_known, n_sampled)
        H, the factor's solve with the covariances between known rows and the sample.
    """

    covariance: FloatArray
    factor: FloatArray
    half: FloatArray

    def scores(self, targets: FloatArray) -> FloatArray:
        """Mean of the field.

        Parameters
        ----------
        targets : ndarray of shape (n_known, n_classes)
            One row per known row, those of the sample first.

        Returns
        -------
        ndarray of shape (n_sampled, n_classes)
            The scores.
        """
        if not self.factor.size:
            return np.zeros((self.covariance.shape[0], targets.shape[1]))
        inner = scipy.linalg.solve_triangular(self.factor, targets, lower=True)
        return np.asarray(self.half.T @ inner)

    def variances(self, nodes: NDArray[np.intp]) -> FloatArray:
        """Diagonal of C.

        Parameters
        ----------
        nodes : ndarray of int
            Which entries.

        Returns
        -------
        ndarray of shape (n_nodes,)
            The variances.
        """
        half = self.half[:, nodes]
        variance = self.covariance[nodes, nodes] - (half * half).sum(axis=0)
        return np.asarray(np.maximum(variance, 0.0))

    def correlations(self, node: int) -> FloatArray:
        """Correlation of one node with all, between 0 and 1.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        ndarray of shape (n_sampled,)
            The correlations; 0 with nodes that are known.
        """
        column = self.covariance[:, node] - self.half.T @ self.half[:, node]
        size = np.sqrt(self.variances(np.arange(column.size)))
        scale = size * size[node]
        rho = np.divide(column, scale, out=np.zeros_like(column), where=scale > 1e-9)
        return np.asarray(np.clip(rho, 0.0, 1.0))

    def and_also(self, node: int) -> Conditioned:
        """Condition on one more row of the sample, whatever its label will be."""
        column = self.covariance[:, node] - self.half.T @ self.half[:, node]
        size = np.sqrt(max(column[node], 1e-12))
        m = self.factor.shape[0]
        factor = np.zeros((m + 1, m + 1))
        factor[:m, :m] = self.factor
        if m:
            factor[m, :m] = self.half[:, node]
        factor[m, m] = size
        return Conditioned(self.covariance, factor, np.vstack([self.half, column / size]))


def sketch_rows(
    X: Any, *, candidates: NDArray[np.intp] | None = None, size: int = SKETCH_ROWS, seed: Any = 0
) -> Sketch:
    """Take a sample of rows and prepare its covariance.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features on comparable scales.
    candidates : ndarray of int, optional
        Rows to sample from; all by default.
    size : int, default=2000
        Rows of the sample; all candidates where there are no more.
    seed : int or sequence of int, default=0
        Seed of the sample.

    Returns
    -------
    Sketch
        The sample.
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
    return Sketch(rows, points, _covariance(W), _components(W), W)


def sketch_graph(W: sp.csr_array, *, size: int = SKETCH_ROWS, seed: Any = 0) -> Sketch:
    """Take a sample of the nodes of a graph, each standing for those nearest to it.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    size : int, default=2000
        Nodes of the sample; all where there are no more.
    seed : int or sequence of int, default=0
        Seed of the sample.

    Returns
    -------
    Sketch
        The sample: its weights are the sums of those between the nodes that its nodes stand for.
    """
    n = W.shape[0]
    if n <= size:
        return Sketch(np.arange(n), None, _covariance(W), _components(W), W, np.arange(n))
    rows = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    _, _, source = dijkstra(
        W, indices=rows, min_only=True, unweighted=True, return_predecessors=True
    )
    # Components without a sampled node: one node stands for each of them.
    lost = np.flatnonzero(source < 0)
    if lost.size:
        component = _components(W)
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
    return Sketch(rows, None, _covariance(coarse), _components(coarse), coarse, place)


def _components(W: sp.csr_array) -> NDArray[np.intp]:
    return np.asarray(component_labels(W)[1], dtype=np.intp)


def _covariance(W: sp.csr_array) -> FloatArray:
    """Inverse of the normalised Laplacian with the self-loop."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    S = (sp.diags_array(root) @ W @ sp.diags_array(root)).toarray()
    A = (1.0 + SELF_LOOP) * np.eye(degree.size) - S
    factor = scipy.linalg.cho_factor(A, lower=True)
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(degree.size)))
