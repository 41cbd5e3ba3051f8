"""A labelling session without HTTP: questions, answers and predictions."""

from __future__ import annotations

import copy
import os
import threading
import time
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..csv_text import csv_text, escape_formulas
from ..errors import ConfidenceWarning, DegenerateProblemWarning, ScaleWarning, UnreachedWarning
from ..estimators import CommitteeClassifier, GraphOptions
from ..estimators.frames import adopt_encoder
from ..files import write_text
from ..notebook import card
from .accuracy import Estimate, Predictions, accuracy_interval
from .agreement import Agreement, measure_agreement
from .answers import Answer, AnswerHistory, Value, is_event, is_unicode, label_kind, plain_value
from .features import ScaledRows, fingerprint, given_labels, to_features
from .guarantee import Goal
from .journal import Journal
from .proof import EVENTS as PROOF_EVENTS
from .proof import RECONSIDER, Proof, Statement, goal_of
from .question_selector import CHECKS_FROM, QuestionSelector
from .session_certificate import make_certificate

Unseen: TypeAlias = tuple[NDArray[Any], NDArray[np.float64]]

# Up to this many rows, every change triggers a new fit, which takes a second or two. Predictions
# then depend on the labels only, not on their order. Beyond, labels are added to the last fit until
# their number has doubled.
FRESH_ROWS = 20_000
# Fewer answers do not give a useful interval.
FEWEST_ANSWERS = 10
# Time in seconds after which an unanswered check is shown to somebody else. Until it is answered,
# it counts as wrong, so it must not wait for somebody who has left.
CHECK_LEASE = 60.0
# Predictions are stable if this many new labels changed less than one percent of them.
SETTLE_LABELS = 20


