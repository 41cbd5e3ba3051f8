"""Table 1: restoration of a binary signal on a line, error in percent.

``max x'Px`` with ``P = [1 c'; c W]``: SPEC, the semidefinite relaxation, GDPA with labels from the
first eigenvector, SNS, and the exact optimum, which is a minimum cut and not in the paper. The
authors' draws have the seeds 0 to 99, the same in all cells; ours too, but Matlab's generator of
normal numbers is not available, so the noise itself differs. As many other draws stand beside.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gdpa.datasets import restoration
from gdpa.solvers.registry import solve

from ..config import Config
from ..methods import program_of
from ..published import TABLE1, TABLE1_CELLS
from ..store import Row, Task
from ..tables import Cell, Table, difference, make_table
from .base import Experiment, Params, Started, finished_rows

# name for --methods -> (name in the table, options)
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "spectral": ("SPEC", {}),
    "sdr-interior-point": ("SDR", {"keep_matrix": True}),
    "gdpa": ("GDPA", {"recovery": "eigenvector", "start": "optimal"}),
    "sns": ("SNS", {}),
    "min-cut": ("exact cut", {}),
}
LAST_COLUMN = "SDR, last column"
OTHER = 1000  # draws from here on are not the authors' seeds

_Cell = tuple[int, int, float]


class Table1(Experiment):
    """Restoration of a binary signal."""

    name = "table1"
    summary = "restoration of a binary signal: 12 cells, five methods"
    methods = tuple(_METHODS)

    def tasks(self, config: Config) -> list[Task]:
        """One row per cell, method and noise draw."""
        draws = 100 if config.full else 20
        return [
            Task(self.name, {"n": n, "hops": hops, "sigma": s, "draw": draw, "method": method})
            for n, hops, s in TABLE1_CELLS
            for method in config.pick_methods(self.methods, self.methods)
            for draw in [*range(draws), *range(OTHER, OTHER + draws)]
        ]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Restore one noisy signal by one method."""
        n, hops, sigma, draw = (params[key] for key in ("n", "hops", "sigma", "draw"))
        problem, signal = restoration(n, hops=hops, sigma=sigma, random_state=draw)
        started()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = solve(problem, params["method"], **_METHODS[params["method"]][1])
        X = solution.info.get("X")
        # The authors read the column of the last sample, not that of the anchor.
        last = solution.labels if X is None else np.sign(X[:, -1] * X[0, -1])
        return {
            "last_errors": int(np.count_nonzero(last[1:] != signal)),
            "errors": int(np.count_nonzero(solution.labels[1:] != signal)),
            "objective": float(solution.objective),
            "converged": bool(solution.converged),
            "program": program_of(params["method"], _METHODS[params["method"]][1]),
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """One table, a row per cell and method."""
        ours, others = _errors(rows, other=False), _errors(rows, other=True)
        body: list[tuple[Cell, ...]] = []
        for index, cell in enumerate(TABLE1_CELLS):
            for label in (*(label for label, _ in _METHODS.values()), LAST_COLUMN):
                if (label, cell) not in ours:
                    continue
                values = ours[label, cell]
                mean, n = float(np.mean(values)), len(values)
                error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
                stated = "SDR" if label == LAST_COLUMN else label
                paper = TABLE1[stated][index] if stated in TABLE1 else None
                other = float(np.mean(others[label, cell])) if (label, cell) in others else None
                far = difference(mean, paper)
                body.append((*cell, label, n, paper, mean, far, other, error))
        if not body:
            return []
        all_far = [abs(row[7]) for row in body if isinstance(row[7], float)] or [0.0]
        return [make_table("table1", body, largest=max(all_far), mean=np.mean(all_far))]

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """``ours`` and ``paper``: label -> {cell: percent}."""
        ours: dict[str, dict[_Cell, float]] = {}
        for (label, cell), mean in mean_errors(rows).items():
            ours.setdefault(label, {})[cell] = mean
        paper = {label: dict(zip(TABLE1_CELLS, row, strict=True)) for label, row in TABLE1.items()}
        return {"ours": ours, "paper": paper} if ours else None


def _errors(rows: Sequence[Row], *, other: bool) -> dict[tuple[str, _Cell], list[float]]:
    """Error in percent of each draw, by method and cell."""
    found: dict[tuple[str, _Cell], list[float]] = {}
    for row in finished_rows(rows):
        p = row.params
        if (p["draw"] >= OTHER) == other:
            key = (_METHODS[p["method"]][0], (p["n"], p["hops"], p["sigma"]))
            found.setdefault(key, []).append(100.0 * row.values["errors"] / p["n"])
            if key[0] == "SDR":
                last = 100.0 * row.values["last_errors"] / p["n"]
                found.setdefault((LAST_COLUMN, key[1]), []).append(last)
    return found


def mean_errors(rows: Sequence[Row]) -> dict[tuple[str, _Cell], float]:
    """Return the mean error in percent, by method and cell."""
    return {key: float(np.mean(values)) for key, values in _errors(rows, other=False).items()}
