"""A labelling session without HTTP: questions, answers and predictions."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..csv_text import csv_text, escape_formulas
from ..estimators import CommitteeClassifier, GraphOptions
from ..estimators.frames import adopt_encoder
from ..estimators.guesses import as_guess_columns
from ..files import write_text
from ..notebook import card
from .accuracy import Estimate, Predictions, accuracy_interval
from .agreement import Agreement, measure_agreement
from .answers import Answer, AnswerHistory, Value, is_event, is_unicode, label_kind, plain_value
from .features import ScaledRows, fingerprint, given_labels, to_features
from .forecast import RECONSIDER, make_plan, with_forecast
from .goal import Goal
from .guesses import GuessReport, guess_report
from .journal import Journal
from .leases import Lease, Leases
from .ledger import Ledger
from .predictor import Predictor, Stability
from .proof import EVENTS as PROOF_EVENTS
from .proof import Proof
from .question_selector import CHECKS_FROM, QuestionSelector
from .session_certificate import make_certificate
from .statement import Statement

# Fewer answers do not give a useful interval.
FEWEST_ANSWERS = 10


def _whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return an integer; other types and values outside the limits raise ValueError."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}={value!r} must be an integer {limits}")
    return int(value)


class LabelingSession:
    """Collect labels one by one, and predict a label for every row at any time.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        The data.
    y : array-like of shape (n_rows,), optional
        Known labels; None, NaN, -1 and empty text are unknown.
    random_state : int, default=0
        Random seed.
    log : path-like, optional
        File to which every answer is appended and synced before the call returns. If the file
        exists, the session continues where it stopped.
    rescale : {"minmax", "standard"} or None, default="minmax"
        Scaling of the columns of an array. Data frames are encoded as by ``gdpa fit``.
    estimator : CommitteeClassifier, optional
        The classifier; :class:`~gdpa.CommitteeClassifier` by default.
    lease : float, default=600
        Time in seconds for which a row is reserved for the annotator who was asked.
    overlap : float, default=0
        Share of the answered rows that a second annotator is asked, too.
    goal : float or Goal, optional
        The accuracy to prove, such as 0.9, or another :class:`~gdpa.labeling.Goal`. Questions are
        then chosen so that it is proved soon; see :meth:`statement`. By default, the goal in the
        log, or none.
    risk : float, default=0.05
        Probability that any statement of the session is wrong; not used if goal is a Goal.
    guesses : data frame, mapping of str to sequence, or sequence, optional
        Guesses of the labels, one or several columns: of a language model, a rule or an older
        model. They are not labels: their weight in the predictions is learned from held-out
        labels. See :meth:`guess_reports`.
    repair : bool, default=False
        Whether to read a log of an earlier release whose first line, which says to which data it
        belongs, is damaged.

    Attributes
    ----------
    version : int
        Number of changes so far.
    latest : Predictions or None
        The latest predictions, which may not include the last labels; None before the first fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa import LabelingSession
    >>> X = np.r_[np.random.default_rng(0).normal(0, 1, (50, 2)),
    ...           np.random.default_rng(1).normal(9, 1, (50, 2))]
    >>> session = LabelingSession(X)
    >>> for _ in range(4):
    ...     row = session.next()[0]
    ...     session.label(row, "low" if row < 50 else "high")
    >>> np.unique(session.predictions(), return_counts=True)[1].tolist()
    [50, 50]
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        random_state: int = 0,
        log: str | os.PathLike[str] | None = None,
        rescale: str | None = "minmax",
        estimator: Any = None,
        lease: float = 600.0,
        overlap: float = 0.0,
        goal: float | Goal | None = None,
        risk: float = 0.05,
        guesses: Any = None,
        repair: bool = False,
    ) -> None:
        self.random_state = _whole("random_state", random_state, 0)
        if rescale not in ("minmax", "standard", None):
            raise ValueError(f"rescale={rescale!r}; accepted: minmax, standard, None")
        if not 0.0 <= overlap <= 1.0:
            raise ValueError(f"overlap={overlap!r} must be from 0 to 1")
        self.overlap = float(overlap)
        features, encoder = to_features(X)
        self.rescale = None if encoder is not None else rescale
        known = given_labels(y, features.shape[0])
        if estimator is None:
            # Shifting sparse columns would make them dense.
            scale: Any = None if sp.issparse(features) else self.rescale
            estimator = CommitteeClassifier(
                options=GraphOptions(rescale=scale), random_state=self.random_state, n_jobs=-1
            )
        given = {row: Answer(value, "given") for row, value in known.items()}
        self.X = features
        self.n_rows: int = features.shape[0]
        self.encoder = encoder
        self.estimator: CommitteeClassifier = estimator
        self._ledger = Ledger(self.n_rows, given, Goal(risk=risk), self.random_state)
        self._events: list[dict[str, Any]] = []
        self._given = known
        self._lock = threading.RLock()
        self._asking = threading.Lock()
        self._fitting = threading.Lock()
        self._leases = Leases(float(lease))
        self.version = 0
        self.latest: Predictions | None = None
        self.guesses = as_guess_columns(guesses, self.n_rows)
        self._predictor = Predictor(self.X, self.estimator, self.guesses)
        self._stability = Stability()
        self._held: Predictions | None = None  # as fitted, before later labels
        self._last_statement: tuple[Predictions | None, Any, Statement] | None = None
        self._check_kinds()
        self.points = ScaledRows(self.X, as_is=self.rescale is None)
        self._journal: Journal | None = None
        if log is not None:
            self._journal = Journal(log, self._about(), accepts=self._is_event, trust_data=repair)
            self._replay(self._journal.events)
            self._check_kinds()
        self._set_goal(goal, risk)
        self._selector = QuestionSelector(self.points, self.random_state)

    def _is_event(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event of a log is one of this session."""
        return event.get("do") in PROOF_EVENTS or is_event(event, self.n_rows)

    def _replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Restore answers and proof from the events of a log."""
        damaged = False
        for event in events:
            do = event["do"]
            if damaged and do in PROOF_EVENTS and do != "goal":
                continue
            try:
                self._ledger.apply(event)
                damaged = damaged and do != "goal"
            except (KeyError, TypeError, ValueError, IndexError, zlib.error):
                if do not in PROOF_EVENTS:
                    raise
                # A line that the proof needs is damaged. The answers are not affected; the proof
                # starts again.
                self._ledger.forget_checks()
                self._events = [e for e in self._events if e["do"] not in PROOF_EVENTS]
                damaged = True
                continue
            self._events.append(dict(event))

    def _set_goal(self, goal: float | Goal | None, risk: float) -> None:
        """Set the goal of this session."""
        if goal is None:
            return
        wanted = goal if isinstance(goal, Goal) else Goal(level=float(goal), risk=risk)
        if wanted != self.goal:
            self._ledger.set_goal(wanted)

    @property
    def proof(self) -> Proof:
        """The random checks so far, and what they prove."""
        return self._ledger.proof

    @property
    def _history(self) -> AnswerHistory:
        """The answers so far."""
        return self._ledger.history

    @property
    def goal(self) -> Goal:
        """What is to be proved."""
        return self.proof.goal

    def statement(self, *, refresh: bool = True) -> Statement:
        """Return what the random checks prove about the predictions of the unlabelled rows.

        Parameters
        ----------
        refresh : bool, default=True
            Whether to update the predictions first.

        Returns
        -------
        Statement
            The proved share, whether the goal is reached, and how many more answers it may take.
            Its ``text`` is the sentence that the page and the report show.
        """
        if refresh and self.labels:
            self.refresh()
        with self._lock:
            answers = dict(self._history.answers)
            latest = self.latest
            proof = self.proof
            key = (self.version, len(proof.rows), self.goal)
            last = self._last_statement
            if last is not None and last[0] is latest and last[1] == key:
                return last[2]
            found = proof.statement(answers, latest)
            if latest is not None and proof.rows and latest.classes.size > 1:
                found = with_forecast(found, proof, latest, answers)
            self._last_statement = (latest, key, found)
            return found

    def guess_reports(self) -> list[GuessReport]:
        """Return how good the columns of guesses turned out to be, from the random checks.

        Returns
        -------
        list of GuessReport
            The answered checks, how many were guessed right, and the share that is proved. Each
            statement has the risk of the goal for itself.
        """
        with self._lock:
            answers = dict(self._history.answers)
            weights = self._predictor.guess_weights
            return [
                guess_report(
                    column, self.proof, answers, name_now=self._ledger.name_now, weight=weight
                )
                for column, weight in zip(self.guesses, weights, strict=True)
            ]

    def _record(self, event: dict[str, Any]) -> None:
        """Log an event of the proof, then apply it."""
        self._log_goal()
        self._ledger.apply(self._save(event))

    def _log_goal(self) -> None:
        """Log the goal before the first event of its proof."""
        if not self._ledger.started:
            self._ledger.apply(self._save(self.proof.goal_event()))

    @property
    def _next_number(self) -> int:
        """Number of the next event."""
        return len(self._events) + 1 if self._journal is None else self._journal.next_number

    def _save(self, event: dict[str, Any]) -> dict[str, Any]:
        """Write an event to the log, if there is one; return it with its number."""
        if self._journal is not None:
            event = self._journal.write(event)
        else:
            event = {**event, "n": len(self._events) + 1}
        self._events.append(event)
        return event

    def set_goal(self, goal: float | Goal, *, risk: float | None = None) -> None:
        """Set what is to be proved.

        Another level or risk continues the proof. Any other change starts a new one with what is
        left of the risk, so that all statements of the session together keep it.

        Parameters
        ----------
        goal : float or Goal
            The accuracy to prove, or another goal.
        risk : float, optional
            Probability that a statement is wrong; by default, as before.
        """
        with self._fitting, self._lock:
            self._set_goal(goal, self.goal.risk if risk is None else risk)
            if not self.proof.holds:
                self._held = None
            self.version += 1

    def certificate(self, *, refresh: bool = True) -> dict[str, Any]:
        """Return the certificate of the session, which ``gdpa verify-session`` checks.

        Parameters
        ----------
        refresh : bool, default=True
            Whether to update the predictions first.

        Returns
        -------
        dict
            Plain data: goal, seed, all answers, the predictions and probabilities recorded before
            each random check, the sequence of proved shares, and the statement.
        """
        if refresh and self.labels:
            self.refresh()
        with self._lock:
            latest = self.latest
            if latest is None or not self.proof.rows:
                raise ValueError("a certificate needs at least one random check of a prediction")
            self._log_goal()
            final = self.proof.model_event(latest, hold=self.proof.holds, at=self._history.number)
            return make_certificate(
                about=self._about(), given=self._given, events=self._events, final=final
            )

    def _about(self) -> dict[str, Any]:
        """Return the values that identify the data."""
        return {"rows": self.n_rows, "data": fingerprint(self.X), "seed": self.random_state}

    def _draw_check(self, is_open: NDArray[np.bool_]) -> int | None:
        """Draw a random check, and log its probabilities and the prediction before it is asked."""
        level = self.goal.level
        if self._selector.waits and level is not None and self.labels:
            self.refresh()
        with self._lock:
            latest = self.latest
            if latest is None or latest.classes.size < 2:
                return None
            answers = self._history.answers
            is_open = is_open.copy()
            is_open[list(answers)] = False  # answered while the question was chosen
            unanswered = np.ones(self.n_rows, dtype=bool)
            unanswered[list(answers)] = False
            busy = np.flatnonzero(unanswered & ~is_open).tolist()
            if not self.proof.is_current(latest, unanswered):
                number = self._history.number
                self._record(self.proof.model_event(latest, hold=self.proof.holds, at=number))
            self._log_goal()
            n = self._next_number
            event = self.proof.check_event(is_open, answers, busy=busy, n=n)
            if event is None:
                return None
            self._record(event)
            return int(event["row"])

    @property
    def log_notes(self) -> list[str]:
        """Messages about the log: damaged lines, which are not used, and where they are kept."""
        return [] if self._journal is None else list(self._journal.notes)

    def repair_log(self) -> Path | None:
        """Write the undamaged lines of the log to a new file, and keep the old one beside it.

        Returns
        -------
        Path or None
            The old log; None if the session has no log or nothing is damaged.
        """
        with self._lock:
            return None if self._journal is None else self._journal.repair()

    @property
    def answers(self) -> dict[int, Answer]:
        """Answers by row: label or skip, purpose of the question, and annotator."""
        with self._lock:
            return dict(self._history.answers)

    def _facts(self) -> list[tuple[str, str]]:
        """Return the names and values to display."""
        counts = Counter(map(str, self.labels.values())).most_common(8)
        classes = ", ".join(f"{name} {n:,}" for name, n in counts) or "none yet"
        facts = {"rows": self.n_rows, "labelled": len(self.labels), "skipped": len(self.skipped)}
        return [*((name, f"{n:,}") for name, n in facts.items()), ("classes", classes)]

    def __repr__(self) -> str:
        return f"LabelingSession({'; '.join(f'{name}: {value}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return card("LabelingSession", self._facts())

    def class_order(self) -> list[Value]:
        """Return the classes in order of first appearance, after the sorted initial classes."""
        with self._lock:
            return list(self._history.classes)

    def _check_kinds(self) -> None:
        """Raise ValueError if labels have different types."""
        kinds = {label_kind(v) for v in self._history.labels.values()}
        if len(kinds) > 1:
            raise ValueError(f"labels have several types: {', '.join(sorted(kinds))}")

    def _row(self, row: Any) -> int:
        """Return a valid row number."""
        return _whole("row", row, 0, self.n_rows - 1)

    def next(self, n: int = 1, *, annotator: str = "") -> NDArray[np.intp]:
        """Return the rows to label next.

        Rows that this annotator has been asked but not answered come first. Rows reserved for
        other annotators are excluded.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        annotator : str, default=""
            Name of the annotator.

        Returns
        -------
        ndarray of int
            Row numbers; fewer than n if not enough rows are left.
        """
        n = _whole("n", n, 1)
        with self._asking:  # answers are saved, and read, while a question is chosen
            with self._lock:
                history = replace(self._history, answers=self.answers)
                self._leases.drop_expired(history.answers, annotator)
                leases = self._leases.current()
            mine = [(r, held.purpose) for r, held in leases.items() if held.annotator == annotator]
            asked = mine[:n]
            # Checks that were drawn for somebody who did not answer.
            waiting = [r for r in self.proof.open_checks(history.answers) if r not in leases]
            asked += [(row, "check") for row in waiting[: n - len(asked)]]
            if len(asked) < n:
                asked += self._second_opinion(annotator, leases)
            if len(asked) < n:
                busy = {r: held.purpose for r, held in leases.items() if held.purpose != "second"}
                busy |= dict.fromkeys(waiting, "check")
                asked += self._selector.select(
                    n - len(asked),
                    history,
                    busy,
                    draw=self._draw_check,
                    checks_only=self.proof.holds,
                )
            with self._lock:
                self._leases.reserve(asked, annotator)
            return np.array([row for row, _ in asked], dtype=np.intp)

    def _second_opinion(self, annotator: str, leases: Mapping[int, Lease]) -> list[tuple[int, str]]:
        """Return a random row answered by another annotator, if a second opinion is due."""
        answers = {row: a for row, a in self.answers.items() if a.opinions}
        asked = sum(len(a.opinions) > 1 for a in answers.values())
        asked += sum(held.purpose == "second" for held in leases.values())
        if asked >= int(self.overlap * len(answers)):
            return []
        free = [
            row
            for row, a in sorted(answers.items())
            if len(a.opinions) == 1 and a.by != annotator and row not in leases
        ]
        rng = np.random.default_rng([self.random_state, asked, 4])
        return [(int(rng.choice(free)), "second")] if free else []

    def label(self, row: Any, value: Any, *, annotator: str = "") -> None:
        """Set or change the label of a row.

        Parameters
        ----------
        row : int
            The row.
        value : str, int, float or bool
            The class, text or an integer; an unknown one creates a new class.
        annotator : str, default=""
            Name of the annotator.
        """
        with self._lock:
            row = self._row(row)
            value = self._value(value)
            self._write({"do": "label", "row": row, "value": value}, annotator)

    def _value(self, value: Any) -> Value:
        """Return a label; a type different from the other labels raises ValueError."""
        label = plain_value(value)
        other = next(iter(self._history.labels.values()), label)
        if label_kind(other) != label_kind(label):
            raise ValueError(
                f"value={value!r} is a {label_kind(label)}; the other labels are "
                f"{label_kind(other)}s like {other!r}"
            )
        return label

    def label_many(self, rows: Iterable[Any], value: Any, *, annotator: str = "") -> None:
        """Give several rows the same label; one :meth:`undo` reverts them all.

        Parameters
        ----------
        rows : iterable of int
            The rows.
        value : str, int, float or bool
            The class.
        annotator : str, default=""
            Name of the annotator.
        """
        wanted = sorted({self._row(row) for row in rows})
        if not wanted:
            raise ValueError("rows is empty")
        with self._lock:
            event = {"do": "bulk", "rows": wanted, "value": self._value(value)}
            self._write(event, annotator)

    def disagreements(self) -> list[int]:
        """Return the rows with unresolved disagreements between annotators."""
        return [row for row, answer in self.answers.items() if answer.disputed]

    def agreement(self) -> Agreement | None:
        """Return Fleiss' kappa on rows with two annotators, or None if there are fewer than two."""
        pairs = [a.opinions[:2] for a in self.answers.values() if len(a.opinions) > 1]
        return measure_agreement([(one[1], two[1]) for one, two in pairs])

    def rename_class(self, value: Any, to: Any, *, annotator: str = "") -> None:
        """Rename a class, merge it with another, or delete it with its labels.

        Parameters
        ----------
        value : str, int, float or bool
            The class.
        to : str, int, float, bool or None
            The new name. An existing name merges the two classes. None deletes the class and its
            labels; its rows may be asked again.
        annotator : str, default=""
            Name of the annotator, who can :meth:`undo` the change.
        """
        with self._lock:
            value = plain_value(value)
            if value not in self._history.labels.values():
                raise ValueError(f"value={value!r} is not a class with labels")
            to = None if to is None else self._value(to)
            self._write({"do": "rename", "value": value, "to": to}, annotator)

    def skip(self, row: Any, *, annotator: str = "") -> None:
        """Skip a row that cannot be labelled; it will not be asked again.

        Parameters
        ----------
        row : int
            The row. Its label, if any, is removed.
        annotator : str, default=""
            Name of the annotator.
        """
        with self._lock:
            self._write({"do": "skip", "row": self._row(row)}, annotator)

    def remove(self, row: Any, *, annotator: str = "") -> None:
        """Remove a label or a skip; the row may be asked again.

        Parameters
        ----------
        row : int
            The row.
        annotator : str, default=""
            Name of the annotator.
        """
        row = self._row(row)
        with self._lock:
            if row not in self._history.answers:
                raise ValueError(f"row={row!r} has neither a label nor a skip")
            self._write({"do": "remove", "row": row}, annotator)

    def undo(self, *, annotator: str = "", key: str = "") -> int | None:
        """Undo the last answer or change of an annotator; a single row is asked again.

        Parameters
        ----------
        annotator : str, default=""
            Name of the annotator.
        key : str, default=""
            Identifies the request. An undo with the key of an earlier one changes nothing.

        Returns
        -------
        int or None
            The row, or the first of several; None if there is nothing to undo.
        """
        with self._lock:
            rows = self._history.undoable(annotator)
            undone = self._history.undone.get(key)
            if undone is not None or not rows:
                return undone
            row = rows[0]
            before = self._history.answers.get(row)
            event: dict[str, Any] = {"do": "undo", "of": self._history.undo_target(annotator)}
            self._write(event | ({"key": key} if key else {}), annotator)
            now = self._history.answers.get(row)
            purpose = "own" if before is None else before.purpose
            if before is not None and now is not None and len(now.opinions) < len(before.opinions):
                purpose = "second"
            if len(rows) == 1 and (now is None or purpose == "second"):
                self._leases.put_first(row, purpose, annotator)
            return row

    def undoable(self, annotator: str = "") -> list[int]:
        """Return the rows that an undo by this annotator would change."""
        with self._lock:
            return self._history.undoable(annotator)

    def _write(self, event: dict[str, Any], annotator: str) -> None:
        """Log an event, then apply it."""
        if not isinstance(annotator, str) or not is_unicode(annotator):
            raise ValueError(f"annotator={annotator!r} must be valid Unicode text")
        if event["do"] in ("label", "skip"):
            held = self._leases.get(event["row"])
            event["purpose"] = "own" if held is None else held.purpose
            if event["purpose"] == "second":
                known = event["row"] in self._history.answers
                mine = known and held is not None and held.annotator == annotator
                event |= {"do": "second" if mine else event["do"], "purpose": "own"}
        event |= {"by": annotator, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        for row in self._ledger.apply(self._save(event)):
            self._leases.release(row)
        if not self.proof.holds:
            self._held = None
        elif event["do"] == "rename" and self._held is not None:
            self._held = self._held.renamed(event["value"], event["to"])
        self.version += 1

    def in_background(self) -> None:
        """Ask questions without waiting for new uncertainties; a thread calls :meth:`follow`."""
        self._selector.waits = False

    def follow(self) -> None:
        """Update the uncertainties that are used to choose questions."""
        self._selector.update(AnswerHistory(self.answers))

    @property
    def labels(self) -> dict[int, Value]:
        """All labels by row, in the order of their last change."""
        with self._lock:
            return self._history.labels

    @property
    def skipped(self) -> set[int]:
        """Rows that were skipped."""
        with self._lock:
            return self._history.skipped

    @property
    def classes(self) -> list[Value]:
        """The classes so far, sorted."""
        return sorted(set(self.labels.values()))

    def refresh(self) -> Predictions:
        """Update the classifier to the current labels.

        Returns
        -------
        Predictions
            The predictions; also in :attr:`latest`.
        """
        with self._fitting:
            with self._lock:
                labels = self._history.labels
                version = self.version
                number = self._history.number
            if not labels:
                raise ValueError("no row has a label yet")
            current = self.latest
            if current is not None and current.version == version:
                return current
            if self.proof.holds and not self._release():
                self.latest = self._held_predictions(labels, version)
                return self.latest
            if current is not None:
                self._predictor.remember(current, labels)
            current = self._predictor.predict(labels, version)
            self._publish(current, number)
            self._stability.follow(len(labels), current.labels)
            return current

    def _publish(self, predictions: Predictions, number: int) -> None:
        """Use new predictions; hold them fixed if checking them is expected to reach the goal."""
        with self._lock:
            self.latest = predictions
            answers = self._history.answers
            questions = sum(answer.purpose != "given" for answer in answers.values())
            if self.goal.level is None or predictions.classes.size < 2 or questions < CHECKS_FROM:
                return
            plan = make_plan(self.proof, predictions, answers)
            if plan is not None and not plan.learn:
                self._held = predictions
                self._record(self.proof.model_event(predictions, hold=True, at=number))

    def _release(self) -> bool:
        """Stop holding the predictions if a new fit is expected to reach the goal sooner."""
        with self._lock:
            answers = self._history.answers
            latest = self.latest
            labels = sum(answer.value is not None for answer in answers.values())
            if latest is None or labels < RECONSIDER * self.proof.held_labels:
                return False
            if self.proof.statement(answers, latest).reached:
                return False
            plan = make_plan(self.proof, latest, answers)
            if plan is not None and not plan.learn:
                return False
            self._record({"do": "release"})
            self._held = None
            return True

    def _held_predictions(self, labels: Mapping[int, Value], version: int) -> Predictions:
        """Return the held predictions, with the labels that are known now."""
        if self._held is None:
            self._held = self._restored()
        held = self._held
        classes = np.unique(np.array([*held.classes.tolist(), *labels.values()]))
        place = np.searchsorted(classes, held.classes)
        probabilities = np.zeros((self.n_rows, classes.size))
        probabilities[:, place] = held.probabilities
        codes = place[held.codes]
        rows = np.array(list(labels), dtype=np.intp)
        codes[rows] = np.searchsorted(classes, np.array(list(labels.values())))
        return Predictions(version, classes, codes, probabilities, held.trained, held.model)

    def _restored(self) -> Predictions:
        """Return the held predictions after a restart."""
        history = AnswerHistory({r: Answer(v, "given") for r, v in self._given.items()})
        renames: list[tuple[Value, Value]] = []
        for event in self._events:
            if event["do"] in PROOF_EVENTS:
                continue
            if event["n"] <= self.proof.held_at:
                history.apply(event)
            elif event["do"] == "rename":
                renames.append((event["value"], event["to"]))
        fitted = self._predictor.predict(history.labels, -1)
        for value, to in renames:
            fitted = fitted.renamed(value, to)
        # The log decides, in case that another version of a library fits differently.
        codes = fitted.codes.copy()
        place = {value: i for i, value in enumerate(fitted.classes.tolist())}
        for row, value in self.proof.held_values().items():
            codes[row] = place.get(value, codes[row])
        return replace(fitted, codes=codes)

    def predictions(self) -> NDArray[Any]:
        """Return a label for every row; known labels are kept.

        Returns
        -------
        ndarray of shape (n_rows,)
            The labels.

        Raises
        ------
        ValueError
            If no row has a label yet.
        """
        return self.refresh().labels

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probabilities of the classes for every row.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of :attr:`classes`.
        """
        return self.refresh().probabilities

    def estimate(self, *, refresh: bool = True) -> Estimate | None:
        """Estimate the accuracy on the unlabelled rows.

        Parameters
        ----------
        refresh : bool, default=True
            Whether to update the classifier first. Otherwise the accuracy of the latest
            predictions is estimated. All answers are used in either case.

        Returns
        -------
        Estimate or None
            Accuracy with a 90 % interval; None if there are fewer than two classes, or fewer than
            ten answers with an out-of-sample prediction.
        """
        with self._lock:
            answers = dict(self._history.answers)
        if refresh and any(a.value is not None for a in answers.values()):
            self.refresh()
        now = self.latest
        if now is None or now.classes.size < 2:
            return None
        known = [
            (answer, unseen)
            for row, answer in answers.items()
            if answer.value is not None and answer.purpose in ("check", "choice")
            for unseen in [self._predictor.unseen(now, row)]
            if unseen is not None
        ]
        if len(known) < FEWEST_ANSWERS:
            return None
        right = np.array([a.value == classes[np.argmax(p)] for a, (classes, p) in known])
        check = np.array([answer.purpose == "check" for answer, _ in known])
        confidence = [p.max() for _, (_, p) in known]
        interval = accuracy_interval(now.histogram, confidence, right, check)
        counts = len(known), int(check.sum()), int(right[check].sum())
        stability = self._stability
        return Estimate(*interval, *counts, stability.changed, stability.settled, stability.since)

    def suspicious(self) -> list[tuple[int, Value, float]]:
        """List labels that look wrong, the most suspicious first.

        Returns
        -------
        list of (int, value, float)
            Row, class predicted by a model fitted without this label, and its probability, for
            rows where the class differs from the label.
        """
        now = self.latest
        return [] if now is None else self._predictor.suspicious(now, self.labels)

    def classifier(self) -> CommitteeClassifier:
        """Return the classifier fitted to the labels so far.

        Returns
        -------
        CommitteeClassifier
            The fitted classifier. At least two classes are needed.
        """
        labels = self.labels
        if len(set(labels.values())) < 2:
            raise ValueError(f"a classifier needs two classes; the labels have {self.classes!r}")
        model = self._predictor.classifier(labels, self.latest)
        if self.encoder is not None:
            adopt_encoder(model, self.encoder)
        return model

    def save(self, path: str | os.PathLike[str], *, escape: bool = False) -> Path:
        """Save the predictions or the classifier.

        Parameters
        ----------
        path : path-like
            The file. With the extension ".csv", a table is written: row, label, label_predicted,
            label_probability, label_skipped. With any other, the classifier is written, for
            :meth:`gdpa.CommitteeClassifier.load`.
        escape : bool, default=False
            Whether to put an apostrophe before labels that a spreadsheet would run as formulas.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.suffix.lower() == ".csv":
            if self.labels:
                self.refresh()
            columns = {"row": range(1, self.n_rows + 1), **self.columns("label")}
            cells = [escape_formulas(c) if escape else c for c in columns.values()]
            write_text(target, csv_text(list(columns), cells))
            return target
        return self.classifier().save(target)

    def columns(self, target: str, *, who: bool = False) -> dict[str, list[Any]]:
        """Return labels and predictions as columns of a table, None where missing.

        Parameters
        ----------
        target : str
            Name of the column with the labels, and prefix of the others.
        who : bool, default=False
            Whether to add who answered, when, and the answers of each annotator.

        Returns
        -------
        dict
            Names and cells. The latest predictions are used, which may not include the last
            answers; labelled rows keep their label.
        """
        n = self.n_rows
        answers = self._history.answers.copy()
        latest = self.latest
        found = [answers.get(row, Answer(None, "")) for row in range(n)]
        given = [answer.value for answer in found]
        skipped = self.skipped
        guess: list[Any] = [None] * n
        sure: list[Any] = [None] * n
        if latest is not None:
            known = np.array([value is not None for value in given])
            pairs = zip(given, latest.labels.tolist(), strict=True)
            guess = [model if value is None else value for value, model in pairs]
            sure = np.where(known, 1.0, np.round(latest.confidence, 4)).tolist()
        columns: dict[str, list[Any]] = {
            target: given,
            f"{target}_predicted": guess,
            f"{target}_probability": sure,
            f"{target}_skipped": ["yes" if row in skipped else None for row in range(n)],
        }
        if who:
            columns[f"{target}_by"] = [answer.by or None for answer in found]
            columns[f"{target}_at"] = [answer.at or None for answer in found]
            for name in sorted({name for answer in found for name, _ in answer.opinions}):
                column = [dict(answer.opinions).get(name) for answer in found]
                columns[f"{target}_by_{name or 'unnamed'}"] = column
        return columns

    def __enter__(self) -> LabelingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
