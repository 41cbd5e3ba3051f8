"""The report in a browser: no console error, no request, charts drawn, nothing too wide."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

CHROMIUM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path"),
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """`gdpa demo` as the README's reader runs it, with its JSON and its report."""
    pytest.importorskip("typer", reason="the command line needs the extra cli")
    folder = tmp_path_factory.mktemp("demo")
    ended = subprocess.run(
        [sys.executable, "-m", "gdpa", "demo", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), folder / "gdpa-report.html"


def browse(page, folder, *options, width=390, height=844):
    """Open a page; what the browser printed, and what it asked for."""
    log = folder / "net.json"
    ended = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--enable-logging=stderr",
            f"--log-net-log={log}",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},{height}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    events = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    # What the browser asks for on its own (dictionaries, updates) has no origin.
    asked = {
        e["url"]
        for e in events
        if "url" in e and e.get("initiator", "not an origin") != "not an origin"
    }
    return ended, {url for url in asked if not url.startswith(("file:", "data:"))}


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_report_opens_without_a_complaint(demo, tmp_path, width, height):
    _, page = demo
    shot = tmp_path / "shot.png"
    ended, asked = browse(
        page, tmp_path, f"--screenshot={shot}", "--hide-scrollbars", width=width, height=height
    )
    assert shot.stat().st_size > 10_000
    assert "CONSOLE" not in ended.stderr
    assert asked == set()


def test_a_request_would_have_been_seen(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<!DOCTYPE html><img src="http://127.0.0.1:9/x.png"><script>boom()</script>')
    ended, asked = browse(page, tmp_path, "--dump-dom")
    assert asked == {"http://127.0.0.1:9/x.png"}
    assert "CONSOLE" in ended.stderr


# The page itself allows no script; a copy without its policy measures itself.
MEASURE = """<script>
const root = document.documentElement;
for (const folded of document.querySelectorAll('details')) folded.open = true;
root.dataset.wide = root.scrollWidth + ',' + root.clientWidth;
root.dataset.charts = [...document.querySelectorAll('svg.chart')].filter(
  s => s.getBoundingClientRect().width > 200 && s.getBoundingClientRect().height > 80).length;
</script></body>"""


@pytest.mark.parametrize("width", [390, 1280])
def test_charts_are_drawn_and_nothing_is_wider_than_the_screen(demo, tmp_path, width):
    _, page = demo
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    copy = tmp_path / "copy.html"
    copy.write_text(text.replace("</body>", MEASURE))
    ended, _ = browse(copy, tmp_path, "--dump-dom", width=width)
    wide, seen = re.search(r'data-wide="(\d+),(\d+)"', ended.stdout).groups()
    assert int(wide) <= int(seen)
    assert int(re.search(r'data-charts="(\d+)"', ended.stdout)[1]) == text.count('class="chart"')
    assert text.count('class="chart"') == 5


def test_a_script_in_the_page_would_not_run(demo, tmp_path):
    _, page = demo
    copy = tmp_path / "copy.html"
    copy.write_text(page.read_text().replace("</body>", MEASURE))
    ended, _ = browse(copy, tmp_path, "--dump-dom")
    assert "data-wide=" not in ended.stdout.split("<head>")[0]


def test_the_demo_reports_the_comparison(demo):
    document, page = demo
    assert document["report"] == str(page)
    stated = re.fullmatch(
        r"Breast cancer: 10 labels, 559 rows, (\d\d\.\d) % correct "
        r"\(mean over 3 draws of the labels\)",
        document["headline"],
    )
    first = document["table"][0]
    assert (first["data"], first["method"]) == ("breast cancer", "committee")
    assert stated[1] == f"{100 * first['accuracy']:.1f}"  # the headline is a cell of the table
    assert f"{stated[1]} %</td>" in page.read_text()
    assert document["headline"] in page.read_text()
    found = {}
    for row in document["table"]:
        assert row["draws"] > 1
        found.setdefault(row["data"], {})[row["method"]] = row["accuracy"]
    methods = {"committee", "GDPAClassifier", "LabelSpreading"}
    methods |= {"logistic regression", "random forest"}
    assert all(set(row) == methods for row in found.values())
    assert found["digits"]["committee"] == max(found["digits"].values())
    assert np.mean([row["committee"] for row in found.values()]) > 0.9


EVIL = [
    "<script>document.documentElement.dataset.run='1'</script>",
    "<img src=x onerror=\"document.documentElement.dataset.run='2'\">",
    '"><svg onload="document.documentElement.dataset.run=\'3\'">',
    "</title></style></script><script>document.documentElement.dataset.run='4'</script>",
    "javascript:document.documentElement.dataset.run=5",
    "{{7*7}}${7*7}<%= 7*7 %>",
]


def test_class_names_and_cells_are_text_even_without_the_policy(tmp_path):
    """The escaping alone must hold: the copy that is opened has no content security policy."""
    rng = np.random.default_rng(0)
    rows = ["label,number," + ",".join('"' + cell.replace('"', '""') + '"' for cell in EVIL[:2])]
    for i in range(90):
        label = EVIL[i % 3] if i < 60 else ""
        cells = [label, f"{i % 3 * 5 + rng.normal():.2f}", EVIL[i % 6], EVIL[(i + 1) % 6]]
        rows.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
    data = tmp_path / "<b onclick=x>.csv"
    data.write_text("\n".join(rows) + "\n")
    ended = subprocess.run(
        [sys.executable, "-m", "gdpa", "fit", data.name, "-t", "label", "--report", "r.html", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode in (0, 1), ended.stderr
    text = (tmp_path / "r.html").read_text()
    copy = tmp_path / "copy.html"
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy.write_text(bare.replace("</body>", MEASURE))
    seen, asked = browse(copy, tmp_path, "--dump-dom")
    assert 'data-wide="' in seen.stdout  # scripts do run in this copy: ours did
    assert "data-run" not in seen.stdout.split("<head>")[0]
    assert asked == set()
