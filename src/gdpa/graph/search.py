"""Ways to find nearest neighbours, which one fits, and the truth to measure others by.

Each backend answers ``candidates(Q, k)``: for every row of Q the indices of the (at least) k
nearest of its own points. Distances are not taken from the backend: they are computed again in
float64 from the differences of the features (:func:`pair_distances`), so that duplicates are at
distance exactly 0, distances are symmetric to the last bit, and the order does not depend on how
the candidates were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name
from ..policy import DEFAULT_POLICY, Policy
from .features import Features, row_blocks

__all__ = [
    "Backend",
    "KDTree",
    "NeighborResult",
    "choose_algorithm",
    "enough_probes",
    "feature_scale",
    "pair_distances",
    "true_neighbors",
    "visits_needed",
    "within_reach",
]

IndexArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]

ALGORITHMS = ("auto", "exact", "approximate", "faiss")

# In single precision, in units of the points' spread: squares and sums of them are numbers.
FARTHEST = 1e15


def choose_algorithm(
    n_samples: int,
    n_features: int,
    *,
    sparse: bool = False,
    algorithm: str = "auto",
    policy: Policy = DEFAULT_POLICY,
) -> str:
    """Name the search structure for a size and dimension.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the features.
    sparse : bool, default=False
        Whether they are sparse: searched exhaustively, always.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        "exact" is a KD-tree up to 10 features and exhaustive search by blocks beyond.
        "approximate" compares whole cells of points (:class:`~gdpa.graph.cells.CellJoin`). "auto"
        is exact up to 50,000 points (20,000 with more than 10 features; any number with up to 5
        features), else approximate. "faiss" is the inverted file of that library.
    policy : Policy, optional
        These limits.

    Returns
    -------
    str
        "kd-tree", "brute-force", "cells" or "inverted-file".
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm={algorithm!r} is not known; {nearest_name(algorithm, list(ALGORITHMS))}"
        )
    exact = "kd-tree" if n_features <= policy.tree_features else "brute-force"
    if sparse:
        return "brute-force"
    if algorithm == "exact":
        return exact
    if algorithm == "faiss":
        return "inverted-file"
    limit = policy.tree_points if exact == "kd-tree" else policy.brute_points
    if algorithm == "auto" and (n_samples <= limit or n_features <= policy.low_features):
        return exact
    return "cells"


