"""Labels read off the first eigenvector of H where GDPA stops: every LP engine, both Laplacians.

The paper's text has the combinatorial Laplacian, its experiments the normalised one. A simplex
solver, a closed form that keeps its start where that is optimal, and an interior point end at
different points of the optimal face. Split 1 of every fold, without madelon (time) and colon-cancer
(weights below double precision): 15 sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gdpa.solvers.gdpa import GDPA

from ..config import Config
from ..methods import program_of
from ..protocol import PAPER_DATASETS, RESCALINGS
from ..store import Row, Task
from ..tables import Cell, Table, make_table
from .base import Experiment, Params, Started, finished_rows, one_run, run_params
from .table2_results import mean_of_sets, run_key

ENGINES = {"highs": "simplex", "closed-form": "keeps its start", "interior-point": "interior point"}
LAPLACIANS = ("combinatorial", "normalized")
SETS = tuple(name for name in PAPER_DATASETS if name not in ("madelon", "colon-cancer"))


class Eigenvector(Experiment):
    """Error of the labels that the first eigenvector gives."""

    name = "eigenvector"
    summary = "labels read off the first eigenvector: three LP engines, both Laplacians"

    def tasks(self, config: Config) -> list[Task]:
        """One row per fold, engine and Laplacian."""
        return [
            Task(self.name, {**run, "laplacian": laplacian, "lp": lp})
            for run in run_params(config, [1])
            if run["dataset"] in SETS
            for laplacian in LAPLACIANS
            for lp in ENGINES
        ]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Classify one run."""
        run = one_run(params)
        problem = run.problem(params["laplacian"])
        options = {"lp": params["lp"], "sign": "first"}
        started()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = GDPA(**options).solve(problem)
        return {
            "program": program_of("gdpa", options),
            "error_percent": 100.0 * run.errors(found.labels) / run.n_unlabeled,
            "erased": bool(found.info["erased"]),
            "one_class": bool(np.ptp(found.labels[run.unlabeled]) == 0),
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Mean error over sets, and how often the labels were erased or one class was left."""
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in finished_rows(rows):
            groups.setdefault((row.params["laplacian"], row.params["lp"]), []).append(row)
        body: list[tuple[Cell, ...]] = []
        for (laplacian, lp), mine in groups.items():
            errors = {run_key(r.params): r.values["error_percent"] for r in mine}
            value = errors.__getitem__
            means = [mean_of_sets([k for k in errors if k[1] == r], value) for r in RESCALINGS]
            counts = [sum(r.values[k] for r in mine) for k in ("erased", "one_class")]
            body.append((laplacian, ENGINES[lp], *means, *counts, len(mine)))
        n_sets = len({row.params["dataset"] for row in finished_rows(rows)})
        return [make_table("eigenvector", body, n=n_sets)] if body else []
