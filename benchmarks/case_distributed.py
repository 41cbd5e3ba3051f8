"""The distributed fit on one machine, with one and with two worker processes.

Points as in the case ``million``, in ten Parquet parts. The ordinary fit beside it is that of the
same graph (``graph="knn"``), not the committee. CPU time is that of the client, the scheduler and
all workers, start-up included; memory is the peak of one worker. The overhead is the time of a step
with 16 parts that have next to nothing to compute. Kills come at random moments of a stage, and the
predictions are compared byte by byte with those of a quiet run.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from .classification import clusters
from .runner import Case, Claim, Measurement, Medians, value_of
from .worker import peak_mb

FILES = 10
NEEDS = ("distributed", "pyarrow", "psutil")


def write_parts(folder: Path, n: int, n_features: int = 8) -> tuple[Any, Any]:
    """Write clusters as Parquet parts; returns the truth and which of it is known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, truth, codes = clusters(n, n_features, 0.01)
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(n), FILES)):
        columns: dict[str, Any] = {f"f{j}": X[rows, j] for j in range(n_features)}
        columns["y"] = pa.array(codes[rows], mask=codes[rows] < 0)
        columns["id"] = rows
        pq.write_table(
            pa.table(columns), folder / f"part-{number:03d}.parquet", row_group_size=250_000
        )
    return truth, codes >= 0


def predicted(out: Path) -> Any:
    """Predictions in the order of the rows."""
    import pyarrow.parquet as pq

    files = sorted(out.glob("*.parquet"))
    return np.concatenate([pq.read_table(f).column("prediction").to_numpy() for f in files])


