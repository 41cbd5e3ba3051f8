"""The proof of a session: its models, random checks and answers, and what they prove.

A proof depends only on the sequence of events, so replaying a log or a certificate restores it. The
mathematics is in :mod:`gdpa.labeling.guarantee`; here are the rows, the draws and the statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from .accuracy import Predictions
from .answers import Answer, Value
from .check_design import Design, Stratum, make_design, recalibrated
from .goal import Goal
from .guarantee import RESERVE, Evidence
from .snapshot import LEVELS, OTHER_CLASS, OUTSIDE, Snapshot, take_snapshot, unpacked
from .statement import Statement

EVENTS = ("goal", "model", "release", "check")
# Class number of the answer to a skipped row.
SKIPPED = -2


@dataclass(frozen=True)
class Check:
    """A random check.

    Parameters
    ----------
    row : int
        The row.
    model : int
        Number of the snapshot.
    stratum : int
        Stratum of the row, as a position in `design`.
    design : Design
        Probabilities and bets, fixed before the draw.
    places : tuple of int
        Numbers of the strata of `design`.
    open_rows : ndarray of uint8
        Packed mask of the rows that could be drawn.
    """

    row: int
    model: int
    stratum: int
    design: Design
    places: tuple[int, ...]
    open_rows: NDArray[np.uint8]

    def was_open(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which rows could be drawn."""
        return np.asarray((self.open_rows[rows >> 3] >> (7 - (rows & 7))) & 1, dtype=bool)


@dataclass(frozen=True)
class Strata:
    """The strata that have open rows.

    Parameters
    ----------
    places : tuple of int
        Their numbers.
    rows : list of int
        Number of open rows of each.
    weights : list of float
        Cost of a wrong row of each.
    model_guesses : list of float
        Expected share of wrong rows according to the confidences.
    """

    places: tuple[int, ...]
    rows: list[int]
    weights: list[float]
    model_guesses: list[float]

    @property
    def total(self) -> int:
        """Number of open rows."""
        return sum(self.rows)

    @property
    def found(self) -> int:
        """Number of open rows predicted as the class of a goal about recall."""
        return sum(n for n, p in zip(self.rows, self.places, strict=True) if p >= LEVELS)


