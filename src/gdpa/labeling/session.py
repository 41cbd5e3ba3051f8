"""A labelling session without HTTP: what to ask, what was answered, what follows from it."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .features import Scaled, given_labels, plain_value, to_features
from .journal import Journal
from .ledger import Answer, Ledger, Value
from .model import FullModel
from .outcome import Outcome
from .questions import Questions

__all__ = ["LabelingSession"]


class LabelingSession(Outcome):
    """Ask for labels one by one, and know a label for every row at any time.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        The data.
    y : array-like of shape (n_rows,), optional
        Labels that are known already; None, NaN, -1 and empty text are unknown.
    random_state : int, default=0
        Seed of everything that is random.
    log : path-like, optional
        File to which every answer is appended, on disk before the call returns. If the file is
        there already the session continues where it ended.
    rescale : {"minmax", "standard"} or None, default="minmax"
        Scale of the columns of an array; data frames are encoded as ``gdpa fit`` does.
    estimator : CommitteeClassifier, optional
        What classifies the rows; :class:`~gdpa.CommitteeClassifier` by default.
    lease : float, default=600
        Seconds for which a row that one annotator was asked is not asked of another.

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
        if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
            raise ValueError(f"random_state={random_state!r} must be a whole number")
        if random_state < 0:
            raise ValueError(f"random_state={random_state!r} must not be negative")
        if rescale not in ("minmax", "standard", None):
            raise ValueError(f"rescale={rescale!r}; accepted: minmax, standard, None")
        features, encoder = to_features(X)
        self.rescale = None if encoder is not None else rescale
        self.random_state = int(random_state)
        known = given_labels(y, features.shape[0])
        ledger = Ledger({row: Answer(value, "given") for row, value in known.items()})
        model = FullModel(features, estimator, rescale=self.rescale, random_state=self.random_state)
        super().__init__(ledger, model, encoder)
        self.lease = float(lease)
        self._leases: dict[int, tuple[str, str, float]] = {}
        self._check_kinds()
        self._journal: Journal | None = None
        if log is not None:
            about = {"rows": self.n_rows, "data": _fingerprint(self.X), "seed": self.random_state}
            self._journal = Journal(log, about)
            self._ledger.replay(self._journal.events, self.n_rows)
            self._check_kinds()
        self.points = Scaled(self.X, as_is=self.rescale is None)
        self._questions = Questions(self.points, self.random_state)

    # -- what is known -------------------------------------------------------------------------

    @property
    def answers(self) -> dict[int, Answer]:
        """Rows with a label or a skip, why they were asked, and by whom they were answered."""
        with self._lock:
            return dict(self._ledger.answers)

    def class_order(self) -> list[Value]:
        """Return the classes in the order in which they appeared; given ones first, sorted."""
        with self._lock:
            return list(self._ledger.classes)

    def _check_kinds(self) -> None:
        kinds = {_kind(v) for v in self._ledger.labels.values()}
        if len(kinds) > 1:
            raise ValueError(f"labels are of several kinds: {', '.join(sorted(kinds))}")

    def _row(self, row: Any) -> int:
        if isinstance(row, bool) or not isinstance(row, int | np.integer):
            raise ValueError(f"row={row!r} must be a whole number")
        if not 0 <= row < self.n_rows:
            raise ValueError(f"row={row!r}; rows are numbered 0 to {self.n_rows - 1}")
        return int(row)

    # -- questions and answers -----------------------------------------------------------------

    def next(self, n: int = 1, *, annotator: str = "") -> NDArray[np.intp]:
        """Rows to label next.

        Rows that this annotator was asked and has not answered come first; rows that another one
        is looking at are left out.

        Parameters
        ----------
        n : int, default=1
            How many.
        annotator : str, default=""
            Who asks.

        Returns
        -------
        ndarray of int
            Row numbers; fewer than n when no more are left.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n={n!r} must be a whole number of at least 1")
        with self._lock:
            now = time.monotonic()
            self._leases = {
                row: held
                for row, held in self._leases.items()
                if row not in self._ledger.answers and (held[0] == annotator or held[2] > now)
            }
            rows = [row for row, held in self._leases.items() if held[0] == annotator][: int(n)]
            missing = int(n) - len(rows)
            if missing:
                found = self._questions.ask(
                    missing, self._ledger, {r: held[1] for r, held in self._leases.items()}
                )
                for row, purpose in found:
                    self._leases[row] = (annotator, purpose, now + self.lease)
                    rows.append(row)
            for row in rows:
                self._leases[row] = (annotator, self._leases[row][1], now + self.lease)
            return np.array(rows, dtype=np.intp)

    def label(self, row: Any, value: Any, *, annotator: str = "") -> None:
        """Give a row a label, or another one.

        Parameters
        ----------
        row : int
            The row.
        value : str, int, float or bool
            Its class; one that has not been seen before is a new class.
        annotator : str, default=""
            Who answers.
        """
        row, value = self._row(row), plain_value(value)
        with self._lock:
            for other in self._ledger.labels.values():
                if _kind(other) != _kind(value):
                    raise ValueError(
                        f"value={value!r} is a {_kind(value)}; the labels so far are "
                        f"{_kind(other)}s like {other!r}"
                    )
                break
            self._write({"do": "label", "row": row, "value": value}, annotator)

    def skip(self, row: Any, *, annotator: str = "") -> None:
        """Say that a row cannot be decided; it is not asked again.

        Parameters
        ----------
        row : int
            The row. A label that it has is taken away.
        annotator : str, default=""
            Who answers.
        """
        with self._lock:
            self._write({"do": "skip", "row": self._row(row)}, annotator)

    def remove(self, row: Any, *, annotator: str = "") -> None:
        """Take a label or a skip away; the row may be asked again.

        Parameters
        ----------
        row : int
            The row.
        annotator : str, default=""
            Who answers.
        """
        row = self._row(row)
        with self._lock:
            if row not in self._ledger.answers:
                raise ValueError(f"row={row!r} has neither a label nor a skip")
            self._write({"do": "remove", "row": row}, annotator)

    def undo(self, *, annotator: str = "") -> int | None:
        """Take the last answer of an annotator back; the row is asked again.

        Parameters
        ----------
        annotator : str, default=""
            Whose answer.

        Returns
        -------
        int or None
            The row; None if there is nothing to take back.
        """
        with self._lock:
            row = self._ledger.last(annotator)
            if row is None:
                return None
            answer = self._ledger.answers.get(row)
            self._write({"do": "undo"}, annotator)
            if row not in self._ledger.answers:
                purpose = "own" if answer is None else answer.purpose
                waiting = self._leases
                held = (annotator, purpose, time.monotonic() + self.lease)
                self._leases = {row: held, **{r: h for r, h in waiting.items() if r != row}}
            return row

    def _write(self, event: dict[str, Any], annotator: str) -> None:
        if not isinstance(annotator, str):
            raise ValueError(f"annotator={annotator!r} must be text")
        if event["do"] in ("label", "skip"):
            held = self._leases.get(event["row"])
            event["purpose"] = "own" if held is None else held[1]
        event |= {"by": annotator, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        if self._journal is not None:
            self._journal.write(event)
        row = self._ledger.apply(event)
        self._leases.pop(-1 if row is None else row, None)
        self._version += 1

    def in_background(self) -> None:
        """Let no question wait for the quick committee; :meth:`follow` is called in a thread."""
        self._questions.patient = False

    def follow(self) -> None:
        """Bring the quick committee, which weighs questions, up to date with the labels."""
        with self._lock:
            copy = Ledger(dict(self._ledger.answers))
        self._questions.follow(copy)

    def __enter__(self) -> LabelingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the log."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "truth value" if isinstance(value, bool) else "number"


def _fingerprint(X: Any) -> str:
    """Tell data apart: a digest of the shape and the values."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for part in (X.data, X.indices) if sp.issparse(X) else (np.ascontiguousarray(X),):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()[:16]
