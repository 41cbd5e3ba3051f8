"""Attacks on a labelling session: labels that cannot be fitted, a lost log, half-sent requests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from http.client import HTTPConnection

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.labeling.controller import Controller
from gdpa.labeling.rows import RowView

X = np.random.default_rng(0).normal(size=(40, 2))
UNFIT = [1.5, -0.1, 10**300, 2**53 + 1, 1e300, float("nan"), float("inf"), [1], None]


@pytest.mark.parametrize("value", UNFIT)
def test_a_number_that_cannot_be_a_class_is_refused_at_once(value, tmp_path):
    log = tmp_path / "log"
    with LabelingSession(X, log=log) as session:
        before = log.read_bytes()
        with pytest.raises(ValueError, match="integers"):
            session.label(0, value)
        assert log.read_bytes() == before
        assert session.labels == {}
    if value is not None and value == value and value != [1]:
        with pytest.raises(ValueError, match="integers"):
            LabelingSession(X, [value] * 40)


def test_every_number_that_is_accepted_can_be_fitted():
    session = LabelingSession(X)
    for row, value in enumerate([2**53, -(2**53), 3.0, np.int64(7), np.float32(2.0), 0]):
        session.label(row, value)
    assert set(session.predictions().tolist()) <= set(session.labels.values())


def test_a_line_of_the_log_with_such_a_label_is_reported_and_not_used(tmp_path):
    log = tmp_path / "log"
    LabelingSession(X, log=log).close()
    with log.open("a") as file:
        file.write(json.dumps({"do": "label", "row": 1, "value": 1.5, "by": ""}) + "\n")
    with LabelingSession(X, log=log) as session:
        assert session.labels == {}
        assert any("line 2" in note for note in session.log_notes)


def _controller(session):
    return Controller(session, RowView([], []), title="t", target="y")


def _wait(holds, seconds=30.0):
    stop = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < stop
        time.sleep(0.01)


def test_the_error_of_one_worker_is_not_cleared_by_the_other(monkeypatch):
    session = LabelingSession(X)
    session.label(0, "a")
    ended = []

    def broken():
        raise MemoryError("no room for the fit")

    monkeypatch.setattr(session, "refresh", broken)
    follow = session.follow
    monkeypatch.setattr(session, "follow", lambda: (follow(), ended.append(session.version)))
    controller = _controller(session)
    controller.start()
    try:
        for row in (1, 2, 3):
            controller.answer("label", "", row, "ab"[row % 2])
            _wait(lambda: ended and ended[-1] == session.version)
        _wait(lambda: "no room for the fit" in controller.state()["trouble"])
        controller.answer("label", "", 4, "a")
        _wait(lambda: ended[-1] == session.version)
        assert "no room for the fit" in controller.state()["trouble"]
    finally:
        controller.stop()


def test_ctrl_c_writes_the_labels_even_if_the_fit_fails(tmp_path, monkeypatch, capsys):
    pytest.importorskip("uvicorn")
    from gdpa.cli.app import run
    from gdpa.labeling.server import LabelServer

    (tmp_path / "t.csv").write_text("a\n" + "".join(f"{i % 7}\n" for i in range(30)))

    def serve(server):
        for row in range(4):
            server.controller.answer("label", "", row, "ab"[row % 2])

    def broken(self):
        raise MemoryError("no room for the fit")

    monkeypatch.setattr(LabelServer, "run", serve)
    monkeypatch.setattr(LabelingSession, "refresh", broken)
    monkeypatch.chdir(tmp_path)
    assert run(["label", "t.csv", "--target", "y", "--no-browser"]) == 2
    assert "no room for the fit" in capsys.readouterr().err
    lines = (tmp_path / "t-labelled.csv").read_text().splitlines()
    assert lines[1:4] == ["0,a,,,", "1,b,,,", "2,a,,,"]
    assert len(lines) == 31


def _removed(log):
    log.unlink()


def _replaced(log):
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content)


def _emptied(log):
    os.truncate(log, 0)


def _folder_removed(log):
    log.unlink()
    log.parent.rmdir()


@pytest.mark.parametrize("attack", [_removed, _replaced, _emptied, _folder_removed])
def test_no_answer_is_acknowledged_once_the_log_is_lost(attack, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    log = folder / "log"
    session = LabelingSession(X, log=log)
    session.label(0, "a")
    attack(log)
    for _ in range(2):
        with pytest.raises(OSError, match="removed or changed"):
            session.label(1, "b")
    assert session.labels == {0: "a"}
    session.close()


def test_a_log_that_is_put_back_is_written_to_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = LabelingSession(X, log="log")
    monkeypatch.chdir("/")  # the log is still where it was
    session.label(0, "a")
    (tmp_path / "log").rename(tmp_path / "aside")
    with pytest.raises(OSError, match="removed or changed"):
        session.label(1, "b")
    (tmp_path / "aside").rename(tmp_path / "log")
    session.label(2, "c")
    session.close()
    with LabelingSession(X, log=tmp_path / "log") as again:
        assert again.labels == {0: "a", 2: "c"}


def test_a_log_that_is_removed_while_it_is_written_is_not_acknowledged(tmp_path, monkeypatch):
    log = tmp_path / "log"
    session = LabelingSession(X, log=log)
    fsync = os.fsync

    def sync_and_remove(handle):
        fsync(handle)
        log.unlink(missing_ok=True)

    monkeypatch.setattr(os, "fsync", sync_and_remove)
    with pytest.raises(OSError, match="removed or changed"):
        session.label(0, "a")
    assert session.labels == {}
    session.close()


@pytest.mark.parametrize(
    "name", [r"\\evil.example\share\x.png", "//evil.example/share/x.png", r"\\?\UNC\evil\s\x.png"]
)
def test_a_foreign_path_is_refused_before_it_is_resolved(name, tmp_path, monkeypatch):
    from pathlib import Path, PureWindowsPath

    from gdpa.labeling import images
    from gdpa.tables import pictures

    monkeypatch.setattr(pictures, "PurePath", PureWindowsPath)
    resolve, resolved = Path.resolve, []
    monkeypatch.setattr(Path, "resolve", lambda p, **k: (resolved.append(p), resolve(p, **k))[1])
    with pytest.raises(images.ImageError, match="outside"):
        images.FileImages(tmp_path, [name]).get(0)
    assert resolved == [tmp_path]


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_a_deeply_nested_log_line_is_named(depth, tmp_path):
    log = tmp_path / "log"
    LabelingSession(X, log=log).close()
    with log.open("a") as file:
        file.write(f'{{"do": "label", "row": 1, "value": {"[" * depth}{"]" * depth}}}\n')
    with LabelingSession(X, log=log) as session:
        assert session.labels == {}
        assert any("line 2" in note for note in session.log_notes)


@pytest.fixture
def server():
    """A server in this process."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    from gdpa.labeling.server import LabelServer

    started = LabelServer(_controller(LabelingSession(X)), None)
    started.start()
    _wait(lambda: started._server.started)
    yield started
    started.stop()


