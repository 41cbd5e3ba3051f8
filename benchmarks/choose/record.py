"""Record what members, whole committees and other classifiers predict, once per task.

Files are ``CACHE/<kind>/<set>/<labels>-<draw>/<group>.npz``. A file that exists is kept, so an
interrupted run continues where it stopped, and a new group costs only its own time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import LABELS, DataSet, Task, data_sets, draw
from .members import Prediction

Group = Callable[[Task], Mapping[str, Prediction]]


@dataclass(frozen=True)
class Record:
    """Predictions for one task, as stored.

    Parameters
    ----------
    kind, name, labels : str
        Kind of data, data set, and labels per class.
    draw : int
        Number of the draw.
    known : ndarray of int of shape (n_labels,)
        Classes of the labels, numbered 0 to k - 1.
    truth : ndarray of int of shape (n_scored,)
        Classes of the scored rows.
    models : mapping of str to Prediction
        Predictions of each model.
    """

    kind: str
    name: str
    labels: str
    draw: int
    known: Any
    truth: Any
    models: Mapping[str, Prediction]


def place(cache: Path, data: DataSet, labels: str, number: int, group: str) -> Path:
    """Return the file of a task."""
    return cache / data.kind / data.name / f"{labels}-{number}" / f"{group}.npz"


def store(path: Path, task: Task, found: Mapping[str, Prediction]) -> None:
    """Write the predictions for a task; the file appears complete or not at all."""
    present = np.unique(task.codes[task.codes >= 0])
    arrays = {
        "known": np.searchsorted(present, task.codes[task.codes >= 0]),
        "truth": np.searchsorted(present, task.data.y[task.scored]),
        "names": np.array(list(found)),
        "seconds": np.array([one.seconds for one in found.values()]),
    }
    for i, one in enumerate(found.values()):
        arrays[f"scored {i}"] = np.asarray(one.scored, dtype=np.float32)
        if one.held_out is not None:
            arrays[f"held out {i}"] = np.asarray(one.held_out, dtype=np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as stream:
        np.savez(stream, **arrays)
    partial.replace(path)


def load(path: Path) -> Record:
    """Read the predictions for a task."""
    labels, number = path.parent.name.rsplit("-", 1)
    models = {}
    with np.load(path) as stored:
        for i, name in enumerate(stored["names"].tolist()):
            held_out = stored.get(f"held out {i}")
            scored = stored[f"scored {i}"]
            models[name] = Prediction(held_out, scored, float(stored["seconds"][i]))
        kind, name = path.parts[-4:-2]
        parts = (kind, name, labels, int(number), stored["known"], stored["truth"])
    return Record(*parts, models)


def record(
    cache: Path,
    groups: Mapping[str, Group],
    *,
    kinds: tuple[str, ...],
    labels: tuple[str, ...] = LABELS,
    draws: int = 2,
    minutes: float = 30.0,
    leave_out: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
) -> int:
    """Run the groups on all tasks that have no file yet; stop when the time is over.

    Returns
    -------
    int
        Number of tasks that were run.
    """
    end = time.monotonic() + 60.0 * minutes
    done = 0
    sets = [data for data in data_sets(kinds) if data.name not in leave_out]
    if names:
        sets = [data for data in sets if data.name in names]
    for number in range(draws):
        for data in sets:
            for count in labels:
                missing = {
                    group: run
                    for group, run in groups.items()
                    if not place(cache, data, count, number, group).exists()
                }
                if not missing:
                    continue
                if time.monotonic() > end:
                    print(f"stopped after {minutes:g} minutes, {done} tasks", flush=True)
                    return done
                task = draw(data, count, number)
                for group, run in missing.items():
                    store(place(cache, data, count, number, group), task, run(task))
                done += 1
        print(f"draw {number}: {done} tasks so far", flush=True)
    return done
