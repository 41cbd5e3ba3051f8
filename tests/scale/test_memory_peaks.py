"""Estimates of memory against measured peaks, in processes with a limited address space."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the measurements read /proc", allow_module_level=True)

pytestmark = pytest.mark.slow

# Large enough for the limit below which no estimate is checked.
WORK = {
    "full graph": 3000,
    "gdpa": 1350,
    "gdpa-published": 1000,
    "interior point": 950,
    "triangles": 350,
    "fit": 1200,
    "fit of the paper": 1000,
    "published fit": 800,
}


@pytest.mark.parametrize("work", WORK)
def test_half_is_refused_and_half_as_much_again_is_enough(work):
    # One thread and one arena: each more of them reserves address space. Large arrays are returned
    # to the system as soon as they are freed, so that the peak is that of the work.
    settings = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if "published" in work:
        pytest.importorskip("clarabel")
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("memory_peaks.py")), work, str(WORK[work])],
        env=os.environ | settings | threads,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert "needs about" in found["refusal"]
    assert not found["failure"]
    assert found["peak"] / 1.5 < found["estimate"] < 1.5 * found["peak"], found