@dataclass
class Proof:
    """Random checks of changing predictions, and what they prove.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.
    goal : Goal
        What is to be proved.
    seed : int
        Seed of the draws.
    stake : float, default=1.0
        Capital before the first check; less than 1 if an earlier proof of the session was given up.
    starts : int, default=0
        Number of earlier proofs of the session with a check.

    Attributes
    ----------
    holds : bool
        Whether the predictions are held fixed while they are checked.
    held_labels : int
        Number of labels when that began.
    held_at : int
        Number of the last event that the held predictions know.
    """

    n_rows: int
    goal: Goal
    seed: int
    stake: float = 1.0
    starts: int = 0
    holds: bool = False
    held_labels: int = 0
    held_at: int = 0
    _classes: dict[Value, int] = field(default_factory=dict)
    _models: list[Snapshot] = field(default_factory=list)
    _checks: list[Check] = field(default_factory=list)
    _ever_closed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    _kept: tuple[Predictions, Any, Snapshot] | None = None

    def __post_init__(self) -> None:
        self._ever_closed = np.zeros(self.n_rows, dtype=bool)
        if self.goal.value is not None:
            self._classes = {self.goal.value: 0}

    @property
    def rows(self) -> list[int]:
        """Rows of the checks, in the order of the draws."""
        return [check.row for check in self._checks]

    @property
    def checks(self) -> list[Check]:
        """The checks, in the order of the draws."""
        return list(self._checks)

    @property
    def is_about_all_rows(self) -> bool:
        """Whether every unanswered row can be drawn."""
        return self.goal.kind in ("accuracy", "recall")

    @property
    def last(self) -> Snapshot:
        """The last recorded predictions."""
        return self._models[-1]

    # Events: they are made here, written to the log by the session, and then applied here.

    def goal_event(self) -> dict[str, Any]:
        """Return the event that starts the proof, or sets another level of its goal."""
        goal = self.goal
        return {
            "do": "goal",
            "level": goal.level,
            "kind": goal.kind,
            "class": goal.value,
            "confidence": goal.confidence,
            "risk": goal.risk,
            "stake": self.stake,
        }

    def model_event(self, predictions: Predictions, *, hold: bool, at: int) -> dict[str, Any]:
        """Return the event that records predictions before they are checked.

        Parameters
        ----------
        predictions : Predictions
            The predictions.
        hold : bool
            Whether they are held fixed from now on.
        at : int
            Number of the last event that the predictions know.

        Returns
        -------
        dict
            Plain data; the arrays are differences to the last recorded predictions, compressed.
        """
        classes = self._all_classes(predictions)
        snapshot = self._snapshot(predictions, classes)
        return {
            "do": "model",
            "number": len(self._models),
            "classes": list(classes),
            **snapshot.packed(self._models[-1] if self._models else None),
            "hold": hold,
            "labels": len(predictions.trained),
            "at": at,
        }

    def check_event(
        self,
        is_open: NDArray[np.bool_],
        answers: Mapping[int, Answer],
        *,
        busy: Iterable[int],
        n: int,
    ) -> dict[str, Any] | None:
        """Draw a check among the open rows, for the last recorded predictions.

        Parameters
        ----------
        is_open : ndarray of bool of shape (n_rows,)
            Rows that are neither answered nor asked.
        answers : mapping
            The answers so far.
        busy : iterable of int
            Unanswered rows that are not open.
        n : int
            Number of the event in the session. The draw depends on it and on the seed, so no two
            draws of a session use the same random numbers, not even after a new start.

        Returns
        -------
        dict or None
            The event; None if the goal is not about any open row.
        """
        strata = self.strata(self.last, is_open)
        if not strata.places:
            return None
        design = self._design(strata, answers)
        stratum, row = self._draw(design, strata.places, is_open, n)
        return {
            "do": "check",
            "n": n,
            "number": len(self._checks),
            "row": row,
            "model": len(self._models) - 1,
            "stratum": stratum,
            "places": list(strata.places),
            "strata": _cells(design),
            "control": design.control,
            "bets": list(design.bets),
            "busy": sorted(int(i) for i in busy),
        }

    def apply(self, event: Mapping[str, Any], answers: Mapping[int, Answer]) -> None:
        """Apply an event of the proof.

        Parameters
        ----------
        event : mapping
            An event that one of the methods above returned.
        answers : mapping
            The answers at that time.

        Raises
        ------
        ValueError
            If an earlier event is missing.
        """
        do = event["do"]
        known = {"model": len(self._models), "check": len(self._checks)}
        if do in known and event["number"] != known[do]:
            raise ValueError(f"event {event.get('n')}: an earlier {do} is missing")
        if do == "model":
            self._apply_model(event)
        elif do == "release":
            self.holds = False
        elif do == "check":
            self._apply_check(event, answers)

    def _apply_model(self, event: Mapping[str, Any]) -> None:
        """Record predictions."""
        snapshot = unpacked(event, self._models[-1] if self._models else None)
        if snapshot.codes.size != self.n_rows or snapshot.strata.size != self.n_rows:
            raise ValueError(f"event {event.get('n')}: predictions of another number of rows")
        self._classes = {value: code for code, value in enumerate(event["classes"])}
        self._models.append(snapshot)
        self.holds = bool(event["hold"])
        self.held_labels = int(event["labels"])
        self.held_at = int(event["at"])

    def _apply_check(self, event: Mapping[str, Any], answers: Mapping[int, Answer]) -> None:
        """Record a check."""
        is_open = self.open_mask(answers, event["busy"])
        strata = tuple(Stratum(int(s[0]), *map(float, s[1:])) for s in event["strata"])
        bets = (float(event["bets"][0]), float(event["bets"][1]))
        check = Check(
            row=int(event["row"]),
            model=int(event["model"]),
            stratum=int(event["stratum"]),
            design=Design(strata, float(event["control"]), bets),
            places=tuple(int(place) for place in event["places"]),
            open_rows=np.packbits(is_open),
        )
        self._checks.append(check)
        self._ever_closed |= ~is_open

    def verify(self, event: Mapping[str, Any], answers: Mapping[int, Answer]) -> None:
        """Raise ValueError if a check is not what the draw gives; called before :meth:`apply`."""
        if event["do"] != "check":
            return
        number = int(event["n"])
        is_open = self.open_mask(answers, event["busy"])
        strata = self.strata(self.last, is_open)
        if event["model"] != len(self._models) - 1:
            raise ValueError(f"event {number}: the predictions are not the last ones")
        if not strata.places or list(strata.places) != list(event["places"]):
            raise ValueError(f"event {number}: the strata do not belong to the predictions")
        design = self._design(strata, answers)
        if not np.allclose(_cells(design), event["strata"], rtol=1e-9, atol=1e-12):
            raise ValueError(f"event {number}: the probabilities are not those of the design")
        bets = np.allclose(design.bets, event["bets"], rtol=1e-6, atol=1e-9)
        if design.control != event["control"] or not bets:
            raise ValueError(f"event {number}: the bets are not those of the design")
        drawn = self._draw(design, strata.places, is_open, number)
        if drawn != (event["stratum"], event["row"]):
            raise ValueError(f"event {number}: the draw with this seed gives row {drawn[1]}")

    def rename(self, value: Value, to: Value) -> None:
        """Follow a new name of a class. A merged or deleted class needs a new proof instead.

        Parameters
        ----------
        value : str, int, float or bool
            The class.
        to : str, int, float or bool
            Its new name.
        """
        self._classes = {to if c == value else c: code for c, code in self._classes.items()}
        self._kept = None
        if self.goal.value == value:
            self.goal = replace(self.goal, value=to)

    def has_class(self, value: Value) -> bool:
        """Return whether a class was predicted by a recorded model, or is that of the goal."""
        return value in self._classes

    def continues(self, goal: Goal) -> bool:
        """Return whether the same checks can prove another goal: only level or risk differ.

        The level is a part of the cost of a goal about recall.
        """
        return goal == self.goal or (
            goal.kind != "recall"
            and replace(goal, level=self.goal.level, risk=self.goal.risk) == self.goal
        )

    def successor(self, goal: Goal, answers: Mapping[int, Answer]) -> Proof:
        """Return a new proof of another goal, with the capital that this one has for certain."""
        if not self._checks:
            return Proof(self.n_rows, goal, self.seed, self.stake, self.starts)
        stake = min(self.stake, self.evidence(answers, self.last).left())
        return Proof(self.n_rows, goal, self.seed, stake, self.starts + 1)

    def after_damage(self) -> Proof:
        """Return a new proof after a loss of checks: only the reserve is certain."""
        return Proof(self.n_rows, self.goal, self.seed, self.stake * RESERVE, self.starts + 1)

    def held_values(self) -> dict[int, Value]:
        """Return the held predictions by row, except rows that the goal is not about."""
        values = list(self._classes)
        codes = self.last.codes
        return {int(row): values[codes[row]] for row in np.flatnonzero(codes >= 0)}

    def open_checks(self, answers: Mapping[int, Answer]) -> list[int]:
        """Return the rows that were drawn and have no answer, in the order of the draws."""
        return [row for row in self.rows if row not in answers]

    def is_current(self, predictions: Predictions, rows: NDArray[np.bool_]) -> bool:
        """Return whether the last recorded predictions of the rows of a mask are these."""
        if not self._models:
            return False
        if any(value not in self._classes for value in predictions.classes.tolist()):
            return False
        now = self._snapshot(predictions, self._classes)
        return bool(np.array_equal(self.last.codes[rows], now.codes[rows]))

    # What the checks prove.

    def statement(
        self, answers: Mapping[int, Answer], predictions: Predictions | None
    ) -> Statement:
        """Return what is proved about the current predictions, without a forecast.

        Parameters
        ----------
        answers : mapping
            The answers so far.
        predictions : Predictions or None
            The current predictions; None before the first fit.

        Returns
        -------
        Statement
            The statement.
        """
        if predictions is None or predictions.classes.size < 2 or not self._checks:
            checks, wrong = self._counts(answers)
            rows = self.n_rows - len(answers)
            return Statement(self.goal, 0.0, False, rows, checks, wrong, None)
        return self.statement_about(answers, self.current(predictions))

    def statement_about(self, answers: Mapping[int, Answer], current: Snapshot) -> Statement:
        """Return what is proved about recorded predictions."""
        unanswered = self.open_mask(answers, ())
        rows = int(np.count_nonzero(unanswered & (current.codes >= 0)))
        evidence = self.evidence(answers, current)
        allowed = self.allowed(answers, current)
        checks, wrong = self._counts(answers)
        if not unanswered.any():
            proved = 1.0
            reached = allowed is not None
        elif not rows:
            proved = 0.0
            reached = False
        else:
            needed = math.log(1.0 / self.goal.risk)
            reached = allowed is not None and evidence.log_capital(allowed) >= needed
            proved = self._proved(evidence, reached)
        return Statement(
            goal=self.goal,
            proved=proved,
            reached=reached,
            rows=rows,
            checks=checks,
            wrong=wrong,
            answers_needed=None,
            holds=self.holds,
        )

    def _counts(self, answers: Mapping[int, Answer]) -> tuple[int, int]:
        """Return the number of answered checks, and of those that were wrong."""
        outcomes = [self._is_wrong(c, answers) for c in self._checks if c.row in answers]
        return len(outcomes), sum(outcomes)

    def _proved(self, evidence: Evidence, reached: bool) -> float:
        """Return the proved share."""
        if self.goal.kind == "recall":
            assert self.goal.level is not None
            return self.goal.level if reached else 0.0
        largest = evidence.largest_cost(self.goal.risk)
        return max(0.0, 1.0 - largest / evidence.total)

    def allowed(self, answers: Mapping[int, Answer], current: Snapshot) -> float | None:
        """Return the largest cost for which the goal is reached; None without a goal."""
        if self.goal.level is None:
            return None
        concerned = self.open_mask(answers, ()) & (current.codes >= 0)
        if self.goal.kind == "recall":
            concerned &= current.codes == self._goal_code()
        return (1.0 - self.goal.level) * int(np.count_nonzero(concerned))

    def evidence(self, answers: Mapping[int, Answer], current: Snapshot) -> Evidence:
        """Return the checks seen from now."""
        unanswered = self.open_mask(answers, ())
        weights = np.where(unanswered, self._weights(current.codes), 0.0)
        rows = np.array(list(answers), dtype=np.intp)
        codes = np.array([self._answer_code(answer) for answer in answers.values()])
        suspects = np.flatnonzero((weights > 0) & self._ever_closed)
        changed_cost: dict[int, float] = {}
        unchanged_suspects: dict[int, NDArray[np.bool_]] = {}
        answered_cost: dict[int, FloatArray] = {}
        for number in {check.model for check in self._checks}:
            before = self._models[number].codes
            changed = current.codes != before
            changed_cost[number] = float(weights[changed].sum())
            unchanged_suspects[number] = ~changed[suspects]
            wrong = self._wrong(before[rows], codes)
            answered_cost[number] = self._weights(before[rows]) * wrong

        def lost_support(check: Check) -> float:
            """Return the largest cost of rows that this check says nothing about."""
            closed = ~check.was_open(suspects) & unchanged_suspects[check.model]
            return changed_cost[check.model] + float(weights[suspects[closed]].sum())

        checks = self._checks
        estimates = [c.design.estimate(c.stratum, self._is_wrong(c, answers)) for c in checks]
        known = [float(answered_cost[c.model][c.was_open(rows)].sum()) for c in checks]
        return Evidence(
            rows=np.array([c.design.rows for c in checks], dtype=np.float64),
            estimates=np.array(estimates),
            bets=np.array([c.design.bets for c in checks]).reshape(-1, 2),
            changed=np.array([lost_support(c) for c in checks]),
            known=np.array(known),
            total=float(weights.sum()),
            stake=self.stake,
        )

    # Rows and strata.

    def current(self, predictions: Predictions) -> Snapshot:
        """Return the current predictions with the class numbers of the proof."""
        return self._snapshot(predictions, self._all_classes(predictions))

    def _all_classes(self, predictions: Predictions) -> dict[Value, int]:
        """Return the class numbers, with those of new classes of the predictions."""
        classes = dict(self._classes)
        for value in predictions.classes.tolist():
            classes.setdefault(value, len(classes))
        return classes

    def _snapshot(self, predictions: Predictions, classes: Mapping[Value, int]) -> Snapshot:
        """Return predictions as class numbers and strata; the last result is kept."""
        key = tuple(classes)
        if self._kept is not None and self._kept[0] is predictions and self._kept[1] == key:
            return self._kept[2]
        snapshot = take_snapshot(predictions, self.goal, classes)
        self._kept = (predictions, key, snapshot)
        return snapshot

    def _weights(self, codes: NDArray[np.int32]) -> FloatArray:
        """Return the largest cost of each row; 0 for rows that the goal is not about."""
        return np.where(codes >= 0, self.goal.weights(codes == self._goal_code()), 0.0)

    def _goal_code(self) -> int:
        """Return the number of the class of the goal."""
        return OTHER_CLASS if self.goal.value is None else self._classes[self.goal.value]

    def open_mask(self, answers: Mapping[int, Answer], busy: Iterable[int]) -> NDArray[np.bool_]:
        """Return which rows are neither answered nor busy."""
        mask = np.ones(self.n_rows, dtype=bool)
        mask[list(answers)] = False
        mask[list(busy)] = False
        return mask

    def strata(self, model: Snapshot, is_open: NDArray[np.bool_]) -> Strata:
        """Return the strata of predictions that have open rows."""
        inside = is_open & (model.strata != OUTSIDE)
        sizes = np.bincount(model.strata[inside], minlength=model.guesses.size)
        places = np.flatnonzero(sizes)
        return Strata(
            places=tuple(places.tolist()),
            rows=sizes[places].tolist(),
            weights=self.goal.weights(places >= LEVELS).tolist(),
            model_guesses=model.guesses[places].tolist(),
        )

    def guesses(self, model: Snapshot, answers: Mapping[int, Answer]) -> FloatArray:
        """Return the expected share of wrong rows of every stratum, after the answers so far."""
        earlier = [
            (
                check.places[check.stratum],
                check.design.strata[check.stratum].model_guess,
                self._is_wrong(check, answers),
            )
            for check in self._checks
            if check.row in answers
        ]
        return recalibrated(model.guesses, earlier=earlier)

    def _design(self, strata: Strata, answers: Mapping[int, Answer]) -> Design:
        """Return the design of the next check."""
        target = None
        if self.goal.level is not None:
            target = 1.0 - self.goal.level
            if self.goal.kind == "recall":
                target *= strata.found / strata.total
        return make_design(
            strata.rows,
            strata.weights,
            self.guesses(self.last, answers)[list(strata.places)].tolist(),
            strata.model_guesses,
            target=target,
            checks=len(self._checks),
            risk=self.goal.risk,
            hold=self.holds,
        )

    def _draw(
        self, design: Design, places: tuple[int, ...], is_open: NDArray[np.bool_], n: int
    ) -> tuple[int, int]:
        """Draw a stratum and a row of the last predictions."""
        rng = np.random.default_rng([self.seed, n, 7])
        first, second = rng.random(2)
        cumulative = np.cumsum([stratum.probability for stratum in design.strata])
        stratum = int(np.searchsorted(cumulative / cumulative[-1], first, side="right"))
        members = np.flatnonzero(is_open & (self.last.strata == places[stratum]))
        return stratum, int(members[int(second * members.size)])

    # Answers.

    def _answer_code(self, answer: Answer) -> int:
        """Return the class number of an answer."""
        if answer.value is None:
            return SKIPPED
        return self._classes.get(answer.value, OTHER_CLASS)

    def _wrong(self, codes: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which predictions are wrong in the sense of the goal."""
        wrong = codes != answers
        if self.goal.kind == "recall":
            value = self._goal_code()
            wrong = ((codes == value) != (answers == value)) | (answers == SKIPPED)
        return np.asarray(wrong & (codes >= 0))

    def _is_wrong(self, check: Check, answers: Mapping[int, Answer]) -> bool:
        """Return whether the prediction of a check was wrong; True if it has no answer."""
        answer = answers.get(check.row)
        if answer is None or answer.value is None:
            return True
        code = int(self._models[check.model].codes[check.row])
        given = self._answer_code(answer)
        if self.goal.kind == "recall":
            value = self._goal_code()
            return (code == value) != (given == value)
        return code != given


def _cells(design: Design) -> list[list[float]]:
    """Return the strata of a design as rows of numbers."""
    return [[s.rows, s.weight, s.probability, s.guess, s.model_guess] for s in design.strata]


def goal_of(event: Mapping[str, Any]) -> Goal:
    """Return the goal of an event."""
    return Goal(
        level=event["level"],
        kind=event["kind"],
        value=event["class"],
        confidence=event["confidence"],
        risk=event["risk"],
    )
