"""Table 2: classification error on 17 data sets, two re-scalings, all methods, the paper's splits.

Errors are averaged as the authors did: every count is divided by the unlabelled count of the data
set's last run (see :func:`gdpa.experiments.error_percent`). The authors' stored counts of the same
runs stand beside ours, so a quick run compares like with like.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..problem import GraphProblem
from .base import Experiment, Findings, Started
from .config import Config
from .methods import METHODS, has_licence, predict, warm_up
from .protocol import (
    PAPER_DATASETS,
    RESCALINGS,
    PaperRun,
    fold_count,
    folds,
    paper_problems,
)
from .store import Row, Task
from .table2_findings import findings
from .table2_results import Results
from .table2_tables import tables
from .tables import Table

__all__ = ["HEAVY", "Table2", "fresh_problem", "one_run"]

# Ten times the time of the others and more: they get one split per fold (quick: one fold), unless
# they are asked for by name.
HEAVY = (
    "sdr-admm", "modified-dual-admm", "modified-dual-interior-point", "modified-dual-published",
    "sdr-printed", "sdcut", "random-forest",
)  # fmt: skip
# Graphs of nearly equal weights: ADMM and factors crawl there.
HEAVY_LIMIT = 20.0


class Table2(Experiment):
    """Classification error."""

    name = "table2"
    summary = "classification error on 17 data sets, two re-scalings, the paper's splits"
    methods = tuple(METHODS)

    def tasks(self, config: Config) -> list[Task]:
        """One row per run and method, those of one run together."""
        default = tuple(
            name for name, spec in METHODS.items() if spec.default and has_licence(name)
        )
        methods = config.pick_methods(self.methods, default)
        found = []
        for rescaling in RESCALINGS:
            for dataset in config.pick_datasets(PAPER_DATASETS):
                for fold in range(fold_count(dataset, rescaling)):
                    for split in config.splits:
                        for method in methods:
                            rare = method in HEAVY and config.methods is None
                            if rare and (split > 1 or (fold and not config.full)):
                                continue
                            params = {
                                "dataset": dataset, "rescaling": rescaling, "fold": fold,
                                "split": split, "method": method,
                            }  # fmt: skip
                            found.append(
                                Task(self.name, params, limit=HEAVY_LIMIT if rare else None)
                            )
        return found

    def compute(self, params: Mapping[str, Any], started: Started) -> dict[str, Any]:
        """Classify one run by one method."""
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
        solution = prediction.solution
        box = 0.0
        if spec.name == "harmonic" and solution is not None:
            box = float(np.abs(solution.scores[run.unlabeled]).max())
        return {
            "errors": errors,
            "n_unlabeled": run.n_unlabeled,
            "denominator": _denominator(params["dataset"], params["rescaling"]),
            "size": int(run.y.size),
            "seconds": seconds,
            "converged": bool(prediction.converged),
            "iterations": 0 if solution is None else int(solution.iterations),
            "largest_score": box if np.isfinite(box) else 0.0,
        }

    def tables(self, rows: Sequence[Row], config: Config) -> list[Table]:
        """Means, run by run against the authors, linear programs, errors per data set."""
        return tables(Results.of(rows), rows) if rows else []

    def figure(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``means``: list of (label, {rescaling: (ours, authors' on the same runs or None)})."""
        results = Results.of(rows)
        counts = {m: results.n_runs(m) for m in METHODS}
        means = []
        for method, spec in METHODS.items():
            entry = {}
            for rescaling in RESCALINGS:
                ours = results.mean(method, rescaling)
                if ours is not None and results.n_sets(method, rescaling) == len(PAPER_DATASETS):
                    entry[rescaling] = (ours, results.authors_mean(method, rescaling))
            if entry:
                # A reader must see which points average fewer runs than the others.
                fewer = counts[method] < max(counts.values())
                label = spec.label + (f" ({counts[method]} runs)" if fewer else "")
                means.append((label, entry))
        return {"means": means}

    def findings(self, rows: Sequence[Row]) -> Findings:
        """What the numbers say."""
        return findings(Results.of(rows))


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
