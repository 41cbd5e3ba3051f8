"""Heavy duplicates, taken out before a neighbour search.

Thousands of identical rows defeat every search structure: no tree can split them, so each query
scans them all. But of a group of m identical rows no more than k + 2 can ever be needed in
anyone's list of k neighbours, and each member of a group that large has its neighbours at distance
0 within the group. So only that many of each group are searched, and the members of the group are
linked to those that follow them in a ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features import Features, row_blocks

__all__ = ["Thinned", "thin_duplicates"]


@dataclass(frozen=True)
class Thinned:
    """Which rows are searched, and which come in large groups of duplicates.

    Parameters
    ----------
    kept : ndarray or None
        Rows that are searched, ascending; None stands for all.
    groups : tuple of ndarray or None
        Members of all large groups, group after group, and where each group starts and ends.
    """

    kept: NDArray[np.intp] | None
    groups: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    def fill(self, indices: NDArray[Any], distances: NDArray[np.float64]) -> None:
        """Write the neighbours of the members of large groups: the next ones around the ring."""
        if self.groups is None:
            return
        members, ends = self.groups
        k = indices.shape[1]
        sizes = np.diff(ends)
        start = np.repeat(ends[:-1], sizes)
        size = np.repeat(sizes, sizes)
        place = np.arange(members.size) - start
        for step in range(k):
            indices[members, step] = members[start + (place + step + 1) % size]
        distances[members] = 0.0


def thin_duplicates(X: Features, limit: int) -> Thinned:
    """Find groups of more than `limit` identical rows and keep `limit` of each.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features. Sparse rows are left alone: their search is exhaustive anyway.
    limit : int
        Rows that are kept of each group.

    Returns
    -------
    Thinned
        Rows to search and the groups.
    """
    nothing = Thinned(None, None)
    if not isinstance(X, np.ndarray) or X.shape[0] <= limit:
        return nothing
    keys = _keys(X)
    order = np.argsort(keys, kind="stable")
    ends = _runs(keys[order])
    large = np.flatnonzero(np.diff(ends) > limit)
    if not large.size:
        return nothing
    # Equal keys may be different rows: compare, in the few runs that matter, the rows themselves.
    suspects = order[_within(ends, large)]
    rows = np.ascontiguousarray(X[suspects]) + X.dtype.type(0)  # -0.0 is 0.0
    raw = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, group = np.unique(raw, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    members, ends = suspects[by_group], _runs(group[by_group])
    large = np.flatnonzero(np.diff(ends) > limit)
    if not large.size:
        return nothing
    members = members[_within(ends, large)]
    ends = np.concatenate([[0], np.cumsum(np.diff(ends)[large])])
    sizes = np.diff(ends)
    # Members of a group in ascending order, so that what is kept does not depend on the keys.
    members = members[np.lexsort((members, np.repeat(np.arange(sizes.size), sizes)))]
    place = np.arange(members.size) - np.repeat(ends[:-1], sizes)
    dropped = np.zeros(X.shape[0], dtype=bool)
    dropped[members[place >= limit]] = True
    return Thinned(np.flatnonzero(~dropped), (members, ends))


def _keys(X: NDArray[Any]) -> NDArray[np.float64]:
    """One number per row, the same for identical rows.

    Summed column by column: a matrix product may round identical rows differently.
    """
    n, d = X.shape
    factors = np.random.default_rng(0).uniform(1, 2, d) / d
    keys = np.zeros(n)
    for rows in row_blocks(n, 8 * d):
        block = np.asarray(X[rows], dtype=np.float64).T
        for factor, column in zip(factors, block, strict=True):
            keys[rows] += factor * column
    return keys


def _runs(values: NDArray[Any]) -> NDArray[np.intp]:
    """Start of each run of equal values, and the end."""
    new = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate([[0], new, [values.size]]).astype(np.intp)


def _within(ends: NDArray[np.intp], runs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Positions inside the given runs."""
    sizes = np.diff(ends)[runs]
    offset = np.repeat(ends[runs] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(np.arange(sizes.sum()) + offset, dtype=np.intp)
