"""The full classifier behind a session: labels in, a label and probabilities for every row out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import (
    ConfidenceWarning,
    DegenerateProblemWarning,
    ScaleWarning,
    UnreachedWarning,
)
from ..estimators import CommitteeClassifier, GraphOptions

__all__ = ["Answers", "FullModel"]

# Rows up to which every change of the labels is a fresh fit, which is over in a second or two: what
# it says then depends on the labels alone, not on the order in which they came.
FRESH_ROWS = 20_000
# Beyond, labels are added to the last fit, until there are so many times as many.
GROWTH = 2.0

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """What the classifier says.

    Parameters
    ----------
    version : int
        State of the session that it has seen.
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    codes : ndarray of int of shape (n_rows,)
        Number of each row's class; given labels are kept.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities.
    n_labels : int
        Labels that it was fitted on.
    """

    version: int
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    probabilities: FloatArray
    n_labels: int


class FullModel:
    """Fits the classifier to the labels of a session.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.
    estimator : CommitteeClassifier, optional
        What is fitted (a clone of it).
    rescale : {"minmax", "standard"} or None
        Scale of the columns, where no estimator is given.
    random_state : int, default=0
        Seed, where no estimator is given.
    """

    def __init__(
        self, X: Any, estimator: Any = None, *, rescale: str | None, random_state: int = 0
    ) -> None:
        self.X = X
        self._base: tuple[dict[int, Any], CommitteeClassifier] | None = None
        self.estimator = estimator
        if estimator is None:
            self.estimator = CommitteeClassifier(
                unlabeled=None,
                random_state=random_state,
                n_jobs=-1,
                # Sparse columns are left as they are: shifted, they would be dense.
                options=GraphOptions(rescale=None if sp.issparse(X) else rescale),  # type: ignore[arg-type]
            )

    def fit(self, labels: Mapping[int, Any]) -> CommitteeClassifier:
        """Fit a fresh classifier.

        Parameters
        ----------
        labels : mapping
            Row to label; at least two classes.

        Returns
        -------
        CommitteeClassifier
            The fitted classifier.
        """
        y = np.full(self.X.shape[0], None, dtype=object)
        for row, value in labels.items():
            y[row] = value
        model = clone(self.estimator)
        model.set_params(unlabeled=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedWarning)
            warnings.simplefilter("ignore", DegenerateProblemWarning)
            warnings.simplefilter("ignore", ScaleWarning)
            warnings.simplefilter("ignore", ConfidenceWarning)  # a session measures its accuracy
            fitted: CommitteeClassifier = model.fit(self.X, y)
        return fitted

    def _followed(self, labels: Mapping[int, Any]) -> CommitteeClassifier:
        """Fit, or bring the last fit up to date."""
        if self.X.shape[0] <= FRESH_ROWS:
            return self.fit(labels)
        if self._base is not None:
            known, base = self._base
            changed = {row: value for row, value in labels.items() if known.get(row) != value}
            gone = {row: None for row in known if row not in labels}
            few = len(known) / GROWTH <= len(labels) <= GROWTH * len(known)
            if few and set(labels.values()) <= set(base.classes_.tolist()):
                model = copy.copy(base)
                rows = [*changed, *gone]
                model.add_labels(rows, [*changed.values(), *gone.values()])
                return model
        model = self.fit(labels)
        self._base = (dict(labels), model)
        return model

    def answers(self, labels: Mapping[int, Any], version: int) -> Answers:
        """Classify all rows.

        Parameters
        ----------
        labels : mapping
            Row to label.
        version : int
            Kept in the answer.

        Returns
        -------
        Answers
            A label and probabilities for every row.
        """
        n = self.X.shape[0]
        classes = np.unique(np.array(list(labels.values())))
        if classes.size == 1:
            return Answers(
                version, classes, np.zeros(n, dtype=np.intp), np.ones((n, 1)), len(labels)
            )
        model = self._followed(labels)
        codes = np.searchsorted(model.classes_, model.transduction_)
        return Answers(version, model.classes_, codes, model.ensemble_.probabilities(), len(labels))
