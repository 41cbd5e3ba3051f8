"""Two statements about the split dual: the difference of Lemma 1, and the paper's error bound.

lemma1: ``lmin(H) - lmin(H_bar)`` at the dual point of GDPA as published (the Laplacian scaled as
the authors did) and at the paper's starting point on the problem itself.
bound: ``F(H_bar) - F(H) <= F(H_bar) - F(H_tilde)``, with F(H) the value of the relaxation, negated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dual import error_bound, lemma1_gap, optimal_point
from ..problem import GraphProblem
from ..solution import DualVariables
from .config import Config
from .example import example_table
from .protocol import PAPER_DATASETS, RESCALINGS, fold_count
from .published import LEMMA1_MEAN
from .store import Row, Task
from .table2 import one_run
from .tables import Cell, Table, difference

__all__ = [
    "bound_figure_data",
    "bound_tables",
    "bound_tasks",
    "compute_bound",
    "compute_lemma1",
    "lemma1_tables",
    "lemma1_tasks",
]

_POINTS = {"gdpa-published": "GDPA as published", "start": "start of the paper, a = 1"}


def lemma1_tasks(config: Config) -> list[Task]:
    """List the rows: one per run for the published point, one per fold for the start.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows.
    """
    return [
        Task("lemma1", {"dataset": name, "rescaling": r, "fold": k, "split": s, "method": point})
        for r in RESCALINGS
        for name in config.pick_datasets(PAPER_DATASETS)
        for k in range(fold_count(name, r))
        for s in config.splits
        for point in _POINTS
        if point != "start" or s == 1
    ]


def compute_lemma1(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Difference of the two smallest eigenvalues at one dual point.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the computation starts.

    Returns
    -------
    dict
        The difference.
    """
    from ..solvers.gdpa_published import LAPLACIAN_SCALE
    from ..solvers.registry import solve

    run = one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])
    problem = run.problem()
    started()
    if params["method"] == "start":
        return {"gap": float(lemma1_gap(problem, optimal_point(problem, 1.0)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dual = solve(problem, "gdpa", preset="published").dual
    if not isinstance(dual, DualVariables):
        raise ValueError("the problem has one class only; there is no dual point")
    scaled = GraphProblem(problem.W, problem.labels, laplacian="normalized")
    scaled.adjacency = scaled.adjacency * LAPLACIAN_SCALE
    scaled.diagonal = scaled.diagonal * LAPLACIAN_SCALE
    return {"gap": float(lemma1_gap(scaled, dual))}


def lemma1_tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Mean difference beside the paper's.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        The differences, and the worked example of the paper's first figure.
    """
    body: list[tuple[Cell, ...]] = []
    for point, label in _POINTS.items():
        gaps = [r.values["gap"] for r in rows if r.status == "ok" and r.params["method"] == point]
        if not gaps:
            continue
        paper = LEMMA1_MEAN if point == "gdpa-published" else None
        mean = float(np.mean(gaps))
        body.append((
            label, len(gaps), paper, mean, difference(mean, paper), float(np.min(gaps)),
            float(np.max(gaps)),
        ))  # fmt: skip
    columns = ("dual point", "runs", "paper, mean", "ours, mean", "difference", "least", "largest")
    notes = (
        "Lemma 1 says that the difference is not negative. How small it is depends on the scale of "
        "the point, not on the lemma: the authors' Laplacian is multiplied by 1e-15 and what is "
        "left is the size of the solver's own tolerance.",
    )
    title = "Lemma 1: λmin(H) − λmin(H̄)"
    if not body:
        return []
    return [Table("lemma1", title, columns, tuple(body), notes, digits=4), example_table()]


def bound_tasks(config: Config) -> list[Task]:
    """List the rows: split 1 of the first fold, of every fold if full.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows.
    """
    return [
        Task("bound", {"dataset": name, "rescaling": r, "fold": k, "split": 1})
        for r in RESCALINGS
        for name in config.pick_datasets(PAPER_DATASETS)
        for k in range(fold_count(name, r) if config.full else 1)
    ]


def compute_bound(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Bound and true gap of one run.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the computation starts.

    Returns
    -------
    dict
        Optima of the three duals, the bound and the true gap.
    """
    from ..solvers.registry import solve

    run = one_run(params["dataset"], params["rescaling"], params["fold"], params["split"])
    problem = run.problem()
    started()
    found = error_bound(problem)
    solution = solve(problem, "sdr-interior-point")
    sdr = float(solution.info.get("sdr_value", solution.lower_bound))
    return {
        "F_bar": found.F_bar,
        "F_tilde": found.F_tilde,
        "F": -sdr,
        "phi": found.phi,
        "bound": found.bound,
        "gap": found.F_bar + sdr,
        "size": int(run.y.size),
    }


def bound_tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Error bound against the true gap, by data set.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        One table; the paper gives no numbers for it.
    """
    good = [row for row in rows if row.status == "ok"]
    body: list[tuple[Cell, ...]] = []
    for rescaling in RESCALINGS:
        for name in PAPER_DATASETS:
            found = [
                r.values
                for r in good
                if (r.params["dataset"], r.params["rescaling"]) == (name, rescaling)
            ]
            if not found:
                continue
            mean = {
                k: float(np.mean([v[k] for v in found])) for k in ("F_bar", "F", "gap", "bound")
            }
            holds = sum(_holds(v) for v in found)
            body.append((
                name, rescaling, len(found), mean["F_bar"], mean["F"], mean["gap"], mean["bound"],
                mean["bound"] / mean["gap"] if mean["gap"] > 0 else None,
                f"{holds} of {len(found)}",
            ))  # fmt: skip
    columns = (
        "data set", "re-scaling", "runs", "F(H̄)", "F(H)", "true gap", "bound", "bound / gap",
        "holds",
    )  # fmt: skip
    total = sum(_holds(row.values) for row in good)
    notes = (
        f"The bound holds in {total} of {len(good)} runs. The paper prints no value of it.",
        "F(H̄) does not depend on the labels (it is −1'L1), so the gap is the whole of what the "
        "relaxation knows about them.",
    )
    title = "Error bound of the split dual against the true gap F(H̄) − F(H)"
    return [Table("bound", title, columns, tuple(body), notes)] if body else []


def _holds(values: Mapping[str, Any]) -> bool:
    """-tol <= gap <= bound, up to the tolerance of the interior point."""
    slack = 1e-6 * (1.0 + abs(values["F"]))
    return bool(-slack <= values["gap"] <= values["bound"] + slack)


def bound_figure_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Bound and gap per run, for the figure.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        ``gap``, ``bound`` and ``rescaling``, one entry per run.
    """
    good = [row for row in rows if row.status == "ok"]
    return {
        "gap": [row.values["gap"] for row in good],
        "bound": [row.values["bound"] for row in good],
        "rescaling": [row.params["rescaling"] for row in good],
    }
