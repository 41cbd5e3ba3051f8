"""Errors with one, two and five labels a class: tables, digits, MNIST, beside other classifiers.

    python -m benchmarks.few_labels                        # what is missing in few_labels.json
    python -m benchmarks.few_labels --rows gdpa --again    # measure this row again
    python -m benchmarks.few_labels --sets mnist           # this set only
    python -m benchmarks.few_labels --write                # only print the results

The tables (optdigits is one of them) are those of ``benchmarks/table_data.py``. Of digits and MNIST
(70,000 images, ``$GDPA_DATA_HOME/mnist.npz``) the labels are drawn class by class by
``default_rng(seed)``. Every finished problem is stored at once: a run that was stopped goes on
where it was. Poisson MBO is told class shares, true or equal ones, and a row of gdpa is told the
true ones; no other row is. A single graph is measured on MNIST only, to compare seconds. Rows of
other packages that search the same features again take the neighbours that were found first, and
the CPU seconds of that search count in each of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from . import class_shares
from .table_data import Problem, folder, names, problem
from .table_rows import NEIGHBORS
from .table_rows import ROWS as TABLE_ROWS
from .tables import commit, fill, forget, load, summary

HERE = Path(__file__).parent
STORE = HERE / "few_labels.json"
LABELS = (1, 2, 5)
SEEDS = 5
EXACT_ROWS = 5_000  # beyond, graphlearning searches neighbours as it does by default
OURS, TOLD, ONE = "gdpa", "gdpa, true shares", "gdpa, one graph"

Answer = tuple[Any, Any]


_searches: dict[str, tuple[Any, Any, float]] = {}  # of each search: features, result, seconds
_reused: list[float] = []  # seconds of searches that were not repeated


def search_once(kind: str, X: Any, search: Callable[[Any], Any]) -> Any:
    """Return what `search` finds in X; the last result of each kind is kept."""
    if kind in _searches and _searches[kind][0] is X:
        _reused.append(_searches[kind][2])
    else:
        start = time.process_time()
        found = search(X)
        _searches[kind] = X, found, time.process_time() - start
    return _searches[kind][1]


def _knn(X: Any) -> Any:
    """The graph of graphlearning: exact neighbours if there are few rows."""
    import graphlearning as gl

    method = "kdtree" if X.shape[0] <= EXACT_ROWS else None
    found = gl.weightmatrix.knnsearch(X, NEIGHBORS + 1, method=method)
    return gl.weightmatrix.knn(X, NEIGHBORS, knn_data=found)


def _graphlearning(name: str) -> Callable[[Any, Any, Any], Answer]:
    """A row of graphlearning; of Poisson MBO with the shares that it is told."""

    def run(X: Any, codes: Any, shares: Any) -> Answer:
        import graphlearning as gl

        W = search_once("graphlearning", X, _knn)
        told = {"class_priors": shares} if name == "poisson_mbo" else {}
        known = np.flatnonzero(codes >= 0)
        return getattr(gl.ssl, name)(W, **told).fit_predict(known, codes[known]), None

    return run


def _equal_shares(X: Any, codes: Any, shares: Any) -> Answer:
    return _graphlearning("poisson_mbo")(X, codes, np.full(shares.size, 1.0 / shares.size))


def _spreading(X: Any, codes: Any, shares: Any) -> Answer:
    """LabelSpreading(kernel="knn"), whose graph does not depend on the labels."""
    from sklearn.neighbors import NearestNeighbors
    from sklearn.semi_supervised import LabelSpreading

    def graph(X: Any) -> Any:
        return NearestNeighbors(n_neighbors=7).fit(X).kneighbors_graph(X)

    W = search_once("LabelSpreading", X, graph)
    model = LabelSpreading(kernel=lambda *_: W.copy(), max_iter=200).fit(X, codes)
    return model.transduction_, model.label_distributions_


def _ours(told: bool) -> Callable[[Any, Any, Any], Answer]:
    """The default estimator; like the other rows, it answers for the rows of X only."""

    def run(X: Any, codes: Any, shares: Any) -> Answer:
        import gdpa

        model = gdpa.CommitteeClassifier(class_prior=shares if told else None).fit(X, codes)
        return model.transduction_, model.ensemble_.probabilities()

    return run


def _one_graph(X: Any, codes: Any, shares: Any) -> Answer:
    import gdpa

    model = gdpa.GraphClassifier(graph="knn").fit(X, codes)
    return model.transduction_, model.ensemble_.probabilities()


def _plain(name: str) -> Callable[[Any, Any, Any], Answer]:
    """A row of ``benchmarks.tables``, which is told no shares."""
    return lambda X, codes, shares: TABLE_ROWS[name](X, codes)


ROWS: dict[str, Callable[[Any, Any, Any], Answer]] = {
    OURS: _ours(told=False),
    "graphlearning Laplace": _graphlearning("laplace"),
    "graphlearning Poisson": _graphlearning("poisson"),
    "graphlearning Poisson MBO, true shares": _graphlearning("poisson_mbo"),
    "graphlearning Poisson MBO, equal shares": _equal_shares,
    "LabelSpreading knn": _spreading,
    "extra trees, 300": _plain("extra trees, 300"),
    TOLD: _ours(told=True),
    ONE: _one_graph,
}


@cache
def images(name: str) -> tuple[Any, Any]:
    """Pixels from 0 to 1, and digits."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    with np.load(Path(os.environ["GDPA_DATA_HOME"]) / "mnist.npz") as stored:
        X, y = stored["X"], stored["y"]
    return X.reshape(len(X), -1).astype(np.float32) / 255.0, y.astype(int)


