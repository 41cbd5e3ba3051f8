"""Connect a session to the page: rows for display, the map, and background work.

Answers are written immediately. Threads update the classifier, the accuracy, the order of the
columns and the map, so no answer has to wait.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from ..graph import neighbor_graph
from ..plotting.layout import Picture, picture
from .answers import Value, plain_value
from .goal import effort
from .rows import RowView
from .session import LabelingSession

logger = logging.getLogger("gdpa.labeling")

MAP_ROWS = 1200
MAX_SIMILAR_ROWS = 500


class Controller:
    """A session for the page; all methods are thread-safe.

    Parameters
    ----------
    session : LabelingSession
        The session.
    rows : RowView
        Displays rows.
    title : str
        Name of the data.
    target : str
        Name of the target column.
    classes : sequence, optional
        Classes that have a button from the start.
    groups : ndarray of int of shape (n_features,), optional
        Index of the displayed column of each feature, or -1; used to order the columns.
    """

    def __init__(
        self,
        session: LabelingSession,
        rows: RowView,
        *,
        title: str,
        target: str,
        classes: Sequence[Value] = (),
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        self.session = session
        self.rows = rows
        self.title = title
        self.target = target
        self._preset = list(dict.fromkeys(plain_value(c) for c in classes))
        self._known = list(dict.fromkeys([*self._preset, *session.class_order()]))
        self._groups = groups
        self._order: list[int] | None = None
        self._picture: Picture | None = None
        self._map_rows = np.arange(0)
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()
        self._end = threading.Event()
        self._workers: list[threading.Thread] = []
        self._trouble: dict[str, str] = {}

    def start(self) -> None:
        """Start the background threads."""
        if not self._workers:
            self.session.in_background()
            for work in (self.session.follow, self._refresh):
                worker = threading.Thread(target=self._keep_up, args=(work,), daemon=True)
                worker.start()
                self._workers.append(worker)

    def stop(self) -> None:
        """Stop the background threads without waiting for a long fit."""
        self._end.set()
        self._wake_workers()
        for worker in self._workers:
            worker.join(timeout=0.5)
        self._workers = []

    def _wake_workers(self) -> None:
        """Tell the background threads that labels have changed."""
        with self._changed:
            self._changed.notify_all()

    def _keep_up(self, work: Callable[[], None]) -> None:
        """Repeat a task whenever the labels have changed."""
        done = -1
        while not self._end.is_set():
            now = self.session.version
            if done == now:
                with self._changed:
                    self._changed.wait(timeout=1.0)
                continue
            try:
                work()
                self._trouble.pop(work.__name__, None)
            except Exception as error:  # shown on the page; answers are still saved
                logger.exception("error in a background thread")
                self._trouble[work.__name__] = f"{type(error).__name__}: {error}"
            done = now

    def _refresh(self) -> None:
        """Update the predictions and the order of the columns; draw the map once."""
        if self.session.labels:
            self.session.refresh()
            self._order_columns()
        if self._picture is None:
            self._draw()

    def _draw(self) -> None:
        """Compute the positions of the rows, or of a sample, on the map."""
        n = self.session.n_rows
        rows = np.arange(n)
        if n > MAP_ROWS:
            rng = np.random.default_rng([self.session.random_state, 5])
            rows = np.sort(rng.choice(n, MAP_ROWS, replace=False))
        points = self.session.points[rows]
        if rows.size < 3:
            places = np.column_stack([np.linspace(0.3, 0.7, rows.size), np.full(rows.size, 0.5)])
            drawn = Picture(rows, places, np.zeros((0, 2), dtype=np.intp))
        else:
            W = neighbor_graph(points, n_neighbors=min(6, rows.size - 1))
            none = np.arange(0)
            drawn = picture(W, points, keep=none, most=MAP_ROWS, seed=self.session.random_state)
        self._map_rows = rows
        self._picture = drawn

    def _order_columns(self) -> None:
        """Sort the columns by their importance in the random forest."""
        latest = self.session.latest
        if self._groups is None or latest is None or latest.model is None:
            return
        importances = latest.model.ensemble_.importances
        if importances is not None:
            shown = self._groups >= 0
            weight = np.bincount(self._groups[shown], weights=importances[shown])
            self._order = [int(j) for j in np.argsort(-np.round(weight, 6), kind="stable")]

    @property
    def classes(self) -> list[Value]:
        """Classes in order of first appearance, so that their keys never change."""
        present = set(self.session.labels.values())
        self._known += sorted(present - set(self._known))
        return [c for c in self._known if c in present or c in self._preset]

    def value(self, given: Any) -> Any:
        """Return a class in the type of the session: "3" becomes 3 if the classes are numbers."""
        known = self.classes
        if not isinstance(given, str) or any(isinstance(c, str) for c in known):
            return given
        for c in known:
            if str(c) == given.strip():
                return c
        if known and not isinstance(known[0], bool):
            try:
                number = float(given)
            except ValueError:
                return given
            return int(number) if number.is_integer() else number
        return given.strip()

    def item(self, row: int) -> dict[str, Any]:
        """Return a row for display, with its answer."""
        answer = self.session.answers.get(row)
        shown = self.rows.describe(row, self._order)
        shown["label"] = None if answer is None else answer.value
        shown["skipped"] = answer is not None and answer.value is None
        return shown

    def next(self, annotator: str, n: int) -> list[dict[str, Any]]:
        """Return the next rows for an annotator."""
        rows = self.session.next(n, annotator=annotator)
        # The first opinion is hidden when asking for a second.
        return [self.item(int(row)) | {"label": None, "skipped": False} for row in rows]

    def answer(
        self,
        do: str,
        annotator: str,
        row: int | None = None,
        value: Any = None,
        *,
        rows: Sequence[int] = (),
        to: Any = None,
        key: str = "",
    ) -> int | None:
        """Apply an answer and save it to disk; return its row if it concerns a single row."""
        session = self.session
        value = self.value(value)
        if do == "label":
            session.label(row, value, annotator=annotator)
        elif do == "bulk":
            session.label_many(rows, value, annotator=annotator)
        elif do == "rename":
            session.rename_class(value, self.value(to), annotator=annotator)
        elif do == "undo":
            several = len(session.undoable(annotator)) > 1
            row = session.undo(annotator=annotator, key=key)
            row = None if several else row
        else:
            getattr(session, do)(row, annotator=annotator)
        self._wake_workers()
        return row

    def state(self, annotator: str = "") -> dict[str, Any]:
        """Return counts, classes, accuracy and the progress of the background work."""
        now = time.monotonic()
        if annotator:
            self._seen[annotator] = now
            # Annotators who have not sent a request for 30 seconds have left.
            self._seen = {a: t for a, t in self._seen.items() if t > now - 30.0}
        session = self.session
        labels = session.labels
        latest = session.latest
        counts = Counter(labels.values())
        predicted = Counter[Value]()
        if latest is not None:
            sizes = np.bincount(latest.codes, minlength=latest.classes.size)
            predicted.update(dict(zip(latest.classes.tolist(), sizes.tolist(), strict=True)))
        estimate = session.estimate(refresh=False)
        version = session.version
        return {
            "title": self.title,
            "target": self.target,
            "rows": session.n_rows,
            "labelled": len(labels),
            "skipped": len(session.skipped),
            "version": version,
            "following": latest is None or latest.version != version,
            "model": -1 if latest is None else latest.version,
            "classes": [
                {"value": c, "count": counts[c], "predicted": predicted[c]} for c in self.classes
            ],
            "preset": len(self._preset),
            "estimate": None if estimate is None else asdict(estimate),
            "proof": self._proof(),
            "guesses": [{"name": g.name, "text": g.text} for g in session.guess_reports()],
            "trained": 0 if latest is None else len(latest.trained),
            "disagreements": len(session.disagreements()),
            "undo": len(session.undoable(annotator)),
            "others": max(0, len(self._seen) - 1),
            "trouble": "; ".join(dict.fromkeys(self._trouble.copy().values())),
        }

    def _proof(self) -> dict[str, Any]:
        """Return what is proved, in numbers and words."""
        found = self.session.statement(refresh=False)
        return {
            "proved": found.proved_percent,
            "goal": None if found.goal.level is None else round(100.0 * found.goal.level, 1),
            "reached": found.reached,
            "text": found.text,
            "forecast": found.forecast if found.checks else "",
            "effort": effort(found.goal),
            "checks": found.checks,
            "wrong": found.wrong,
            "holds": found.holds,
        }

    def set_goal(self, percent: float) -> dict[str, Any]:
        """Set the share to prove, in percent; return what is proved."""
        goal = self.session.goal
        if goal.kind == "recall":
            raise ValueError("the level of a goal about recall is set when the session starts")
        self.session.set_goal(replace(goal, level=round(percent / 100.0, 6)))
        self._wake_workers()
        return self._proof()

    def guess(self, row: int) -> list[dict[str, Any]]:
        """Return the three most probable classes of a row."""
        latest = self.session.latest
        if latest is None or not 0 <= row < self.session.n_rows:
            return []
        p = latest.probabilities[row]
        order = np.argsort(-p, kind="stable")[:3]
        pairs = zip(latest.classes[order].tolist(), p[order].tolist(), strict=True)
        return [{"value": value, "probability": share} for value, share in pairs]

    def near(self, row: int) -> list[dict[str, Any]]:
        """Return the labelled rows most similar to a row, nearest first."""
        labels = {r: v for r, v in self.session.labels.items() if r != row}
        rows = np.array(list(labels)[-5000:], dtype=np.intp)
        nearest = rows[np.argsort(self._distances(row, rows), kind="stable")[:6]]
        return [self._brief(int(r)) | {"value": labels[int(r)]} for r in nearest]

    def alike(self, row: int) -> dict[str, Any]:
        """Return unlabelled rows similar to a row, nearest first, and their common class.

        Their prediction is the label or prediction of the row, and they are nearer than any row
        with a different label.
        """
        latest = self.session.latest
        labels = self.session.labels
        if latest is None:
            return {"rows": [], "value": None}
        value = labels.get(row, latest.labels[row : row + 1].tolist()[0])
        open_rows = latest.labels == value
        open_rows[list(self.session.answers)] = open_rows[row] = False
        rows = np.flatnonzero(open_rows)
        others = np.array([r for r, v in labels.items() if v != value], dtype=np.intp)
        distance = self._distances(row, rows)
        most = self._distances(row, others).min(initial=np.inf)
        order = np.argsort(distance, kind="stable")
        near = rows[order[distance[order] < most]][:MAX_SIMILAR_ROWS]
        return {"rows": near.tolist(), "value": value}

    def preview(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows for display in a list."""
        return [self._brief(row) for row in rows]

    def review(self) -> dict[str, Any]:
        """Return labels that look wrong, and the disagreements and agreement of annotators."""
        agreement = self.session.agreement()
        answers = self.session.answers
        return {
            "suspicious": [
                self._brief(row)
                | {"value": answers[row].value, "predicted": predicted, "probability": p}
                for row, predicted, p in self.session.suspicious()[:50]
                if row in answers
            ],
            "disagreements": [
                self._brief(row) | {"values": [value for _, value in answers[row].opinions]}
                for row in self.session.disagreements()[:50]
            ],
            "agreement": None if agreement is None else asdict(agreement),
        }

    def _distances(self, row: int, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distances from a row to other rows, in scaled features."""
        points = self.session.points
        if not rows.size:
            return np.zeros(0)
        return np.asarray(euclidean_distances(points[np.array([row])], points[rows])[0])

    def _brief(self, row: int) -> dict[str, Any]:
        """Return a row for display in a list."""
        about = self.rows.summary(row)
        picture = self.rows.images is not None
        return {"row": row, "name": self.rows.name(row), "about": about, "picture": picture}

    def labels(self) -> list[dict[str, Any]]:
        """Return the latest answers, newest first."""
        answers = list(self.session.answers.items())[::-1][:500]
        return [
            self._brief(row) | {"value": answer.value, "purpose": answer.purpose}
            for row, answer in answers
        ]

    def map(self) -> dict[str, Any]:
        """Return the positions of the rows on the map, if they have been computed."""
        drawn = self._picture
        if drawn is None:
            return {"ready": False}
        return {
            "ready": True,
            "all": self._map_rows.size == self.session.n_rows,
            "rows": self._map_rows[drawn.nodes].tolist(),
            "x": np.round(drawn.positions[:, 0], 4).tolist(),
            "y": np.round(drawn.positions[:, 1], 4).tolist(),
            "edges": drawn.edges.ravel().tolist(),
        }

    def colours(self) -> dict[str, Any]:
        """Return the classes and probabilities of the rows on the map, and which are labelled."""
        latest = self.session.latest
        drawn = self._picture
        answers = self.session.answers
        rows = np.arange(0) if drawn is None else self._map_rows[drawn.nodes]
        known = [1 if r in answers and answers[r].value is not None else 0 for r in rows.tolist()]
        if latest is None:
            return {"classes": [-1] * rows.size, "sure": [0] * rows.size, "known": known}
        place = {c: i for i, c in enumerate(self.classes)}
        number = np.array([place.get(c, -1) for c in latest.classes.tolist()])
        codes = latest.codes[rows]
        return {
            "classes": number[codes].tolist(),
            "sure": np.round(100 * latest.probabilities[rows, codes]).astype(int).tolist(),
            "known": known,
        }
