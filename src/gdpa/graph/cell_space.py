"""Two levels of cells: find the cell of a point, and the cells around another cell.

k-means on a sample gives the centres of groups, and within each group the centres of its cells. The
cell of a point is searched in the nearest groups only, which takes about n log n comparisons for n
points. With few cells there is one group, and the search is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..threads import in_threads
from .features import Features, row_blocks
from .search import column_moments

Float32Array: TypeAlias = NDArray[np.float32]
IndexArray: TypeAlias = NDArray[np.intp]

# Points per cell: smaller cells need more calls, larger ones more comparisons.
CELL_POINTS = 400
# Points per cell that centres are trained on.
TRAINING_POINTS = 24
# With at most this many cells (1.2 million points) every point is compared with all centres.
ONE_GROUP = 3_000
# Groups in which the cell of a point is searched: 1.5 % of the points miss their nearest cell
# (clusters in 8 dimensions, 1,000 cells in 63 groups).
GROUPS_SEARCHED = 4
# Pairs compared by one product; they fit in the cache of a core.
TILE = 2**18
# Suppress spurious invalid-value warnings of OpenBLAS: all factors here are finite.
_FINITE = np.errstate(invalid="ignore")


@dataclass(frozen=True)
class CellCenters:
    """Centres of cells, sorted by group so that neighbouring cells have nearby numbers.

    Parameters
    ----------
    centers : ndarray of shape (n_cells, n_features)
        Centres of the cells.
    groups : ndarray of shape (n_groups, n_features)
        Centres of the groups.
    ends : ndarray of shape (n_groups + 1,)
        Cells ``ends[g]`` to ``ends[g + 1]`` belong to group g.
    """

    centers: FloatArray
    groups: FloatArray
    ends: IndexArray

    @classmethod
    def train(cls, sample: Float32Array, n_cells: int, rng: np.random.Generator) -> CellCenters:
        """Train the centres on a sample.

        Parameters
        ----------
        sample : ndarray of float32 of shape (n_sample, n_features)
            Points, at least one per cell.
        n_cells : int
            Number of centres.
        rng : Generator
            Chooses the initial centres.

        Returns
        -------
        CellCenters
            The centres.
        """
        n_groups = 1 if n_cells <= ONE_GROUP else round(np.sqrt(GROUPS_SEARCHED * n_cells))
        if n_groups == 1:
            means = _means(sample, n_cells, rng)
            centers = means[_along_space(means)].astype(np.float64)
            return cls(centers, centers.mean(axis=0)[None], np.array([0, n_cells]))
        some = min(sample.shape[0], 96 * n_groups)
        part = np.sort(rng.choice(sample.shape[0], some, replace=False))
        groups = _means(sample[part], n_groups, rng)
        groups = groups[_along_space(groups)]
        group = nearest_of(sample, groups)
        order = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))])
        # The number of cells of a group is proportional to its number of points.
        ends = np.round(starts * (n_cells / sample.shape[0])).astype(np.intp)
        parts = []
        for g in np.flatnonzero(np.diff(ends)):
            members = sample[order[starts[g] : starts[g + 1]]]
            cells = _means(members, int(ends[g + 1] - ends[g]), rng)
            parts.append(cells[_along_space(cells)])
        centers = np.concatenate(parts).astype(np.float64)
        return cls(centers, groups.astype(np.float64), ends)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.centers.shape[0])

    def nearest(self, X: Float32Array) -> NDArray[np.int32]:
        """Return the cell of each point.

        Parameters
        ----------
        X : ndarray of float32 of shape (n_points, n_features)
            Points.

        Returns
        -------
        ndarray of int32 of shape (n_points,)
            The nearest centre among those of the nearest groups.
        """
        centers = self.centers.astype(np.float32)
        if self.groups.shape[0] == 1:
            return nearest_of(X, centers)
        groups = self.groups.astype(np.float32)
        groups = np.vstack([groups.T, -0.5 * np.einsum("ij,ij->i", groups, groups)])
        factor = np.vstack([centers.T, -0.5 * np.einsum("ij,ij->i", centers, centers)])
        cell = np.empty(X.shape[0], dtype=np.int32)

        for rows in row_blocks(X.shape[0], 1, 32_768):
            cell[rows] = self._nearest_in_groups(X[rows], groups, factor)
        return cell

    @_FINITE
    def _nearest_in_groups(
        self, X: Float32Array, groups: Float32Array, factor: Float32Array
    ) -> NDArray[np.int32]:
        m = X.shape[0]
        searched = min(GROUPS_SEARCHED, self.groups.shape[0])
        padded = np.ones((m, X.shape[1] + 1), dtype=np.float32)
        padded[:, :-1] = X
        chosen = np.empty((searched, m), dtype=np.int16)
        for rows in row_blocks(m, 1, max(1, TILE // groups.shape[1])):
            value = padded[rows] @ groups
            each = np.arange(value.shape[0])
            for turn in range(searched):
                best = value.argmax(axis=1)
                chosen[turn, rows] = best
                value[each, best] = -np.inf
        cell = np.zeros(m, dtype=np.int32)
        top = np.full(m, -np.inf, dtype=np.float32)
        for turn in range(searched):
            order = np.argsort(chosen[turn], kind="stable")
            for start, stop in runs(chosen[turn][order]):
                low, high = self.ends[(g := chosen[turn, order[start]]) : g + 2].tolist()
                if low == high:
                    continue
                mine = order[start:stop]
                value = padded.take(mine, axis=0) @ factor[:, low:high]
                best = value.argmax(axis=1)
                value = value[np.arange(mine.size), best]
                better = value > top[mine]
                top[mine[better]] = value[better]
                cell[mine[better]] = best[better] + low
        return cell

    @_FINITE
    def around(self, cells: NDArray[Any], m: int) -> NDArray[np.int32]:
        """Return the cells near given cells.

        Parameters
        ----------
        cells : ndarray of int of shape (n_asked,)
            The given cells, in ascending order.
        m : int
            Number of cells to return for each; reduced to the number of cells.

        Returns
        -------
        ndarray of int32 of shape (n_asked, m)
            The cells with the nearest centres in the nearest groups, unsorted, including the cell
            itself.
        """
        m = min(m, self.centers.shape[0])
        near = np.empty((cells.size, m), dtype=np.int32)
        if m == self.centers.shape[0]:
            near[:] = np.arange(m)
            return near
        sizes = np.diff(self.ends)
        group = np.searchsorted(self.ends, cells, side="right") - 1
        for start, stop in runs(group):
            g = group[start]
            apart = self.groups - self.groups[g]
            by_distance = np.argsort(np.einsum("ij,ij->i", apart, apart), kind="stable")
            # Search the nearest groups that together have eight times as many cells.
            enough = np.searchsorted(np.cumsum(sizes[by_distance]), 8 * m) + 1
            nearby = np.zeros(sizes.size, dtype=bool)
            nearby[by_distance[:enough]] = True
            members = np.flatnonzero(np.repeat(nearby, sizes))
            centers = self.centers[members]
            norms = np.einsum("ij,ij->i", centers, centers)
            for rows in row_blocks(stop - start, 16 * members.size):
                asked = cells[start:stop][rows]
                squares = norms - 2 * self.centers[asked] @ centers.T
                first = np.argpartition(squares, m - 1, axis=1)[:, :m]
                near[start:stop][rows] = members[first]
        return near


@dataclass(frozen=True)
class CellSpace:
    """The cells, and the shift and scale of features before they are compared.

    Parameters
    ----------
    scale : float
        Divides the features; see :func:`~gdpa.graph.search.feature_scale`.
    offset : ndarray of shape (n_features,)
        Mean that is subtracted.
    unit : float
        Spread that divides the result.
    centers : CellCenters
        Centres of the cells in these coordinates.
    """

    scale: float
    offset: FloatArray
    unit: float
    centers: CellCenters

    @classmethod
    def fit(
        cls, X: NDArray[Any], scale: float, seed: int, n_points: int | None = None
    ) -> CellSpace:
        """Choose cells for points.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The points, or a sample of them.
        scale : float
            Divides the features.
        seed : int
            Random seed of the centres.
        n_points : int, optional
            Number of all points, if X is a sample.

        Returns
        -------
        CellSpace
            Cells of about 400 points each.
        """
        n, d = X.shape
        offset, spread = column_moments(X, scale)
        unit = float(np.sqrt(spread / d)) or 1.0
        n_cells = min(n, max(1, (n if n_points is None else n_points) // CELL_POINTS))
        rng = np.random.default_rng(seed)
        sample = rng.choice(n, min(n, TRAINING_POINTS * n_cells), replace=False)
        sample.sort()
        placed = (np.asarray(X[sample], dtype=np.float64) / scale - offset) / unit
        return cls(scale, offset, unit, CellCenters.train(placed.astype(np.float32), n_cells, rng))

    def placed(self, X: Features) -> FloatArray:
        """Return the shifted and scaled features."""
        placed = np.asarray(X, dtype=np.float64) / self.scale
        placed -= self.offset
        placed /= self.unit
        # Sums of squares must not overflow in single precision.
        return np.clip(placed, -1e15, 1e15, out=placed)

    def home(self, X: NDArray[Any], n_jobs: int = 1) -> NDArray[np.int32]:
        """Return the cell of each point."""
        home = np.empty(X.shape[0], dtype=np.int32)

        def work(rows: slice) -> None:
            home[rows] = self.centers.nearest(self.placed(X[rows]).astype(np.float32))

        in_threads(work, row_blocks(X.shape[0], 8 * X.shape[1]), n_jobs)
        return home

    def residual(self, X: Features, home: NDArray[np.int32]) -> FloatArray:
        """Return points relative to the centres of their cells."""
        placed = self.placed(X)
        placed -= self.centers.centers[home]
        return placed

    @_FINITE
    def visited(
        self, residual: Float32Array, home: NDArray[np.int32], n_probe: int
    ) -> NDArray[np.int32]:
        """Return the cells that each query visits: its own, then by distance of the centre.

        Parameters
        ----------
        residual : ndarray of float32 of shape (n_queries, n_features)
            Queries relative to the centres of their cells.
        home : ndarray of int of shape (n_queries,)
            Their cells; equal ones are adjacent.
        n_probe : int
            Number of cells to visit.

        Returns
        -------
        ndarray of int32 of shape (n_queries, n_probe)
            Numbers of cells.
        """
        cells = np.empty((home.size, n_probe), dtype=np.int32)
        centers = self.centers.centers
        asked, place = np.unique(home, return_inverse=True)
        # Choose the cells to visit among the cells around the query's own.
        near = self.centers.around(asked, 8 * n_probe + 32)
        for start, stop in runs(home):
            cell = home[start]
            around = near[place[start]]
            step = (centers[around] - centers[cell]).astype(np.float32)
            squares = np.einsum("ij,ij->i", step, step) - 2 * residual[start:stop] @ step.T
            squares[:, around == cell] = -np.inf
            if n_probe < around.size:
                first = np.argpartition(squares, n_probe - 1, axis=1)[:, :n_probe]
                squares = np.take_along_axis(squares, first, 1)
            else:
                first = np.broadcast_to(np.arange(around.size), squares.shape)
            first = np.take_along_axis(first, np.argsort(squares, axis=1, kind="stable"), 1)
            cells[start:stop] = around[first]
        return cells


def runs(values: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the start and end of each run of equal values."""
    if not values.size:
        return []
    new = np.flatnonzero(values[1:] != values[:-1]) + 1
    ends = [0, *new.tolist(), values.size]
    return list(pairwise(ends))


