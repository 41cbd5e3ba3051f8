"""The certificate of a session: what was proved, and all that is needed to check it.

A certificate contains the seed, all answers, and, for each random check, the probabilities and the
predictions that were recorded before its answer. The verifier draws every check again from the
seed, computes all proved shares again, and compares. It reads no data and fits no model.

What it cannot know: whether the answers are right, and whether somebody rewrote the whole file
consistently. The log of the session is a second copy with its own checksums, so the verifier can
compare the two.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from .answers import Answer, Value, is_event
from .goal import Goal
from .ledger import Ledger
from .proof import EVENTS as PROOF_EVENTS
from .statement import Statement

KIND = "gdpa session certificate"
VERSION = 1


class InvalidCertificate(ValueError):
    """The certificate does not prove what it says."""


def make_certificate(
    *,
    about: Mapping[str, Any],
    given: Mapping[int, Value],
    events: Sequence[Mapping[str, Any]],
    final: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the certificate of a session.

    Parameters
    ----------
    about : mapping
        Number of rows, fingerprint of the data, and seed.
    given : mapping
        Labels by row that were known before the session.
    events : sequence of dict
        All events of the session.
    final : mapping
        Event with the final predictions.

    Returns
    -------
    dict
        Plain data.
    """
    content: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "about": dict(about),
        "given": [[row, value] for row, value in sorted(given.items())],
        "events": [dict(event) for event in events],
        "final": dict(final),
    }
    bounds, statement = _replay(content, verify=False)
    content["proved"] = bounds
    content["statement"] = _described(statement)
    content["digest"] = _digest(content)
    return content


def verify_certificate(
    content: Mapping[str, Any], log_events: Sequence[Mapping[str, Any]] | None = None
) -> Statement:
    """Check a certificate, and return its statement.

    Parameters
    ----------
    content : mapping
        The certificate.
    log_events : sequence of dict, optional
        The events of the log of the session, to compare with.

    Returns
    -------
    Statement
        The statement, computed again.

    Raises
    ------
    InvalidCertificate
        If anything is different from what the events give.
    """
    if content.get("kind") != KIND or content.get("version") != VERSION:
        raise InvalidCertificate(f"this is not a {KIND} of version {VERSION}")
    if content.get("digest") != _digest(content):
        raise InvalidCertificate("the digest does not match: the file was changed")
    try:
        bounds, statement = _replay(content, verify=True)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError, zlib.error) as error:
        raise InvalidCertificate(f"an entry is missing or malformed ({error!r:.80})") from error
    except InvalidCertificate:
        raise
    except ValueError as error:
        raise InvalidCertificate(str(error)) from error
    stored = content["proved"]
    if len(stored) != len(bounds):
        raise InvalidCertificate("the sequence of proved shares has another length")
    for (number, proved), (number_again, again) in zip(stored, bounds, strict=True):
        if number != number_again or abs(proved - again) > 1e-9:
            raise InvalidCertificate(
                f"before event {number_again}, {again:.6f} was proved, not {proved:.6f}"
            )
    if content["statement"] != _described(statement):
        raise InvalidCertificate(f"the events prove something else: {statement.text}")
    if log_events is not None:
        _compare(content["events"], log_events)
    return statement


def _replay(content: Mapping[str, Any], *, verify: bool) -> tuple[list[list[Any]], Statement]:
    """Return the proved shares before each check, and the final statement."""
    n_rows = int(content["about"]["rows"])
    given = {int(row): Answer(value, "given") for row, value in content["given"]}
    ledger = Ledger(n_rows, given, Goal(), int(content["about"]["seed"]))
    bounds: list[list[Any]] = []
    last = 0
    for event in content["events"]:
        if event["do"] not in PROOF_EVENTS and not is_event(event, n_rows):
            raise InvalidCertificate(f"event {event.get('n')} is not an event")
        if not event["n"] > last:
            raise InvalidCertificate(f"event {event['n']} comes after event {last}")
        last = event["n"]
        proof = ledger.proof
        if event["do"] == "check":
            if verify:
                proof.verify(event, ledger.history.answers)
            found = proof.statement_about(ledger.history.answers, proof.last)
            bounds.append([event["n"], found.proved])
        ledger.apply(event)
        if ledger.proof is not proof:
            bounds = []
    proof = ledger.proof
    if not ledger.started:
        raise InvalidCertificate("there is no goal and no check")
    proof.apply(content["final"], ledger.history.answers)
    return bounds, proof.statement_about(ledger.history.answers, proof.last)


def _described(statement: Statement) -> dict[str, Any]:
    """Return a statement as plain data."""
    return {
        "text": statement.text,
        "proved": statement.proved,
        "reached": statement.reached,
        "rows": statement.rows,
        "checks": statement.checks,
        "wrong": statement.wrong,
        "risk": statement.goal.risk,
    }


def _digest(content: Mapping[str, Any]) -> str:
    """Return the digest of everything except the digest."""
    rest = {name: value for name, value in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _compare(events: Sequence[Mapping[str, Any]], log_events: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidCertificate if an event is not in the log as it is here."""
    logged = {event["n"]: dict(event) for event in log_events}
    for event in events:
        number = event.get("n")
        if logged.get(number) != dict(event):
            raise InvalidCertificate(f"event {number} is not the one of the log")
