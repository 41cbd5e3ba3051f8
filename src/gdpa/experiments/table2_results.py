"""Rows of Table 2 by method and run, and the authors' counts of the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .authors import AuthorRun, Key, author_runs
from .base import finished_rows
from .methods import METHODS
from .store import Row

__all__ = ["UNDETERMINED", "Agreement", "Results"]

# Its min-max weights go down to 1e-253: answers depend on the order of additions.
UNDETERMINED = "colon-cancer"


@dataclass(frozen=True)
class Agreement:
    """Two sets of error counts of the same runs.

    Parameters
    ----------
    equal, runs : int
        Runs with the same count, and all.
    points : float
        Mean over data sets of ours minus theirs, in percent of the authors' divisor.
    """

    equal: int
    runs: int
    points: float


@dataclass(frozen=True)
class Results:
    """Values of finished rows.

    Parameters
    ----------
    runs : dict
        Method -> run -> values.
    """

    runs: dict[str, dict[Key, dict[str, Any]]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Results:
        """Sort rows."""
        found: dict[str, dict[Key, dict[str, Any]]] = {}
        for row in finished_rows(rows):
            p = row.params
            key = (p["dataset"], p["rescaling"], p["fold"], p["split"])
            found.setdefault(p["method"], {})[key] = dict(row.values)
        return cls(found)

    def cell(self, method: str, rescaling: str, dataset: str) -> float | None:
        """Error of a data set in percent, with the authors' divisor."""
        values = [
            100.0 * v["errors"] / v["denominator"]
            for key, v in self.runs.get(method, {}).items()
            if key[:2] == (dataset, rescaling)
        ]
        return float(np.mean(values)) if values else None

    def mean(self, method: str, rescaling: str, only: frozenset[Key] | None = None) -> float | None:
        """Mean over data sets of the error per data set."""
        return _mean_of_sets(
            {
                key: 100.0 * v["errors"] / v["denominator"]
                for key, v in self.runs.get(method, {}).items()
                if key[1] == rescaling and (only is None or key in only)
            }
        )

    def authors_mean(self, method: str, rescaling: str) -> float | None:
        """The same of the authors' column, over the runs that the method has here."""
        column = METHODS[method].column
        if column is None:
            return None
        theirs = author_runs()
        return _mean_of_sets(
            {
                key: 100.0 * theirs[key].errors[column] / theirs[key].divisor
                for key in self.runs.get(method, {})
                if key[1] == rescaling
            }
        )

    def n_runs(self, method: str) -> int:
        """Number of runs."""
        return len(self.runs.get(method, {}))

    def n_sets(self, method: str, rescaling: str) -> int:
        """Number of data sets."""
        return len({k[0] for k in self.runs.get(method, {}) if k[1] == rescaling})

    def agreement(
        self, method: str, column: str, *, rescaling: str | None = None, without: str | None = None
    ) -> Agreement:
        """Compare a method's counts with a column of the authors, run by run."""
        theirs = author_runs()
        keys = [
            key
            for key in self.runs.get(method, {})
            if key[0] != without and rescaling in (None, key[1])
        ]
        ours = self.runs.get(method, {})
        equal = sum(ours[key]["errors"] == theirs[key].errors[column] for key in keys)
        points = _mean_of_sets({key: _points(ours[key], theirs[key], column) for key in keys})
        return Agreement(equal, len(keys), points or 0.0)


def _points(ours: dict[str, Any], theirs: AuthorRun, column: str) -> float:
    return 100.0 * float(ours["errors"] - theirs.errors[column]) / theirs.divisor


def _mean_of_sets(values: dict[Key, float]) -> float | None:
    """Mean over (data set, re-scaling) of the mean over its runs."""
    groups: dict[tuple[str, str], list[float]] = {}
    for key, value in values.items():
        groups.setdefault(key[:2], []).append(value)
    return float(np.mean([np.mean(group) for group in groups.values()])) if groups else None