def few_labels_problem(name: str, per_class: int, seed: int) -> Problem:
    """One problem of the benchmark."""
    if name not in ("digits", "mnist"):
        return problem(name, per_class, seed)
    X, y = images(name)
    rng, codes = np.random.default_rng(seed), np.full(y.size, -1)
    for c in range(10):
        codes[rng.choice(np.flatnonzero(y == c), per_class, replace=False)] = c
    return Problem(X, y, codes)


def run_one(row: str, name: str, per_class: int, seed: int) -> list[float | str | None]:
    """Error in percent, confidence above accuracy in points, CPU seconds, and the commit."""
    task = few_labels_problem(name, per_class, seed)
    shares = np.bincount(task.truth) / task.truth.size
    _reused.clear()
    start = time.process_time()
    predicted, p = ROWS[row](task.X, task.codes, shares)
    seconds = time.process_time() - start + sum(_reused)
    test = task.codes < 0
    error = 100.0 * float(np.mean(np.asarray(predicted)[test] != task.truth[test]))
    excess = None
    if p is not None:
        excess = round(100.0 * float(p[test].max(axis=1).mean()) - (100.0 - error), 2)
    return [round(error, 3), excess, round(seconds, 2), commit()]


def measure(rows: list[str], sets: list[str], per_class: list[int], seeds: int) -> None:
    """Run what is missing."""
    for name in sets:
        for row in rows:
            if row != ONE or name == "mnist":
                fill(row, product([name], per_class, range(seeds)), run_one, STORE)
        print(name, flush=True)


def commits(cells: dict[str, list[Any]]) -> str:
    """The commits of some cells; those of old stores are not known."""
    return ", ".join(sorted({v[3] if len(v) > 3 else "not recorded" for v in cells.values()}))


