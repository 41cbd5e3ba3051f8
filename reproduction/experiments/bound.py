"""The paper's error bound, ``F(H_bar) - F(H) <= F(H_bar) - F(H_tilde)``, for two phi.

F(H) is the value of the relaxation, negated. With phi = 1, the largest ``|z|`` of the paper's
start, F(H_tilde) may lie above F(H): no bound. With the safe phi it never does, and the bound is a
constant plus the objective of the vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gdpa.problem import GraphProblem
from gdpa.problem.dual import error_bound
from gdpa.solvers.registry import solve

from ..config import Config
from ..protocol import PAPER_DATASETS, RESCALINGS
from ..store import Row, Task
from ..tables import Cell, Table, make_table
from .base import Experiment, Params, Started, finished_rows, one_run, random_problems, run_params

PAPERS_PHI = 1.0


class Bound(Experiment):
    """Error bound of the split dual."""

    name = "bound"
    summary = "the error bound of the split dual against the true gap"

    def tasks(self, config: Config) -> list[Task]:
        """Split 1 of the first fold, of every fold if full; random instances."""
        runs = [run for run in run_params(config, (1,)) if config.full or run["fold"] == 0]
        return [Task(self.name, params) for params in [*runs, {"random": 1000}]]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Bound and true gap of one run; counts of broken bounds on random instances."""
        if "random" not in params:
            run = one_run(params)
            problem = run.problem()
            started()
            return {**_both(problem), "size": int(run.y.size)}
        started()
        count = params["random"]
        drawn = random_problems(count, ("combinatorial", "normalized"))
        values = [_both(problem) for problem, _ in drawn]
        return {
            "instances": count,
            "papers_broken": sum(not _papers_holds(v) for v in values),
            "safe_broken": sum(not _holds(v) for v in values),
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """By data set; the paper gives no numbers."""
        runs, random = _parted(rows)
        body: list[tuple[Cell, ...]] = []
        for rescaling in RESCALINGS:
            for name in PAPER_DATASETS:
                found = [
                    r.values
                    for r in runs
                    if (r.params["dataset"], r.params["rescaling"]) == (name, rescaling)
                ]
                if not found:
                    continue
                means = [float(np.mean([v[k] for v in found])) for k in ("F_bar", "F")]
                gap, bound = (float(np.mean([v[k] for v in found])) for k in ("gap", "bound"))
                body.append((
                    name, rescaling, len(found), *means, gap, bound,
                    bound / gap if gap > 0 else None,
                    f"{sum(map(_holds, found))} of {len(found)}",
                    f"{sum(map(_papers_holds, found))} of {len(found)}",
                ))  # fmt: skip
        tables = [make_table("bound", body)] if body else []
        for v in random:
            lines = [
                ("φ = 1", v["instances"], v["papers_broken"]),
                ("safe φ", v["instances"], v["safe_broken"]),
            ]
            tables.append(make_table("bound-random", lines))
        return tables

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """Re-scaling -> (gap, bound) of each run, where both are positive."""
        points: dict[str, list[tuple[float, float]]] = {}
        for row in _parted(rows)[0]:
            pair = (row.values["gap"], row.values["bound"])
            if min(pair) > 0:
                points.setdefault(row.params["rescaling"], []).append(pair)
        return points or None


def _parted(rows: Sequence[Row]) -> tuple[list[Row], list[Mapping[str, Any]]]:
    good = finished_rows(rows)
    return (
        [row for row in good if "random" not in row.params],
        [row.values for row in good if "random" in row.params],
    )


def _both(problem: GraphProblem) -> dict[str, float]:
    safe, paper = error_bound(problem), error_bound(problem, PAPERS_PHI)
    solution = solve(problem, "sdr-interior-point")
    sdr = float(solution.info.get("sdr_value", solution.lower_bound))
    return {
        "F_bar": safe.F_bar,
        "F_tilde": safe.F_tilde,
        "F_tilde_paper": paper.F_tilde,
        "F": -sdr,
        "phi": safe.phi,
        "bound": safe.bound,
        "gap": safe.F_bar + sdr,
    }


def _slack(values: Mapping[str, Any]) -> float:
    """Tolerance of the interior point."""
    return float(1e-5 * (1.0 + abs(values["F"])))


def _holds(values: Mapping[str, Any]) -> bool:
    return bool(-_slack(values) <= values["gap"] <= values["bound"] + _slack(values))


def _papers_holds(values: Mapping[str, Any]) -> bool:
    return bool(values["F_tilde_paper"] <= values["F"] + _slack(values))
