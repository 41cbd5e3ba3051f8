"""Distances to weights: the exponential kernel and its bandwidth.

    w_ij = exp(-|f_i - f_j|^2 / (sigma_i sigma_j))

with one sigma for all nodes (fixed, or the median of the distances given) or, self-tuning
(Zelnik-Manor and Perona, 2004), sigma_i = the distance of node i to its 7th neighbour. A fixed
sigma = 1 is the paper's kernel exp(-|f_i - f_j|^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name

__all__ = ["SCALE_NEIGHBOR", "check_bandwidth", "kernel_weights", "local_scales", "median_scale"]

BANDWIDTHS = ("self-tuning", "median")

SCALE_NEIGHBOR = 7
# The least weight that a neighbour graph of a type contains.
SMALLEST_WEIGHT = {np.dtype(np.float32): 1e-37, np.dtype(np.float64): 1e-300}

FloatArray = NDArray[np.float64]


def check_bandwidth(bandwidth: Any) -> str | float:
    """Validate a bandwidth.

    Parameters
    ----------
    bandwidth : {"self-tuning", "median"} or float
        The name of a rule, or sigma itself: finite and positive.

    Returns
    -------
    str or float
        The rule or sigma.
    """
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise ValueError(
                f"bandwidth={bandwidth!r} is not known; "
                f"{nearest_name(bandwidth, list(BANDWIDTHS))}, or a positive number"
            )
        return bandwidth
    try:
        sigma = float(bandwidth)
    except (TypeError, ValueError):
        sigma = np.nan
    if isinstance(bandwidth, bool) or not (np.isfinite(sigma) and sigma > 0):
        raise ValueError(
            f"bandwidth must be a positive number or one of {BANDWIDTHS}, got {bandwidth!r}"
        )
    return sigma


def local_scales(distances: NDArray[Any], fallback: float | None = None) -> FloatArray:
    """Scale of each node: its distance to the 7th neighbour.

    A node with seven duplicates has no such scale (the distance is 0). It then takes its smallest
    positive neighbour distance; where there is none, the median scale of all other nodes; where
    all points coincide, 1.

    Parameters
    ----------
    distances : ndarray of shape (n_nodes, n_neighbors)
        Ascending distances to the neighbours, the node itself left out. With fewer than seven the
        last one counts.
    fallback : float, optional
        Scale where a row is all zeros, instead of the median of the others.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Positive scales.
    """
    d = np.asarray(distances)
    if d.shape[1] == 0:
        return np.full(d.shape[0], 1.0 if fallback is None else fallback)
    scales = d[:, min(SCALE_NEIGHBOR, d.shape[1]) - 1].astype(np.float64)
    zero = np.flatnonzero(scales <= 0)
    if zero.size:
        rows = d[zero].astype(np.float64)
        rows[rows <= 0] = np.inf
        scales[zero] = rows.min(axis=1)
        zero = np.flatnonzero(~np.isfinite(scales))
    if zero.size:
        if fallback is None:
            others = scales[np.isfinite(scales)]
            fallback = float(np.median(others)) if others.size else 1.0
        scales[zero] = fallback
    return scales


def median_scale(distances: NDArray[Any]) -> float:
    """Median of the positive distances; 1 where there is none.

    Parameters
    ----------
    distances : ndarray
        Distances.

    Returns
    -------
    float
        Positive.
    """
    d = np.asarray(distances)
    positive = d[d > 0]
    return float(np.median(positive)) if positive.size else 1.0


def kernel_weights(
    distances: NDArray[Any],
    row_scales: Any,
    column_scales: Any,
    *,
    dtype: Any = np.float64,
    floor: bool = True,
) -> NDArray[Any]:
    """Weights ``exp(-d^2 / (sigma_i sigma_j))``.

    Parameters
    ----------
    distances : ndarray
        Distances d.
    row_scales, column_scales : float or ndarray, broadcast against `distances`
        sigma_i and sigma_j, positive.
    dtype : dtype, default=float64
        Type of the weights.
    floor : bool, default=True
        Raise a weight that would underflow to 1e-300 (1e-37 in float32): as 0 it would drop the
        edge and could leave a node isolated.

    Returns
    -------
    ndarray
        Weights in (0, 1] (with ``floor=False`` in [0, 1]).
    """
    # The square roots keep the product of two extreme scales in range, and the product is the same
    # for (i, j) and (j, i): the weights are symmetric to the last bit.
    scale = np.sqrt(row_scales) * np.sqrt(column_scales)
    with np.errstate(over="ignore", under="ignore"):
        w = np.asarray(distances, dtype=np.float64) / scale
        np.multiply(w, w, out=w)
        np.negative(w, out=w)
        np.exp(w, out=w)
        if floor:
            np.maximum(w, SMALLEST_WEIGHT[np.dtype(dtype)], out=w)
        return np.asarray(w, dtype=dtype)
