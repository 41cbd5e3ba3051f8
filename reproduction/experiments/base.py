"""What an experiment is: rows to compute, how one is computed, and what is shown of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from gdpa.problem import GraphProblem

from ..config import Config
from ..datasets import Dataset, load
from ..protocol import (
    PAPER_DATASETS,
    RESCALINGS,
    PaperRun,
    fold_count,
    paper_problems,
)
from ..store import Row, Task
from ..tables import Table

Params = Mapping[str, Any]
# Called when data are loaded and the method starts: a time limit counts from there.
Started = Callable[[], None]
REPEATS = 3


class Experiment(ABC):
    """One part of the reproduction."""

    name: ClassVar[str]
    summary: ClassVar[str]
    # Methods that it can run; empty where there is no choice.
    methods: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def tasks(self, config: Config) -> list[Task]:
        """List the rows to compute."""

    @abstractmethod
    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Compute one row: finite numbers, booleans and strings."""

    @abstractmethod
    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return our numbers beside the paper's; no tables where there is nothing to show."""

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """Return what :mod:`reproduction.figures` draws under the experiment's name."""
        return None


def finished_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have a result."""
    return [row for row in rows if row.status == "ok"]


def run_params(config: Config, splits: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Iterate over the paper's runs, as parameters of tasks."""
    for rescaling in RESCALINGS:
        for dataset in config.pick_datasets(PAPER_DATASETS):
            for fold in range(fold_count(dataset, rescaling)):
                for split in splits:
                    yield {
                        "dataset": dataset, "rescaling": rescaling, "fold": fold, "split": split,
                    }  # fmt: skip


@lru_cache(maxsize=2)
def load_cached(name: str) -> Dataset:
    """Load a data set; the last two are kept."""
    return load(name)


def one_run(params: Params) -> PaperRun:
    """Build the run of the paper's protocol that a task names; the last two are kept."""
    return _one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])


@lru_cache(maxsize=2)
def _one_run(name: str, rescaling: str, fold: int, split: int) -> PaperRun:
    for run in paper_problems(load_cached(name), rescaling, splits=[split]):
        if run.fold == fold:
            return run
    raise ValueError(f"fold={fold} does not exist: {name} has {fold_count(name, rescaling)} folds")


@lru_cache(maxsize=2)
def _checked_problem(run: PaperRun) -> GraphProblem:
    return run.problem()


def fresh_problem(run: PaperRun) -> GraphProblem:
    """State a run as a problem in which nothing is cached, without checking its graph again."""
    return _checked_problem(run).with_labels(run.labels)


def random_problems(
    count: int, laplacians: Sequence[str] = ("combinatorial",)
) -> Iterator[tuple[GraphProblem, np.random.Generator]]:
    """Iterate over random problems of 4 to 8 nodes, each with the generator that drew it."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n = 4 + seed % 5
        W = np.triu(rng.random((n, n)), 1)
        labels = rng.choice([-1, 0, 1], n)
        labels[:3] = 1, -1, 0
        yield GraphProblem(W + W.T, labels, laplacian=laplacians[seed % len(laplacians)]), rng


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Call three times, or until two seconds are over.

    Parameters
    ----------
    call : callable
        What to time.

    Returns
    -------
    tuple
        The first answer and the median of the processor seconds. With one thread that is what a
        clock shows on an otherwise idle machine.
    """
    seconds: list[float] = []
    answer = None
    while len(seconds) < REPEATS and sum(seconds) < 2.0:
        start = time.process_time()
        latest = call()
        seconds.append(time.process_time() - start)
        answer = latest if len(seconds) == 1 else answer
    return answer, float(np.median(seconds))


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Return the exponent p of ``seconds ~ size^p`` by least squares in logarithms.

    Parameters
    ----------
    sizes, seconds : sequence of float
        Measurements, all positive.

    Returns
    -------
    float or None
        The exponent; None with fewer than two sizes.
    """
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
