"""The truth that an approximate neighbour search is tuned to, for a sample of points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features import row_blocks
from .search import pair_distances

__all__ = ["enough_probes", "true_neighbors"]

FloatArray = NDArray[np.float64]


def true_neighbors(
    X: NDArray[Any], sample: NDArray[np.intp], reach: FloatArray, k: int, scale: float
) -> tuple[NDArray[np.intp], FloatArray]:
    """True neighbours of some points.

    Some k points lie within `reach`, so the true neighbours do too: only these few have to be
    compared exactly, all others are passed over by one matrix product.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points.
    sample : ndarray of shape (n_sample,)
        Rows of the points in question.
    reach : ndarray of shape (n_sample,)
        A distance within which k other points are known.
    k : int
        How many neighbours.
    scale : float
        Divides the features before squaring.

    Returns
    -------
    indices, distances : ndarray of shape (n_sample, k)
        Neighbours, nearest first, at distances of at most `reach`.
    """
    Q = X[sample]
    q = np.asarray(Q, dtype=np.float64) / scale
    center = q.mean(axis=0)
    q = q - center
    norms = np.einsum("ij,ij->i", q, q)
    limit = (reach / scale) ** 2 * (1 + 1e-9)
    owners: list[NDArray[np.intp]] = []
    others: list[NDArray[np.intp]] = []
    near: list[FloatArray] = []
    for rows in row_blocks(X.shape[0], 8 * (q.shape[0] + q.shape[1])):
        x = np.asarray(X[rows], dtype=np.float64) / scale - center
        x_norms = np.einsum("ij,ij->i", x, x)
        squares = q @ x.T
        squares *= -2
        squares += norms[:, None]
        squares += x_norms
        # What cancellation may have cost; a pair too many is sorted out below.
        slack = 1e-12 * (norms + x_norms.max())
        i, j = np.nonzero(squares <= (limit + slack)[:, None])
        other = j + rows.start != sample[i]
        i, j = i[other], j[other] + rows.start
        owners.append(i)
        others.append(j)
        for part in row_blocks(i.size, 16 * Q.shape[1]):
            near.append(pair_distances(Q[i[part]], X, j[part][:, None], scale).ravel())
    i = np.concatenate(owners)
    d = np.concatenate(near)
    order = np.lexsort((d, i))
    first = np.searchsorted(i[order], np.arange(q.shape[0]))
    best = order[first[:, None] + np.arange(k)]
    return np.concatenate(others)[best], np.asarray(d[best], dtype=np.float64)


def enough_probes(
    needed: NDArray[np.intp], scanned: FloatArray, target: float, limit: float
) -> tuple[int, int]:
    """Number of cells to visit for a recall, within a limit on the points compared.

    Parameters
    ----------
    needed : ndarray
        Cells to visit before each of the true neighbours is met.
    scanned : ndarray of shape (n_cells,)
        Points in the first 1, 2, ... cells.
    target : float
        Share of the neighbours to find.
    limit : float
        Points that may be compared with a query; one cell is always visited.

    Returns
    -------
    probes : int
        Cells to visit.
    most : int
        Cells that the limit allows.
    """
    most = max(1, int(np.searchsorted(scanned, limit, side="right")))
    wanted = int(np.quantile(needed, target, method="inverted_cdf"))
    return min(most, wanted), most