def fit_parts(n: int, workers: int) -> dict[str, Any]:
    """Fit on parts by a local cluster."""
    from distributed import default_client
    from gdpa.distributed import TableFitOptions, Workers, fit

    folder = Path(tempfile.mkdtemp(prefix="gdpa-distributed-"))
    peaks: list[float] = []

    def watch(event: Any) -> None:
        if event.stage == "write predictions" and event.done == event.total:
            peaks.extend(default_client().run(peak_mb).values())

    try:
        truth, known = write_parts(folder / "in", n)
        start, cpu = time.perf_counter(), cpu_seconds()
        result = fit(
            f"{folder}/in/*.parquet",
            "y",
            work=folder / "work",
            out=folder / "out",
            options=TableFitOptions(id_column="id", scale="none"),
            workers=Workers(n_workers=workers),
            callback=watch,
        )
        seconds = time.perf_counter() - start
        wrong = predicted(folder / "out") != truth
        stages: dict[str, list[str]] = {
            "shuffle": [
                "sample rows", "check identifiers", "plan", "encode rows", "sort into parts"
            ],
            "search": ["measure recall", "set search width", "search neighbours"],
            "rows": ["build graph"],
            "solve": [s for s in result.seconds if s.startswith(("tuning", "final scores"))],
        }  # fmt: skip
        return {
            "seconds": seconds,
            "cpu_s": cpu_seconds() - cpu,
            **{f"{k}_s": sum(result.seconds.get(s, 0.0) for s in v) for k, v in stages.items()},
            "error_percent": 100.0 * float(wrong[~known].mean()),
            "recall": result.recall,
            "worker_peak_mb": max(peaks),
            "parts": result.parts,
            "cut": result.cut,
            "self_loop": result.self_loop,
            "steps": result.steps,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def fit_whole(n: int) -> dict[str, Any]:
    """The ordinary fit, from the same files, in this process with two threads."""
    import pyarrow.parquet as pq

    from gdpa import GraphClassifier

    folder = Path(tempfile.mkdtemp(prefix="gdpa-distributed-"))
    try:
        truth, known = write_parts(folder / "in", n)
        start, cpu = time.perf_counter(), cpu_seconds()
        table = pq.read_table(folder / "in")
        X = np.column_stack([table.column(f"f{j}").to_numpy() for j in range(8)])
        codes = table.column("y").fill_null(-1).to_numpy()
        model = GraphClassifier(n_neighbors=10, n_jobs=2).fit(X, codes)
        wrong = model.transduction_ != truth
        return {
            "seconds": time.perf_counter() - start,
            "cpu_s": cpu_seconds() - cpu,
            "error_percent": 100.0 * float(wrong[~known].mean()),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def overhead(n: int = 6_400, parts: int = 16) -> dict[str, Any]:
    """Seconds per step of a solve whose parts have next to nothing to compute."""
    from gdpa.distributed import TableFitOptions, Workers, fit

    folder = Path(tempfile.mkdtemp(prefix="gdpa-distributed-"))
    try:
        write_parts(folder / "in", n)
        result = fit(
            f"{folder}/in/*.parquet",
            "y",
            work=folder / "work",
            out=folder / "out",
            options=TableFitOptions(n_parts=parts, self_loop=0.01),
            workers=Workers(n_workers=2),
        )
        return {"step_s": result.seconds["final scores"] / result.steps, "parts": result.parts}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


STAGES = {
    "shuffle": ("encode rows", "sort into parts"),
    "search": ("search neighbours",),
    "solve": ("final scores",),
}


def kills(times: int, n: int = 20_000, seed: int = 0) -> dict[str, Any]:
    """Kill a worker at random moments of shuffle, search and solve, so often in each of them.

    A run kills one in each of the stages, unless the stage has ended before the moment drawn.
    """
    from gdpa.distributed import TableFitOptions, Workers, fit

    folder = Path(tempfile.mkdtemp(prefix="gdpa-distributed-"))
    options: dict[str, Any] = {
        "options": TableFitOptions(id_column="id", n_parts=8, self_loop=0.03, metric="plain"),
        "workers": Workers(n_workers=2),
    }
    rng = np.random.default_rng(seed)
    found = {"times": times, "runs": 0, "same": 0, **dict.fromkeys(STAGES, 0)}
    try:
        write_parts(folder / "in", n)
        data = f"{folder}/in/*.parquet"
        quiet = fit(data, "y", work=folder / "work", out=folder / "out", **options)
        expected = [Path(f).read_bytes() for f in quiet.files]
        for number in range(4 * times):
            if min(found[stage] for stage in STAGES) >= times:
                break
            killers = [
                _Killer(stages, float(rng.uniform(0, sum(quiet.seconds[s] for s in stages))))
                for stages in STAGES.values()
            ]
            result = fit(
                data, "y", work=folder / f"work-{number}", out=folder / f"out-{number}",
                callback=lambda event, all=killers: [killer(event) for killer in all], **options,
            )  # fmt: skip
            for stage, killer in zip(STAGES, killers, strict=True):
                found[stage] += killer.struck
            found["runs"] += 1
            found["same"] += [Path(f).read_bytes() for f in result.files] == expected
            shutil.rmtree(folder / f"work-{number}")
            print(found, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


class _Killer:
    """Kills a worker some time after a stage has begun, unless the stage has ended by then."""

    def __init__(self, stages: tuple[str, ...], after: float) -> None:
        self.stages, self.struck, self.over = stages, 0, False
        self.timer = threading.Timer(after, self._strike)
        self.timer.daemon = True

    def __call__(self, event: Any) -> None:
        if event.stage in self.stages and self.timer.ident is None:
            self.timer.start()
        self.over = event.stage not in self.stages

    def _strike(self) -> None:
        import psutil

        children = psutil.Process().children(recursive=True)
        workers = [p for p in children if "spawn_main" in " ".join(p.cmdline())]
        if workers and not self.over:
            os.kill(workers[-1].pid, signal.SIGKILL)
            self.struck = 1


def plan(quick: bool) -> list[Measurement]:
    """The ordinary fit, one worker and two, interleaved; the overhead of a step."""
    n = 40_000 if quick else 1_000_000
    name = "benchmarks.case_distributed"
    return [
        Measurement("one machine", f"{name}:fit_whole", {"n": n}, 2, 600.0, NEEDS),
        Measurement("one worker", f"{name}:fit_parts", {"n": n, "workers": 1}, 2, 900.0, NEEDS),
        Measurement("two workers", f"{name}:fit_parts", {"n": n, "workers": 2}, 2, 900.0, NEEDS),
        Measurement("16 parts", f"{name}:overhead", {}, 2, 300.0, NEEDS),
    ]


def claims(medians: Medians) -> list[Claim]:
    """What must hold."""

    def ratio(above: str, below: str, key: str) -> float | None:
        top, bottom = value_of(medians, above, key), value_of(medians, below, key)
        return None if top is None or bottom is None else top / bottom

    one, two, whole = "one worker", "two workers", "one machine"
    error, theirs = (value_of(medians, who, "error_percent") for who in (two, whole))
    excess = None if error is None or theirs is None else error - theirs
    return [
        Claim("recall", value_of(medians, two, "recall"), 0.97),
        Claim("error above the ordinary fit's, points", excess, 0.3, at_least=False),
        Claim("search, two workers over one", ratio(one, two, "search_s"), 1.6),
        Claim("end to end, two workers over one", ratio(one, two, "seconds"), 1.4),
        Claim("CPU over the ordinary fit's", ratio(two, whole, "cpu_s"), 1.6, at_least=False),
        Claim(
            "peak memory of a worker, two over one",
            ratio(two, one, "worker_peak_mb"),
            0.65,
            at_least=False,
        ),
        Claim(
            "seconds per step of 16 parts", value_of(medians, "16 parts", "step_s"), 0.25,
            at_least=False,
        ),
    ]  # fmt: skip


def plan_ten(quick: bool) -> list[Measurement]:
    """Ten million points by two workers."""
    n = 60_000 if quick else 10_000_000
    function = "benchmarks.case_distributed:fit_parts"
    return [Measurement("two workers", function, {"n": n, "workers": 2}, 1, 3600.0, NEEDS)]


def claims_ten(medians: Medians) -> list[Claim]:
    """What must hold at ten million points."""
    peak = value_of(medians, "two workers", "worker_peak_mb")
    gigabytes = None if peak is None else peak / 1e3
    return [Claim("peak memory of a worker, GB", gigabytes, 3.0, at_least=False)]


def plan_kills(quick: bool) -> list[Measurement]:
    """Ten kills in each of three stages."""
    function = "benchmarks.case_distributed:kills"
    times = {"times": 1 if quick else 10}
    return [Measurement("a worker killed", function, times, 1, 3600.0, NEEDS)]


def claims_kills(medians: Medians) -> list[Claim]:
    """Every run ends with the same bytes."""
    times, runs, same, *kills = (
        value_of(medians, "a worker killed", key) for key in ("times", "runs", "same", *STAGES)
    )
    share = None if not runs or same is None else same / runs
    hit = None if not times or None in kills else min(k for k in kills if k is not None) / times
    return [
        Claim("share of the runs that end with the same bytes", share, 1.0),
        Claim("kills in the stage that was hit least, of those planned", hit, 1.0),
    ]


COLUMNS = (
    "seconds", "cpu_s", "shuffle_s", "search_s", "rows_s", "solve_s", "error_percent", "recall",
    "worker_peak_mb", "parts", "step_s",
)  # fmt: skip
CASES = (
    Case(
        "distributed", "1,000,000 points on parts, one and two workers", plan, claims, COLUMNS,
        default=False,
    ),
    Case(
        "distributed-ten-million", "10,000,000 points on parts", plan_ten, claims_ten, COLUMNS,
        default=False,
    ),
    Case(
        "distributed-kills", "A worker killed at random moments", plan_kills, claims_kills,
        ("times", "runs", *STAGES, "same"), default=False,
    ),
)  # fmt: skip