@dataclass(frozen=True)
class _Lease:
    """A row reserved for an annotator: for whom, why, and until when."""

    annotator: str
    purpose: str
    until: float


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
        self._history = AnswerHistory(given)
        self._lock = threading.RLock()
        self._asking, self._fitting = threading.Lock(), threading.Lock()
        self.version = 0
        self.latest: Predictions | None = None
        # Out-of-sample predictions of labelled rows: held out, or made before the answer.
        self._unseen: dict[int, Unseen] = {}
        self._changed: float | None = None
        self._past: deque[tuple[int, NDArray[Any]]] = deque(maxlen=8)
        self._base: tuple[dict[int, Value], CommitteeClassifier] | None = None
        self.lease = float(lease)
        self._leases: dict[int, _Lease] = {}
        self.proof = Proof(self.n_rows, Goal(risk=risk), self.random_state)
        self._goal_is_logged = False
        self._events: list[dict[str, Any]] = []
        self._given = known
        self._held: Predictions | None = None  # as fitted, before later labels
        self._last_statement: tuple[Any, Statement] | None = None
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
        usable = True
        for event in events:
            do = event["do"]
            if do not in PROOF_EVENTS:
                self._history.apply(event)
                if do == "rename":
                    self.proof.rename(event["value"], event.get("to"))
                self._events.append(dict(event))
                continue
            try:
                if do == "goal":
                    self._follow_goal(goal_of(event))
                    self._goal_is_logged = usable = True
                elif usable:
                    self.proof.apply(event, self._history.answers)
            except (KeyError, TypeError, ValueError, IndexError, zlib.error):
                # A line that the proof needs is damaged. The answers are not affected; the proof
                # starts again.
                self.proof = Proof(self.n_rows, self.proof.goal, self.random_state)
                self._goal_is_logged = usable = False
                self._events = [e for e in self._events if e["do"] not in PROOF_EVENTS]
            if usable:
                self._events.append(dict(event))

    def _follow_goal(self, goal: Goal) -> None:
        """Continue the proof with a goal, or start a new one."""
        if self.proof.continues(goal):
            self.proof.goal = goal
        else:
            self.proof = Proof(self.n_rows, goal, self.random_state)

    def _set_goal(self, goal: float | Goal | None, risk: float) -> None:
        """Set the goal of this session."""
        if goal is None:
            return
        wanted = goal if isinstance(goal, Goal) else Goal(level=float(goal), risk=risk)
        if wanted != self.proof.goal:
            self._follow_goal(wanted)
            self._goal_is_logged = False

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
            answers, latest = dict(self._history.answers), self.latest
            key = (self.version, id(latest), len(self.proof.rows), self.goal)
            if self._last_statement is None or self._last_statement[0] != key:
                self._last_statement = (key, self.proof.statement(answers, latest))
            return self._last_statement[1]

    def _record(self, event: dict[str, Any]) -> None:
        """Log an event of the proof, then apply it."""
        if not self._goal_is_logged:
            self._goal_is_logged = True
            self._record(self.proof.goal_event())
        event = self._save(event)
        if event["do"] != "goal":
            self.proof.apply(event, self._history.answers)

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

        Another level of the same goal continues the proof. Any other change starts a new one, with
        a risk of its own.

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
            event = self.proof.check_event(is_open, answers, busy=busy)
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
                now, history = time.monotonic(), replace(self._history, answers=self.answers)
                self._leases = {
                    row: held
                    for row, held in self._leases.items()
                    if (row in self._history.answers) == (held.purpose == "second")
                    and (held.annotator == annotator or held.until > now)
                }
                leases = dict(self._leases)
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
                for row, purpose in asked:
                    lease = min(self.lease, CHECK_LEASE) if purpose == "check" else self.lease
                    self._leases[row] = _Lease(annotator, purpose, now + lease)
            return np.array([row for row, _ in asked], dtype=np.intp)

    def _second_opinion(self, annotator: str, leases: dict[int, _Lease]) -> list[tuple[int, str]]:
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
            row, value = self._row(row), self._value(value)
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
            rows, undone = self._history.undoable(annotator), self._history.undone.get(key)
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
                held = _Lease(annotator, purpose, time.monotonic() + self.lease)
                self._leases = {row: held, **self._leases}
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
        event = self._save(event)
        for row in self._history.apply(event):
            self._leases.pop(row, None)
        if event["do"] == "rename":
            self.proof.rename(event["value"], event["to"])
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
                labels, version = self._history.labels, self.version
                number = self._history.number
            if not labels:
                raise ValueError("no row has a label yet")
            current = self.latest
            if current is not None and current.version == version:
                return current
            if self.proof.holds and not self._release():
                self.latest = self._held_predictions(labels, version)
                return self.latest
            if current is None or current.version != version:
                if current is not None and current.classes.size > 1:
                    for row in labels.keys() - current.trained.keys():
                        self._unseen[row] = (current.classes, current.probabilities[row].copy())
                current = self._predict(labels, version)
                self._publish(current, number)
                most = len(labels) - SETTLE_LABELS
                earlier = [predicted for n_labels, predicted in self._past if n_labels <= most]
                if earlier:
                    self._changed = float(np.mean(earlier[-1] != current.labels))
                if not self._past or len(labels) >= self._past[-1][0] + SETTLE_LABELS // 2:
                    self._past.append((len(labels), current.labels))
            return current

    def _publish(self, predictions: Predictions, number: int) -> None:
        """Use new predictions; hold them fixed if checking them is expected to reach the goal."""
        with self._lock:
            self.latest = predictions
            answers = self._history.answers
            questions = sum(answer.purpose != "given" for answer in answers.values())
            if self.goal.level is None or predictions.classes.size < 2 or questions < CHECKS_FROM:
                return
            plan = self.proof.plan(predictions, answers)
            if plan is not None and not plan.learn:
                self._held = predictions
                self._record(self.proof.model_event(predictions, hold=True, at=number))

    def _release(self) -> bool:
        """Stop holding the predictions if a new fit is expected to reach the goal sooner."""
        with self._lock:
            answers, latest = self._history.answers, self.latest
            labels = sum(answer.value is not None for answer in answers.values())
            if latest is None or labels < RECONSIDER * self.proof.held_labels:
                return False
            if self.proof.statement(answers, latest, forecast=False).reached:
                return False
            plan = self.proof.plan(latest, answers)
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
        history = AnswerHistory({r: a for r, a in self.answers.items() if a.purpose == "given"})
        for event in self._events:
            if event["do"] not in PROOF_EVENTS and event["n"] <= self.proof.held_at:
                history.apply(event)
        fitted = self._predict(history.labels, -1)
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
            for unseen in [self._unseen_prediction(now, row)]
            if unseen is not None
        ]
        if len(known) < FEWEST_ANSWERS:
            return None
        right = np.array([a.value == classes[np.argmax(p)] for a, (classes, p) in known])
        check = np.array([answer.purpose == "check" for answer, _ in known])
        confidence = [p.max() for _, (_, p) in known]
        interval = accuracy_interval(now.histogram, confidence, right, check)
        counts = len(known), int(check.sum()), int(right[check].sum())
        settled = self._changed is not None and self._changed <= 0.01
        return Estimate(*interval, *counts, self._changed, settled)

    def _unseen_prediction(self, now: Predictions, row: int) -> Unseen | None:
        """Return the classes and probabilities of a model fitted without the label of a row."""
        if row not in now.trained:
            return now.classes, now.probabilities[row]
        return self._unseen.get(row)

    def suspicious(self) -> list[tuple[int, Value, float]]:
        """List labels that look wrong, the most suspicious first.

        Returns
        -------
        list of (int, value, float)
            Row, class predicted by a model fitted without this label, and its probability, for
            rows where the class differs from the label.
        """
        now = self.latest
        if now is None:
            return []
        found = []
        for row, value in self.labels.items():
            classes, p = self._unseen_prediction(now, row) or (now.classes, np.zeros(0))
            if p.size and classes[np.argmax(p)] != value:
                best = int(np.argmax(p))
                odds = (p[classes == value].sum() + 1e-6) / p[best]
                found.append((float(odds), row, classes.tolist()[best], float(p[best])))
        return [(row, value, p) for _, row, value, p in sorted(found, key=lambda f: f[:2])]

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
        latest, model = self.latest, None
        if latest is not None and latest.trained == labels and self.n_rows <= FRESH_ROWS:
            model = copy.copy(latest.model)
        model = model or self._fit(labels)
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
        n, answers, latest = self.n_rows, self._history.answers.copy(), self.latest
        found = [answers.get(row, Answer(None, "")) for row in range(n)]
        given, skipped = [answer.value for answer in found], self.skipped
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

    def _fit(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Fit a new classifier to labels of at least two classes."""
        y = np.full(self.n_rows, None, dtype=object)
        for row, value in labels.items():
            y[row] = value
        model: CommitteeClassifier = clone(self.estimator).set_params(unlabeled=None)
        with warnings.catch_warnings():
            for category in (UnreachedWarning, DegenerateProblemWarning, ScaleWarning):
                warnings.simplefilter("ignore", category)
            warnings.simplefilter("ignore", ConfidenceWarning)  # accuracy is estimated separately
            return model.fit(self.X, y)

    def _updated(self, labels: Mapping[int, Value]) -> CommitteeClassifier:
        """Return a new fit, or the last one with the new labels added."""
        if self.n_rows <= FRESH_ROWS:
            return self._fit(labels)
        if self._base is not None:
            known, base = self._base
            changed = {row: value for row, value in labels.items() if known.get(row) != value}
            gone = {row: None for row in known if row not in labels}
            few = len(known) / 2 <= len(labels) <= 2 * len(known)
            if few and set(labels.values()) <= set(base.classes_.tolist()):
                model = copy.copy(base)
                model.add_labels([*changed, *gone], [*changed.values(), *gone.values()])
                return model
        model = self._fit(labels)
        self._base = (dict(labels), model)
        return model

    def _predict(self, labels: Mapping[int, Value], version: int) -> Predictions:
        """Predict all rows from these labels."""
        n = self.n_rows
        classes = np.unique(np.array(list(labels.values())))
        if classes.size == 1:
            codes = np.zeros(n, dtype=np.intp)
            return Predictions(version, classes, codes, np.ones((n, 1)), labels)
        model = self._updated(labels)
        ensemble = model.ensemble_
        codes = np.searchsorted(model.classes_, model.transduction_)
        found = ensemble.left_out()
        if found is not None:
            held_out = zip(found[0].tolist(), ensemble.probabilities(found[1]), strict=True)
            self._unseen |= {row: (model.classes_, p) for row, p in held_out}
        return Predictions(version, model.classes_, codes, ensemble.probabilities(), labels, model)

    def __enter__(self) -> LabelingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
