"""Which rows to ask: random checks of the accuracy, and between them what is most worth knowing.

What is asked does not depend on the answers to the checks. If it did, their neighbourhoods would be
left out of the questions, and the model without the checks, which they are to judge, would be worst
just there: simulated sessions on digits said 86 % where 96 were right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.sketch import MOST_KNOWN, SKETCH_ROWS, Conditioned, Sketch, sketch_rows
from ..estimators.strategies import choose_informative
from .doubt import doubts
from .features import Scaled
from .ledger import Ledger, Value

__all__ = ["Questions"]

# Every so many questions one is a random check. With one in five the simulated annotators (see
# gdpa.estimators.strategies) lose 0.6 points of 9 at 50 labels, and the interval is half as wide as
# with one in twenty.
CHECK_EVERY = 5
# The quick committee follows after so many answers (a tenth of them where that is more), and after
# each of the first.
FOLLOW_EVERY = 5
FOLLOW_EACH = 10


@dataclass
class _Bench:
    """A sample, and what has been worked out on it: another sample has a bench of its own."""

    sketch: Sketch
    weights: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    doubt: tuple[int, Any] = (-1, None)


class Questions:
    """Chooses rows, on a sample of the data.

    Parameters
    ----------
    points : Scaled
        Features on comparable scales.
    random_state : int
        Seed. The choice depends on it and on the answers, not on the time or on earlier calls.

    Attributes
    ----------
    patient : bool
        Whether a question waits for the quick committee (True by default). Else the one before is
        asked, and :meth:`follow` brings it up to date, in another thread.
    """

    def __init__(self, points: Scaled, random_state: int) -> None:
        self._points = points
        self._seed = random_state
        self._n = int(points.shape[0])
        self._epoch = 0
        self.patient = True
        self._bench = self._new_bench(None if self._n <= SKETCH_ROWS else np.arange(self._n))

    def _new_bench(self, pool: NDArray[np.intp] | None) -> _Bench:
        return _Bench(sketch_rows(self._points, candidates=pool, seed=[self._seed, self._epoch, 3]))

    def follow(self, ledger: Ledger) -> None:
        """Bring the quick committee up to date.

        Parameters
        ----------
        ledger : Ledger
            A copy of the answers.
        """
        self._doubts(self._bench, _seen(ledger), wait=True)

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
        bench = self._sample(is_open)
        sketch = bench.sketch
        rng = np.random.default_rng([self._seed, number, 2])
        labels = _seen(ledger)
        doubt = self._doubts(bench, labels, wait=self.patient)
        field, known, _ = self._field(bench, list(labels))
        # Rows that were skipped or are being looked at: their neighbours need not be asked as well.
        aside = {
            *(ledger.skipped - ledger.checks),
            *(r for r, why in busy.items() if why != "check"),
        }
        others = np.flatnonzero(np.isin(sketch.rows, list(aside)))
        for position in others:
            field = field.and_also(int(position))
        taken = np.concatenate([known, others])
        free = np.flatnonzero(is_open[sketch.rows])
        chosen = choose_informative(field, sketch.components, taken, free, doubt, n, rng)
        return [int(row) for row in sketch.rows[chosen]]

    def _sample(self, is_open: NDArray[np.bool_]) -> _Bench:
        """Return the sample; a new one when most of its rows have been answered."""
        left = is_open[self._bench.sketch.rows]
        if self._n > SKETCH_ROWS and left.mean() < 0.5 and is_open.sum() > 2 * left.sum():
            self._epoch += 1
            self._bench = self._new_bench(np.flatnonzero(is_open))
        return self._bench

    def _field(
        self, bench: _Bench, labeled: list[int]
    ) -> tuple[Conditioned, NDArray[np.intp], list[int]]:
        """Return the field given the labels, labelled positions, and rows in the field's order."""
        sketch = bench.sketch
        latest = np.array(labeled[-MOST_KNOWN:], dtype=np.intp)
        place = np.minimum(np.searchsorted(sketch.rows, latest), sketch.rows.size - 1)
        inside = sketch.rows[place] == latest
        outside = latest[~inside]
        new = [int(row) for row in outside if int(row) not in bench.weights]
        if new:
            found = sketch.weights(self._points[np.array(new)])
            bench.weights |= dict(zip(new, found, strict=True))
        weights = np.array([bench.weights[int(row)] for row in outside]) if outside.size else None
        field = sketch.given(place[inside], weights)
        return field, place[inside], [int(r) for r in (*latest[inside], *outside)]

    def _doubts(self, bench: _Bench, labels: dict[int, Any], *, wait: bool) -> NDArray[np.float64]:
        """Return the quick committee's doubts, which follow the labels a few at a time.

        They depend on the first labels up to a round number, not on when they were asked for;
        those of an earlier time where there is no waiting.
        """
        m = len(labels)
        step = max(FOLLOW_EVERY, 5 * (m // 50))
        stage = m if m <= FOLLOW_EACH else m - m % step
        first = dict(list(labels.items())[:stage])
        key = hash(tuple(first.items()))
        if wait and bench.doubt[0] != key:
            field, _, rows = self._field(bench, list(first))
            codes = np.unique(np.array([first[row] for row in rows]), return_inverse=True)[1]
            known = self._points[np.array(rows, dtype=np.intp)]
            bench.doubt = (key, doubts(field, bench.sketch.points, known, codes, seed=self._seed))
        found = bench.doubt[1]
        return np.ones(bench.sketch.rows.size) if found is None else np.asarray(found)


def _seen(ledger: Ledger) -> dict[int, Value]:
    """Labels that the choice may know."""
    checks = ledger.checks
    return {row: value for row, value in ledger.labels.items() if row not in checks}
