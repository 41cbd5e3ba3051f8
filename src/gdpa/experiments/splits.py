"""Folds and splits of the paper's Table 2, as Matlab draws them.

Matlab's generator with seed 0 is ``RandomState(5489)``, its ``randperm(n)`` is the argsort of n
uniform numbers, and ``crossvalind`` draws the folds class by class from one stream; so NumPy can
repeat every fold and every split.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name

__all__ = ["N_SPLITS", "RESCALINGS", "check_rescaling", "fold_count", "folds", "split"]

IndexArray = NDArray[np.intp]

RESCALINGS = ("min-max", "standardization")
N_SPLITS = 10
_MATLAB_SEED_0 = 5489


def check_rescaling(rescaling: str) -> None:
    """Refuse a name that is not one of :data:`RESCALINGS`."""
    if rescaling not in RESCALINGS:
        raise ValueError(
            f"rescaling={rescaling!r} is not known; {nearest_name(rescaling, list(RESCALINGS))}"
        )


def _randperm(generator: np.random.RandomState, n: int) -> IndexArray:
    """Matlab's ``randperm(n)``, counted from 0."""
    return np.argsort(generator.random_sample(n), kind="stable")


def fold_count(name: str, rescaling: str) -> int:
    """Number of folds K that the authors used.

    Parameters
    ----------
    name : str
        Name of the data set.
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.

    Returns
    -------
    int
        5; 1 for colon-cancer; with standardisation 4 for german and 2 for heart.

    Examples
    --------
    >>> from gdpa.experiments import fold_count
    >>> fold_count("german", "min-max"), fold_count("german", "standardization")
    (5, 4)
    """
    check_rescaling(rescaling)
    if name == "colon-cancer":
        return 1
    if rescaling == "standardization":
        return {"german": 4, "heart": 2}.get(name, 5)
    return 5


def folds(y: Any, n_folds: int = 5) -> IndexArray:
    """Assign each sample to a fold, class by class, as the authors did.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels in {-1, +1}.
    n_folds : int, default=5
        Number of folds K.

    Returns
    -------
    ndarray of shape (n_samples,)
        Fold of each sample, 0 to ``n_folds - 1``. Within a class the sizes differ by at most one.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.experiments import folds
    >>> np.bincount(folds([1, -1] * 10, 5))
    array([4, 4, 4, 4, 4])
    """
    signs = np.asarray(y)
    if signs.ndim != 1 or not np.isin(signs, (-1, 1)).all():
        raise ValueError("y must be one-dimensional with values -1 and +1 only")
    if isinstance(n_folds, bool) or int(n_folds) != n_folds or n_folds < 1:
        raise ValueError(f"n_folds={n_folds!r} is not accepted; a whole number from 1 on is needed")
    K = int(n_folds)
    generator = np.random.RandomState(_MATLAB_SEED_0)
    assignment = np.zeros(signs.size, dtype=np.intp)
    for sign in (1, -1):
        members = np.flatnonzero(signs == sign)
        m = members.size
        if m == 0:
            continue
        q = np.ceil(K * np.arange(1, m + 1) / m).astype(np.intp) - 1
        fold_order = _randperm(generator, K)
        member_order = _randperm(generator, m)
        assignment[members[member_order]] = fold_order[q]
    return assignment


def split(n: int, seed: int) -> tuple[IndexArray, IndexArray]:
    """Split n samples into a labelled and an unlabelled half.

    Parameters
    ----------
    n : int
        Number of samples of the fold.
    seed : int
        Number of the split, 1 to 10 in the paper.

    Returns
    -------
    labeled : ndarray
        The first ``floor(n/2 + 1/2)`` of the random order.
    unlabeled : ndarray
        The others, in the random order.

    Examples
    --------
    >>> from gdpa.experiments import split
    >>> labeled, unlabeled = split(5, seed=1)
    >>> labeled.size, unlabeled.size
    (3, 2)
    """
    if n < 2:
        raise ValueError(f"n={n} cannot be split; at least 2 samples are needed")
    order = _randperm(np.random.RandomState(seed), n)
    half = (n + 1) // 2
    return order[:half], order[half:]
