"""Approximate nearest neighbours by matrix products between cells of points.

The points are split into cells around k-means centres, a few hundred in each. A query is compared
with the points of the `n_probe` cells whose centres are nearest to it, as in an inverted file; but
queries are taken many at a time and sorted by the cells they visit, so that all comparisons with a
cell are one matrix product

    q'y - |y|^2 / 2  =  (|q|^2 - |q - y|^2) / 2      (q and y relative to the centre of the cell)

and the only work per pair beyond it is one comparison with the k-th best value so far. Queries look
first into the cell of their own, which gives that value, then into the others.

Everything is taken relative to centres before it is rounded to single precision, so that tight
clusters far apart keep their digits.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .features import row_blocks
from .search import FloatArray, IndexArray, column_moments, extent, visits_needed

__all__ = ["CellJoin"]

Float32Array: TypeAlias = NDArray[np.float32]

# Measured between 200 and 800: smaller cells need more calls, larger ones more comparisons.
CELL_POINTS = 400
# Beyond two million points finding the cell of each point would cost more than the rest.
CELLS_PER_ROOT = 3.5
TRAINING_POINTS = 24
TRAINING_ROUNDS = 5
# Pairs compared by one product: they stay in the cache of a core.
TILE = 2**18
# Queries of a round that are prepared together.
ROUND_BYTES = 2**23
# Cells among which those to visit are chosen, by distance to a query's own centre.
SPARE_CELLS, SPARE_FACTOR = 32, 8
# Ranks of the cells visited between two updates of the k-th best value.
ROUNDS = (0, 1, 4)


class CellJoin:
    """Points in cells, searched by products of whole blocks of queries with whole cells.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The points.
    scale : float
        Divides the features; see :func:`~gdpa.graph.search.feature_scale`.
    seed : int
        Seed of the choice of centres.

    Attributes
    ----------
    n_cells : int
        Number of cells.
    n_probe : int
        Cells that a query visits.
    centers : ndarray of shape (n_cells, n_features)
        Their centres, neighbours in space near each other in the list.
    """

    def __init__(self, X: NDArray[Any], scale: float, seed: int) -> None:
        n, d = X.shape
        self.scale = scale
        self.offset, spread = column_moments(X, scale)
        self.unit = float(np.sqrt(spread / d)) or 1.0
        self.n_cells = max(1, min(n // CELL_POINTS, int(CELLS_PER_ROOT * np.sqrt(n))))
        rng = np.random.default_rng(seed)
        sample = rng.choice(n, min(n, TRAINING_POINTS * self.n_cells), replace=False)
        sample.sort()
        centers = _means(self._placed(X[sample]).astype(np.float32), self.n_cells, rng)
        self.centers = centers[_along_space(centers)].astype(np.float64)
        home = np.empty(n, dtype=np.int32)
        for rows in row_blocks(*extent(X)):
            home[rows] = _nearest(
                self._placed(X[rows]).astype(np.float32), self.centers.astype(np.float32)
            )
        wide = np.int32 if n < 2**31 else np.int64
        self.order = np.argsort(home, kind="stable").astype(wide)
        self.home = home[self.order]
        sizes = np.bincount(home, minlength=self.n_cells)
        self.ends = np.concatenate([[0], np.cumsum(sizes)])
        # Points relative to their centres, cell by cell, and half their squared length: the
        # factor of the products above.
        self.points = np.empty((n, d + 1), dtype=np.float32)
        for rows in row_blocks(*extent(X)):
            block = self._placed(X[self.order[rows]])
            block -= self.centers[self.home[rows]]
            self.points[rows, :-1] = block
            self.points[rows, -1] = -0.5 * np.einsum("ij,ij->i", block, block)
        self.n_probe = min(8, self.n_cells)

    def _placed(self, X: Any) -> FloatArray:
        placed = np.asarray(X, dtype=np.float64) / self.scale
        placed -= self.offset
        placed /= self.unit
        return placed

    @property
    def n_probe(self) -> int:
        """Cells that a query visits."""
        return self._n_probe

    @n_probe.setter
    def n_probe(self, value: int) -> None:
        self._n_probe = value
        self._near = self._near_cells(value)

    def visiting_order(self) -> IndexArray:
        """Points cell by cell, neighbouring cells near each other."""
        return self.order.astype(np.intp, copy=False)

    def join(self, rows: slice, k: int) -> IndexArray:
        """Find neighbours of fitted points, themselves among them.

        Parameters
        ----------
        rows : slice
            Consecutive places in :meth:`visiting_order`.
        k : int
            How many neighbours, at most the number of points.

        Returns
        -------
        ndarray of shape (n_rows, k)
            Indices of points, nearest first.
        """
        return self._search(self.points[rows, :-1], self.home[rows], k)

    def candidates(self, Q: Any, k: int, n_jobs: int = 1) -> IndexArray:
        """Indices of the k nearest points, in the cells visited, of each row of Q."""
        placed = self._placed(Q)
        home = _nearest(placed.astype(np.float32), self.centers.astype(np.float32))
        order = np.argsort(home, kind="stable")
        found = np.empty((order.size, k), dtype=np.intp)
        placed -= self.centers[home]
        found[order] = self._search(placed[order].astype(np.float32), home[order], k)
        return found

    def probes_needed(self, Q: Any, points: IndexArray) -> tuple[IndexArray, FloatArray]:
        """How many cells a query has to visit to meet given points; see :func:`visits_needed`."""
        cell = np.empty(self.order.size, dtype=np.int32)
        cell[self.order] = self.home
        return visits_needed(self._placed(Q), self.centers, np.diff(self.ends), cell, points)

    def _near_cells(self, n_probe: int) -> NDArray[np.int32]:
        """For each cell those around it, among which its queries choose."""
        m = min(self.n_cells, SPARE_FACTOR * n_probe + SPARE_CELLS)
        near = np.empty((self.n_cells, m), dtype=np.int32)
        if m == self.n_cells:
            near[:] = np.arange(m)
            return near
        norms = np.einsum("ij,ij->i", self.centers, self.centers)
        for rows in row_blocks(self.n_cells, 16 * self.n_cells):
            squares = norms - 2 * self.centers[rows] @ self.centers.T
            near[rows] = np.argpartition(squares, m - 1, axis=1)[:, :m]
        return near

    def _search(self, residual: Float32Array, home: NDArray[np.int32], k: int) -> IndexArray:
        """Neighbours of queries sorted by their cells, given relative to the centres of those."""
        m = residual.shape[0]
        places = _Best(m, k, self.order.dtype)
        cells = self._visited(residual, home, self._near, self.n_probe)
        self._compare(places, residual, home, cells)
        probes = self.n_probe
        short = np.flatnonzero(places.count < k)
        while short.size:
            # Few points in the cells around: these queries look further.
            probes = min(self.n_cells, 4 * probes)
            again = _Best(short.size, k, self.order.dtype)
            rows, cells = residual[short], home[short]
            visited = self._visited(rows, cells, self._near_cells(probes), probes)
            self._compare(again, rows, cells, visited)
            places.replace(short, again)
            short = short[again.count < k]
        return self.order[places.index].astype(np.intp, copy=False)

    def _visited(
        self,
        residual: Float32Array,
        home: NDArray[np.int32],
        near: NDArray[np.int32],
        n_probe: int,
    ) -> NDArray[np.int32]:
        """Cells that each query visits, nearest centre first, its own cell before all others."""
        cells = np.empty((home.size, n_probe), dtype=np.int32)
        for start, stop in _runs(home):
            own = home[start]
            around = near[own]
            step = (self.centers[around] - self.centers[own]).astype(np.float32)
            squares = np.einsum("ij,ij->i", step, step) - 2 * residual[start:stop] @ step.T
            squares[:, around == own] = -np.inf
            if n_probe < around.size:
                first = np.argpartition(squares, n_probe - 1, axis=1)[:, :n_probe]
                squares = np.take_along_axis(squares, first, 1)
            else:
                first = np.broadcast_to(np.arange(around.size), squares.shape)
            first = np.take_along_axis(first, np.argsort(squares, axis=1, kind="stable"), 1)
            cells[start:stop] = around[first]
        return cells

    def _compare(
        self,
        places: _Best,
        residual: Float32Array,
        home: NDArray[np.int32],
        cells: NDArray[np.int32],
    ) -> None:
        """Compare each query with the points of its cells; what is best so far goes to `places`."""
        tile = np.empty(TILE, dtype=np.float32), np.empty(TILE, dtype=bool)
        bounds = [r for r in ROUNDS if r < cells.shape[1]] + [cells.shape[1]]
        for first, last in pairwise(bounds):
            visited = cells[:, first:last].ravel()
            by_cell = np.argsort(visited, kind="stable")
            for rows in row_blocks(by_cell.size, 8 * residual.shape[1] + 32, ROUND_BYTES):
                queries = by_cell[rows] // (last - first)
                visits = visited[by_cell[rows]]
                q = self._relative(residual, home, queries, visits)
                length = np.einsum("ij,ij->i", q[:, :-1], q[:, :-1])
                least = (length - places.reach[queries]) * np.float32(0.5)
                found = self._nearer(q, least, visits, tile, places.k if first == 0 else 0)
                places.offer(queries, length, found)
            places.keep_best()

    def _relative(
        self,
        residual: Float32Array,
        home: NDArray[np.int32],
        queries: IndexArray,
        visits: NDArray[np.int32],
    ) -> Float32Array:
        """Queries relative to the centres they visit, and a one: the other factor of products."""
        own = home[queries]
        new = np.empty(queries.size, dtype=bool)
        new[0] = True
        np.not_equal(own[1:], own[:-1], out=new[1:])
        new[1:] |= visits[1:] != visits[:-1]
        starts = np.flatnonzero(new)
        step = (self.centers[own[starts]] - self.centers[visits[starts]]).astype(np.float32)
        q = np.ones((queries.size, residual.shape[1] + 1), dtype=np.float32)
        relative = residual.take(queries, axis=0)
        relative += step.take(np.cumsum(new) - 1, axis=0)
        q[:, :-1] = relative
        return q

    def _nearer(
        self,
        q: Float32Array,
        least: Float32Array,
        visits: NDArray[np.int32],
        tile: tuple[Float32Array, NDArray[np.bool_]],
        k: int,
    ) -> tuple[IndexArray, IndexArray, Float32Array]:
        """Pairs of queries and points, and their values, of at least `least`.

        With `k` > 0 there is no such bound yet: it is the k-th best value in the cell.
        """
        hits, values, about = [], [], []
        for start, stop in _runs(visits):
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
                shape, pairs = (end - begin, size), (end - begin) * size
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


class _Best:
    """The k best points so far of each query, and those that may replace them."""

    def __init__(self, n_queries: int, k: int, wide: Any) -> None:
        self.k = k
        self.index = np.full((n_queries, k), -1, dtype=wide)
        self.square = np.full((n_queries, k), np.inf, dtype=np.float32)
        self.count = np.zeros(n_queries, dtype=np.intp)
        self.reach = np.full(n_queries, np.inf, dtype=np.float32)
        self.offered: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def offer(
        self,
        queries: IndexArray,
        length: Float32Array,
        found: tuple[IndexArray, IndexArray, Float32Array],
    ) -> None:
        """Note pairs of queries (places in `queries`) and points, with the value of a product."""
        row, point, value = found
        square = length[row]
        square -= 2 * value
        np.maximum(square, 0, out=square)
        self.offered.append((queries[row].astype(np.int32), square, point.astype(self.index.dtype)))

    def keep_best(self) -> None:
        """Sort what was offered into the lists."""
        if not self.offered:
            return
        rows, squares, indices = (np.concatenate(part) for part in zip(*self.offered, strict=True))
        self.offered = []
        touched = np.flatnonzero(np.bincount(rows, minlength=self.count.size))
        old, slot = np.nonzero(np.isfinite(self.square[touched]))
        rows = np.concatenate([touched[old].astype(rows.dtype), rows])
        squares = np.concatenate([self.square[touched[old], slot], squares])
        indices = np.concatenate([self.index[touched[old], slot], indices])
        # One number per entry: the query, then its square, whose bits are in order, being >= 0.
        key = rows.astype(np.uint64) << np.uint64(32)
        key |= squares.view(np.uint32)
        by_square = np.argsort(key)
        count = np.bincount(rows, minlength=self.count.size)
        place = np.arange(rows.size) - np.repeat(np.cumsum(count) - count, count)
        best = place < self.k
        by_square, place = by_square[best], place[best]
        at = rows[by_square], place
        self.index[at] = indices[by_square]
        self.square[at] = squares[by_square]
        self.count[touched] = np.minimum(count[touched], self.k)
        self.reach[touched] = self.square[touched, -1]

    def replace(self, rows: IndexArray, other: _Best) -> None:
        """Take the lists of some queries from elsewhere."""
        self.index[rows] = other.index


def _runs(values: NDArray[Any]) -> list[tuple[int, int]]:
    """Start and end of each run of equal values."""
    new = np.flatnonzero(values[1:] != values[:-1]) + 1
    ends = [0, *new.tolist(), values.size]
    return list(pairwise(ends)) if values.size else []


def _nearest(X: Float32Array, centers: Float32Array) -> NDArray[np.int32]:
    """Number of the nearest centre of each row."""
    k, d = centers.shape
    factor = np.empty((d + 1, k), dtype=np.float32)
    factor[:-1] = centers.T
    factor[-1] = -0.5 * np.einsum("ij,ij->i", centers, centers)
    nearest = np.empty(X.shape[0], dtype=np.int32)
    step = max(1, TILE // k)
    padded = np.ones((step, d + 1), dtype=np.float32)
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        padded[: part.shape[0], :-1] = part
        nearest[start : start + step] = (padded[: part.shape[0]] @ factor).argmax(axis=1)
    return nearest


def _means(X: Float32Array, k: int, rng: np.random.Generator) -> Float32Array:
    """A few rounds of k-means from random points."""
    centers: Float32Array = X[np.sort(rng.choice(X.shape[0], k, replace=False))].copy()
    for _ in range(TRAINING_ROUNDS):
        nearest = _nearest(X, centers)
        order = np.argsort(nearest, kind="stable")
        size = np.bincount(nearest, minlength=k)
        some = np.flatnonzero(size)
        starts = (np.cumsum(size) - size)[some]
        sums = np.add.reduceat(X[order], starts, axis=0, dtype=np.float64)
        centers[some] = sums / size[some, None]
    return centers


def _along_space(centers: Float32Array) -> IndexArray:
    """Order in which centres near each other follow each other: halves along the widest axis."""
    order = np.arange(centers.shape[0])
    parts = [(0, order.size)]
    while parts:
        start, stop = parts.pop()
        if stop - start <= 2:
            continue
        mine = order[start:stop]
        around = centers[mine] - centers[mine].mean(axis=0)
        axis = int(np.argmax(np.einsum("ij,ij->j", around, around)))
        middle = (stop - start) // 2
        order[start:stop] = mine[np.argpartition(around[:, axis], middle)]
        parts += [(start, start + middle), (start + middle, stop)]
    return order
