"""The classifier behind a session: predictions for all rows, and an estimate of their accuracy.

Every fifth question is a row drawn at random. Neither the model that these rows check nor the
choice of the other questions uses their labels, so each is an unbiased trial of the model, and the
interval is a binomial one. The model that makes the predictions has seen these labels as well, so
it is rather better than the estimate.
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..binomial import share_interval
from ..csv_text import csv_text
from ..errors import ConfidenceWarning, DegenerateProblemWarning, ScaleWarning, UnreachedWarning
from ..estimators import CommitteeClassifier, GraphOptions
from ..estimators.frames import adopt_encoder
from ..files import write_text
from ..tables import TableEncoder
from .answers import AnswerHistory, Value
from .features import Features

__all__ = ["Estimate", "Predictions", "SessionModel"]

# Up to this many rows every change is a fresh fit, which takes a second or two: predictions then
# depend on the labels alone, not on their order. Beyond, labels are added to the last fit, until
# their number has doubled.
FRESH_ROWS = 20_000
# Predictions have settled when this many labels changed less than one percent of them.
SETTLE_LABELS = 20


@dataclass(frozen=True)
class Estimate:
    """Estimated accuracy on the rows without a label.

    Parameters
    ----------
    accuracy : float
        Share of random checks that the model, fitted without them, predicts right.
    low, high : float
        90 % interval.
    checks : int
        Random checks so far.
    right : int
        How many of them the model predicts right.
    changed : float or None
        Share of the rows whose prediction the latest labels changed; None if not yet known.
    settled : bool
        Whether the predictions have stopped changing.
    """

    accuracy: float
    low: float
    high: float
    checks: int
    right: int
    changed: float | None = None
    settled: bool = False


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
    n_labels : int
        Labels that the model was fitted on.
    """

    version: int
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    n_labels: int

    @property
    def labels(self) -> NDArray[Any]:
        """Predicted label of each row."""
        return np.asarray(self.classes[self.codes])


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
    estimator : CommitteeClassifier, optional
        A clone of it is fitted.
    rescale : {"minmax", "standard"} or None
        Scale of the columns, if no estimator is given.
    random_state : int, default=0
        Random seed, if no estimator is given.

    Attributes
    ----------
    version : int
        Number of changes so far.
    latest : Predictions or None
        The latest predictions, which may lack some labels; None before the first.
    latest_estimate : Estimate or None
        The latest estimate, which may lack some labels.
    """

    def __init__(
        self,
        X: Features,
        history: AnswerHistory,
        encoder: TableEncoder | None,
        *,
        estimator: CommitteeClassifier | None,
        rescale: str | None,
        random_state: int,
    ) -> None:
        self.X = X
        self.n_rows: int = X.shape[0]
        self.encoder = encoder
        if estimator is None:
            # Sparse columns are left as they are: shifted, they would be dense.
            rescale = None if sp.issparse(X) else rescale
            estimator = CommitteeClassifier(
                options=GraphOptions(rescale=rescale),  # type: ignore[arg-type]
                random_state=random_state,
                n_jobs=-1,
            )
        self.estimator = estimator
        self._history = history
        self._lock = threading.RLock()
        self._fitting = threading.Lock()
        self.version = 0
        self.latest: Predictions | None = None
        self.latest_estimate: Estimate | None = None
        self._estimated_version = -1
        self._past: deque[Predictions] = deque(maxlen=8)
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
                current = self.latest = self._predict(labels, version)
                past = self._past
                if not past or current.n_labels >= past[-1].n_labels + SETTLE_LABELS // 2:
                    past.append(current)
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

    def estimate(self) -> Estimate | None:
        """Estimate the accuracy on the rows without a label, from the random checks.

        Returns
        -------
        Estimate or None
            Accuracy with a 90 % interval; None while fewer than four random checks have a label,
            or no other row has one.
        """
        with self._lock:
            labels, version = self._history.labels, self.version
            checks = self._history.checks & set(labels)
            if self._estimated_version == version:
                return self.latest_estimate
        others = {row: value for row, value in labels.items() if row not in checks}
        estimate: Estimate | None = None
        if len(checks) >= 4 and others:
            with self._fitting:
                predicted = self._predict(others, version).labels
            right = sum(bool(predicted[row] == labels[row]) for row in checks)
            low, high = share_interval(right, len(checks))
            changed = self._changed()
            settled = changed is not None and changed <= 0.01
            accuracy = right / len(checks)
            estimate = Estimate(accuracy, low, high, len(checks), right, changed, settled)
        with self._lock:
            self.latest_estimate, self._estimated_version = estimate, version
        return estimate

    def _changed(self) -> float | None:
        """Return the share of the predictions that the latest labels changed."""
        now = self.latest
        if now is None:
            return None
        earlier = [past for past in self._past if past.n_labels <= now.n_labels - SETTLE_LABELS]
        return float(np.mean(earlier[-1].labels != now.labels)) if earlier else None

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
        model = self._fit(labels)
        if self.encoder is not None:
            adopt_encoder(model, self.encoder)
        return model

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the predictions or the classifier.

        Parameters
        ----------
        path : path-like
            A file. The extension ".csv" writes a table: row, label, prediction, probability. All
            others write the classifier, for :meth:`gdpa.CommitteeClassifier.load`.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.suffix.lower() == ".csv":
            write_text(target, self.table())
            return target
        return self.classifier().save(target)

    def table(
        self,
        header: Sequence[str] = (),
        columns: Sequence[Sequence[Any]] = (),
        *,
        predict: bool = True,
    ) -> str:
        """Return all rows with their label, prediction and probability as CSV.

        Parameters
        ----------
        header, columns : sequences
            Names and cells of columns to put in front; the number of the row, from 1, by default.
        predict : bool, default=True
            Whether to fill the predictions and their probabilities.

        Returns
        -------
        str
            The text. Cells that a spreadsheet would execute get an apostrophe in front.
        """
        n, labels, skipped = self.n_rows, self.labels, self.skipped
        if not header:
            header, columns = ["row"], [range(1, n + 1)]
        predicted: Sequence[Any] = [""] * n
        probability: Sequence[str] = [""] * n
        if labels and predict:
            latest = self.refresh()
            predicted = latest.labels.tolist()
            top = latest.probabilities[np.arange(n), latest.codes]
            probability = [f"{p:.4f}" for p in top]
        given = [labels.get(row, "") for row in range(n)]
        marks = ["yes" if row in skipped else "" for row in range(n)]
        names = [*header, "label", "prediction", "probability", "skipped"]
        return csv_text(names, [*columns, given, predicted, probability, marks])

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
            return Predictions(version, classes, codes, np.ones((n, 1)), len(labels))
        model = self._updated(labels)
        codes = np.searchsorted(model.classes_, model.transduction_)
        P = model.ensemble_.probabilities()
        return Predictions(version, model.classes_, codes, P, len(labels))
