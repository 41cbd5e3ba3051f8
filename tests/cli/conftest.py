"""Running the command line: in this process where it is enough, else as the user does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


def _start(args, *, cwd, stdin=subprocess.DEVNULL, **environment):
    """A process of the command line; Ctrl-C works in it whatever the tests were started from.

    Of the environment, None removes a variable.
    """
    given = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment}
    return subprocess.Popen(
        [sys.executable, "-m", "gdpa", *map(str, args)],
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in given.items() if value is not None},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.fixture
def start():
    """Start a command as a process."""
    return _start


@pytest.fixture
def process(tmp_path):
    """Run a command as a process in an empty folder."""

    def run(*args, text=None, **environment):
        child = _start(args, cwd=tmp_path, stdin=subprocess.PIPE, **environment)
        out, err = child.communicate(text, timeout=300)
        return Ended(child.returncode, out, err)

    return run


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run a command inside this process, in an empty folder."""
    from gdpa.cli.app import run

    monkeypatch.chdir(tmp_path)

    def call(*args):
        before = signal.getsignal(signal.SIGTERM)
        capsys.readouterr()
        try:
            code = run([str(a) for a in args])
        finally:
            signal.signal(signal.SIGTERM, before)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call


def two_groups(n=60, seed=0):
    """Rows of two groups that no straight line through x could miss, five labels in each."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    x = rng.normal(size=(n, 2)) + 6.0 * group[:, None]
    color = np.where(group == 1, "red", "blue")
    labels = np.where(np.arange(n) < 10, np.where(group == 1, "yes", "no"), "")
    return x, color, labels, np.where(group == 1, "yes", "no")


@pytest.fixture
def table(tmp_path):
    """A CSV file with numbers, text, a gap and a few labels."""
    x, color, labels, _ = two_groups()
    lines = ["name,width,height,colour,answer"]
    for i, (row, c, label) in enumerate(zip(x, color, labels, strict=True)):
        height = "" if i == 20 else f"{row[1]:.6f}"
        lines.append(f"r{i},{row[0]:.6f},{height},{c},{label}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def truth():
    """The labels that the table hides."""
    return two_groups()[3]


@pytest.fixture
def graph(tmp_path):
    """Two triangles and a weak bridge, as an edge list, with two labels."""
    (tmp_path / "edges.csv").write_text(
        "source,target,weight\na,b,1\nb,c,1\na,c,1\nc,d,0.1\nd,e,1\ne,f,1\nd,f,1\n"
    )
    (tmp_path / "labels.csv").write_text("node,label\na,left\nf,right\n")
    return tmp_path / "edges.csv", tmp_path / "labels.csv"


@pytest.fixture
def many_rows(tmp_path):
    """A table that takes long enough to be interrupted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8_000, 12))
    path = tmp_path / "many.csv"
    labels = np.where(np.arange(len(X)) < 200, np.where(X[:, 0] > 0, "a", "b"), "")
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(12)) + ",y\n")
        for row, label in zip(X, labels, strict=True):
            file.write(",".join(f"{v:.4f}" for v in row) + f",{label}\n")
    return path


@pytest.fixture
def refused():
    """Check that a command ended as bad input does."""

    def check(ended, *words):
        assert ended.code == 2, ended.err
        line = [text for text in ended.err.splitlines() if "error:" in text]
        assert len(line) == 1
        for word in words:
            assert word in line[0]
        assert "Traceback" not in ended.err
        assert ended.out == ""

    return check
