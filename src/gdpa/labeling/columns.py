"""Which columns tell the classes apart: they are shown first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier

__all__ = ["telling_columns"]

TREES = 100


def telling_columns(
    points: Any, values: NDArray[Any], groups: NDArray[np.intp], *, seed: int = 0
) -> list[int]:
    """Order columns by what a forest finds important in their features.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_labeled, n_features)
        Labelled rows.
    values : ndarray of shape (n_labeled,)
        Their labels.
    groups : ndarray of int of shape (n_features,)
        Column that each feature came from; -1 for none that is shown.
    seed : int, default=0
        Seed of the forest.

    Returns
    -------
    list of int
        Columns, the most telling first; those that are equal keep their order.
    """
    forest = ExtraTreesClassifier(TREES, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as many classes as rows: at the very start
        forest.fit(points, np.unique(values, return_inverse=True)[1])
    shown = groups >= 0
    weight = np.bincount(groups[shown], weights=forest.feature_importances_[shown])
    return [int(j) for j in np.argsort(-np.round(weight, 6), kind="stable")]
