"""Neighbour graphs by one call: the weights alone, with their search, or from neighbours known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .neighbor_graph import (
    NeighborGraph,
    assemble,
    check_options,
    equal_scales,
    local_scales,
    neighbor_graphs,
)
from .search import NeighborResult

__all__ = ["build_neighbor_graph", "graph_from_neighbors", "neighbor_graph"]


def neighbor_graph(
    X: Any,
    n_neighbors: int = 10,
    *,
    bandwidth: str | float = "self-tuning",
    algorithm: str = "auto",
    symmetrize: str = "max",
    n_jobs: int | None = None,
    random_state: int = 0,
    recall: float | None = None,
    dtype: Any = np.float64,
) -> sp.csr_array:
    """Symmetric sparse graph of nearest neighbours.

    Parameters
    ----------
    X : array-like, memory-mapped array or sparse matrix of shape (n_samples, n_features)
        Features, finite.
    n_neighbors : int, default=10
        Neighbours per node, the node itself not counted; cut to n_samples - 1 with a warning.
    bandwidth : {"self-tuning", "median"} or float, default="self-tuning"
        sigma in ``exp(-d^2 / (sigma_i sigma_j))``: the distance to the 7th neighbour, the median
        of all neighbour distances, or a number.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        How neighbours are searched; see :func:`gdpa.graph.choose_algorithm`.
    symmetrize : {"max", "mean"}, default="max"
        "max" joins i and j where either is a neighbour of the other; "mean" gives half the weight
        to pairs where only one is.
    n_jobs : int, optional
        Threads; the graph does not depend on it.
    random_state : int, default=0
        Seed of approximate search.
    recall : float, optional
        Share of the neighbours that an approximate search must find; by default 0.98, within a
        limit on the work if there are many features. See :class:`gdpa.graph.NeighborIndex`.
    dtype : {float64, float32}, default=float64
        Type of the weights.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Weights in (0, 1], zero diagonal. Weights that would underflow are kept at 1e-300 (1e-37
        in float32), so that no edge is lost.

    Examples
    --------
    >>> from gdpa.graph import neighbor_graph
    >>> W = neighbor_graph([[0.0], [1.0], [3.0]], 1, bandwidth=1.0)
    >>> W.toarray().round(4)
    array([[0.    , 0.3679, 0.    ],
           [0.3679, 0.    , 0.0183],
           [0.    , 0.0183, 0.    ]])
    """
    return build_neighbor_graph(
        X,
        n_neighbors,
        bandwidth=bandwidth,
        algorithm=algorithm,
        symmetrize=symmetrize,
        n_jobs=n_jobs,
        random_state=random_state,
        recall=recall,
        dtype=dtype,
    ).W


def build_neighbor_graph(
    X: Any,
    n_neighbors: int = 10,
    *,
    bandwidth: str | float = "self-tuning",
    algorithm: str = "auto",
    symmetrize: str = "max",
    n_jobs: int | None = None,
    random_state: int = 0,
    recall: float | None = None,
    dtype: Any = np.float64,
) -> NeighborGraph:
    """Neighbour graph together with its search index and scales.

    Parameters
    ----------
    X, n_neighbors, bandwidth, algorithm, symmetrize, n_jobs, random_state, recall, dtype
        As in :func:`neighbor_graph`.

    Returns
    -------
    NeighborGraph
        The graph; :meth:`NeighborGraph.attach` links new points to it.
    """
    return neighbor_graphs(
        X,
        [n_neighbors],
        bandwidth=bandwidth,
        algorithm=algorithm,
        symmetrize=symmetrize,
        n_jobs=n_jobs,
        random_state=random_state,
        recall=recall,
        dtype=dtype,
    )[0]


def graph_from_neighbors(
    neighbors: NeighborResult,
    *,
    bandwidth: str | float = "self-tuning",
    symmetrize: str = "max",
    dtype: Any = np.float64,
) -> sp.csr_array:
    """Weights from neighbours found before.

    Parameters
    ----------
    neighbors : NeighborResult
        Neighbours of the points among themselves. A self-tuning scale is taken from these lists:
        with fewer than 7 neighbours it is the distance to the last one.
    bandwidth, symmetrize, dtype
        As in :func:`neighbor_graph`.

    Returns
    -------
    csr_array
        Symmetric weights.
    """
    bandwidth = check_options(bandwidth, symmetrize, dtype)
    if bandwidth == "self-tuning":
        scales = local_scales(neighbors.distances)
    else:
        scales = equal_scales(neighbors.distances, bandwidth)
    return assemble(
        [neighbors.indices.copy(), neighbors.distances.copy()], scales, symmetrize, dtype
    )
