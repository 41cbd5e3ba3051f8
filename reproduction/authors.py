"""The authors' stored results: errors and milliseconds of every run of their Table 2.

``authors-runs.csv.gz`` has one line per run (data set, re-scaling, fold and split, as in
:mod:`~reproduction.protocol`): the number of unlabelled samples that they divide by, the number of
errors and the time of each of their methods. Facts, read from the result files in the public
repository of the paper's authors, https://github.com/bobchengyang/GDPA_matlab (Matlab, MIT
licence); their times are from a 24-core desktop.
Columns are named as in their files: CDCS-8 is CDCS on the relaxation, CDCS-20 on the modified dual,
GLR the closed form without box, which the paper leaves out.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

COLUMNS = (
    "SeDuMi", "MOSEK", "CDCS-8", "BCR", "SDcut", "CDCS-20", "GDPA", "GLR-box", "GLR", "SNS",
)  # fmt: skip
Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class AuthorRun:
    """What the authors stored of one run.

    Parameters
    ----------
    divisor : int
        Unlabelled samples of the data set's last run.
    errors, milliseconds : dict
        Column -> number of errors, and time.
    """

    divisor: int
    errors: dict[str, int]
    milliseconds: dict[str, float]

    def percent(self, column: str) -> float:
        """Error in percent, with the authors' divisor."""
        return 100.0 * self.errors[column] / self.divisor


@lru_cache(maxsize=1)
def author_runs() -> dict[Key, AuthorRun]:
    """Read all runs: (data set, re-scaling, fold, split) -> what was stored."""
    content = (files(__package__) / "authors-runs.csv.gz").read_bytes()
    rows = csv.DictReader(io.StringIO(gzip.decompress(content).decode("ascii")))
    return {
        (row["dataset"], row["rescaling"], int(row["fold"]), int(row["split"])): AuthorRun(
            int(row["divisor"]),
            {c: int(row[f"{c} errors"]) for c in COLUMNS},
            {c: float(row[f"{c} ms"]) for c in COLUMNS},
        )
        for row in rows
    }


def _mean_by_set(rescaling: str, value: Callable[[AuthorRun], float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for (dataset, kind, _, _), run in author_runs().items():
        if kind == rescaling:
            found.setdefault(dataset, []).append(value(run))
    return {dataset: float(np.mean(values)) for dataset, values in found.items()}


def author_errors(rescaling: str, column: str) -> dict[str, float]:
    """Return the error of a column in percent, by data set, with the authors' divisor."""
    return _mean_by_set(rescaling, lambda run: run.percent(column))


def author_times(rescaling: str, column: str) -> dict[str, float]:
    """Return the mean milliseconds of a column by data set, on the authors' machine."""
    return _mean_by_set(rescaling, lambda run: run.milliseconds[column])
