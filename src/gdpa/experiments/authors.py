"""The authors' stored results: errors and milliseconds of every run of their Table 2.

``authors-runs.csv.gz`` has one line per run (data set, re-scaling, fold and split, as in
:mod:`~gdpa.experiments.protocol`): the number of unlabelled samples that they divide by, the number
of errors and the time of each of their methods. Facts, read from the result files in the public
repository of the paper's authors (Matlab, MIT licence); their times are from a 24-core desktop.
Columns are named as in their files: CDCS-8 is CDCS on the relaxation, CDCS-20 on the modified dual,
GLR the closed form without box, which the paper leaves out.
"""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

__all__ = ["COLUMNS", "AuthorRun", "Key", "author_errors", "author_runs", "author_times"]

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
    errors : dict
        Column -> number of errors.
    milliseconds : dict
        Column -> time.
    """

    divisor: int
    errors: dict[str, int]
    milliseconds: dict[str, float]


@lru_cache(maxsize=1)
def author_runs() -> dict[Key, AuthorRun]:
    """Read all runs.

    Returns
    -------
    dict
        (data set, re-scaling, fold, split) -> what was stored.

    Examples
    --------
    >>> from gdpa.experiments.authors import author_runs
    >>> len(author_runs())
    1580
    >>> author_runs()["sonar", "min-max", 0, 1].errors["GDPA"]
    9
    """
    content = (files("gdpa.experiments") / "authors-runs.csv.gz").read_bytes()
    rows = csv.DictReader(io.StringIO(gzip.decompress(content).decode("ascii")))
    return {
        (row["dataset"], row["rescaling"], int(row["fold"]), int(row["split"])): AuthorRun(
            int(row["divisor"]),
            {c: int(row[f"{c} errors"]) for c in COLUMNS},
            {c: float(row[f"{c} ms"]) for c in COLUMNS},
        )
        for row in rows
    }


def author_errors(rescaling: str, column: str) -> dict[str, float]:
    """Error of a column by data set, in percent.

    Parameters
    ----------
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.
    column : str
        One of :data:`COLUMNS`.

    Returns
    -------
    dict
        Data set -> percent, with the authors' divisor.
    """
    found: dict[str, list[float]] = {}
    for (dataset, kind, _, _), run in author_runs().items():
        if kind == rescaling:
            found.setdefault(dataset, []).append(100.0 * run.errors[column] / run.divisor)
    return {dataset: float(np.mean(values)) for dataset, values in found.items()}


def author_times(rescaling: str, column: str) -> dict[str, float]:
    """Mean time of a column by data set, in milliseconds on the authors' machine.

    Parameters
    ----------
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.
    column : str
        One of :data:`COLUMNS`.

    Returns
    -------
    dict
        Data set -> milliseconds.
    """
    found: dict[str, list[float]] = {}
    for (dataset, kind, _, _), run in author_runs().items():
        if kind == rescaling:
            found.setdefault(dataset, []).append(run.milliseconds[column])
    return {dataset: float(np.mean(values)) for dataset, values in found.items()}
