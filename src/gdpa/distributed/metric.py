"""The metric: columns as they are, or weighed by what a forest of the labels says about them.

Which of the two is decided on a sample by labels that neither the forest nor the graph has seen:
the forest grows on the labels of all folds but the first, the graph of the sample takes them too,
and the first fold judges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.tuning import left_out_loss
from ..graph.forest import importance_scales

__all__ = ["METRICS", "choose_metric"]

FloatArray = NDArray[np.float64]

METRICS = ("auto", "plain", "importance")
# Rows of the sample that judge, with and without a label, and labels that the forest sees.
JUDGES, BYSTANDERS, TAUGHT = 2_000, 4_000, 5_000
# With fewer labels in the first fold their verdict is noise: columns are taken as they are.
FEWEST_JUDGES = 20
TREES = 100


def choose_metric(
    wanted: str,
    X: NDArray[Any],
    X_labeled: NDArray[Any],
    codes: NDArray[np.int32],
    folds: NDArray[np.int32],
    seed: int,
) -> tuple[FloatArray, str]:
    """Factors of the columns.

    Parameters
    ----------
    wanted : {"auto", "plain", "importance"}
        What was asked for.
    X : ndarray of shape (n_sample, n_features)
        A sample of all rows.
    X_labeled : ndarray of shape (n_labels, n_features)
        Rows with a label, or a sample of them.
    codes, folds : ndarray of int of shape (n_labels,)
        Their classes and folds.
    seed : int
        Seed of the forest and of the samples.

    Returns
    -------
    factors : ndarray of shape (n_features,)
        Mean square 1, so that features keep their size on the whole.
    note : str
        What was chosen and why.
    """
    plain = np.ones(X.shape[1])
    if wanted == "plain" or X.shape[1] == 1:
        return plain, "columns weigh as they are"
    if wanted == "importance":
        return _importances(X_labeled, codes, seed), "columns weigh by their importance"
    judges = np.flatnonzero(folds == 0)
    enough = judges.size >= FEWEST_JUDGES and np.unique(codes[folds != 0]).size > 1
    if not enough:
        return plain, "columns weigh as they are: too few labels to judge"
    from ..estimators import GraphClassifier

    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(judges)[:JUDGES])
    others = np.sort(rng.permutation(np.flatnonzero(folds != 0))[: 2 * JUDGES])
    rest = np.sort(rng.permutation(X.shape[0])[:BYSTANDERS])
    Z = np.vstack([X_labeled[others], X_labeled[some], X[rest]])
    y = np.full(Z.shape[0], -1)
    y[: others.size] = codes[others]
    loss = {}
    taught = folds != 0
    learnt = _importances(X_labeled[taught], codes[taught], seed)
    for name, factors in (("plain", plain), ("importance", learnt)):
        model = GraphClassifier(n_neighbors=10, self_loop=0.01, label_weight=np.inf)
        model.fit(Z * factors, y)
        scores = np.zeros((some.size, int(codes.max()) + 1))
        scores[:, model.classes_] = model.label_scores_[others.size : others.size + some.size]
        loss[name] = left_out_loss(np.eye(scores.shape[1])[codes[some]], scores)
    verdict = f"loss {loss['plain']:.3f} as they are, {loss['importance']:.3f} by importance"
    if loss["importance"] < loss["plain"]:
        if np.count_nonzero(taught) < TAUGHT:  # the labels of the judges, too, are worth seeing
            learnt = _importances(X_labeled, codes, seed)
        return learnt, f"columns weigh by their importance ({verdict})"
    return plain, f"columns weigh as they are ({verdict})"


def _importances(X: NDArray[Any], codes: NDArray[np.int32], seed: int) -> FloatArray:
    """Factors from a forest of the labels."""
    from sklearn.ensemble import ExtraTreesClassifier

    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(codes.size)[:TAUGHT])
    forest = ExtraTreesClassifier(TREES, random_state=seed).fit(X[rows], codes[rows])
    factors = importance_scales(forest.feature_importances_)
    return np.asarray(factors / np.sqrt(np.mean(np.square(factors))))
