"""Certificates of sessions: replayed to the same statement, and tampering is found."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.labeling import Goal
from gdpa.labeling.records import read_log
from gdpa.labeling.session_certificate import InvalidCertificate, verify_certificate


@pytest.fixture(scope="module")
def session_files(tmp_path_factory):
    """A session that was killed twice, and its certificate."""
    folder = tmp_path_factory.mktemp("session")
    rng = np.random.default_rng(5)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + 2.6 * y[:, None]
    known = [["left", "right"][y[i]] if i < 4 else None for i in range(300)]
    for part in range(3):
        session = LabelingSession(X, known, goal=0.85, log=folder / "log")
        for number in range(18):
            row = int(session.next()[0])
            if number == 10:
                session.skip(row)
            else:
                session.label(row, ["left", "right"][y[row]], annotator=f"a{number % 2}")
            if number == 12:
                session.undo(annotator="a0")
        if part < 2:
            session.next()  # asked, and never answered by this process
            session.close()
    content = session.certificate()
    statement = session.statement()
    session.close()
    (folder / "session-certificate.json").write_text(json.dumps(content))
    return folder, content, statement


def signed(content):
    """The content with a digest that fits, as a forger would compute it."""
    rest = {name: value for name, value in content.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return rest | {"digest": digest}


def test_a_killed_and_resumed_session_verifies(session_files):
    folder, content, statement = session_files
    found = verify_certificate(json.loads(json.dumps(content)))
    assert found.text == statement.text
    assert found.proved == statement.proved
    assert len(content["proved"]) == sum(e["do"] == "check" for e in content["events"])
    log = read_log((folder / "log").read_bytes(), content["about"]).events
    assert verify_certificate(content, log).text == statement.text


def test_every_change_is_found(session_files):
    """Numbers and texts anywhere in the file, without touching the digest."""
    _, content, _ = session_files
    rng = np.random.default_rng(0)
    events = content["events"]
    for _ in range(60):
        forged = copy.deepcopy(content)
        event = forged["events"][int(rng.integers(len(events)))]
        key = str(rng.choice([k for k in event if k != "n"]))
        event[key] = {"do": "skip"}.get(key, 1)
        if forged == content:
            continue
        with pytest.raises(InvalidCertificate, match="digest"):
            verify_certificate(forged)


def test_a_forged_digest_does_not_help(session_files):
    folder, content, _ = session_files
    log = read_log((folder / "log").read_bytes(), content["about"]).events
    checks = [i for i, e in enumerate(content["events"]) if e["do"] == "check"]
    rows = {content["events"][i]["row"] for i in checks}
    answers = [
        i for i, e in enumerate(content["events"]) if e["do"] == "label" and e["row"] in rows
    ]

    def forge(change):
        forged = copy.deepcopy(content)
        change(forged)
        return signed(forged)

    def probability(forged):
        forged["events"][checks[3]]["strata"][0][2] *= 0.9

    def row(forged):
        forged["events"][checks[3]]["row"] += 1

    def bet(forged):
        forged["events"][checks[-2]]["bets"][0] *= 2.0

    def prediction(forged):
        model = next(e for e in forged["events"] if e["do"] == "model" and e["number"] == 1)
        model["codes"] = next(e for e in forged["events"] if e["do"] == "model")["codes"]

    def missing(forged):
        del forged["events"][checks[2]]

    def proved(forged):
        forged["proved"][-1][1] = 0.99

    def statement(forged):
        forged["statement"]["text"] = "Goal reached: everything is right."

    def risk(forged):
        goal = next(e for e in forged["events"] if e["do"] == "goal")
        goal["risk"] = 0.4

    def seed(forged):
        forged["about"]["seed"] = 1

    for change in (probability, row, bet, prediction, missing, proved, statement, risk, seed):
        with pytest.raises(InvalidCertificate):
            verify_certificate(forge(change))

    def flip(forged):  # an answer to a check that was recorded early
        event = forged["events"][answers[0]]
        event["value"] = "left" if event["value"] == "right" else "right"

    with pytest.raises(InvalidCertificate):
        verify_certificate(forge(flip), log)

    def any_answer(forged):  # an answer that no check depends on: the log knows better
        event = next(e for e in forged["events"] if e["do"] == "label" and e["row"] not in rows)
        event["value"] = "left" if event["value"] == "right" else "right"

    with pytest.raises(InvalidCertificate):
        verify_certificate(forge(any_answer), log)


def test_the_command_prints_the_statement_or_refuses(session_files):
    folder, content, statement = session_files
    command = [sys.executable, "-m", "gdpa", "verify-session"]
    path = folder / "session-certificate.json"
    ended = subprocess.run(
        [*command, str(path), "--log", str(folder / "log")], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == statement.text
    forged = folder / "forged.json"
    for bad in ("not JSON", "[]", json.dumps({**content, "digest": "0"}), '{"kind": 3}'):
        forged.write_text(bad)
        ended = subprocess.run([*command, str(forged)], capture_output=True, text=True)
        assert ended.returncode == 2
        assert "forged.json" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_certificate_needs_a_check(tmp_path):
    session = LabelingSession(np.arange(20.0)[:, None], goal=Goal(level=0.8))
    session.label(0, "a")
    session.label(19, "b")
    with pytest.raises(ValueError, match="at least one random check"):
        session.certificate()
