"""Labelling on a disk that fills up: what was acknowledged is in the log, what was refused is not.

Labels, skips and undos; room for a part of a line; syncs and truncations that fail; kills.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.journal import Journal

from .outcome import RIGHT, generator, must

ABOUT = {"rows": 12, "data": "abc", "seed": 0}


class Disk:
    """An unbuffered file on a disk with `room` bytes left."""

    def __init__(self, file: Any) -> None:
        self.file, self.room, self.stuck, self.unsynced = file, 10**9, False, False

    def write(self, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count: int = self.file.write(data[: self.room])
        self.room -= count
        return count

    def truncate(self, size: int) -> int:
        if self.stuck:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        result: int = self.file.truncate(size)
        return result

    def sync(self, _: int) -> None:
        if self.unsynced:
            self.unsynced = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def written(path: Path) -> list[dict[str, Any]]:
    """Events as a process that starts after a kill reads them."""
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    again = Journal(copy, ABOUT)
    again.close()
    return again.events


def event_of(rng: np.random.Generator) -> dict[str, Any]:
    """Something that an annotator does."""
    do = str(rng.choice(["label", "label", "skip", "undo"]))
    event: dict[str, Any] = {"do": do, "by": str(rng.choice(["a", "b"]))}
    if do != "undo":
        event |= {"row": int(rng.integers(12)), "purpose": "own"}
    if do == "label":
        event["value"] = str(rng.choice(["x", "yy", "\u00e9\n"]))
    return event


def run(seed: int) -> str:
    """One history."""
    rng = generator("full_disk", seed)
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        journal: Any = Journal(path, ABOUT)
        journal._file = disk = Disk(journal._file)
        acknowledged: list[dict[str, Any]] = []
        history = AnswerHistory()
        for _ in range(int(rng.integers(4, 20))):
            disk.room = int(rng.integers(0, 90)) if rng.random() < 0.5 else 10**6
            disk.stuck = bool(rng.random() < 0.1) and disk.room < 40
            disk.unsynced = bool(disk.room > 90 and rng.random() < 0.1)
            event = event_of(rng)
            try:
                with mock.patch.object(os, "fsync", disk.sync):
                    event = journal.write(event)
                acknowledged.append(event)
                history.apply(event)
            except OSError:
                refused += 1
            disk.stuck = disk.unsynced = False
            if rng.random() < 0.15:  # killed, and started again
                must(written(path) == acknowledged, "after a kill the log has other answers")
                journal.close()
                journal = Journal(path, ABOUT)
                journal._file = disk = Disk(journal._file)
        journal.close()
        events = written(path)
        must(events == acknowledged, "the log has other answers than were acknowledged")
        again = AnswerHistory()
        again.replay(events, 12)
        must(again.answers == history.answers, "a replay gives other answers")
    return f"{RIGHT}|refusals={refused}"
