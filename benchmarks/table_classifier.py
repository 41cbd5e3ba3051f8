"""CommitteeClassifier with default arguments: digits with few labels, and the memory of a fit.

    python benchmarks/table_classifier.py --digits     # scikit-learn's digits, 1 and 5 labels
    python benchmarks/table_classifier.py --memory     # 20,000 x 50: bytes beside the graph's

Labels that are hidden are read only here, to count errors. The paper's sets are in
``benchmarks/paper_sets.py``, tables in ``benchmarks/tables.py``.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

from gdpa import CommitteeClassifier


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
            found = CommitteeClassifier().fit(X, labels).transduction_
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
    CommitteeClassifier().fit(X[:300], y[:300])  # imports
    gc.collect()
    tracemalloc.start()
    model = CommitteeClassifier().fit(X, y)
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
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.digits:
        digits_table()
    if options.memory:
        memory_table()
    if not (options.digits or options.memory):
        parser.error("say what: --digits or --memory")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
