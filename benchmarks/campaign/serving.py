"""The label server under attack: the page stays open, and 200 means that an answer is saved."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from gdpa import GraphClassifier, LabelingSession
from gdpa.labeling.controller import Controller
from gdpa.labeling.rows import RowView
from gdpa.labeling.server import LabelServer

from .outcome import RIGHT, generator, must, quiet

ROWS = 30
VALUES = (
    *("a", "b", "\ud800", "", " ", "x" * 501, "7", "007"),
    *(1, 2, 1.5, -0.1, 10**300, 1e300, 2**53 + 1, True, None, [1], {"a": 1}),
)
HALVES = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /t/api/label HTTP/1.1\r\n")


def request(server: Any, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and content of one request with the token."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, f"/{server.token}/api/{path}", data, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    return answer.status, content


def run(seed: int) -> str:
    """One session."""
    rng = generator("serving", seed)
    X = np.random.default_rng(0).normal(size=(ROWS, 2))
    with quiet(), tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        log = Path(name) / "log"
        session = LabelingSession(X, log=log, estimator=GraphClassifier())
        server = LabelServer(
            Controller(session, RowView([], []), title="t", target="y"),
            None,  # type: ignore[arg-type]
        )
        server.start()
        stack.callback(session.close)
        stack.callback(server.stop)
        while not server._server.started:
            time.sleep(0.005)
        kept: dict[int, Any] = {}
        lost = False
        for _ in range(int(rng.integers(4, 15))):
            what = rng.random()
            if what < 0.15:
                for _ in range(int(rng.integers(1, 130))):
                    peer = stack.enter_context(
                        socket.create_connection(("127.0.0.1", server.port), timeout=20)
                    )
                    with contextlib.suppress(OSError):
                        peer.sendall(HALVES[int(rng.integers(len(HALVES)))])
            elif what < 0.2 and not lost:
                log.unlink()
                lost = True
            else:
                row, value = int(rng.integers(ROWS)), VALUES[int(rng.integers(len(VALUES)))]
                with contextlib.suppress(ConnectionError, HTTPException):
                    status, content = request(
                        server, "label", {"row": row, "value": value, "by": ""}
                    )
                    must(status in (200, 400, 507), f"status {status}: {content!r:.200}")
                    must(status != 200 or not lost, "acknowledged without a log")
                    if status == 200:
                        kept[row] = session.labels[row]
            must(request(server, "state")[0] == 200, "the page is blocked")
        must(session.labels == kept, "labels that nobody gave, or lost ones")
        if kept:
            session.predictions()
        if not lost:
            server.stop()
            session.close()
            with LabelingSession(X, log=log, estimator=GraphClassifier()) as again:
                must(again.labels == kept, "a continued session has other answers")
    return RIGHT
