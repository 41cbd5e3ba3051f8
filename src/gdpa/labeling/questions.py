"""Which rows to ask: random checks of the accuracy, and between them what is most worth knowing.

What is asked does not depend on the answers to the checks. If it did, their neighbourhoods would be
left out of the questions, and the model without the checks, which they are to judge, would be worst
just there: simulated sessions on digits said 86 % where 96 were right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..classifier.sketch import MOST_KNOWN, SKETCH_ROWS, Conditioned, Sketch, sketch_rows
from ..classifier.strategies import choose_informative
from .doubt import doubts
from .features import Scaled
from .ledger import Ledger

__all__ = ["Questions"]

# Every so many questions one is a random check. With one in five the simulated annotators (see
# gdpa.classifier.strategies) lose 0.6 points of 9 at 50 labels, and the interval is half as wide as
# with one in twenty.
CHECK_EVERY = 5
# The quick committee follows after so many answers (a tenth of them where that is more), and after
# each of the first.
FOLLOW_EVERY = 5
FOLLOW_EACH = 10


class Questions:
    """Chooses rows, on a sample of the data.

    Parameters
    ----------
    points : Scaled
        Features on comparable scales.
    random_state : int
        Seed. The choice depends on it and on the answers, not on the time or on earlier calls.
    """

    def __init__(self, points: Scaled, random_state: int) -> None:
        self._points = points
        self._seed = random_state
        self._n = int(points.shape[0])
        self._sketch: Sketch | None = None
        self._epoch = 0
        self._weights: dict[int, NDArray[np.float64]] = {}
        self._doubt: tuple[int, Any] = (-1, None)

    def ask(self, n: int, ledger: Ledger, busy: Mapping[int, str]) -> list[tuple[int, str]]:
        """Choose rows.

        Parameters
        ----------
        n : int
            How many.
        ledger : Ledger
            The answers so far.
        busy : mapping
            Rows that somebody is looking at, and why they were asked.

        Returns
        -------
        list of (int, str)
            Rows and why they are asked, "check" or "choice".
        """
        is_open = np.ones(self._n, dtype=bool)
        is_open[list(ledger.answers)] = False
        is_open[list(busy)] = False
        found: list[tuple[int, str]] = []
        number = ledger.asked + len(busy)
        while len(found) < n and is_open.any():
            if number % CHECK_EVERY == CHECK_EVERY - 1:
                rng = np.random.default_rng([self._seed, number, 1])
                rows = [int(rng.choice(np.flatnonzero(is_open)))]
                purpose = "check"
            else:
                batch = min(n - len(found), CHECK_EVERY - 1 - number % CHECK_EVERY)
                rows = self._informative(batch, number, ledger, {**busy, **dict(found)}, is_open)
                purpose = "choice"
            is_open[rows] = False
            found += [(row, purpose) for row in rows]
            number += len(rows)
        return found

    def _informative(
        self,
        n: int,
        number: int,
        ledger: Ledger,
        busy: Mapping[int, str],
        is_open: NDArray[np.bool_],
    ) -> list[int]:
        sketch = self._sample(is_open)
        rng = np.random.default_rng([self._seed, number, 2])
        unseen = ledger.checks
        labels = {row: v for row, v in ledger.labels.items() if row not in unseen}
        doubt = self._doubts(sketch, labels)
        field, known, _ = self._field(sketch, list(labels))
        # Rows that were skipped or are being looked at: their neighbours need not be asked as well.
        aside = {*(ledger.skipped - unseen), *(r for r, why in busy.items() if why != "check")}
        others = np.flatnonzero(np.isin(sketch.rows, list(aside)))
        for position in others:
            field = field.and_also(int(position))
        taken = np.concatenate([known, others])
        free = np.flatnonzero(is_open[sketch.rows])
        chosen = choose_informative(field, sketch.components, taken, free, doubt, n, rng)
        return [int(row) for row in sketch.rows[chosen]]

    def _sample(self, is_open: NDArray[np.bool_]) -> Sketch:
        """Return the sample; a new one when most of its rows have been answered."""
        if self._sketch is None or (
            self._n > SKETCH_ROWS
            and is_open[self._sketch.rows].mean() < 0.5
            and is_open.sum() > self._sketch.rows.size // 2
        ):
            if self._sketch is not None:
                self._epoch += 1
            pool = None if self._n <= SKETCH_ROWS else np.flatnonzero(is_open)
            self._sketch = sketch_rows(
                self._points, candidates=pool, seed=[self._seed, self._epoch, 3]
            )
            self._weights = {}
            self._doubt = (-1, None)
        if not is_open[self._sketch.rows].any():
            self._sketch = sketch_rows(
                self._points, candidates=np.flatnonzero(is_open), seed=[self._seed, 4]
            )
            self._weights = {}
            self._doubt = (-1, None)
        return self._sketch

    def _field(
        self, sketch: Sketch, labeled: list[int]
    ) -> tuple[Conditioned, NDArray[np.intp], list[int]]:
        """Return the field given the labels, labelled positions, and rows in the field's order."""
        latest = np.array(labeled[-MOST_KNOWN:], dtype=np.intp)
        place = np.minimum(np.searchsorted(sketch.rows, latest), sketch.rows.size - 1)
        inside = sketch.rows[place] == latest
        outside = latest[~inside]
        new = [int(row) for row in outside if int(row) not in self._weights]
        if new:
            found = sketch.weights(self._points[np.array(new)])
            self._weights |= dict(zip(new, found, strict=True))
        weights = np.array([self._weights[int(row)] for row in outside]) if outside.size else None
        field = sketch.given(place[inside], weights)
        return field, place[inside], [int(r) for r in (*latest[inside], *outside)]

    def _doubts(self, sketch: Sketch, labels: dict[int, Any]) -> NDArray[np.float64]:
        """Return the quick committee's doubts, which follow the labels a few at a time.

        They depend on the first labels up to a round number, not on when they were asked for.
        """
        m = len(labels)
        step = max(FOLLOW_EVERY, 5 * (m // 50))
        stage = m if m <= FOLLOW_EACH else m - m % step
        first = dict(list(labels.items())[:stage])
        key = hash(tuple(first.items()))
        if self._doubt[1] is None or self._doubt[0] != key:
            field, _, rows = self._field(sketch, list(first))
            codes = np.unique(np.array([first[row] for row in rows]), return_inverse=True)[1]
            known = self._points[np.array(rows, dtype=np.intp)]
            self._doubt = (key, doubts(field, sketch.points, known, codes, seed=self._seed))
        return np.asarray(self._doubt[1])
