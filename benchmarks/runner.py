"""Run cases: interleaved repeats, each in a new process, with results saved as JSON.

A case is a list of measurements (which function, with which arguments, how often, for how long at
most) and the claims that follow from their medians. Nothing here knows what is measured. The runner
and the store are those of :mod:`reproduction`: a killed run continues where it stopped.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gdpa.files import write_text
from reproduction.runner import ProgressEvent, WorkerKind, run_tasks
from reproduction.store import ResultsStore, Row, Task

from .machine import describe

THREADS = 2
ROOT = Path(__file__).resolve().parents[1]
# Peak memory belongs to a process: each measurement gets one.
WORKER = WorkerKind("benchmarks.worker:measure", threads=THREADS, fresh=True)

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
    """Measurements as rows of a results folder, and all of it as one JSON file for the report."""

    def __init__(self, folder: Path) -> None:
        self.rows = ResultsStore(folder)
        self.path = folder / "results.json"
        self.data: dict[str, Any] = {"machine": describe(), "cases": {}}
        if self.path.exists():
            self.data["cases"] = json.loads(self.path.read_text()).get("cases", {})

    def finished(self, name: str, quick: bool) -> bool:
        """Whether a case was completed with the same setting."""
        case = self.data["cases"].get(name, {})
        return bool(case.get("finished")) and case.get("quick") == quick

    def save(self, name: str, record: dict[str, Any]) -> None:
        """Write one case."""
        self.data["cases"][name] = record
        write_text(self.path, json.dumps(self.data, indent=1) + "\n")


def _missing(measurement: Measurement) -> list[str]:
    return [name for name in measurement.needs if find_spec(name) is None]


def _tasks(case: Case, plan: list[Measurement], quick: bool, repeats: int) -> list[Task]:
    """One row per measurement and turn, turn by turn; after a failure the others are skipped."""
    return [
        Task(
            case.name,
            {
                "label": m.label,
                "turn": turn,
                "quick": quick,
                "function": m.function,
                "arguments": m.arguments,
            },
            serial=True,
            chain=(case.name, m.label),
            limit=m.limit,
        )
        for turn in range(repeats)
        for m in plan
        if turn < min(m.repeats or repeats, repeats) and not _missing(m)
    ]


def _outcome(row: Row) -> dict[str, Any]:
    if row.status == "ok":
        return {"status": "ok", **row.values}
    if row.status == "time-limit":
        return {"status": "time limit", "more_than_s": row.limit}
    return {"status": f"{row.status}: {row.message}"}


def run_case(
    case: Case,
    store: Store,
    *,
    quick: bool,
    repeats: int,
    say: Callable[[str], None],
    only: str = "",
) -> dict[str, Any]:
    """Run all measurements of a case, interleaved, each in a fresh process, and store them.

    What a killed run left is not measured again. `only` restricts the run to rows with this text
    in their name.
    """
    plan = [m for m in case.plan(quick) if only.lower() in m.label.lower()]
    tasks = _tasks(case, plan, quick, repeats)
    start = time.perf_counter()
    said: set[str] = set()

    def record() -> dict[str, Any]:
        runs: dict[str, list[dict[str, Any]]] = {m.label: [] for m in plan}
        for m in plan:
            if _missing(m):
                absent = f"skipped: {', '.join(_missing(m))} not installed"
                runs[m.label].append({"status": absent})
        for task in tasks:
            row = store.rows.get(task)
            if row is not None and row.status != "skipped":
                outcome = _outcome(row)
                runs[row.params["label"]].append(outcome)
                if row.key not in said:
                    said.add(row.key)
                    say(f"{case.name}: {row.params['label']}: {_brief(outcome)}")
        return {
            **_record(case, plan, runs, quick, time.perf_counter() - start),
            "commit": store.data["machine"]["commit"],
        }

    def progress(event: ProgressEvent) -> None:
        if len(said) < event.done:
            store.save(case.name, record())

    run_tasks(tasks, store.rows, worker=WORKER, progress=progress)
    found = {**record(), "finished": True}
    store.save(case.name, found)
    return found


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
        # Claims are about the full sizes.
        "claims": [] if quick else [{**asdict(c), "holds": c.holds} for c in case.claims(medians)],
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
