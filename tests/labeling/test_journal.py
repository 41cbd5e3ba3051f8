"""The log: on disk at once, continued after a kill, refused when it is not one."""

from __future__ import annotations

import json
import os
import stat

import pytest

from gdpa.labeling import journal as module
from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.journal import Journal

ABOUT = {"rows": 5, "data": "abc", "seed": 0}


def test_events_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "log", ABOUT)
    for row in range(3):
        journal.write({"do": "label", "row": row, "value": "é\n<b>", "by": ""})
    journal.close()
    again = Journal(tmp_path / "log", ABOUT)
    assert [e["row"] for e in again.events] == [0, 1, 2]
    assert again.events[0]["value"] == "é\n<b>"


@pytest.mark.parametrize("cut", [2, 5, 20])
def test_a_line_cut_off_by_a_kill_is_dropped_and_the_rest_kept(tmp_path, cut):
    path = tmp_path / "log"
    journal = Journal(path, ABOUT)
    journal.write({"do": "skip", "row": 1, "by": ""})
    journal.write({"do": "skip", "row": 2, "by": ""})
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = Journal(path, ABOUT)
    assert [e["row"] for e in again.events] == [1]
    again.write({"do": "skip", "row": 3, "by": ""})
    again.close()
    assert [e["row"] for e in Journal(path, ABOUT).events] == [1, 3]


def test_a_kill_while_the_first_line_is_written_starts_anew(tmp_path):
    path = tmp_path / "log"
    Journal(path, ABOUT).close()
    path.write_bytes(path.read_bytes()[:-9])
    again = Journal(path, ABOUT)
    assert again.events == []
    again.close()
    assert json.loads(path.read_text())["rows"] == 5


def test_other_data_and_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "log"
    Journal(path, ABOUT).close()
    with pytest.raises(ValueError, match="different data: rows is 5 there, 6 here"):
        Journal(path, {**ABOUT, "rows": 6})
    notes = tmp_path / "notes.txt"
    for content in (b"my notes\nof today\n", b"no line end", b'{"kind": "else"}\n'):
        notes.write_bytes(content)
        with pytest.raises(ValueError, match=r"not a log of labels|damaged"):
            Journal(notes, ABOUT)
        assert notes.read_bytes() == content
    with pytest.raises(ValueError, match="not a regular file"):
        Journal(tmp_path, ABOUT)


def test_two_sessions_do_not_write_to_one_log(tmp_path):
    pytest.importorskip("fcntl")
    first = Journal(tmp_path / "log", ABOUT)
    with pytest.raises(ValueError, match="another session"):
        Journal(tmp_path / "log", ABOUT)
    first.close()
    Journal(tmp_path / "log", ABOUT).close()


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"do": "explode", "row": 1},
        {"do": "label", "row": 9, "value": 1},
        {"do": "label", "row": -1, "value": 1},
        {"do": "label", "row": 1, "value": None},
        {"do": "label", "row": 1, "value": [1]},
        {"do": "label", "row": "1", "value": 1},
        {"do": "skip", "row": 1, "by": 7},
        {"do": "skip", "row": 1, "purpose": "fun"},
        {"do": "bulk", "rows": [1, 9], "value": "a"},
        {"do": "bulk", "rows": 3, "value": "a"},
        {"do": "rename", "value": "a", "to": [1]},
        {"do": "second", "row": 7, "value": "a"},
    ],
)
def test_replay_refuses_what_is_no_event(event):
    with pytest.raises(ValueError, match="line 2 of the log is not an event"):
        AnswerHistory().replay([event], 5)


def test_undo_restores_what_was_before_and_respects_the_others():
    history = AnswerHistory()
    say = lambda do, row=None, value=None, by="a": history.apply(  # noqa: E731
        {"do": do, "row": row, "value": value, "by": by, "purpose": "choice"}
    )
    say("label", 1, "x")
    say("label", 1, "y")
    say("skip", 2)
    say("label", 3, "x", by="b")
    assert history.labels == {1: "y", 3: "x"}
    assert history.skipped == {2}
    assert say("undo") == [2]
    assert say("undo") == [1]
    assert history.labels == {1: "x", 3: "x"}
    say("label", 1, "z", by="b")  # b has corrected a: a's undo leaves it alone
    assert say("undo") == []
    assert say("undo", by="b") == [1]
    assert say("undo") == [1]
    assert say("undo") == []
    assert history.labels == {3: "x"}


