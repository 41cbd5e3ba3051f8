"""Neighbours in columns that are uncorrelated and of one variance, whatever they measured before.

    Z -> (Z - mean) V (D + floor)^-1/2,   cov(Z) = V D V^T

Columns that measure the same thing several times drown those that measure something once; here
directions count alike, the small ones too, in which classes often differ. No label has a part in
it.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...threads import one_thread
from .graph import GraphMember, View, build_state, cross_shares, neighbors_of
from .member import Task, Trial

__all__ = ["try_whitened"]

FloatArray = NDArray[np.float64]

# Part of the mean variance that is added to each: directions below it are taken for noise. On real
# tables 0.02 to 0.3 err alike.
FLOOR = 0.02
# Of more columns, or of fewer rows for each of them, the covariance is neither cheap nor known.
MOST_COLUMNS = 200
ROWS_PER_COLUMN = 3


def try_whitened(task: Task) -> Trial | None:
    """Judge the neighbours in whitened columns.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial or None
        The graph; None of one column or too many.
    """
    d = int(task.scaling.scale.size)
    fits = 2 <= d <= min(MOST_COLUMNS, task.X.shape[0] // ROWS_PER_COLUMN)
    if sp.issparse(task.X) or not fits or task.folds is None:
        return None
    graph = neighbors_of(task.Z @ whitening(task.Z), task)

    def build(full: Task) -> GraphMember:
        mix = whitening(full.Z)
        state = build_state(neighbors_of(full.Z @ mix, full), full)
        return GraphMember("whitened", View(columns=full.scaling, mix=mix), state)

    return Trial("whitened", cross_shares(task, lambda f: graph), build)


def whitening(Z: FloatArray) -> FloatArray:
    """V (D + floor)^-1/2 of rows; what they are shifted by does not change a distance."""
    with one_thread():
        found = np.linalg.eigh(np.atleast_2d(np.cov(Z.T)))
    variances = np.maximum(found.eigenvalues, 0.0)
    floor = FLOOR * float(variances.mean()) or 1.0  # all constant: anything will do
    return np.asarray(found.eigenvectors / np.sqrt(variances + floor))
