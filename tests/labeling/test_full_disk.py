"""A full disk: what was acknowledged is in the log, what was refused never appears."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.labeling import journal as module
from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.journal import Journal
from gdpa.labeling.records import data_key, encode_line

ABOUT = {"rows": 12, "data": "abc", "seed": 0}


class Disk:
    """A file on a disk with limited room, as an unbuffered file behaves; `room` may change."""

    def __init__(self, file, room=10**9):
        self.file, self.room, self.stuck = file, room, False

    def write(self, data):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = self.file.write(data[: self.room])
        self.room -= count
        return count

    def truncate(self, size):
        if self.stuck:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.file.seek(0, os.SEEK_END)
        self.room += self.file.tell() - size
        return self.file.truncate(size)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.fixture
def quick_sync(monkeypatch):
    """Do not wait for the real disk; `fail` makes the next calls fail."""
    state = {"fail": 0}

    def fsync(_):
        if state["fail"]:
            state["fail"] -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module.os, "fsync", fsync)
    return state


def _written(path):
    """Events of the log as a process that is started after a kill reads them."""
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    again = Journal(copy, ABOUT)
    again.close()
    copy.unlink()
    return again.events


def test_a_write_that_fails_at_any_byte_leaves_no_trace(tmp_path, quick_sync):
    event = {"do": "label", "row": 3, "value": "é", "by": "ann"}
    size = len(encode_line(event, 2, data_key(ABOUT)))
    for room in range(size):
        path = tmp_path / f"log{room}"
        journal = Journal(path, ABOUT)
        journal.write({"do": "skip", "row": 1, "by": ""})
        before = path.read_bytes()
        journal._file = disk = Disk(journal._file, room)
        with pytest.raises(OSError, match="No space left"):
            journal.write(event)
        assert path.read_bytes() == before
        disk.room = size
        written = journal.write(event)
        assert _written(path)[1:] == [written]
        journal.close()


def test_a_log_that_cannot_be_cut_back_is_refused_until_it_is_reopened(tmp_path, quick_sync):
    path = tmp_path / "log"
    journal = Journal(path, ABOUT)
    journal._file = disk = Disk(journal._file, 7)
    disk.stuck = True
    with pytest.raises(OSError, match="Input/output"):
        journal.write({"do": "skip", "row": 1, "by": ""})
    disk.room, disk.stuck = 10**6, False
    with pytest.raises(OSError, match="restart the session"):
        journal.write({"do": "skip", "row": 2, "by": ""})
    journal.close()
    again = Journal(path, ABOUT)
    again.write({"do": "skip", "row": 3, "by": ""})
    again.close()
    assert [e["row"] for e in _written(path)] == [3]


def test_no_history_with_a_full_disk_loses_or_invents_an_answer(tmp_path, quick_sync):
    """1,200 random histories: labels, skips, undos; room at random; failed syncs; kills."""
    rng = np.random.default_rng(0)
    refused = 0
    for number in range(1200):
        path = tmp_path / f"log{number}"
        journal = Journal(path, ABOUT)
        acknowledged, history = [], AnswerHistory()
        for _ in range(int(rng.integers(4, 14))):
            disk = journal._file if isinstance(journal._file, Disk) else Disk(journal._file)
            journal._file = disk
            disk.room = int(rng.integers(0, 90)) if rng.random() < 0.5 else 10**6
            disk.stuck = rng.random() < 0.1 and disk.room < 40  # the line is not written in full
            quick_sync["fail"] = int(disk.room > 90 and rng.random() < 0.1)
            do = str(rng.choice(["label", "label", "skip", "undo"]))
            event = {"do": do, "by": str(rng.choice(["a", "b"]))}
            if do != "undo":
                event |= {"row": int(rng.integers(12)), "purpose": "own"}
            if do == "label":
                event["value"] = str(rng.choice(["x", "yy", "\u00e9\n"]))
            try:
                event = journal.write(event)
            except OSError:
                refused += 1
            else:
                acknowledged.append(event)
                history.apply(event)
            disk.stuck, quick_sync["fail"] = False, 0
            if rng.random() < 0.15:  # killed, and started again
                assert _written(path) == acknowledged
                journal.close()
                journal = Journal(path, ABOUT)
        journal.close()
        events = _written(path)
        assert events == acknowledged
        again = AnswerHistory()
        again.replay(events, 12)
        assert again.answers == history.answers
        path.unlink()
    assert refused > 1000


def test_labels_survive_undos_that_a_full_disk_refused(tmp_path):
    resource = pytest.importorskip("resource")  # the kernel refuses to let the file grow
    X = np.random.default_rng(0).normal(size=(40, 2))
    log = tmp_path / "log"
    session = LabelingSession(X, log=log)
    for row in range(10):
        session.label(row, "ab"[row % 2])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 9, limits[1]))
    try:
        for _ in range(4):
            with pytest.raises(OSError, match="too large"):
                session.undo()
        with pytest.raises(OSError, match="too large"):
            session.label(20, "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    session.label(10, "a")
    expected = session.labels
    session.close()
    assert set(expected) == set(range(11))
    with LabelingSession(X, log=log) as again:
        assert again.labels == expected


def test_a_lone_surrogate_in_a_log_does_not_stop_the_session(tmp_path):
    """Earlier versions logged such labels although they refused them."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    log = tmp_path / "log"
    with LabelingSession(X, log=log) as session:
        session.label(1, "a")
        session.label(2, "b")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{k: v for k, v in line.items() if k not in ("n", "sum")} for line in lines]
    lines[0]["version"] = 1
    bad = {"do": "label", "value": "\ud800", "purpose": "own", "by": ""}
    lines += [{**bad, "row": 2}, {**bad, "row": 3}, {"do": "undo", "by": ""}]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with LabelingSession(X, log=log) as again:
        assert again.labels == {1: "a", 2: "b"}
        assert "\ud800" not in again.class_order()
        assert again.columns("label")["label"][:4] == [None, "a", "b", None]
        assert again.undo() == 2  # the refused label of row 2
        assert again.labels == {1: "a", 2: "b"}
        again.undo()
        assert again.labels == {1: "a"}


def test_a_refused_write_is_undone_on_the_disk_too(tmp_path, monkeypatch):
    """The truncation is synced: after a power failure the refused event must not come back."""
    journal = Journal(tmp_path / "log", ABOUT)
    journal._file = disk = Disk(journal._file, room=3)
    steps = []
    truncate = disk.truncate
    monkeypatch.setattr(disk, "truncate", lambda size: steps.append("cut") or truncate(size))
    monkeypatch.setattr(module.os, "fsync", lambda _: steps.append("sync"))
    with pytest.raises(OSError, match="No space left"):
        journal.write({"do": "label", "row": 3, "value": "a", "by": ""})
    assert steps == ["cut", "sync"]


def test_a_line_of_another_program_is_not_cut_off(tmp_path, quick_sync):
    path = tmp_path / "log"
    journal = Journal(path, ABOUT)
    journal.write({"do": "skip", "row": 1, "by": ""})
    with open(path, "ab") as other:
        other.write(b'{"do": "skip", "row": 2, "by": "other"}\n')
    before = path.read_bytes()
    with pytest.raises(OSError, match="changed by another program"):
        journal.write({"do": "label", "row": 3, "value": "a", "by": ""})
    assert path.read_bytes() == before
    journal.close()
