"""Damaged logs: every undamaged answer is used, none is invented, each damage is reported."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.journal import Journal
from gdpa.labeling.records import data_key, encode_header, encode_line, read_log

ABOUT = {"rows": 50, "data": "abc", "seed": 0}
KEY = data_key(ABOUT)


def random_events(rng, n):
    """Labels, skips, bulk labels, and undos that name what they undo."""
    history, events = AnswerHistory(), []
    for number in range(1, n + 1):
        by = str(rng.choice(["a", "b"]))
        do = str(rng.choice(["label", "label", "label", "skip", "bulk", "undo"]))
        event = {"n": number, "do": do, "by": by}
        if do == "undo":
            event["of"] = history.undo_target(by)
            if event["of"] is None:
                event = {"n": number, "do": "skip", "row": 0, "by": by}
        elif do == "bulk":
            event |= {"rows": rng.choice(50, 3, replace=False).tolist(), "value": "x"}
        else:
            event |= {"row": int(rng.integers(50)), "purpose": "own"}
        if do == "label":
            event["value"] = str(
                rng.choice(["x", "yy", "é\n", '", "sum": "0123456789abcdef"}', "{"])
            )
        history.apply(event)
        events.append(event)
    return events


def damaged(rng, content):
    """Do one of the things that disks, editors and people do to files."""
    size = len(content)
    kind = str(
        rng.choice(["flip", "zeros", "noise", "cut out", "insert", "truncate", "repeat", "swap"])
    )
    start = int(rng.integers(size))
    stop = min(size, start + 1 + int(rng.geometric(0.02)))
    if kind == "flip":
        byte = content[start] ^ (1 << int(rng.integers(8)))
        return content[:start] + bytes([byte]) + content[start + 1 :]
    if kind == "zeros":
        return content[:start] + bytes(stop - start) + content[stop:]
    if kind == "noise":
        return content[:start] + rng.bytes(stop - start) + content[stop:]
    if kind == "cut out":
        return content[:start] + content[stop:]
    if kind == "insert":
        return content[:start] + rng.bytes(1 + int(rng.integers(30))) + content[start:]
    if kind == "truncate":
        return content[:start]
    if kind == "repeat":
        return content[:stop] + content[start:]
    lines = content.splitlines(keepends=True)
    i, j = rng.choice(len(lines), 2, replace=False)
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def test_400_random_damages(tmp_path):
    rng = np.random.default_rng(0)
    reported = cut_at_a_line_end = 0
    for number in range(400):
        events = random_events(rng, int(rng.integers(3, 25)))
        lines = [encode_header(ABOUT), *(encode_line(e, e["n"], KEY) for e in events)]
        content = damaged(rng, b"".join(lines))
        # An answer is undamaged if all bytes of its line are there in a row.
        kept = [e for e, line in zip(events, lines[1:], strict=True) if line[:-1] in content]
        path = tmp_path / f"log{number}"
        path.write_bytes(content)
        if not kept and lines[0][:-1] not in content:
            if lines[0].startswith(content):
                Journal(path, ABOUT).close()  # cut off within the first line: begun anew
                assert path.read_bytes() == lines[0]
                continue
            with pytest.raises(ValueError, match="not a log of labels"):
                Journal(path, ABOUT)
            assert path.read_bytes() == content
            continue
        journal = Journal(path, ABOUT)
        journal.close()
        assert journal.events == kept
        if b"".join(lines).startswith(content) and content.endswith((b"\n", b"}")):
            cut_at_a_line_end += 1  # the one change that leaves no trace
            assert journal.damage == []
        else:
            assert journal.damage, content
            assert all(str(d) in "".join(journal.notes) for d in journal.damage)
            reported += 1
        # Opened again, and continued: the same answers, then the new one.
        again = Journal(path, ABOUT)
        added = again.write({"do": "skip", "row": 7, "by": "c"})
        again.close()
        last = Journal(path, ABOUT)
        assert last.events == [*kept, added]
        # Repaired: the same answers without damage, and the old file is kept.
        before = path.read_bytes()
        aside = last.repair()
        assert aside is None or aside.read_bytes() == before
        last.close()
        clean = Journal(path, ABOUT)
        clean.close()
        assert clean.events == [*kept, added]
        assert clean.damage == []
    assert reported > 300
    assert cut_at_a_line_end < 30


def test_an_undo_of_a_damaged_answer_undoes_nothing_else():
    events = [
        {"n": 1, "do": "label", "row": 1, "value": "x", "by": "a"},
        {"n": 2, "do": "label", "row": 2, "value": "y", "by": "a"},
        {"n": 3, "do": "undo", "of": 2, "by": "a"},
    ]
    history = AnswerHistory()
    history.replay([events[0], events[2]], 50)
    assert history.labels == {1: "x"}
    history = AnswerHistory()
    history.replay(events, 50)
    assert history.labels == {1: "x"}


def test_a_repair_keeps_the_answers_that_were_given_before_it(tmp_path):
    X = np.arange(40.0)[:, None]
    log = tmp_path / "log"
    with LabelingSession(X, log=log) as session:
        session.label(1, "x")
        session.label(2, "y")
    content = log.read_bytes()
    log.write_bytes(content.replace(b'"row": 2', b'"row": 3'))
    with LabelingSession(X, log=log) as session:
        session.label(5, "z")
        assert session.repair_log() is not None
        session.label(6, "x")
    with LabelingSession(X, log=log) as session:
        assert session.labels == {1: "x", 5: "z", 6: "x"}
        assert not session.log_notes


def test_a_label_cannot_be_moved_to_another_row(tmp_path):
    X = np.arange(40.0)[:, None]
    log = tmp_path / "log"
    with LabelingSession(X, log=log) as session:
        session.label(12, "a")
        session.label(20, "b")
    log.write_bytes(log.read_bytes().replace(b'"row": 12', b'"row": 13'))
    with LabelingSession(X, log=log) as session:
        assert session.labels == {20: "b"}
        assert any("line 2 is damaged" in note for note in session.log_notes)
        kept = session.repair_log()
        assert b'"row": 13' in kept.read_bytes()
        session.label(3, "b")
    with LabelingSession(X, log=log) as session:
        assert session.labels == {20: "b", 3: "b"}
        assert session.log_notes == []


def test_a_log_of_other_data_is_refused_even_without_its_first_line():
    lines = [encode_line({"do": "skip", "row": 1}, 1, KEY)]
    content = b"{damaged\n" + b"".join(lines)
    assert [e["row"] for e in read_log(content, ABOUT).events] == [1]
    with pytest.raises(ValueError, match="not a log of labels"):
        read_log(content, {**ABOUT, "data": "def"})


def test_missing_repeated_and_moved_lines_are_reported():
    head = encode_header(ABOUT)
    one, two, three, four = (encode_line({"row": i}, i, KEY) for i in range(1, 5))
    for lines, message in [
        ((head, one, four), "line 3 follows 2 missing answers (2 to 3)"),
        ((head, one, two, one, three), "line 4 repeats answer 1"),
        ((head, two, one, three), "line 3 is out of order: it is answer 1"),
        ((head, one, head, two), "line 3 repeats the first line"),
        ((one, two), "missing"),
    ]:
        found = read_log(b"".join(lines), ABOUT)
        assert [e["row"] for e in found.events] == sorted({e["row"] for e in found.events})
        if message != "missing":
            assert any(message in str(d) for d in found.damage), found.damage


def test_values_that_look_like_lines_are_read():
    inner = {"n": 3, "sum": "0123456789abcdef"}
    event = {"do": "skip", "row": 1, "more": inner, "text": json.dumps(inner)}
    content = encode_header(ABOUT) + encode_line(event, 1, KEY) + encode_line(event, 2, KEY)
    found = read_log(content, ABOUT)
    assert found.damage == []
    assert found.events == [{**event, "n": 1}, {**event, "n": 2}]


def old_log(path, events):
    """Write a log of version 1."""
    lines = [{"kind": "gdpa labels", "version": 1, **ABOUT}, *events]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_logs_of_version_1_are_read_and_get_checksums(tmp_path):
    path = tmp_path / "log"
    events = [{"do": "skip", "row": i, "by": ""} for i in range(4)]
    old_log(path, events)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="different data"):
        Journal(path, {**ABOUT, "rows": 3})
    assert path.read_bytes() == before
    journal = Journal(path, ABOUT)
    assert [e["row"] for e in journal.events] == [0, 1, 2, 3]
    journal.write({"do": "skip", "row": 9, "by": ""})
    journal.close()
    assert (tmp_path / "log.version-1").read_bytes() == before
    again = Journal(path, ABOUT)
    again.close()
    assert [e["row"] for e in again.events] == [0, 1, 2, 3, 9]
    assert again.notes == []


def test_a_damaged_log_of_version_1(tmp_path):
    path = tmp_path / "log"
    old_log(path, [{"do": "skip", "row": i, "by": ""} for i in range(4)])
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], b"{broken", *lines[3:]]) + b'{"do"')
    journal = Journal(path, ABOUT)
    journal.close()
    assert [e["row"] for e in journal.events] == [0, 2, 3]
    assert [d.line for d in journal.damage] == [3, 6]
    # Without its first line, nothing says which data it belongs to.
    other = tmp_path / "other"
    other.write_bytes(b"\n".join([b"{broken", *lines[1:]]))
    with pytest.raises(ValueError, match="not a log of labels"):
        Journal(other, ABOUT)
    journal = Journal(other, ABOUT, trust_data=True)
    journal.close()
    assert [e["row"] for e in journal.events] == [0, 1, 2, 3]
    assert [d.line for d in journal.damage] == [1]


def test_the_command_explains_and_repairs(tmp_path, flowers):
    folder, _, _ = flowers
    table = tmp_path / "flowers.csv"
    table.write_bytes((folder / "flowers.csv").read_bytes())
    command = [sys.executable, "-m", "gdpa", "label", str(table), "--target", "kind", "--repair"]
    assert "nothing in" in subprocess.run(command, capture_output=True, text=True).stderr
    log = tmp_path / "flowers-labelled.csv.log"
    head = {k: v for k, v in json.loads(log.read_text()).items() if k in ABOUT}
    events = [{"do": "label", "row": i, "value": "x", "by": ""} for i in range(3)]
    lines = [encode_line(e, i, data_key(head)) for i, e in enumerate(events, 1)]
    lines[1] = lines[1].replace(b'"row": 1', b'"row": 9')
    log.write_bytes(log.read_bytes() + b"".join(lines))
    damaged_log = log.read_bytes()
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "line 3 is damaged" in found.stderr
    assert "2 undamaged events are used" in found.stderr
    assert log.with_name(log.name + ".damaged").read_bytes() == damaged_log
    assert "nothing in" in subprocess.run(command, capture_output=True, text=True).stderr
