"""Candidates for members, tried on the same tasks with the same folds before they are built in."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .corpus import Task
from .members import Prediction, fit_data, label_folds, predictions
from .models import smoothed_twice

N_TREES = 150


def cross_fitted(make: Callable[[], Any], X: Any, task: Task) -> Prediction:
    """Predict each fold of the labels by a model without it, and the scored rows by one with all.

    Parameters
    ----------
    make : callable
        Returns an unfitted classifier with ``predict_proba``.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.
    task : Task
        The labels.
    """
    known = np.flatnonzero(task.codes >= 0)
    classes, y = np.unique(task.codes[known], return_inverse=True)
    start = time.process_time()
    folds = label_folds(y)
    held_out = None
    with warnings.catch_warnings(action="ignore"):
        if folds is not None:
            held_out = np.zeros((known.size, classes.size))
            for f in range(int(folds.max()) + 1):
                held = folds == f
                model = make().fit(X[known[~held]], y[~held])
                held_out[np.ix_(held, model.classes_)] = model.predict_proba(X[known[held]])
        scored = make().fit(X[known], y).predict_proba(X[task.scored])
    return Prediction(held_out, scored, time.process_time() - start)


def best_splits(task: Task) -> dict[str, Prediction]:
    """Grow trees with best splits among half of the columns, and with random splits."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    X = fit_data(task).X

    def best() -> Any:
        return RandomForestClassifier(N_TREES, max_features=0.5, random_state=0)

    def at_random() -> Any:
        return ExtraTreesClassifier(N_TREES, max_features=0.5, random_state=0)

    return {
        "best splits": cross_fitted(best, X, task),
        "random splits": cross_fitted(at_random, X, task),
    }


def smoothed_links(task: Task) -> dict[str, Prediction]:
    """Fit logistic regression to features smoothed twice along the links."""
    from sklearn.linear_model import LogisticRegression

    Z = smoothed_twice(task.data.X, task.data.links)
    return {
        f"smoothed twice, C={C:g}": cross_fitted(
            lambda C=C: LogisticRegression(C=C, max_iter=300), Z, task
        )
        for C in (10.0, 100.0)
    }


def pixel_members(task: Task) -> dict[str, Prediction]:
    """Run the members on the pixels of pictures instead of learned features."""
    found = predictions(task, features_of_pictures=False)
    return {f"{name} of pixels": one for name, one in found.items()}
