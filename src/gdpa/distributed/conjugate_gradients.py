"""The steps of distributed conjugate gradients, for the rows of one group.

The labelled system of :mod:`gdpa.system`, on the nodes that are connected to a label, is

    (diag(total) - S W S) F = a Y

with ``total = degree + gamma`` and ``S = I`` for the combinatorial Laplacian, or ``total = 1 +
gamma`` and ``S = diag(degree)^-1/2`` for the normalised one. A finite label weight a is part of
`total`. With an infinite one, labels are kept: their scores are given and not solved for.

A step needs two sums over all parts: that of the curvature ``p' A p``, and that of the residual
``r' M r``. In between, each group multiplies its rows, for which it receives the values of its halo
from other groups. The rows themselves never travel. Functions return new arrays, so that Dask can
compute the state of a lost worker again. Sums are taken part by part and added in the order of the
parts, so that scores do not depend on which worker holds which part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import FloatArray, NDArray
from ..linalg.operator import inner_product
from ..system.rows import inverse_root
from .components import NO_LABEL, Tags
from .folder import Folder
from .rows import GroupRows

# Right-hand sides that are solved for together; each needs 56 bytes per node.
MOST_COLUMNS = 16


@dataclass(frozen=True)
class Solve:
    """One system with several right-hand sides.

    Parameters
    ----------
    name : str
        Name of the stage.
    self_loop : float
        gamma.
    columns : tuple of (int, int)
        For each right-hand side, the class whose labels are 1 (the others are 0), and the fold
        whose labels are held out (-1 for none).
    label_weight : float, default=inf
        a; labels can be held out only if it is infinite.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Kind of the Laplacian.
    targets : str or None
        File with one row per label and one column per right-hand side: the targets Y, if they are
        not 0 or 1.
    """

    name: str
    self_loop: float
    columns: tuple[tuple[int, int], ...]
    label_weight: float = np.inf
    laplacian: str = "normalized"
    targets: str | None = None


def batches(solve: Solve) -> list[Solve]:
    """Return systems with the same matrix, of at most `MOST_COLUMNS` columns each."""
    columns = solve.columns
    cut = [columns[i : i + MOST_COLUMNS] for i in range(0, len(columns), MOST_COLUMNS)]
    if len(cut) == 1:
        return [solve]
    return [
        replace(solve, name=f"{solve.name}, batch {number}", columns=batch)
        for number, batch in enumerate(cut, 1)
    ]


@dataclass(frozen=True)
class GroupSystem:
    """The system on the nodes of a group.

    Parameters
    ----------
    total : ndarray of shape (n_nodes,)
        Diagonal of the system.
    inverse : ndarray of shape (n_nodes,)
        Its inverse; 0 for nodes that are not solved for.
    scale : ndarray of shape (n_nodes,) or None
        S; None for the identity.
    labeled : ndarray of int
        Labelled nodes.
    kept : ndarray of bool of shape (n_columns, n_labeled)
        Labels that are kept.
    targets : ndarray of shape (n_columns, n_labeled)
        Y, 0 where a label is held out.
    label_weight : float
        a.
    """

    total: FloatArray
    inverse: FloatArray
    scale: FloatArray | None
    labeled: NDArray[np.intp]
    kept: NDArray[np.bool_]
    targets: FloatArray
    label_weight: float

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return (24 if self.scale is not None else 16) * self.total.size + 9 * self.targets.size

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return ``S values``."""
        return values if self.scale is None else values * self.scale

    def solved_for(self, values: FloatArray) -> FloatArray:
        """Return values with zeros at the nodes that are not solved for."""
        values = np.where(self.inverse > 0, values, 0.0)
        values[:, self.labeled] *= ~self.kept
        return values


def make_system(rows: GroupRows, solve: Solve, tags: Tags | None = None) -> GroupSystem:
    """Return the system of a group; without tags, all nodes are solved for."""
    degree = rows.degree
    scale = None
    total = degree + solve.self_loop
    if solve.laplacian == "normalized":
        scale = inverse_root(degree)
        total = (degree > 0) + np.float64(solve.self_loop)
    known = np.array([rows.fold != fold for _, fold in solve.columns])
    if solve.targets is None:
        is_class = np.array([rows.code == code for code, _ in solve.columns])
        targets = (known & is_class).astype(np.float64)
    else:
        targets = np.asarray(Folder(rows.url).read_array(solve.targets)[rows.label].T)
    kept = known
    if np.isfinite(solve.label_weight):
        kept = np.zeros_like(known)
        total[rows.labeled] += solve.label_weight
    free = total > 0
    if tags is not None:
        free &= tags != NO_LABEL
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=free)
    return GroupSystem(total, inverse, scale, rows.labeled, kept, targets, solve.label_weight)


