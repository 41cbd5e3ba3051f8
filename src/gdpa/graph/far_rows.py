"""Rows far from all fitted points, looked at from nearer by.

From far away only the direction of a row decides which points are nearest, and no weight is left of
its distance. So a row beyond 10,000 times the extent of the fitted points is moved towards them
along its ray: squares stay in range, the order of the points stays that of its direction, and any
finite row has neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .features import Features, row_blocks

__all__ = ["Surroundings"]

FloatArray = NDArray[np.float64]

FAR = 1e4  # single precision still tells the points apart from there


@dataclass(frozen=True)
class Surroundings:
    """Where the fitted points lie.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        Middle of their box; None for sparse rows, whose middle is taken to be 0.
    reach : float
        Largest coordinate of a row, seen from the centre, that is left as it is.
    """

    center: FloatArray | None
    reach: float

    @classmethod
    def of(cls, X: Features) -> Surroundings:
        """Measure the fitted points."""
        if not isinstance(X, np.ndarray):
            return cls(None, _reach(float(np.abs(X.data).max(initial=0.0))))
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            np.minimum(low, X[rows].min(axis=0), out=low)
            np.maximum(high, X[rows].max(axis=0), out=high)
        center = 0.5 * low + 0.5 * high
        radius = float((0.5 * high - 0.5 * low).max())
        return cls(center, _reach(radius or float(np.abs(center).max())))

    def bring_near(self, Q: Features) -> Features:
        """Return Q with its far rows moved; Q itself if there are none.

        Parameters
        ----------
        Q : ndarray or csr_array of shape (n_rows, n_features)
            Finite rows.

        Returns
        -------
        ndarray or csr_array
            The rows, in float64 if one was moved.
        """
        if self.center is None:
            sizes = abs(Q).max(axis=1).toarray().ravel() if Q.nnz else np.zeros(Q.shape[0])
            if not (sizes > self.reach).any():
                return Q
            factor = np.minimum(1.0, self.reach / np.maximum(sizes, self.reach))
            return sp.csr_array(sp.diags_array(factor) @ Q)
        # Quarters: the difference of two numbers of any size is one again.
        quarter = 0.25 * np.asarray(Q, dtype=np.float64) - 0.25 * self.center
        sizes = np.abs(quarter).max(axis=1)
        far = np.flatnonzero(sizes > 0.25 * self.reach)
        if not far.size:
            return Q
        near = np.array(Q, dtype=np.float64)
        near[far] = self.center + quarter[far] * (self.reach / sizes[far])[:, None]
        return near


def _reach(radius: float) -> float:
    # All points in one place, at 0: any distance is as good as another.
    return max(radius, min(FAR * (radius or 1.0), 1e307)) if radius < 1e303 else max(radius, 1e307)