def page(results: dict[str, dict[str, list[Any]]]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# One to five labels a class",
        "",
        "Error on the rows whose label was hidden, in percent. Rank 1 is best; the second rank "
        "leaves out the rows that are told the true class shares. Confidence: mean confidence "
        "minus accuracy, in points (below 0: too cautious). A section has the sets and seeds on "
        "which all of its rows were measured. Commits: "
        + "; ".join(f"{r} {commits(results[r])}" for r in (OURS, TOLD) if results.get(r))
        + ". The other rows do not depend on them.",
    ]
    for per_class in LABELS:
        for title, belongs in (
            ("tables and digits", lambda name: name != "mnist"),
            ("MNIST, 70,000 images", lambda name: name == "mnist"),
        ):
            kept = {}
            for row, cells in results.items():
                found = {}
                for k, v in cells.items():
                    name, count, _ = k.split("/")
                    if belongs(name) and count == str(per_class):
                        found[k] = v
                if found:
                    kept[row] = found
            if len(kept) < 2:
                continue
            shared = set.intersection(*map(set, kept.values()))
            if not shared:
                continue
            common = {r: {k: c[k] for k in sorted(shared)} for r, c in kept.items()}
            draws = Counter(k.split("/")[0] for k in shared).values()
            seeds = " to ".join(str(count) for count in sorted({min(draws), max(draws)}))
            plural = "label" if per_class == 1 else "labels"
            lines += [
                "",
                f"## {per_class} {plural} a class, {title} "
                f"(sets: {len(draws)}, seeds of a set: {seeds})",
                "",
                "| | mean error % | mean rank | rank, not told | best on | confidence "
                "| CPU seconds |",
                "|---|---|---|---|---|---|---|",
            ]
            table = summary(common, per_class)
            untold = {r: c for r, c in common.items() if "true shares" not in r}
            ranks = {r: f"{s['rank']:.2f}" for r, s in summary(untold, per_class).items()}
            for row, s in sorted(table.items(), key=lambda item: item[1]["error"]):
                excess = "-" if s["ece"] is None else f"{s['ece']:+.1f}"
                seconds = np.mean([v[2] for v in common[row].values()])
                lines.append(
                    f"| {row} | {s['error']:.2f} | {s['rank']:.2f} | {ranks.get(row, '-')} "
                    f"| {s['best']} | {excess} | {seconds:.1f} |"
                )
            columns = list(table)
            if len(table[columns[0]]["tables"]) > 1:
                lines += ["", "| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
                for name in table[columns[0]]["tables"]:
                    values = [table[row]["tables"][name] for row in columns]
                    lines.append(f"| {name} | " + " | ".join(f"{v:.1f}" for v in values) + " |")
    told, one = results.get(TOLD, {}), results.get(ONE, {})
    fresh = {k: v for k, v in results.get(OURS, {}).items() if k.startswith("mnist/")}
    if fresh:
        lines += [
            "",
            "## MNIST, each draw of labels",
            "",
            "Draws 0 to 9 were looked at while the method was built.",
            "",
            "| labels a class | draw | error % | told the true shares | CPU seconds "
            "| CPU seconds of one graph | commit |",
            "|---|---|---|---|---|---|---|",
        ]
        for k, v in sorted(
            fresh.items(), key=lambda item: [int(n) for n in item[0].split("/")[1:]]
        ):
            shown = f"{told[k][0]:.2f}" if k in told else "-"
            single = f"{one[k][2]:.0f}" if k in one else "-"
            count, seed = k.split("/")[1:]
            lines.append(
                f"| {count} | {seed} | {v[0]:.2f} | {shown} | {v[2]:.0f} | {single} "
                f"| {commits({k: v})} |"
            )
    shares = load(class_shares.STORE)
    if shares:
        lines += [
            "",
            "## Estimated class shares",
            "",
            "`python -m benchmarks.class_shares` on commit abd171d (16 tables, seeds 0 to 2), "
            "where the three rules are described. Changes are in points, mean over the tables with "
            "its standard error; worst is the table that loses most.",
            "",
            *class_shares.lines(shares),
        ]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_labels", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW", help="these only")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="these only; mnist is the last")
    parser.add_argument("--labels", nargs="+", type=int, choices=LABELS, default=list(LABELS))
    parser.add_argument("--again", action="store_true", help="measure these rows and sets again")
    parser.add_argument("--write", action="store_true", help="print the results, measure nothing")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(argv)
    if not options.write:
        if folder() is None:
            print("skipped: no tables; set GDPA_DATA_HOME to a folder with tables/*.csv")
            return 0
        warnings.simplefilter("ignore")
        sets = options.sets or ["digits", *names(), "mnist"]
        rows = options.rows or list(ROWS)
        if options.again:
            forget(rows, sets, STORE, options.labels)
        measure(rows, sets, options.labels, options.seeds)
    print(page(load(STORE)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
