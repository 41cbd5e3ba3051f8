"""Every command in the shell blocks of the pages runs as pasted, with the files of gdpa example."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gdpa.datasets import example_files

pytest.importorskip("typer", reason="the command line needs the extra cli")
NAMES = ("plants", "reviews", "photos", "papers", "cut")

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("command-line", "start", "guide"))]
PAGES += [f"docs/{name}.md" for name in ("text", "pictures", "networks", "first-labels")]
# Lines that are not run here, and why.
ELSEWHERE = {
    "pip install": "installs packages",
    "gdpa demo": "run in tests/report/test_browser.py",
    "gdpa paper": "run in tests/cli/test_paper.py",
    "gdpa distributed": "run in tests/distributed",
    "gdpa verify-session": "run in tests/labeling, needs a session",
    "gdpa example": "run in tests/cli/test_example.py",
    "--embed": "downloads a network",
}


def commands(page):
    """Return the lines of the shell blocks of a page, without comments."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M):
        whole = block.replace("\\\n", " ")
        found += [line.partition("  #")[0].strip() for line in whole.splitlines() if line.strip()]
    return found


def run(line, folder, **options):
    """Start a line in a shell in which gdpa is the package under test."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    program = bin_folder / "gdpa"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gdpa "$@"\n')
    program.chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of all examples, and the lines that were run in it."""
    made = tmp_path_factory.mktemp("pasted")
    for name in NAMES:
        for path, content in example_files(name).items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(content)
    return made, set()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_as_pasted(page, folder):
    tmp_path, done = folder
    for line in commands(page):
        if line in done or any(part in line for part in ELSEWHERE):
            continue
        done.add(line)
        assert line.startswith(("gdpa ", "cat ")), f"{page}: {line} is neither run nor excused"
        if line.startswith("gdpa label"):
            session = run(f"exec {line} --no-browser", tmp_path, bufsize=1)
            shown = ""
            for text in session.stdout:
                shown += text
                if "http://" in text:
                    break
            session.send_signal(signal.SIGINT)
            session.communicate()
            assert "http://" in shown, f"{line}: {shown}"
            for file in tmp_path.glob("*-labelled*"):
                file.unlink()  # photos/ and photos.csv would share a session
            continue
        ended = run(line, tmp_path)
        shown, _ = ended.communicate()
        assert ended.returncode == 0, f"{line}: {shown}"


def test_the_pages_use_the_files_of_the_examples():
    written = {path.split("/")[0] for name in NAMES for path in example_files(name)}
    text = "\n".join(line for page in PAGES for line in commands(page))
    for file in ("plants.csv", "reviews.csv", "photos", "papers.csv", "borders.txt", "digits.npz"):
        assert file in written
        assert file in text


def test_the_first_block_of_the_guide_runs_with_the_example(folder, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(folder[0])
    text = (ROOT / "docs/guide.md").read_text("utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.S | re.M)[1]
    names = {}
    exec(compile(block, "guide.md", "exec"), names)
    assert names["model"].accuracy_.estimate > 0.8
    assert (folder[0] / "plants.npz").exists()
