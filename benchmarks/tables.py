"""Errors on real tables with 5 and 20 labels a class, beside other classifiers.

    python -m benchmarks.tables                 # what is missing in benchmarks/tables.json
    python -m benchmarks.tables --again gdpa    # run this row again
    python -m benchmarks.tables --write         # only print the results

How the tables are read, encoded and labelled is said in ``benchmarks/table_data.py``, what each row
is in ``benchmarks/table_rows.py``. Every finished problem is stored at once: a run that was stopped
goes on where it was. The labels that are hidden are read only here, to count errors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .machine import describe
from .table_data import LABELS, SEEDS, folder, names, problem
from .table_rows import OURS, ROWS

HERE = Path(__file__).parent
STORE = HERE / "tables.json"
BINS = 10


def calibration_error(probabilities: Any, truth: Any) -> float:
    """Expected calibration error of the predicted class: ten bins of equal width."""
    top = probabilities.max(axis=1)
    hit = probabilities.argmax(axis=1) == truth
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    sizes = np.bincount(bins, minlength=BINS)
    gaps = np.bincount(bins, weights=hit - top, minlength=BINS)
    return float(np.abs(gaps).sum() / max(sizes.sum(), 1))


@cache
def commit() -> str:
    """Return the commit that is measured."""
    return str(describe()["commit"])


def run_one(row: str, table: str, per_class: int, seed: int) -> list[float | str | None]:
    """Return error in percent, calibration error, CPU seconds and the commit."""
    task = problem(table, per_class, seed)
    start = time.process_time()
    predicted, p = ROWS[row](task.X, task.codes)
    seconds = time.process_time() - start
    test = task.codes < 0
    error = 100.0 * float(np.mean(np.asarray(predicted)[test] != task.truth[test]))
    ece = None if p is None else round(calibration_error(p[test], task.truth[test]), 4)
    return [round(error, 3), ece, round(seconds, 2), commit()]


def key(table: str, per_class: int, seed: int) -> str:
    """Name of a problem in the store."""
    return f"{table}/{per_class}/{seed}"


def load(store: Path | None = None) -> dict[str, dict[str, list[Any]]]:
    """What has been measured."""
    store = store or STORE
    return json.loads(store.read_text()) if store.exists() else {}


def save(results: dict[str, dict[str, list[Any]]], store: Path | None = None) -> None:
    """Write the store: one line per row and table, whole or not at all."""
    store = store or STORE
    lines = []
    for row, cells in results.items():
        body = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(cells.items()))
        lines.append(f" {json.dumps(row)}: {{\n  {body}\n }}")
    part = store.with_suffix(".part")
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(part, store)


def forget(rows: list[str], sets: list[str], store: Path, labels: Iterable[int] = ()) -> None:
    """Remove these sets of these rows from a store; of these counts of labels only, if any."""
    counts = {str(count) for count in labels}

    def asked(cell: str) -> bool:
        name, count, _ = cell.split("/")
        return name in sets and (not counts or count in counts)

    results = load(store)
    for row in rows:
        cells = results.get(row, {})
        results[row] = {k: v for k, v in cells.items() if not asked(k)}
    save(results, store)


def fill(
    row: str, problems: Iterable[tuple[str, int, int]], run: Callable[..., list[Any]], store: Path
) -> dict[str, list[Any]]:
    """Run what a row misses and store each problem at once; return the cells of the row."""
    for one in problems:
        if key(*one) not in load(store).get(row, {}):
            found = run(row, *one)
            results = load(store)  # read again: another command may have stored other rows
            results.setdefault(row, {})[key(*one)] = found
            save(results, store)
    return load(store).get(row, {})


def measure(rows: list[str], again: bool, seeds: int) -> None:
    """Run what is missing."""
    if again:
        forget(rows, names(), STORE)
    for row in rows:
        cells = fill(row, product(names(), LABELS, range(seeds)), run_one, STORE)
        done = [v[0] for v in cells.values()]
        print(f"{row}: {len(done)} problems, mean error {np.mean(done):.2f} %", flush=True)


def summary(results: dict[str, dict[str, list[Any]]], per_class: int) -> dict[str, dict[str, Any]]:
    """Of each row: mean error, mean rank, tables where it is best, calibration, each table."""
    tables = sorted({k.split("/")[0] for cells in results.values() for k in cells})
    errors: dict[str, dict[str, float]] = {}
    eces: dict[str, float | None] = {}
    for row, cells in results.items():
        mine = {k: v for k, v in cells.items() if k.split("/")[1] == str(per_class)}
        per_table = {
            t: float(np.mean([v[0] for k, v in mine.items() if k.startswith(f"{t}/")]))
            for t in tables
            if any(k.startswith(f"{t}/") for k in mine)
        }
        if len(per_table) == len(tables):
            errors[row] = per_table
            known = [v[1] for v in mine.values() if v[1] is not None]
            eces[row] = float(np.mean(known)) if known else None
    table_errors = np.array([[errors[r][t] for t in tables] for r in errors])
    # Mean of the places that equal rows share.
    below = (table_errors[:, None] > table_errors[None]).sum(axis=1)
    ties = (table_errors[:, None] == table_errors[None]).sum(axis=1)
    ranks = below + 0.5 * (ties + 1)
    best = table_errors <= table_errors.min(axis=0) + 1e-9
    return {
        row: {
            "error": float(table_errors[i].mean()),
            "rank": float(ranks[i].mean()),
            "best": int(best[i].sum()),
            "ece": eces[row],
            "tables": errors[row],
        }
        for i, row in enumerate(errors)
    }


def page(results: dict[str, dict[str, list[Any]]]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Real tables with few labels",
        "",
        f"Mean over {SEEDS} seeds of the error on the rows whose label was hidden, in percent; "
        "rank 1 is best; a table with several best rows counts for each. Calibration: expected "
        "calibration error of the probabilities, ten bins.",
    ]
    for per_class in LABELS:
        table = summary(results, per_class)
        lines += [
            "",
            f"## {per_class} labels a class",
            "",
            "| | mean error % | mean rank | best on | calibration error |",
            "|---|---|---|---|---|",
        ]
        for row, s in sorted(table.items(), key=lambda item: item[1]["error"]):
            ece = "-" if s["ece"] is None else f"{s['ece']:.3f}"
            lines.append(f"| {row} | {s['error']:.2f} | {s['rank']:.2f} | {s['best']} | {ece} |")
        columns = list(table)
        lines += [
            "",
            "| table | " + " | ".join(columns) + " |",
            "|---|" + "---|" * len(columns),
        ]
        for name in next(iter(table.values()))["tables"]:
            values = [table[row]["tables"][name] for row in columns]
            shown = [f"**{v:.1f}**" if v <= min(values) + 1e-9 else f"{v:.1f}" for v in values]
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW", help="these only")
    parser.add_argument("--again", nargs="*", metavar="ROW", help="measure again; default: ours")
    parser.add_argument("--write", action="store_true", help="print the results, measure nothing")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(argv)
    if not options.write:
        if folder() is None:
            print("skipped: no tables; set GDPA_DATA_HOME to a folder with tables/*.csv")
            return 0
        warnings.simplefilter("ignore")
        again = options.again
        rows = options.rows or (list(again or OURS) if again is not None else list(ROWS))
        unknown = [row for row in rows if row not in ROWS]
        if unknown:
            parser.error(f"unknown row {unknown}; known: {', '.join(ROWS)}")
        measure(rows, again is not None, options.seeds)
    print(page(load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
