"""Running time by problem size on the 17 data sets (Fig. 3, left).

Fold 0, split 1, min-max; the median of three calls after a warm-up call on another problem, one
process at a time, one thread. Building graph and problem is not counted, as in the paper. The
authors' stored times are means over their runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..authors import COLUMNS, author_times
from ..config import Config
from ..datasets import card
from ..methods import METHODS, RUNTIME_METHODS, predict, warm_up
from ..protocol import PAPER_DATASETS, RESCALINGS, fold_count
from ..published import COD_RNA_MS
from ..store import Row, Task
from ..tables import WORDS, Cell, Table, make_table
from .base import REPEATS, Experiment, Params, Started, finished_rows, fresh_problem, one_run, timed

RESCALING = "min-max"
# Smallest problem first, as in the paper's figure.
BY_SIZE = sorted(PAPER_DATASETS, key=lambda d: card(d).n_samples / fold_count(d, RESCALING))


class Runtime(Experiment):
    """Running time on the 17 data sets."""

    name = "runtime"
    summary = "running time by problem size on the paper's data sets (Fig. 3, left)"
    methods = tuple(METHODS)

    def tasks(self, config: Config) -> list[Task]:
        """One row per data set and method, in order of size."""
        run = {"rescaling": RESCALING, "fold": 0, "split": 1}
        return [
            Task(
                self.name,
                {"dataset": dataset, **run, "method": method},
                serial=True,
                chain=(self.name, method),
            )
            for dataset in config.pick_datasets(tuple(BY_SIZE))
            for method in config.pick_methods(self.methods, RUNTIME_METHODS)
        ]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Time one method on one data set."""
        run, name = one_run(params), params["method"]
        warm_up(name)
        problems = [fresh_problem(run) for _ in range(REPEATS)]  # nothing cached in any call
        started()
        prediction, seconds = timed(lambda: predict(name, run, problems.pop()))
        return {
            "program": METHODS[params["method"]].program,
            "size": int(run.y.size),
            "seconds": seconds,
            "converged": prediction.converged,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Times per data set, the authors' beside them, and the speed-ups of the text."""
        if not rows:
            return []
        times, sizes = _times(rows), _sizes(rows)
        status = {(r.params["method"], r.params["dataset"]): r.status for r in rows}
        names = [d for d in BY_SIZE if any(key[1] == d for key in status)]
        found = []
        for group, words in WORDS["groups"].items():
            methods = [
                m for m in METHODS if METHODS[m].group == group and any(k[0] == m for k in status)
            ]
            body: list[tuple[Cell, ...]] = [
                (d, sizes.get(d), *(times.get((m, d), status.get((m, d))) for m in methods))
                for d in names
            ]
            labels, file = [METHODS[m].label for m in methods], f"runtime-{group.lower()}"
            if methods:
                found.append(make_table("runtime", body, labels, name=file, group=words))
        theirs = [author_times(RESCALING, column) for column in COLUMNS]
        stored = [(d, sizes.get(d), *(t[d] for t in theirs)) for d in names]
        return [
            *found,
            make_table("runtime-authors", stored, COLUMNS),
            *_speedups(rows),
            averages(),
        ]

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """``ticks`` in the order of size, ``series`` and ``authors``: label -> ms."""
        times, sizes = _times(rows), _sizes(rows)
        names = sorted((d for d in BY_SIZE if d in sizes), key=lambda d: sizes[d])
        series = {
            METHODS[m].label: [times.get((m, d), float("nan")) for d in names]
            for m in METHODS
            if any(key[0] == m for key in times)
        }
        authors = {c: [author_times(RESCALING, c)[d] for d in names] for c in COLUMNS}
        ticks = [f"{d} ({sizes[d]})" for d in names]
        return {"ticks": ticks, "series": series, "authors": authors} if names else None


def _times(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """(method, data set) -> milliseconds."""
    return {
        (row.params["method"], row.params["dataset"]): 1e3 * row.values["seconds"]
        for row in finished_rows(rows)
    }


def _sizes(rows: Sequence[Row]) -> dict[str, int]:
    return {row.params["dataset"]: int(row.values["size"]) for row in finished_rows(rows)}


def averages() -> Table:
    """Return every average of the stored SNS times over the stored GDPA times."""
    series = [("cod-rna, nine sizes", COD_RNA_MS["SNS"], COD_RNA_MS["GDPA"])]
    for rescaling in RESCALINGS:
        slow, fast = (author_times(rescaling, column) for column in ("SNS", "GDPA"))
        series.append((f"17 sets, {rescaling}", tuple(slow.values()), tuple(fast.values())))
    body: list[tuple[Cell, ...]] = []
    for name, slow_ms, fast_ms in series:
        ratio, total = np.divide(slow_ms, fast_ms), float(np.sum(slow_ms) / np.sum(fast_ms))
        middle = (ratio.mean(), np.exp(np.log(ratio).mean()), np.median(ratio))
        body.append((name, total, *map(float, middle), float(ratio[np.argmax(slow_ms)])))
    return make_table("runtime-averages", body)


def _speedups(rows: Sequence[Row]) -> list[Table]:
    body: list[tuple[Cell, ...]] = []
    ours, theirs, fast = _times(rows), author_times(RESCALING, "GDPA"), "gdpa-published"
    for slow in ("sns-authors", "bcr-authors", "sdr-interior-point", "glr-box", "harmonic"):
        both = [d for d in PAPER_DATASETS if (slow, d) in ours and (fast, d) in ours]
        found = {d: ours[slow, d] / ours[fast, d] for d in both}
        if found:
            times = author_times(RESCALING, str(METHODS[slow].column))
            stored = {d: times[d] / theirs[d] for d in theirs}
            # The authors' mean is over the same sets as ours.
            means = [float(np.mean([part[d] for d in both])) for part in (stored, found)]
            row = (METHODS[slow].label, *means, len(both), stored["madelon"], found.get("madelon"))
            body.append(row)
    return [make_table("runtime-speedups", body)] if body else []
