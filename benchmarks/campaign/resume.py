"""Kill a run at a random moment, go on, until it is complete: no row lost, none doubled."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import environment, runner
from reproduction.runner import WorkerKind
from reproduction.runner import serve as runner_serve
from reproduction.store import ResultsStore, Task

from . import children
from .outcome import RIGHT, generator, must

ROOT = Path(__file__).resolve().parents[2]
ROWS = 60


def expected(number: int) -> float:
    """What a row must hold: any function that can be computed again."""
    return float(np.sin(number) * 1e6)


def compute(experiment: str, params: dict[str, Any], started: Any = None) -> dict[str, Any]:
    """In place of an experiment: a row of a few kilobytes after a few milliseconds."""
    if started is not None:
        started()
    number = int(params["number"])
    time.sleep((number * 7919 % 13) * 3e-4)
    return {"value": expected(number), "text": f"{number:04d}" * int(number * 31 % 400)}


def serve(connection: Connection, compute: str) -> None:
    """Answer tasks in a forked process: the run's files must end with the run."""
    sentinel = multiprocessing.parent_process()
    keep = {0, 1, 2, connection.fileno(), sentinel.sentinel if sentinel else 0}
    for number in set(range(256)) - keep:
        with contextlib.suppress(OSError):
            os.close(number)
    runner_serve(connection, compute)


def tasks() -> list[Task]:
    """All rows of the run."""
    return [Task("lemma1", {"number": number}) for number in range(ROWS)]


def work(folder: Path, jobs: int) -> int:
    """One run, as ``python -m reproduction`` makes it, with forked processes: they start fast."""
    runner.CONTEXT, runner.serve = multiprocessing.get_context("fork"), serve
    with ResultsStore(folder) as store:
        runner.run_tasks(tasks(), store, jobs=jobs, worker=WorkerKind(f"{__name__}:compute"))
    return 0


def lines(folder: Path) -> list[bytes]:
    """Whole rows on disk."""
    path = folder / "results.jsonl"
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def run(seed: int) -> str:
    """A folder from its first row to its last, killed on the way; `cycles` counts the kills."""
    rng = generator("resume", seed)
    environment.commit()  # asked for once, here: the children know it
    counts = {"cycles": 0, "after_rows": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "results"
        (Path(name) / "log").touch()
        jobs = int(rng.integers(1, 3))
        before: list[bytes] = []
        for _ in range(200):
            pid = children.forked(lambda: work(folder, jobs), Path(name) / "log")
            stop_at = len(before) + int(rng.integers(0, 9))
            patience = time.monotonic() + 10
            code = None
            while len(lines(folder)) < stop_at and code is None and time.monotonic() < patience:
                code = children.ended(pid, 0.0005)
            if code is None:
                time.sleep(rng.uniform(0, 0.01))
                children.kill(pid, signal.SIGKILL)
                code = children.ended(pid, 10)
                counts["cycles"] += 1
                counts["after_rows"] += len(lines(folder)) > 0
            now = lines(folder)
            must(now[: len(before)] == before, "a row that was there is not there any more")
            before = now
            log = (Path(name) / "log").read_text()
            must("Traceback" not in log, log[-1500:])
            if code == 0:
                break
        else:
            must(False, "the run does not come to its end")
        rows = [json.loads(line) for line in lines(folder)]
        numbers = [row["params"]["number"] for row in rows]
        must(sorted(numbers) == list(range(ROWS)), f"rows lost or doubled: {sorted(numbers)}")
        must(
            all(
                row["values"]["value"] == expected(n) for row, n in zip(rows, numbers, strict=True)
            ),
            "a row with another value",
        )
    return f"{RIGHT}|cycles={counts['cycles']}|after_rows={counts['after_rows']}"


def real_command(seed: int) -> int:
    """The same once with the command itself, from a cold start; returns the kills."""
    rng = generator("resume", seed)
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "reproduction", "lemma1", "--out", name, "-q"]
        for _ in range(20):
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            try:
                process.wait(timeout=float(rng.uniform(1.0, 4.0)))
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        keys = [
            json.dumps(json.loads(line)["params"], sort_keys=True) for line in lines(Path(name))
        ]
        must(len(keys) == len(set(keys)) > 0, "rows lost or doubled")
    return kills
