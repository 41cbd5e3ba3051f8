"""The answers of a session, with undo.

They are a function of the events in order and nothing else, so that replaying a log restores the
session that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Answer", "AnswerHistory", "Value", "is_unicode", "label_kind", "plain_value"]

Value = str | int | float | bool


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded; JSON also has halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_value(value: Any) -> Value:
    """Return a label as a plain Python value; what is no label raises ValueError."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"value={value!r} is empty; a label has at least one character")
        if not is_unicode(value):
            raise ValueError(f"value={value!r} has a lone surrogate; a label is valid Unicode text")
        return value
    # Beyond 2**53 whole numbers are no longer told apart, neither by a browser nor as floats.
    if isinstance(value, int | float) and abs(value) <= 2**53 and value == int(value):
        return value
    raise ValueError(
        f"value={value!r:.60} is not a label: text or a whole number up to 2**53 is needed; "
        "other numbers can be class names as text"
    )


def label_kind(value: Value) -> str:
    """Return what a label is, in words; all labels of a session are of one kind."""
    if isinstance(value, str):
        return "text"
    return "truth value" if isinstance(value, bool) else "number"


@dataclass(frozen=True)
class Answer:
    """The answer for a row.

    Parameters
    ----------
    value : str, int, float, bool or None
        The label; None for a row that was skipped.
    purpose : {"check", "choice", "own", "given"}
        Why the row was asked: a random check of the accuracy, the strategy's choice, or the
        annotator's; "given" for labels that were there at the start.
    by : str
        Who answered.
    """

    value: Value | None
    purpose: str
    by: str = ""


@dataclass
class AnswerHistory:
    """Answers by row, in the order given, with undo.

    Parameters
    ----------
    answers : dict
        Row to :class:`Answer`; the order is that of the last change.
    """

    answers: dict[int, Answer] = field(default_factory=dict)
    _history: list[tuple[str, int, Answer | None]] = field(default_factory=list)
    _latest: dict[int, int] = field(default_factory=dict)
    _appeared: dict[Value, None] = field(default_factory=dict)

    @property
    def labels(self) -> dict[int, Value]:
        """Rows with a label."""
        return {row: a.value for row, a in self.answers.items() if a.value is not None}

    @property
    def skipped(self) -> set[int]:
        """Rows that were skipped."""
        return {row for row, a in self.answers.items() if a.value is None}

    @property
    def classes(self) -> list[Value]:
        """Classes in the order of their first appearance, those at the start first and sorted."""
        present = set(self.labels.values())
        given = {a.value for a in self.answers.values() if a.purpose == "given"} - {None}
        order = dict.fromkeys([*sorted(given), *self._appeared])  # type: ignore[type-var]
        return [c for c in order if c in present]

    @property
    def asked(self) -> int:
        """Number of answers so far, without those that were undone."""
        return len(self._history)

    @property
    def checks(self) -> set[int]:
        """Answered rows that were random checks."""
        return {row for row, answer in self.answers.items() if answer.purpose == "check"}

    def apply(self, event: Mapping[str, Any]) -> int | None:
        """Apply one event.

        Parameters
        ----------
        event : mapping
            ``do`` (label, skip, remove or undo), ``by``, and for all but undo ``row``; ``value``
            and ``purpose`` for labels and skips.

        Returns
        -------
        int or None
            The row that changed; None if there was nothing to undo.
        """
        do, by = event["do"], event.get("by", "")
        if do == "undo":
            return self._undo(by)
        row = int(event["row"])
        before = self.answers.pop(row, None)
        self._history.append((by, row, before))
        self._latest[row] = len(self._history) - 1
        value = event["value"] if do == "label" else None
        if isinstance(value, str) and not is_unicode(value):
            # Refused, but logged, by an earlier version: it changes nothing. It stays in the
            # history, because a later undo in the same log takes it back.
            if before is not None:
                self.answers[row] = before
        elif do != "remove":
            # A correction does not change why the row was asked.
            purpose = event.get("purpose", "own") if before is None else before.purpose
            if value is not None:
                self._appeared.setdefault(value)
            self.answers[row] = Answer(value, purpose, by)
        return row

    def last(self, by: str) -> int | None:
        """Return the row that an undo by this annotator would change."""
        place = self._last_place(by)
        return None if place is None else self._history[place][1]

    def _last_place(self, by: str) -> int | None:
        for place in range(len(self._history) - 1, -1, -1):
            who, row, _ = self._history[place]
            # Not where somebody else has answered for the row since.
            if who == by and self._latest.get(row) == place:
                return place
        return None

    def _undo(self, by: str) -> int | None:
        place = self._last_place(by)
        if place is None:
            return None
        _, row, before = self._history.pop(place)
        self._latest = {r: p - (p > place) for r, p in self._latest.items() if p != place}
        earlier = [p for p, (_, r, _) in enumerate(self._history) if r == row]
        if earlier:
            self._latest[row] = earlier[-1]
        self.answers.pop(row, None)
        if before is not None:
            self.answers[row] = before
        return row

    def replay(self, events: Iterable[Mapping[str, Any]], n_rows: int) -> None:
        """Apply the events of a log; an event that is none, or of no row, raises ValueError."""
        for number, event in enumerate(events, 2):
            do, row = event.get("do"), event.get("row")
            fits = do in ("label", "skip", "remove", "undo")
            fits &= do == "undo" or (isinstance(row, int) and 0 <= row < n_rows)
            fits &= do != "label" or isinstance(event.get("value"), str | int | float | bool)
            if do in ("label", "skip"):
                fits &= event.get("purpose", "own") in ("check", "choice", "own")
            if not fits or not isinstance(event.get("by", ""), str):
                raise ValueError(f"line {number} of the log is not an event: {event!r:.80}")
            self.apply(event)
        for value in self.labels.values():
            plain_value(value)
