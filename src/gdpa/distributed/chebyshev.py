"""Chebyshev iteration on rows of the graph: no inner product, one exchange of the halo per step.

With the normalised Laplacian and D = diag(L) + gamma (+ a at labels) the scaled system

    I - D^-1/2 A D^-1/2,     A = S W S,  S = diag(degree)^-1/2

has its spectrum in 1 -+ 1 / (1 + gamma), at any size (|A| <= 1). The iteration for that interval
needs about ``sqrt(2 / gamma) log(2 / tol) / 2`` steps, known beforehand. Each column may have a
self-loop of its own; the larger it is, the sooner the column is done.

Steps are made in single precision, which halves what is read of the graph and sent to others. They
come in rounds: the residual that a round reduces is computed in double precision, and what the
round finds is added to scores in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import csr_from_parts

__all__ = [
    "LEAST_SELF_LOOP",
    "BlockFilling",
    "BlockSystem",
    "Rounds",
    "Rows",
    "State",
    "coefficients",
    "inverse_root",
    "steps_needed",
]

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]

# Jacobi needs some 100 steps to 1e-6 here, and 3 times as many for a tenth of it.
LEAST_SELF_LOOP = 0.01
# How far a round may reduce a residual: single precision stops at some 1e-5 where gamma is 0.01.
SINGLE_REDUCTION = 1e-4


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
        Number of the step within its round, from 0.

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
class Rounds:
    """Steps of a solve, in rounds: each begins with the residual in double precision.

    Parameters
    ----------
    self_loop : tuple of float
        gamma of each column.
    steps : tuple of int
        Steps that each column takes in a round.
    number : int
        How many rounds there are.
    """

    self_loop: tuple[float, ...]
    steps: tuple[int, ...]
    number: int

    @classmethod
    def of(cls, self_loop: tuple[float, ...], tol: float) -> Rounds:
        """As few rounds as single precision allows for a tolerance."""
        number = max(1, int(np.ceil(np.log(tol) / np.log(SINGLE_REDUCTION))))
        each = tol ** (1.0 / number)
        return cls(self_loop, tuple(steps_needed(gamma, each) for gamma in self_loop), number)

    @property
    def length(self) -> int:
        """Steps of a round."""
        return max(self.steps)

    def fresh(self, step: int) -> bool:
        """Whether a round begins with this step."""
        return step % self.length == 0

    def active(self, step: int) -> list[int]:
        """Columns that take this step: those with a large self-loop are done before others."""
        return [j for j, steps in enumerate(self.steps) if step % self.length < steps]


@dataclass(frozen=True)
class Rows:
    """Rows of the graph: those of consecutive parts, and of a fringe around them.

    Parameters
    ----------
    blocks : tuple of csr_array of float32 or float64
        Weights, a block for each part, the fringe after them; columns are in order of the nodes.
    n_parts : int
        How many blocks are parts.
    own : slice
        Columns of the nodes of the parts.
    fringe, outer : ndarray of int
        Columns of the fringe, and of nodes without a row here.
    root, outer_root : ndarray
        ``degree^-1/2``, 0 for nodes without a neighbour; of the nodes of the rows, and of those
        without. See :func:`inverse_root`.
    weights : callable
        The weights of a block in double precision.
    """

    blocks: tuple[sp.csr_array, ...]
    n_parts: int
    own: slice
    fringe: NDArray[np.intp]
    outer: NDArray[np.intp]
    root: FloatArray
    outer_root: FloatArray
    weights: Callable[[int], FloatArray]

    @cached_property
    def ends(self) -> list[int]:
        """First row of each block, and the number of rows."""
        return [0, *np.cumsum([block.shape[0] for block in self.blocks]).tolist()]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First and last row of each part."""
        return list(pairwise(self.ends[: self.n_parts + 1]))

    @property
    def n_own(self) -> int:
        """Rows of the parts."""
        return self.ends[self.n_parts]

    def products(self, z: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Products of the blocks with values of all columns, in their precision."""
        for number, block in enumerate(self.blocks):
            W = block
            if block.dtype != z.dtype:
                W = csr_from_parts(self.weights(number), block.indices, block.indptr, block.shape)
            yield slice(*self.ends[number : number + 2]), W @ z


def inverse_root(degree: FloatArray) -> FloatArray:
    """``degree^-1/2``, 0 where the degree is."""
    root = np.zeros(degree.size)
    linked = degree > 0
    root[linked] = 1.0 / np.sqrt(degree[linked])
    return root


@dataclass(frozen=True)
class State:
    """Where the iteration stands.

    Parameters
    ----------
    x : ndarray of shape (n_own, n_columns)
        Scores, column after column in memory.
    direction, residual : ndarray of float32 of shape (n_own, n_columns)
        The last change, and the residual before it.
    """

    x: FloatArray
    direction: Float32Array
    residual: Float32Array

    @classmethod
    def begin(cls, x: FloatArray) -> State:
        """Before the first step."""
        shape = x.shape
        zeros = [np.zeros(shape, dtype=np.float32, order="F") for _ in range(2)]
        return cls(np.asfortranarray(x), *zeros)


@dataclass(frozen=True)
class BlockSystem:
    """The labelled system on rows of the graph.

    Parameters
    ----------
    rows : Rows
        The rows.
    rounds : Rounds
        Its steps.
    total : ndarray of shape (n_own, n_columns) or (1, n_columns)
        Diagonal of the system: ``1 + gamma``, and a finite label weight at labels.
    rhs : ndarray of shape (n_own, n_columns) or None
        Right-hand side; None where labels are kept.
    free : ndarray of bool of shape (n_own, n_columns) or (n_own, 1), or None
        False where a label is kept.
    deep : bool, default=False
        Whether others repeat our rows, and we theirs, between two exchanges.
    """

    rows: Rows
    rounds: Rounds
    total: FloatArray
    rhs: FloatArray | None
    free: NDArray[np.bool_] | None
    deep: bool = False

    @cached_property
    def _single(self) -> tuple[Float32Array, Float32Array, Float32Array, Float32Array]:
        """In single precision: ``degree^-1/2``, the same but 0 at kept labels, of others; total."""
        root, outer = (r.astype(np.float32) for r in (self.rows.root, self.rows.outer_root))
        free = root[:, None] if self.free is None else np.asfortranarray(root[:, None] * self.free)
        return root, free, outer, np.asfortranarray(self.total, dtype=np.float32)

    def shared(self, state: State, nodes: NDArray[np.intp], step: int) -> NDArray[Any]:
        """What others need before a step, of some nodes; see :meth:`receive`.

        Where a round begins the scores, in double precision. Else the last change, and for those
        who repeat our rows the residual, too.
        """
        fresh, active = self.rounds.fresh(step), self.rounds.active(step)
        what = [state.x] if fresh else [state.direction, state.residual][: 1 + self.deep]
        out = np.empty((nodes.size, len(what) * len(active)), dtype=what[0].dtype)
        for place, (values, j) in enumerate((values, j) for values in what for j in active):
            out[:, place] = values[nodes, j]
        return out

    def taken(self, step: int) -> tuple[int, Any]:
        """Columns and type of what :meth:`shared` gives before a step."""
        fresh, columns = self.rounds.fresh(step), len(self.rounds.active(step))
        return columns * (2 if self.deep and not fresh else 1), np.dtype("f8" if fresh else "f4")

    def receive(self, state: State, fringe: NDArray[Any], step: int) -> None:
        """Take over what others share of the fringe before a step."""
        active, n = self.rounds.active(step), self.rows.n_own
        if self.rounds.fresh(step):
            state.x[n:, active] = fringe
        elif self.deep:
            state.direction[n:, active] = fringe[:, : len(active)]
            state.residual[n:, active] = fringe[:, len(active) :]

    def step(self, state: State, outer: NDArray[Any], number: int) -> None:
        """One step; `state` moves on.

        Parameters
        ----------
        state : State
            Where the rows stand.
        outer : ndarray
            What the others share of nodes without a row here.
        number : int
            Number of the step, from 0.
        """
        rows, fresh = self.rows, self.rounds.fresh(number)
        momentum, length = (
            c.astype(np.float32)
            for c in coefficients(self.rounds.self_loop, number % self.rounds.length)
        )
        single, free_root, outer_single, total = self._single
        root: NDArray[Any] = rows.root if fresh else single
        outer_root: NDArray[Any] = rows.outer_root if fresh else outer_single
        z = np.empty(rows.n_own + rows.fringe.size + rows.outer.size, dtype=root.dtype)
        n, spare = rows.n_own, np.empty(root.size, dtype=np.float32)
        for place, j in enumerate(self.rounds.active(number)):
            x, d, r = state.x[:, j], state.direction[:, j], state.residual[:, j]
            t = total[:, j] if total.shape[0] > 1 else total[0, j]
            v: NDArray[Any] = x if fresh else d
            np.multiply(root[:n], v[:n], out=z[rows.own])
            z[rows.fringe] = root[n:] * v[n:]
            z[rows.outer] = outer_root * outer[:, place]
            for mine, q in rows.products(z):
                if fresh:
                    r[mine] = self._residual(q, x[mine], mine, j)
                else:
                    q *= free_root[mine, j if free_root.shape[1] > 1 else 0]
                    r[mine] += q
            if not fresh:
                r -= np.multiply(d, t, out=spare)
            d *= momentum[j]
            d += np.multiply(r, length[j] / t, out=spare)
            x += d

    def _residual(self, product: FloatArray, x: FloatArray, rows: slice, j: int) -> FloatArray:
        """Right-hand side minus the system times the scores, of some rows; 0 at kept labels."""
        r = product
        r *= self.rows.root[rows]
        r -= (self.total[rows, j] if self.total.shape[0] > 1 else self.total[0, j]) * x
        if self.rhs is not None:
            r += self.rhs[rows, j]
        if self.free is not None:
            r *= self.free[rows, j if self.free.shape[1] > 1 else 0]
        return r

    def squares(self, state: State) -> list[list[float]]:
        """Squared length of the (scaled) residual before the last step, by part and column."""
        found = []
        for start, stop in self.rows.spans:
            r = state.residual[start:stop].astype(np.float64)
            total = self.total if self.total.shape[0] == 1 else self.total[start:stop]
            found.append(np.einsum("ij,ij->j", r, r / total).tolist())
        return found


@dataclass(frozen=True)
class BlockFilling:
    """Shares for nodes so far from any label that no score reached them: those of their neighbours.

    In each step nodes without shares take the weighted mean of the neighbours that have some.

    Parameters
    ----------
    rows : Rows
        Rows of the graph.
    """

    rows: Rows

    def shared(self, state: State, nodes: NDArray[np.intp], step: int) -> NDArray[Any]:
        """What others need: the shares of some nodes."""
        return state.x[nodes]

    def taken(self, step: int) -> tuple[int | None, Any]:
        """All columns, in double precision."""
        return None, np.dtype(np.float64)

    def receive(self, state: State, fringe: NDArray[Any], step: int) -> None:
        """Nothing: there is no fringe."""

    def step(self, state: State, outer: NDArray[Any], number: int) -> None:
        """One step; the residual of a node is 1 if it was filled."""
        x = state.x
        z = np.empty((x.shape[0] + outer.shape[0], x.shape[1]))
        z[self.rows.own], z[self.rows.outer] = x, outer
        empty = x.max(axis=1, initial=0.0) <= 0
        state.residual[:] = 0
        for block, (start, stop) in zip(self.rows.blocks, self.rows.spans, strict=True):
            asked = np.flatnonzero(empty[start:stop])
            found = block[asked] @ z
            total = found.sum(axis=1)
            hit = total > 0
            x[start + asked[hit]] = found[hit] / total[hit, None]
            state.residual[start + asked[hit]] = 1

    def squares(self, state: State) -> list[list[float]]:
        """How many nodes the last step filled, by part and column."""
        filled = state.residual.astype(np.float64)
        return [filled[start:stop].sum(axis=0).tolist() for start, stop in self.rows.spans]
