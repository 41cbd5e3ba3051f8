"""Predictions of a session, and their accuracy estimated from out-of-sample predictions.

The share of correct predictions at confidence p is modelled as ``sigmoid(a + b logit(p))``. The
parameters a and b are estimated from answers that a model predicted without knowing them: held out,
or predicted before the answer. The confidences of the unlabelled rows then give their accuracy.
Unlike a count of random checks, this uses all answers, also those to chosen questions, which are
harder but have lower confidences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from ..estimators import CommitteeClassifier
from .answers import Value

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Estimated accuracy on the unlabelled rows.

    Parameters
    ----------
    accuracy : float
        Expected share of correct predictions.
    low, high : float
        90 % interval.
    answers : int
        Number of answers used, each with an out-of-sample prediction.
    checks : int
        Number of random checks among them.
    right : int
        Number of random checks that were predicted correctly.
    changed : float or None
        Share of the predictions that the latest labels changed; None if not yet known.
    settled : bool
        Whether the predictions are stable.
    since : int
        Number of labels of the predictions that `changed` compares with.
    """

    accuracy: float
    low: float
    high: float
    answers: int
    checks: int
    right: int
    changed: float | None = None
    settled: bool = False
    since: int = 0


@dataclass(frozen=True)
class Predictions:
    """Predictions for all rows.

    Parameters
    ----------
    version : int
        Version of the session that the predictions are based on.
    classes : ndarray of shape (n_classes,)
        The classes, sorted unless one was renamed.
    codes : ndarray of int of shape (n_rows,)
        Class number of each row; known labels are kept.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities.
    trained : mapping
        Training labels by row.
    model : CommitteeClassifier or None
        The classifier; None if there is only one class.
    """

    version: int
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    trained: Mapping[int, Value]
    model: CommitteeClassifier | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """Predicted label of each row."""
        return np.asarray(self.classes[self.codes])

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Probability of the predicted label of each row."""
        return np.asarray(self.probabilities[np.arange(self.codes.size), self.codes])

    def renamed(self, value: Value, to: Value) -> Predictions:
        """Return the predictions with a new name of a class; the classes keep their order."""
        names = [to if known == value else known for known in self.classes.tolist()]
        return replace(self, classes=np.array(names))

    @cached_property
    def histogram(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distribution of the confidences of the unlabelled rows."""
        free = np.ones(self.codes.size, dtype=bool)
        free[list(self.trained)] = False
        return confidence_histogram(self.confidence[free] if free.any() else self.confidence)


def _logits(confidence: ArrayLike) -> FloatArray:
    """Return the logits of confidences, clipped to a finite range."""
    return np.asarray(logit(np.clip(confidence, 1e-3, 1 - 1e-3)), dtype=np.float64)


def confidence_histogram(confidence: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return bin centres on the logit scale and the share of the rows in each bin."""
    counts, edges = np.histogram(_logits(confidence), bins=100)
    return 0.5 * (edges[:-1] + edges[1:]), counts / counts.sum()


def accuracy_interval(
    histogram: tuple[FloatArray, FloatArray],
    confidence: ArrayLike,
    right: ArrayLike,
    check: ArrayLike,
    *,
    level: float = 0.9,
    spread: tuple[float, float] = (1.5, 0.4),
    choice_weight: float = 0.25,
) -> tuple[float, float, float]:
    """Estimate the accuracy on rows with known confidences.

    Parameters
    ----------
    histogram : tuple of ndarray
        Distribution of the confidences, from :func:`confidence_histogram`.
    confidence, right, check : array-like of shape (n_answers,)
        Confidences of the predictions of answered rows, whether they were correct, and whether the
        row was a random check.
    level : float, default=0.9
        Probability of the interval.
    spread : (float, float)
        Standard deviations of the priors of a (mean 0) and b (mean 1).
    choice_weight : float, default=0.25
        Weight of chosen rows, which are harder than others of the same confidence.

    Notes
    -----
    Prior and weight were chosen on 56 sessions of 500 rows of digits and the six tables of
    ``benchmarks/labeling.py``. With 50 answers, 90 % intervals contained the true accuracy in 95 %
    of the sessions and were 17 points wide; chosen leave-one-data-set-out, 91 % and 15 points.

    Returns
    -------
    accuracy, low, high : float
        Posterior mean and the ends of the central interval.
    """
    a = np.linspace(-3.5, 3.5, 71)[:, None] * spread[0]
    b = np.maximum(1.0 + np.linspace(-3.0, 3.0, 25) * spread[1], 0.05)
    log_density = -0.5 * ((a / spread[0]) ** 2 + ((b - 1.0) / spread[1]) ** 2)
    weight = np.where(check, 1.0, choice_weight)
    where = _logits(confidence)
    bins = np.linspace(-7.0, 7.0, 141)
    for hit, sign in ((True, -1.0), (False, 1.0)):
        some = np.asarray(right, dtype=bool) == hit
        counts, _ = np.histogram(where[some], bins, weights=weight[some])
        for i in np.flatnonzero(counts):
            score = a + b * 0.5 * (bins[i] + bins[i + 1])
            log_density = log_density - counts[i] * np.logaddexp(0.0, sign * score)
    places, shares = histogram
    accuracy = expit(a[:, :, None] + b[:, None] * places) @ shares
    density = np.exp(log_density - log_density.max()).ravel()
    order = np.argsort(accuracy.ravel())
    cumulative = np.cumsum(density[order]) / density.sum()
    ends = np.interp([0.5 - level / 2, 0.5 + level / 2], cumulative, accuracy.ravel()[order])
    mean = float(density @ accuracy.ravel() / density.sum())
    return mean, float(ends[0]), float(ends[1])