# Stands for an array that a state does not have.
NOTHING = np.empty((0, 0))


@dataclass(frozen=True)
class State:
    """State of the iteration.

    Parameters
    ----------
    x, r, p : ndarray of shape (n_columns, n_nodes)
        Scores, residual and direction.
    q : ndarray
        Product of the matrix and the direction, if it is known.
    z : ndarray
        Residual preconditioned by what a part knows, if that is more than the diagonal.
    """

    x: FloatArray
    r: FloatArray
    p: FloatArray
    q: FloatArray = field(default_factory=lambda: NOTHING)
    z: FloatArray = field(default_factory=lambda: NOTHING)

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return sum(array.nbytes for array in (self.x, self.r, self.p, self.q, self.z))


def first_scores(system: GroupSystem) -> FloatArray:
    """Return the initial scores, one row per right-hand side: kept labels, else 0."""
    x = np.zeros((system.targets.shape[0], system.total.size))
    x[:, system.labeled] = system.targets * system.kept
    return x


def values_to_send(
    rows: GroupRows, system: GroupSystem, values: State | FloatArray, other: int
) -> FloatArray:
    """Return the scaled directions, or scores, of the nodes that another group needs."""
    array = values.p if isinstance(values, State) else values
    chosen = array[:, rows.send[other]]
    return chosen if system.scale is None else chosen * system.scale[rows.send[other]]


def hub_sums(rows: GroupRows, system: GroupSystem, values: State | FloatArray) -> list[FloatArray]:
    """Return what each part adds to the rows of the hubs."""
    array = values.p if isinstance(values, State) else values
    return rows.for_hubs(system.scaled(array))


def begin(
    rows: GroupRows,
    system: GroupSystem,
    hub_values: FloatArray,
    x: FloatArray,
    *halo: FloatArray,
    from_parts: FloatArray | None = None,
) -> State:
    """Return a state with the residual of the scores ``a Y + S W S x - total x``.

    `from_parts` is what all parts add to the product, if these are the rows of the hubs.
    """
    r = system.scaled(_product(rows, system, x, halo, hub_values, from_parts))
    r -= system.total * x
    if np.isfinite(system.label_weight):
        r[:, system.labeled] += system.label_weight * system.targets
    return State(x, system.solved_for(r), np.zeros_like(x))


def turn(
    system: GroupSystem, state: State, beta: FloatArray, correction: FloatArray | None = None
) -> State:
    """Return the state with the next direction ``M r + beta p``.

    `correction` is what the coarse level adds to ``M r``.
    """
    p = state.z + 0.0 if state.z.size else state.r * system.inverse
    if correction is not None:
        p += correction
    p += beta[:, None] * state.p
    return replace(state, p=p)


def multiply(
    rows: GroupRows,
    system: GroupSystem,
    hub_values: FloatArray,
    state: State,
    *halo: FloatArray,
    from_parts: FloatArray | None = None,
) -> State:
    """Return the state with the product of the matrix and the direction."""
    q = system.scaled(_product(rows, system, state.p, halo, hub_values, from_parts))
    np.subtract(system.total * state.p, q, out=q)
    return replace(state, q=system.solved_for(q))


def _product(
    rows: GroupRows,
    system: GroupSystem,
    values: FloatArray,
    halo: Sequence[FloatArray],
    hub_values: FloatArray,
    from_parts: FloatArray | None,
) -> FloatArray:
    found = rows.product(system.scaled(values), halo, hub_values)
    return found if from_parts is None else found + from_parts


def advance(state: State, alpha: FloatArray) -> State:
    """Return the state after a step of length alpha."""
    x = state.x + alpha[:, None] * state.p
    r = state.r - alpha[:, None] * state.q
    return State(x, r, state.p)


def curvatures(rows: GroupRows, state: State) -> list[FloatArray]:
    """Return ``p' A p`` of each part, by column."""
    return dots(rows, state.p, state.q)


def residuals(rows: GroupRows, system: GroupSystem, state: State) -> list[FloatArray]:
    """Return ``r' diag(total)^-1 r`` of each part, by column."""
    return dots(rows, state.r, state.r * system.inverse)


def dots(rows: GroupRows, a: FloatArray, b: FloatArray) -> list[FloatArray]:
    """Return the inner products of two blocks of vectors for each part, by column."""
    return [
        np.array([inner_product(u[span], v[span]) for u, v in zip(a, b, strict=True)])
        for span in rows.spans
    ]
