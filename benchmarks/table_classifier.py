"""Errors of GDPAClassifier on the paper's 17 sets and splits, beside what it is built from.

    python benchmarks/table_classifier.py              # without evidence, all splits
    python benchmarks/table_classifier.py --evidence   # with logistic regression and random forest
    python benchmarks/table_classifier.py --quick      # one split per fold
    python benchmarks/table_classifier.py --digits     # scikit-learn's digits, 1 and 5 labels
    python benchmarks/table_classifier.py --memory     # 20,000 x 50: bytes beside the graph's

How selection is kept from seeing test labels: the classifier is given y with the marker 0 on the
unlabelled half. Everything it chooses (weights and settings of the committee's members) is chosen
on the labelled half alone, by labels that had no part in what predicts them. The labels of the
other half are read only here, to count errors.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from gdpa import GDPAClassifier


def models() -> list[Any]:
    return [
        LogisticRegression(max_iter=1000),
        RandomForestClassifier(200, random_state=0),
    ]


def run_errors(X: Any, y: Any, labels: Any, evidence: bool) -> dict[str, float]:
    """Errors in percent on the unlabelled half of one run."""
    test = labels == 0
    out = {}
    plain = GDPAClassifier(unlabeled=0).fit(X, labels)
    out["gdpa"] = 100.0 * float(np.mean(plain.transduction_[test] != y[test]))
    if evidence:
        model = GDPAClassifier(unlabeled=0, evidence=models()).fit(X, labels)
        out["gdpa+evidence"] = 100.0 * float(np.mean(model.transduction_[test] != y[test]))
        for name, single in zip(("logistic", "forest"), models(), strict=True):
            guess = single.fit(X[~test], labels[~test]).predict(X[test])
            out[name] = 100.0 * float(np.mean(guess != y[test]))
    return out


def paper_table(splits: list[int], evidence: bool, names: list[str] | None) -> None:
    from gdpa.datasets import load
    from gdpa.experiments.protocol import PAPER_DATASETS, RESCALINGS, paper_problems

    for kind in RESCALINGS:
        errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        start = time.perf_counter()
        for name in names or PAPER_DATASETS:
            for run in paper_problems(load(name), kind, splits=splits):
                for method, error in run_errors(run.X, run.y, run.labels, evidence).items():
                    errors[method][name].append(error)
            row = "  ".join(f"{m} {np.mean(errors[m][name]):6.2f}" for m in errors)
            print(f"{kind:16s} {name:16s} {row}", flush=True)
        means = "  ".join(
            f"{m} {np.mean([np.mean(v) for v in d.values()]):6.2f}" for m, d in errors.items()
        )
        seconds = time.perf_counter() - start
        print(f"{kind:16s} {'MEAN':16s} {means}  ({seconds:.0f} s, splits {splits})\n", flush=True)


def digits_table() -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    for per_class in (1, 5):
        scores = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            known = np.concatenate(
                [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in range(10)]
            )
            labels = np.full(y.size, -1)
            labels[known] = y[known]
            test = labels < 0
            found = GDPAClassifier().fit(X, labels).transduction_
            scores.append(100.0 * float(np.mean(found[test] == y[test])))
        print(f"digits, {per_class} per class, 20 seeds: mean accuracy {np.mean(scores):.2f} %")


def memory_table() -> None:
    import gc
    import tracemalloc

    rng = np.random.default_rng(0)
    n = 20_000
    group = rng.integers(0, 5, n)
    X = rng.standard_normal((5, 50))[group] + rng.standard_normal((n, 50))
    y = np.full(n, -1)
    y[:200] = group[:200]
    GDPAClassifier().fit(X[:300], y[:300])  # imports
    gc.collect()
    tracemalloc.start()
    model = GDPAClassifier().fit(X, y)
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    W = model.graph_
    size = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    print(
        f"20,000 x 50: graph {size / 1e6:.2f} MB; the fitted classifier keeps {kept / size:.2f} x "
        f"that above the data, at its peak (neighbour search) it used {peak / size:.2f} x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one split per fold")
    parser.add_argument("--splits", type=int, nargs="+", help="which of the splits 1 to 10")
    parser.add_argument("--sets", nargs="+", help="which data sets")
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.digits:
        digits_table()
    if options.memory:
        memory_table()
    if not (options.digits or options.memory):
        splits = options.splits or ([1] if options.quick else list(range(1, 11)))
        paper_table(splits, options.evidence, options.sets)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
