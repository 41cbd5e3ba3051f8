"""Table 1: restoration of a binary signal on a line, error in percent.

``max x'Px`` with ``P = [1 c'; c W]``: SPEC, the semidefinite relaxation, GDPA with labels from the
first eigenvector, SNS, and the exact optimum, which is a minimum cut and not in the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .config import Config
from .published import TABLE1, TABLE1_CELLS
from .store import Row, Task
from .tables import Cell, Table, difference

__all__ = ["METHOD_NAMES", "compute", "figure_data", "tables", "tasks"]

# name for --methods -> (name in the table, method, options)
_METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "spectral": ("SPEC", "spectral", {}),
    "sdr-interior-point": ("SDR", "sdr-interior-point", {}),
    "gdpa": ("GDPA", "gdpa", {"recovery": "eigenvector"}),
    "sns": ("SNS", "sns", {}),
    "min-cut": ("exact cut", "min-cut", {}),
}
METHOD_NAMES = tuple(_METHODS)
FULL_DRAWS, QUICK_DRAWS = 100, 20


def tasks(config: Config) -> list[Task]:
    """List the rows: one per cell, method and noise draw.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows.
    """
    draws = FULL_DRAWS if config.full else QUICK_DRAWS
    return [
        Task("table1", {"n": n, "hops": hops, "sigma": sigma, "draw": draw, "method": method})
        for n, hops, sigma in TABLE1_CELLS
        for method in config.pick_methods(METHOD_NAMES, METHOD_NAMES)
        for draw in range(draws)
    ]


def _seed(n: int, hops: int, sigma: float, draw: int) -> int:
    """Seed of a draw: the same for all methods, another in every cell.

    With one seed for all cells a lucky draw would shift the whole table.
    """
    cell = (n, hops, sigma)
    return 1000 * (1 + TABLE1_CELLS.index(cell)) + draw if cell in TABLE1_CELLS else draw


def compute(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Restore one noisy signal by one method.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the method starts.

    Returns
    -------
    dict
        Number of errors and the objective.
    """
    from ..datasets import restoration
    from ..solvers.registry import solve

    n, hops, sigma, draw = (params[key] for key in ("n", "hops", "sigma", "draw"))
    problem, signal = restoration(
        n, hops=hops, sigma=sigma, random_state=_seed(n, hops, sigma, draw)
    )
    _, method, options = _METHODS[params["method"]]
    started()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, method, **options)
    errors = int(np.count_nonzero(solution.labels[1:] != signal))
    return {
        "errors": errors,
        "objective": float(solution.objective),
        "converged": bool(solution.converged),
    }


def _means(rows: Sequence[Row]) -> dict[tuple[str, tuple[int, int, float]], tuple[float, int]]:
    """Error in percent and number of draws, by method and cell."""
    counts: dict[tuple[str, tuple[int, int, float]], list[float]] = {}
    for row in rows:
        if row.status != "ok":
            continue
        p = row.params
        cell = (p["n"], p["hops"], p["sigma"])
        label = _METHODS[p["method"]][0]
        counts.setdefault((label, cell), []).append(100.0 * row.values["errors"] / p["n"])
    return {key: (float(np.mean(values)), len(values)) for key, values in counts.items()}


def tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Set our errors beside the paper's.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        One table, a row per cell and method.
    """
    means = _means(rows)
    body: list[tuple[Cell, ...]] = []
    for index, (n, hops, sigma) in enumerate(TABLE1_CELLS):
        for label in [entry[0] for entry in _METHODS.values()]:
            ours, draws = means.get((label, (n, hops, sigma)), (None, 0))
            if ours is None:
                continue
            paper = TABLE1[label][index] if label in TABLE1 else None
            body.append((n, hops, sigma, label, draws, paper, ours, difference(ours, paper)))
    distances = [abs(row[-1]) for row in body if isinstance(row[-1], float)]
    notes = [
        "Ours: mean over noise draws, the same for all methods; the authors' draws are not known. "
        "The standard error of a mean over 100 draws is up to 0.7 points, in the paper as here.",
    ]
    if distances:
        notes.append(
            f"Largest difference {max(distances):.2f} points, mean {np.mean(distances):.2f}."
        )
    columns = ("N", "hops", "σ", "method", "draws", "paper (%)", "ours (%)", "difference")
    title = "Table 1: restoration of a binary signal, error"
    return [Table("table1", title, columns, tuple(body), tuple(notes))] if body else []


def figure_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Errors by method and cell, for the figure.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        ``ours`` and ``paper``: label -> {cell: percent}.
    """
    ours: dict[str, dict[tuple[int, int, float], float]] = {}
    for (label, cell), (value, _) in _means(rows).items():
        ours.setdefault(label, {})[cell] = value
    paper = {label: dict(zip(TABLE1_CELLS, row, strict=True)) for label, row in TABLE1.items()}
    return {"ours": ours, "paper": paper}