class Backend(Protocol):
    """What every search structure offers.

    Attributes
    ----------
    order : ndarray of int of shape (n_samples,)
        Its points in the order in which asking is fastest: neighbouring queries share memory.
    """

    order: NDArray[Any]

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices, shape (n_queries, at least k), of the nearest points of each row of Q."""
        ...


def feature_scale(X: Features) -> float:
    """Power of two by which features are divided so that their squares stay in range.

    1 unless the largest magnitude is beyond 1e100 or below 1e-100.
    """
    if isinstance(X, np.ndarray):
        top = 0.0
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            top = max(top, float(np.abs(X[rows]).max()))
    else:
        top = float(np.abs(X.data).max(initial=0.0))
    if top == 0 or 1e-100 < top < 1e100:
        return 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(top)), -1021, 1022))


def pair_distances(Q: Features, X: Features, indices: IndexArray, scale: float) -> FloatArray:
    """Distances between row i of Q and the rows ``indices[i]`` of X, by differences in float64.

    Parameters
    ----------
    Q, X : ndarray or csr_array
        Queries and points.
    indices : ndarray of shape (n_queries, k)
        Rows of X.
    scale : float
        Divides the features before squaring; see :func:`feature_scale`.

    Returns
    -------
    ndarray of shape (n_queries, k)
        The distances.
    """
    m, k = indices.shape
    out = np.empty((m, k))
    if isinstance(X, np.ndarray) and isinstance(Q, np.ndarray):
        for rows in row_blocks(m, 16 * k * X.shape[1]):
            difference = X[indices[rows]].astype(np.float64, copy=False)
            difference /= scale
            difference -= np.asarray(Q[rows], dtype=np.float64)[:, None, :] / scale
            np.einsum("ijk,ijk->ij", difference, difference, out=out[rows])
    else:
        width = 1 + max(A.nnz // max(1, A.shape[0]) for A in (X, Q))
        for rows in row_blocks(m, 64 * k * width):
            flat = indices[rows].ravel()
            queries = np.repeat(np.arange(rows.start, rows.stop), k)
            difference = (X[flat] - Q[queries]) / scale
            out[rows] = np.asarray(difference.power(2).sum(axis=1)).reshape(-1, k)
    np.sqrt(out, out=out)
    # A distance that no number can hold is the largest number.
    np.minimum(out, np.finfo(np.float64).max / max(scale, 1.0), out=out)
    out *= scale
    return out


@dataclass(frozen=True)
class NeighborResult:
    """Neighbours of each query, nearest first.

    Parameters
    ----------
    indices : ndarray of shape (n_queries, n_neighbors)
        Rows of the fitted features.
    distances : ndarray of shape (n_queries, n_neighbors)
        Euclidean distances, ascending.
    algorithm : str
        What found them: "kd-tree", "brute-force" (both exact), "cells" or "inverted-file".
    recall : float
        Share of true neighbours among those found: 1 for exact search, otherwise measured on a
        sample of the fitted points.
    """

    indices: NDArray[Any]
    distances: NDArray[np.float64]
    algorithm: str
    recall: float

    @property
    def exact(self) -> bool:
        """Whether the search was exhaustive by construction."""
        return self.algorithm in ("kd-tree", "brute-force")


class KDTree:
    """Exact search in few dimensions: SciPy's KD-tree."""

    def __init__(self, X: NDArray[Any], scale: float) -> None:
        from scipy.spatial import cKDTree

        self.scale = scale
        self.tree = cKDTree(self._placed(X))
        # Points leaf by leaf: consecutive queries touch the same memory.
        self.order = np.asarray(self.tree.indices, dtype=np.intp)

    def _placed(self, X: Any) -> FloatArray:
        placed = np.asarray(X, dtype=np.float64)
        return placed if self.scale == 1.0 else placed / self.scale

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points of each row of Q."""
        q = self._placed(Q)
        _, nearest = self.tree.query(q, k=k, workers=n_jobs)
        return np.asarray(nearest, dtype=np.intp).reshape(q.shape[0], k)


def visits_needed(
    Q: NDArray[Any], centers: FloatArray, sizes: IndexArray, cell: NDArray[Any], points: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """How many cells a query has to visit before it meets given points, and what that costs.

    Parameters
    ----------
    Q : ndarray of shape (n_queries, n_features)
        Queries.
    centers : ndarray of shape (n_cells, n_features)
        Centres of the cells; they are visited in the order of their distance.
    sizes : ndarray of shape (n_cells,)
        Points in each cell.
    cell : ndarray of shape (n_samples,)
        The cell of each point.
    points : ndarray of shape (n_queries, k)
        For each query the points in question.

    Returns
    -------
    needed : ndarray of shape (n_queries, k)
        Number of cells, at least 1.
    scanned : ndarray of shape (n_cells,)
        Points that lie in the first 1, 2, ... cells, on average over the queries.
    """
    squares = np.einsum("ij,ij->i", centers, centers) - 2 * Q @ centers.T
    by_distance = np.argsort(squares, axis=1, kind="stable")
    rank = np.empty_like(by_distance)
    np.put_along_axis(rank, by_distance, np.arange(sizes.size)[None, :], axis=1)
    scanned = sizes[by_distance].mean(axis=0).cumsum()
    return np.take_along_axis(rank, cell[points].astype(np.intp), 1) + 1, scanned


def column_moments(X: NDArray[Any], scale: float) -> tuple[FloatArray, float]:
    """Mean of each column and summed variance, of the features divided by `scale`."""
    n = X.shape[0]
    mean = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        mean += (np.asarray(X[rows], dtype=np.float64) / scale).sum(axis=0)
    mean /= n
    total = 0.0
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        total += float(np.square(np.asarray(X[rows], dtype=np.float64) / scale - mean).sum())
    return mean, total / n


def within_reach(
    Q: NDArray[Any], X: NDArray[Any], reach: FloatArray, scale: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Points within a distance of each query: one matrix product passes over all others.

    Parameters
    ----------
    Q : ndarray of shape (n_queries, n_features)
        Queries.
    X : ndarray of shape (n_samples, n_features)
        Points.
    reach : ndarray of shape (n_queries,)
        The distances.
    scale : float
        Divides the features before squaring.

    Returns
    -------
    query, point : ndarray of int of shape (n_pairs,)
        Pairs, and a few that are farther by a rounding.
    distance : ndarray of shape (n_pairs,)
        Their distances.
    """
    q = np.asarray(Q, dtype=np.float64) / scale
    center = q.mean(axis=0)
    q = q - center
    norms = np.einsum("ij,ij->i", q, q)
    limit = (reach / scale) ** 2 * (1 + 1e-9)
    owners, others, near = [np.empty(0, np.intp)], [np.empty(0, np.intp)], [np.empty(0)]
    for rows in row_blocks(X.shape[0], 8 * (q.shape[0] + q.shape[1])):
        x = np.asarray(X[rows], dtype=np.float64) / scale - center
        x_norms = np.einsum("ij,ij->i", x, x)
        squares = q @ x.T
        squares *= -2
        squares += norms[:, None]
        squares += x_norms
        # What cancellation may have cost; a pair too many is sorted out later.
        slack = 1e-12 * (norms + x_norms.max())
        i, j = np.nonzero(squares <= (limit + slack)[:, None])
        owners.append(i)
        others.append(j + rows.start)
        for part in row_blocks(i.size, 16 * Q.shape[1]):
            at = others[-1][part][:, None]
            near.append(pair_distances(Q[i[part]], X, at, scale).ravel())
    return np.concatenate(owners), np.concatenate(others), np.concatenate(near)


