"""The events of a session applied in order: answers, and the proof that is made of them.

The session and the verifier of certificates share this, so both restore the same proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .answers import Answer, AnswerHistory, Value
from .goal import Goal
from .proof import EVENTS as PROOF_EVENTS
from .proof import Proof, goal_of


class Ledger:
    """Answers and proof of a session.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.
    given : mapping
        Answers by row that were known before the session.
    goal : Goal
        What is to be proved.
    seed : int
        Seed of the draws.

    Attributes
    ----------
    history : AnswerHistory
        The answers.
    proof : Proof
        The proof.
    started : bool
        Whether the event of the goal of this proof has been applied.
    """

    def __init__(self, n_rows: int, given: Mapping[int, Answer], goal: Goal, seed: int) -> None:
        self.history = AnswerHistory(dict(given))
        self.proof = Proof(n_rows, goal, seed)
        self.started = False
        self._renames: dict[int, tuple[Value, Value | None]] = {}

    def apply(self, event: Mapping[str, Any]) -> list[int]:
        """Apply an event.

        Parameters
        ----------
        event : mapping
            An event of :mod:`gdpa.labeling.answers` or :mod:`gdpa.labeling.proof`.

        Returns
        -------
        list of int
            Rows whose answer changed.

        Raises
        ------
        ValueError
            If the proof needs an event that is missing.
        """
        do = event["do"]
        if do == "goal":
            self._apply_goal(event)
            return []
        if do in PROOF_EVENTS:
            if not self.started:
                raise ValueError(f"event {event.get('n')}: there is a {do} before the goal")
            self.proof.apply(event, self.history.answers)
            return []
        if self._changes_meaning(event):
            self._start_again(event)
        elif do == "rename":
            self.proof.rename(event["value"], event["to"])
        if do == "undo":
            self._renames.pop(self._undo_target(event), None)
        rows = self.history.apply(event)
        if do == "rename":
            self._renames[self.history.number] = (event["value"], event.get("to"))
        return rows

    def name_now(self, value: Value) -> Value:
        """Return the current name of a class that had this name at the start."""
        for before, to in self._renames.values():
            if value == before and to is not None:
                value = to
        return value

    def _undo_target(self, event: Mapping[str, Any]) -> int:
        """Return the number of the event that an undo reverts; -1 if there is none."""
        target = event.get("of", self.history.undo_target(event.get("by", "")))
        return -1 if target is None else int(target)

    def set_goal(self, goal: Goal) -> None:
        """Continue the proof with a goal, or start a new one with the capital that is left."""
        if self.proof.continues(goal):
            self.proof.goal = goal
        else:
            self.proof = self.proof.successor(goal, self.history.answers)
        self.started = False

    def forget_checks(self) -> None:
        """Start a new proof after a loss of events."""
        self.proof = self.proof.after_damage()
        self.started = False

    def _apply_goal(self, event: Mapping[str, Any]) -> None:
        """Apply the event that starts a proof or sets another level."""
        self.set_goal(goal_of(event))
        if not self.proof.rows:
            self.proof.stake = min(self.proof.stake, float(event["stake"]))
        self.started = True

    def _changes_meaning(self, event: Mapping[str, Any]) -> bool:
        """Return whether right and wrong mean something else after an event.

        So it is if classes are merged or deleted, and if any change of classes is undone. A new
        name changes nothing.
        """
        if event["do"] == "undo":
            return self._undo_target(event) in self._renames
        if event["do"] != "rename":
            return False
        to = event.get("to")
        return to is None or self.proof.has_class(to) or to in self.history.classes

    def _start_again(self, event: Mapping[str, Any]) -> None:
        """Start a new proof because the classes change."""
        goal = self.proof.goal
        to = event.get("to")
        if event["do"] == "rename" and to is not None and goal.value == event["value"]:
            goal = replace(goal, value=to)
        self.proof = self.proof.successor(goal, self.history.answers)
