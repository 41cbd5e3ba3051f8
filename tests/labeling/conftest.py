"""A table, a server on a port of its own, and a headless browser."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection

import numpy as np
import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="session")
def flowers(tmp_path_factory):
    """A table of 120 flowers of three kinds, without their kind, and the kinds."""
    rng = np.random.default_rng(7)
    kinds = np.arange(120) % 3
    folder = tmp_path_factory.mktemp("flowers")
    with (folder / "flowers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "noise", "length", "width", "colour"])
        for i, kind in enumerate(kinds):
            writer.writerow(
                [
                    f"flower {i + 1}",
                    f"{rng.normal():.3f}",
                    f"{rng.normal(4 + 3 * kind, 0.5):.2f}",
                    f"{rng.normal(9 - 2 * kind, 0.5):.2f}",
                    ["red", "blue"][int(rng.integers(2))],
                ]
            )
    return folder, ["rose", "tulip", "lily"], kinds


class Running:
    """``gdpa label`` as a process of its own."""

    def __init__(self, *args: str, cwd) -> None:
        self.args, self.cwd = args, cwd
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "gdpa", "label", *self.args, "--no-browser"]
        self.process = subprocess.Popen(
            command,
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.communicate()[1]
        self.host = self.url.split("/")[2]
        self.token = self.url.split("/")[3]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self, how=signal.SIGINT) -> str:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.communicate(timeout=30)[1]

    def request(self, method, path, body=None, **headers):
        """One request without a browser: status, headers, content."""
        connection = HTTPConnection(self.host, timeout=20)
        sent = {k.replace("_", "-"): v for k, v in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def api(self, path, body=None):
        status, _, content = self.request(
            "GET" if body is None else "POST", f"/{self.token}/api/{path}", body
        )
        assert status == 200, content
        return json.loads(content)

    def followed(self):
        """Wait until the background has caught up."""
        for _ in range(600):
            state = self.api("state")
            if not state["following"]:
                return state
            time.sleep(0.1)
        raise AssertionError("the background has not caught up in a minute")


@pytest.fixture(scope="session")
def label_process():
    """The class above, for servers that several tests share."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    return Running


@pytest.fixture
def label_command(tmp_path):
    """Start ``gdpa label``; ended at the end of the test."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    started = []

    def start(*args, cwd=tmp_path):
        started.append(Running(*args, cwd=cwd))
        return started[-1]

    yield start
    for running in started:
        running.kill()


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, the system's."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """Open pages that record what goes wrong: console errors, exceptions, outside requests."""
    contexts = []

    def open_page(url, **options):
        options.setdefault("viewport", {"width": 1280, "height": 860})
        context = browser.new_context(**options)
        context.set_default_timeout(90_000)  # the background has other work on a busy machine
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        home = "/".join(url.split("/")[:3]) + "/"
        page.on(
            "console",
            lambda m: page.wrong.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(home) else page.wrong.append(f"outside: {r.url}"),
        )
        page.on("dialog", lambda d: (page.wrong.append(f"dialog: {d.message}"), d.dismiss()))
        page.goto(url)
        page.wait_for_function("() => document.getElementById('row-name').textContent !== ''")
        return page

    yield open_page
    for context in contexts:
        context.close()
