"""Approximate nearest neighbours by matrix products between cells of points.

The points are divided into cells around k-means centres, with a few hundred points each. As in an
inverted file, a query is compared with the points of the `n_probe` cells with the nearest centres.
Many queries are processed together and sorted by cell, so that all comparisons with a cell are one
matrix product

    q'y - |y|^2 / 2  =  (|q|^2 - |q - y|^2) / 2      (q and y relative to the centre of the cell)

followed by a comparison with the k-th best value so far. A query visits its own cell first, because
that gives a good k-th value.

Coordinates are taken relative to centres before rounding to single precision, so that tight
clusters far apart keep their accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from .cell_space import TILE, CellSpace, Float32Array, runs
from .features import Features, row_blocks
from .search import IndexArray, pair_distances


def relative_points(X: NDArray[Any], space: CellSpace, home: NDArray[np.int32]) -> Float32Array:
    """Return points relative to the centres of their cells, the factor of the products above.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    space : CellSpace
        The cells.
    home : ndarray of int of shape (n_samples,)
        The cell of each point.

    Returns
    -------
    ndarray of float32 of shape (n_samples, n_features + 1)
        The last column is minus half the squared norm.
    """
    residual = space.residual(X, home)
    points = np.empty((residual.shape[0], residual.shape[1] + 1), dtype=np.float32)
    points[:, :-1] = residual
    points[:, -1] = -0.5 * np.einsum("ij,ij->i", residual, residual)
    return points


class CellJoin:
    """Points sorted by cell, searched by products of blocks of queries with whole cells.

    Parameters
    ----------
    points : ndarray of float32 of shape (n_samples, n_features + 1)
        The points, sorted by cell; from :func:`relative_points`.
    ends : ndarray of shape (n_cells + 1,)
        Where the points of each cell begin.
    order : ndarray of int of shape (n_samples,)
        Numbers of the points in this order.
    space : CellSpace
        The cells.

    Attributes
    ----------
    n_probe : int
        Number of cells that a query visits.
    """

    def __init__(
        self, points: Float32Array, ends: IndexArray, order: NDArray[Any], space: CellSpace
    ) -> None:
        self.points = points
        self.ends = ends
        self.order = order
        self.space = space
        self.n_cells = space.centers.centers.shape[0]
        self.n_probe = min(8, self.n_cells)

    @classmethod
    def of(cls, X: NDArray[Any], space: CellSpace, home: NDArray[np.int32]) -> CellJoin:
        """Build the search structure from points and their cells."""
        n, d = X.shape
        wide = np.int32 if n < 2**31 else np.int64
        order = np.argsort(home, kind="stable").astype(wide)
        ends = np.concatenate(
            [[0], np.cumsum(np.bincount(home, minlength=len(space.centers.centers)))]
        )
        points = np.empty((n, d + 1), dtype=np.float32)
        for rows in row_blocks(n, 8 * d):
            points[rows] = relative_points(X[order[rows]], space, home[order[rows]])
        return cls(points, ends, order, space)

    def join(self, queries: slice | tuple[Float32Array, NDArray[np.int32]], k: int) -> IndexArray:
        """Find the neighbours of queries that are sorted by cell.

        Parameters
        ----------
        queries : slice, or tuple of ndarray
            A range of :attr:`order` (fitted points, which find themselves, too); or queries
            relative to the centres of their cells, and the cells.
        k : int
            Number of neighbours, at most the number of points.

        Returns
        -------
        ndarray of shape (n_queries, k)
            Indices of points, nearest first.
        """
        if isinstance(queries, slice):
            places = np.arange(queries.start, queries.stop)
            home = (np.searchsorted(self.ends, places, side="right") - 1).astype(np.int32)
            queries = self.points[queries, :-1], home
        residual, home = queries
        best = self.best(residual, home, self.space.visited(residual, home, self.n_probe), k)
        probes = self.n_probe
        short = np.flatnonzero(best.count < k)
        while short.size and probes < self.n_cells:
            # Queries that found fewer than k points visit more cells.
            probes = min(self.n_cells, 4 * probes)
            rows = residual[short]
            cells = home[short]
            again = self.best(rows, cells, self.space.visited(rows, cells, probes), k)
            best.index[short] = again.index
            short = short[again.count < k]
        return np.asarray(self.order[best.index], dtype=np.intp)

    def candidates(self, Q: Features, k: int) -> IndexArray:
        """Return the indices of the k nearest points of each row of Q in the visited cells."""
        placed = self.space.placed(Q)
        home = self.space.centers.nearest(placed.astype(np.float32))
        order = np.argsort(home, kind="stable")
        placed -= self.space.centers.centers[home]
        nearest = np.empty((order.size, k), dtype=np.intp)
        nearest[order] = self.join((placed[order].astype(np.float32), home[order]), k)
        return nearest

    def probes_needed(self, Q: Features, points: IndexArray) -> tuple[IndexArray, FloatArray]:
        """Return the number of cells to visit to find given points; see :func:`visits_needed`."""
        sizes = np.diff(self.ends)
        cell = np.empty(self.order.size, dtype=np.int32)
        cell[self.order] = np.repeat(np.arange(self.n_cells, dtype=np.int32), sizes)
        return visits_needed(self.space.placed(Q), self.space.centers.centers, sizes, cell, points)

    def best(
        self, residual: Float32Array, home: NDArray[np.int32], visited: NDArray[np.int32], k: int
    ) -> Best:
        """Compare queries, sorted by cell, with the points of the cells that they visit.

        Parameters
        ----------
        residual : ndarray of float32 of shape (n_queries, n_features)
            Queries relative to the centres of their cells.
        home : ndarray of int of shape (n_queries,)
            Their cells, in ascending order.
        visited : ndarray of int of shape (n_queries, n_probe)
            From :meth:`CellSpace.visited`.
        k : int
            Number of neighbours.

        Returns
        -------
        Best
            The nearest points, as positions in :attr:`order`.
        """
        m, d = residual.shape
        best = Best(
            k,
            index=np.full((m, k), -1, dtype=self.order.dtype),
            square=np.full((m, k), np.inf, dtype=np.float32),
            count=np.zeros(m, dtype=np.intp),
            reach=np.full(m, np.inf, dtype=np.float32),
        )
        centers = self.space.centers.centers
        tile = np.empty(TILE, dtype=np.float32), np.empty(TILE, dtype=bool)
        n_probe = visited.shape[1]
        # The k-th best value is updated after the first, the fourth and the last cell.
        for first, last in pairwise(sorted({0, 1, 4, n_probe})):
            if last > n_probe:
                break
            cells = visited[:, first:last].ravel()
            by_cell = np.argsort(cells, kind="stable")
            for rows in row_blocks(by_cell.size, 8 * d + 32, 2**23):
                queries = by_cell[rows] // (last - first)
                visits = cells[by_cell[rows]]
                # Queries relative to the visited centres, with a column of ones.
                homes = home[queries]
                new = np.ones(queries.size, dtype=bool)
                new[1:] = (homes[1:] != homes[:-1]) | (visits[1:] != visits[:-1])
                step = (centers[homes[new]] - centers[visits[new]]).astype(np.float32)
                relative = residual.take(queries, axis=0)
                relative += step.take(np.cumsum(new) - 1, axis=0)
                q = np.ones((queries.size, d + 1), dtype=np.float32)
                q[:, :-1] = relative
                length = np.einsum("ij,ij->i", q[:, :-1], q[:, :-1])
                least = (length - best.reach[queries]) * np.float32(0.5)
                nearer = self._nearer(q, least, visits, tile, k if first == 0 else 0)
                best.offered.append((queries, length, *nearer))
            best.keep_best()
        return best

    def _nearer(
        self,
        q: Float32Array,
        least: Float32Array,
        visits: NDArray[np.int32],
        tile: tuple[Float32Array, NDArray[np.bool_]],
        k: int,
    ) -> tuple[IndexArray, IndexArray, Float32Array]:
        """Return the pairs of queries and points whose value is at least `least`, and the values.

        With `k` > 0 there is no bound yet, and the k-th best value in the cell is used.
        """
        hits = []
        values = []
        about = []
        for start, stop in runs(visits):
            low, high = self.ends[visits[start] : visits[start] + 2].tolist()
            size = high - low
            if size == 0:
                continue
            factor = self.points[low:high].T
            step = max(1, TILE // size)
            if step * size > tile[0].size:
                tile = np.empty(step * size, dtype=np.float32), np.empty(step * size, dtype=bool)
            for begin in range(start, stop, step):
                end = min(stop, begin + step)
                shape = (end - begin, size)
                pairs = (end - begin) * size
                value = np.matmul(q[begin:end], factor, out=tile[0][:pairs].reshape(shape))
                bound = least[begin:end]
                if 0 < k < size:
                    bound = np.partition(value, size - k, axis=1)[:, size - k]
                np.greater_equal(value, bound[:, None], out=tile[1][:pairs].reshape(shape))
                at = np.flatnonzero(tile[1][:pairs])
                if at.size:
                    hits.append(at)
                    values.append(tile[0].take(at))
                    about.append((at.size, begin, size, low))
        if not hits:
            none = np.empty(0, dtype=np.intp)
            return none, none, np.empty(0, dtype=np.float32)
        count, begin, size, low = np.array(about, dtype=np.intp).T
        which = np.repeat(np.arange(count.size), count)
        row, column = np.divmod(np.concatenate(hits), size[which])
        row += begin[which]
        column += low[which]
        return row, column, np.concatenate(values)


@dataclass
class Best:
    """The k best points of each query so far, and new candidates.

    Parameters
    ----------
    k : int
        Number of points per query.
    index, square : ndarray of shape (n_queries, k)
        Points, nearest first, and their squared distances; -1 and infinity if there are fewer.
    count, reach : ndarray of shape (n_queries,)
        Number of points found, and the squared distance that the next one must beat.
    offered : list of tuple
        Candidates: queries and their squared norms; rows of these, points and values of products.
    """

    k: int
    index: NDArray[Any]
    square: Float32Array
    count: IndexArray
    reach: Float32Array
    offered: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def keep_best(self) -> None:
        """Merge the candidates into the lists."""
        new: list[tuple[NDArray[Any], ...]] = []
        for queries, length, place, point, value in self.offered:
            square = length[place]
            square -= 2 * value
            np.maximum(square, 0, out=square)
            new.append((queries[place].astype(np.int32), square, point.astype(self.index.dtype)))
        self.offered = []
        if not new:
            return
        rows, squares, indices = map(np.concatenate, zip(*new, strict=True))
        touched = np.flatnonzero(np.bincount(rows, minlength=self.count.size))
        old, slot = np.nonzero(np.isfinite(self.square[touched]))
        rows = np.concatenate([touched[old].astype(rows.dtype), rows])
        squares = np.concatenate([self.square[touched[old], slot], squares])
        indices = np.concatenate([self.index[touched[old], slot], indices])
        # Sort by one integer per entry: the query, then the bits of its (non-negative) square.
        key = rows.astype(np.uint64) << np.uint64(32)
        key |= squares.view(np.uint32)
        by_square = np.argsort(key)
        count = np.bincount(rows, minlength=self.count.size)
        place = np.arange(rows.size) - np.repeat(np.cumsum(count) - count, count)
        best = place < self.k
        by_square = by_square[best]
        place = place[best]
        at = rows[by_square], place
        self.index[at] = indices[by_square]
        self.square[at] = squares[by_square]
        self.count[touched] = np.minimum(count[touched], self.k)
        self.reach[touched] = self.square[touched, -1]


def visits_needed(
    Q: NDArray[Any], centers: FloatArray, sizes: IndexArray, cell: NDArray[Any], points: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Return how many cells a query must visit to find given points, and at what cost.

    Parameters
    ----------
    Q : ndarray of shape (n_queries, n_features)
        Queries.
    centers : ndarray of shape (n_cells, n_features)
        Centres of the cells, which are visited in order of distance.
    sizes : ndarray of shape (n_cells,)
        Points in each cell.
    cell : ndarray of shape (n_samples,)
        The cell of each point.
    points : ndarray of shape (n_queries, k)
        The given points of each query.

    Returns
    -------
    needed : ndarray of shape (n_queries, k)
        Number of cells, at least 1.
    scanned : ndarray of shape (n_cells,)
        Mean number of points in the first 1, 2, ... visited cells.
    """
    squares = np.einsum("ij,ij->i", centers, centers) - 2 * Q @ centers.T
    by_distance = np.argsort(squares, axis=1, kind="stable")
    rank = np.empty_like(by_distance)
    np.put_along_axis(rank, by_distance, np.arange(sizes.size)[None, :], axis=1)
    scanned = sizes[by_distance].mean(axis=0).cumsum()
    return np.take_along_axis(rank, cell[points].astype(np.intp), 1) + 1, scanned


