"""Table 2: classification error on 17 data sets, two re-scalings, all methods, the paper's splits.

Errors are averaged as the authors did: every count is divided by the unlabelled count of the data
set's last run (see :func:`gdpa.experiments.error_percent`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..problem import GraphProblem
from .config import Config
from .methods import METHODS, predict, warm_up
from .protocol import (
    PAPER_DATASETS,
    RESCALINGS,
    PaperRun,
    fold_count,
    folds,
    paper_problems,
)
from .published import TABLE2_MEANS, reference_errors
from .store import Row, Task
from .tables import Cell, Table, difference

__all__ = [
    "HEAVY",
    "METHOD_NAMES",
    "compute",
    "figure_data",
    "fresh_problem",
    "one_run",
    "tables",
    "tasks",
]

METHOD_NAMES = tuple(METHODS)
# Minutes where the others take seconds: they get one split per fold (quick: one fold), unless they
# are asked for by name.
HEAVY = ("sdr-admm", "modified-dual-admm", "modified-dual-interior-point", "sdcut")


def tasks(config: Config) -> list[Task]:
    """List the rows: one per run and method.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows, those of one run together.
    """
    default = tuple(
        name for name, spec in METHODS.items() if (spec.full if config.full else spec.quick)
    )
    methods = config.pick_methods(METHOD_NAMES, default)
    named = config.methods is not None
    found = []
    for rescaling in RESCALINGS:
        for dataset in config.pick_datasets(PAPER_DATASETS):
            for fold in range(fold_count(dataset, rescaling)):
                for split in config.splits:
                    for method in methods:
                        if (
                            method in HEAVY
                            and not named
                            and (split > 1 or (fold and not config.full))
                        ):
                            continue
                        found.append(_task(dataset, rescaling, fold, split, method))
    return found


def _task(dataset: str, rescaling: str, fold: int, split: int, method: str) -> Task:
    params = {
        "dataset": dataset,
        "rescaling": rescaling,
        "fold": fold,
        "split": split,
        "method": method,
    }
    return Task("table2", params)


@lru_cache(maxsize=2)
def _dataset(name: str) -> Any:
    from ..datasets import load

    return load(name)


@lru_cache(maxsize=2)
def _denominator(name: str, rescaling: str) -> int:
    K = fold_count(name, rescaling)
    return int(np.count_nonzero(folds(_dataset(name).y, K) == K - 1)) // 2


@lru_cache(maxsize=2)
def one_run(name: str, rescaling: str, fold: int, split: int) -> PaperRun:
    """Build one run of the paper's protocol.

    Parameters
    ----------
    name, rescaling, fold, split
        Which.

    Returns
    -------
    PaperRun
        The run; the last two are kept.
    """
    for run in paper_problems(_dataset(name), rescaling, splits=[split]):
        if run.fold == fold:
            return run
    raise ValueError(f"fold={fold} does not exist: {name} has {fold_count(name, rescaling)} folds")


@lru_cache(maxsize=2)
def _checked_problem(run: PaperRun) -> GraphProblem:
    return run.problem()


def fresh_problem(run: PaperRun) -> GraphProblem:
    """State a run as a problem in which nothing is cached, without checking its graph again.

    Parameters
    ----------
    run : PaperRun
        The run.

    Returns
    -------
    GraphProblem
        The problem, normalised Laplacian.
    """
    return _checked_problem(run).with_labels(run.labels)


def compute(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Classify one run by one method.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the method starts.

    Returns
    -------
    dict
        Errors, sizes and processor seconds.
    """
    run = one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])
    spec = METHODS[params["method"]]
    problem = fresh_problem(run)
    warm_up(spec.name)
    started()
    start = time.process_time()
    prediction = predict(spec.name, run, problem)
    seconds = time.process_time() - start
    errors = run.errors(prediction.labels)
    if spec.sign_oracle:
        errors = min(errors, run.n_unlabeled - errors)
    return {
        "errors": errors,
        "n_unlabeled": run.n_unlabeled,
        "denominator": _denominator(params["dataset"], params["rescaling"]),
        "size": int(run.y.size),
        "seconds": seconds,
        "converged": bool(prediction.converged),
    }


