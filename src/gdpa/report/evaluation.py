"""What the labels themselves say about a fitted classifier: each one predicted without itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Baselines", "LeftOut", "baselines", "confusion", "left_out_labels"]

MOST_LABELS = 3000  # of which logistic regression learns; it is a yardstick, not the answer
MOST_CELLS = 3_000_000


@dataclass(frozen=True)
class LeftOut:
    """Labels, and what they were predicted to be without their own help.

    Parameters
    ----------
    truth, predicted : ndarray of int
        Class numbers, one per labelled row that was left out.
    rows : ndarray of int
        These rows.
    source : str
        "leave-one-out", "k-fold" or "one fold".
    """

    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    rows: NDArray[np.intp]
    source: str


def left_out_labels(model: Any) -> LeftOut | None:
    """Predictions of left-out labels, as tuning made them.

    Parameters
    ----------
    model : CommitteeClassifier
        A fitted classifier.

    Returns
    -------
    LeftOut or None
        None where there were too few labels to leave any out.
    """
    state = model.ensemble_
    found = state.left_out()
    if found is None:
        return None
    nodes, shares = found
    truth = state.labels.codes[nodes].astype(np.intp)
    return LeftOut(truth, state.winners(shares), nodes, state.tuning.source)


def confusion(left_out: LeftOut, n_classes: int) -> NDArray[np.int64]:
    """Counts: row is the true class, column the predicted one."""
    flat = left_out.truth * n_classes + left_out.predicted
    counts = np.bincount(flat, minlength=n_classes * n_classes)
    return np.asarray(counts.reshape(n_classes, n_classes))


@dataclass(frozen=True)
class Baselines:
    """Accuracy on left-out labels: ours, logistic regression's, the majority class's.

    Parameters
    ----------
    ours, logistic, majority : float
        Share of right labels, all on the same labels.
    n_labels : int
        How many labels.
    better, worse : int
        Labels that only ours, and only logistic regression, has right.
    voice : str, default="the graph"
        What answers: a graph, or a committee in which graphs vote.
    """

    ours: float
    logistic: float
    majority: float
    n_labels: int
    better: int
    worse: int
    voice: str = "the graph"

    @property
    def verdict(self) -> str:
        """Whether the graph, or the committee, helps, in plain words."""
        lead = self.better - self.worse
        doubt = float(np.sqrt(self.better + self.worse))  # what chance alone makes of a tie
        if self.ours <= self.majority and self.logistic <= self.majority:
            return "neither is better than always saying the largest class: the columns say little"
        if lead < -doubt:
            return f"logistic regression is better here: {self.voice} does not help"
        if lead > doubt:
            return f"{self.voice} helps"
        return f"no clear difference: {self.voice} helps little here"

    @property
    def words(self) -> str:
        """All of it in one line."""
        return (
            f"accuracy on {self.n_labels} left-out labels: gdpa {100 * self.ours:.1f} %, logistic "
            f"regression {100 * self.logistic:.1f} %, largest class {100 * self.majority:.1f} %; "
            f"{self.verdict}"
        )

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "gdpa": self.ours,
            "logistic_regression": self.logistic,
            "majority": self.majority,
            "labels": self.n_labels,
            "words": self.words,
        }


def baselines(model: Any, X: Any) -> Baselines | None:
    """Measure simple classifiers on the labels that were left out of ours.

    Logistic regression (C = 1) and the largest class are fitted on labelled rows only, in five
    folds at most, and never see the label that they are asked for.

    Parameters
    ----------
    model : CommitteeClassifier
        A fitted classifier.
    X : ndarray or sparse matrix of shape (n_samples, n_features), or None
        Its features.

    Returns
    -------
    Baselines or None
        None without features, or with too few labels to leave any out.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    checked = left_out_labels(model)
    if checked is None or X is None:
        return None
    codes = model.ensemble_.labels.codes
    labeled = np.flatnonzero(codes >= 0)
    most = max(50, min(MOST_LABELS, MOST_CELLS // max(1, X.shape[1])))
    if labeled.size > most:
        labeled = np.sort(np.random.default_rng(0).choice(labeled, most, replace=False))
    counts = np.bincount(codes[labeled])
    labeled = labeled[counts[codes[labeled]] >= 2]
    place = np.full(codes.size, -1)
    place[labeled] = np.arange(labeled.size)
    common = place[checked.rows] >= 0
    if not common.any() or np.unique(codes[labeled]).size < 2:
        return None
    A, y = X[labeled], codes[labeled]
    A = A if sp.issparse(A) else np.asarray(A, dtype=np.float64)
    folds = StratifiedKFold(max(2, min(5, int(counts[counts >= 2].min()))))
    linear, largest = np.empty_like(y), np.empty_like(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in folds.split(np.zeros(y.size), y):
            largest[test] = np.bincount(y[train]).argmax()
            linear[test] = LogisticRegression(max_iter=200).fit(A[train], y[train]).predict(A[test])
    rows = place[checked.rows[common]]
    truth = checked.truth[common]
    ours, theirs = checked.predicted[common] == truth, linear[rows] == truth
    return Baselines(
        float(ours.mean()),
        float(theirs.mean()),
        float((largest[rows] == truth).mean()),
        int(truth.size),
        int((ours & ~theirs).sum()),
        int((theirs & ~ours).sum()),
        "the graph" if model.committee_ is None else "the committee",
    )
