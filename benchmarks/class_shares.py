"""Estimated class shares, with labels drawn class by class and at random.

    python -m benchmarks.class_shares            # what is missing in class_shares.json
    python -m benchmarks.class_shares --write    # only print the table again

Each table with 5 and 20 labels a class, and with as many labels drawn from all rows at once. One
fit gives the errors of three rules: shares are never estimated, they are estimated as the default
does (behind its gate), and always. ``benchmarks.few_labels`` prints the table.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .table_data import LABELS, folder, names, problem
from .tables import fill, load

STORE = Path(__file__).parent / "class_shares.json"
DRAWS = ("class by class", "at random")
SEEDS = 3


def run_one(draw: str, table: str, per_class: int, seed: int) -> list[float]:
    """Errors in percent: never estimated, behind the gate, always."""
    from gdpa import CommitteeClassifier
    from gdpa.estimators.class_shares import estimate_class_shares
    from gdpa.estimators.probabilities import sharpen

    task = problem(table, per_class, seed, at_random=draw == "at random")
    ensemble = CommitteeClassifier(n_jobs=1).fit(task.X, task.codes).ensemble_
    free = task.codes < 0
    shares = ensemble.shares[free]
    counts = np.bincount(task.codes[~free])
    labeled = counts[counts > 0] / counts.sum()
    estimated = estimate_class_shares(sharpen(shares, ensemble.sharpness), labeled)
    always = 0.5 * np.log(estimated / labeled)
    classes, errors = ensemble.labels.classes, []
    for offset in (np.zeros(labeled.size), ensemble.offset, always):
        found = classes[sharpen(shares, ensemble.sharpness, offset).argmax(axis=1)]
        errors.append(round(100.0 * float(np.mean(found != task.truth[free])), 3))
    return errors


def lines(results: dict[str, dict[str, list[Any]]]) -> list[str]:
    """Mean errors, and mean changes with their standard errors over the tables."""
    out = [
        "| labels | error % without | default: change | always estimated: change |",
        "|---|---|---|---|",
    ]
    for per_class, draw in product(LABELS, DRAWS):
        cells = {k: v for k, v in results.get(draw, {}).items() if f"/{per_class}/" in k}
        tables = sorted({k.split("/")[0] for k in cells})
        if not tables:
            continue
        each = [
            np.mean([v for k, v in cells.items() if k.split("/")[0] == t], axis=0) for t in tables
        ]
        errors = np.array(each)
        row = f"| {per_class} a class, drawn {draw} | {errors[:, 0].mean():.2f} |"
        for rule in (1, 2):
            change = errors[:, rule] - errors[:, 0]
            noise = change.std(ddof=1) / np.sqrt(change.size) if change.size > 1 else np.nan
            row += f" {change.mean():+.2f} +- {noise:.2f} (worst {change.max():+.1f}) |"
        out.append(row)
    return out


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.class_shares", description=__doc__)
    parser.add_argument("--write", action="store_true", help="measure nothing")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(argv)
    if not options.write:
        if folder() is None:
            print("skipped: no tables; set GDPA_DATA_HOME to a folder with tables/*.csv")
            return 0
        warnings.simplefilter("ignore")
        for seed, table, draw in product(range(options.seeds), names(), DRAWS):
            fill(draw, product([table], LABELS, [seed]), run_one, STORE)
    print("\n".join(lines(load(STORE))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
