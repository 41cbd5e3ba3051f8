"""The experiments by name: what rows each has, how a row is computed, what is shown of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import nearest_name
from . import cod_rna, dual_checks, runtime, table1, table2
from .config import Config
from .store import Row, Task
from .tables import Table

__all__ = ["EXPERIMENTS", "Experiment", "check_experiments", "compute"]


@dataclass(frozen=True)
class Experiment:
    """One part of the reproduction.

    Parameters
    ----------
    name : str
        What the command is called.
    summary : str
        What it shows.
    tasks : callable
        Config -> rows to compute.
    compute : callable
        Computes one row.
    tables : callable
        Rows, config -> tables.
    figure_data : callable or None
        Rows -> what :mod:`gdpa.plotting.figures` draws.
    methods : tuple of str
        Methods that it can run; empty where there is no choice.
    """

    name: str
    summary: str
    tasks: Callable[[Config], list[Task]]
    compute: Callable[[Mapping[str, Any], Callable[[], None]], dict[str, Any]]
    tables: Callable[[Sequence[Row], Config], list[Table]]
    figure_data: Callable[[Sequence[Row]], dict[str, Any]] | None = None
    methods: tuple[str, ...] = ()


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "table1",
            "restoration of a binary signal: 12 cells, five methods",
            table1.tasks,
            table1.compute,
            table1.tables,
            table1.figure_data,
            table1.METHOD_NAMES,
        ),
        Experiment(
            "table2",
            "classification error on 17 data sets, two re-scalings, the paper's splits",
            table2.tasks,
            table2.compute,
            table2.tables,
            table2.figure_data,
            table2.METHOD_NAMES,
        ),
        Experiment(
            "runtime",
            "running time by problem size on the 17 data sets",
            runtime.tasks,
            runtime.compute,
            runtime.tables,
            runtime.figure_data,
            runtime.METHOD_NAMES,
        ),
        Experiment(
            "cod-rna",
            "running time on cod-rna from 4 to 488,565 samples, growth exponents",
            cod_rna.tasks,
            cod_rna.compute,
            cod_rna.tables,
            cod_rna.figure_data,
            cod_rna.METHOD_NAMES,
        ),
        Experiment(
            "lemma1",
            "difference of the smallest eigenvalues of H and H_bar",
            dual_checks.lemma1_tasks,
            dual_checks.compute_lemma1,
            dual_checks.lemma1_tables,
        ),
        Experiment(
            "bound",
            "the error bound of the split dual against the true gap",
            dual_checks.bound_tasks,
            dual_checks.compute_bound,
            dual_checks.bound_tables,
            dual_checks.bound_figure_data,
        ),
    )
}


def check_experiments(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of experiments; "all" stands for all.

    Parameters
    ----------
    names : sequence of str
        What was asked for.

    Returns
    -------
    tuple of str
        Names, in the order of the paper.
    """
    choices = [*EXPERIMENTS, "all"]
    for name in names:
        if name not in choices:
            raise ValueError(f"experiment {name!r} is not known; {nearest_name(name, choices)}")
    if "all" in names:
        return tuple(EXPERIMENTS)
    return tuple(name for name in EXPERIMENTS if name in names)


def compute(
    experiment: str, params: Mapping[str, Any], started: Callable[[], None]
) -> dict[str, Any]:
    """Compute one row.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    params : mapping
        Which row.
    started : callable
        Called when data are loaded and the method starts: the time limit counts from there.

    Returns
    -------
    dict
        Finite numbers, booleans and strings.
    """
    values = EXPERIMENTS[experiment].compute(params, started)
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise FloatingPointError(f"{name} is {value}")
    return values
