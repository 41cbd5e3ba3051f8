"""Every example of the gallery runs, draws, and warns about nothing."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import runpy
import socket
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
TUTORIALS = FOLDER.parent / "docs" / "tutorials"
EXAMPLES = [*sorted(FOLDER.glob("plot_*.py")), *sorted(TUTORIALS.glob("plot_*.py"))]


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


PAGES = ["index", "start", "installation", "networks", "text", "pictures", "gdpa-classifier"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_python_of_the_first_pages_runs(page):
    text = (FOLDER.parent / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:  # in order, as a reader would
        exec(compile(block, f"{page}.md", "exec"), names)


@pytest.mark.slow
def test_both_halves_of_the_page_for_newcomers_run():
    """Ours always, those of other packages where these are installed."""
    text = (FOLDER.parent / "docs" / "coming-from.md").read_text()
    shared, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    pattern = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
    (start,) = pattern.findall(shared)
    names: dict[str, object] = {}
    exec(compile(start, "coming-from.md", "exec"), names)
    assert len(sections) == 4
    for section in sections:
        theirs, ours = pattern.findall(section)
        assert "gdpa" in ours
        assert len(theirs.splitlines()) <= 12
        assert len(ours.splitlines()) <= 12
        with contextlib.suppress(ModuleNotFoundError):
            exec(compile(theirs, section.splitlines()[0], "exec"), names)
        exec(compile(ours, section.splitlines()[0], "exec"), names)
    found = set(names["rows"][np.argsort(names["confidence"])[:10]])
    assert len(found & set(names["known"][:5])) >= 3  # most of the five wrong labels


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
