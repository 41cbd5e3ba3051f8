"""The claim that a warm start of the first eigenvector saves iterations.

One step of GDPA on the problem itself: the first eigenvector of H_bar at the paper's start, the LP
there, a point half-way to its optimum (at the optimum the labels are gone and the matrix falls
apart), and the first eigenvector of the new H_bar from a random vector and from the old one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gdpa.gershgorin.bounds import nowhere_zero
from gdpa.linalg import first_eigenvector
from gdpa.problem.dual import build_H_bar
from gdpa.solution import DualVariables
from gdpa.solvers.gdpa_lp import closed_form

from ..config import Config
from ..protocol import PAPER_DATASETS
from ..store import Row, Task
from ..tables import Table, make_table
from .base import Experiment, Params, Started, finished_rows, one_run


class WarmStart(Experiment):
    """Iterations of the first eigenvector."""

    name = "warm-start"
    summary = "iterations of the first eigenvector, cold and warm"

    def tasks(self, config: Config) -> list[Task]:
        """One row per data set: min-max, fold 0, split 1."""
        return [
            Task(self.name, {"dataset": name, "rescaling": "min-max", "fold": 0, "split": 1})
            for name in config.pick_datasets(PAPER_DATASETS)
        ]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Iterations from both starts."""
        run = one_run(params)
        problem = run.problem()
        started()
        known = (problem.labels != 0).astype(np.float64)
        y = np.append(known, float(problem.n_labeled))
        signs = problem.labels[problem.labeled]
        z = -signs.astype(np.float64)
        v = np.linalg.eigh(build_H_bar(problem, DualVariables(y, z)).toarray())[1][:, 0]
        point = closed_form(problem, nowhere_zero(v))
        half = DualVariables(0.5 * (y + point.y), 0.5 * (z - signs * point.a))
        H_bar = build_H_bar(problem, half)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts = {
                name: first_eigenvector(
                    H_bar, v0=start, tol=1e-6, preconditioner=None, dense_below=0
                ).iterations
                for name, start in (("cold", None), ("warm", v))
            }
        return {**counts, "size": int(run.y.size)}

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Iterations per data set."""
        body = [
            (r.params["dataset"], r.values["size"], r.values["cold"], r.values["warm"])
            for r in finished_rows(rows)
        ]
        return [make_table("warm-start", body)] if body else []
