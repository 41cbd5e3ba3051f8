"""The classifier behind a session: predictions for all rows, and an estimate of their accuracy."""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..csv_text import csv_text
from ..errors import ConfidenceWarning, DegenerateProblemWarning, ScaleWarning, UnreachedWarning
from ..estimators import CommitteeClassifier
from ..estimators.frames import adopt_encoder
from ..files import write_text
from ..tables import TableEncoder
from .accuracy import Estimate, accuracy_interval, confidence_histogram
from .answers import Answer, AnswerHistory, Value
from .features import Features

__all__ = ["Estimate", "Predictions", "SessionModel"]

Unseen: TypeAlias = tuple[NDArray[Any], NDArray[np.float64]]

# Up to this many rows every change is a fresh fit, which takes a second or two: predictions then
# depend on the labels alone, not on their order. Beyond, labels are added to the last fit, until
# their number has doubled.
FRESH_ROWS = 20_000
# Fewer answers give no useful interval.
FEWEST_ANSWERS = 10
# Predictions have settled when this many labels changed less than one percent of them.
SETTLE_LABELS = 20


@dataclass(frozen=True)
class Predictions:
    """Predictions for all rows.

    Parameters
    ----------
    version : int
        Version of the session's answers that they are based on.
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    codes : ndarray of int of shape (n_rows,)
        Class number of each row; given labels are kept.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities.
    trained : mapping
        Labels that the model was fitted on, by row.
    model : CommitteeClassifier or None
        The classifier; None with one class.
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

    @cached_property
    def histogram(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distribution of the confidences of the rows without a label."""
        free = np.ones(self.codes.size, dtype=bool)
        free[list(self.trained)] = False
        return confidence_histogram(self.confidence[free] if free.any() else self.confidence)


