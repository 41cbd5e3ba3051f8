"""Chebyshev iteration on a block of rows: no inner product, one exchange of the halo per step.

With the normalised Laplacian and D = diag(L) + gamma (+ a at labels) the scaled system

    I - D^-1/2 A D^-1/2,     A = S W S,  S = diag(degree)^-1/2

has its spectrum in 1 -+ 1 / (1 + gamma), at any size (|A| <= 1). The iteration for that interval
needs about ``sqrt(2 / gamma) log(2 / tol) / 2`` steps, known beforehand. Each column may have a
self-loop of its own: the graph is read once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["LEAST_SELF_LOOP", "BlockSystem", "State", "coefficients", "steps_needed"]

FloatArray = NDArray[np.float64]

# Jacobi needs some 100 steps to 1e-6 here, and 3 times as many for a tenth of it.
LEAST_SELF_LOOP = 0.01


def steps_needed(self_loop: float, tol: float) -> int:
    """Steps after which the error has shrunk by `tol`, whatever the graph."""
    root = np.sqrt((2.0 + self_loop) / self_loop)
    return int(np.ceil(np.log(2.0 / tol) / np.log((root + 1.0) / (root - 1.0))))


@lru_cache(maxsize=1024)
def coefficients(self_loop: tuple[float, ...], step: int) -> tuple[FloatArray, FloatArray]:
    """Factors of the last direction and of the residual in one step.

    Parameters
    ----------
    self_loop : tuple of float
        gamma of each column.
    step : int
        Number of the step, from 0.

    Returns
    -------
    momentum, length : ndarray of shape (n_columns,)
        ``direction = momentum * direction + length * residual``.
    """
    # Interval 1 -+ r with r = 1 / (1 + gamma): centre 1, half width r.
    radius = 1.0 / (1.0 + np.asarray(self_loop))
    if step == 0:
        return np.zeros_like(radius), np.ones_like(radius)
    before, rho = radius, radius
    for _ in range(step):
        before, rho = rho, 1.0 / (2.0 / radius - rho)
    return rho * before, 2.0 * rho / radius


@dataclass(frozen=True)
class State:
    """Where the iteration stands in a part.

    Parameters
    ----------
    x : ndarray of shape (n_own, n_columns)
        Scores, column after column in memory.
    direction : ndarray of shape (n_own, n_columns)
        The last change.
    """

    x: FloatArray
    direction: FloatArray


@dataclass(frozen=True)
class BlockSystem:
    """The labelled system on the rows of a part.

    Parameters
    ----------
    W : csr_array of shape (n_own, n_own + n_halo)
        Weights of the graph.
    degree : ndarray of shape (n_own,)
        Row sums.
    total : ndarray of shape (n_own, n_columns) or (1, n_columns)
        Diagonal of the system: ``1 + gamma``, and a finite label weight at labels.
    rhs : ndarray of shape (n_own, n_columns) or None
        Right-hand side; None where labels are kept.
    free : ndarray of shape (n_own, n_columns) or (n_own, 1), or None
        0 where a label is kept, else 1.
    """

    W: sp.csr_array
    degree: FloatArray
    total: FloatArray
    rhs: FloatArray | None
    free: FloatArray | None

    @cached_property
    def _root(self) -> FloatArray:
        root = np.zeros((self.degree.size, 1))
        linked = self.degree > 0
        root[linked, 0] = 1.0 / np.sqrt(self.degree[linked])
        return root

    def shared(self, x: FloatArray, nodes: NDArray[np.intp]) -> FloatArray:
        """What other parts need of the scores of some nodes: ``degree^-1/2 x``."""
        return self._root[nodes] * x[nodes]

    def residual(self, x: FloatArray, halo: FloatArray) -> FloatArray:
        """Right-hand side minus the system times the scores; 0 where labels are kept.

        Parameters
        ----------
        x : ndarray of shape (n_own, n_columns)
            Scores of the part.
        halo : ndarray of shape (n_halo, n_columns)
            What the others share of theirs.
        """
        n = x.shape[0]
        shared = np.empty((n + halo.shape[0], x.shape[1]), order="F")
        np.multiply(self._root, x, out=shared[:n])
        shared[n:] = halo
        # Column by column: half again as fast as one product with two columns.
        r = np.empty(x.shape, order="F")
        for j in range(x.shape[1]):
            r[:, j] = self.W @ shared[:, j]
        r *= self._root
        r -= np.multiply(self.total, x, out=shared[:n])
        if self.rhs is not None:
            r += self.rhs
        if self.free is not None:
            r *= self.free
        return r

    def step(
        self, state: State, halo: FloatArray, self_loop: tuple[float, ...], number: int
    ) -> FloatArray:
        """One step; `state` moves on.

        Parameters
        ----------
        state : State
            Where the part stands.
        halo : ndarray of shape (n_halo, n_columns)
            What the others share.
        self_loop : tuple of float
            gamma of each column.
        number : int
            Number of the step, from 0.

        Returns
        -------
        ndarray of shape (n_columns,)
            Squared length of the (scaled) residual before the step, this part's share.
        """
        r = self.residual(state.x, halo)
        momentum, length = coefficients(self_loop, number)
        if self.total.shape[0] == 1:
            squares = np.einsum("ij,ij->j", r, r) / self.total[0]
        else:
            squares = np.einsum("ij,ij->j", r, r / self.total)
        r *= length / self.total
        x, direction = state.x, state.direction
        direction *= momentum
        direction += r
        x += direction
        return np.asarray(squares)


@dataclass(frozen=True)
class BlockFilling:
    """Shares for nodes so far from any label that no score reached them: those of their neighbours.

    In each step nodes without shares take the weighted mean of the neighbours that have some.

    Parameters
    ----------
    W : csr_array of shape (n_own, n_own + n_halo)
        Weights of the graph.
    """

    W: sp.csr_array

    def shared(self, x: FloatArray, nodes: NDArray[np.intp]) -> FloatArray:
        """What other parts need: the shares of some nodes."""
        return x[nodes]

    def step(
        self, state: State, halo: FloatArray, self_loop: tuple[float, ...], number: int
    ) -> FloatArray:
        """One step; returns, for each column, how many nodes it filled."""
        empty = np.flatnonzero(state.x.max(axis=1, initial=0.0) <= 0)
        found = self.W[empty] @ np.vstack([state.x, halo])
        total = found.sum(axis=1)
        hit = total > 0
        state.x[empty[hit]] = found[hit] / total[hit, None]
        return np.full(state.x.shape[1], float(hit.sum()))
