"""A browser for the tests, driven through its debugging pipe: no package is needed for it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


@dataclass
class Visit:
    """What happened while a page was open."""

    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)


class Browser:
    """One Chromium process; messages are JSON, separated by NUL, on file descriptors 3 and 4."""

    def __init__(self, program: str, profile: Path) -> None:
        down_read, down_write = os.pipe()
        up_read, up_write = os.pipe()

        def wire() -> None:
            # The pipes may themselves be 3 and 4: move them out of the way first.
            read, write = os.dup(down_read), os.dup(up_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=wire,
        )
        os.close(down_read)
        os.close(up_write)
        self.write_to, self.read_from = down_write, up_read
        self.buffer = b""
        self.last = 0
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    session: str | None = None

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close", anywhere=True)
        os.close(self.write_to)
        os.close(self.read_from)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def receive(self, until: float) -> dict | None:
        """Next message, or None when the time is up."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select(
                [self.read_from], [], [], max(0.0, until - time.monotonic())
            )
            if not ready:
                return None
            data = os.read(self.read_from, 1 << 20)
            if not data:
                raise OSError("the browser closed its pipe")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, *, anywhere: bool = False, **params: object) -> dict:
        self.last += 1
        request: dict = {"id": self.last, "method": method, "params": params}
        if self.session and not anywhere:
            request["sessionId"] = self.session
        os.write(self.write_to, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + 60
        while (message := self.receive(until)) is not None:
            if message.get("id") == self.last:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.events.append(message)
        raise TimeoutError(f"no answer to {method}")

    def wait_for(self, method: str) -> None:
        until = time.monotonic() + 60
        while not any(event.get("method") == method for event in self.events):
            message = self.receive(until)
            if message is None:
                raise TimeoutError(f"{method} did not happen")
            self.events.append(message)

    def visit(
        self,
        page: Path,
        *,
        width: int,
        height: int,
        dark: bool = False,
        ask: dict[str, str] | None = None,
        picture: Path | None = None,
    ) -> Visit:
        """Open a file at a size, let it settle, and report what went wrong."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        # Whatever scripts ask for after loading arrives before two frames have been drawn.
        settle = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
        self.call("Runtime.evaluate", expression=settle, awaitPromise=True)
        result = Visit()
        for name, expression in (ask or {}).items():
            answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
            result.values[name] = answer["result"].get("value")
        if picture is not None:
            shot = self.call("Page.captureScreenshot", format="png")
            picture.write_bytes(base64.b64decode(shot["data"]))
        for event in self.events:
            _judge(event, result)
        return result


def _judge(event: dict, result: Visit) -> None:
    method, params = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        result.errors.append(json.dumps(params["exceptionDetails"])[:500])
    elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
        result.errors.append(json.dumps(params["args"])[:500])
    elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
        result.errors.append(params["entry"]["text"])
    elif method == "Network.requestWillBeSent":
        result.requested.append(params["request"]["url"])
    elif method == "Network.loadingFailed":
        result.failed.append(params.get("errorText", "?"))
    elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
        result.failed.append(params["response"]["url"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory):
    """Chromium, or a skip that says it is missing."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no Chromium on this machine (looked for {', '.join(NAMES)})")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
