"""Draw docs/_static/labeling.png: ``python examples/make_labeling_picture.py``.

A screenshot of ``gdpa label`` on scikit-learn's digits after 40 correct answers, in headless
Chromium (``pip install playwright``; the browser of the system is used).
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from gdpa.labeling.server import LabelServer
from gdpa.labeling.tables import TableSource, open_table

TARGET = Path(__file__).resolve().parents[1] / "docs" / "_static" / "labeling.png"
ANSWERS = 40


def draw(target: Path) -> Path:
    X, truth = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "digits.npz"
        np.savez(data, X=X[:1000])
        source = TableSource(data=str(data), target="digit", shape=(8, 8))
        controller, exporter, _ = open_table(source, log=None)
        for _ in range(ANSWERS):
            row = int(controller.session.next()[0])
            controller.answer("label", "", row, str(truth[row]))
        server = LabelServer(controller, exporter)
        server.start()
        try:
            screenshot(server.url, target)
        finally:
            server.stop()
    return target


def screenshot(url: str, target: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 1010})
        page.goto(url)
        for condition in (
            "() => document.getElementById('accuracy-text').textContent.includes('expects')",
            "() => document.getElementById('map-text').textContent.includes('colour')",
        ):
            page.wait_for_function(condition)
        page.keyboard.press("?")
        page.wait_for_function("() => document.getElementById('guess-text').textContent !== ''")
        page.wait_for_timeout(1000)
        target.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    print(draw(TARGET))
