"""Running time by problem size on the 17 data sets (the left half of the paper's figure).

Fold 0, split 1, min-max; the median of three calls after a warm-up call on another problem, one
process at a time, one thread. It is processor time: with one thread that is what a clock shows on a
machine that does nothing else. Building graph and problem is not counted, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .config import Config
from .methods import METHODS, predict, warm_up
from .protocol import PAPER_DATASETS
from .published import SPEEDUP_MADELON, SPEEDUP_MEAN, reference_times
from .store import Row, Task
from .table2 import fresh_problem, one_run
from .tables import Cell, Table, difference

__all__ = ["METHOD_NAMES", "compute", "figure_data", "tables", "tasks", "timed"]

METHOD_NAMES = tuple(METHODS)
RESCALING = "min-max"
_REPEATS, _ENOUGH_SECONDS = 3, 2.0

# Smallest first, as in the paper's figure: the size is that of the largest fold.
BY_SIZE = (
    "liver-disorders", "planning", "sonar", "heart", "haberman", "colon-cancer", "voting",
    "monk1", "WDBC", "ILPD", "breast-cancer", "australian", "diabetes", "pima", "fourclass",
    "german", "madelon",
)  # fmt: skip


def tasks(config: Config) -> list[Task]:
    """List the rows: one per data set and method.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows, in order of size.
    """
    default = tuple(name for name, spec in METHODS.items() if spec.runtime)
    return [
        Task(
            "runtime",
            {"dataset": dataset, "rescaling": RESCALING, "fold": 0, "split": 1, "method": method},
            serial=True,
            chain=("runtime", method),
        )
        for dataset in config.pick_datasets(BY_SIZE)
        for method in config.pick_methods(METHOD_NAMES, default)
    ]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Call three times, or until two seconds are over.

    Parameters
    ----------
    call : callable
        What to time.

    Returns
    -------
    tuple
        The first answer and the median of the processor seconds.
    """
    seconds: list[float] = []
    answer = None
    while len(seconds) < _REPEATS and sum(seconds) < _ENOUGH_SECONDS:
        start = time.process_time()
        result = call()
        seconds.append(time.process_time() - start)
        answer = result if len(seconds) == 1 else answer
    return answer, float(np.median(seconds))


def compute(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Time one method on one data set.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the method starts.

    Returns
    -------
    dict
        Size and seconds.
    """
    run = one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])
    name = params["method"]
    warm_up(name)
    problems = [fresh_problem(run) for _ in range(_REPEATS)]  # each call finds nothing cached
    started()
    prediction, seconds = timed(lambda: predict(name, run, problems.pop()))
    return {
        "size": int(run.y.size),
        "seconds": seconds,
        "converged": bool(prediction.converged),
    }


def _times(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[int, float]]:
    """(method, dataset) -> size and milliseconds."""
    return {
        (row.params["method"], row.params["dataset"]): (
            int(row.values["size"]),
            1e3 * row.values["seconds"],
        )
        for row in rows
        if row.status == "ok"
    }


def tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Times per data set, and speed-ups beside those of the text.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        Two tables.
    """
    if not rows:
        return []
    times = _times(rows)
    state = {(r.params["method"], r.params["dataset"]): r.status for r in rows}
    methods = [m for m in METHODS if any(key[0] == m for key in state)]
    names = [d for d in BY_SIZE if any(key[1] == d for key in state)]
    body: list[tuple[Cell, ...]] = []
    for name in names:
        sizes = [times[m, name][0] for m in methods if (m, name) in times]
        line: list[Cell] = [name, sizes[0] if sizes else None]
        for m in methods:
            status = state.get((m, name))
            line.append(times[m, name][1] if (m, name) in times else status)
        body.append(tuple(line))
    columns = ("data set", "size", *(METHODS[m].label for m in methods))
    title = "Running time by problem size (ms)"
    notes = (
        "Processor time of one thread; median of three calls. Graph and problem are built before.",
    )
    return [
        Table("runtime", title, columns, tuple(body), notes),
        *_speedups(times, names),
    ]


def _speedups(times: dict[tuple[str, str], tuple[int, float]], names: list[str]) -> list[Table]:
    def ratios(slow: str, fast: str) -> dict[str, float]:
        return {
            d: times[slow, d][1] / times[fast, d][1]
            for d in names
            if (slow, d) in times and (fast, d) in times
        }

    body: list[tuple[Cell, ...]] = []
    for slow in ("sns-authors", "bcr-authors", "sdr-interior-point", "glr-box", "harmonic"):
        for fast in ("gdpa-published", "gdpa"):
            found = ratios(slow, fast)
            if not found:
                continue
            text = f"{METHODS[slow].label} / {METHODS[fast].label}"
            complete = len(found) == len(PAPER_DATASETS)
            paper = SPEEDUP_MEAN if slow == "sns-authors" and complete else None
            mean = float(np.mean(list(found.values())))
            last = found.get("madelon")
            paper_last = SPEEDUP_MADELON if slow == "sns-authors" and last is not None else None
            body.append((
                text, paper, mean, difference(mean, paper), paper_last, last,
                difference(last, paper_last),
            ))  # fmt: skip
    authors = _authors_ratio()
    if not body:
        return []
    columns = (
        "time ratio", "paper, mean", "ours, mean", "difference", "paper, madelon", "ours, madelon",
        "difference",
    )  # fmt: skip
    notes = ["Other machine, other language, other implementations: ratios, not times, compare."]
    if authors is not None:
        notes.append(
            f"In the authors' own stored times the closed form of GLR takes {authors:.2f} times "
            "as long as GDPA (mean over the sets); the paper's figure leaves it out."
        )
    title = "Speed-ups named in the text of the paper"
    return [Table("runtime-speedups", title, columns, tuple(body), tuple(notes))]


def _authors_ratio() -> float | None:
    glr, own = reference_times(RESCALING, "GLR"), reference_times(RESCALING, "GDPA")
    common = [glr[name] / own[name] for name in glr if name in own]
    return float(np.mean(common)) if common else None


def figure_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Times by size, for the figure.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        ``names``: data sets in the order of their size; ``sizes``; ``series``: label -> ms or NaN.
    """
    times = _times(rows)
    names = [d for d in BY_SIZE if any(key[1] == d for key in times)]
    sizes = [next(v[0] for k, v in times.items() if k[1] == d) for d in names]
    order = sorted(range(len(names)), key=lambda i: sizes[i])
    series = {
        METHODS[m].label: [times.get((m, names[i]), (0, float("nan")))[1] for i in order]
        for m in METHODS
        if any(key[0] == m for key in times)
    }
    return {"names": [names[i] for i in order], "sizes": [sizes[i] for i in order],
            "series": series}  # fmt: skip
