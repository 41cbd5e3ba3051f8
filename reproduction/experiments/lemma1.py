"""Lemma 1: ``lmin(H) - lmin(H_bar)`` at the points that the paper visits, and where it fails.

At the dual point of GDPA as published (the Laplacian scaled as the authors did), at the paper's
starting point on the problem itself, and at random points, where H need not be positive
semi-definite and the lemma does not hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gdpa.problem import GraphProblem
from gdpa.problem.dual import build_H, build_H_bar, lemma1_gap, optimal_point
from gdpa.solution import DualVariables
from gdpa.solvers.comparators.gdpa_published import LAPLACIAN_SCALE
from gdpa.solvers.registry import solve

from ..config import Config
from ..methods import program_of
from ..published import LEMMA1_MEAN
from ..store import Row, Task
from ..tables import Cell, Table, difference, make_table
from .base import Experiment, Params, Started, finished_rows, one_run, random_problems, run_params

_POINTS = {"gdpa-published": "GDPA as published", "start": "start of the paper, a = 1"}


class Lemma1(Experiment):
    """Difference of the smallest eigenvalues."""

    name = "lemma1"
    summary = "Lemma 1: difference of the smallest eigenvalues of H and H_bar"

    def tasks(self, config: Config) -> list[Task]:
        """One row per run for the published point, one per fold for the start, one of random."""
        found = [
            Task(self.name, {**run, "method": point})
            for run in run_params(config, config.splits)
            for point in _POINTS
            if point != "start" or run["split"] == 1
        ]
        return [*found, Task(self.name, {"method": "random", "points": 1000})]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Difference at one point; counts at random ones."""
        if params["method"] == "random":
            started()
            return _random_points(params["points"])
        problem = one_run(params).problem()
        started()
        if params["method"] == "start":
            return {"gap": float(lemma1_gap(problem, optimal_point(problem, 1.0)))}
        return {"gap": _published_gap(problem), "program": program_of("gdpa-published", {})}

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Mean difference beside the paper's; how often the lemma fails."""
        good = finished_rows(rows)
        body: list[tuple[Cell, ...]] = []
        for point, label in _POINTS.items():
            gaps = [r.values["gap"] for r in good if r.params["method"] == point]
            if gaps:
                paper = LEMMA1_MEAN if point == "gdpa-published" else None
                mean = float(np.mean(gaps))
                body.append((
                    label, len(gaps), paper, mean, difference(mean, paper), min(gaps), max(gaps),
                ))  # fmt: skip
        found = [make_table("lemma1", body)] if body else []
        random = [row.values for row in good if row.params["method"] == "random"]
        return [*found, *map(_random_table, random)]


def _random_table(v: Mapping[str, Any]) -> Table:
    rows = [
        ("points with λmin(H) ≥ 0", v["psd_points"], v["psd_broken"]),
        ("points with λmin(H) < 0", v["negative_points"], v["broken"]),
        ("λmin(H̄) ≤ λmin(H) / (1 + v²), all points", v["points"], v["survivor_broken"]),
    ]
    return make_table("lemma1-random", rows)


def _published_gap(problem: GraphProblem) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dual = solve(problem, "gdpa-published").dual
    if not isinstance(dual, DualVariables):
        raise ValueError("the problem has one class only; there is no dual point")
    H, H_bar = build_H(problem, dual).toarray(), build_H_bar(problem, dual).toarray()
    n = problem.n_nodes
    H[:n, :n] = H_bar[:n, :n] = LAPLACIAN_SCALE * problem.L.toarray() + np.diag(dual.y[:-1])
    return float(np.linalg.eigvalsh(H)[0] - np.linalg.eigvalsh(H_bar)[0])


def _lowest(problem: GraphProblem, dual: DualVariables) -> tuple[float, float, float]:
    """Smallest eigenvalue of H and H_bar, and 1 + v_(N+1)^2."""
    values, vectors = np.linalg.eigh(build_H(problem, dual).toarray())
    bar = np.linalg.eigvalsh(build_H_bar(problem, dual).toarray())[0]
    return float(values[0]), float(bar), 1.0 + float(vectors[-1, 0]) ** 2


def _random_points(count: int) -> dict[str, Any]:
    found = dict.fromkeys(
        ("psd_points", "psd_broken", "negative_points", "broken", "survivor_broken"), 0
    )
    for number, (problem, rng) in enumerate(random_problems(count)):
        z = -problem.labels[problem.labeled] * rng.exponential(size=problem.n_labeled)
        y = rng.normal(size=problem.n_nodes + 1)
        H, H_bar, length = _lowest(problem, DualVariables(y, z))
        if number % 2:  # every other one inside the cone
            y = y + max(0.0, -H) + rng.exponential()
            H, H_bar, length = _lowest(problem, DualVariables(y, z))
        found["psd_points" if H >= 0 else "negative_points"] += 1
        found["psd_broken" if H >= 0 else "broken"] += H_bar > H + 1e-9
        found["survivor_broken"] += H_bar > H / length + 1e-9
    example = GraphProblem([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    point = DualVariables(y=np.array([-4.0, 2.0, -1.0]), z=np.array([-3.0, 0.0]))
    H, H_bar, _ = _lowest(example, point)
    return {"points": count, "example_H": H, "example_H_bar": H_bar, **found}
