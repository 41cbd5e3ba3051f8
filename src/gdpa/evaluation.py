"""How accurate predictions are, measured on labels that were held out.

The accuracy is a proportion of n independent labels, so its interval is binomial
(:func:`~gdpa.intervals.share_interval`). It is the accuracy for rows like the labelled ones: if
labels were not drawn at random, the accuracy on the other rows may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import FloatArray, NDArray
from .errors import nearest_name
from .intervals import share_interval
from .notebook import card

METRICS = ("accuracy", "balanced", "f1", "auc")
# Costs of an error of one class that are tried for the largest F1.
F1_FACTORS = tuple(2.0 ** (e / 2.0) for e in range(-6, 13))


def error_costs(weights: FloatArray) -> FloatArray:
    """Return the cost matrix in which an error costs the weight of the true class.

    Parameters
    ----------
    weights : ndarray of shape (n_classes,)
        Weights of the classes.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        The costs; 0 on the diagonal.
    """
    return np.asarray(weights[:, None] * (1.0 - np.eye(weights.size)))


def decide(probabilities: FloatArray, costs: FloatArray) -> NDArray[np.intp]:
    """Return the class of least expected cost for each row.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities of the classes.
    costs : ndarray of shape (n_classes, n_classes)
        Cost of predicting the column's class for a row of the row's class.

    Returns
    -------
    ndarray of int of shape (n_rows,)
        Class numbers; with equal costs of all errors those of the largest probability.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.evaluation import decide, error_costs
    >>> p = np.array([[0.8, 0.2]])
    >>> decide(p, error_costs(np.array([1.0, 1.0]))).tolist()
    [0]
    >>> decide(p, error_costs(np.array([1.0, 5.0]))).tolist()  # a missed second class costs more
    [1]
    """
    return np.asarray((probabilities @ costs).argmin(axis=1), dtype=np.intp)


@dataclass(frozen=True)
class Accuracy:
    """Accuracy on held-out labels, with an interval.

    Parameters
    ----------
    estimate : float
        Fraction of held-out labels that were predicted correctly.
    low, high : float
        Ends of the interval.
    level : float
        Confidence level of the interval.
    n_labels : int
        Number of held-out labels.
    source : str
        How labels were held out: "leave-one-out", "k-fold", "one fold" or "sample" (k-fold on a
        subsample of the rows).
    """

    estimate: float
    low: float
    high: float
    level: float
    n_labels: int
    source: str

    def __str__(self) -> str:
        return (
            f"{_percent(self.estimate)} ({100 * self.level:g} % interval: {_percent(self.low)} to "
            f"{_percent(self.high)}; {self.n_labels:,} held-out labels, {self.source})"
        )


@dataclass(frozen=True)
class ClassScore:
    """Precision, recall and F1 of one class.

    Parameters
    ----------
    label : object
        The class.
    precision : float
        Fraction of the predictions of this class that are correct; 0 if there are none.
    recall : float
        Fraction of the labels of this class that are predicted correctly.
    f1 : float
        Harmonic mean of precision and recall; 0 if both are 0.
    n_labels : int
        Number of held-out labels of this class.
    """

    label: object
    precision: float
    recall: float
    f1: float
    n_labels: int

    def percentages(self) -> tuple[str, str, str]:
        """Return precision, recall and F1 as they are shown."""
        return _percent(self.precision), _percent(self.recall), _percent(self.f1)


def _percent(share: float) -> str:
    """Return a share as it is shown."""
    return f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Doubt:
    """A given label that the held-out prediction contradicts.

    Parameters
    ----------
    row : int
        Row of the label, from 0.
    label : object
        The given label.
    prediction : object
        The class that is predicted without this label.
    label_probability, prediction_probability : float
        Their held-out probabilities.
    """

    row: int
    label: object
    prediction: object
    label_probability: float
    prediction_probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Predictions of held-out labels, and the metrics that follow from them.

    Classes without a held-out label are left out of all averages.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    rows : ndarray of int of shape (n_labels,)
        Rows of the held-out labels.
    truth, predicted : ndarray of int of shape (n_labels,)
        Class numbers.
    probabilities : ndarray of shape (n_labels, n_classes)
        Held-out probabilities.
    source : str
        How labels were held out.
    level : float, default=0.95
        Confidence level of the interval of the accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.evaluation import Evaluation
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.8, 0.2]])
    >>> found = Evaluation(np.array(["a", "b"]), np.arange(4), np.array([0, 0, 1, 1]),
    ...                    p.argmax(axis=1), p, "k-fold")
    >>> found.accuracy.estimate, found.auc
    (0.75, 0.75)
    """

    classes: NDArray[np.generic]
    rows: NDArray[np.intp]
    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    probabilities: FloatArray
    source: str
    level: float = 0.95

    @property
    def n_labels(self) -> int:
        """Number of held-out labels."""
        return int(self.truth.size)

    @property
    def accuracy(self) -> Accuracy:
        """Fraction of correct predictions, with its interval."""
        right = int((self.truth == self.predicted).sum())
        low, high = share_interval(right, self.n_labels, self.level)
        return Accuracy(
            estimate=right / self.n_labels,
            low=low,
            high=high,
            level=self.level,
            n_labels=self.n_labels,
            source=self.source,
        )

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Number of labels of each class (rows) that were predicted as each class (columns)."""
        k = self.classes.size
        counts = np.bincount(self.truth * k + self.predicted, minlength=k * k)
        return counts.reshape(k, k)

    @cached_property
    def per_class(self) -> tuple[ClassScore, ...]:
        """Precision, recall and F1 of every class with a held-out label."""
        correct = np.diagonal(self.confusion)
        labels = self.confusion.sum(axis=1)
        predictions = self.confusion.sum(axis=0)
        names = self.classes.tolist()
        scores = []
        for c in np.flatnonzero(labels):
            precision = correct[c] / predictions[c] if predictions[c] else 0.0
            recall = correct[c] / labels[c]
            total = precision + recall
            scores.append(
                ClassScore(
                    label=names[c],
                    precision=float(precision),
                    recall=float(recall),
                    f1=float(2.0 * precision * recall / total) if total else 0.0,
                    n_labels=int(labels[c]),
                )
            )
        return tuple(scores)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes."""
        return float(np.mean([score.recall for score in self.per_class]))

    @property
    def macro_precision(self) -> float:
        """Mean precision of the classes."""
        return float(np.mean([score.precision for score in self.per_class]))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the classes."""
        return float(np.mean([score.f1 for score in self.per_class]))

    @cached_property
    def auc(self) -> float | None:
        """Area under the ROC curve, one class against the rest, mean over classes.

        It is the probability that a random label of the class has a higher probability of it than
        a random label of another class; ties count one half. None if there is only one class.
        """
        from scipy.stats import rankdata

        areas = []
        for c in np.unique(self.truth):
            positive = self.truth == c
            n_positive = int(positive.sum())
            n_negative = self.n_labels - n_positive
            if n_negative == 0:
                return None
            ranks = rankdata(self.probabilities[:, c])
            wins = ranks[positive].sum() - n_positive * (n_positive + 1) / 2
            areas.append(wins / (n_positive * n_negative))
        return float(np.mean(areas))

    @property
    def log_loss(self) -> float:
        """Mean of minus the logarithm of the probability of the true class."""
        at_truth = self.probabilities[np.arange(self.n_labels), self.truth]
        return float(-np.log(np.maximum(at_truth, 1e-15)).mean())

    def doubts(self) -> list[Doubt]:
        """Return the given labels that may be wrong, most suspicious first.

        A label is doubted if its held-out prediction is another class, with a probability of at
        least the mean probability of that class among its own labels (confident learning, Northcutt
        et al. 2021, https://doi.org/10.1613/jair.1.12125). On seven tables with 200 labels, of
        which 10 % were changed, 57 % of the doubted labels were wrong, and 70 % of the wrong labels
        were found, with the probabilities of the committee. With those of a random forest, cleanlab
        2.9 has 46 and 74 %.
        """
        P = self.probabilities
        sums = np.bincount(self.truth, P[np.arange(self.n_labels), self.truth], self.classes.size)
        counts = np.bincount(self.truth, minlength=self.classes.size)
        typical = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
        given = P[np.arange(self.n_labels), self.truth]
        top = P[np.arange(self.n_labels), self.predicted]
        doubted = (self.predicted != self.truth) & (top >= typical[self.predicted])
        names = self.classes.tolist()
        order = np.flatnonzero(doubted)[np.argsort(given[doubted], kind="stable")]
        return [
            Doubt(
                row=int(self.rows[i]),
                label=names[self.truth[i]],
                prediction=names[self.predicted[i]],
                label_probability=float(given[i]),
                prediction_probability=float(top[i]),
            )
            for i in order.tolist()
        ]

    @property
    def distances(self) -> list[tuple[float, int]] | None:
        """How many predictions are how far from the label, if the classes are numbers.

        Pairs of distance and count, nearest first. None unless there are at least three classes and
        all of them are numbers, such as ratings from 1 to 5.
        """
        try:
            values = np.array([float(str(label)) for label in self.classes.tolist()])
        except ValueError:
            return None
        if values.size < 3 or not np.isfinite(values).all():
            return None
        away = np.abs(values[self.truth] - values[self.predicted])
        found, counts = np.unique(away, return_counts=True)
        return list(zip(found.tolist(), counts.tolist(), strict=True))

    def costs_for(self, metric: str) -> FloatArray:
        """Return costs of errors whose least expected cost gives the best value of a metric.

        Parameters
        ----------
        metric : {"accuracy", "balanced", "f1", "auc"}
            "accuracy" and "auc" have equal costs (the AUC does not depend on decisions). "balanced"
            has those of balanced accuracy: an error costs the inverse of the class's number of
            labels. "f1" searches for the costs with the largest macro F1 on the held-out labels,
            class by class.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Cost of predicting the column's class for a row of the row's class.
        """
        if metric not in METRICS:
            raise ValueError(f"metric={metric!r}; {nearest_name(metric, list(METRICS))}")
        k = self.classes.size
        if metric in ("accuracy", "auc"):
            return error_costs(np.ones(k))
        counts = np.bincount(self.truth, minlength=k)
        inverse = np.where(counts > 0, self.n_labels / np.maximum(counts, 1), 1.0)
        if metric == "balanced":
            return error_costs(inverse)
        weights = np.ones(k)
        best = self.macro_f1
        for c in np.flatnonzero(counts):
            for factor in F1_FACTORS:
                tried = weights.copy()
                tried[c] = factor
                predicted = decide(self.probabilities, error_costs(tried))
                found = replace(self, predicted=predicted).macro_f1
                if found > best + 1e-12:
                    best, weights = found, tried
        return error_costs(weights)

    def decided_for(self, metric: str) -> Evaluation:
        """Return the evaluation of predictions that are decided for a metric.

        The costs that decide about a label are chosen on four fifths of the other labels, so that
        the result is not better than it is for new rows.

        Parameters
        ----------
        metric : {"accuracy", "balanced", "f1", "auc"}
            The metric.

        Returns
        -------
        Evaluation
            The same labels and probabilities with other predictions.
        """
        self.costs_for(metric)
        if metric in ("accuracy", "auc"):
            return self
        order = np.argsort(self.truth, kind="stable")
        part = np.empty(self.n_labels, dtype=np.intp)
        part[order] = np.arange(self.n_labels) % 5
        predicted = self.predicted.copy()
        for fold in range(5):
            held = part == fold
            if held.all() or not held.any():
                continue
            others = replace(
                self,
                rows=self.rows[~held],
                truth=self.truth[~held],
                predicted=self.predicted[~held],
                probabilities=self.probabilities[~held],
            )
            predicted[held] = decide(self.probabilities[held], others.costs_for(metric))
        return replace(self, predicted=predicted)

    def averages(self) -> list[tuple[str, str]]:
        """Return the names and values of the metrics over all classes, as they are shown."""
        lines = [
            ("accuracy", str(self.accuracy)),
            ("balanced accuracy", _percent(self.balanced_accuracy)),
            ("macro precision", _percent(self.macro_precision)),
            ("macro F1", _percent(self.macro_f1)),
            ("log-loss", f"{self.log_loss:.3f}"),
        ]
        if self.auc is not None:
            lines.insert(4, ("AUC", _percent(self.auc)))
        if self.distances is not None:
            mean = sum(d * n for d, n in self.distances) / self.n_labels
            lines.append(("mean distance", f"{mean:.3f}"))
        return lines

    def plain(self) -> dict[str, Any]:
        """Return the metrics as data for JSON."""
        accuracy = self.accuracy
        return {
            "accuracy": accuracy.estimate,
            "low": accuracy.low,
            "high": accuracy.high,
            "level": accuracy.level,
            "labels": accuracy.n_labels,
            "source": accuracy.source,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_precision": self.macro_precision,
            "macro_f1": self.macro_f1,
            "auc": self.auc,
            "log_loss": self.log_loss,
            "per_class": [
                {
                    "label": str(score.label),
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                    "labels": score.n_labels,
                }
                for score in self.per_class
            ],
            "confusion": self.confusion.tolist(),
            "distances": self.distances,
        }

    def __repr__(self) -> str:
        width = max(len("class"), *(len(str(score.label)) for score in self.per_class))
        lines = [f"{name:18s} {value}" for name, value in self.averages()]
        lines += ["", f"{'class':{width}s}  precision   recall       F1  labels"]
        for score in self.per_class:
            precision, recall, f1 = score.percentages()
            lines.append(
                f"{score.label!s:{width}s}  {precision:>9s}  {recall:>7s}  {f1:>7s}"
                f"  {score.n_labels:6d}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = self.averages()
        for score in self.per_class:
            precision, recall, f1 = score.percentages()
            numbers = f"precision {precision}, recall {recall}, F1 {f1}, {score.n_labels:,} labels"
            facts.append((str(score.label), numbers))
        return card("Held-out labels", facts)
