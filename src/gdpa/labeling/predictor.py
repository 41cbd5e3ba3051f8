"""Fit the classifier of a session, and keep out-of-sample predictions of its labelled rows."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import ConfidenceWarning, DegenerateProblemWarning, ScaleWarning, UnreachedWarning
from ..estimators import CommitteeClassifier
from ..estimators.guesses import GuessColumn, combine, guess_evidence, guess_weights
from .accuracy import Predictions
from .answers import Value

# Classes and probabilities of one row.
Unseen: TypeAlias = tuple[NDArray[Any], NDArray[np.float64]]

# Up to this many rows, every change triggers a new fit, which takes a second or two. Predictions
# then depend on the labels only, not on their order. Beyond, labels are added to the last fit until
# their number has doubled.
FRESH_ROWS = 20_000
# Predictions are stable if this many new labels changed less than one percent of them.
SETTLE_LABELS = 20
# Predictions from fewer labels are no measure of a change: they may know a single class.
FEWEST_LABELS = 10


class Predictor:
    """Predicts all rows of a session from its labels.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The features.
    estimator : CommitteeClassifier
        The classifier; it is cloned for every fit.
    guesses : sequence of GuessColumn
        Guesses of the labels, used as far as they help on held-out labels.
    fresh_rows : int
        Up to this many rows, every change triggers a new fit.

    Attributes
    ----------
    guess_weights : list of float
        Weights of the guesses in the latest predictions.
    """

    def __init__(
        self,
        X: Any,
        estimator: CommitteeClassifier,
        guesses: Sequence[GuessColumn] = (),
        *,
        fresh_rows: int = FRESH_ROWS,
    ) -> None:
        self._X = X
        self._n_rows = int(X.shape[0])
        self._estimator = estimator
        self._guesses = tuple(guesses)
        self.guess_weights = [0.0] * len(self._guesses)
        self.fresh_rows = fresh_rows
        # Out-of-sample predictions of labelled rows: held out, or made before the answer.
        self._unseen: dict[int, Unseen] = {}
        self._base: tuple[dict[int, Value], CommitteeClassifier] | None = None

    def fit(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Return a new classifier fitted to labels of at least two classes."""
        y = np.full(self._n_rows, None, dtype=object)
        for row, value in labels.items():
            y[row] = value
        model: CommitteeClassifier = clone(self._estimator).set_params(unlabeled=None)
        with warnings.catch_warnings():
            for category in (UnreachedWarning, DegenerateProblemWarning, ScaleWarning):
                warnings.simplefilter("ignore", category)
            warnings.simplefilter("ignore", ConfidenceWarning)  # accuracy is estimated separately
            return model.fit(self._X, y)

    def classifier(
        self, labels: Mapping[int, Value], latest: Predictions | None
    ) -> CommitteeClassifier:
        """Return a classifier fitted to these labels: that of the latest predictions if it is."""
        if latest is None or latest.model is None or latest.trained != labels:
            return self.fit(labels)
        return copy.copy(latest.model) if self._n_rows <= self.fresh_rows else self.fit(labels)

    def predict(self, labels: Mapping[int, Value], version: int) -> Predictions:
        """Predict all rows from these labels.

        Parameters
        ----------
        labels : mapping
            Labels by row, at least one.
        version : int
            Version of the session.

        Returns
        -------
        Predictions
            The predictions; held-out predictions of labelled rows are kept for :meth:`unseen`.
        """
        n = self._n_rows
        self.guess_weights = [0.0] * len(self._guesses)
        classes = np.unique(np.array(list(labels.values())))
        if classes.size == 1:
            codes = np.zeros(n, dtype=np.intp)
            return Predictions(version, classes, codes, np.ones((n, 1)), labels)
        model = self._updated(labels)
        ensemble = model.ensemble_
        probabilities = ensemble.probabilities()
        codes = np.searchsorted(model.classes_, model.transduction_)
        found = ensemble.left_out()
        if found is not None:
            rows = found[0]
            held_out = ensemble.probabilities(found[1])
            if self._guesses:
                probabilities, held_out = self._with_guesses(probabilities, rows, held_out, codes)
                unlabelled = np.ones(n, dtype=bool)
                unlabelled[list(labels)] = False
                codes = np.where(unlabelled, np.argmax(probabilities, axis=1), codes)
            pairs = zip(rows.tolist(), held_out, strict=True)
            self._unseen |= {row: (model.classes_, p) for row, p in pairs}
        return Predictions(version, model.classes_, codes, probabilities, labels, model)

    def _with_guesses(
        self,
        probabilities: NDArray[np.float64],
        rows: NDArray[np.intp],
        held_out: NDArray[np.float64],
        codes: NDArray[np.intp],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities of all rows, and those held out, with the guesses."""
        n_classes = probabilities.shape[1]
        found = [guess_evidence(g, rows, codes[rows], n_classes) for g in self._guesses]
        left_out = [evidence.left_out for evidence in found]
        self.guess_weights = guess_weights(held_out, codes[rows], left_out)
        for weight, evidence in zip(self.guess_weights, found, strict=True):
            if weight:
                probabilities = combine(probabilities, weight * evidence.all_rows)
                held_out = combine(held_out, weight * evidence.left_out)
        return probabilities, held_out

    def remember(self, predictions: Predictions, labels: Mapping[int, Value]) -> None:
        """Keep what was predicted for rows before they got a label."""
        if predictions.classes.size > 1:
            for row in labels.keys() - predictions.trained.keys():
                p = predictions.probabilities[row].copy()
                self._unseen[row] = (predictions.classes, p)

    def unseen(self, now: Predictions, row: int) -> Unseen | None:
        """Return the classes and probabilities of a model fitted without the label of a row."""
        if row not in now.trained:
            return now.classes, now.probabilities[row]
        return self._unseen.get(row)

    def suspicious(
        self, now: Predictions, labels: Mapping[int, Value]
    ) -> list[tuple[int, Value, float]]:
        """Return labels that a model fitted without them doubts, the most suspicious first."""
        found = []
        for row, value in labels.items():
            classes, p = self.unseen(now, row) or (now.classes, np.zeros(0))
            if p.size and classes[np.argmax(p)] != value:
                best = int(np.argmax(p))
                odds = (p[classes == value].sum() + 1e-6) / p[best]
                found.append((float(odds), row, classes.tolist()[best], float(p[best])))
        return [(row, value, p) for _, row, value, p in sorted(found, key=lambda f: f[:2])]

    def _updated(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Return a new fit, or the last one with the new labels added."""
        if self._n_rows <= self.fresh_rows:
            return self.fit(labels)
        if self._base is not None:
            known, base = self._base
            changed = {row: value for row, value in labels.items() if known.get(row) != value}
            gone = {row: None for row in known if row not in labels}
            few = len(known) / 2 <= len(labels) <= 2 * len(known)
            if few and set(labels.values()) <= set(base.classes_.tolist()):
                model = copy.copy(base)
                model.add_labels([*changed, *gone], [*changed.values(), *gone.values()])
                return model
        model = self.fit(labels)
        self._base = (dict(labels), model)
        return model


class Stability:
    """How much the latest labels changed the predictions.

    Attributes
    ----------
    changed : float or None
        Share of the predictions that changed since there were about 20 fewer labels; None if not
        yet known.
    since : int
        Number of labels at that time.
    """

    def __init__(self) -> None:
        self.changed: float | None = None
        self.since = 0
        self._past: deque[tuple[int, NDArray[Any]]] = deque(maxlen=8)

    def follow(self, n_labels: int, predicted: NDArray[Any]) -> None:
        """Compare new predictions with earlier ones, except those of very few labels."""
        if n_labels < FEWEST_LABELS:
            return
        most = n_labels - SETTLE_LABELS
        earlier = [(n, labels) for n, labels in self._past if n <= most]
        if earlier:
            self.since, before = earlier[-1]
            self.changed = float(np.mean(before != predicted))
        if not self._past or n_labels >= self._past[-1][0] + SETTLE_LABELS // 2:
            self._past.append((n_labels, predicted))

    @property
    def settled(self) -> bool:
        """Whether at most one percent changed."""
        return self.changed is not None and self.changed <= 0.01