def true_neighbors(
    X: NDArray[Any], sample: NDArray[np.intp], reach: FloatArray, k: int, scale: float
) -> tuple[NDArray[np.intp], FloatArray]:
    """True neighbours of some points.

    Some k points lie within `reach`, so the true neighbours do too.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points.
    sample : ndarray of shape (n_sample,)
        Rows of the points in question.
    reach : ndarray of shape (n_sample,)
        A distance within which k other points are known.
    k : int
        How many neighbours.
    scale : float
        Divides the features before squaring.

    Returns
    -------
    indices, distances : ndarray of shape (n_sample, k)
        Neighbours, nearest first, at distances of at most `reach`.
    """
    query, point, distance = within_reach(X[sample], X, reach, scale)
    other = point != sample[query]
    query, point, distance = query[other], point[other], distance[other]
    order = np.lexsort((point, distance, query))
    first = np.searchsorted(query[order], np.arange(sample.size))
    best = order[first[:, None] + np.arange(k)]
    return point[best], distance[best]


def enough_probes(
    needed: NDArray[np.intp], scanned: FloatArray, target: float, limit: float
) -> tuple[int, int]:
    """Number of cells to visit for a recall, within a limit on the points compared.

    Parameters
    ----------
    needed : ndarray
        Cells to visit before each of the true neighbours is met.
    scanned : ndarray of shape (n_cells,)
        Points in the first 1, 2, ... cells.
    target : float
        Share of the neighbours to find.
    limit : float
        Points that may be compared with a query; one cell is always visited.

    Returns
    -------
    probes : int
        Cells to visit.
    most : int
        Cells that the limit allows.
    """
    most = max(1, int(np.searchsorted(scanned, limit, side="right")))
    wanted = int(np.quantile(needed, target, method="inverted_cdf"))
    return min(most, wanted), most