@_FINITE
def nearest_of(X: Float32Array, centers: Float32Array) -> NDArray[np.int32]:
    """Return the nearest centre of each row, which maximises ``x'c - |c|^2 / 2``."""
    factor = np.vstack([centers.T, -0.5 * np.einsum("ij,ij->i", centers, centers)])
    nearest = np.empty(X.shape[0], dtype=np.int32)
    step = max(1, TILE // factor.shape[1])
    padded = np.ones((step, factor.shape[0]), dtype=np.float32)
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        padded[: part.shape[0], :-1] = part
        nearest[start : start + step] = (padded[: part.shape[0]] @ factor).argmax(axis=1)
    return nearest


def _means(X: Float32Array, k: int, rng: np.random.Generator) -> Float32Array:
    """Run five iterations of k-means from random points; return the centres."""
    centers: Float32Array = X[np.sort(rng.choice(X.shape[0], k, replace=False))].copy()
    for _ in range(5):
        nearest = nearest_of(X, centers)
        order = np.argsort(nearest, kind="stable")
        size = np.bincount(nearest, minlength=k)
        some = np.flatnonzero(size)
        starts = (np.cumsum(size) - size)[some]
        sums = np.add.reduceat(X[order], starts, axis=0, dtype=np.float64)
        centers[some] = sums / size[some, None]
    return centers


def _along_space(centers: Float32Array) -> IndexArray:
    """Order centres so that neighbours are close, by bisection along the widest axis."""
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
