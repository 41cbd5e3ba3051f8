"""A local web server that can break off, refuse ranges and lie, and data sets that live on it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from reproduction.datasets import catalogue
from reproduction.datasets import download as download_module
from reproduction.datasets.cache import content_sha256
from reproduction.datasets.catalogue import Card, Source


@dataclass
class Site:
    """What the server holds, how it behaves, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cut: dict[str, list[int]] = field(default_factory=dict)  # bytes per answer before it breaks off
    failures: dict[str, list[int]] = field(default_factory=dict)  # status codes to answer first
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            asked = self.headers.get("Range")
            site.requests.append((name, asked))
            site.agents.append(self.headers.get("User-Agent"))
            if site.failures.get(name):
                self.send_error(site.failures[name].pop(0))
                return
            if name not in site.files:
                self.send_error(404)
                return
            content, start = site.files[name], 0
            if asked and site.ranges:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            else:
                self.send_response(200)
            body = content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if site.cut.get(name):
                body = body[: site.cut[name].pop(0)]
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def site(monkeypatch):
    """A server on this machine; retries do not wait."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download_module.time, "sleep", lambda seconds: None)
    made = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def toy(monkeypatch):
    """Factory of a small entry of the catalogue, called "toy"."""

    def make(sources=(), n=6, d=2, seed=0, compressed=False):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(n, d)), 3)
        y = np.where(np.arange(n) % 3 == 0, 1, -1).astype(np.int8)
        n_positive = int((y > 0).sum())
        card = Card(
            name="toy", source="made here", license="none", n_samples=n, n_features=d,
            n_positive=n_positive, classes="", csv_sha256="0" * 64,
            content_sha256=content_sha256(X, y), sources=tuple(sources), compressed=compressed,
        )  # fmt: skip
        monkeypatch.setitem(catalogue.CATALOGUE, "toy", card)
        return card, X, y

    return make


@pytest.fixture
def rehome(monkeypatch):
    """Factory that moves a catalogue entry's sources to other addresses."""

    def move(name: str, sources: list[Source]) -> None:
        entry = catalogue.CATALOGUE[name]
        monkeypatch.setitem(catalogue.CATALOGUE, name, replace(entry, sources=tuple(sources)))

    return move
