"""Ways to find nearest neighbours: KD-tree, blocked brute force, faiss' inverted file, sparse rows.

Each backend answers ``candidates(Q, k)``: for every row of Q the indices of the (at least) k
nearest of its own points. Distances are not taken from the backend: they are computed again in
float64 from the differences of the features (:func:`pair_distances`), so that duplicates are at
distance exactly 0, distances are symmetric to the last bit, and the order does not depend on how
the candidates were found.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .features import Features, row_blocks

__all__ = ["Backend", "BruteForce", "InvertedFile", "KDTree", "feature_scale", "pair_distances"]

IndexArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


class Backend(Protocol):
    """What every search structure offers."""

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices, shape (n_queries, at least k), of the nearest points of each row of Q."""
        ...


def feature_scale(X: Features) -> float:
    """Power of two by which features are divided so that their squares stay in range.

    1 unless the largest magnitude is beyond 1e100 or below 1e-100.
    """
    if isinstance(X, np.ndarray):
        top = max(float(np.abs(X[rows]).max()) for rows in row_blocks(*extent(X)))
    else:
        top = float(np.abs(X.data).max(initial=0.0))
    if top == 0 or 1e-100 < top < 1e100:
        return 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(top)), -1021, 1022))


def extent(X: NDArray[Any]) -> tuple[int, int]:
    return X.shape[0], 8 * X.shape[1]


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
            own = np.repeat(np.arange(rows.start, rows.stop), k)
            difference = (X[flat] - Q[own]) / scale
            out[rows] = np.asarray(difference.power(2).sum(axis=1)).reshape(-1, k)
    np.sqrt(out, out=out)
    out *= scale
    return out