class SessionModel:
    """A classifier that keeps up with the answers of a session.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.
    history : AnswerHistory
        The answers.
    encoder : TableEncoder or None
        How a data frame was encoded.
    estimator : CommitteeClassifier
        A clone of it is fitted.

    Attributes
    ----------
    version : int
        Number of changes so far.
    latest : Predictions or None
        The latest predictions, which may lack some labels; None before the first.
    """

    def __init__(
        self,
        X: Features,
        history: AnswerHistory,
        encoder: TableEncoder | None,
        estimator: CommitteeClassifier,
    ) -> None:
        self.X = X
        self.n_rows: int = X.shape[0]
        self.encoder = encoder
        self.estimator = estimator
        self._history = history
        self._lock = threading.RLock()
        self._fitting = threading.Lock()
        self.version = 0
        self.latest: Predictions | None = None
        # Predictions for rows by models without their label: held out, or fitted before the answer.
        self._unseen: dict[int, Unseen] = {}
        self._past: deque[tuple[int, NDArray[Any]]] = deque(maxlen=8)
        self._base: tuple[dict[int, Value], CommitteeClassifier] | None = None

    @property
    def labels(self) -> dict[int, Value]:
        """Rows with a label, those at the start included, in the order of the last change."""
        with self._lock:
            return self._history.labels

    @property
    def skipped(self) -> set[int]:
        """Rows that were skipped."""
        with self._lock:
            return self._history.skipped

    @property
    def classes(self) -> list[Value]:
        """The classes so far, sorted."""
        return sorted(set(self.labels.values()))

    def refresh(self) -> Predictions:
        """Bring the classifier up to date with the labels.

        Returns
        -------
        Predictions
            Its predictions; also in :attr:`latest`.
        """
        with self._fitting:
            with self._lock:
                labels, version = self._history.labels, self.version
            if not labels:
                raise ValueError("no row has a label yet")
            current = self.latest
            if current is None or current.version != version:
                if current is not None and current.classes.size > 1:
                    for row in labels.keys() - current.trained.keys():
                        self._unseen[row] = (current.classes, current.probabilities[row].copy())
                current = self.latest = self._predict(labels, version)
                if not self._past or len(labels) >= self._past[-1][0] + SETTLE_LABELS // 2:
                    self._past.append((len(labels), current.labels))
            return current

    def predictions(self) -> NDArray[Any]:
        """Return a label for every row; given ones are kept.

        Returns
        -------
        ndarray of shape (n_rows,)
            The labels.

        Raises
        ------
        ValueError
            If no row has a label yet.
        """
        return self.refresh().labels

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probabilities of the classes for every row.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows that add up to 1, in the order of :attr:`classes`.
        """
        return self.refresh().probabilities

    def estimate(self, *, refresh: bool = True) -> Estimate | None:
        """Estimate the accuracy on the rows without a label.

        Parameters
        ----------
        refresh : bool, default=True
            Whether to bring the classifier up to date first. Otherwise the estimate is of the
            latest predictions; it takes all answers into account in either case.

        Returns
        -------
        Estimate or None
            Accuracy with a 90 % interval; None while there are fewer than two classes, or fewer
            than ten answers that a model predicted without knowing them.
        """
        with self._lock:
            answers = dict(self._history.answers)
        if refresh and any(a.value is not None for a in answers.values()):
            self.refresh()
        now = self.latest
        if now is None or now.classes.size < 2:
            return None
        known = [
            (answer, unseen)
            for row, answer in answers.items()
            if answer.value is not None and answer.purpose in ("check", "choice")
            for unseen in [self._unseen_prediction(now, row)]
            if unseen is not None
        ]
        if len(known) < FEWEST_ANSWERS:
            return None
        right = np.array([a.value == classes[np.argmax(p)] for a, (classes, p) in known])
        check = np.array([answer.purpose == "check" for answer, _ in known])
        confidence = [p.max() for _, (_, p) in known]
        interval = accuracy_interval(now.histogram, confidence, right, check)
        changed = self._changed()
        settled = changed is not None and changed <= 0.01
        counts = len(known), int(check.sum()), int(right[check].sum())
        return Estimate(*interval, *counts, changed, settled)

    def _unseen_prediction(self, now: Predictions, row: int) -> Unseen | None:
        """Return the classes and their probabilities from a model without the label of a row."""
        if row not in now.trained:
            return now.classes, now.probabilities[row]
        return self._unseen.get(row)

    def _changed(self) -> float | None:
        """Return the share of the predictions that the latest labels changed."""
        now = self.latest
        if now is None:
            return None
        most = len(now.trained) - SETTLE_LABELS
        earlier = [labels for n_labels, labels in self._past if n_labels <= most]
        return float(np.mean(earlier[-1] != now.labels)) if earlier else None

    def suspicious(self) -> list[tuple[int, Value, float]]:
        """List labels that look wrong, the most suspicious first.

        Returns
        -------
        list of (int, value, float)
            Row, the class that a model without this label predicts, and its probability; only
            rows for which that is another class.
        """
        now = self.latest
        if now is None:
            return []
        found = []
        for row, value in self.labels.items():
            classes, p = self._unseen_prediction(now, row) or (now.classes, np.zeros(0))
            if p.size and classes[np.argmax(p)] != value:
                best = int(np.argmax(p))
                odds = (p[classes == value].sum() + 1e-6) / p[best]
                found.append((float(odds), row, classes.tolist()[best], float(p[best])))
        return [(row, value, p) for _, row, value, p in sorted(found, key=lambda f: f[:2])]

    def classifier(self) -> CommitteeClassifier:
        """Return the classifier fitted to the labels so far.

        Returns
        -------
        CommitteeClassifier
            A fresh fit; at least two classes are needed.
        """
        labels = self.labels
        if len(set(labels.values())) < 2:
            raise ValueError(
                f"a classifier needs labels of two classes, there are {self.classes!r}"
            )
        latest, model = self.latest, None
        if latest is not None and latest.trained == labels and self.n_rows <= FRESH_ROWS:
            model = copy.copy(latest.model)
        model = model or self._fit(labels)
        if self.encoder is not None:
            adopt_encoder(model, self.encoder)
        return model

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the predictions or the classifier.

        Parameters
        ----------
        path : path-like
            A file. The extension ".csv" writes a table: row, label, label_predicted,
            label_probability, label_skipped. All others write the classifier, for
            :meth:`gdpa.CommitteeClassifier.load`.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.suffix.lower() == ".csv":
            if self.labels:
                self.refresh()
            columns = {"row": range(1, self.n_rows + 1), **self.columns("label")}
            write_text(target, csv_text(list(columns), list(columns.values())))
            return target
        return self.classifier().save(target)

    def columns(self, target: str, *, who: bool = False) -> dict[str, list[Any]]:
        """Return labels and predictions as columns of a table; None where there is nothing.

        Parameters
        ----------
        target : str
            Name of the column with the labels; the others begin with it.
        who : bool, default=False
            Whether to add who answered, when, and the answers of each annotator.

        Returns
        -------
        dict
            Names and cells. The predictions are the latest, which may lack the last answers;
            labels are kept in them.
        """
        n, answers, latest = self.n_rows, self._history.answers.copy(), self.latest
        found = [answers.get(row, Answer(None, "")) for row in range(n)]
        given, skipped = [answer.value for answer in found], self.skipped
        guess: list[Any] = [None] * n
        sure: list[Any] = [None] * n
        if latest is not None:
            known = np.array([value is not None for value in given])
            pairs = zip(given, latest.labels.tolist(), strict=True)
            guess = [model if value is None else value for value, model in pairs]
            sure = np.where(known, 1.0, np.round(latest.confidence, 4)).tolist()
        columns: dict[str, list[Any]] = {
            target: given,
            f"{target}_predicted": guess,
            f"{target}_probability": sure,
            f"{target}_skipped": ["yes" if row in skipped else None for row in range(n)],
        }
        if who:
            columns[f"{target}_by"] = [answer.by or None for answer in found]
            columns[f"{target}_at"] = [answer.at or None for answer in found]
            for name in sorted({name for answer in found for name, _ in answer.opinions}):
                column = [dict(answer.opinions).get(name) for answer in found]
                columns[f"{target}_by_{name or 'unnamed'}"] = column
        return columns

    def _fit(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Fit a fresh classifier to labels of at least two classes."""
        y = np.full(self.n_rows, None, dtype=object)
        for row, value in labels.items():
            y[row] = value
        model: CommitteeClassifier = clone(self.estimator).set_params(unlabeled=None)
        with warnings.catch_warnings():
            for category in (UnreachedWarning, DegenerateProblemWarning, ScaleWarning):
                warnings.simplefilter("ignore", category)
            warnings.simplefilter("ignore", ConfidenceWarning)  # a session measures its accuracy
            return model.fit(self.X, y)

    def _updated(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Fit, or add the new labels to the last fit."""
        if self.n_rows <= FRESH_ROWS:
            return self._fit(labels)
        if self._base is not None:
            known, base = self._base
            changed = {row: value for row, value in labels.items() if known.get(row) != value}
            gone = {row: None for row in known if row not in labels}
            few = len(known) / 2 <= len(labels) <= 2 * len(known)
            if few and set(labels.values()) <= set(base.classes_.tolist()):
                model = copy.copy(base)
                model.add_labels([*changed, *gone], [*changed.values(), *gone.values()])
                return model
        model = self._fit(labels)
        self._base = (dict(labels), model)
        return model

    def _predict(self, labels: Mapping[int, Value], version: int) -> Predictions:
        """Classify all rows from these labels."""
        n = self.n_rows
        classes = np.unique(np.array(list(labels.values())))
        if classes.size == 1:
            codes = np.zeros(n, dtype=np.intp)
            return Predictions(version, classes, codes, np.ones((n, 1)), labels)
        model = self._updated(labels)
        ensemble = model.ensemble_
        codes = np.searchsorted(model.classes_, model.transduction_)
        found = ensemble.left_out()
        if found is not None:
            held_out = zip(found[0].tolist(), ensemble.probabilities(found[1]), strict=True)
            self._unseen |= {row: (model.classes_, p) for row, p in held_out}
        return Predictions(version, model.classes_, codes, ensemble.probabilities(), labels, model)
