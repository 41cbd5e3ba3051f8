"""The answers of a session, with undo.

The answers depend only on the sequence of events, so replaying a log restores the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Value = str | int | float | bool

EVENTS = ("label", "skip", "remove", "undo", "second", "bulk", "rename")


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded; JSON may contain lone surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in text)  # a lone surrogate


def plain_value(value: Any) -> Value:
    """Return a label as a plain Python value; invalid labels raise ValueError."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"value={value!r} is empty; a label has at least one character")
        if not is_unicode(value):
            raise ValueError(f"value={value!r} has a lone surrogate; a label is valid Unicode text")
        return value
    # Beyond 2**53, neither browsers nor floats distinguish all integers.
    if isinstance(value, int | float) and abs(value) <= 2**53 and value == int(value):
        return value
    raise ValueError(
        f"value={value!r:.60} is not a label; accepted: text, and integers up to 2**53 (give other "
        "numbers as text)"
    )


def label_kind(value: Value) -> str:
    """Return the type of a label in words; all labels of a session have the same type."""
    if isinstance(value, str):
        return "text"
    return "Boolean" if isinstance(value, bool) else "number"


@dataclass(frozen=True)
class Answer:
    """The answer for a row.

    Parameters
    ----------
    value : str, int, float, bool or None
        The label; None for a skipped row.
    purpose : {"check", "choice", "own", "given"}
        Why the row was labelled: as a random check of the accuracy, chosen by the strategy, chosen
        by the annotator, or "given" for an initial label.
    by, at : str
        Annotator and time.
    opinions : tuple of (str, value)
        All annotators of this row and their answers.
    settled : bool
        Whether a disagreement was resolved.
    """

    value: Value | None
    purpose: str
    by: str = ""
    at: str = ""
    opinions: tuple[tuple[str, Value | None], ...] = ()
    settled: bool = False

    @property
    def disputed(self) -> bool:
        """Whether there is an unresolved disagreement."""
        return not self.settled and len({value for _, value in self.opinions}) > 1


@dataclass(frozen=True)
class _Change:
    """An event that can be undone: its number, who caused it, and the rows before."""

    number: int
    by: str
    before: dict[int, Answer | None]


@dataclass
class AnswerHistory:
    """Answers by row, in the order given, with undo.

    Parameters
    ----------
    answers : dict
        :class:`Answer` by row, in the order of the last change.
    undone : dict
        First row of each undo with a key. If the reply is lost, a page sends the key again.
    """

    answers: dict[int, Answer] = field(default_factory=dict)
    undone: dict[str, int] = field(default_factory=dict)
    _history: list[_Change] = field(default_factory=list)
    _latest: dict[int, int] = field(default_factory=dict)
    _appeared: dict[Value, None] = field(default_factory=dict)
    _number: int = 0

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
        """Classes in order of first appearance, after the sorted initial classes."""
        present = set(self.labels.values())
        given = {a.value for a in self.answers.values() if a.purpose == "given"} - {None}
        order = dict.fromkeys([*sorted(given), *self._appeared])  # type: ignore[type-var]
        return [c for c in order if c in present]

    @property
    def asked(self) -> int:
        """Number of answers that have not been undone."""
        return len(self._history)

    @property
    def number(self) -> int:
        """Number of the last event."""
        return self._number

    @property
    def checks(self) -> set[int]:
        """Answered rows that were random checks."""
        return {row for row, answer in self.answers.items() if answer.purpose == "check"}

    def apply(self, event: Mapping[str, Any]) -> list[int]:
        """Apply one event.

        Parameters
        ----------
        event : mapping
            ``do`` (one of EVENTS), ``by``, ``at``, and, depending on ``do``, ``row`` or ``rows``,
            ``value``, ``purpose``, ``key`` of an undo, ``of`` (the number of the event to undo; the
            last one of this annotator if missing), and ``to`` (the new name of a class, None to
            delete it). ``n`` is the number of the event, one more than the last if missing.

        Returns
        -------
        list of int
            The changed rows; empty if there was nothing to undo.
        """
        do = event["do"]
        by = event.get("by", "")
        self._number = event.get("n", self._number + 1)
        if do == "undo":
            rows = self._undo(self.undo_target(by) if "of" not in event else event["of"])
            if rows and "key" in event:
                self.undone[event["key"]] = rows[0]
            return rows
        if do == "rename":
            rows = [row for row, a in self.answers.items() if a.value == event["value"]]
        else:
            rows = event["rows"] if do == "bulk" else [event["row"]]
        place = len(self._history)
        before = {row: self.answers.get(row) for row in rows}
        self._history.append(_Change(self._number, by, before))
        for row in rows:
            self._latest[row] = place
            answer = _changed(event, self.answers.pop(row, None))
            if answer is not None:
                self.answers[row] = answer
                if answer.value is not None:
                    self._appeared.setdefault(answer.value)
        return rows

    def undo_target(self, by: str) -> int | None:
        """Return the number of the event that an undo by this annotator would undo."""
        for place in range(len(self._history) - 1, -1, -1):
            if self._history[place].by == by and self._undoable_rows(place):
                return self._history[place].number
        return None

    def undoable(self, by: str) -> list[int]:
        """Return the rows that an undo by this annotator would change."""
        place = self._place(self.undo_target(by))
        return [] if place is None else self._undoable_rows(place)

    def _undoable_rows(self, place: int) -> list[int]:
        """Return the rows of an event, except those that another annotator has answered since."""
        return [row for row in self._history[place].before if self._latest.get(row) == place]

    def _place(self, number: int | None) -> int | None:
        """Return the position of an event in the history, or None."""
        places = (i for i in range(len(self._history) - 1, -1, -1))
        return next((i for i in places if self._history[i].number == number), None)

    def _undo(self, number: int | None) -> list[int]:
        """Undo an event; return the changed rows, none if the event is unknown."""
        place = self._place(number)
        rows = [] if place is None else self._undoable_rows(place)
        if place is not None and rows:
            changes = self._history.pop(place).before
            self._latest = {r: p - (p > place) for r, p in self._latest.items() if p != place}
            for p, change in enumerate(self._history):
                self._latest |= {row: p for row in rows if row in change.before}
            for row in rows:
                self.answers.pop(row, None)
                before = changes[row]
                if before is not None:
                    self.answers[row] = before
        return rows

    def replay(self, events: Iterable[Mapping[str, Any]], n_rows: int) -> None:
        """Apply the events of a log; invalid events raise ValueError."""
        for number, event in enumerate(events, 2):
            if not is_event(event, n_rows):
                raise ValueError(f"line {number} of the log is not an event: {event!r:.80}")
            self.apply(event)


