"""Accuracy on held-out labels, compared with simple baselines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import betainc
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class HeldOut:
    """Held-out labels and their predictions.

    Parameters
    ----------
    truth, predicted : ndarray of int
        Class numbers, one per held-out label.
    rows : ndarray of int
        Their rows.
    source : str
        "leave-one-out", "k-fold", "one fold" or "sample".
    """

    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    rows: NDArray[np.intp]
    source: str

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions."""
        return float((self.truth == self.predicted).mean())


def held_out_labels(model: BaseEstimator) -> HeldOut | None:
    """Return the cross-validated predictions of a fit; None if there were too few labels."""
    state = model.ensemble_
    left_out = state.left_out()
    if left_out is None:
        return None
    nodes, shares = left_out
    truth = state.labels.codes[nodes].astype(np.intp)
    return HeldOut(truth, state.winners(shares), nodes, state.tuning.source)


@dataclass(frozen=True)
class Baselines:
    """Accuracy on held-out labels: gdpa, logistic regression and the largest class.

    Parameters
    ----------
    ours, logistic, majority : float
        Accuracy of each, on the same labels.
    n_labels : int
        Number of labels.
    better, worse : int
        Labels that only gdpa, or only logistic regression, predicts correctly.
    """

    ours: float
    logistic: float
    majority: float
    n_labels: int
    better: int
    worse: int

    @property
    def verdict(self) -> str:
        """The result of the comparison in words."""
        lead = self.better - self.worse
        # Two standard deviations if both are equally accurate, about a 95 % interval.
        deviation = 2.0 * float(np.sqrt(self.better + self.worse))
        if self.ours <= self.majority and self.logistic <= self.majority:
            return "neither is better than always predicting the largest class"
        if lead < -deviation:
            return "logistic regression is more accurate here"
        if lead > deviation:
            return "gdpa is more accurate than logistic regression"
        return "no clear difference from logistic regression"

    def plain(self) -> dict[str, Any]:
        """Return the comparison for JSON, with a sentence."""
        return {
            "gdpa": self.ours,
            "logistic_regression": self.logistic,
            "majority": self.majority,
            "labels": self.n_labels,
            "words": f"accuracy on {self.n_labels} held-out labels: gdpa {100 * self.ours:.1f} %, "
            f"logistic regression {100 * self.logistic:.1f} %, largest class "
            f"{100 * self.majority:.1f} %; {self.verdict}",
        }


def fitted_points(graph: Any) -> Any:
    """Return the rescaled features that a fitted graph keeps; None for a precomputed graph."""
    return graph.points if graph.neighbors is None else graph.neighbors.index.X


def baselines(model: BaseEstimator, X: Any, *, most_labels: int = 3000) -> Baselines | None:
    """Compare a fitted classifier with simple ones on the same held-out labels.

    Logistic regression (C = 1) and the majority class are fitted on the labelled rows, in up to
    five folds.

    Parameters
    ----------
    model : CommitteeClassifier
        A fitted classifier.
    X : ndarray or sparse matrix of shape (n_samples, n_features), or None
        Its features.
    most_labels : int, default=3000
        Maximum number of labels for logistic regression; fewer with many features.

    Returns
    -------
    Baselines or None
        None without features, or with too few labels to hold any out.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    checked = held_out_labels(model)
    if checked is None or X is None:
        return None
    codes = model.ensemble_.labels.codes
    labeled = np.flatnonzero(codes >= 0)
    most = max(50, min(most_labels, 1000 * most_labels // max(1, X.shape[1])))
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
    with warnings.catch_warnings(action="ignore"):
        linear = cross_val_predict(LogisticRegression(max_iter=200), A, y, cv=folds)
    largest = cross_val_predict(DummyClassifier(strategy="most_frequent"), A, y, cv=folds)
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
    )


def share_interval(right: int, n: int, level: float = 0.9) -> tuple[float, float]:
    r"""Return the mid-P interval of a proportion: exact binomial tails, the observed count halved.

    At its ends ``P(X > k) + P(X = k) / 2`` and ``P(X < k) + P(X = k) / 2`` are ``(1 - level) / 2``.
    Wilson's interval has too little coverage near 1, where accuracies of labelling sessions are.

    Parameters
    ----------
    right, n : int
        Successes and trials.
    level : float, default=0.9
        Confidence level.

    Returns
    -------
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> low, high = share_interval(9, 10)
    >>> f"{low:.2f} {high:.2f}"
    '0.65 0.99'
    """
    if not 0 <= right <= n or n < 1:
        raise ValueError(f"right={right!r} of n={n!r}: needs 0 <= right <= n and n >= 1")
    tail = (1.0 - level) / 2.0
    low = 0.0 if right == 0 else _share_at(right, n, tail)
    high = 1.0 if right == n else _share_at(right, n, 1.0 - tail)
    return low, high


def _share_at(right: int, n: int, value: float) -> float:
    """Return the share at which ``P(X > right) + P(X = right) / 2`` has the given value."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        more = betainc(right + 1, n - right, middle) if right < n else 0.0
        as_many = betainc(right, n - right + 1, middle) if right else 1.0
        low, high = (middle, high) if 0.5 * (more + as_many) < value else (low, middle)
    return 0.5 * (low + high)
