"""Journals of answers with damages: undamaged answers are used, none is invented, all is told."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.journal import Journal
from gdpa.labeling.records import data_key, encode_header, encode_line

from .outcome import CLEAR, RIGHT, generator, must, quiet, refused

ABOUT = {"rows": 50, "data": "abc", "seed": 0}
VALUES = ("x", "yy", "\u00e9\n", '", "sum": "0123456789abcdef"}', "{", "\x00", "\u2028", "7" * 400)
WAYS = ("flip", "zeros", "noise", "cut out", "insert", "truncate", "repeat", "swap", "other file")


def random_events(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    """Labels, skips, bulk labels, new names of classes, and undos."""
    history = AnswerHistory()
    events = []
    for number in range(1, n + 1):
        by = str(rng.choice(["a", "b", ""]))
        do = str(rng.choice(["label", "label", "label", "skip", "remove", "bulk", "undo"]))
        event: dict[str, Any] = {"n": number, "do": do, "by": by}
        target = history.undo_target(by) if do == "undo" else None
        if target is not None:
            event["of"] = target
        elif do == "bulk":
            event |= {"rows": rng.choice(50, 3, replace=False).tolist(), "value": "x"}
        else:
            event |= {"row": int(rng.integers(50)), "do": "skip" if do == "undo" else do}
        if event["do"] == "label":
            event |= {"value": str(rng.choice(VALUES)), "purpose": "own"}
        history.apply(event)
        events.append(event)
    return events


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """Do one of the things that disks, editors and people do to files."""
    size = len(content)
    if size < 2:
        return content
    way = str(rng.choice(WAYS))
    start = int(rng.integers(size))
    stop = min(size, start + 1 + int(rng.geometric(0.02)))
    if way == "flip":
        byte = content[start] ^ (1 << int(rng.integers(8)))
        return content[:start] + bytes([byte]) + content[start + 1 :]
    if way == "zeros":
        return content[:start] + bytes(stop - start) + content[stop:]
    if way == "noise":
        return content[:start] + rng.bytes(stop - start) + content[stop:]
    if way == "cut out":
        return content[:start] + content[stop:]
    if way == "insert":
        return content[:start] + rng.bytes(1 + int(rng.integers(30))) + content[start:]
    if way == "truncate":
        return content[:start]
    if way == "repeat":
        return content[:stop] + content[start:]
    if way == "other file":  # a line of a session with other data
        other = encode_line({"n": 2, "do": "skip", "row": 1, "by": ""}, 2, data_key({"rows": 3}))
        place = content.rfind(b"\n", 0, start) + 1
        return content[:place] + other + content[place:]
    lines = content.splitlines(keepends=True)
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def run(seed: int) -> str:
    """One journal with up to three damages."""
    rng = generator("journals", seed)
    events = random_events(rng, int(rng.integers(1, 25)))
    key = data_key(ABOUT)
    lines = [encode_header(ABOUT), *(encode_line(e, e["n"], key) for e in events)]
    whole = content = b"".join(lines)
    for _ in range(int(rng.integers(0, 4))):
        content = damaged(rng, content)
    kept = [e for e, line in zip(events, lines[1:], strict=True) if line[:-1] in content]
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(content)
        try:
            journal = Journal(path, ABOUT)
        except ValueError as error:
            must(not kept and lines[0][:-1] not in content, "a journal with answers is refused")
            must(path.read_bytes() == content, "a refused journal is changed")
            return refused(error)
        journal.close()
        if not kept and lines[0][:-1] not in content:
            must(lines[0].startswith(content), "something else is taken for an empty journal")
            return CLEAR
        must(journal.events == kept, "other answers than the undamaged ones")
        # What ends with a line is a journal with fewer answers: nothing in it tells.
        complete = whole.startswith(content) and content.endswith((b"\n", b"}"))
        must(complete == (not journal.damage), "damage is not reported, or invented")
        must(all(str(d) in "".join(journal.notes) for d in journal.damage), "no word of a damage")
        again = Journal(path, ABOUT)
        added = again.write({"do": "skip", "row": 7, "by": "c"})
        before = path.read_bytes()
        aside = again.repair()
        again.close()
        must(aside is None or aside.read_bytes() == before, "the damaged file is not kept")
        clean = Journal(path, ABOUT)
        clean.close()
        must(clean.events == [*kept, added], "answers are lost by a repair")
        must(clean.damage == [], "damage after a repair")
    return RIGHT
