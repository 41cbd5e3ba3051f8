"""Class priors: shift the thresholds until the class masses match.

With probabilities p of the unlabelled nodes and a prior pi, offsets b are found such that the mean
of ``p_ic exp(b_c) / sum_c'`` over these nodes is pi_c: iterative proportional fitting, which
converges because the masses are the gradient of a convex function of b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_prior", "labeled_prior", "match_masses"]

FloatArray = NDArray[np.float64]


def labeled_prior(codes: NDArray[np.int32], n_classes: int) -> FloatArray:
    """Share of each class among the labels.

    Parameters
    ----------
    codes : ndarray of int
        Class numbers of the labels.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_classes,)
        Shares that add up to 1.
    """
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    return np.asarray(counts / counts.sum())


def check_prior(class_prior: Any, classes: NDArray[Any]) -> FloatArray | None:
    """Validate a prior given as an array.

    Parameters
    ----------
    class_prior : None, "labeled" or array-like of shape (n_classes,)
        The prior.
    classes : ndarray
        The classes, whose order the array follows.

    Returns
    -------
    ndarray or None
        Positive shares that add up to 1; None for the other two kinds.
    """
    if class_prior is None or (isinstance(class_prior, str) and class_prior == "labeled"):
        return None
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):
        prior = np.empty(0)
    if prior.shape != (classes.size,):
        raise ValueError(
            f"class_prior={class_prior!r} must be None, 'labeled' or one share per class "
            f"({classes.size}, in the order of {classes.tolist()!r})"
        )
    if not np.isfinite(prior).all() or (prior <= 0).any():
        raise ValueError(f"class_prior={class_prior!r} must be positive and finite")
    if abs(float(prior.sum()) - 1.0) > 1e-6:
        raise ValueError(f"class_prior={class_prior!r} adds up to {prior.sum():g}, not to 1")
    return np.asarray(prior / prior.sum())


def match_masses(
    probabilities: FloatArray, prior: FloatArray, *, tol: float = 1e-10, max_iter: int = 1000
) -> FloatArray:
    """Offsets of the classes that make their mean probabilities equal to the prior.

    Parameters
    ----------
    probabilities : ndarray of shape (n_nodes, n_classes)
        Positive rows that add up to 1.
    prior : ndarray of shape (n_classes,)
        Positive, adding up to 1.
    tol : float, default=1e-10
        Largest deviation of a mass from its prior.
    max_iter : int, default=1000
        Most rounds.

    Returns
    -------
    ndarray of shape (n_classes,)
        Offsets b, with mean 0.
    """
    offset = np.zeros(prior.size)
    if probabilities.shape[0] == 0:
        return offset
    scaled = probabilities.copy()
    for _ in range(max_iter):
        mass = scaled.mean(axis=0)
        if np.abs(mass - prior).max() <= tol:
            break
        factor = prior / np.maximum(mass, 1e-300)
        offset += np.log(factor)
        scaled = probabilities * np.exp(offset - offset.max())
        scaled /= scaled.sum(axis=1, keepdims=True)
    return np.asarray(offset - offset.mean())
