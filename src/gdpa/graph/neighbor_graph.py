"""Sparse k-nearest-neighbour graphs with the exponential kernel, and its bandwidth.

    w_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j))   where j is a neighbour of i or i one of j

sigma is the same for all nodes (a number, or the median of the distances), or self-tuning
(Zelnik-Manor and Perona, 2004): sigma_i is the distance of node i to its 7th neighbour. sigma = 1
is the paper's kernel exp(-|f_i - f_j|^2). :func:`neighbor_graphs` builds all graphs: one search
serves several numbers of neighbours, and new points can be attached to each graph later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import get_index_dtype

from .. import memory
from ..arrays import FloatArray
from ..checks import check_positive
from ..codec import storable
from ..errors import unknown_choice
from ..policy import DEFAULT_POLICY, Policy
from .adjacency import MatrixLike, check_adjacency, csr_from_parts
from .features import check_n_neighbors, row_blocks
from .neighbors import NeighborIndex

BANDWIDTHS = ("self-tuning", "median")

SCALE_NEIGHBOR = 7
# Smallest weight of a neighbour graph, by type.
SMALLEST_WEIGHT = {np.dtype(np.float32): 1e-37, np.dtype(np.float64): 1e-300}


@storable("neighbor-graph")
@dataclass(frozen=True)
class NeighborGraph:
    """A neighbour graph to which new points can be attached.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric weights in (0, 1], zero diagonal.
    index : NeighborIndex
        The fitted points.
    scales : ndarray of shape (n_samples,)
        sigma_i of each node (all equal for a fixed or median bandwidth).
    n_neighbors : int
        Number of neighbours per node.
    bandwidth : str or float
        The rule, or sigma.
    algorithm : str
        The search structure.
    recall : float
        Share of true neighbours found: 1 if exact, else measured on a sample.
    """

    W: sp.csr_array
    index: NeighborIndex
    scales: NDArray[np.float64]
    n_neighbors: int
    bandwidth: str | float
    algorithm: str
    recall: float

    def __post_init__(self) -> None:
        n = self.index.X.shape[0]
        if self.W.shape != (n, n) or self.W.data.min(initial=1.0) <= 0:
            raise ValueError(f"W must have positive weights between {n} nodes")
        if self.scales.shape != (n,) or not (0 < self.scales.min() <= self.scales.max() < np.inf):
            raise ValueError(f"scales must be {n} positive numbers")
        check_bandwidth(self.bandwidth)
        if self.n_neighbors < 1 or not 0 <= self.recall <= 1:
            raise ValueError(f"n_neighbors={self.n_neighbors} or recall={self.recall} out of range")

    def check_stored(self) -> None:
        """Check that weights from a file are symmetric, as those that are built always are."""
        check_adjacency(self.W)

    def attach(self, X: MatrixLike) -> sp.csr_array:
        """Return the weights between new points and the nodes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New points.

        Returns
        -------
        csr_array of shape (n_queries, n_samples)
            `n_neighbors` weights in (0, 1] per row. With self-tuning, the scale of a new point is
            its distance to the 7th neighbour; otherwise it is that of the graph.
        """
        n = self.index.X.shape[0]
        k = min(self.n_neighbors, n)
        asked = min(n, max(k, SCALE_NEIGHBOR)) if self.bandwidth == "self-tuning" else k
        near = self.index.query(X, asked)
        if self.bandwidth == "self-tuning":
            row_scales = local_scales(near.distances, fallback=float(np.median(self.scales)))
        else:
            row_scales = np.full(near.indices.shape[0], self.scales[0])
        indices = near.indices[:, :k]
        w = kernel_weights(
            near.distances[:, :k], row_scales[:, None], self.scales[indices], dtype=self.W.dtype
        )
        return _rows_to_csr(indices, w, n)


def neighbor_graph(
    X: MatrixLike,
    n_neighbors: int = 10,
    *,
    bandwidth: str | float = "self-tuning",
    algorithm: str = "auto",
    n_jobs: int | None = None,
    random_state: int = 0,
    recall: float | None = None,
    dtype: DTypeLike = np.float64,
) -> sp.csr_array:
    """Build the symmetric sparse graph of k-nearest neighbours.

    Parameters
    ----------
    X : array-like, memory-mapped array or sparse matrix of shape (n_samples, n_features)
        Features, finite.
    n_neighbors : int, default=10
        Number of neighbours per node, without the node itself; reduced to n_samples - 1 with a
        warning.
    bandwidth : {"self-tuning", "median"} or float, default="self-tuning"
        sigma in ``exp(-d^2 / (sigma_i sigma_j))``: the distance to the 7th neighbour, the median
        of all neighbour distances, or a number.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        Search algorithm; see :func:`~gdpa.graph.search.choose_algorithm`.
    n_jobs : int, optional
        Number of threads; the graph does not depend on it.
    random_state : int, default=0
        Random seed of the approximate search.
    recall : float, optional
        Share of the neighbours that an approximate search must find. By default 0.98, but with many
        features the work is limited; see :class:`~gdpa.graph.neighbors.NeighborIndex`.
    dtype : {float64, float32}, default=float64
        Type of the weights.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Weights in (0, 1], zero diagonal. Weights that would underflow are set to 1e-300 (1e-37 in
        float32), so that no edge is lost.

    Examples
    --------
    >>> from gdpa.graph import neighbor_graph
    >>> W = neighbor_graph([[0.0], [1.0], [3.0]], 1, bandwidth=1.0)
    >>> W.toarray().round(4)
    array([[0.    , 0.3679, 0.    ],
           [0.3679, 0.    , 0.0183],
           [0.    , 0.0183, 0.    ]])
    """
    return neighbor_graphs(
        X,
        [n_neighbors],
        bandwidth=bandwidth,
        algorithm=algorithm,
        n_jobs=n_jobs,
        random_state=random_state,
        recall=recall,
        dtype=dtype,
    )[0].W


def neighbor_graphs(
    X: MatrixLike,
    counts: Sequence[int],
    *,
    bandwidth: str | float = "self-tuning",
    algorithm: str = "auto",
    n_jobs: int | None = None,
    random_state: int = 0,
    recall: float | None = None,
    dtype: DTypeLike = np.float64,
    policy: Policy = DEFAULT_POLICY,
) -> list[NeighborGraph]:
    """Build neighbour graphs for several numbers of neighbours from one search.

    Parameters
    ----------
    counts : sequence of int
        Numbers of neighbours.
    X, bandwidth, algorithm, n_jobs, random_state, recall, dtype
        As in :func:`gdpa.graph.neighbor_graph`.
    policy : Policy, optional
        As in :class:`~gdpa.graph.neighbors.NeighborIndex`.

    Returns
    -------
    list of NeighborGraph
        One graph for each of `counts`.
    """
    if np.dtype(dtype) not in SMALLEST_WEIGHT:
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    bandwidth = check_bandwidth(bandwidth)
    index = NeighborIndex(
        X,
        algorithm=algorithm,
        n_jobs=n_jobs,
        random_state=random_state,
        recall=recall,
        policy=policy,
    )
    n = index.X.shape[0]
    if n == 1:
        W = sp.csr_array((1, 1), dtype=dtype)
        return [
            NeighborGraph(W, index, np.ones(1), k, bandwidth, index.algorithm, 1.0) for k in counts
        ]
    ks = list(map(partial(check_n_neighbors, most=n - 1, what="other points"), counts))
    entry = np.dtype(dtype).itemsize + np.dtype(get_index_dtype(maxval=n)).itemsize
    need = 4.0 * n * max(ks) * entry  # lists, part of their transpose, the union
    if need > memory.MIN_CHECKED_BYTES:
        memory.check_memory(
            need,
            f"a graph of {n} nodes with {max(ks)} neighbours each",
            "use fewer neighbours, dtype=float32 or fewer points",
        )
    least = min(n - 1, SCALE_NEIGHBOR) if bandwidth == "self-tuning" else 1
    near = index.neighbors(max(*ks, least))
    graphs: list[NeighborGraph] = []
    for k in ks:
        distances = near.distances[:, : max(k, least)]
        if bandwidth == "self-tuning":
            scales = local_scales(distances)
        else:
            sigma = median_scale(distances) if bandwidth == "median" else float(bandwidth)
            scales = np.full(n, sigma)
        del distances
        lists = [near.indices, near.distances]
        if len(graphs) == len(ks) - 1 and lists[0].shape[1] == k:
            near = replace(near, indices=lists[0][:0], distances=lists[1][:0])  # consumed below
        else:
            lists = [lists[0][:, :k].copy(), lists[1][:, :k].copy()]
        W = assemble(lists, scales, dtype)
        graphs.append(NeighborGraph(W, index, scales, k, bandwidth, near.algorithm, near.recall))
    return graphs


def _rows_to_csr(indices: NDArray[Any], weights: NDArray[Any], n_columns: int) -> sp.csr_array:
    """Return a CSR array with k entries per row; sorts its arguments in place."""
    m, k = indices.shape
    for rows in row_blocks(m, 32 * max(1, k)):
        order = np.argsort(indices[rows], axis=1)
        indices[rows] = np.take_along_axis(indices[rows], order, 1)
        weights[rows] = np.take_along_axis(weights[rows], order, 1)
    wide = get_index_dtype(maxval=max(n_columns, m * k))
    return csr_from_parts(
        weights.reshape(-1),
        indices.reshape(-1).astype(wide, copy=False),
        np.arange(0, m * k + 1, max(k, 1), dtype=wide) if k else np.zeros(m + 1, dtype=wide),
        (m, n_columns),
    )


def assemble(parts: list[NDArray[Any]], scales: FloatArray, dtype: DTypeLike) -> sp.csr_array:
    """Build the symmetric graph from `parts` (indices, distances), which it consumes."""
    distances = parts.pop()
    indices = parts.pop()
    n, k = indices.shape
    weights = distances if np.dtype(dtype) == np.float64 else np.empty((n, k), dtype=dtype)
    for rows in row_blocks(n, 48 * max(1, k)):
        weights[rows] = kernel_weights(
            distances[rows], scales[rows, None], scales[indices[rows]], dtype=dtype
        )
    del distances
    A = _rows_to_csr(indices, weights, n)
    del indices, weights
    # Symmetrise blocks of rows, to avoid a full transpose, into arrays that are truncated at the
    # end. Peak memory is that of A and the result.
    wide = get_index_dtype(maxval=max(n, 2 * A.nnz))
    indptr = np.zeros(n + 1, dtype=wide)
    indices = np.empty(2 * A.nnz, dtype=wide)
    data = np.empty(2 * A.nnz, dtype=A.dtype)
    for part in row_blocks(n, 1, -(-n // 16)):
        inside = A.indices >= part.start
        inside &= A.indices < part.stop
        at = np.flatnonzero(inside)
        entries = A.data[at], (A.indices[at] - part.start, at // max(k, 1))
        T = sp.csr_array(entries, shape=(part.stop - part.start, n))
        for rows in row_blocks(part.stop - part.start, 64 * (1 + 2 * k)):
            first = part.start + rows.start
            last = part.start + rows.stop
            merged = A[first:last].maximum(T[rows])
            start = int(indptr[first])
            indptr[first + 1 : last + 1] = merged.indptr[1:] + start
            stop = int(indptr[last])
            indices[start:stop] = merged.indices
            data[start:stop] = merged.data
    total = int(indptr[-1])
    # Truncate in place; memory pages that were never written were never allocated.
    indices.resize(total, refcheck=False)
    data.resize(total, refcheck=False)
    return csr_from_parts(data, indices, indptr, A.shape)


def check_bandwidth(bandwidth: object) -> str | float:
    """Validate a bandwidth.

    Parameters
    ----------
    bandwidth : {"self-tuning", "median"} or float
        Name of a rule, or sigma itself, finite and positive.

    Returns
    -------
    str or float
        The rule or sigma.
    """
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise unknown_choice("bandwidth", bandwidth, (*BANDWIDTHS, "a positive number"))
        return bandwidth
    return float(check_positive(bandwidth, "bandwidth"))


def local_scales(distances: NDArray[Any], fallback: float | None = None) -> FloatArray:
    """Return the scale of each node: its distance to the 7th neighbour.

    If this distance is 0, the scale is the smallest positive neighbour distance. If there is none,
    it is the median scale of all other nodes, or 1 if all points coincide.

    Parameters
    ----------
    distances : ndarray of shape (n_nodes, n_neighbors)
        Ascending distances to the neighbours, without the node itself. With fewer than seven
        neighbours, the last one is used.
    fallback : float, optional
        Scale of a row of zeros, instead of the median of the others.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Positive scales.
    """
    d = np.asarray(distances)
    if d.shape[1] == 0:
        return np.full(d.shape[0], 1.0 if fallback is None else fallback)
    scales = d[:, min(SCALE_NEIGHBOR, d.shape[1]) - 1].astype(np.float64)
    zero = np.flatnonzero(scales <= 0)
    if zero.size:
        rows = d[zero].astype(np.float64)
        rows[rows <= 0] = np.inf
        scales[zero] = rows.min(axis=1)
        zero = np.flatnonzero(~np.isfinite(scales))
    if zero.size:
        if fallback is None:
            others = scales[np.isfinite(scales)]
            fallback = float(np.median(others)) if others.size else 1.0
        scales[zero] = fallback
    return scales


def median_scale(distances: NDArray[Any]) -> float:
    """Return the median of the positive distances, or 1 if there are none.

    Parameters
    ----------
    distances : ndarray
        Distances.

    Returns
    -------
    float
        Positive.
    """
    d = np.asarray(distances)
    positive = d[d > 0]
    return float(np.median(positive)) if positive.size else 1.0


def kernel_weights(
    distances: NDArray[Any],
    row_scales: FloatArray | float,
    column_scales: FloatArray | float,
    *,
    dtype: DTypeLike = np.float64,
    floor: bool = True,
) -> NDArray[Any]:
    """Return the weights ``exp(-d^2 / (sigma_i sigma_j))``.

    Parameters
    ----------
    distances : ndarray
        Distances d.
    row_scales, column_scales : float or ndarray, broadcast against `distances`
        sigma_i and sigma_j, positive.
    dtype : dtype, default=float64
        Type of the weights.
    floor : bool, default=True
        Whether to set weights that would underflow to 1e-300 (1e-37 in float32); a weight of 0
        would remove the edge and could isolate a node.

    Returns
    -------
    ndarray
        Weights in (0, 1] (with ``floor=False`` in [0, 1]).
    """
    # Square roots avoid overflow of the product of two extreme scales. The product is the same for
    # (i, j) and (j, i), so the weights are symmetric to the last bit.
    scale = np.sqrt(row_scales) * np.sqrt(column_scales)
    with np.errstate(over="ignore", under="ignore"):
        w = np.asarray(distances, dtype=np.float64) / scale
        np.multiply(w, w, out=w)
        np.negative(w, out=w)
        np.exp(w, out=w)
        if floor:
            np.maximum(w, SMALLEST_WEIGHT[np.dtype(dtype)], out=w)
        return np.asarray(w, dtype=dtype)