def cell_errors(rows: Sequence[Row]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Error in percent by method, re-scaling and data set.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        (method, rescaling, dataset) -> (percent with the authors' denominator, number of runs).
    """
    counts: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row.status == "ok":
            p = row.params
            key = (p["method"], p["rescaling"], p["dataset"])
            percent = 100.0 * row.values["errors"] / row.values["denominator"]
            counts.setdefault(key, []).append(percent)
    return {key: (float(np.mean(values)), len(values)) for key, values in counts.items()}


def tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Means beside the paper's, and the error of every cell.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        Means; one table of cells per re-scaling; rows that are not results, if any.
    """
    if not rows:
        return []
    cells = cell_errors(rows)
    methods = [m for m in METHODS if any(row.params["method"] == m for row in rows)]
    names = [d for d in PAPER_DATASETS if any(key[2] == d for key in cells)]
    found = [_means_table(cells, methods, rows), *_common_table(methods, rows)]
    for rescaling in RESCALINGS:
        found.append(_cells_table(cells, methods, names, rescaling))
    found += _against_authors(cells, methods, names)
    return found


def _means_table(
    cells: dict[tuple[str, str, str], tuple[float, int]], methods: list[str], rows: Sequence[Row]
) -> Table:
    body: list[tuple[Cell, ...]] = []
    for method in methods:
        spec = METHODS[method]
        line: list[Cell] = [spec.label, spec.paper]
        for index, rescaling in enumerate(RESCALINGS):
            values = [v for (m, r, _), v in cells.items() if (m, r) == (method, rescaling)]
            # A mean over other sets than the paper's 17 must not stand beside the paper's.
            whole = len(values) == len(PAPER_DATASETS)
            ours = float(np.mean([v[0] for v in values])) if values else None
            paper = TABLE2_MEANS[spec.paper][index] if spec.paper and whole else None
            line += [paper, ours, difference(ours, paper)]
        sets = {k[2] for k in cells if k[0] == method}
        runs = sum(v[1] for k, v in cells.items() if k[0] == method)
        lost = sum(1 for row in rows if row.params["method"] == method and row.status != "ok")
        body.append((*line, len(sets), runs, lost))
    columns: tuple[str, ...] = ("method", "paper's column")
    for rescaling in RESCALINGS:
        columns += (f"paper, {rescaling} (%)", f"ours, {rescaling} (%)", "difference")
    columns += ("sets", "runs", "runs without result")
    notes = (
        "Mean over data sets of the error per data set. The full protocol has 1580 runs; a row "
        "with fewer averages other runs than the paper's and moves by a point or two with them.",
        "BCR and SNS in the authors' variant are given the better of x and -x on the hidden labels "
        "(a sign oracle), as in the paper; no other method sees a hidden label.",
    )
    title = "Table 2: mean classification error of the 17 data sets"
    return Table("table2-means", title, columns, tuple(body), notes)


def _common_table(methods: list[str], rows: Sequence[Row]) -> list[Table]:
    """Means over the runs that all methods have: the only fair comparison if some have fewer."""
    by_method: dict[str, dict[tuple[Any, ...], float]] = {m: {} for m in methods}
    for row in rows:
        if row.status == "ok":
            p = row.params
            run = (p["rescaling"], p["dataset"], p["fold"], p["split"])
            by_method[p["method"]][run] = 100.0 * row.values["errors"] / row.values["denominator"]
    cells = len(RESCALINGS) * len(PAPER_DATASETS)
    complete = {m: r for m, r in by_method.items() if len({k[:2] for k in r}) == cells}
    if len({len(r) for r in complete.values()}) < 2:
        return []  # all have the same runs: the table of means says it already
    common = set.intersection(*(set(runs) for runs in complete.values()))
    if len({run[:2] for run in common}) < cells:
        return []
    body: list[tuple[Cell, ...]] = []
    for method, errors in complete.items():
        line: list[Cell] = [METHODS[method].label]
        for rescaling in RESCALINGS:
            groups: dict[str, list[float]] = {}
            for run in common:
                if run[0] == rescaling:
                    groups.setdefault(run[1], []).append(errors[run])
            line.append(float(np.mean([np.mean(values) for values in groups.values()])))
        body.append(tuple(line))
    columns = ("method", *(f"{rescaling} (%)" for rescaling in RESCALINGS))
    title = f"Table 2 on the {len(common)} runs that all these methods have: mean error"
    notes = ("Only here may a method that ran on fewer splits be compared with the others.",)
    return [Table("table2-common", title, columns, tuple(body), notes)]


def _cells_table(
    cells: dict[tuple[str, str, str], tuple[float, int]],
    methods: list[str],
    names: list[str],
    rescaling: str,
) -> Table:
    body: list[tuple[Cell, ...]] = []
    for name in names:
        line: list[Cell] = [name]
        for method in methods:
            entry = cells.get((method, rescaling, name))
            line.append(None if entry is None else entry[0])
        body.append(tuple(line))
    columns = ("data set", *(METHODS[m].label for m in methods))
    title = f"Table 2 by data set: error in percent, {rescaling}"
    return Table(f"table2-{rescaling}", title, columns, tuple(body))


def _against_authors(
    cells: dict[tuple[str, str, str], tuple[float, int]], methods: list[str], names: list[str]
) -> list[Table]:
    """Distance to the authors' columns per data set, where their files are there."""
    body: list[tuple[Cell, ...]] = []
    for method in methods:
        column = "GLR" if method == "harmonic" else METHODS[method].paper
        if column is None:
            continue
        for rescaling in RESCALINGS:
            authors = reference_errors(rescaling, column)
            pairs = [
                (abs(cells[method, rescaling, name][0] - authors[name]), name)
                for name in names
                if name in authors and (method, rescaling, name) in cells
            ]
            if pairs:
                distances = [pair[0] for pair in pairs]
                close = sum(d <= 0.01 for d in distances)
                worst = max(pairs)
                body.append((
                    METHODS[method].label, column, rescaling, len(pairs), close,
                    float(np.median(distances)), worst[0], worst[1],
                ))  # fmt: skip
    if not body:
        return []
    columns = (
        "method", "authors' column", "re-scaling", "sets", "within 0.01", "median distance",
        "largest distance", "where",
    )  # fmt: skip
    title = "Table 2: distance to the authors' results per data set (points)"
    return [Table("table2-authors", title, columns, tuple(body))]


def figure_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean errors for the figure.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        ``means``: list of (label, {rescaling: (ours, paper or None)}), only complete ones.
    """
    cells = cell_errors(rows)
    runs = {m: sum(v[1] for k, v in cells.items() if k[0] == m) for m in METHODS}
    means = []
    for method, spec in METHODS.items():
        entry: dict[str, tuple[float, float | None]] = {}
        for index, rescaling in enumerate(RESCALINGS):
            values = [v[0] for k, v in cells.items() if k[:2] == (method, rescaling)]
            if len(values) == len(PAPER_DATASETS):
                paper = TABLE2_MEANS[spec.paper][index] if spec.paper else None
                entry[rescaling] = (float(np.mean(values)), paper)
        if entry:
            # A reader must see which points average fewer runs than the others.
            fewer = f" ({runs[method]} runs)" if runs[method] < max(runs.values()) else ""
            means.append((spec.label + fewer, entry))
    return {"means": means}
