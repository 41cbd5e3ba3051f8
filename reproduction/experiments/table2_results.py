"""Rows of Table 2 by method and run, and the authors' counts of the same runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..authors import Key, author_runs
from ..methods import METHODS
from ..store import Row
from .base import finished_rows

# Its min-max weights go down to 1e-253: answers depend on the order of additions.
UNDETERMINED = "colon-cancer"


@dataclass(frozen=True)
class Results:
    """Values of finished rows.

    Parameters
    ----------
    runs : dict
        Method -> run -> values.
    """

    runs: dict[str, dict[Key, Mapping[str, Any]]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Results:
        """Sort rows by method and run."""
        found: dict[str, dict[Key, Mapping[str, Any]]] = {}
        for row in finished_rows(rows):
            found.setdefault(row.params["method"], {})[run_key(row.params)] = row.values
        return cls(found)

    def _keys(
        self, method: str, rescaling: str | None = None, without: str | None = None
    ) -> list[Key]:
        return [
            key
            for key in self.runs.get(method, {})
            if key[0] != without and rescaling in (None, key[1])
        ]

    def _percent(self, method: str) -> Callable[[Key], float]:
        values = self.runs.get(method, {})
        return lambda key: 100.0 * values[key]["errors"] / values[key]["denominator"]

    def cell(self, method: str, rescaling: str, dataset: str) -> float | None:
        """Error of a data set in percent, with the authors' divisor."""
        keys = [key for key in self._keys(method, rescaling) if key[0] == dataset]
        return mean_of_sets(keys, self._percent(method))

    def mean(self, method: str, rescaling: str, only: frozenset[Key] | None = None) -> float | None:
        """Mean over data sets of the error per data set."""
        keys = [k for k in self._keys(method, rescaling) if only is None or k in only]
        return mean_of_sets(keys, self._percent(method))

    def authors_mean(self, method: str, rescaling: str, column: str | None = None) -> float | None:
        """The same of the authors' column, over the runs that the method has here."""
        name = column or METHODS[method].column
        if name is None:
            return None
        theirs = author_runs()
        return mean_of_sets(self._keys(method, rescaling), lambda key: theirs[key].percent(name))

    def n_runs(self, method: str) -> int:
        """Number of runs."""
        return len(self.runs.get(method, {}))

    def n_sets(self, method: str, rescaling: str) -> int:
        """Number of data sets."""
        return len({key[0] for key in self._keys(method, rescaling)})

    def same_count(self, method: str, column: str, without: str | None = None) -> tuple[int, int]:
        """Number of runs with as many errors as a column of the authors, and of all runs."""
        theirs, keys = author_runs(), self._keys(method, without=without)
        ours = self.runs.get(method, {})
        return sum(ours[k]["errors"] == theirs[k].errors[column] for k in keys), len(keys)

    def points(
        self, method: str, column: str, rescaling: str, without: str | None = None
    ) -> float | None:
        """Mean over data sets of ours minus the authors', in percent of the authors' divisor."""
        theirs, ours = author_runs(), self.runs.get(method, {})
        return mean_of_sets(
            self._keys(method, rescaling, without),
            lambda k: (
                100.0 * float(ours[k]["errors"] - theirs[k].errors[column]) / theirs[k].divisor
            ),
        )


def run_key(p: Mapping[str, Any]) -> Key:
    """Return the run that the parameters of a row name."""
    return p["dataset"], p["rescaling"], p["fold"], p["split"]


def mean_of_sets(keys: Sequence[Key], value: Callable[[Key], float]) -> float | None:
    """Mean over (data set, re-scaling) of the mean over its runs."""
    groups: dict[tuple[str, str], list[float]] = {}
    for key in keys:
        groups.setdefault(key[:2], []).append(value(key))
    return float(np.mean([np.mean(group) for group in groups.values()])) if groups else None
