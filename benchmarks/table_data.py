"""Real tables with a few labels, the input of ``benchmarks.tables``.

The folder is ``$GDPA_DATA_HOME/tables`` (CSV with a header; the last column is the target, in
penguins `species`). For seed s of a table:

- 1,500 rows at most, drawn by ``default_rng(s)``; classes with fewer than 20 of them are left out;
- columns of numbers are standardised on these rows, a missing cell becomes the mean (0); columns
  of text become one column of 0 and 1 per value, a missing cell being a value of its own;
- of each class 5 or 20 rows, drawn by the same stream, are labelled; all others are scored.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 1_500
FEWEST_OF_A_CLASS = 20
LABELS = (5, 20)
SEEDS = 5
MISSING = {"", "NA", "?", "nan", "<null>"}
TARGETS = {"penguins": "species"}


@dataclass(frozen=True)
class Problem:
    """Features, classes, and classes with -1 where they are hidden."""

    X: Any
    truth: Any
    codes: Any


def folder() -> Path | None:
    """Where the tables are, if they are there."""
    home = os.environ.get("GDPA_DATA_HOME")
    path = Path(home) / "tables" if home else None
    return path if path is not None and any(path.glob("*.csv")) else None


def names() -> list[str]:
    """The tables, in alphabetical order."""
    path = folder()
    return [] if path is None else sorted(file.stem for file in path.glob("*.csv"))


def read(name: str) -> tuple[list[list[str]], list[str]]:
    """Cells of the features, column by column, and the target."""
    path = folder()
    assert path is not None
    with (path / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(stream) if row]
    at = header.index(TARGETS.get(name, header[-1]))
    columns = [[row[j] for row in rows] for j in range(len(header)) if j != at]
    return columns, [row[at] for row in rows]


def encode(columns: list[list[str]]) -> Any:
    """Standardised numbers and indicators of texts, side by side."""
    parts = []
    for cells in columns:
        known = [cell for cell in cells if cell not in MISSING]
        try:
            numbers = np.array([float(cell) for cell in known])
        except ValueError:
            values = sorted(set(cells))
            if len(values) > 1:
                parts.append((np.array(cells)[:, None] == np.array(values)).astype(float))
            continue
        if numbers.size and numbers.std() > 0:
            column = np.zeros(len(cells))
            column[[cell not in MISSING for cell in cells]] = numbers - numbers.mean()
            parts.append(column[:, None] / numbers.std())
    return np.hstack(parts)


def problem(name: str, per_class: int, seed: int, *, at_random: bool = False) -> Problem:
    """One problem of the benchmark; `at_random`: as many labels, drawn from all rows at once."""
    columns, target = read(name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(target))[:ROWS]
    classes, truth = np.unique(np.array(target)[rows], return_inverse=True)
    counts = np.bincount(truth, minlength=classes.size)
    rows = rows[counts[truth] >= FEWEST_OF_A_CLASS]
    truth = np.unique(np.array(target)[rows], return_inverse=True)[1]
    X = encode([[cells[i] for i in rows] for cells in columns])
    codes = np.full(truth.size, -1)
    if at_random:
        known = rng.permutation(truth.size)[: per_class * (int(truth.max()) + 1)]
        codes[known] = truth[known]
        return Problem(X, truth, codes)
    for c in range(int(truth.max()) + 1):
        members = np.flatnonzero(truth == c)
        # A class of 20 keeps a few rows to be scored.
        known = rng.permutation(members)[: min(per_class, members.size - 1)]
        codes[known] = c
    return Problem(X, truth, codes)
