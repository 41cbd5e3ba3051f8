"""Run experiments into a folder and write the report: one call from nothing to the HTML page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gdpa.errors import require

from .config import Config
from .datasets import fetch, load
from .experiments import EXPERIMENTS, check_experiments
from .methods import check_methods
from .report import write_report
from .runner import Progress, run_tasks
from .store import ResultsStore, Row, Task


@dataclass(frozen=True)
class Reproduction:
    """Result of a run.

    Parameters
    ----------
    report : pathlib.Path
        The HTML page.
    rows : tuple of Row
        The rows of this run, in the order of its tasks.
    """

    report: Path
    rows: tuple[Row, ...]

    @property
    def lost(self) -> tuple[Row, ...]:
        """Rows without a result: failed, over the time limit, or skipped after one that was."""
        return tuple(row for row in self.rows if row.status != "ok")


def reproduce(
    experiments: Sequence[str] = ("all",),
    *,
    out: str | os.PathLike[str],
    config: Config | None = None,
    jobs: int = 1,
    time_limit: float | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    docs: str | os.PathLike[str] | None = None,
) -> Reproduction:
    """Reproduce tables and figures of the paper.

    Finished rows of the folder are not computed again, so a killed run continues where it stopped.

    Parameters
    ----------
    experiments : sequence of str, default=("all",)
        "example", "table1", "table2", "eigenvector", "runtime", "cod-rna", "lemma1", "bound",
        "warm-start" or "all".
    out : path-like
        Folder of results and report.
    config : Config, optional
        Extent; quick by default.
    jobs : int, default=1
        Worker processes. Results do not depend on it; times are always measured one by one.
    time_limit : float, optional
        Seconds that a method may take on one problem; by default 20 in a quick run, 60 in a full
        one.
    retry_failed : bool, default=False
        Whether rows that failed before are computed again.
    progress : callable, optional
        Called with a :class:`~reproduction.runner.ProgressEvent` during the run.
    docs : path-like, optional
        Folder whose page ``REPRODUCTION.md`` also gets tables and figures.

    Returns
    -------
    Reproduction
        Page and rows.

    Raises
    ------
    ValueError
        If a name is not known, or nothing is left to do with these options.
    DownloadError
        If a data set is not in the cache and cannot be fetched.
    DataFileError
        If a cached file is truncated or has other numbers than the catalogue's.
    ResultsFolderError
        If the folder cannot be used.
    """
    require("markdown_it", "reproduction")  # the report needs it, at the end
    config = Config() if config is None else config
    names = check_experiments(experiments)
    limit = (60.0 if config.full else 20.0) if time_limit is None else float(time_limit)
    accepted = sorted({m for name in names for m in EXPERIMENTS[name].methods})
    if config.methods is not None and accepted:
        check_methods(config.methods, accepted)
    plan = {name: EXPERIMENTS[name].tasks(config) for name in names}
    tasks = [task for name in names for task in plan[name]]
    if not tasks:
        raise ValueError(
            f"nothing to do: {', '.join(names)} has no row with these datasets and methods"
        )
    with ResultsStore(out) as store:
        _fetch_data(tasks)
        run_tasks(
            tasks, store, jobs=jobs, time_limit=limit, retry_failed=retry_failed, progress=progress
        )
        rows = {name: store.select(plan[name]) for name in names}
        page = write_report(store.folder, rows, None if docs is None else Path(docs))
    return Reproduction(page, tuple(row for name in names for row in rows[name]))


def _fetch_data(tasks: Sequence[Task]) -> None:
    """Read every data set before the first row: a missing or damaged one stops the run."""
    needed = {
        str(task.params["dataset"]) if "dataset" in task.params else "cod-rna"
        for task in tasks
        if "dataset" in task.params or task.experiment == "cod-rna"
    }
    for name in sorted(needed):
        try:
            load(name, download=False)
        except FileNotFoundError:
            fetch(name)
            load(name)
