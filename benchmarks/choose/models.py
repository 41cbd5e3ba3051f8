"""Other classifiers, and whole committees, on the same tasks.

Tables are encoded for the other classifiers as most people do it: the median for a missing number,
standardised numbers, one column per category.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .corpus import Task
from .members import Prediction


def plain_features(X: Any) -> Any:
    """Encode a frame with scikit-learn's transformers; arrays stay as they are."""
    if not hasattr(X, "iloc"):
        return X
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words = make_column_selector(dtype_exclude="number")
    X = X.assign(**{c: X[c].astype(str) for c in words(X)})
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = OneHotEncoder(min_frequency=5, sparse_output=False)
    encoder = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (categories, words)
    )
    return np.asarray(encoder.fit_transform(X), dtype=np.float64)


def smoothed_twice(X: Any, W: Any) -> Any:
    """Return unit rows, averaged twice over each node and its neighbours."""
    from sklearn.preprocessing import normalize

    A = sp.csr_array(W + sp.eye_array(W.shape[0]))
    root = sp.diags_array(1.0 / np.sqrt(A.sum(axis=1)))
    S = sp.csr_array(root @ A @ root)
    return S @ (S @ sp.csr_array(normalize(X)))


def _classifiers() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    return {
        "logistic regression": lambda: LogisticRegression(max_iter=500),
        "random forest": lambda: RandomForestClassifier(300, random_state=0),
        "extra trees": lambda: ExtraTreesClassifier(300, random_state=0),
    }


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=200, verbose=False, thread_count=1, random_seed=0, allow_writing_files=False
    )


def _one(model: Any, X: Any, task: Task) -> Prediction:
    """Fit a classifier to the labels and predict the scored rows."""
    known = np.flatnonzero(task.codes >= 0)
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model.fit(X[known], task.codes[known])
        p = model.predict_proba(X[task.scored])
    return Prediction(None, p, time.process_time() - start)


def peers(task: Task) -> dict[str, Prediction]:
    """Run the usual classifiers; on networks also on features smoothed twice."""
    from sklearn.linear_model import LogisticRegression

    X = plain_features(task.data.X)
    makers = _classifiers()
    if task.data.kind in ("embedding", "bag of words", "links"):
        makers = {"logistic regression": makers["logistic regression"]}
    found = {name: _one(make(), X, task) for name, make in makers.items()}
    if task.data.links is not None:
        Z = smoothed_twice(task.data.X, task.data.links)
        model = LogisticRegression(C=100.0, max_iter=500)
        found["smoothed logistic regression"] = _one(model, Z, task)
    return found


def catboost(task: Task) -> dict[str, Prediction]:
    """Run CatBoost with 200 rounds on tables."""
    return {"catboost": _one(_catboost(), plain_features(task.data.X), task)}


def committee(task: Task) -> dict[str, Prediction]:
    """Run the whole classifier with its defaults, as it is installed."""
    from gdpa import CommitteeClassifier

    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model = CommitteeClassifier(n_jobs=1)
        model.fit(task.data.X, task.codes, adjacency=task.data.links)
        p = model.ensemble_.probabilities()[task.scored]
    return {"committee": Prediction(None, p, time.process_time() - start)}
