"""A quick committee on the sample: how much it doubts each row decides what is asked next.

Three unlike members (the graph, a forest, a linear model), averaged. It is small enough to follow
every few answers; the predictions that the user sees come from the full classifier.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from ..estimators.sketch import Conditioned
from ..estimators.strategies import lead

__all__ = ["doubts"]

FloatArray = NDArray[np.float64]

TREES = 30
# Rows that the two models are fitted on, the latest; a quick look does not need more.
MOST_ROWS = 1000


def doubts(
    field: Conditioned, points: Any, known: Any, codes: NDArray[np.intp], *, seed: int = 0
) -> FloatArray:
    """How much a quick committee doubts each row of the sample.

    Parameters
    ----------
    field : Conditioned
        The field given the labelled rows.
    points : ndarray or csr_array of shape (n_sampled, n_features)
        Features of the sample.
    known : ndarray or csr_array of shape (n_known, n_features)
        Features of the labelled rows, in the order of `field`.
    codes : ndarray of int of shape (n_known,)
        Their class numbers.
    seed : int, default=0
        Seed of the forest.

    Returns
    -------
    ndarray of shape (n_sampled,)
        One minus the lead of the first class; ones with fewer than two classes.
    """
    n = field.covariance.shape[0]
    classes, place = np.unique(codes, return_inverse=True)
    if classes.size < 2:
        return np.ones(n)
    scores = np.maximum(field.scores(np.eye(classes.size)[place]), 0.0)
    total = scores.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, scores / np.maximum(total, 1e-300), 1.0 / classes.size)
    models = (
        ExtraTreesClassifier(TREES, random_state=seed),
        LogisticRegression(max_iter=100, tol=1e-2),
    )
    mean = shares
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows a class, few iterations: it is a quick look
        for model in models:
            model.fit(known[-MOST_ROWS:], place[-MOST_ROWS:])
            part = np.zeros_like(shares)
            part[:, model.classes_] = model.predict_proba(points)
            mean = mean + part
    return 1.0 - lead(mean / (1 + len(models)))