class KDTree:
    """Exact search in few dimensions: SciPy's KD-tree."""

    def __init__(self, X: NDArray[Any], scale: float) -> None:
        from scipy.spatial import cKDTree

        self.scale = scale
        self.tree = cKDTree(self._placed(X))

    def _placed(self, X: Any) -> FloatArray:
        placed = np.asarray(X, dtype=np.float64)
        return placed if self.scale == 1.0 else placed / self.scale

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points of each row of Q."""
        q = self._placed(Q)
        _, found = self.tree.query(q, k=k, workers=n_jobs)
        return np.asarray(found, dtype=np.intp).reshape(q.shape[0], k)

    def visiting_order(self) -> IndexArray:
        """Points leaf by leaf: consecutive queries touch the same memory."""
        return np.asarray(self.tree.indices, dtype=np.intp)


class BruteForce:
    """Exact search in many dimensions, and of sparse rows: blocked matrix products.

    ``|q|^2 - 2 q'x + |x|^2`` loses the digits of distances that are tiny against the norms. So a
    few more candidates than asked for are kept, and a query whose last candidate is not beyond
    doubt farther than its k-th neighbour is searched again by differences (dense features).
    """

    def __init__(self, X: Features, scale: float) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.scale = scale
        self.center: FloatArray | None = None
        if isinstance(X, np.ndarray):
            mean, spread = column_moments(X, scale)
            # A common offset only costs digits. Where it is small the features are used in place.
            if scale != 1.0 or float(mean @ mean) > 100 * spread:
                self.center = mean
            self.points: Features = self._placed(X)
            self.norm = max(
                float(np.einsum("ij,ij->i", b, b, dtype=np.float64).max())
                for b in (self.points[rows] for rows in row_blocks(*extent(X)))
            )
        else:
            self.points = X if scale == 1.0 else X / scale
            self.points.indices = self.points.indices.astype(np.int32, copy=False)
            self.points.indptr = self.points.indptr.astype(np.int32, copy=False)
        self.search = NearestNeighbors(algorithm="brute").fit(self.points)

    def _placed(self, X: Any) -> Any:
        if not isinstance(X, np.ndarray):
            return X if self.scale == 1.0 else X / self.scale
        if self.center is None:
            return np.ascontiguousarray(X)
        out = np.empty(X.shape, dtype=X.dtype)
        for rows in row_blocks(*extent(X)):
            out[rows] = np.asarray(X[rows], dtype=np.float64) / self.scale - self.center
        return out

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points of each row of Q, and a few more."""
        from threadpoolctl import threadpool_limits

        n = self.points.shape[0]
        more = min(n, k + max(4, k // 4))
        q = self._placed(Q)
        if isinstance(q, np.ndarray):
            q = q.astype(self.points.dtype, copy=False)
        with threadpool_limits(_threads(n_jobs, q.shape[0])):
            distances, found = self.search.kneighbors(q, more)
        if isinstance(q, np.ndarray) and more < n:
            doubtful = self._doubtful(q, found, distances, k)
            if doubtful.size:
                with threadpool_limits(_threads(n_jobs, doubtful.size)):
                    found[doubtful] = self._by_differences(q[doubtful], more)
        return np.asarray(found, dtype=np.intp)

    def _doubtful(
        self, q: NDArray[Any], found: IndexArray, distances: FloatArray, k: int
    ) -> IndexArray:
        doubtful = []
        for rows in row_blocks(q.shape[0], 32 * found.shape[1]):
            part = q[rows]
            norms = np.einsum("ij,ij->i", part, part, dtype=np.float64)
            error = 64 * np.finfo(np.float64).eps * (norms + self.norm)
            near = pair_distances(part, self.points, found[rows], 1.0)
            near.sort(axis=1)
            kth = near[:, k - 1] ** 2
            reach = distances[rows, -1].astype(np.float64) ** 2
            wrong = np.flatnonzero((reach - error <= kth) & (error > 1e-9 * kth))
            doubtful.append(wrong + rows.start)
        return np.concatenate(doubtful)

    def _by_differences(self, q: NDArray[Any], k: int) -> IndexArray:
        from sklearn.neighbors import NearestNeighbors

        # The standardised metric with unit variances is the one that is evaluated directly.
        search = NearestNeighbors(
            algorithm="brute", metric="seuclidean", metric_params={"V": np.ones(q.shape[1])}
        ).fit(self.points)
        found = search.kneighbors(q, k, return_distance=False)
        return np.asarray(found, dtype=np.intp)


def _threads(n_jobs: int, n_queries: int) -> int:
    """Threads for an exhaustive search whose answer must not depend on their number.

    With fewer than 1024 queries per thread it would split the points instead of the queries, and
    ties would be broken by where it splits.
    """
    return max(1, min(n_jobs, (n_queries - 1) // 1024))


class InvertedFile:
    """Approximate search in many points: faiss' inverted file, exact within the cells it visits.

    The points are split into cells around k-means centres; a query looks into the `n_probe`
    nearest cells. Training runs on one thread: the cells do not depend on `n_jobs`.
    """

    def __init__(self, X: NDArray[Any], scale: float, seed: int) -> None:
        self.faiss: Any = require("faiss", "ann")
        n, d = X.shape
        mean, spread = column_moments(X, scale)
        self.center = mean
        self.scale = scale
        # Unit spread: single precision would overflow on features beyond 1e19.
        self.unit = float(np.sqrt(spread / d)) or 1.0
        # Measured: in few dimensions scanning costs more than choosing cells, so there are more.
        n_cells = max(1, min(n, int((3 if d <= 16 else 2) * np.sqrt(n))))
        with _FaissThreads(self.faiss, 1):
            # The index only points to its quantizer, which must live as long.
            self.quantizer = self.faiss.IndexFlatL2(d)
            self.index = self.faiss.IndexIVFFlat(self.quantizer, d, n_cells)
            clustering = self.index.cp
            clustering.niter, clustering.seed = 6, seed % 2**31
            clustering.min_points_per_centroid, clustering.max_points_per_centroid = 1, 64
            rng = np.random.default_rng(seed)
            sample = np.sort(rng.choice(n, min(n, 32 * n_cells), replace=False))
            self.index.train(self._placed(X[sample]))
            for rows in row_blocks(*extent(X)):
                self.index.add(self._placed(X[rows]))
        self.n_cells = n_cells
        self.n_probe = min(8, n_cells)

    def visiting_order(self) -> IndexArray:
        """Points cell by cell: consecutive queries scan the same cells."""
        lists = self.index.invlists
        cells = [
            self.faiss.rev_swig_ptr(lists.get_ids(c), lists.list_size(c))
            for c in range(self.n_cells)
            if lists.list_size(c)
        ]
        return np.concatenate(cells).astype(np.intp)

    def probes_needed(self, Q: Any, points: IndexArray) -> tuple[IndexArray, FloatArray]:
        """How many cells a query has to visit to meet given points; see :func:`visits_needed`."""
        centers = self.quantizer.reconstruct_n(0, self.n_cells).astype(np.float64)
        sizes = np.array([self.index.invlists.list_size(c) for c in range(self.n_cells)])
        cell = np.empty(sizes.sum(), dtype=np.intp)
        cell[self.visiting_order()] = np.repeat(np.arange(self.n_cells), sizes)
        return visits_needed(self._placed(Q), centers, sizes, cell, points)

    def _placed(self, X: NDArray[Any]) -> NDArray[np.float32]:
        placed = np.asarray(X, dtype=np.float64) / self.scale
        placed -= self.center
        placed /= self.unit
        return placed.astype(np.float32)

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points in the cells visited; -1 where those hold fewer."""
        self.index.nprobe = self.n_probe
        with _FaissThreads(self.faiss, n_jobs):
            _, found = self.index.search(self._placed(np.asarray(Q)), k)
        return np.asarray(found, dtype=np.intp)


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


class _FaissThreads:
    """Set faiss' number of threads for a while."""

    def __init__(self, faiss: Any, n_threads: int) -> None:
        self.faiss, self.n_threads = faiss, n_threads

    def __enter__(self) -> None:
        self.before = self.faiss.omp_get_max_threads()
        self.faiss.omp_set_num_threads(self.n_threads)

    def __exit__(self, *_: object) -> None:
        self.faiss.omp_set_num_threads(self.before)


def column_moments(X: NDArray[Any], scale: float) -> tuple[FloatArray, float]:
    """Mean of each column and summed variance, of the features divided by `scale`."""
    n = X.shape[0]
    mean = np.zeros(X.shape[1])
    for rows in row_blocks(*extent(X)):
        mean += (np.asarray(X[rows], dtype=np.float64) / scale).sum(axis=0)
    mean /= n
    total = 0.0
    for rows in row_blocks(*extent(X)):
        total += float(np.square(np.asarray(X[rows], dtype=np.float64) / scale - mean).sum())
    return mean, total / n
