"""A coarse level for distributed conjugate gradients.

Far from labels the error of Jacobi's preconditioner varies little between neighbours, and the
iteration reduces it slowly. Each part divides its own nodes into *patches*; functions Z that are
constant on patches approximate that error. The preconditioner is that of
:mod:`gdpa.linalg.two_level`,

    M = diag(total)^-1 + Z (Z' A Z)^-1 Z'.

It needs no further message: ``Z' r`` travels to the client together with the sum of the residual,
and the small solution travels back together with the length of the direction.

If patches are large, there are levels of smaller patches in between, of which only the diagonal of
``Z' A Z`` is inverted. They need nothing from other parts. On a grid of 360,000 nodes with patches
of 1,200, levels of 16 and 256 nodes reduce the number of steps from 591 to 237.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..arrays import FloatArray, NDArray
from ..linalg.two_level import patches as grow_patches
from ..threads import one_thread
from .conjugate_gradients import GroupSystem
from .rows import GroupRows

# Number of patches: at most this many, so that the inverse of the small matrix takes a few seconds
# and 72 MB, and at most PATCHES times the root of the number of nodes, so that a product with it
# costs less than one with the graph.
MOST_PATCHES = 3_000
PATCHES = 2.0
# Nodes of a patch, at least: smaller ones do not pay.
LEAST_NODES = 64
# Nodes of a patch of the finest level in between, and ratio of the sizes from level to level.
LEVEL_RATIO = 16
# Relative to the diagonal: keeps the small matrix definite if the graph has no label weight.
RIDGE = 1e-10


@dataclass(frozen=True)
class Level:
    """Patches of one size in between.

    Parameters
    ----------
    patch : ndarray of int
        Patch of each node of the group; the last one has the nodes that are not solved for.
    inverse : ndarray
        Inverse of the diagonal of ``Z' A Z``; 0 for the last patch.
    """

    patch: NDArray[np.int32]
    inverse: FloatArray

    def correct(self, r: FloatArray) -> FloatArray:
        """Return ``Z diag(Z' A Z)^-1 Z' r`` for one column."""
        sums = np.bincount(self.patch, weights=r, minlength=self.inverse.size)
        return np.asarray((self.inverse * sums)[self.patch])


@dataclass(frozen=True)
class GroupPatches:
    """The patches of the nodes of a group.

    Parameters
    ----------
    patch : ndarray of int
        Patch of each node, numbered across all parts; `count` for nodes that are not solved for.
    starts : list of int
        First patch of each part of the group, and the end of the last.
    count : int
        Number of patches of all parts.
    levels : tuple of Level
        Levels of smaller patches, without messages between parts.
    """

    patch: NDArray[np.int32]
    starts: list[int]
    count: int
    levels: tuple[Level, ...]

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return 4 * self.patch.size * (1 + len(self.levels))

    def correct(self, system: GroupSystem, r: FloatArray) -> FloatArray:
        """Return the preconditioned residual of all levels but the coarsest."""
        z = r * system.inverse
        for level in self.levels:
            for row, residual in zip(z, r, strict=True):
                row += level.correct(residual)
        return z

    def prolong(self, coarse: FloatArray) -> FloatArray:
        """Return ``Z coarse``, one row per column of the system."""
        padded = np.hstack([coarse, np.zeros((coarse.shape[0], 1))])
        return np.asarray(padded[:, self.patch])


def patch_counts(nodes: list[int]) -> list[int]:
    """Return the number of patches of each part, given its number of nodes."""
    n = sum(nodes)
    wanted = min(MOST_PATCHES, int(PATCHES * np.sqrt(n)), n // LEAST_NODES)
    return [-(-wanted * own // max(n, 1)) for own in nodes]


def make_patches(
    rows: GroupRows, system: GroupSystem, counts: tuple[int, ...], sizes: tuple[int, ...]
) -> GroupPatches:
    """Divide the nodes of each part into breadth-first neighbourhoods of random nodes.

    Parameters
    ----------
    rows, system
        Rows and system of the group.
    counts : tuple of int
        Number of patches of each part.
    sizes : tuple of int
        Number of nodes of a patch of each level in between.
    """
    total = sum(counts)
    dead = system.inverse == 0
    dead[system.labeled[system.kept.any(axis=0)]] = True
    starts = np.cumsum([0, *counts])[rows.parts.start : rows.parts.stop + 1].tolist()
    patch = np.full(system.total.size, total, dtype=np.int32)
    for block, first, last in zip(rows.blocks, starts[:-1], starts[1:], strict=True):
        if last > first:
            own = block.between_own_nodes(rows.below)
            patch[block.span] = grow_patches(own, last - first) + first
    patch[dead] = total
    levels = tuple(make_level(rows, system, dead, size) for size in sizes)
    return GroupPatches(patch, starts, total, levels)


def level_sizes(nodes: list[int]) -> list[int]:
    """Return the number of nodes of a patch of each level in between."""
    largest = sum(nodes) // max(sum(patch_counts(nodes)), 1)
    sizes = []
    size = LEVEL_RATIO
    while 4 * size <= largest:
        sizes.append(size)
        size *= LEVEL_RATIO
    return sizes


def make_level(rows: GroupRows, system: GroupSystem, dead: NDArray[np.bool_], size: int) -> Level:
    """Divide the nodes of each part into patches of about `size` nodes."""
    patch = np.zeros(dead.size, dtype=np.int32)
    diagonals = []
    first = 0
    for block in rows.blocks:
        own = block.between_own_nodes(rows.below)
        count = max(1, own.shape[0] // size)
        mine = grow_patches(own, count) if own.shape[0] else np.empty(0, dtype=np.int32)
        live = ~dead[block.span]
        row = np.repeat(np.arange(own.shape[0], dtype=np.int32), np.diff(own.indptr))
        inside = (mine[row] == mine[own.indices]) & live[row] & live[own.indices]
        row = row[inside]
        column = own.indices[inside]
        weight = own.data[inside]
        if system.scale is not None:
            scale = system.scale[block.span]
            weight = weight * scale[row] * scale[column]
        total = np.where(live, system.total[block.span], 0.0)
        diagonal = np.bincount(mine, weights=total, minlength=count)
        diagonal -= np.bincount(mine[row], weights=weight, minlength=count)
        # Rounding may leave almost nothing of the diagonal of a patch without edges to others.
        whole = np.bincount(mine, weights=total, minlength=count)
        diagonals.append(np.maximum(diagonal, RIDGE * whole))
        patch[block.span] = mine + first
        first += count
    patch[dead] = first
    diagonal = np.concatenate([*diagonals, [0.0]])
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    return Level(patch, inverse)


def patches_to_send(
    rows: GroupRows, system: GroupSystem, patches: GroupPatches, other: int
) -> FloatArray:
    """Return the patches and scales of the nodes that another group needs."""
    chosen = rows.send[other]
    scale = np.ones(chosen.size) if system.scale is None else system.scale[chosen]
    return np.stack([patches.patch[chosen].astype(np.float64), scale])


def coarse_rows(
    rows: GroupRows, system: GroupSystem, patches: GroupPatches, *halo: FloatArray
) -> list[FloatArray]:
    """Return the rows of ``Z' A Z`` of the patches of each part."""
    scale = np.ones(system.total.size) if system.scale is None else system.scale
    own = np.stack([patches.patch.astype(np.float64), scale])
    column_patch, column_scale = rows.columns_of(own, halo)
    width = patches.count + 1
    found: list[FloatArray] = []
    for block, first, last in zip(
        rows.blocks, patches.starts[:-1], patches.starts[1:], strict=True
    ):
        W, columns = block.weights()
        mine = patches.patch[block.span]
        is_live = mine < patches.count
        local = np.where(is_live, mine - first, 0).astype(np.int64)
        entries = np.diff(W.indptr)
        weight = W.data * np.repeat(np.where(is_live, scale[block.span], 0.0), entries)
        column = W.indices if columns is None else columns[W.indices]
        weight *= column_scale[column]
        key = np.repeat(local * width, entries)
        key += column_patch[column].astype(np.int64)
        size = (last - first) * width
        links = np.bincount(key, weights=weight, minlength=size)[:size].reshape(-1, width)
        diagonal = np.bincount(
            local,
            weights=np.where(is_live, system.total[block.span], 0.0),
            minlength=last - first,
        )[: last - first]
        small: FloatArray = -links[:, :-1].astype(np.float64)
        small[np.arange(last - first), np.arange(first, last)] += diagonal
        found.append(small)
    return found


def restrict(rows: GroupRows, patches: GroupPatches, r: FloatArray) -> list[FloatArray]:
    """Return ``Z' r`` of the patches of each part, by column."""
    found: list[FloatArray] = []
    for span, first, last in zip(rows.spans, patches.starts[:-1], patches.starts[1:], strict=True):
        mine = patches.patch[span]
        local = np.where(mine < patches.count, mine - first, last - first)
        sums = [
            np.bincount(local, weights=row[span], minlength=last - first + 1)[: last - first]
            for row in r
        ]
        found.append(np.stack(sums))
    return found


class CoarseInverse:
    """The inverse of ``Z' A Z``.

    Parameters
    ----------
    matrix : ndarray of shape (n_patches, n_patches)
        The small matrix, which is overwritten.
    """

    def __init__(self, matrix: FloatArray) -> None:
        diagonal = np.diagonal(matrix).copy()
        # A patch without a node to solve for has a zero row.
        self.scale = np.divide(
            1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0
        )
        matrix *= self.scale
        matrix *= self.scale[:, None]
        np.fill_diagonal(matrix, 1.0 + RIDGE)
        with one_thread():
            factor, _ = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
            lower, failed = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        if failed:
            raise linalg.LinAlgError("the matrix of the coarse level is singular")
        half = np.tril(lower)
        self.inverse = half + np.tril(half, -1).T

    def solve(self, restricted: FloatArray) -> FloatArray:
        """Return the small solution for each row of `restricted`."""
        with one_thread():
            scaled = (restricted * self.scale) @ self.inverse
        return np.asarray(scaled * self.scale)
