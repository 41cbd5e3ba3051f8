"""Labels dealt out to folds, the same whatever the classes are called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_appearance", "stratified_folds"]


def by_appearance(codes: NDArray[Any]) -> NDArray[np.int32]:
    """Classes numbered as they first appear: the same whatever they are called.

    Parameters
    ----------
    codes : ndarray of int of shape (n_labels,)
        Class numbers.

    Returns
    -------
    ndarray of int32 of shape (n_labels,)
        Numbers from 0, in the order of the labels.
    """
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int32)[code]


def stratified_folds(codes: NDArray[np.int32], n_folds: int) -> NDArray[np.int32]:
    """Fold of each label: the classes are dealt out in turn, without chance.

    Parameters
    ----------
    codes : ndarray of int of shape (n_labels,)
        Class numbers.
    n_folds : int
        Number of folds.

    Returns
    -------
    ndarray of int32 of shape (n_labels,)
        Fold numbers; sizes differ by at most one, in total and within each class.
    """
    order = np.argsort(by_appearance(codes), kind="stable")
    fold = np.empty(codes.size, dtype=np.int32)
    fold[order] = np.arange(codes.size) % n_folds
    return fold
