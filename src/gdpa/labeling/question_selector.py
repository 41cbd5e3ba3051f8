"""Choose the rows to ask: typical rows first, then informative rows, and random checks.

The choice does not depend on the answers to the checks. If it did, questions would avoid their
neighbourhoods, and the model that the checks evaluate would be worst there: in simulated sessions
on digits, the estimated accuracy was 86 % where the true accuracy was 96 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin

from ..arrays import FloatArray, NDArray
from ..estimators.sketch import MOST_KNOWN, SKETCH_ROWS, Conditioned, Sketch, sketch_rows
from ..estimators.strategies import choose_informative, lead
from .answers import AnswerHistory, Value
from .features import Features, ScaledRows

# From the 20th question on, one in five is a random check. In simulations (see
# gdpa.estimators.strategies), this costs 0.6 of 9 points of accuracy gained at 50 labels.
CHECK_EVERY = 5
CHECKS_FROM = 15
# The first sixteen questions are chosen among the rows nearest to the centres of twenty clusters.
# On digits and the six tables of gdpa.estimators.strategies, this raises the accuracy at 20 labels
# by 8 points and does not change it at 50.
TYPICAL_ROWS = 20
TYPICAL_QUESTIONS = 16
# Skipped if the clusters explain a smaller share of the variance: 0.07 on splice, where typical
# rows cost 8 points, and at least 0.41 on the other tables.
LEAST_EXPLAINED = 0.2
# Questions that do not wait take the field of the last uncertainties from this many labels on: with
# the field of 1,000 labels, each question took 110 ms of processor time, too long for many people.
FRESH_FIELD = 200


def quick_uncertainty(
    field: Conditioned,
    points: Features,
    known: Features,
    codes: NDArray[np.intp],
    *,
    seed: int = 0,
    most_rows: int = 1000,
) -> FloatArray:
    """Return the uncertainty of a small ensemble about each row of the sample.

    The ensemble averages a graph, a forest and a linear model. It is fast enough to be fitted after
    every few answers; the displayed predictions come from the full classifier.

    Parameters
    ----------
    field : Conditioned
        The field given the labelled rows.
    points : ndarray or csr_array of shape (n_sampled, n_features)
        Features of the sample.
    known : ndarray or csr_array of shape (n_known, n_features)
        Features of the labelled rows, in the order of `field`.
    codes : ndarray of int of shape (n_known,)
        Their class numbers.
    seed : int, default=0
        Random seed.
    most_rows : int, default=1000
        Number of the latest labelled rows to fit the forest and the linear model on.

    Returns
    -------
    ndarray of shape (n_sampled,)
        One minus the margin between the two most probable classes; ones if there are fewer than
        two classes.
    """
    classes, place = np.unique(codes, return_inverse=True)
    if classes.size < 2:
        return np.ones(field.covariance.shape[0])
    scores = np.maximum(field.scores(np.eye(classes.size)[place]), 0.0)
    total = scores.sum(axis=1, keepdims=True)
    mean = np.where(total > 0, scores / np.maximum(total, 1e-300), 1.0 / classes.size)
    models = (
        ExtraTreesClassifier(30, random_state=seed),
        LogisticRegression(max_iter=100, tol=1e-2),
    )
    # Few rows per class and few iterations are intended.
    with warnings.catch_warnings(action="ignore"):
        for model in models:
            model.fit(known[-most_rows:], place[-most_rows:])
            mean[:, model.classes_] += model.predict_proba(points)
    return 1.0 - lead(mean / (1 + len(models)))


def typical_rows(points: Features, *, seed: int = 0) -> NDArray[np.intp]:
    """Return the rows nearest to the cluster centres; empty if there are no clear clusters."""
    n = min(TYPICAL_ROWS, points.shape[0])
    # There may be fewer distinct rows than clusters.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        means = KMeans(n, n_init=3, random_state=seed).fit(points)
    spread = KMeans(1, n_init=1, random_state=seed).fit(points).inertia_
    if means.inertia_ > (1.0 - LEAST_EXPLAINED) * spread:
        return np.arange(0)
    return np.unique(pairwise_distances_argmin(means.cluster_centers_, points))


@dataclass
class SampleState:
    """A sample of the rows, with cached results."""

    sketch: Sketch
    typical: NDArray[np.intp]
    weights: dict[int, FloatArray] = field(default_factory=dict)
    uncertainty: tuple[int, FloatArray | None] = (-1, None)
    field: tuple[Conditioned, NDArray[np.intp]] | None = None


class QuestionSelector:
    """Chooses rows to ask, on a sample of the data.

    Parameters
    ----------
    points : ScaledRows
        Features on comparable scales.
    random_state : int
        Random seed. The choice depends only on the seed and the answers.

    Attributes
    ----------
    waits : bool
        Whether questions wait for current uncertainties (True by default). Otherwise the latest
        sample and uncertainties are used, and another thread calls :meth:`update`.
    """

    def __init__(self, points: ScaledRows, random_state: int) -> None:
        self._points = points
        self._seed = random_state
        self._n = int(points.shape[0])
        self._epoch = 0
        self.waits = True
        self._sample = self._draw_sample(None if self._n <= SKETCH_ROWS else np.arange(self._n))

    def _draw_sample(self, pool: NDArray[np.intp] | None) -> SampleState:
        """Draw a sample of the rows in `pool`."""
        seed = [self._seed, self._epoch, 3]
        sketch = sketch_rows(self._points, candidates=pool, seed=seed)
        return SampleState(sketch, typical_rows(sketch.points, seed=self._seed))

    def update(self, history: AnswerHistory) -> None:
        """Update the sample and the uncertainties to the given answers."""
        is_open = np.ones(self._n, dtype=bool)
        is_open[list(history.answers)] = False
        sample = self._current_sample(is_open, wait=True)
        self._uncertainty(sample, _usable_labels(history), wait=True)

    def select(
        self,
        n: int,
        history: AnswerHistory,
        busy: Mapping[int, str],
        *,
        draw: Callable[[NDArray[np.bool_]], int | None] | None = None,
        checks_only: bool = False,
    ) -> list[tuple[int, str]]:
        """Choose rows.

        Parameters
        ----------
        n : int
            Number of rows.
        history : AnswerHistory
            The answers so far.
        busy : mapping
            Purpose of the rows that have been asked and not answered.
        draw : callable, optional
            Draws a check among the rows of a mask; returns None if it cannot. By default, checks
            are drawn evenly.
        checks_only : bool, default=False
            Whether all questions are checks, as far as they can be drawn.

        Returns
        -------
        list of (int, str)
            Rows and their purpose, "check" or "choice".
        """
        is_open = np.ones(self._n, dtype=bool)
        is_open[list(history.answers)] = False
        is_open[list(busy)] = False
        chosen: list[tuple[int, str]] = []
        number = history.asked + len(busy)
        while len(chosen) < n and is_open.any():
            due = max(number, CHECKS_FROM)
            due += (CHECK_EVERY - 1 - due) % CHECK_EVERY
            is_due = number == due
            drawn = draw(is_open) if draw is not None and (is_due or checks_only) else None
            if drawn is not None:
                rows = [drawn]
                purpose = "check"
            elif is_due:
                rng = np.random.default_rng([self._seed, number, 1])
                rows = [int(rng.choice(np.flatnonzero(is_open)))]
                purpose = "check"
            else:
                batch = min(n - len(chosen), due - number)
                asked = {**busy, **dict(chosen)}
                rows = self._informative(batch, number, history, asked, is_open)
                purpose = "choice"
            is_open[rows] = False
            chosen += [(row, purpose) for row in rows]
            number += len(rows)
        return chosen

    def _informative(
        self,
        n: int,
        number: int,
        history: AnswerHistory,
        busy: Mapping[int, str],
        is_open: NDArray[np.bool_],
    ) -> list[int]:
        """Choose the most informative rows of the sample."""
        sample = self._current_sample(is_open, wait=self.waits)
        sketch = sample.sketch
        rng = np.random.default_rng([self._seed, number, 2])
        labels = _usable_labels(history)
        uncertainty = self._uncertainty(sample, labels, wait=self.waits)
        if self.waits or sample.field is None or len(labels) < FRESH_FIELD:
            # Neighbours of skipped rows and of open questions are less informative, too.
            aside = (history.skipped - history.checks) | {r for r in busy if busy[r] != "check"}
            others = np.flatnonzero(np.isin(sketch.rows, list(aside)))
            field, taken, _ = self._field(sample, list(labels), others)
        else:
            field, taken = sample.field
        free = np.flatnonzero(is_open[sketch.rows])
        if len(history.answers) + len(busy) < TYPICAL_QUESTIONS:
            typical = np.intersect1d(sample.typical, free)
            free = typical if typical.size else free
        chosen = choose_informative(field, sketch.components, taken, free, uncertainty, n, rng)
        return [int(row) for row in sketch.rows[chosen]]

    def _current_sample(self, is_open: NDArray[np.bool_], *, wait: bool) -> SampleState:
        """Return the sample, or a new one if most of its rows have been answered.

        Without `wait`, only if all of them have been.
        """
        left = is_open[self._sample.sketch.rows]
        few = left.mean() < 0.5 if wait else not left.any()
        if self._n > SKETCH_ROWS and few and is_open.sum() > 2 * left.sum():
            self._epoch += 1
            self._sample = self._draw_sample(np.flatnonzero(is_open))
        return self._sample

    def _field(
        self, sample: SampleState, labeled: list[int], others: Any = ()
    ) -> tuple[Conditioned, NDArray[np.intp], list[int]]:
        """Return the conditioned field, its positions, and the labelled rows in field order."""
        sketch = sample.sketch
        latest = np.array(labeled[-MOST_KNOWN:], dtype=np.intp)
        place = np.minimum(np.searchsorted(sketch.rows, latest), sketch.rows.size - 1)
        inside = sketch.rows[place] == latest
        outside = latest[~inside]
        new = [int(row) for row in outside if int(row) not in sample.weights]
        if new:
            computed = sketch.weights(self._points[np.array(new)])
            sample.weights |= dict(zip(new, computed, strict=True))
        weights = np.array([sample.weights[int(row)] for row in outside]) if outside.size else None
        taken = np.r_[place[inside], np.array(others, dtype=np.intp)]
        return sketch.given(taken, weights), taken, [int(r) for r in (*latest[inside], *outside)]

    def _uncertainty(
        self, sample: SampleState, labels: dict[int, Value], *, wait: bool
    ) -> FloatArray:
        """Return the uncertainties, updated after each of the first 10 labels, then in steps.

        They depend only on the labels up to the last step; without `wait`, they may be older.
        """
        m = len(labels)
        step = max(5, 5 * (m // 50))
        first = dict(list(labels.items())[: m if m <= 10 else m - m % step])
        key = hash(tuple(first.items()))
        if wait and sample.uncertainty[0] != key:
            field, taken, rows = self._field(sample, list(first))
            codes = np.unique(np.array([first[row] for row in rows]), return_inverse=True)[1]
            known = self._points[np.array(rows, dtype=np.intp)]
            found = quick_uncertainty(field, sample.sketch.points, known, codes, seed=self._seed)
            sample.uncertainty = (key, found)
            sample.field = (field, taken)
        latest = sample.uncertainty[1]
        return np.ones(sample.sketch.rows.size) if latest is None else latest


def _usable_labels(history: AnswerHistory) -> dict[int, Value]:
    """Return the labels that may influence the choice: all but random checks."""
    checks = history.checks
    return {row: value for row, value in history.labels.items() if row not in checks}
