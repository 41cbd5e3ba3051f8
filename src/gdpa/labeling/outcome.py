"""What follows from the labels of a session: predictions, how sure they are, files."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..binomial import share_interval
from ..estimators import CommitteeClassifier
from ..estimators.frames import adopt_encoder
from ..files import write_text
from ..tables import TableEncoder
from .estimate import Estimate
from .export import table_text
from .ledger import Ledger, Value
from .model import Answers, FullModel

__all__ = ["Outcome"]

FloatArray = NDArray[np.float64]

# Fewer random checks say next to nothing.
LEAST_CHECKS = 4
# Predictions are at rest when this many labels changed fewer than this share of them.
REST_LABELS = 20
REST_SHARE = 0.01


class Outcome:
    """A ledger of labels, a classifier, and what it says.

    Parameters
    ----------
    ledger : Ledger
        The answers.
    model : FullModel
        What classifies the rows.
    encoder : TableEncoder or None
        How a data frame was encoded.
    """

    def __init__(self, ledger: Ledger, model: FullModel, encoder: TableEncoder | None) -> None:
        self.X = model.X
        self.n_rows: int = self.X.shape[0]
        self.encoder = encoder
        self._ledger = ledger
        self._model = model
        self._lock = threading.RLock()
        self._working = threading.Lock()
        self._version = 0
        self._answers: Answers | None = None
        self._estimate: tuple[int, Estimate | None] = (-1, None)
        self._past: deque[Answers] = deque(maxlen=8)

    @property
    def labels(self) -> dict[int, Value]:
        """Rows with a label, those at the start included, in the order of the last change."""
        with self._lock:
            return self._ledger.labels

    @property
    def skipped(self) -> set[int]:
        """Rows that were said to be undecidable."""
        with self._lock:
            return self._ledger.skipped

    @property
    def classes(self) -> list[Value]:
        """The classes so far, sorted."""
        with self._lock:
            return sorted(set(self._ledger.labels.values()))

    @property
    def version(self) -> int:
        """Number of changes so far."""
        return self._version

    @property
    def latest(self) -> Answers | None:
        """What the classifier said last, which may be some labels behind; None before the first."""
        return self._answers

    @property
    def latest_estimate(self) -> Estimate | None:
        """The estimate as it was computed last, which may be some labels behind."""
        return self._estimate[1]

    def refresh(self) -> Answers:
        """Bring the classifier up to date with the labels.

        Returns
        -------
        Answers
            What it says; also in :attr:`latest`.
        """
        with self._working:
            with self._lock:
                labels, version = self._ledger.labels, self._version
            if not labels:
                raise ValueError("no row has a label yet")
            held = self._answers
            if held is None or held.version != version:
                held = self._model.answers(labels, version)
                self._answers = held
                if not self._past or held.n_labels >= self._past[-1].n_labels + REST_LABELS // 2:
                    self._past.append(held)
            return held

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
        answers = self.refresh()
        return np.asarray(answers.classes[answers.codes])

    def probabilities(self) -> FloatArray:
        """Return the probabilities of the classes for every row.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows that add up to 1, in the order of :attr:`classes`.
        """
        return self.refresh().probabilities

    def estimate(self) -> Estimate | None:
        """Accuracy on the rows without a label, from rows asked at random for that purpose.

        Returns
        -------
        Estimate or None
            Accuracy with a 90 % interval; None while fewer than four random rows have a label, or
            the others have none.
        """
        with self._lock:
            labels, version = self._ledger.labels, self._version
            checks = [row for row in labels if row in self._ledger.checks]
            if self._estimate[0] == version:
                return self._estimate[1]
        rest = {row: value for row, value in labels.items() if row not in set(checks)}
        found: Estimate | None = None
        if len(checks) >= LEAST_CHECKS and rest:
            with self._working:
                blind = self._model.answers(rest, version)
            right = sum(bool(blind.classes[blind.codes[row]] == labels[row]) for row in checks)
            low, high = share_interval(right, len(checks))
            changed = self._changed()
            settled = changed is not None and changed <= REST_SHARE
            found = Estimate(right / len(checks), low, high, len(checks), right, changed, settled)
        with self._lock:
            self._estimate = (version, found)
        return found

    def _changed(self) -> float | None:
        """Share of the predictions that the latest labels changed."""
        now = self._answers
        if now is None:
            return None
        earlier = [past for past in self._past if past.n_labels <= now.n_labels - REST_LABELS]
        if not earlier:
            return None
        then = earlier[-1]
        return float(np.mean(then.classes[then.codes] != now.classes[now.codes]))

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
        model = self._model.fit(labels)
        if self.encoder is not None:
            adopt_encoder(model, self.encoder)
        return model

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Keep what was learned.

        Parameters
        ----------
        path : path-like
            A file. The ending ".csv" writes a table: row, label, prediction, probability. All
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

    def table(self, header: Sequence[str] = (), columns: Sequence[Sequence[Any]] = ()) -> str:
        """Return all rows with their label, prediction and probability as CSV.

        Parameters
        ----------
        header, columns : sequences
            Names and cells of columns to put in front; the number of the row by default.

        Returns
        -------
        str
            The text.
        """
        answers = self.refresh() if self.labels else None
        return table_text(self.n_rows, self.labels, self.skipped, answers, header, columns)
