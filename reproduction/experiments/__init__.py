"""The experiments by name, in the order of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gdpa.errors import nearest_name

from .base import Experiment, Params, Started
from .bound import Bound
from .cod_rna import CodRna
from .eigenvector import Eigenvector
from .example import Example
from .lemma1 import Lemma1
from .runtime import Runtime
from .table1 import Table1
from .table2 import Table2
from .warm_start import WarmStart

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Example(), Table1(), Table2(), Eigenvector(), Runtime(), CodRna(), Lemma1(), Bound(),
        WarmStart(),
    )
}  # fmt: skip


def check_experiments(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of experiments in the order of the paper; "all" stands for all."""
    choices = [*EXPERIMENTS, "all"]
    for name in names:
        if name not in choices:
            raise ValueError(f"experiment {name!r} is not known; {nearest_name(name, choices)}")
    return tuple(name for name in EXPERIMENTS if name in names or "all" in names)


def compute(experiment: str, params: Params, started: Started) -> dict[str, Any]:
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
