"""Kills of workers and clients of `gdpa distributed spread` at random times.

Each run is the command with two workers, in a process of its own. A third of the kills end the
client, which also holds the scheduler; its workers end by themselves, and the same command is run
again. The other kills end one worker. Times are uniform over the duration of an undisturbed run, so
stages are hit in proportion to their length. Every run must end with the bytes of the undisturbed
one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .case_spread import write_network
from .runner import Case, Claim, Measurement, Medians, value_of

NEEDS = ("distributed", "pyarrow", "psutil")
# The stage that a run is in, by the folder that it has written to last.
STAGES = {
    "scores": "write",
    "tags": "solve",
    "rows": "components",
    "edges": "build",
    "sample": "split",
}


def stage_of(work: Path) -> str:
    """Return the stage that a work folder shows."""
    for folder, stage in STAGES.items():
        if (work / folder).is_dir() and any((work / folder).iterdir()):
            return stage
    return "start"


def worker_of(client: int, rng: np.random.Generator) -> int | None:
    """Return the process number of one of the workers of a client; None if there is none."""
    import psutil

    with contextlib.suppress(psutil.Error):
        children = psutil.Process(client).children(recursive=True)
        workers = [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
        if workers:
            return int(rng.choice(workers))
    return None


class Run:
    """One run that is killed several times.

    Parameters
    ----------
    network : Path
        Folder of the network.
    out : Path
        Folder for the predictions.
    """

    def __init__(self, network: Path, out: Path) -> None:
        self.out = out
        self.command = [
            sys.executable, "-m", "gdpa", "distributed", "spread", str(network / "edges"),
            "--labels", str(network / "labels.parquet"), "--out", str(out),
            "--work", str(self.work), "--workers", "2", "--parts", "6", "--scores",
        ]  # fmt: skip

    @property
    def work(self) -> Path:
        """The work folder."""
        return self.out.with_name(self.out.name + "-work")

    @property
    def content(self) -> dict[str, bytes]:
        """The predictions."""
        return {f.name: f.read_bytes() for f in sorted(self.out.glob("*.parquet"))}

    def end(self) -> None:
        """Run to the end, undisturbed."""
        subprocess.run(self.command, check=True, capture_output=True)

    def disturb(
        self, count: int, duration: float, rng: np.random.Generator, found: Counter[str]
    ) -> None:
        """Run to the end with at most `count` kills; count them by kind and stage."""
        left = count
        while True:
            process = subprocess.Popen(
                self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            is_client = False
            while left and not is_client:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=float(rng.uniform(0, duration)))
                    break
                is_client = bool(rng.random() < 1 / 3)
                victim = process.pid if is_client else worker_of(process.pid, rng)
                if victim is None:
                    continue
                stage = stage_of(self.work)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    found["kills"] += 1
                    found["clients" if is_client else "workers"] += 1
                    found[f"in {stage}"] += 1
                    left -= 1
            _, error = process.communicate()
            if process.returncode == 0:
                return
            if not is_client:
                # Allowed only while workers start: then the command asks to be run again.
                found["start again"] += 1
                if "run the command again" not in error:
                    found["failed"] += 1
                    print(error, file=sys.stderr)
                    return


def kills(times: int, n_edges: int = 300_000, seed: int = 0) -> dict[str, Any]:
    """Kill until `times` kills have hit, two to six in a run."""
    folder = Path(tempfile.mkdtemp(prefix="gdpa-spread-kills-"))
    rng = np.random.default_rng(seed)
    names = ("kills", "workers", "clients", "runs", "same", "failed", "start again")
    stages = [f"in {stage}" for stage in ("start", *STAGES.values())]
    found: Counter[str] = Counter(dict.fromkeys((*names, *stages), 0))
    try:
        write_network(folder / "in", "planar", n_edges)
        quiet = Run(folder / "in", folder / "quiet")
        start = time.perf_counter()
        quiet.end()
        duration = time.perf_counter() - start
        while found["kills"] < times:
            run = Run(folder / "in", folder / f"out-{found['runs']}")
            count = min(int(rng.integers(2, 7)), times - found["kills"])
            run.disturb(count, duration, rng, found)
            found["runs"] += 1
            found["same"] += run.content == quiet.content
            shutil.rmtree(run.out)
            print(dict(found), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**found, "quiet_s": duration}


def plan(quick: bool) -> list[Measurement]:
    """Sixty kills."""
    arguments = {"times": 3, "n_edges": 20_000} if quick else {"times": 60}
    function = "benchmarks.case_spread_kills:kills"
    return [Measurement("random kills", function, arguments, 1, 7200.0, NEEDS)]


def claims(medians: Medians) -> list[Claim]:
    """Every run ends, with the same bytes."""
    runs, same, failed = (
        value_of(medians, "random kills", name) for name in ("runs", "same", "failed")
    )
    share = None if not runs or same is None else same / runs
    return [
        Claim("share of the runs that end with the same bytes", share, 1.0),
        Claim("runs that failed", failed, 0.0, at_least=False),
    ]


CASE = Case(
    "spread-kills",
    "Workers and clients killed at random times",
    plan,
    claims,
    ("kills", "workers", "clients", "runs", "same", "failed", "start again"),
    default=False,
)