def _status(server, path="/api/state"):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", f"/{server.token}{path}")
        return connection.getresponse().status
    finally:
        connection.close()


def _connected(server, count, content):
    peers = []
    for _ in range(count):
        peers.append(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        peers[-1].sendall(content)
    return peers


def test_half_sent_requests_do_not_block_the_page(server):
    peers = _connected(server, 150, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    try:
        assert [_status(server) for _ in range(5)] == [200] * 5
    finally:
        for peer in peers:
            peer.close()


def test_a_hundred_pages_that_connect_at_once_are_all_served(server):
    request = f"GET /{server.token}/api/state HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    peers = _connected(server, 100, b"")
    try:
        assert _status(server) == 200  # all are accepted by now
        for peer in peers:
            peer.sendall(request.encode())
        assert all(peer.recv(4096).startswith(b"HTTP/1.1 200") for peer in peers)
    finally:
        for peer in peers:
            peer.close()


def test_answers_do_not_wait_for_questions_that_are_being_chosen(server):
    body = '{"n": 1, "by": "a"}'
    head = f"POST /{server.token}/api/next HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    session = server.controller.session
    with session._asking:
        peers = _connected(server, 60, (head + body).encode())  # more than there are threads
        connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
        data = json.dumps({"row": 1, "value": "x", "by": "b"})
        kind = {"Content-Type": "application/json"}
        connection.request("POST", f"/{server.token}/api/label", data, kind)
        assert connection.getresponse().status == 200
        connection.close()
        assert _status(server) == 200
    for peer in peers:
        assert peer.recv(4096).startswith(b"HTTP/1.1 200")
        peer.close()
    assert session.labels == {1: "x"}


def test_refused_requests_do_not_hold_their_connection(server):
    request = f"GET /wrong/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    peers = _connected(server, 150, request)
    try:
        for peer in peers:
            with contextlib.suppress(ConnectionResetError):
                assert b"connection: close" in peer.recv(4096)
        assert _status(server) == 200
    finally:
        for peer in peers:
            peer.close()


def test_a_request_that_never_ends_is_closed(monkeypatch):
    pytest.importorskip("uvicorn")
    from gdpa.labeling import server as module

    monkeypatch.setattr(module, "HEADER_SECONDS", 0.2)
    server = module.LabelServer(_controller(LabelingSession(X)), None)
    server.start()
    try:
        _wait(lambda: server._server.started)
        (peer,) = _connected(server, 1, b"GET / HTTP/1.1\r\n")
        with peer, contextlib.suppress(ConnectionResetError):
            assert peer.recv(100) == b""
    finally:
        server.stop()
