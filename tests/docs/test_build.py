"""The site builds without a warning, and its pages open in a browser without an error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gdpa.files import lock

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
PAGES = (
    "index", "start", "guide", "theory", "REPRODUCTION", "api/index", "auto_examples/index",
    "command-line", "labeling", "text", "performance", "gdpa-classifier", "evidence",
)  # fmt: skip


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Parallel test processes share one: the first to get the lock builds it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "site"
    with lock(shared / "site.lock"):
        log = folder / "build.log"
        if not log.exists():
            _build(folder, log)
    return folder / "html"


def _build(folder: Path, log: Path) -> None:
    # In a copy: the gallery and the API pages are written beside their sources.
    folder.mkdir()
    ignored = shutil.ignore_patterns("_build", "auto_examples", "generated", "__pycache__")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    # The examples are run by their own test.
    quick = ["-D", "sphinx_gallery_conf.plot_gallery=0"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *quick, "docs", "html"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    log.write_text(f"exit {done.returncode}\n{done.stdout}{done.stderr}")


def test_site_builds_without_warnings(site):
    text = (site.parent / "build.log").read_text()
    assert text.strip() == "exit 0"


def test_every_public_name_has_a_page(site):
    import gdpa
    from gdpa import datasets, gershgorin, graph, linalg, plotting
    from gdpa.solvers.registry import METHODS

    modules = (gdpa, datasets, gershgorin, graph, linalg, plotting)
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                page = site / "generated" / f"{module.__name__}.{name}.html"
                assert page.exists(), page.name
    for place in METHODS.values():
        page = site / "generated" / f"gdpa.solvers.{place.replace(':', '.')}.html"
        assert page.exists(), page.name


def test_every_method_is_in_the_guide():
    from gdpa.solvers.registry import METHODS

    guide = (ROOT / "docs" / "guide.md").read_text()
    missing = [name for name in METHODS if f'"{name}"' not in guide and name != "gdpa"]
    assert missing == []


def test_pages_ask_for_nothing_from_the_network(site):
    """No script, style sheet, picture or font has an address of its own."""
    pattern = re.compile(
        r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*\""
    )
    for page in site.rglob("*.html"):
        found = pattern.findall(page.read_text(encoding="utf-8"))
        assert found == [], page


def test_formulas_are_mathml(site):
    page = (site / "theory.html").read_text(encoding="utf-8")
    assert page.count("<math") > 50
    assert "<mtable" in page  # the block matrices
    text = re.sub(r"<[^>]+>", "", page[page.index("<article") :])
    assert not re.findall(r"\\(?:[a-zA-Z]+)|\$\$", text)


@pytest.mark.parametrize("size", SIZES)
def test_pages_open_in_a_browser(site, browser, size):
    for page in PAGES:
        _opens(site, browser, page, *SIZES[size])


def _opens(site, browser, page, width, height):
    visit = browser.visit(
        site / f"{page}.html",
        width=width,
        height=height,
        ask={
            "title": "document.title",
            "wide": "document.documentElement.scrollWidth",
            "broken": "[...document.images].filter(i => !i.complete || !i.naturalWidth).length",
            "tops": "[...document.querySelectorAll('.bd-header .navbar-nav > li')]"
            ".filter(e => e.offsetWidth).map(e => e.getBoundingClientRect().top)",
            "heading": "document.querySelector('h1').getBoundingClientRect().width",
        },
    )
    assert visit.errors == []
    assert visit.failed == []
    assert visit.requested
    assert all(url.startswith(("file:", "data:")) for url in visit.requested)
    assert "gdpa" in visit.values["title"]
    assert visit.values["broken"] == 0
    assert visit.values["heading"] > 0
    assert visit.values["wide"] <= width, page  # nothing to scroll sideways
    tops = visit.values["tops"]
    assert bool(tops) == (width > 1000), page  # on the phone they are in a menu
    assert max(tops, default=0) - min(tops, default=0) < 10, page  # the header is one line


def test_the_browser_would_notice(tmp_path, browser):
    """A page with an error and a missing picture is reported: the test above can fail."""
    page = tmp_path / "bad.html"
    page.write_text("<h1>x</h1><img src='none.png'><script>console.error('oh'); no_such()</script>")
    visit = browser.visit(page, width=400, height=400)
    assert len(visit.errors) >= 2
    assert visit.failed
