"""Hostile data and hostile requests: nothing runs, nothing leaks, nothing is lost."""

from __future__ import annotations

import asyncio
import csv
import hmac
import json
import os
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gdpa.labeling import guard
from gdpa.labeling.images import FileImages, ImageError, png

pytestmark = pytest.mark.slow

SCRIPTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "javascript:alert(4)",
    "{{7*7}} ${alert(5)} `alert(6)`",
    "\u202egnp.exe \x07\x1b[31m",
]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A table with scripts in cells, labels, header and file names, and a cell of 10 MB."""
    folder = tmp_path_factory.mktemp("nasty") / "<b>data"
    folder.mkdir()
    (folder.parent / "secret.png").write_bytes(png(_pixels()))
    (folder / "good.png").write_bytes(png(_pixels()))
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 50)
    (folder / "page.png").write_bytes(b"<html><script>alert(9)</script>")
    (folder / "drawing.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(8)'/>"
    )
    os.symlink(folder.parent / "secret.png", folder / "link.png")
    names = ["good.png", "../secret.png", "/etc/passwd", "broken.png", "page.png", "drawing.svg"]
    names += ["link.png", "missing.png", "a\x00b.png", "", ".", "good.png/../../secret.png"]
    with (folder / "<i>t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["picture", "<img src=x onerror=alert(7)>", "size", "kind"])
        for i in range(48):
            text = SCRIPTS[i % len(SCRIPTS)] if i else "x" * 10_000_000
            kind = SCRIPTS[i // 8 % 2] if i % 8 == 0 else ""
            writer.writerow([names[i % len(names)].replace("\x00", "%00"), text, i % 7, kind])
    return folder


def _pixels():
    import numpy as np

    return np.arange(64, dtype=np.uint8).reshape(8, 8)


def test_scripts_in_cells_labels_and_names_are_text(nasty, label_command, new_page):
    server = label_command(
        "<i>t.csv",
        "--target",
        "kind",
        "--image",
        "picture",
        "--class",
        "</button><script>x",
        cwd=nasty,
    )
    page = new_page(server.url)
    assert page.locator("#classes button").count() == 3
    assert SCRIPTS[0] in page.locator("#classes").inner_text()
    for row in range(12):
        item = server.api(f"item/{row}")
        assert len(json.dumps(item)) < 100_000
        page.evaluate("row => fetch(`picture/${row}`)", row)
    page.keyboard.press("+")
    page.keyboard.type("<script>alert('new')</script>")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#classes button').length === 4")
    for _ in range(8):
        name = page.text_content("#row-name")
        page.keyboard.press("1")
        page.wait_for_function(
            "name => document.getElementById('row-name').textContent !== name", arg=name
        )
    server.followed()
    page.keyboard.press("?")
    page.wait_for_function("() => document.getElementById('guess-text').textContent !== ''")
    page.wait_for_timeout(1800)
    assert page.locator("script").count() == 1  # the page's own
    assert (
        page.evaluate("() => document.querySelectorAll('#item script, #classes script').length")
        == 0
    )
    # Pictures that cannot be shown are the only thing that the console mentions.
    assert [w for w in page.wrong if "415" not in w] == []
    report = page.evaluate("() => fetch('export/report').then(r => r.text())")
    assert "<script" not in report.lower()
    server.end()
    written = (nasty / "<i>t-labelled.csv").read_text()
    assert written.count("\n") >= 48


def test_pictures_stay_in_the_folder_and_are_pictures(nasty, tmp_path):
    cases = {
        "good.png": None,
        "./good.png": None,
        "../secret.png": "outside",
        "/etc/passwd": "outside",
        "link.png": "outside",
        "good.png/../../secret.png": "outside",
        "": "outside|empty",
        ".": "does not exist",
        "missing.png": "does not exist",
        "a\x00b.png": "outside",
        "x" * 5000: "outside|does not exist",
        "page.png": "not a PNG",
        "drawing.svg": "not a PNG",
    }
    pictures = FileImages(nasty, list(cases))
    for row, message in enumerate(cases.values()):
        if message is None:
            content, kind = pictures.get(row)
            assert kind == "image/png"
            assert content == (nasty / "good.png").read_bytes()
        else:
            with pytest.raises(ImageError, match=message):
                pictures.get(row)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(60_000_000)
    with pytest.raises(ImageError, match="50 MB"):
        FileImages(tmp_path, ["large.png"]).get(0)


@pytest.fixture(scope="module")
def running(tmp_path_factory, label_process):
    folder = tmp_path_factory.mktemp("server")
    (folder / "t.csv").write_text("a,b\n" + "".join(f"{i % 9},{i % 5}\n" for i in range(90)))
    server = label_process("t.csv", "--target", "kind", cwd=folder)
    server.log = folder / "t-labelled.csv.log"
    yield server
    server.kill()


def test_it_listens_on_this_machine_only(running):
    port = int(running.host.split(":")[1])
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    for address in others - {"127.0.0.1", "::1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((address, port), timeout=1):
            pass
    assert len(running.token) >= 32


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/wrong/", {}, 404),
        ("/wrong/api/state", {}, 404),
        ("/{token}", {}, 404),
        ("/{token}x/api/state", {}, 404),
        ("/{token}/api/state", {}, 200),
        ("/{token}/api/state", {"Host": "localhost:{port}"}, 200),
        ("/{token}/api/state", {"Host": "evil.example"}, 421),
        ("/{token}/api/state", {"Host": "evil.example:{port}"}, 421),
        ("/{token}/api/state", {"Host": "127.0.0.1"}, 421),
        ("/{token}/api/state", {"Origin": "http://evil.example"}, 403),
        ("/{token}/api/state", {"Origin": "null"}, 403),
        ("/{token}/api/state", {"Origin": "http://127.0.0.1:1"}, 403),
        ("/{token}/api/state", {"Origin": "http://127.0.0.1:{port}"}, 200),
        ("/{token}/api/state", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/{token}/api/state", {"Sec-Fetch-Site": "same-site"}, 403),
        ("/{token}/../../etc/passwd", {}, 404),
        ("/{token}/static/../server.py", {}, 404),
        ("/{token}/static/%2e%2e/server.py", {}, 404),
        ("/{token}/static/nothing.js", {}, 404),
        ("/{token}/api/item/90", {}, 400),
        ("/{token}/api/item/-1", {}, 404),
        ("/{token}/api/item/x", {}, 404),
        ("/{token}/picture/1", {}, 404),
        ("/{token}/export/everything", {}, 404),
        ("/{token}/export/model", {}, 400),
    ],
)
def test_who_is_answered(running, path, headers, status):
    port = running.host.split(":")[1]
    filled = {k.replace("-", "_"): v.format(port=port) for k, v in headers.items()}
    got, sent, content = running.request("GET", path.format(token=running.token), **filled)
    assert got == status
    assert running.token not in content.decode("utf-8", "replace")
    assert "Traceback" not in content.decode("utf-8", "replace")
    assert "default-src 'none'" in sent["content-security-policy"]
    assert "unsafe" not in sent["content-security-policy"]
    assert sent["x-content-type-options"] == "nosniff"
    assert sent["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in {k.lower() for k in sent}


def test_the_token_is_compared_in_constant_time(monkeypatch):
    pytest.importorskip("starlette")
    compared, statuses = [], []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        statuses.append(message.get("status"))

    guarded = guard.Guard(app, token="secret" * 4, origins=("http://127.0.0.1:1",))
    scope = {"type": "http", "method": "GET", "headers": [(b"host", b"127.0.0.1:1")]}
    for token in ("secret" * 4, "secret" * 3, "s", "", "é"):
        statuses.clear()
        # In a thread, because a browser of another test may keep an event loop in this one.
        request = guarded({**scope, "path": f"/{token}/api/state"}, None, send)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, request).result()
        assert statuses[0] == (200 if token == "secret" * 4 else 404)
        assert compared.pop() == token.encode()


def test_only_the_scripts_of_the_page_run(running, new_page):
    _, headers, content = running.request("GET", f"/{running.token}/")
    page = content.decode()
    assert re.findall(r"<script(.*?)>(.*?)</script>", page) == [
        (' type="module" src="static/app.js"', "")
    ]
    assert re.search(r"<style|\son\w+=|\sstyle=|javascript:", page) is None
    assert "script-src 'self';" in headers["content-security-policy"]
    opened = new_page(running.url)
    for attack in (
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.head.append(s)",
        "const d = document.createElement('div'); document.body.append(d);"
        "d.innerHTML = '<img src=x onerror=\"window.broken = 2\">'",
        "const i = document.createElement('img'); i.src = 'x'; document.body.append(i);"
        "i.setAttribute('onerror', 'window.broken = 3')",
        "window.setTimeout('window.broken = 4')",
    ):
        opened.evaluate("() => { try {" + attack + "} catch {} }")
    opened.wait_for_timeout(500)
    assert opened.evaluate("window.broken === undefined")
    assert opened.locator("#question").is_visible()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(running, method):
    assert running.request(method, f"/{running.token}/api/state")[0] == 405


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("label", b"{broken", 400),
        ("label", b"[1, 2]", 400),
        ("label", b"", 400),
        ("label", b"\xff\xfe", 400),
        ("label", b"[" * 30_000, 400),
        ("label", {"row": 1}, 400),
        ("label", {"row": "1", "value": "x", "by": ""}, 400),
        ("label", {"row": True, "value": "x", "by": ""}, 400),
        ("label", {"row": 10**30, "value": "x", "by": ""}, 400),
        ("label", {"row": -1, "value": "x", "by": ""}, 400),
        ("label", {"row": 1, "value": "", "by": ""}, 400),
        ("label", {"row": 1, "value": None, "by": ""}, 400),
        ("label", {"row": 1, "value": {"a": 1}, "by": ""}, 400),
        ("label", {"row": 1, "value": "x" * 501, "by": ""}, 400),
        ("label", {"row": 1, "value": "x", "by": "y" * 501}, 400),
        ("label", {"row": 1, "value": "x", "by": 7}, 400),
        ("label", {"row": 1, "value": "\ud800", "by": ""}, 400),
        ("label", {"row": 1, "value": "x", "by": "\udfff"}, 400),
        ("label", {"row": 1, "value": "x" * 100_000, "by": ""}, 413),
        ("skip", {"row": 90, "by": ""}, 400),
        ("remove", {"row": 5, "by": ""}, 400),
        ("next", {"n": 1000, "by": ""}, 400),
        ("next", {"n": 0, "by": ""}, 400),
        ("erase", {"row": 1, "by": ""}, 404),
    ],
)
def test_malformed_answers_are_refused_and_change_nothing(running, what, body, status):
    before = running.log.read_bytes()
    path = f"/{running.token}/api/{what}"
    got, _, content = running.request("POST", path, body, Content_Type="application/json")
    assert got == status
    assert "error" in content.decode() or status in (404, 413)
    assert running.log.read_bytes() == before


def test_posts_need_json_and_an_end(running):
    path = f"/{running.token}/api/label"
    body = json.dumps({"row": 1, "value": "x", "by": ""}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert running.request("POST", path, body, Content_Type=kind)[0] == 415
    # A body in pieces, without a length, that never ends.
    with socket.create_connection(running.host.split(":"), timeout=10) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {running.host}\r\n"
        head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        try:
            for _ in range(40):
                connection.sendall(piece)
            answer = connection.recv(200)
        except OSError:
            answer = b"413"
    assert b"413" in answer
    assert running.api("state")["labelled"] == 0


def test_a_flood_loses_nothing(running):
    """As many requests as this process can send in ten seconds, and answers among them."""
    stop = time.monotonic() + 10.0
    counts: dict[int, int] = {}

    def flood(token):
        while time.monotonic() < stop:
            try:
                status = running.request("GET", f"/{token}/api/state")[0]
            except OSError:
                status = 0
            counts[status] = counts.get(status, 0) + 1

    threads = [
        threading.Thread(target=flood, args=(token,))
        for token in (running.token, "wrong", running.token, "wrong" * 1000)
    ]
    for thread in threads:
        thread.start()
    kept = {}
    path = f"/{running.token}/api/label"
    number = 0
    while time.monotonic() < stop:
        row, value = number % 60, f"k{number % 7}"
        status, _, _ = running.request("POST", path, {"row": row, "value": value, "by": ""})
        if status == 200:
            kept[row] = value
        else:
            assert status == 503  # busy: the page sends it again
        number += 1
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert set(counts) <= {200, 404, 503}
    assert sum(counts.values()) > 50
    assert kept
    events = [json.loads(line) for line in running.log.read_text().splitlines()[1:]]
    assert {e["row"]: e["value"] for e in events if e["do"] == "label"} == kept
    assert running.api("state")["labelled"] == len(kept)
