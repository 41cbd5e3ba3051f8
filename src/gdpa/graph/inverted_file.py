"""Approximate search by the inverted file of the library faiss (extra ``ann``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .features import Features, row_blocks
from .search import FARTHEST, FloatArray, IndexArray, column_moments, visits_needed

__all__ = ["InvertedFile"]


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
            for rows in row_blocks(n, 8 * d):
                self.index.add(self._placed(X[rows]))
        self.n_cells = n_cells
        lists = self.index.invlists
        self.sizes = np.array([lists.list_size(c) for c in range(n_cells)])
        cells = [
            self.faiss.rev_swig_ptr(lists.get_ids(int(c)), int(self.sizes[c]))
            for c in np.flatnonzero(self.sizes)
        ]
        # Points cell by cell: consecutive queries scan the same cells.
        self.order = np.concatenate(cells).astype(np.intp)
        self.n_probe = min(8, n_cells)

    def probes_needed(self, Q: Any, points: IndexArray) -> tuple[IndexArray, FloatArray]:
        """How many cells a query has to visit to meet given points; see :func:`visits_needed`."""
        centers = self.quantizer.reconstruct_n(0, self.n_cells).astype(np.float64)
        cell = np.empty(self.order.size, dtype=np.intp)
        cell[self.order] = np.repeat(np.arange(self.n_cells), self.sizes)
        return visits_needed(self._placed(Q), centers, self.sizes, cell, points)

    def _placed(self, X: NDArray[Any]) -> NDArray[np.float32]:
        placed = np.asarray(X, dtype=np.float64) / self.scale
        placed -= self.center
        placed /= self.unit
        return np.clip(placed, -FARTHEST, FARTHEST).astype(np.float32)

    def candidates(self, Q: Features, k: int, n_jobs: int) -> IndexArray:
        """Indices of the k nearest points in the cells visited; in more where those hold fewer."""
        placed, probes = self._placed(np.asarray(Q)), self.n_probe
        nearest = np.full((placed.shape[0], k), -1, dtype=np.intp)
        short = np.arange(placed.shape[0])
        with _FaissThreads(self.faiss, n_jobs):
            while True:
                self.index.nprobe = probes
                nearest[short] = self.index.search(placed[short], k)[1]
                short = short[nearest[short, -1] < 0]
                if short.size == 0 or probes == self.n_cells:
                    return nearest
                probes = min(self.n_cells, 4 * probes)


class _FaissThreads:
    """Set faiss' number of threads for a while."""

    def __init__(self, faiss: Any, n_threads: int) -> None:
        self.faiss, self.n_threads = faiss, n_threads

    def __enter__(self) -> None:
        self.before = self.faiss.omp_get_max_threads()
        self.faiss.omp_set_num_threads(self.n_threads)

    def __exit__(self, *_: object) -> None:
        self.faiss.omp_set_num_threads(self.before)
