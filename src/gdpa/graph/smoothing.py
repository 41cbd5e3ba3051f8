"""Features smoothed along a graph: each node's features are mixed with those of its neighbours.

    S = D^-1/2 (W + c I) D^-1/2,   Z_t = p S Z_(t-1) + (1 - p) Z_0

D has the row sums of W + c I, c is the mean weight of a link, and p (`pull`) is the weight of the
neighbours. With p = 1 the features are multiplied by powers of S, with p < 1 this is personalised
PageRank. Rows of sparse features (bags of words) have unit length before and after smoothing, and
counts get inverse document frequency weights. Dense features are standardised by column, or their
rows are scaled to unit length if `unit` is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from ..codec import storable
from ..linalg.row_products import row_squares
from .features import Features, check_features

# Limit on the memory of smoothed features. It is fixed, not the free memory, so that the same data
# always get the same number of steps.
MOST_BYTES = 2e9
# Dense features with more entries are smoothed in single precision, to halve time and memory.
DOUBLE_ENTRIES = 2_000_000
# Share of nonzero cells above which dense products are faster.
FILLED = 0.05
# Standardised features (in double and single precision) and weights are clipped at these values, so
# that they stay finite after several steps.
FAR = 1e100
FAR_SINGLE = 1e15
HEAVIEST = 1e60


def unit_rows(Z: Features) -> Features:
    """Return rows of length 1; empty rows stay empty."""
    if isinstance(Z, np.ndarray):
        if not 1e-15 < max(Z.max(), -Z.min()) < 1e15:  # squares must neither overflow nor underflow
            Z = np.ldexp(Z, -np.frexp(np.abs(Z).max(axis=1, keepdims=True))[1])
        length = np.sqrt(row_squares(Z))[:, None]
        return Z / np.where(length > 0, length, 1.0)
    Z = sp.csr_array(Z, dtype=np.float64)
    if Z.data.size and not 1e-100 < np.abs(Z.data).max() < 1e100:
        largest = abs(Z).max(axis=1).toarray().ravel()
        exponent = np.repeat(np.frexp(largest)[1], np.diff(Z.indptr))
        Z = sp.csr_array((np.ldexp(Z.data, -exponent), Z.indices, Z.indptr), Z.shape)
    length = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return sp.csr_array(sp.diags_array(inverse) @ Z)


@storable("smoother")
@dataclass(frozen=True)
class Smoother:
    """A graph and the features of its nodes.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Symmetric non-negative weights.
    features : ndarray or csr_array of shape (n_nodes, n_features)
        Features.
    unit : bool, default=False
        Whether to scale rows of dense features to unit length. Rows of sparse ones always are.
    """

    W: sp.csr_array
    features: Features
    unit: bool = False

    def __post_init__(self) -> None:
        n = check_features(self.features, name="features").shape[0]
        if self.W.shape != (n, n) or self.W.data.min(initial=0.0) < 0:
            raise ValueError(f"W must hold non-negative weights and have shape ({n}, {n})")

    def __getstate__(self) -> dict[str, Any]:
        # Cached results are computed again.
        return {"W": self.W, "features": self.features, "unit": self.unit}

    @property
    def sparse(self) -> bool:
        """Whether the features are sparse."""
        return bool(sp.issparse(self.features))

    @property
    def unit_rows(self) -> bool:
        """Whether rows have unit length; otherwise columns are standardised."""
        return self.sparse or self.unit

    def relative(self, links: sp.csr_array) -> sp.csr_array:
        """Return weights relative to the graph's largest, so that sums do not overflow."""
        top = float(self.W.data.max(initial=0.0))
        exponent = int(np.frexp(top)[1]) if top > 0 else 0
        if abs(exponent) <= 60 and links.data.max(initial=0.0) <= 2.0**60:
            return links
        # In two steps, because one power of two cannot scale up the smallest numbers.
        with np.errstate(over="ignore"):
            data = np.ldexp(np.ldexp(links.data, -(exponent // 2)), exponent // 2 - exponent)
        return sp.csr_array((np.minimum(data, HEAVIEST), links.indices, links.indptr), links.shape)

    @cached_property
    def _W(self) -> sp.csr_array:
        """Relative weights of the graph."""
        return self.relative(self.W)

    @cached_property
    def loop(self) -> float:
        """Weight c of a node's own features."""
        return float(self._W.data.mean()) if self.W.nnz else 1.0

    @cached_property
    def root(self) -> FloatArray:
        """``D^-1/2``."""
        return np.asarray(1.0 / np.sqrt(np.asarray(self._W.sum(axis=1)).ravel() + self.loop))

    @cached_property
    def S(self) -> sp.csr_array:
        """The smoothing matrix."""
        n = self.W.shape[0]
        outer = sp.diags_array(self.root)
        return sp.csr_array(outer @ (self._W + self.loop * sp.eye_array(n)) @ outer)

    @property
    def dtype(self) -> Any:
        """Type of smoothed features."""
        n, d = self.features.shape
        return np.float64 if self.sparse or n * d <= DOUBLE_ENTRIES else np.float32

    @cached_property
    def _rarity(self) -> FloatArray | None:
        """Inverse document frequencies, ``1 + log((1 + n) / (1 + n_j))``; None if not counts."""
        F: sp.csr_array = self.features
        if not self.sparse or not F.nnz or F.data.min() < 0 or (F.data != np.rint(F.data)).any():
            return None
        n, d = F.shape
        return np.asarray(1.0 + np.log((1.0 + n) / (1.0 + np.bincount(F.indices, minlength=d))))

    @cached_property
    def start(self) -> Features:
        """Features ``Z_0`` of all nodes."""
        return self.first(self.features)

    def first(self, X: Features) -> Features:
        """Return features ``Z_0`` of rows."""
        if self.sparse:
            X = sp.csr_array(X, dtype=np.float64)
            return unit_rows(X if self._rarity is None else X @ sp.diags_array(self._rarity))
        if self.unit:
            return unit_rows(np.asarray(X, dtype=np.float64)).astype(self.dtype, copy=False)
        mean, deviation = self._columns
        with np.errstate(over="ignore"):
            Z = np.subtract(X, mean, dtype=np.float64).astype(self.dtype, copy=False)
            Z /= deviation.astype(self.dtype)
        far = FAR if self.dtype == np.float64 else FAR_SINGLE
        return np.clip(Z, -far, far, out=Z)

    @cached_property
    def _columns(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the columns."""
        A = np.asarray(self.features)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = A.mean(axis=0, dtype=np.float64)
            deviation = A.std(axis=0, dtype=np.float64)
        ordinary = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0)
        return np.where(ordinary, mean, 0.0), np.where(ordinary, deviation, 1.0)

    def most_steps(self, wanted: int) -> int:
        """Return how many of the wanted steps fit in memory; smoothing fills sparse rows.

        Parameters
        ----------
        wanted : int
            Number of steps.

        Returns
        -------
        int
            Number of steps that fit, at most `wanted`.
        """
        F: sp.csr_array = self.features
        n, d = F.shape
        sizes = np.full(wanted, float(n * d * np.dtype(self.dtype).itemsize))
        if self.sparse:
            linked = self.S.copy()
            linked.data = np.ones_like(linked.data)
            rows = np.diff(F.indptr).astype(np.float64)
            for t in range(wanted):
                rows = np.minimum(linked @ rows, d)
                sizes[t] = 12.0 * rows.sum() if rows.sum() <= FILLED * n * d else 4.0 * n * d
        # Features before and after a step, and the stored results of fewer steps.
        return int((4.0 * np.maximum.accumulate(sizes) <= MOST_BYTES).sum())

    def _states(self, pull: float, steps: int) -> Iterator[Any]:
        """Yield ``Z_0`` to ``Z_steps``; sparse ones become dense when smoothing has filled them."""
        n, d = self.features.shape
        Z: Any = self.start
        across = self.S.astype(self.dtype)
        start = (1.0 - pull) * Z
        yield Z
        for _ in range(steps):
            Z = across @ Z
            if sp.issparse(Z) and Z.nnz > FILLED * n * d:
                across = across.astype(np.float32)
                Z = Z.astype(np.float32).toarray()
                start = start.astype(np.float32).toarray()
            if pull < 1.0:
                Z *= pull
                Z = Z + start
            yield Z

    @cached_property
    def _points(self) -> dict[tuple[float, int], tuple[Any, Any]]:
        """Results of `_scaled`."""
        return {}

    def _scaled(self, pull: float, steps: int) -> tuple[Any, Any]:
        """Return the points and the factors of their columns (None if rows have unit length)."""
        if (pull, steps) not in self._points:
            *_, Z = self._states(pull, steps)
            factor = None
            if self.unit_rows:
                Z = unit_rows(Z)
            else:
                deviation = Z.std(axis=0, dtype=np.float64)
                # Columns that are constant up to rounding are not scaled up.
                size = np.maximum(Z.max(axis=0), -Z.min(axis=0)).astype(np.float64)
                least = 100.0 * float(np.finfo(Z.dtype).eps) * size
                factor = (1.0 / np.where(deviation > least, deviation, 1.0)).astype(Z.dtype)
                Z = Z * factor
            self._points[pull, steps] = Z, factor
        return self._points[pull, steps]

    def points(self, pull: float, steps: int) -> Any:
        """Return ``Z_steps`` with rows of unit length or columns of standard deviation 1.

        Parameters
        ----------
        pull : float
            Weight p of the neighbours.
        steps : int
            Number of steps.

        Returns
        -------
        ndarray or csr_array of shape (n_nodes, n_features)
            Smoothed features of all nodes.
        """
        return self._scaled(pull, steps)[0]

    def new_points(
        self, X: Features | None, links: sp.csr_array | None, pull: float, steps: int
    ) -> Any:
        """Return the points of new rows, which may lack either features or links.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features), optional
            Features; None is the same as zeros.
        links : csr_array of shape (n_rows, n_nodes), optional
            Weights of links from the rows to the nodes.
        pull : float
            Weight p of the neighbours.
        steps : int
            Number of steps.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            Smoothed features.
        """
        n, d = self.features.shape
        rows = X.shape[0] if X is not None else links.shape[0]  # type: ignore[union-attr]
        if X is not None:
            start: Any = self.first(X)
        else:
            start = sp.csr_array((rows, d)) if self.sparse else np.zeros((rows, d), self.dtype)
        links = self.relative(sp.csr_array((rows, n)) if links is None else links)
        root = 1.0 / np.sqrt(np.asarray(links.sum(axis=1)).ravel() + self.loop)
        across = sp.csr_array(sp.diags_array(root) @ links @ sp.diags_array(self.root))
        inner = sp.diags_array(self.loop * root * root)
        Z = start
        for state in islice(self._states(pull, steps), steps):
            Z = pull * (inner @ Z + across @ state)
            if pull < 1.0:
                Z = Z + (1.0 - pull) * start
        return unit_rows(Z) if self.unit_rows else Z * self._scaled(pull, steps)[1]
