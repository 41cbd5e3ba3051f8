"""Simulated annotators at one labelling server that is killed again and again.

    python -m benchmarks.annotators                        # 50 for ten minutes, nine kills; stored
    python -m benchmarks.annotators --annotators 8 --seconds 5 --kills 1
    python -m benchmarks.annotators --annotators 1 --kills 0 --seconds 120 --rows 100000

Starts ``gdpa label`` on a generated table, on this machine only, and sends what the page sends:
every annotator keeps two connections, one for answers (labels, skips, corrections, removals, undo)
and one that looks for news, and sends a request again if there was no reply. In between, the server
is killed (SIGKILL) and started again. In the end the log must hold

- every acknowledged answer, for each annotator in the order given;
- of the requests without a reply, each at most once;
- nothing else;

and a session that continues, and the table written by Ctrl-C, must hold the labels of the log. The
certificate of the killed and resumed session must verify. A run with the default numbers is stored
in ``benchmarks/labeling.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from gdpa.labeling.answers import AnswerHistory
from gdpa.labeling.proof import EVENTS as PROOF_EVENTS
from gdpa.labeling.records import read_log
from gdpa.labeling.session_certificate import verify_certificate

from .machine import describe

ROWS = 20_000
KINDS = ("ant", "bee", "cricket", "dragonfly", "earwig", "fly")
TOKEN = "simulated-annotators-token"
PATIENCE = 60.0  # seconds without any reply, after which an annotator gives up
ACKNOWLEDGED, NO_REPLY = "acknowledged", "no reply"


@dataclass
class Sent:
    """A change sent to the server, and whether it was acknowledged."""

    event: tuple[Any, ...]
    state: str = NO_REPLY


class Server:
    """``gdpa label`` as a process on a fixed port of this machine."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.folder = folder
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        """Start the server, and wait until it listens."""
        words = [
            "insects.csv",
            "--target",
            "kind",
            "--overlap",
            "0.1",
            "--goal",
            "0.9",
            "--no-browser",
        ]
        words += ["--port", str(self.port), "--token", TOKEN]
        with (self.folder / "stderr").open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gdpa", "label", *words],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("http://127.0.0.1:"):
            raise RuntimeError("the server did not start")
        return self.process

    def end(self, how: int) -> None:
        """Send a signal, and wait for the end."""
        self.process.send_signal(how)
        self.process.communicate(timeout=120)


