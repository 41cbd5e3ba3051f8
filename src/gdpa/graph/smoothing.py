"""Features smoothed along a given graph: each node's own, mixed with those of its neighbours.

    S = D^-1/2 (W + c I) D^-1/2,   Z_t = S^t Z

with D the row sums of W + c I and c the mean weight of a link. Sparse features (bags of words) have
rows of unit length before and after, and stay sparse; columns of others are brought to deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .memory import available_memory

__all__ = ["Smoother", "no_links"]

FloatArray = NDArray[np.float64]


def no_links(n_rows: int, n_nodes: int) -> sp.csr_array:
    """Rows without a link to any node."""
    return sp.csr_array((n_rows, n_nodes))


def _unit(Z: Any) -> sp.csr_array:
    """Sparse rows of length 1; empty rows stay empty."""
    Z = sp.csr_array(Z, dtype=np.float64)
    length = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return sp.csr_array(sp.diags_array(scale) @ Z)


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
    features: Any

    def __getstate__(self) -> dict[str, Any]:
        # What is computed from the two is computed again.
        return {"W": self.W, "features": self.features}

    @property
    def sparse(self) -> bool:
        """Whether the features are sparse."""
        return bool(sp.issparse(self.features))

    @cached_property
    def loop(self) -> float:
        """Weight c of a node's own features."""
        return float(self.W.data.mean()) if self.W.nnz else 1.0

    @cached_property
    def root(self) -> FloatArray:
        """``D^-1/2``."""
        return np.asarray(1.0 / np.sqrt(np.asarray(self.W.sum(axis=1)).ravel() + self.loop))

    @cached_property
    def S(self) -> sp.csr_array:
        """The smoothing matrix."""
        n = self.W.shape[0]
        outer = sp.diags_array(self.root)
        return sp.csr_array(outer @ (self.W + self.loop * sp.eye_array(n)) @ outer)

    @cached_property
    def _steps(self) -> list[Any]:
        return [self._first(self.features)]

    def _first(self, X: Any) -> Any:
        if self.sparse:
            return _unit(X)
        mean, deviation = self._columns
        return (np.asarray(X, dtype=np.float64) - mean) / deviation

    @cached_property
    def _columns(self) -> tuple[FloatArray, FloatArray]:
        A = np.asarray(self.features)
        deviation = A.std(axis=0, dtype=np.float64)
        return A.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0)

    def most_steps(self, wanted: int) -> int:
        """How many steps fit into an eighth of the free memory; smoothing fills sparse rows."""
        n, d = self.features.shape
        entries = n * d if not self.sparse else int(self.features.nnz)
        room = available_memory() / 8.0
        steps = 0
        rows = np.full(n, float(d)) if not self.sparse else np.diff(self.features.indptr)
        total = 12.0 * entries
        while steps < wanted:
            rows = np.minimum((self.S != 0) @ rows, d)
            total += 12.0 * float(rows.sum())
            if total > room:
                break
            steps += 1
        return steps

    def smoothed(self, t: int) -> Any:
        """``Z_t`` of all nodes."""
        while len(self._steps) <= t:
            self._steps.append(self.S @ self._steps[-1])
        return self._steps[t]

    def points(self, t: int) -> Any:
        """``Z_t`` as a model takes it: rows of unit length, or columns of deviation 1."""
        return self._scaled(self.smoothed(t), t)

    def _scaled(self, Z: Any, t: int) -> Any:
        if self.sparse:
            return _unit(Z)
        deviation = self.smoothed(t).std(axis=0)
        return Z / np.where(deviation > 0, deviation, 1.0)

    def new_points(self, X: Any, links: sp.csr_array | None, t: int) -> Any:
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
            Z = sp.csr_array((rows, d)) if self.sparse else np.zeros((rows, d))
        root = 1.0 / np.sqrt(np.asarray(links.sum(axis=1)).ravel() + self.loop)
        across = sp.csr_array(sp.diags_array(root) @ links @ sp.diags_array(self.root))
        inner = sp.diags_array(self.loop * root * root)
        for step in range(t):
            Z = inner @ Z + across @ self.smoothed(step)
        return self._scaled(Z, t)
