"""Table 2: classification error on 17 data sets, two re-scalings, all methods, the paper's splits.

Errors are averaged as the authors did: every count is divided by the unlabelled count of the data
set's last run (see :func:`reproduction.protocol.error_percent`). The authors' stored counts of the
same runs stand beside ours, so a quick run compares like with like.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..config import Config
from ..methods import METHODS, has_licence, predict, warm_up
from ..protocol import PAPER_DATASETS, RESCALINGS, paper_denominator
from ..store import Row, Task
from ..tables import Table
from .base import Experiment, Params, Started, fresh_problem, load_cached, one_run, run_params
from .table2_results import Results
from .table2_tables import tables

# Seconds per run: they get one split per fold (quick: one fold) and a time limit of their own,
# unless they are asked for by name.
HEAVY = ("modified-dual-admm", "modified-dual-interior-point", "modified-dual-published")
HEAVY_LIMIT = 300.0


class Table2(Experiment):
    """Classification error."""

    name = "table2"
    summary = "classification error on the paper's data sets, two re-scalings, the paper's splits"
    methods = tuple(METHODS)

    def tasks(self, config: Config) -> list[Task]:
        """One row per run and method, those of one run together."""
        default = tuple(name for name, spec in METHODS.items() if spec.default)
        found = []
        for run in run_params(config, config.splits):
            for method in config.pick_methods(self.methods, tuple(filter(has_licence, default))):
                rare = method in HEAVY and config.methods is None
                if rare and (run["split"] > 1 or (run["fold"] and not config.full)):
                    continue
                limit = HEAVY_LIMIT if rare else None
                found.append(Task(self.name, {**run, "method": method}, limit=limit))
        return found

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Classify one run by one method."""
        run = one_run(params)
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
        largest = 0.0  # how far the closed form leaves the box of GLR-box
        if spec.name == "harmonic" and solution is not None:
            largest = float(np.nan_to_num(np.abs(solution.scores[run.unlabeled]).max(), posinf=0.0))
        return {
            "program": spec.program,
            "errors": errors,
            "n_unlabeled": run.n_unlabeled,
            "denominator": _denominator(params["dataset"], params["rescaling"]),
            "size": int(run.y.size),
            "seconds": seconds,
            "converged": prediction.converged,
            "iterations": 0 if solution is None else int(solution.iterations),
            "largest_score": largest,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Means, run by run against the authors, linear programs, errors per data set."""
        return tables(Results.of(rows), rows) if rows else []

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """``means``: list of (label, {rescaling: (ours, authors' on the same runs or None)})."""
        results = Results.of(rows)
        most = max((results.n_runs(m) for m in METHODS), default=0)
        means = []
        for method, spec in METHODS.items():
            entry = {
                r: (results.mean(method, r), results.authors_mean(method, r))
                for r in RESCALINGS
                if results.n_sets(method, r) == len(PAPER_DATASETS)
            }
            if entry:
                # A reader must see which points average fewer runs than the others.
                n = results.n_runs(method)
                means.append((spec.label + (f" ({n} runs)" if n < most else ""), entry))
        return {"means": means} if means else None


@lru_cache(maxsize=2)
def _denominator(name: str, rescaling: str) -> int:
    return paper_denominator(load_cached(name), rescaling)
