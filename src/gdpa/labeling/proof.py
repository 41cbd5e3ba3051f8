"""The proof of a session: its models, random checks and answers, and what they prove.

A proof depends only on the sequence of events, so replaying a log or a certificate restores it. The
mathematics is in :mod:`gdpa.labeling.guarantee`; here are the rows, the draws and the statement.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from .accuracy import Predictions
from .answers import Answer, Value
from .guarantee import (
    ERROR_EDGES,
    GOAL_SHARE,
    Design,
    Evidence,
    Goal,
    Stratum,
    checks_needed,
    make_design,
    recalibrated,
)

EVENTS = ("goal", "model", "release", "check")
# Number of a row that has no stratum, because the goal is not about it.
OUTSIDE = 255
# Codes of answers that are no predicted class.
SKIPPED = -2
OTHER_CLASS = -3
# Errors fall with the square root of the number of labels: a rule of thumb that decides only
# whether more learning or more checks are expected to reach the goal first.
LEARNING_EXPONENT = 0.5
LEARNING_STEPS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# Labels per label at the start of the checks after which a new fit is considered.
RECONSIDER = 1.25


@dataclass(frozen=True)
class Snapshot:
    """Predictions at one time.

    Parameters
    ----------
    codes : ndarray of int16 of shape (n_rows,)
        Predicted class numbers; -1 for rows that the goal is not about.
    strata : ndarray of uint8 of shape (n_rows,)
        Stratum of each row.
    guesses : ndarray of shape (n_strata,)
        Mean probability of an error in each stratum, according to the confidences.
    """

    codes: NDArray[np.int16]
    strata: NDArray[np.uint8]
    guesses: FloatArray


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
class Statement:
    """What is proved about the current predictions of the unlabelled rows.

    Parameters
    ----------
    goal : Goal
        What is to be proved.
    proved : float
        The share that is proved: at least this share is right (0 if nothing is proved yet).
    reached : bool
        Whether the goal is proved.
    rows : int
        Number of unlabelled rows that the goal is about.
    checks : int
        Number of answered random checks.
    wrong : int
        Number of them that were predicted wrongly.
    answers_needed : int or None
        About how many more answers the goal may take; 0 if it is reached, None if it is out of
        reach, or if there is no goal.
    hardest : tuple of (value, float)
        Predicted classes with the most expected errors, and their share of these errors.
    holds : bool
        Whether the predictions are held fixed while they are checked.
    """

    goal: Goal
    proved: float
    reached: bool
    rows: int
    checks: int
    wrong: int
    answers_needed: int | None
    hardest: tuple[tuple[Value, float], ...] = ()
    holds: bool = False

    @property
    def proved_percent(self) -> float:
        """The proved share in percent, rounded down to one decimal."""
        return math.floor(1000.0 * self.proved + 1e-9) / 10.0

    @property
    def text(self) -> str:
        """The statement in one sentence."""
        risk = f"with at most {_percent(self.goal.risk)} risk of being wrong about that"
        if self.reached and self.goal.level is not None:
            level = _percent(self.goal.level)
            return f"Goal reached: at least {level} {self.goal.subject}, {risk}."
        if self.proved <= 0.0:
            checks = (
                "1 random check was" if self.checks == 1 else f"{self.checks} random checks were"
            )
            return f"Nothing is proved yet: {checks} answered."
        return f"Proved so far: at least {self.proved_percent:g} % {self.goal.subject}, {risk}."

    @property
    def forecast(self) -> str:
        """How many more answers the goal may take, in one sentence; empty without a goal."""
        if self.goal.level is None or self.reached:
            return ""
        if self.answers_needed is not None:
            return f"About {self.answers_needed:,} more answers may be needed."
        why = " and ".join(f"{value} ({_percent(share)})" for value, share in self.hardest)
        where = f" Most expected errors are among the rows predicted as {why}." if why else ""
        return f"The goal seems out of reach with these predictions.{where}"


def _percent(share: float) -> str:
    """Return a share in percent."""
    return f"{round(100.0 * share, 1):g} %"


def effort(goal: Goal) -> str:
    """Return how many checks a proof takes, in words, for the time before the first answer."""
    if goal.level is None or goal.kind == "recall":
        return ""
    truths = [goal.level + share * (1.0 - goal.level) for share in (0.9, 0.5)]
    counts = [
        f"about {math.ceil(checks_needed(goal.level, truth, goal.risk)):,} if "
        f"{_percent(round(truth, 3))} are right"
        for truth in truths
    ]
    return (
        f"To prove {_percent(goal.level)} with evenly drawn checks takes {' and '.join(counts)}. "
        "Checks are drawn where errors are likely, which usually takes fewer."
    )


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

    @property
    def goal_share(self) -> float:
        """Share of the capital that is bet on the goal."""
        return 0.0 if self.goal.level is None else GOAL_SHARE

    @property
    def rows(self) -> list[int]:
        """Rows of the checks, in the order of the draws."""
        return [check.row for check in self._checks]

    # Events: they are made here, written to the log by the session, and then applied here.

    def goal_event(self) -> dict[str, Any]:
        """Return the event that starts the proof."""
        goal = self.goal
        return {
            "do": "goal",
            "level": goal.level,
            "kind": goal.kind,
            "class": goal.value,
            "confidence": goal.confidence,
            "risk": goal.risk,
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
        classes = dict(self._classes)
        for value in predictions.classes.tolist():
            classes.setdefault(value, len(classes))
        snapshot = self._snapshot(predictions, classes)
        before = self._models[-1] if self._models else None
        return {
            "do": "model",
            "number": len(self._models),
            "classes": list(classes),
            "codes": _packed(snapshot.codes, None if before is None else before.codes),
            "strata": _packed(snapshot.strata, None if before is None else before.strata),
            "guesses": snapshot.guesses.tolist(),
            "hold": hold,
            "labels": len(predictions.trained),
            "at": at,
        }

    def check_event(
        self, is_open: NDArray[np.bool_], answers: Mapping[int, Answer], *, busy: Iterable[int]
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

        Returns
        -------
        dict or None
            The event; None if the goal is not about any open row.
        """
        model = self._models[-1]
        design, places = self._design(model, is_open, answers)
        if design is None:
            return None
        stratum, row = self._draw(design, places, model, is_open)
        return {
            "do": "check",
            "number": len(self._checks),
            "row": row,
            "model": len(self._models) - 1,
            "stratum": stratum,
            "places": list(places),
            "strata": [
                [s.rows, s.weight, s.probability, s.guess, s.model_guess] for s in design.strata
            ],
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
            before = self._models[-1] if self._models else None
            self._classes = {value: code for code, value in enumerate(event["classes"])}
            codes = _unpacked(event["codes"], None if before is None else before.codes, np.int16)
            strata = _unpacked(event["strata"], None if before is None else before.strata, np.uint8)
            if codes.size != self.n_rows or strata.size != self.n_rows:
                raise ValueError(f"event {event.get('n')}: predictions of another number of rows")
            self._models.append(Snapshot(codes, strata, np.array(event["guesses"])))
            self.holds = bool(event["hold"])
            self.held_labels = int(event["labels"])
            self.held_at = int(event["at"])
        elif do == "release":
            self.holds = False
        elif do == "check":
            mask = self._open_mask(answers, event["busy"])
            design_strata = tuple(Stratum(int(s[0]), *map(float, s[1:])) for s in event["strata"])
            bets = (float(event["bets"][0]), float(event["bets"][1]))
            self._checks.append(
                Check(
                    row=int(event["row"]),
                    model=int(event["model"]),
                    stratum=int(event["stratum"]),
                    design=Design(design_strata, float(event["control"]), bets),
                    places=tuple(int(place) for place in event["places"]),
                    open_rows=np.packbits(mask),
                )
            )
            self._ever_closed |= ~mask

    def verify(self, event: Mapping[str, Any], answers: Mapping[int, Answer]) -> None:
        """Raise ValueError if a check is not what the draw gives; called before :meth:`apply`."""
        if event["do"] != "check":
            return
        number = event.get("n")
        model = self._models[-1]
        is_open = self._open_mask(answers, event["busy"])
        design, places = self._design(model, is_open, answers)
        if design is None or list(places) != list(event["places"]):
            raise ValueError(f"event {number}: the strata do not belong to the predictions")
        expected = [
            [s.rows, s.weight, s.probability, s.guess, s.model_guess] for s in design.strata
        ]
        if not np.allclose(expected, event["strata"], rtol=1e-9, atol=1e-12):
            raise ValueError(f"event {number}: the probabilities are not those of the design")
        bets = np.allclose(design.bets, event["bets"], rtol=1e-6, atol=1e-9)
        if design.control != event["control"] or not bets:
            raise ValueError(f"event {number}: the bets are not those of the design")
        stratum, row = self._draw(design, places, model, is_open)
        if (stratum, row) != (event["stratum"], event["row"]):
            raise ValueError(f"event {number}: the draw with this seed gives row {row}")

    @property
    def last(self) -> Snapshot:
        """The last recorded predictions."""
        return self._models[-1]

    def rename(self, value: Value, to: Value | None) -> None:
        """Follow a change of classes.

        A new name changes nothing. If classes are merged or deleted, right and wrong mean something
        else than before, so the proof starts again.

        Parameters
        ----------
        value : str, int, float or bool
            The class.
        to : str, int, float, bool or None
            Its new name; None if it is deleted.
        """
        if to is None or to in self._classes:
            self._models = []
            self._checks = []
            self._classes = {}
            self._ever_closed = np.zeros(self.n_rows, dtype=bool)
            self.holds = False
        else:
            self._classes = {to if c == value else c: code for c, code in self._classes.items()}
        if to is not None and self.goal.value == value:
            self.goal = replace(self.goal, value=to)

    def continues(self, goal: Goal) -> bool:
        """Return whether a new goal can be proved by the same checks."""
        same = replace(goal, level=self.goal.level) == self.goal
        both = goal.level is not None and self.goal.level is not None
        return goal == self.goal or (same and both and goal.kind != "recall")

    def held_values(self) -> dict[int, Value]:
        """Return the held predictions by row, except rows that the goal is not about."""
        values = list(self._classes)
        codes = self._models[-1].codes
        return {int(row): values[codes[row]] for row in np.flatnonzero(codes >= 0)}

    # What the checks prove.

    def statement(
        self,
        answers: Mapping[int, Answer],
        predictions: Predictions | None,
        *,
        forecast: bool = True,
    ) -> Statement:
        """Return what is proved about the current predictions.

        Parameters
        ----------
        answers : mapping
            The answers so far.
        predictions : Predictions or None
            The current predictions; None before the first fit.
        forecast : bool, default=True
            Whether to compute how many more answers may be needed.

        Returns
        -------
        Statement
            The statement.
        """
        if predictions is None or predictions.classes.size < 2 or not self._checks:
            checks, wrong = self._counts(answers)
            rows = self.n_rows - len(answers)
            return Statement(self.goal, 0.0, False, rows, checks, wrong, None)
        current = self._current(predictions)
        found = self.statement_about(answers, current)
        if not forecast:
            return found
        plan = None if found.reached else self.plan(predictions, answers)
        return replace(
            found,
            answers_needed=0 if found.reached else None if plan is None else plan.answers,
            hardest=self._hardest(predictions, answers, current),
        )

    def statement_about(self, answers: Mapping[int, Answer], current: Snapshot) -> Statement:
        """Return what is proved about recorded predictions, without a forecast."""
        evidence, rows = self._evidence(answers, current)
        allowed = self._allowed(answers, current, rows)
        needed = math.log(1.0 / self.goal.risk)
        reached = allowed is not None and (
            rows == 0 or evidence.log_capital(allowed, goal_share=self.goal_share) >= needed
        )
        checks, wrong = self._counts(answers)
        return Statement(
            goal=self.goal,
            proved=self._proved(evidence, rows, bool(reached)),
            reached=bool(reached),
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

    def _proved(self, evidence: Evidence, rows: int, reached: bool) -> float:
        """Return the proved share."""
        if rows == 0:
            return 1.0
        if self.goal.kind == "recall":
            assert self.goal.level is not None
            return self.goal.level if reached else 0.0
        largest = evidence.largest_cost(self.goal.risk, goal_share=self.goal_share)
        return max(0.0, 1.0 - largest / evidence.total)

    def plan(
        self,
        predictions: Predictions,
        answers: Mapping[int, Answer],
    ) -> Plan | None:
        """Return how the goal is expected to be reached soonest: by learning or by checking.

        Parameters
        ----------
        predictions : Predictions
            The current predictions.
        answers : mapping
            The answers so far.

        Returns
        -------
        Plan or None
            The plan; None without a goal, or if the goal is out of reach.
        """
        if self.goal.level is None:
            return None
        current = self._current(predictions)
        evidence, rows = self._evidence(answers, current)
        allowed = self._allowed(answers, current, rows)
        mask = self._open_mask(answers, ())
        sizes, weights, model_guesses, places = self._strata(current, mask)
        if not places or allowed is None:
            return None
        guesses = recalibrated(current.guesses, earlier=self._earlier(answers))[list(places)]
        target = allowed / sum(sizes)

        def checks(scale: float, missing: float) -> float:
            """Return the expected number of checks if errors are `scale` times as frequent."""
            design = make_design(
                sizes,
                weights,
                (guesses * scale).tolist(),
                model_guesses,
                target=target,
                checks=len(self._checks),
                risk=self.goal.risk,
            )
            growth = design.best_bet(target)[1]
            return missing / growth if growth > 0.0 else math.inf

        capital = evidence.log_capital(allowed, goal_share=self.goal_share)
        needed = math.log(1.0 / self.goal.risk)
        now = checks(1.0, max(0.0, needed - capital))
        labels = max(1, sum(answer.value is not None for answer in answers.values()))
        fitted = min(labels, max(1, self.held_labels)) if self.holds else labels
        soonest = math.inf
        for step in LEARNING_STEPS:
            if step == 0.0 and labels < RECONSIDER * fitted:
                continue  # a new fit would hardly differ
            more = step * labels
            scale = (fitted / (labels + more)) ** LEARNING_EXPONENT
            # Earlier checks are of little use for other predictions.
            soonest = min(soonest, more + checks(scale, needed - math.log(GOAL_SHARE)))
        best = min(now, soonest)
        if best > sum(sizes):
            return None
        return Plan(answers=math.ceil(best), learn=soonest < 0.95 * now)

    def open_checks(self, answers: Mapping[int, Answer]) -> list[int]:
        """Return the rows that were drawn and have no answer, in the order of the draws."""
        return [row for row in self.rows if row not in answers]

    def is_current(self, predictions: Predictions, rows: NDArray[np.bool_]) -> bool:
        """Return whether the last recorded predictions of the rows of a mask are these."""
        if not self._models:
            return False
        if any(value not in self._classes for value in predictions.classes.tolist()):
            return False
        last, now = self._models[-1], self._snapshot(predictions, self._classes)
        return bool(np.array_equal(last.codes[rows], now.codes[rows]))

    # Rows and strata.

    def _snapshot(self, predictions: Predictions, classes: Mapping[Value, int]) -> Snapshot:
        """Return predictions as class numbers and strata; the last result is kept."""
        key = (self.goal, tuple(classes))
        if self._kept is not None and self._kept[0] is predictions and self._kept[1] == key:
            return self._kept[2]
        snapshot = self._made_snapshot(predictions, classes)
        self._kept = (predictions, key, snapshot)
        return snapshot

    def _made_snapshot(self, predictions: Predictions, classes: Mapping[Value, int]) -> Snapshot:
        """Return predictions as class numbers and strata."""
        number = np.array([classes[value] for value in predictions.classes.tolist()])
        codes = number[predictions.codes].astype(np.int16)
        error = 1.0 - predictions.confidence
        strata = np.searchsorted(ERROR_EDGES, error).astype(np.uint8)
        is_value = codes == self._goal_code(classes)
        outside: NDArray[np.bool_] = np.zeros(codes.size, dtype=bool)
        if self.goal.kind == "precision":
            outside = ~is_value
        elif self.goal.kind == "confident":
            outside = predictions.confidence < float(self.goal.confidence or 0.0)
        elif self.goal.kind == "recall":
            strata[is_value] += len(ERROR_EDGES) + 1
        codes[outside] = -1
        strata[outside] = OUTSIDE
        n_strata = 2 * (len(ERROR_EDGES) + 1)
        inside = ~outside
        rows = np.bincount(strata[inside], minlength=n_strata)
        errors = np.bincount(strata[inside], weights=error[inside], minlength=n_strata)
        if self.goal.kind == "recall":
            # A row of another predicted class is wrong if it belongs to the class of the goal.
            column = np.flatnonzero(predictions.classes == self.goal.value)
            chance = predictions.probabilities[:, column].sum(axis=1)
            miss = np.where(is_value, error, chance)
            errors = np.bincount(strata, weights=miss, minlength=n_strata)
        guesses = np.clip(errors / np.maximum(rows, 1), 0.002, 0.95)
        return Snapshot(codes, strata, np.round(guesses, 6))

    def _current(self, predictions: Predictions) -> Snapshot:
        """Return the current predictions with the class numbers of the proof."""
        classes = dict(self._classes)
        for value in predictions.classes.tolist():
            classes.setdefault(value, len(classes))
        return self._snapshot(predictions, classes)

    def _weights(self, codes: NDArray[np.int16]) -> FloatArray:
        """Return the largest cost of each row; 0 for rows that the goal is not about."""
        is_value = codes == self._goal_code(self._classes)
        return np.where(codes >= 0, self.goal.weights(is_value), 0.0)

    def _goal_code(self, classes: Mapping[Value, int]) -> int:
        """Return the number of the class of the goal."""
        value = self.goal.value
        return OTHER_CLASS if value is None else classes.get(value, OTHER_CLASS)

    def _open_mask(self, answers: Mapping[int, Answer], busy: Iterable[int]) -> NDArray[np.bool_]:
        """Return which rows are neither answered nor busy."""
        mask = np.ones(self.n_rows, dtype=bool)
        mask[list(answers)] = False
        mask[list(busy)] = False
        return mask

    def _strata(
        self, model: Snapshot, is_open: NDArray[np.bool_]
    ) -> tuple[list[int], list[float], list[float], tuple[int, ...]]:
        """Return sizes, weights, guesses and numbers of the strata with open rows."""
        inside = is_open & (model.strata != OUTSIDE)
        sizes = np.bincount(model.strata[inside], minlength=model.guesses.size)
        places = tuple(int(place) for place in np.flatnonzero(sizes))
        half = len(ERROR_EDGES) + 1
        weights = self.goal.weights(np.array(places, dtype=np.intp) >= half)
        guesses = model.guesses[list(places)].tolist()
        return sizes[list(places)].tolist(), weights.tolist(), guesses, places

    def _design(
        self, model: Snapshot, is_open: NDArray[np.bool_], answers: Mapping[int, Answer]
    ) -> tuple[Design | None, tuple[int, ...]]:
        """Return the design of the next check."""
        sizes, weights, model_guesses, places = self._strata(model, is_open)
        if not places:
            return None, places
        guesses = recalibrated(model.guesses, earlier=self._earlier(answers))[list(places)]
        target = None
        if self.goal.level is not None:
            target = 1.0 - self.goal.level
            if self.goal.kind == "recall":
                half = len(ERROR_EDGES) + 1
                found = sum(n for n, p in zip(sizes, places, strict=True) if p >= half)
                target *= found / sum(sizes)
        design = make_design(
            sizes,
            weights,
            guesses.tolist(),
            model_guesses,
            target=target,
            checks=len(self._checks),
            risk=self.goal.risk,
            hold=self.holds,
        )
        return design, places

    def _draw(
        self,
        design: Design,
        places: tuple[int, ...],
        model: Snapshot,
        is_open: NDArray[np.bool_],
    ) -> tuple[int, int]:
        """Draw a stratum and a row; depends only on the seed and the number of the check."""
        rng = np.random.default_rng([self.seed, len(self._checks), 7])
        first, second = rng.random(2)
        cumulative = np.cumsum([stratum.probability for stratum in design.strata])
        stratum = int(np.searchsorted(cumulative / cumulative[-1], first, side="right"))
        members = np.flatnonzero(is_open & (model.strata == places[stratum]))
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
            value = self._goal_code(self._classes)
            wrong = ((codes == value) != (answers == value)) | (answers == SKIPPED)
        return np.asarray(wrong & (codes >= 0))

    def _is_wrong(self, check: Check, answers: Mapping[int, Answer]) -> bool:
        """Return whether the prediction of a check was wrong; True if it has no answer."""
        answer = answers.get(check.row)
        if answer is None:
            return True
        code = self._models[check.model].codes[check.row : check.row + 1]
        return bool(self._wrong(code, np.array([self._answer_code(answer)]))[0])

    def _earlier(self, answers: Mapping[int, Answer]) -> list[tuple[int, float, bool]]:
        """Return stratum, guess of the model and outcome of each answered check."""
        return [
            (
                check.places[check.stratum],
                check.design.strata[check.stratum].model_guess,
                self._is_wrong(check, answers),
            )
            for check in self._checks
            if check.row in answers
        ]

    def _evidence(self, answers: Mapping[int, Answer], current: Snapshot) -> tuple[Evidence, int]:
        """Return the checks seen from now, and the number of rows that the goal is about."""
        unanswered = self._open_mask(answers, ())
        weights = np.where(unanswered, self._weights(current.codes), 0.0)
        about = int(np.count_nonzero(unanswered & (current.codes >= 0)))
        changed_by_model = {
            number: current.codes != self._models[number].codes
            for number in {check.model for check in self._checks}
        }
        changed_cost = {
            number: float(weights[changed].sum()) for number, changed in changed_by_model.items()
        }
        suspects = np.flatnonzero((weights > 0) & self._ever_closed)
        rows = np.array(list(answers), dtype=np.intp)
        codes = np.array([self._answer_code(answers[row]) for row in rows.tolist()])
        costs = {
            number: self._weights(self._models[number].codes[rows])
            * self._wrong(self._models[number].codes[rows], codes)
            for number in changed_by_model
        }
        closed_cost = [
            float(
                weights[suspects][
                    ~check.was_open(suspects) & ~changed_by_model[check.model][suspects]
                ].sum()
            )
            if suspects.size
            else 0.0
            for check in self._checks
        ]
        checks = self._checks
        evidence = Evidence(
            rows=np.array([c.design.rows for c in checks], dtype=np.float64),
            estimates=np.array(
                [c.design.estimate(c.stratum, self._is_wrong(c, answers)) for c in checks]
            ),
            bets=np.array([c.design.bets for c in checks]).reshape(-1, 2),
            changed=np.array(
                [changed_cost[c.model] + e for c, e in zip(checks, closed_cost, strict=True)]
            ),
            known=np.array([float(costs[c.model][c.was_open(rows)].sum()) for c in checks]),
            total=float(weights.sum()),
        )
        return evidence, about

    def _allowed(self, answers: Mapping[int, Answer], current: Snapshot, rows: int) -> float | None:
        """Return the largest cost for which the goal is reached; None without a goal."""
        if self.goal.level is None:
            return None
        if self.goal.kind == "recall":
            unanswered = self._open_mask(answers, ())
            is_value = current.codes == self._goal_code(self._classes)
            rows = int(np.count_nonzero(unanswered & is_value))
        return (1.0 - self.goal.level) * rows

    def _hardest(
        self, predictions: Predictions, answers: Mapping[int, Answer], current: Snapshot
    ) -> tuple[tuple[Value, float], ...]:
        """Return the two predicted classes with the most expected errors."""
        guesses = recalibrated(current.guesses, earlier=self._earlier(answers))
        inside = self._open_mask(answers, ()) & (current.codes >= 0)
        if not inside.any():
            return ()
        expected = np.bincount(
            predictions.codes[inside],
            weights=guesses[current.strata[inside]],
            minlength=predictions.classes.size,
        )
        order = np.argsort(-expected, kind="stable")[:2]
        values = predictions.classes.tolist()
        total = expected.sum()
        return tuple((values[i], float(expected[i] / total)) for i in order.tolist())


@dataclass(frozen=True)
class Plan:
    """How the goal is expected to be reached soonest.

    Parameters
    ----------
    answers : int
        Expected number of answers.
    learn : bool
        Whether to learn from chosen rows first; otherwise to check the current predictions.
    """

    answers: int
    learn: bool


def goal_of(event: Mapping[str, Any]) -> Goal:
    """Return the goal of an event."""
    return Goal(
        level=event["level"],
        kind=event["kind"],
        value=event["class"],
        confidence=event["confidence"],
        risk=event["risk"],
    )


def _packed(values: NDArray[Any], before: NDArray[Any] | None) -> str:
    """Return an array as text: its difference to another, compressed."""
    change = values if before is None else values ^ before
    return base64.b64encode(zlib.compress(change.tobytes(), 6)).decode("ascii")


def _unpacked(text: str, before: NDArray[Any] | None, kind: Any) -> NDArray[Any]:
    """Return the array of a text of :func:`_packed`."""
    change = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)
    return change.copy() if before is None else change ^ before
