"""Compare the labels of fits, and the solutions of every method, between two commits.

    python -m benchmarks.same_results --old PATH [--new PATH] [--rows 4000]

PATH is a checkout of the old commit. Fits of one neighbour graph, as the old commit knows them:
digits with 20 to 500 labels, in several ways; the paper's sets that are found (environment variable
GDPA_DATA_HOME), two re-scalings of each; Gaussian mixtures. A label that differs is a tie where the
two largest shares of the node differ by less than 1e-4; others are counted, and the command fails
if there are any. Every method solves three random problems: objectives and lower bounds to 1e-5 of
their size (scores of relaxations may differ where labels do not).
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

TIE, TOLERANCE = 1e-4, 1e-5
# Methods that are too slow for 700 nodes.
SMALL = (
    *("sdr-admm", "sdr-interior-point", "sdcut", "bcr", "sns", "paper"),
    *("modified-dual-admm", "modified-dual-interior-point"),
)
METHODS = ("gdpa", "harmonic", "sdr-low-rank", "min-cut", "vote", "glr-box", "spectral", *SMALL)


def hidden(codes: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """All but some labels unknown."""
    shown = np.random.default_rng(seed).permutation(codes.size)[:count]
    y = np.full(codes.size, -1)
    y[shown] = codes[shown]
    return y


def fits(rows: int) -> dict[str, Any]:
    """Labels, shares and setting of every fit, by the package that is imported."""
    import sklearn.datasets

    import gdpa
    from reproduction.datasets import list_datasets, load

    found: dict[str, Any] = {}

    def fit(name: str, X: Any, y: np.ndarray, **options: Any) -> None:
        # The old commit has one estimator, with another name for one neighbour graph.
        make = getattr(gdpa, "GraphClassifier", None) or gdpa.GDPAClassifier
        model = make(**{"graph": "knn"} | options).fit(X, y)
        setting = model.tuning_.setting
        chosen = (setting.label_weight, setting.self_loop, model.n_neighbors_ or 0)
        found[name] = (model.transduction_, model.label_scores_, chosen)

    X, digit = sklearn.datasets.load_digits(return_X_y=True)
    for count in (20, 50, 100, 200, 500):
        fit(f"digits, {count} labels", X, hidden(digit, count))
    # Classes of a tree with equally many labels are no longer told apart by their names.
    unequal = np.full(digit.size, -1)
    for c in range(10):
        unequal[np.flatnonzero(digit == c)[: 6 + c]] = c
    fit("digits, tree", X, unequal, multiclass="tree")
    for name, options in {
        "combinatorial": {"laplacian": "combinatorial"},
        "class prior": {"class_prior": "labeled"},
        "full graph": {"graph": "full"},
    }.items():
        fit(f"digits, {name}", X, hidden(digit, 100), **options)
    for name in list_datasets():
        try:
            data = load(name)
        except (FileNotFoundError, OSError, ValueError):
            print(f"{name}: not found", file=sys.stderr)
            continue
        X, code = data.X[:rows], (np.asarray(data.y)[:rows] > 0).astype(int)
        for rescale in ("minmax", "standard"):
            y = hidden(code, max(20, code.size // 10))
            fit(f"{name}, {rescale}", X, y, rescale=rescale)
    for n in (2_000, 12_000, 60_000):
        X, code = gdpa.datasets.gaussian_clusters(
            n, n_features=8, separation=1.3, dtype=np.float32, random_state=0
        )
        fit(f"mixture of {n}", X, hidden((code > 0).astype(int), n // (20 if n < 5000 else 50)))
    return found


def solutions() -> dict[str, Any]:
    """Objective, bound and its status of every method on three random problems."""
    import gdpa

    found: dict[str, Any] = {}
    for n, laplacian, evidence in (
        (30, "combinatorial", False),
        (30, "normalized", True),
        (700, "normalized", False),
    ):
        rng = np.random.default_rng(n)
        W = np.triu((rng.random((n, n)) < min(1, 8 / n)) * rng.random((n, n)), 1)
        W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
        labels = np.zeros(n, dtype=int)
        labels[: n // 6] = rng.choice([-1, 1], n // 6)
        labels[:2] = 1, -1
        bias = 0.1 * rng.normal(size=n) if evidence else None
        problem = gdpa.GraphProblem(W + W.T, labels, bias=bias, laplacian=laplacian)
        for method in METHODS:
            if n > 100 and method in SMALL:
                continue
            name = f"{method}, {n} nodes, {laplacian}"
            try:
                options = {"method": method}
                if method == "paper":
                    options = {"method": "gdpa", "lp": "highs"}
                s = gdpa.solve(problem, **options)
                found[name] = (s.objective, s.lower_bound, s.bound_status, s.labels)
            except (gdpa.errors.MissingExtraError, gdpa.errors.UnsupportedProblemError) as error:
                found[name] = type(error).__name__
    return found


def in_tree(tree: Path, rows: int, folder: Path) -> dict[str, dict[str, Any]]:
    """What the package of a checkout finds."""
    target = folder / f"{abs(hash(tree))}.pickle"
    command = [sys.executable, __file__, "--dump", str(target), "--rows", str(rows)]
    root = Path(__file__).resolve().parents[1]  # of reproduction, which loads the data sets
    path = os.pathsep.join([str(tree / "src"), str(root)])
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)
    return dict(pickle.loads(target.read_bytes()))


def compare(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> int:
    """Print what differs; how many fits and solutions differ by more than ties and tolerances."""
    wrong = 0
    for name, (labels, shares, chosen) in old["fits"].items():
        others, _, choice = new["fits"][name]
        top = np.sort(shares, axis=1)
        tie = top[:, -1] - top[:, -2] < TIE if shares.shape[1] > 1 else True
        other = labels != others
        wrong += bool((other & ~tie).any())
        same = np.allclose(chosen, choice, rtol=1e-9)
        if other.any() or not same:
            print(
                f"{name}: {int((other & ~tie).sum())} of {other.size} labels differ, "
                f"{int((other & tie).sum())} ties; {'same' if same else (chosen, choice)} setting"
            )
    print(f"{len(old['fits'])} fits compared")
    for name, before in old["solutions"].items():
        after = new["solutions"][name]
        if isinstance(before, str) or isinstance(after, str):
            good = before == after if isinstance(before, str) and isinstance(after, str) else False
        else:
            numbers = np.array([before[:2], after[:2]], dtype=float)
            numbers[~np.isfinite(numbers)] = 0.0
            size = 1.0 + np.abs(numbers).max()
            good = bool((np.abs(numbers[0] - numbers[1]) <= TOLERANCE * size).all())
            good &= before[2] == after[2]
        if not good:
            wrong += 1
            print(f"{name}: {before[:3]} became {after[:3]}")
    print(f"{len(old['solutions'])} solutions compared; {wrong} results differ")
    return wrong


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--old", type=Path, help="checkout of the old commit")
    parser.add_argument("--new", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--rows", type=int, default=4_000, help="rows of each set, at most")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.dump is not None:
        warnings.simplefilter("ignore")
        found = {"fits": fits(options.rows), "solutions": solutions()}
        options.dump.write_bytes(pickle.dumps(found))
        return 0
    if options.old is None:
        parser.error("--old PATH is needed")
    with tempfile.TemporaryDirectory() as folder:
        trees = (options.old.resolve(), options.new.resolve())
        old, new = (in_tree(tree, options.rows, Path(folder)) for tree in trees)
    return int(compare(old, new) > 0)


if __name__ == "__main__":
    sys.exit(main())
