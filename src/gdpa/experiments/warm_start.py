"""The claim that a warm start of the first eigenvector saves iterations.

One step of GDPA on the problem itself: the first eigenvector of H_bar at the paper's start, the LP
there, a point half-way to its optimum (at the optimum labels are gone and the matrix falls apart),
and the first eigenvector of the new H_bar from a random vector and from the old one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..gershgorin.bounds import nowhere_zero
from ..linalg import first_eigenvector
from ..problem.dual import build_H_bar
from ..solution import DualVariables
from .base import Experiment, Findings, Started, finished_rows
from .config import Config
from .protocol import PAPER_DATASETS
from .store import Row, Task
from .table2 import one_run
from .tables import Table

__all__ = ["WarmStart"]

_TOLERANCE = 1e-6


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

    def compute(self, params: Mapping[str, Any], started: Started) -> dict[str, Any]:
        """Iterations from both starts."""
        from ..solvers.gdpa_lp import closed_form

        run = one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])
        problem = run.problem()
        started()
        known = (problem.labels != 0).astype(np.float64)
        y = np.append(known, float(problem.n_labeled))
        z = -problem.labels[problem.labeled].astype(np.float64)
        v = np.linalg.eigh(build_H_bar(problem, DualVariables(y, z)).toarray())[1][:, 0]
        point = closed_form(problem, nowhere_zero(v))
        half = DualVariables(
            0.5 * (y + point.y), 0.5 * (z - problem.labels[problem.labeled] * point.a)
        )
        H_bar = build_H_bar(problem, half)
        counts = {}
        for name, start in (("cold", None), ("warm", v)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                counts[name] = first_eigenvector(
                    H_bar, v0=start, tol=_TOLERANCE, preconditioner=None, dense_below=0
                ).iterations
        return {**counts, "size": int(run.y.size)}

    def tables(self, rows: Sequence[Row], config: Config) -> list[Table]:
        """Iterations per data set."""
        body = tuple(
            (r.params["dataset"], r.values["size"], r.values["cold"], r.values["warm"])
            for r in finished_rows(rows)
        )
        if not body:
            return []
        columns = ("data set", "size", "iterations, random start", "iterations, last eigenvector")
        title = "First eigenvector of the second H̄: LOBPCG iterations"
        notes = (
            "The paper says that a warm start helps significantly, and gives no number. Where it "
            "takes no iteration, the linear program has made every row tight and the old vector is "
            "the new one: the alternation has stalled.",
        )
        return [Table("warm-start", title, columns, body, notes)]

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Whether it helps."""
        good = finished_rows(rows)
        if not good:
            return Findings()
        cold, warm = (float(np.mean([r.values[k] for r in good])) for k in ("cold", "warm"))
        text = (
            f"A warm start of the first eigenvector takes {warm:.1f} iterations on average, a "
            f"random one {cold:.1f} ({len(good)} data sets, no preconditioner)."
        )
        return Findings((text,)) if warm < cold else Findings((), (text,))
