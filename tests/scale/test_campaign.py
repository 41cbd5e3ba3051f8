"""A share of the campaign with fixed seeds, and that it can tell right from wrong.

``python -m benchmarks.campaign --minutes 30`` is the whole of it.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

if os.name != "posix":
    pytest.skip("the campaign forks and kills", allow_module_level=True)

from benchmarks.campaign import __main__ as campaign  # noqa: E402
from benchmarks.campaign import engine, outcome  # noqa: E402

pytestmark = pytest.mark.slow

COUNTS = {
    "fits": 120,
    "links": 6,
    "tables": 60,
    "labels": 2,
    "sessions": 10,
    "serving": 6,
    "full_disk": 60,
    "solves": 300,
    "signed": 200,
    "files": 250,
    "resume": 2,
    "flips": 12,
    "commands": 1,
    "interrupts": 12,
    "together": 2,
    "containers": 40,
    "nodes": 60,
    "written": 40,
    "batches": 12,
    "journals": 100,
    "exports": 4,
}


@pytest.mark.parametrize("kind", COUNTS)
def test_nothing_is_wrong(kind, tmp_path):
    # In a process of its own: it forks, and a fork of a process with threads may wait for ever.
    kept = tmp_path / "counts.json"
    words = ["--count", f"{kind}={COUNTS[kind]}", "--out", str(kept)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.campaign", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counts = json.loads(kept.read_text())["counts"][kind]
    assert counts["tried"] == COUNTS[kind]
    assert counts["wrong"] == 0, counts["failures"]
    assert counts["right"] > 0 or kind == "commands"


def _module(monkeypatch, run):
    """A kind of attack that does what `run` says."""
    name = "benchmarks.campaign.made_up"
    monkeypatch.setitem(sys.modules, name, type(sys)(name))
    sys.modules[name].run = run
    monkeypatch.setitem(engine.LIMITS, "made_up", 0.5)
    monkeypatch.setattr(engine, "PATIENCE", 5.0)


def test_hangs_crashes_and_faults_are_counted_each_with_its_seed(monkeypatch):
    def run(seed: int) -> str:
        while seed == 1:
            pass
        if seed == 5:
            time.sleep(60)
        if seed == 2:
            os._exit(3)
        if seed == 3:
            return {}["missing"]
        if seed == 4:
            outcome.must(False, "this does not hold")
        return outcome.RIGHT

    _module(monkeypatch, run)
    found = {r.seed: r for r in engine.results("made_up", range(7))}
    right = [seed for seed, result in found.items() if result.outcome == outcome.RIGHT]
    assert sorted(right) == [0, 6]
    assert "processor time" in found[1].detail
    assert "hangs" in found[5].detail
    assert "crashed with 3" in found[2].detail
    assert "KeyError" in found[3].detail
    assert "this does not hold" in found[4].detail


def test_one_seed_can_be_aimed_at_and_the_exit_code_tells(monkeypatch, capsys):
    assert campaign.main(["--only", "solves", "--seed", "0"]) == 0
    assert "solves 0:" in capsys.readouterr().out
    monkeypatch.setattr("benchmarks.campaign.solves.run", lambda seed: 1 / 0)
    assert campaign.main(["--only", "solves", "--seed", "0"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_same_seed_is_the_same_case():
    from benchmarks.campaign import inputs

    first, second = (inputs.make(outcome.generator("fits", 7)) for _ in range(2))
    assert first.kind == second.kind
    assert repr(first.y) == repr(second.y)
    other = outcome.generator("solves", 7).random()
    assert other != outcome.generator("fits", 7).random()


def test_only_words_of_ours_are_a_clear_error(tmp_path):
    ours = tmp_path / "gdpa" / "checks.py"
    ours.parent.mkdir()
    ours.write_text(
        "def worded():\n    raise ValueError(\n        'tol=-1 must be positive'\n    )\n"
        "def compiled():\n    return int('x')\n"
        "def library(call):\n    return call()\n"
    )
    calls = runpy.run_path(str(ours))
    outcomes = []
    for call in (
        calls["worded"],
        calls["compiled"],
        lambda: calls["library"](lambda: np.linalg.norm(np.ones(2), ord="no")),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        try:
            outcomes.append(outcome.refused(caught.value))
        except ValueError:
            outcomes.append(outcome.WRONG)
    assert outcomes == [outcome.CLEAR, outcome.WRONG, outcome.WRONG]