@dataclass
class Annotator:
    """One person at the page."""

    name: str
    port: int
    truth: Any
    seed: int
    pause: float
    until: float
    sent: list[Sent] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _connections: dict[int, HTTPConnection] = field(default_factory=dict)

    def request(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Send one request over the connection of this thread."""
        me = threading.get_ident()
        connection = self._connections.get(me)
        if connection is None:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            self._connections[me] = connection
        try:
            method = "GET" if body is None else "POST"
            data = None if body is None else json.dumps({**body, "by": self.name})
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, f"/{TOKEN}/api/{path}", data, headers)
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            del self._connections[me]
            raise
        return answer.status, json.loads(content) if answer.status == 200 else content

    def insist(self, path: str, body: dict[str, Any] | None, event: Any = None) -> Any:
        """Send a request until there is a reply, like the page."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            attempt = Sent(event)
            if event is not None:
                self.sent.append(attempt)
            start = time.perf_counter()
            try:
                status, content = self.request(path, body)
            except (OSError, HTTPException) as error:
                if event is not None and isinstance(error, ConnectionRefusedError):
                    self.sent.pop()  # it never reached the server
                time.sleep(0.2)
                continue
            if status == 200:
                attempt.state = ACKNOWLEDGED
                if event is not None or path == "next":
                    times = self.waited if event is None else self.seconds
                    times.append(time.perf_counter() - start)
                return content
            if event is not None:
                self.sent.pop()  # refused: it must not be in the log
            if status == 503:
                time.sleep(0.2)
            elif status == 400 and path == "remove":  # someone else has removed it
                return None
            else:
                raise RuntimeError(f"{path}: status {status}, {content!r:.200}")
        raise RuntimeError(f"{path}: no reply for {PATIENCE:.0f} s")

    def label_rows(self) -> None:
        """Answer questions until the time is over."""
        rng = np.random.default_rng(self.seed)
        mine: list[int] = []
        with contextlib.suppress(IndexError):  # all rows are answered
            while time.monotonic() < self.until:
                row = int(self.insist("next", {"n": 2})[0]["row"])
                time.sleep(rng.exponential(self.pause))
                what = rng.random()
                if what < 0.03 and mine:
                    row = mine.pop(int(rng.integers(len(mine))))
                    self.insist("remove", {"row": row}, ("remove", row))
                elif what < 0.06:
                    key = str(rng.integers(2**62))  # the same if the request is sent again
                    if self.insist("undo", {"key": key}, ("undo",))["row"] is None:
                        self.sent.pop()  # nothing was there to undo
                elif what < 0.10:
                    self.insist("skip", {"row": row}, ("answer", row, None))
                else:
                    if what < 0.13 and mine:  # a second thought
                        row = mine[int(rng.integers(len(mine)))]
                    value = KINDS[int(self.truth[row] if what < 0.95 else rng.integers(len(KINDS)))]
                    self.insist("label", {"row": row, "value": value}, ("answer", row, value))
                    mine.append(row)

    def watch(self) -> None:
        """Look for news, like the page."""
        version = model = -1
        while time.monotonic() < self.until:
            state = self.insist(f"state?by={self.name}", None)
            if state["version"] != version:
                version = state["version"]
                self.insist("labels", None)
            if state["model"] != model:
                model = state["model"]
                self.insist("review", None)
                self.insist("colours", None)
            time.sleep(1.5)

    def run(self, work: Any) -> None:
        """Do a piece of work; what goes wrong is kept."""
        try:
            work()
        except Exception as error:
            self.wrong.append(f"{self.name}: {type(error).__name__}: {error}")


def told(event: dict[str, Any]) -> tuple[Any, ...]:
    """Return a line of the log as it was sent."""
    if event["do"] in ("label", "skip", "second"):
        return ("answer", event["row"], event.get("value"))
    return (event["do"], event["row"]) if event["do"] == "remove" else (event["do"],)


def compare(sent: Sequence[Sent], logged: Sequence[tuple[Any, ...]]) -> str:
    """Return what is wrong with the lines of one annotator; nothing if all is well.

    Lines and requests must match in order; only requests without a reply may have no line.
    """
    places = {0}  # number of requests that the lines so far account for
    for number, line in enumerate(logged):
        reached = set()
        for place in places:
            for i in range(place, len(sent)):
                if sent[i].event == line:
                    reached.add(i + 1)
                if sent[i].state == ACKNOWLEDGED:
                    break
        if not reached:
            return f"line {number} of {len(logged)} ({line}) was not sent, or one before is lost"
        places = reached
    if any(all(s.state != ACKNOWLEDGED for s in sent[place:]) for place in places):
        return ""
    return f"of {len(sent)} requests, acknowledged ones at the end are lost"


def write_table(folder: Path, n_rows: int) -> Any:
    """Write the table to label; return the number of each row's kind."""
    rng = np.random.default_rng(0)
    truth = rng.integers(len(KINDS), size=n_rows)
    X = rng.normal(scale=3.0, size=(len(KINDS), 6))[truth] + rng.normal(size=(n_rows, 6))
    header = ",".join(f"m{i}" for i in range(6))
    np.savetxt(folder / "insects.csv", X, "%.3f", ",", header=header, comments="")
    return truth


def run(
    annotators: int = 50,
    seconds: float = 600.0,
    kills: int = 9,
    *,
    pause: float = 1.5,
    n_rows: int = ROWS,
) -> dict[str, Any]:
    """Run the annotators and the kills, then compare; `wrong` lists what differs."""
    machine = describe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_table(folder, n_rows)
        server = Server(folder)
        try:
            begin = time.monotonic()
            people = [
                Annotator(f"a{i}", server.port, truth, i, pause, begin + seconds)
                for i in range(annotators)
            ]
            threads = [
                threading.Thread(target=one.run, args=(work,), daemon=True)
                for one in people
                for work in (one.label_rows, one.watch)
            ]
            for thread in threads:
                thread.start()
            rng = np.random.default_rng(annotators)
            for i in range(kills):
                moment = begin + seconds * (i + rng.uniform(0.4, 1.0)) / (kills + 1)
                time.sleep(max(0.0, moment - time.monotonic()))
                server.end(signal.SIGKILL)
                server.start()
            for thread in threads:
                thread.join(timeout=max(0.0, begin + seconds - time.monotonic()) + 2 * PATIENCE)
            wrong = [text for one in people for text in one.wrong]
            wrong += ["an annotator hangs"] * any(thread.is_alive() for thread in threads)
            people[0].insist("state", None)  # it may have been started a moment ago
            server.end(signal.SIGINT)
            if server.process.returncode:
                wrong.append((folder / "stderr").read_text()[-2000:])
        finally:
            if server.process.poll() is None:
                server.end(signal.SIGKILL)
        content = (folder / "insects-labelled.csv.log").read_bytes()
        head = json.loads(content.splitlines()[0])
        about = {name: head[name] for name in ("rows", "data", "seed")}
        log = read_log(content, about)
        wrong += [f"the log is damaged: {damage}" for damage in log.damage]
        events = [event for event in log.events if event["do"] not in PROOF_EVENTS]
        lost = invented = 0
        for one in people:
            lines_of = [told(e) for e in events if e["by"] == one.name]
            said = compare(one.sent, lines_of)
            wrong += [f"{one.name}: {said}"] if said else []
            acknowledged = Counter(s.event for s in one.sent if s.state == ACKNOWLEDGED)
            lost += (acknowledged - Counter(lines_of)).total()
            invented += (Counter(lines_of) - Counter(s.event for s in one.sent)).total()
        names = {one.name for one in people}
        strange = [f"a line of nobody: {e}" for e in events if e["by"] not in names]
        wrong += strange
        history = AnswerHistory()
        history.replay(events, n_rows)
        found = {}
        table = folder / "insects-labelled.csv"
        if table.exists():
            rows = csv.DictReader(table.read_text().splitlines())
            found = {i: row["kind"] for i, row in enumerate(rows) if row["kind"]}
        wrong += ["the table differs from the log"] if found != history.labels else []
        certificate = folder / "insects-labelled-session-certificate.json"
        proved = "no check was answered"
        if certificate.exists():
            try:
                stored = json.loads(certificate.read_text())
                proved = verify_certificate(stored, log.events).text
            except ValueError as error:
                wrong.append(f"the certificate: {error}")
    sent = [one for person in people for one in person.sent]
    kept = sum(one.state == ACKNOWLEDGED for one in sent)
    times: dict[str, list[float]] = {}
    for name, where in (("save_ms", "seconds"), ("question_ms", "waited")):
        took = 1e3 * np.array([s for person in people for s in getattr(person, where)])
        times[name] = np.quantile(took, [0.5, 0.99, 1.0]).round().tolist() if took.size else []
    return {
        "annotators": annotators,
        "minutes": round(seconds / 60, 2),
        "kills": kills,
        "rows": n_rows,
        "acknowledged": kept,
        "no_reply": len(sent) - kept,
        "lines": len(events),
        "lost": lost,
        "invented": invented + len(strange),
        "proved": proved,
        "gave_up": sum(bool(one.wrong) for one in people),
        **times,
        "commit": machine["commit"],
        "cores": machine["cores"],
        "load": [machine["load_at_start"], describe()["load_at_start"]],
        "wrong": wrong,
    }


def paragraph(result: dict[str, Any]) -> str:
    """Return one run as a paragraph of the page."""
    load = " to ".join("unknown" if one is None else f"{one[0]:g}" for one in result["load"])
    text = (
        f"{result['annotators']} annotators for {result['minutes']:g} minutes at one server on "
        f"the same machine, which was killed {result['kills']} times: {result['acknowledged']:,} "
        f"answers acknowledged, {result['lost']} lost, {result['invented']} invented; "
        f"{result['no_reply']} requests without a reply."
    )
    for what, name in (
        ("An answer was saved", "save_ms"),
        ("The next question came", "question_ms"),
    ):
        if result[name]:
            middle, most, worst = result[name]
            text += f" {what} in {middle:,.0f} ms (median), {most:,.0f} ms (99 %), {worst:,.0f} ms"
            text += " at most."
    if result["gave_up"]:
        text += f" {result['gave_up']} annotators had no reply for {PATIENCE:.0f} s and stopped."
    return (
        f"{text}\n\n`python -m benchmarks.annotators` at commit {result['commit']}, on "
        f"{result['cores']} cores with a load of {load}."
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.annotators", description=__doc__)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--kills", type=int, default=9)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args(argv)
    counts = options.annotators, options.seconds, options.kills
    result = run(*counts, n_rows=options.rows)
    print("\n".join([*result["wrong"], paragraph(result)]))
    if (*counts, options.rows) == (50, 600.0, 9, ROWS):
        from . import labeling

        labeling.save({**labeling.store(), "annotators": result})
        print(labeling.page(labeling.store()))
    return int(bool(result["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
