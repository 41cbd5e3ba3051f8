"""A crash at every write, sync and rename leaves old or new: no part, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is ended without clean-up")
@pytest.mark.parametrize(
    ("scenario", "at_least"),
    [("model", 50), ("labels", 6), ("new-labels", 3), ("work-folder", 40), ("cache", 5)],
)
def test_every_prefix_of_operations_leaves_old_or_new(scenario, at_least, tmp_path):
    # In a process of its own, without threads: it forks.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).with_name("crashes.py")), scenario,
         str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["operations"] >= at_least
    # Old as long as nothing is done, new once everything is (an answered label is the old state).
    assert result["found"][0] == ("new" if scenario == "new-labels" else "old")
    assert result["found"][-1] == ("old" if scenario == "labels" else "new")
