"""A labelling session without HTTP: questions, answers and predictions."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..notebook import card
from .answers import Answer, AnswerHistory, Value, is_unicode, label_kind, plain_value
from .features import ScaledRows, fingerprint, given_labels, to_features
from .journal import Journal
from .question_selector import QuestionSelector
from .session_model import SessionModel

__all__ = ["LabelingSession"]


@dataclass(frozen=True)
class _Lease:
    """A row that an annotator was asked: by whom, why, and until when it is reserved."""

    annotator: str
    purpose: str
    until: float


def _whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return a whole number; anything else, or one outside the limits, raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name}={value!r} must be a whole number")
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}={value!r} must be {limits}")
    return int(value)


class LabelingSession(SessionModel):
    """Ask for labels one by one, and predict a label for every row at any time.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        The data.
    y : array-like of shape (n_rows,), optional
        Labels that are known already; None, NaN, -1 and empty text are unknown.
    random_state : int, default=0
        Random seed.
    log : path-like, optional
        File to which every answer is appended, on disk before the call returns. If the file
        exists the session continues where it stopped.
    rescale : {"minmax", "standard"} or None, default="minmax"
        Scale of the columns of an array; data frames are encoded as ``gdpa fit`` does.
    estimator : CommitteeClassifier, optional
        What classifies the rows; :class:`~gdpa.CommitteeClassifier` by default.
    lease : float, default=600
        Seconds for which a row that one annotator was asked is reserved for them.

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
    ) -> None:
        self.random_state = _whole("random_state", random_state, 0)
        if rescale not in ("minmax", "standard", None):
            raise ValueError(f"rescale={rescale!r}; accepted: minmax, standard, None")
        features, encoder = to_features(X)
        self.rescale = None if encoder is not None else rescale
        known = given_labels(y, features.shape[0])
        super().__init__(
            features,
            AnswerHistory({row: Answer(value, "given") for row, value in known.items()}),
            encoder,
            estimator=estimator,
            rescale=self.rescale,
            random_state=self.random_state,
        )
        self.lease = float(lease)
        self._leases: dict[int, _Lease] = {}
        self._check_kinds()
        self._journal: Journal | None = None
        if log is not None:
            about = {"rows": self.n_rows, "data": fingerprint(self.X), "seed": self.random_state}
            self._journal = Journal(log, about)
            self._history.replay(self._journal.events, self.n_rows)
            self._check_kinds()
        self.points = ScaledRows(self.X, as_is=self.rescale is None)
        self._selector = QuestionSelector(self.points, self.random_state)

    @property
    def answers(self) -> dict[int, Answer]:
        """Rows with a label or a skip, why they were asked, and who answered."""
        with self._lock:
            return dict(self._history.answers)

    def _facts(self) -> list[tuple[str, str]]:
        counts = Counter(map(str, self.labels.values())).most_common(8)
        classes = ", ".join(f"{name} {n:,}" for name, n in counts) or "none yet"
        facts = {"rows": self.n_rows, "labelled": len(self.labels), "skipped": len(self.skipped)}
        return [*((name, f"{n:,}") for name, n in facts.items()), ("classes", classes)]

    def __repr__(self) -> str:
        return f"LabelingSession({'; '.join(f'{name}: {value}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return card("LabelingSession", self._facts())

    def class_order(self) -> list[Value]:
        """Return the classes in the order in which they appeared; given ones first, sorted."""
        with self._lock:
            return list(self._history.classes)

    def _check_kinds(self) -> None:
        kinds = {label_kind(v) for v in self._history.labels.values()}
        if len(kinds) > 1:
            raise ValueError(f"labels are of several kinds: {', '.join(sorted(kinds))}")

    def _row(self, row: Any) -> int:
        return _whole("row", row, 0, self.n_rows - 1)

    def next(self, n: int = 1, *, annotator: str = "") -> NDArray[np.intp]:
        """Return the rows to label next.

        Rows that this annotator was asked and has not answered come first; rows that are reserved
        for others are left out.

        Parameters
        ----------
        n : int, default=1
            How many.
        annotator : str, default=""
            Who will answer.

        Returns
        -------
        ndarray of int
            Row numbers; fewer than n if no more are left.
        """
        n = _whole("n", n, 1)
        with self._lock:
            now = time.monotonic()
            leases = {
                row: held
                for row, held in self._leases.items()
                if row not in self._history.answers
                and (held.annotator == annotator or held.until > now)
            }
            mine = {
                row: held.purpose for row, held in leases.items() if held.annotator == annotator
            }
            asked = list(mine.items())[:n]
            if len(asked) < n:
                busy = {row: held.purpose for row, held in leases.items()}
                asked += self._selector.select(n - len(asked), self._history, busy)
            for row, purpose in asked:
                leases[row] = _Lease(annotator, purpose, now + self.lease)
            self._leases = leases
            return np.array([row for row, _ in asked], dtype=np.intp)

    def label(self, row: Any, value: Any, *, annotator: str = "") -> None:
        """Give a row a label, or another one.

        Parameters
        ----------
        row : int
            The row.
        value : str, int, float or bool
            Its class, text or a whole number; one that has not been seen before is a new class.
        annotator : str, default=""
            Who answers.
        """
        row, value = self._row(row), plain_value(value)
        with self._lock:
            other = next(iter(self._history.labels.values()), value)
            if label_kind(other) != label_kind(value):
                raise ValueError(
                    f"value={value!r} is a {label_kind(value)}; the labels so far are "
                    f"{label_kind(other)}s like {other!r}"
                )
            self._write({"do": "label", "row": row, "value": value}, annotator)

    def skip(self, row: Any, *, annotator: str = "") -> None:
        """Skip a row that cannot be decided; it is not asked again.

        Parameters
        ----------
        row : int
            The row. Its label, if any, is removed.
        annotator : str, default=""
            Who answers.
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
            Who answers.
        """
        row = self._row(row)
        with self._lock:
            if row not in self._history.answers:
                raise ValueError(f"row={row!r} has neither a label nor a skip")
            self._write({"do": "remove", "row": row}, annotator)

    def undo(self, *, annotator: str = "") -> int | None:
        """Undo the last answer of an annotator; the row is asked again.

        Parameters
        ----------
        annotator : str, default=""
            Whose answer.

        Returns
        -------
        int or None
            The row; None if there is nothing to undo.
        """
        with self._lock:
            row = self._history.last(annotator)
            if row is None:
                return None
            answer = self._history.answers.get(row)
            self._write({"do": "undo"}, annotator)
            if row not in self._history.answers:
                purpose = "own" if answer is None else answer.purpose
                held = _Lease(annotator, purpose, time.monotonic() + self.lease)
                self._leases.pop(row, None)
                self._leases = {row: held, **self._leases}
            return row

    def _write(self, event: dict[str, Any], annotator: str) -> None:
        if not isinstance(annotator, str) or not is_unicode(annotator):
            raise ValueError(f"annotator={annotator!r} must be valid Unicode text")
        if event["do"] in ("label", "skip"):
            held = self._leases.get(event["row"])
            event["purpose"] = "own" if held is None else held.purpose
        event |= {"by": annotator, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        if self._journal is not None:
            self._journal.write(event)
        row = self._history.apply(event)
        self._leases.pop(-1 if row is None else row, None)
        self.version += 1

    def in_background(self) -> None:
        """Let no question wait for the uncertainties; :meth:`follow` is called in a thread."""
        self._selector.waits = False

    def follow(self) -> None:
        """Bring the uncertainties, by which questions are chosen, up to date with the labels."""
        with self._lock:
            copy = AnswerHistory(dict(self._history.answers))
        self._selector.update(copy)

    def __enter__(self) -> LabelingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