def is_event(event: Mapping[str, Any], n_rows: int) -> bool:
    """Return whether an event of a log can be applied.

    Parameters
    ----------
    event : mapping
        The event, see :meth:`AnswerHistory.apply`.
    n_rows : int
        Number of rows of the data.

    Returns
    -------
    bool
        Whether it is valid.
    """
    do = event.get("do")
    rows = event.get("rows", ()) if do == "bulk" else [event.get("row")]
    if do not in EVENTS or not isinstance(rows, list | tuple):
        return False
    if do not in ("undo", "rename") and not all(_is_row(row, n_rows) for row in rows):
        return False
    if do in ("label", "bulk", "rename") and not _is_value(event.get("value")):
        return False
    if event.get("to") is not None and not _is_value(event["to"]):
        return False
    if event.get("purpose", "own") not in ("check", "choice", "own"):
        return False
    if not all(isinstance(event.get(name, 0), int) for name in ("n", "of")):
        return False
    return all(isinstance(event.get(name, ""), str) for name in ("by", "key"))


def _is_row(row: Any, n_rows: int) -> bool:
    """Return whether this is the number of a row."""
    return isinstance(row, int) and 0 <= row < n_rows


def _is_value(value: Any) -> bool:
    """Return whether this is a label, including texts that only earlier versions accepted."""
    if isinstance(value, str) and not is_unicode(value):
        return True
    try:
        plain_value(value)
    except ValueError:
        return False
    return True


def _changed(event: Mapping[str, Any], before: Answer | None) -> Answer | None:
    """Return the answer of a row after an event, or None."""
    do = event["do"]
    by = event.get("by", "")
    at = event.get("at", "")
    value = event.get("value")
    if isinstance(value, str) and not is_unicode(value):
        # An earlier version refused but logged such labels. They change nothing, but stay in the
        # history, because a later undo in the same log refers to them.
        return before
    if do == "rename" and before is not None and event.get("to") is not None:
        renamed = [(who, event["to"] if v == value else v) for who, v in before.opinions]
        return replace(before, value=event["to"], opinions=tuple(renamed))
    if do in ("remove", "rename"):
        return None
    value = None if do == "skip" else value
    if before is not None and do == "second":
        return replace(before, opinions=(*before.opinions, (by, value)))
    if before is not None and len(before.opinions) > 1:  # resolves a disagreement
        return replace(before, value=value, by=by, at=at, settled=True)
    # A correction keeps the purpose of the question.
    purpose = event.get("purpose", "own") if before is None else before.purpose
    return Answer(value, purpose, by, at, ((by, value),))
