"""Runs cases: interleaved repeats, each in a fresh process, medians, JSON after every measurement.

A case is a list of measurements (which function, with which arguments, how often, for how long at
most) and the claims that follow from their medians. Nothing here knows what is measured.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .machine import describe

THREADS = 2
ROOT = Path(__file__).resolve().parents[1]

Medians = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Measurement:
    """One function call to be measured.

    Parameters
    ----------
    label : str
        Its name in the tables.
    function : str
        ``module:function``; takes `arguments`, returns a dict of numbers.
    arguments : dict
        Keyword arguments, JSON.
    repeats : int, optional
        How often; the runner's default if not given.
    limit : float
        Seconds after which a run is stopped and counted as "more than".
    needs : tuple of str
        Modules without which it is skipped.
    """

    label: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    repeats: int | None = None
    limit: float = 300.0
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement about ratios within one run."""

    text: str
    value: float | None
    bound: float
    at_least: bool = True
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """None where it could not be measured."""
        if self.value is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@dataclass(frozen=True)
class Case:
    """A named case.

    Parameters
    ----------
    name, title : str
        For the command line and for the tables.
    plan : callable
        ``plan(quick) -> list of Measurement``.
    claims : callable
        ``claims(medians) -> list of Claim``.
    columns : tuple of str
        What the table shows.
    default : bool
        Whether it runs when no case is named.
    """

    name: str
    title: str
    plan: Callable[[bool], list[Measurement]]
    claims: Callable[[Medians], list[Claim]] = lambda medians: []
    columns: tuple[str, ...] = ("seconds", "peak_mb")
    default: bool = True


def run_once(measurement: Measurement) -> dict[str, Any]:
    """Run one measurement in a fresh process."""
    missing = [name for name in measurement.needs if find_spec(name) is None]
    if missing:
        return {"status": f"skipped: {', '.join(missing)} not installed"}
    environment = {
        **os.environ,
        **{f"{library}_NUM_THREADS": str(THREADS) for library in ("OMP", "OPENBLAS", "MKL")},
    }
    task = json.dumps({"function": measurement.function, "arguments": measurement.arguments})
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.worker", task],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=measurement.limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"status": "time limit", "more_than_s": time.perf_counter() - start}
    if process.returncode != 0:
        last = err.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        return {"status": f"failed: {last[0][:300]}"}
    return {"status": "ok", **json.loads(out.strip().splitlines()[-1])}


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Median of every number over the runs that ended; other values of the first."""
    good = [run for run in runs if run["status"] == "ok"]
    if not good:
        return dict(runs[0]) if runs else {"status": "not run"}
    result: dict[str, Any] = {"status": "ok", "runs": len(good)}
    for key, value in good[0].items():
        if key == "status":
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            result[key] = statistics.median(run[key] for run in good)
        else:
            result[key] = value
    return result


class Store:
    """Results in one JSON file, written after every measurement; finished cases are kept."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.data: dict[str, Any] = {"machine": describe(), "cases": {}}
        if self.path.exists():
            old = json.loads(self.path.read_text())
            self.data["cases"] = old.get("cases", {})

    def finished(self, name: str, quick: bool) -> bool:
        """Whether a case was completed with the same setting."""
        case = self.data["cases"].get(name, {})
        return bool(case.get("finished")) and case.get("quick") == quick

    def save(self, name: str, record: dict[str, Any]) -> None:
        """Write one case."""
        self.data["cases"][name] = record
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps(self.data, indent=1) + "\n")
        partial.replace(self.path)


def run_case(
    case: Case, store: Store, *, quick: bool, repeats: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run all measurements of a case, interleaved, and store them."""
    plan = case.plan(quick)
    runs: dict[str, list[dict[str, Any]]] = {m.label: [] for m in plan}
    start = time.perf_counter()
    record: dict[str, Any] = {}
    wanted = {m.label: min(m.repeats or repeats, repeats) for m in plan}
    for turn in range(max(wanted.values())):
        for m in plan:
            over = runs[m.label] and runs[m.label][-1]["status"] != "ok"
            if turn >= wanted[m.label] or over:
                continue
            result = run_once(m)
            runs[m.label].append(result)
            say(f"{case.name}: {m.label}: {_brief(result)}")
            record = _record(case, plan, runs, quick, time.perf_counter() - start)
            store.save(case.name, record)
    record["finished"] = True
    store.save(case.name, record)
    return record


def _record(
    case: Case,
    plan: list[Measurement],
    runs: dict[str, list[dict[str, Any]]],
    quick: bool,
    seconds: float,
) -> dict[str, Any]:
    medians = {m.label: median(runs[m.label]) for m in plan}
    return {
        "title": case.title,
        "quick": quick,
        "finished": False,
        "seconds": round(seconds, 1),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "columns": list(case.columns),
        "measurements": [
            {
                "label": m.label,
                "arguments": m.arguments,
                "median": medians[m.label],
                "runs": runs[m.label],
            }
            for m in plan
        ],
        "claims": [{**asdict(c), "holds": c.holds} for c in case.claims(medians)],
    }


def _brief(result: dict[str, Any]) -> str:
    if result["status"] != "ok":
        return str(result["status"])
    shown = [
        f"{key} {value:.4g}"
        for key, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return ", ".join(shown[:14])


def seconds_of(medians: Medians, label: str, key: str = "seconds") -> tuple[float | None, bool]:
    """Time of a measurement, and whether it is only a lower bound (stopped at its limit)."""
    row = medians.get(label, {})
    if row.get("status") == "ok":
        return float(row[key]), False
    if "more_than_s" in row:
        return float(row["more_than_s"]), True
    return None, False


def speedup(medians: Medians, ours: str, theirs: str, key: str = "seconds") -> float | None:
    """Their time over ours; a lower bound where theirs was stopped at its limit."""
    mine, unfinished = seconds_of(medians, ours, key)
    other, _ = seconds_of(medians, theirs, key)
    if mine is None or other is None or unfinished:
        return None
    return other / mine


def value_of(medians: Medians, label: str, key: str) -> float | None:
    """One number of a measurement that ended."""
    row = medians.get(label, {})
    if row.get("status") != "ok" or row.get(key) is None:
        return None
    return float(row[key])
