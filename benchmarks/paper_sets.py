"""Errors of CommitteeClassifier with default arguments on the paper's 17 sets and splits.

    python -m benchmarks.paper_sets                   # what has not been measured yet
    python -m benchmarks.paper_sets --sets heart      # these only; several may run side by side
    python -m benchmarks.paper_sets --splits 1        # one split per fold
    python -m benchmarks.paper_sets --again           # forget what was measured
    python -m benchmarks.paper_sets --write           # only print the results

How selection is kept from seeing test labels: the classifier is given y with the marker 0 on the
unlabelled half. Everything it chooses (weights and settings of the committee's members) is chosen
on the labelled half alone, by labels that had no part in what predicts them. The labels of the
other half are read only here, to count errors. Each finished set is stored at once.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from gdpa import CommitteeClassifier
from reproduction.datasets import load
from reproduction.protocol import (
    N_SPLITS,
    PAPER_DATASETS,
    RESCALINGS,
    PaperRun,
    fold_count,
    paper_problems,
)

HERE = Path(__file__).parent
STORE = HERE / "paper_sets.json"
# Of the single graph with which the classifier began, over all splits.
ONE_GRAPH = {"min-max": 25.2, "standardization": 25.8}

# Errors in percent by "rescaling/set/fold" and split.
Results = dict[str, dict[str, float]]


def stored() -> Results:
    """What has been measured."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def store(found: Results) -> None:
    """Add to what is stored, whole or not at all."""
    folder = os.open(HERE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # another process may be storing other sets
        results = stored()
        for key, errors in found.items():
            results.setdefault(key, {}).update(errors)
        lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(results.items())]
        part = STORE.with_suffix(".part")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        os.replace(part, STORE)
    finally:
        os.close(folder)


def error(run: PaperRun) -> float:
    """Error in percent on the unlabelled half."""
    model = CommitteeClassifier(unlabeled=0).fit(run.X, run.labels)
    return round(100.0 * run.errors(model.transduction_) / run.n_unlabeled, 4)


def measure(rescalings: list[str], sets: list[str], splits: list[int]) -> None:
    """Run what is missing, set by set."""
    for rescaling in rescalings:
        for name in sets:
            done = stored()
            found: Results = {}
            for split in splits:
                missing = [
                    fold
                    for fold in range(fold_count(name, rescaling))
                    if str(split) not in done.get(f"{rescaling}/{name}/{fold}", {})
                ]
                if not missing:
                    continue
                for run in paper_problems(load(name), rescaling, splits=[split]):
                    if run.fold in missing:
                        key = f"{rescaling}/{name}/{run.fold}"
                        found.setdefault(key, {})[str(split)] = error(run)
            store(found)
            mean = np.mean([e for cells in found.values() for e in cells.values()] or [np.nan])
            print(f"{rescaling:16s} {name:16s} {mean:6.2f}", flush=True)


def means(results: Results, rescaling: str) -> dict[str, tuple[float, int]]:
    """Mean error of each set, and the number of its runs."""
    out = {}
    for name in PAPER_DATASETS:
        cells = [
            e
            for k, v in results.items()
            if k.startswith(f"{rescaling}/{name}/")
            for e in v.values()
        ]
        if cells:
            out[name] = float(np.mean(cells)), len(cells)
    return out


def page(results: Results) -> str:
    """Return the results as Markdown."""
    found = {rescaling: means(results, rescaling) for rescaling in RESCALINGS}
    lines = [
        "# The paper's sets with default arguments",
        "",
        "`CommitteeClassifier()` on the 17 sets, "
        "folds and splits, half of the labels hidden. Error in percent on that half, and the "
        f"number of runs, 810 and 770 with all {N_SPLITS} splits. The "
        "defaults were chosen with one split of these sets in sight, among other data.",
        "",
        "| set | " + " | ".join(f"{r} | runs" for r in RESCALINGS) + " |",
        "|---|" + "---|" * 2 * len(RESCALINGS),
    ]
    for name in PAPER_DATASETS:
        cells = [found[r].get(name) for r in RESCALINGS]
        shown = ["- | 0" if c is None else f"{c[0]:.2f} | {c[1]}" for c in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    totals = []
    for r in RESCALINGS:
        values = [error for error, _ in found[r].values()]
        runs = sum(n for _, n in found[r].values())
        totals.append(f"**{np.mean(values):.2f}** | {runs}" if values else "- | 0")
    lines.append("| mean of the sets | " + " | ".join(totals) + " |")
    lines.append("| one graph | " + " | ".join(f"{ONE_GRAPH[r]} |" for r in RESCALINGS) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_sets", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=PAPER_DATASETS, default=PAPER_DATASETS)
    parser.add_argument("--rescalings", nargs="+", choices=RESCALINGS, default=RESCALINGS)
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(1, N_SPLITS + 1)))
    parser.add_argument("--again", action="store_true", help="forget what was measured")
    parser.add_argument("--write", action="store_true", help="print the results, measure nothing")
    options = parser.parse_args(argv)
    if not options.write:
        warnings.simplefilter("ignore")
        if options.again:
            STORE.unlink(missing_ok=True)
        measure(options.rescalings, options.sets, options.splits)
    print(page(stored()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