def within_reach(
    Q: NDArray[Any], X: NDArray[Any], reach: FloatArray, scale: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return the points within a given distance of each query, found by a matrix product.

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
        Pairs, including a few beyond the distance because of rounding.
    distance : ndarray of shape (n_pairs,)
        Their distances.
    """
    q = np.asarray(Q, dtype=np.float64) / scale
    center = q.mean(axis=0)
    q = q - center
    norms = np.einsum("ij,ij->i", q, q)
    limit = (reach / scale) ** 2 * (1 + 1e-9)
    owners = [np.empty(0, np.intp)]
    others = [np.empty(0, np.intp)]
    near = [np.empty(0)]
    for rows in row_blocks(X.shape[0], 8 * (q.shape[0] + q.shape[1])):
        x = np.asarray(X[rows], dtype=np.float64) / scale - center
        x_norms = np.einsum("ij,ij->i", x, x)
        squares = q @ x.T
        squares *= -2
        squares += norms[:, None]
        squares += x_norms
        # Allow for cancellation; surplus pairs are removed later.
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
    """Return the true neighbours of some points.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points.
    sample : ndarray of shape (n_sample,)
        Rows of the given points.
    reach : ndarray of shape (n_sample,)
        A distance within which at least k other points lie.
    k : int
        Number of neighbours.
    scale : float
        Divides the features before squaring.

    Returns
    -------
    indices, distances : ndarray of shape (n_sample, k)
        Neighbours, nearest first, at distances of at most `reach`.
    """
    query, point, distance = within_reach(X[sample], X, reach, scale)
    other = point != sample[query]
    query = query[other]
    point = point[other]
    distance = distance[other]
    order = np.lexsort((point, distance, query))
    first = np.searchsorted(query[order], np.arange(sample.size))
    best = order[first[:, None] + np.arange(k)]
    return point[best], distance[best]


def enough_probes(
    needed: NDArray[np.intp], scanned: FloatArray, target: float, limit: float
) -> tuple[int, int]:
    """Return the number of cells to visit for a recall, within a limit on the work.

    Parameters
    ----------
    needed : ndarray
        Number of cells to visit to find each of the true neighbours.
    scanned : ndarray of shape (n_cells,)
        Points in the first 1, 2, ... cells.
    target : float
        Share of the neighbours to find.
    limit : float
        Maximum number of points to compare with a query; one cell is always visited.

    Returns
    -------
    probes : int
        Number of cells to visit.
    most : int
        Largest number within the limit.
    """
    most = max(1, int(np.searchsorted(scanned, limit, side="right")))
    wanted = int(np.quantile(needed, target, method="inverted_cdf"))
    return min(most, wanted), most
