"""Features smoothed along a given graph: each node's own, mixed with those of its neighbours.

    S = D^-1/2 (W + c I) D^-1/2,   Z_t = S^t Z

with D the row sums of W + c I and c the mean weight of a link. Sparse features (bags of words) have
rows of unit length before and after, counts are weighted by how rare a word is, and all stay
sparse; columns of others are brought to deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..codec import storable
from . import memory
from .features import Features, check_features

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp] | slice

# Smoothed features take at most so many bytes: a number, not what happens to be free, so that the
# same data give the same steps on any day.
MOST_BYTES = 4e9
# Dense features with more entries are smoothed in single precision: half the time, half the memory.
DOUBLE_ENTRIES = 2_000_000
# Deviations beyond which a row is no farther away, and weights beyond which a link is no heavier
# (in double and single precision: what is left of them after some steps is still a number).
FAR, FAR_SINGLE, HEAVIEST = 1e100, 1e15, 1e60


def no_links(n_rows: int, n_nodes: int) -> sp.csr_array:
    """Rows without a link to any node."""
    return sp.csr_array((n_rows, n_nodes))


def _inverse_lengths(Z: sp.csr_array) -> FloatArray:
    """What brings sparse rows to length 1; empty rows stay empty."""
    length = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    return np.asarray(np.divide(1.0, length, out=np.zeros_like(length), where=length > 0))


def _unit(Z: sp.csr_array) -> sp.csr_array:
    """Sparse rows of length 1."""
    Z = sp.csr_array(Z, dtype=np.float64)
    if Z.data.size and not 1e-100 < np.abs(Z.data).max() < 1e100:  # squares must be numbers
        largest = abs(Z).max(axis=1).toarray().ravel()
        exponent = np.repeat(np.frexp(largest)[1], np.diff(Z.indptr))
        Z = sp.csr_array((np.ldexp(Z.data, -exponent), Z.indices, Z.indptr), Z.shape)
    return sp.csr_array(sp.diags_array(_inverse_lengths(Z)) @ Z)


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
    """

    W: sp.csr_array
    features: Features

    def __post_init__(self) -> None:
        n = check_features(self.features, name="features").shape[0]
        if self.W.shape != (n, n) or self.W.data.min(initial=0.0) < 0:
            raise ValueError(f"W must be non-negative weights of {n} nodes")

    def __getstate__(self) -> dict[str, Any]:
        # What is computed from the two is computed again.
        return {"W": self.W, "features": self.features}

    @property
    def sparse(self) -> bool:
        """Whether the features are sparse."""
        return bool(sp.issparse(self.features))

    def _relative(self, links: sp.csr_array) -> sp.csr_array:
        """Weights in units of the graph's largest (a power of two), so that they have sums."""
        top = float(self.W.data.max(initial=0.0))
        exponent = int(np.frexp(top)[1]) if top > 0 else 0
        if abs(exponent) <= 60 and links.data.max(initial=0.0) <= 2.0**60:
            return links
        # In two steps: no power of two undoes the smallest numbers at once.
        with np.errstate(over="ignore"):
            data = np.ldexp(np.ldexp(links.data, -(exponent // 2)), exponent // 2 - exponent)
        return sp.csr_array((np.minimum(data, HEAVIEST), links.indices, links.indptr), links.shape)

    @cached_property
    def _W(self) -> sp.csr_array:
        return self._relative(self.W)

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
    def _across(self) -> sp.csr_array:
        """The smoothing matrix in the type of the features."""
        return self.S.astype(self.dtype)

    @cached_property
    def _steps(self) -> list[Any]:
        return [self._first(self.features)]

    @cached_property
    def _scales(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _rarity(self) -> FloatArray | None:
        """Weights ``1 + log((1 + n) / (1 + n_j))`` of words in n_j rows; None if X counts nothing.

        Words that few documents have say more. Other sparse features may be so weighted already.
        """
        F: sp.csr_array = self.features
        if not self.sparse or not F.nnz or F.data.min() < 0 or (F.data != np.rint(F.data)).any():
            return None
        n, d = F.shape
        return np.asarray(1.0 + np.log((1.0 + n) / (1.0 + np.bincount(F.indices, minlength=d))))

    def _first(self, X: Features) -> Features:
        if self.sparse:
            X = sp.csr_array(X, dtype=np.float64)
            return _unit(X if self._rarity is None else X @ sp.diags_array(self._rarity))
        mean, deviation = self._columns
        with np.errstate(over="ignore"):
            Z = np.subtract(X, mean, dtype=np.float64).astype(self.dtype, copy=False)
            Z /= deviation.astype(self.dtype)
        far = FAR if self.dtype == np.float64 else FAR_SINGLE
        return np.clip(Z, -far, far, out=Z)

    @cached_property
    def _columns(self) -> tuple[FloatArray, FloatArray]:
        A = np.asarray(self.features)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = A.mean(axis=0, dtype=np.float64), A.std(axis=0, dtype=np.float64)
        ordinary = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0)
        return np.where(ordinary, mean, 0.0), np.where(ordinary, deviation, 1.0)

    def most_steps(self, wanted: int) -> int:
        """How many steps the memory allowed for takes; smoothing fills sparse rows.

        Parameters
        ----------
        wanted : int
            Steps that are asked for.

        Returns
        -------
        int
            At least 1.

        Raises
        ------
        MemoryError
            If a single step does not fit into what is free.
        """
        F: sp.csr_array = self.features
        n, d = F.shape
        if not self.sparse:
            step = float(n * d * np.dtype(self.dtype).itemsize)
            sizes = [step] * (wanted + 1)
        else:
            linked = self.S.copy()
            linked.data = np.ones_like(linked.data)
            rows = np.diff(F.indptr).astype(np.float64)
            sizes = [12.0 * float(rows.sum())]
            for _ in range(wanted):
                rows = np.minimum(linked @ rows, d)
                sizes.append(12.0 * float(rows.sum()))
        steps = max(1, int((np.cumsum(sizes) <= MOST_BYTES).sum()) - 1)
        need = sum(sizes[: steps + 1])
        if need > memory.WORTH_A_LOOK:
            memory.check_memory(
                need,
                f"{n} nodes with {d} features smoothed along their links",
                "use fewer columns (scikit-learn's TruncatedSVD) or graph='precomputed'",
            )
        return steps

    def smoothed(self, t: int) -> Any:
        """``Z_t`` of all nodes."""
        while len(self._steps) <= t:
            self._steps.append(self._across @ self._steps[-1])
        return self._steps[t]

    def scale(self, t: int) -> Any:
        """What ``Z_t`` is multiplied by: a number for each row of sparse features, else a column.

        Parameters
        ----------
        t : int
            Number of steps.

        Returns
        -------
        ndarray
            Inverse lengths of rows, or inverse deviations of columns.
        """
        if t not in self._scales:
            Z = self.smoothed(t)
            if self.sparse:
                self._scales[t] = _inverse_lengths(Z)
            else:
                deviation = Z.std(axis=0, dtype=np.float64)
                # What all nodes share but for rounding tells none of them apart.
                size = np.maximum(Z.max(axis=0), -Z.min(axis=0)).astype(np.float64)
                least = 100.0 * float(np.finfo(Z.dtype).eps) * size
                varies = np.where(deviation > least, deviation, 1.0)
                self._scales[t] = (1.0 / varies).astype(Z.dtype)
        return self._scales[t]

    def points(self, t: int, rows: Rows = slice(None)) -> Any:
        """``Z_t`` as a model takes it: rows of unit length, or columns of deviation 1.

        Parameters
        ----------
        t : int
            Number of steps.
        rows : ndarray of int, optional
            Nodes; all by default.

        Returns
        -------
        ndarray or csr_array
            Their points.
        """
        Z = self.smoothed(t)[rows]
        if self.sparse:
            return sp.csr_array(sp.diags_array(self.scale(t)[rows]) @ Z)
        return Z * self.scale(t)

    def product(self, t: int, slopes: FloatArray, rows: Rows = slice(None)) -> FloatArray:
        """``points(t, rows) @ slopes`` without the points.

        Parameters
        ----------
        t : int
            Number of steps.
        slopes : ndarray of shape (n_features, n_columns)
            Slopes.
        rows : ndarray of int, optional
            Nodes; all by default.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The product.
        """
        Z = self.smoothed(t)[rows]
        if self.sparse:
            return np.asarray(self.scale(t)[rows, None] * (Z @ slopes))
        return np.asarray(Z @ (self.scale(t)[:, None] * slopes.astype(Z.dtype)))

    def new_points(self, X: Features | None, links: sp.csr_array | None, t: int) -> Any:
        """The same of new rows, of which either features or links may be missing.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features), optional
            Their features; None: nothing of their own.
        links : csr_array of shape (n_rows, n_nodes), optional
            Weights of their links to the nodes.
        t : int
            Number of steps.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            Smoothed features.
        """
        n, d = self.features.shape
        rows = X.shape[0] if X is not None else links.shape[0]  # type: ignore[union-attr]
        if links is None:
            links = no_links(rows, n)
        if X is not None:
            Z = self._first(X)
        else:
            Z = sp.csr_array((rows, d)) if self.sparse else np.zeros((rows, d), self.dtype)
        links = self._relative(links)
        root = 1.0 / np.sqrt(np.asarray(links.sum(axis=1)).ravel() + self.loop)
        across = sp.csr_array(sp.diags_array(root) @ links @ sp.diags_array(self.root))
        inner = sp.diags_array(self.loop * root * root)
        for step in range(t):
            Z = inner @ Z + across @ self.smoothed(step)
        return _unit(Z) if self.sparse else Z * self.scale(t)
