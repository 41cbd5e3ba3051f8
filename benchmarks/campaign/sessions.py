"""Labelling sessions: answers in any order, the log cut at any byte, and what is left of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gdpa import GraphClassifier, LabelingSession

from . import fits, inputs
from .outcome import RIGHT, generator, must, quiet, refused


def run(seed: int) -> str:
    """One session, ended and continued."""
    rng = generator("sessions", seed)
    data = inputs.make(rng)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "labels.log"
        estimator = GraphClassifier() if rng.random() < 0.8 else None
        options = {"estimator": estimator, "random_state": seed % 3}
        try:
            session = LabelingSession(data.X, log=log, **options)
        except ValueError as error:
            return refused(error)
        names = [str(t) or "empty" for t in data.truth]
        states = [snapshot(session)]
        sizes = [log.stat().st_size]
        with session:
            for _ in range(int(rng.integers(1, 12))):
                act(rng, session, names)
                if log.stat().st_size > sizes[-1]:
                    states.append(snapshot(session))
                    sizes.append(log.stat().st_size)
            check(session, names)
        # Killed while it wrote: what was answered is there, the half line is not.
        content = log.read_bytes()
        cut = int(rng.integers(sizes[0], len(content) + 1))
        log.write_bytes(content[:cut])
        with LabelingSession(data.X, log=log, **options) as again:
            # A line that lacks only its line end is complete.
            whole = max(i for i, size in enumerate(sizes) if size - 1 <= cut)
            must(snapshot(again) == states[whole], "a continued session has other answers")
            act(rng, again, names)
            check(again, names)
    return RIGHT


def snapshot(session: Any) -> dict[int, Any]:
    """Rows and what was said about them."""
    return {row: getattr(answer, "value", None) for row, answer in session.answers.items()}


def act(rng: np.random.Generator, session: Any, names: list[str]) -> None:
    """Something that an annotator does."""
    who = str(rng.choice(["", "a", "b"]))
    asked = session.next(int(rng.integers(1, 4)), annotator=who)
    answered = set(session.answers)
    must(not answered & set(asked.tolist()), "a row that is answered is asked")
    what = rng.random()
    row = int(asked[0]) if asked.size and what < 0.9 else int(rng.integers(len(names)))
    if what < 0.7:
        value = names[row] if rng.random() < 0.9 else str(rng.choice(["new", "ä", "x" * 500]))
        session.label(row, value, annotator=who)
        must(session.answers[row].value == value, "a label is not kept")
    elif what < 0.8:
        session.skip(row, annotator=who)
        must(row in session.answers, "a skip is not kept")
    elif what < 0.9:
        session.undo(annotator=who)
    else:
        if row in session.answers:
            session.remove(row, annotator=who)
        must(row not in session.answers, "what was removed is still there")


def check(session: Any, names: list[str]) -> None:
    """Predictions of all rows, with the labels that were given."""
    if len(session.class_order()) == 0:
        return
    found = session.predictions()
    must(len(found) == len(names), "a prediction for every row")
    classes = {str(c) for c in session.class_order()}
    must(all(str(v) in classes for v in found), "predictions outside the classes")
    for row, answer in session.answers.items():
        if answer.value is not None:
            must(str(found[row]) == str(answer.value), "a label is not kept in the predictions")
    fits.probabilities_hold(session.probabilities(), len(names), len(session.class_order()))
