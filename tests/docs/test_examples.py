"""Every example of the gallery runs, draws, and warns about nothing."""

from __future__ import annotations

import importlib.util
import re
import runpy
import socket
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No window, no network, an empty folder to work in."""

    def refuse(*args, **kwargs):
        raise OSError("an example asked for the network")

    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    plt.close("all")
    yield
    plt.close("all")


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A shape of matplotlib or scikit-learn that is to go one day is not the reader's business.
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums(), "an example without a picture"
    assert list(tmp_path.iterdir()) == []  # and it leaves no file behind


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_begins_with_a_title_and_text(path):
    title, line, empty, first = path.read_text().removeprefix('"""\n').split("\n")[:4]
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert empty == ""
    assert first


@pytest.mark.parametrize("page", ["index", "start", "installation", "links", "text", "pictures"])
def test_python_of_the_first_pages_runs(page):
    text = (FOLDER.parent / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:  # in order, as a reader would
        exec(compile(block, f"{page}.md", "exec"), names)


def test_every_command_is_described():
    from gdpa.cli.app import COMMANDS

    text = (FOLDER.parent / "docs" / "command-line.md").read_text()
    assert re.findall(r"^## gdpa ([\w-]+)$", text, flags=re.MULTILINE) == list(COMMANDS)


def test_picture_of_the_readme_is_small_and_made_by_its_command(tmp_path):
    spec = importlib.util.spec_from_file_location("picture", FOLDER / "make_readme_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.draw(tmp_path / "readme.png")
    assert 10_000 < made.stat().st_size < 150_000
    assert 10_000 < module.TARGET.stat().st_size < 150_000
