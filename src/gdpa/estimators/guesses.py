"""Guesses of labels as one more source of evidence: of a language model, a rule or an older model.

A guess is not a label. For each guessed value, the shares of the classes are learned from the
labels, with smoothing; a value that says nothing has the shares of all labels and changes nothing.
The evidence of a guess, ``log(share / share of all labels)``, is added to the logarithms of the
probabilities with a weight that minimises the loss on held-out labels. The weight is 0 unless the
loss falls by more than its standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray

# Weights that are tried; 1 is right if guesses and other evidence err independently.
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
# Labels that the shares of all labels are worth in the shares of a guessed value, and the shares of
# a value in those of the value at one level of confidence.
SMOOTHING = 2.0
# Levels of confidence, of as many rows each.
CONFIDENCE_LEVELS = 3


@dataclass(frozen=True)
class GuessColumn:
    """Guesses for all rows.

    Parameters
    ----------
    name : str
        Name of the column.
    values : tuple
        The guessed class of each row; None where there is no guess.
    confidence : ndarray of shape (n_rows,), optional
        How sure each guess is, on any scale; NaN where unknown.
    """

    name: str
    values: tuple[Any, ...]
    confidence: FloatArray | None = None

    def groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the groups of the rows by value, and by value and confidence; -1 if no guess."""
        numbers: dict[Any, int] = {}
        by_value = np.array(
            [-1 if v is None else numbers.setdefault(v, len(numbers)) for v in self.values],
            dtype=np.intp,
        )
        if self.confidence is None:
            return by_value, by_value
        level = np.zeros(by_value.size, dtype=np.intp)
        known = np.isfinite(self.confidence) & (by_value >= 0)
        if known.any():
            shares = np.arange(1, CONFIDENCE_LEVELS) / CONFIDENCE_LEVELS
            edges = np.quantile(self.confidence[known], shares)
            level[known] = 1 + np.searchsorted(edges, self.confidence[known])
        both = by_value * (CONFIDENCE_LEVELS + 1) + level
        return by_value, np.where(by_value >= 0, both, -1)


def as_guess_columns(guesses: Any, n_rows: int) -> tuple[GuessColumn, ...]:
    """Return the columns of a data frame, a mapping, or one sequence of guesses.

    Parameters
    ----------
    guesses : data frame, mapping of str to sequence, sequence, tuple of GuessColumn, or None
        The guesses. Missing values are no guess.
    n_rows : int
        Number of rows.

    Returns
    -------
    tuple of GuessColumn
        The columns.
    """
    if guesses is None:
        return ()
    if isinstance(guesses, tuple) and all(isinstance(g, GuessColumn) for g in guesses):
        columns = guesses
    elif hasattr(guesses, "columns"):
        names = list(guesses.columns)
        columns = tuple(GuessColumn(str(n), _cells(list(guesses[n]))) for n in names)
    elif isinstance(guesses, Mapping):
        columns = tuple(GuessColumn(str(n), _cells(list(v))) for n, v in guesses.items())
    else:
        columns = (GuessColumn("guess", _cells(list(guesses))),)
    for column in columns:
        if len(column.values) != n_rows:
            raise ValueError(
                f"guesses: {column.name!r} has {len(column.values)} values for {n_rows} rows"
            )
    return columns


def _cells(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return plain values; None where missing."""
    plain = [v.item() if isinstance(v, np.generic) else v for v in values]
    return tuple(None if v is None or v == "" or v != v else v for v in plain)


@dataclass(frozen=True)
class GuessEvidence:
    """Evidence of a column for each row and class.

    Parameters
    ----------
    column : GuessColumn
        The column.
    all_rows : ndarray of shape (n_rows, n_classes)
        Evidence for all rows, from all labels.
    left_out : ndarray of shape (n_labeled, n_classes)
        Evidence for labelled rows, each without its own label.
    """

    column: GuessColumn
    all_rows: FloatArray
    left_out: FloatArray


def guess_evidence(
    column: GuessColumn, rows: NDArray[np.intp], codes: NDArray[np.intp], n_classes: int
) -> GuessEvidence:
    """Learn what each guessed value says about the classes.

    Parameters
    ----------
    column : GuessColumn
        The guesses.
    rows, codes : ndarray of int of shape (n_labeled,)
        Labelled rows and their class numbers.
    n_classes : int
        Number of classes.

    Returns
    -------
    GuessEvidence
        The evidence.
    """
    own = np.eye(n_classes)[codes]
    prior = (own.sum(axis=0) + 1.0) / (rows.size + n_classes)
    values, levels = column.groups()

    def counts(groups: NDArray[np.intp]) -> FloatArray:
        """Return the labels of each class in the group of each row; the last is for no group."""
        table = np.zeros((groups.max(initial=0) + 2, n_classes))
        np.add.at(table, groups[rows], own)
        return np.asarray(table[groups])

    by_value = counts(values)
    by_level = counts(levels)

    def evidence(at: Any, mine: FloatArray | float) -> FloatArray:
        """Return the evidence for rows, without their own labels if these are given."""
        at_value = by_value[at] - mine
        share = _smoothed(at_value, prior)
        if column.confidence is not None:
            share = _smoothed(by_level[at] - mine, share)
        found = np.log(share / prior)
        return np.where((values[at] >= 0)[:, None], found, 0.0)

    every = np.arange(values.size)
    return GuessEvidence(column, evidence(every, 0.0), evidence(rows, own))


def _smoothed(counts: FloatArray, towards: FloatArray) -> FloatArray:
    """Return class shares of counts, smoothed towards other shares."""
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((counts + SMOOTHING * towards) / (total + SMOOTHING))


def combine(probabilities: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return probabilities after additional evidence."""
    score = np.log(np.maximum(probabilities, 1e-12)) + evidence
    score -= score.max(axis=1, keepdims=True)
    shares = np.exp(score)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def guess_weights(
    held_out: FloatArray, codes: NDArray[np.intp], evidence: Sequence[FloatArray]
) -> list[float]:
    """Learn the weight of each column from held-out labels.

    Parameters
    ----------
    held_out : ndarray of shape (n_labeled, n_classes)
        Probabilities of labelled rows, each predicted without its label and without guesses.
    codes : ndarray of int of shape (n_labeled,)
        Their class numbers.
    evidence : sequence of ndarray of shape (n_labeled, n_classes)
        Evidence of each column for these rows, each without its own label.

    Returns
    -------
    list of float
        The weights; 0 for a column that does not lower the loss by more than its standard error.
    """
    weights = [0.0] * len(evidence)
    rows = np.arange(codes.size)

    def losses(trial: Sequence[float]) -> FloatArray:
        """Return the loss of each held-out label."""
        added = sum((w * e for w, e in zip(trial, evidence, strict=True)), np.zeros(held_out.shape))
        return -np.log(np.maximum(combine(held_out, added)[rows, codes], 1e-12))

    for _ in range(2):  # the second time, every column knows the others
        for j in range(len(evidence)):
            without = [0.0 if i == j else w for i, w in enumerate(weights)]
            base = losses(without)
            trials = [losses([w if i == j else v for i, v in enumerate(without)]) for w in WEIGHTS]
            best = int(np.argmin([trial.mean() for trial in trials]))
            gain = base - trials[best]
            error = gain.std() / np.sqrt(max(1, gain.size - 1))
            weights[j] = WEIGHTS[best] if gain.mean() > error else 0.0
    return weights