@pytest.mark.slow
def test_a_log_of_several_annotators_is_cut_anywhere(tmp_path):
    """Whatever byte the process dies at, all whole lines are there and the rest is gone."""
    log = tmp_path / "log"
    journal = Journal(log, {"rows": 9})
    label = {"do": "label", "purpose": "choice", "at": "2026-01-01T00:00:00Z"}
    events = [
        {**label, "row": 1, "value": "x", "by": "a"},
        {**label, "row": 2, "value": "y", "by": "b"},
        {**label, "do": "second", "row": 1, "value": "y", "by": "b"},
        {"do": "bulk", "rows": [3, 4, 5], "value": "x", "by": "a"},
        {"do": "rename", "value": "x", "to": "z", "by": "b"},
        {"do": "undo", "by": "b"},
        {"do": "rename", "value": "y", "to": None, "by": "a"},
        {**label, "row": 1, "value": "y", "by": "a"},
    ]
    events = [journal.write(event) for event in events]
    journal.close()
    content = log.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(ends[0], len(content) + 1):
        log.write_bytes(content[:cut])
        again = Journal(log, {"rows": 9})
        again.close()
        whole = sum(end <= cut + 1 for end in ends) - 1  # without its line end, a line is whole
        assert again.events == events[:whole]
        one, two = AnswerHistory(), AnswerHistory()
        one.replay(again.events, 9)
        two.replay(events[:whole], 9)
        assert one.answers == two.answers
    assert one.labels == {3: "x", 4: "x", 5: "x", 1: "y"}
    assert [a.settled for a in one.answers.values()] == [False, False, False, True]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not sync folders")
def test_every_line_is_synced_before_it_is_acknowledged(tmp_path, monkeypatch):
    """After each step the synced bytes are all bytes, and a new log's folder is synced too."""
    path, synced, folders, handles = tmp_path / "log.jsonl", [], [], []
    real_sync, real_open = os.fsync, os.open

    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            folders.append(handle)
        else:
            synced.append(os.fstat(handle).st_size)
        real_sync(handle)

    def opened(*arguments):
        handles.append(real_open(*arguments))
        return handles[-1]

    monkeypatch.setattr(module.os, "fsync", fsync)
    monkeypatch.setattr(module.os, "open", opened)
    log = Journal(path, ABOUT)
    assert synced[-1] == path.stat().st_size
    assert len(folders) == 1
    for handle in handles:
        with pytest.raises(OSError, match=r"[Bb]ad file descriptor"):
            os.fstat(handle)
    for number in range(3):
        log.write({"row": number})
        assert synced[-1] == path.stat().st_size
    log.close()
    with path.open("ab") as stream:
        stream.write(b'{"row"')
    synced.clear()
    Journal(path, ABOUT).close()
    aside = path.with_name("log.jsonl.damaged")
    assert synced == [aside.stat().st_size, path.stat().st_size]
    assert aside.read_bytes() == b'{"row"\n'
    synced.clear()
    Journal(path, ABOUT).close()
    assert synced == []  # a complete log is opened without a write


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove open files")
@pytest.mark.parametrize("when", ["before", "during"])
@pytest.mark.parametrize("how", ["removed", "replaced", "longer"])
def test_a_log_changed_by_another_program_takes_no_event(tmp_path, monkeypatch, how, when):
    path = tmp_path / "log.jsonl"
    log = Journal(path, ABOUT)
    log.write({"row": 0})

    def change(*_):
        if how == "longer":
            with path.open("ab") as stream:
                stream.write(b"{}\n")
            monkeypatch.undo()
            return
        content = path.read_bytes()
        path.unlink()
        monkeypatch.undo()
        if how == "replaced":
            path.write_bytes(content)

    if when == "before":
        change()
    else:
        monkeypatch.setattr(module.os, "fsync", change)
    with pytest.raises(OSError, match="removed or changed by another program"):
        log.write({"row": 1})
    log.close()


def test_a_refused_log_is_closed_and_other_lines_are_left_alone(tmp_path):
    path = tmp_path / "log.jsonl"
    Journal(path, ABOUT).close()
    with pytest.raises(ValueError, match="different data"):
        Journal(path, ABOUT | {"rows": 13})
    Journal(path, ABOUT).close()  # the lock was given back
    path.write_bytes(b"no newline, and no log")
    with pytest.raises(ValueError, match="not a log of labels"):
        Journal(path, ABOUT)
    assert path.read_bytes() == b"no newline, and no log"
    with pytest.raises(ValueError, match="not a regular file"):
        Journal(tmp_path, ABOUT)
