"""Inner products that do not depend on the number of threads, nor wake any.

BLAS splits the inner product of long vectors over its threads. They take longer to wake than the
product takes, keep a processor busy for a while after it, and their number shows in the last digits
of the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["inner_product", "length"]

# Entries whose products are summed in the precision of the vectors.
PART = 2048
# Up to this length BLAS works in one thread: the same digits whatever their number.
BLAS_ALONE = 10_000


def inner_product(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Inner product of two vectors; sums of parts in double precision.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The vectors.

    Returns
    -------
    float
        ``x' y``.
    """
    if x.size <= BLAS_ALONE:
        return float(x @ y)
    whole = x.size - x.size % PART
    parts = np.einsum("ij,ij->i", x[:whole].reshape(-1, PART), y[:whole].reshape(-1, PART))
    return float(parts.sum(dtype=np.float64)) + float(np.einsum("i,i->", x[whole:], y[whole:]))


def length(x: NDArray[Any]) -> float:
    """Euclidean length of a vector.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The vector, of entries whose squares are within the range of floats.

    Returns
    -------
    float
        ``sqrt(x' x)``.
    """
    return float(np.sqrt(inner_product(x, x)))
