"""Predictions at one time, as the log stores them: class numbers, strata and expected errors."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from .accuracy import Predictions
from .answers import Value
from .check_design import ERROR_EDGES
from .goal import Goal

# Stratum of a row that the goal is not about.
OUTSIDE = 255
# Strata by confidence. A goal about recall has them twice: for rows predicted as another class, and
# then for rows predicted as the class of the goal.
LEVELS = len(ERROR_EDGES) + 1
# Class number of an answer or goal that no model has predicted.
OTHER_CLASS = -3


@dataclass(frozen=True)
class Snapshot:
    """Predictions at one time.

    Parameters
    ----------
    codes : ndarray of int32 of shape (n_rows,)
        Predicted class numbers; -1 for rows that the goal is not about.
    strata : ndarray of uint8 of shape (n_rows,)
        Stratum of each row.
    guesses : ndarray of shape (n_strata,)
        Mean probability of an error in each stratum, according to the confidences.
    """

    codes: NDArray[np.int32]
    strata: NDArray[np.uint8]
    guesses: FloatArray

    def packed(self, before: Snapshot | None) -> dict[str, Any]:
        """Return plain data: the difference to an earlier snapshot, compressed."""
        return {
            "codes": _packed(self.codes, None if before is None else before.codes),
            "strata": _packed(self.strata, None if before is None else before.strata),
            "guesses": self.guesses.tolist(),
        }


def unpacked(data: Mapping[str, Any], before: Snapshot | None) -> Snapshot:
    """Return the snapshot of the data of :meth:`Snapshot.packed`."""
    return Snapshot(
        codes=_unpacked(data["codes"], None if before is None else before.codes, np.int32),
        strata=_unpacked(data["strata"], None if before is None else before.strata, np.uint8),
        guesses=np.array(data["guesses"]),
    )


def take_snapshot(predictions: Predictions, goal: Goal, classes: Mapping[Value, int]) -> Snapshot:
    """Return predictions as class numbers and strata.

    Parameters
    ----------
    predictions : Predictions
        The predictions.
    goal : Goal
        What is to be proved; it decides which rows are concerned.
    classes : mapping
        Number of each class.

    Returns
    -------
    Snapshot
        The snapshot.
    """
    number = np.array([classes[value] for value in predictions.classes.tolist()])
    codes = number[predictions.codes].astype(np.int32)
    error = 1.0 - predictions.confidence
    strata = np.searchsorted(ERROR_EDGES, error).astype(np.uint8)
    is_value = codes == (OTHER_CLASS if goal.value is None else classes[goal.value])
    outside: NDArray[np.bool_] = np.zeros(codes.size, dtype=bool)
    if goal.kind == "precision":
        outside = ~is_value
    elif goal.kind == "confident":
        outside = predictions.confidence < float(goal.confidence or 0.0)
    elif goal.kind == "recall":
        # A row of another predicted class is wrong if it belongs to the class of the goal.
        column = np.flatnonzero(predictions.classes == goal.value)
        chance = predictions.probabilities[:, column].sum(axis=1)
        error = np.where(is_value, error, chance)
        strata = np.searchsorted(ERROR_EDGES, error).astype(np.uint8)
        strata[is_value] += LEVELS
    codes[outside] = -1
    strata[outside] = OUTSIDE
    inside = ~outside
    rows = np.bincount(strata[inside], minlength=2 * LEVELS)
    errors = np.bincount(strata[inside], weights=error[inside], minlength=2 * LEVELS)
    guesses = np.clip(errors / np.maximum(rows, 1), 0.002, 0.95)
    return Snapshot(codes, strata, np.round(guesses, 6))


def _packed(values: NDArray[Any], before: NDArray[Any] | None) -> str:
    """Return an array as text: its difference to another, compressed."""
    change = values if before is None else values ^ before
    return base64.b64encode(zlib.compress(change.tobytes(), 6)).decode("ascii")


def _unpacked(text: str, before: NDArray[Any] | None, kind: Any) -> NDArray[Any]:
    """Return the array of a text of :func:`_packed`."""
    change = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)
    return change.copy() if before is None else change ^ before
