"""Running time on cod-rna from 4 samples to all 488,565 (Fig. 3, right).

On the paper's full graph up to its largest size, 24,432: the solvers up to 970 samples, as in the
paper, beyond it what needs products with the graph only, on all N^2 weights in single precision
(:mod:`~gdpa.experiments.dense_graph`). From 48 samples on also the sparse 10-nearest-neighbour
graph, on which time and memory grow with the number of edges. Two kinds of labels: *half*, every
other experiment's protocol, and *one*, the single labelled sample of the authors' runs. With one
label there is one class: every sample gets it, and no method has anything to compute.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph import neighbor_graph
from ..graph.rescale import rescale_minmax
from ..problem import GraphProblem
from .base import Experiment, Findings, Started, finished_rows
from .config import Config
from .dense_graph import DenseGraph
from .methods import METHODS, solve_with, warm_up
from .protocol import COD_RNA_SIZES, full_graph, split
from .store import Row, Task
from .tables import Cell, Table
from .timing import growth, timed

__all__ = ["SIZES", "CodRna"]

SIZES = (*COD_RNA_SIZES, 48_856, 97_713, 244_282, 488_565)
N_NEIGHBORS = 10
FULL_GRAPH_LIMIT = 970
QUICK_LIMIT = 97_713
# Smallest size that a growth exponent is fitted from: below, fixed costs dominate.
FIT_FROM = {"full": 95, "sparse": 4891}

_FULL_GRAPH_METHODS = (
    "gdpa-published", "gdpa-as-written", "gdpa", "sdr-interior-point", "sdr-admm", "sdr-low-rank",
    "modified-dual-admm", "bcr-authors", "sdcut", "glr-box", "sns-authors", "harmonic", "vote",
    "min-cut",
)  # fmt: skip
# Beyond the paper's limit for the others: on stored products with all N^2 weights.
_DENSE_METHODS = ("harmonic", "vote")
_SPARSE_METHODS = (
    "gdpa-published", "gdpa-as-written", "gdpa", "sdr-low-rank", "glr-box", "sns-authors",
    "harmonic", "vote", "min-cut",
)  # fmt: skip

_NOTES = (
    f"Exponent: slope of log time over log N from N = {FIT_FROM['full']} (full graph) or "
    f"{FIT_FROM['sparse']:,} (sparse) on; none where one class only occurs.",
    "one: a single labelled sample, as in the authors' runs. Only one class is then known, the "
    "answer is that class everywhere, and the time is that of noticing it. The authors stored no "
    "times of this set; the paper has them as a curve only.",
)
_ERROR_NOTES = (
    "No sign oracle here: SNS in the authors' variant maximises what is to be minimised.",
    "GDPA as published lives on rounding below the tolerance of its linear program. Where the "
    "problem grows it does not stay a vote: compare its row with that of the vote.",
)
_GRAPHS = {
    "full": "the paper's full graph, N² weights (from 4,891 samples on in single precision, by "
    "products; there the harmonic row is GDPA's linear recovery too)",
    "sparse": "10 nearest neighbours",
}


class CodRna(Experiment):
    """Running time on cod-rna."""

    name = "cod-rna"
    summary = "running time on cod-rna from 4 to 488,565 samples, growth exponents (Fig. 3, right)"
    methods = tuple(name for name, spec in METHODS.items() if spec.kind == "solver")

    def tasks(self, config: Config) -> list[Task]:
        """One row per size, graph, kind of labels and method, in order of size."""
        if config.datasets is not None and "cod-rna" not in config.datasets:
            return []
        limit = config.max_size or (SIZES[-1] if config.full else QUICK_LIMIT)
        found = []
        for size in SIZES:
            if size > limit:
                break
            full = _FULL_GRAPH_METHODS if size <= FULL_GRAPH_LIMIT else _DENSE_METHODS
            if size <= COD_RNA_SIZES[-1]:
                allowed = self.methods if size <= FULL_GRAPH_LIMIT else _DENSE_METHODS
                for name in config.pick_methods(allowed, full):
                    found.append(self._task(size, "full", "half", name))
            if size > 4 * N_NEIGHBORS:
                for name in config.pick_methods(self.methods, _SPARSE_METHODS):
                    found.append(self._task(size, "sparse", "half", name))
                for name in config.pick_methods(self.methods, ("gdpa",)):
                    found.append(self._task(size, "sparse", "one", name))
        return found

    def _task(self, size: int, graph: str, labels: str, method: str) -> Task:
        params = {"size": size, "graph": graph, "labels": labels, "method": method}
        return Task(self.name, params, serial=True, chain=(self.name, graph, labels, method))

    def compute(self, params: Mapping[str, Any], started: Started) -> dict[str, Any]:
        """Time one method at one size."""
        size, name = params["size"], params["method"]
        graph, y, graph_seconds = _graph(size, params["graph"])
        labeled, unlabeled = split(size, seed=1)
        if params["labels"] == "one":
            unlabeled = np.concatenate([unlabeled, labeled[1:]])
            labeled = labeled[:1]
        labels = np.zeros(size, dtype=np.int8)
        labels[labeled] = y[labeled]
        warm_up(name)
        if isinstance(graph, DenseGraph):
            started()
            (scores, converged), seconds = timed(lambda: _by_products(graph, name, labels))
            predicted = np.where(scores >= 0, 1, -1)
            wrong = int(np.count_nonzero(predicted != y[labels == 0]))
            one_class = False
        else:
            problem = GraphProblem(graph, labels, laplacian="normalized")
            started()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # with_labels: the same graph, nothing cached from the call before
                found, seconds = timed(
                    lambda: solve_with(METHODS[name], problem.with_labels(labels))
                )
            wrong = int(np.count_nonzero(found.labels[unlabeled] != y[unlabeled]))
            one_class, converged = problem.only_class is not None, bool(found.converged)
        return {
            "seconds": seconds,
            "graph_seconds": graph_seconds,
            "error_percent": 100.0 * wrong / unlabeled.size,
            "one_class": one_class,
            "converged": converged,
        }

    def tables(self, rows: Sequence[Row], config: Config) -> list[Table]:
        """Times and exponents, errors by size; one of each per graph."""
        found = []
        for graph, words in _GRAPHS.items():
            mine = [row for row in rows if row.params["graph"] == graph]
            sizes = sorted({row.params["size"] for row in mine})
            times: list[tuple[Cell, ...]] = []
            errors: list[tuple[Cell, ...]] = []
            for (_, labels, method), points in sorted(_series(mine).items()):
                line: list[Cell] = [METHODS[method].label, labels]
                error_line: list[Cell] = list(line)
                for n in sizes:
                    row = points.get(n)
                    ok = row is not None and row.status == "ok"
                    line.append(_milliseconds(row))
                    error_line.append(row.values["error_percent"] if row and ok else None)
                times.append((*line, _exponent(points, graph)))
                errors.append(tuple(error_line))
            if not times:
                continue
            head = ("method", "labels", *(f"{n:,}" for n in sizes))
            title = f"cod-rna: processor time (ms) by number of samples, {words}"
            columns = (*head, "exponent")
            found.append(Table(f"cod-rna-{graph}", title, columns, tuple(times), _NOTES))
            title = f"cod-rna: error in percent, {words}"
            found.append(
                Table(f"cod-rna-{graph}-errors", title, head, tuple(errors), _ERROR_NOTES, digits=1)
            )
        return found

    def figure(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``series``: (graph, label) -> (sizes, ms, exponent or None); half labelled only."""
        found = {}
        for (graph, labels, method), points in _series(rows).items():
            good = {
                n: 1e3 * r.values["seconds"]
                for n, r in sorted(points.items())
                if r.status == "ok" and not r.values["one_class"]
            }
            if labels == "half" and good:
                exponent = _exponent(points, graph)
                found[graph, METHODS[method].label] = (list(good), list(good.values()), exponent)
        return {"series": found}

    def findings(self, rows: Sequence[Row]) -> Findings:
        """How time grows, and what one label means."""
        holds, fails = [], []
        series = self.figure(rows)["series"]
        for graph, label, words in (
            ("sparse", "GDPA, default", "GDPA grows gracefully on a sparse graph"),
            ("full", "Harmonic (closed-form GLR)",
             "GDPA's linear recovery grows on the paper's full graph"),
        ):  # fmt: skip
            sizes, _, exponent = series.get((graph, label), ([0], [], None))
            if exponent is not None:
                holds.append(
                    f"The time of {words}: as N^{exponent:.2f} up to N = {max(sizes):,} with half "
                    "of the samples labelled."
                )
        if any(row.params["labels"] == "one" for row in finished_rows(rows)):
            fails.append(
                "The paper's curve on cod-rna has one labelled sample. Then one class is known, "
                "every sample gets it, and a time says nothing about the method; ours has half "
                "labelled."
            )
        return Findings(tuple(holds), tuple(fails))


def _milliseconds(row: Row | None) -> Cell:
    if row is None:
        return None
    return 1e3 * float(row.values["seconds"]) if row.status == "ok" else row.status


def _exponent(points: Mapping[int, Row], graph: str) -> float | None:
    good = {
        n: r.values["seconds"]
        for n, r in points.items()
        if r.status == "ok" and n >= FIT_FROM[graph] and not r.values["one_class"]
    }
    return growth(list(good), list(good.values()))


_Series = dict[tuple[str, str, str], dict[int, Row]]


def _series(rows: Sequence[Row]) -> _Series:
    found: _Series = {}
    for row in rows:
        p = row.params
        found.setdefault((p["graph"], p["labels"], p["method"]), {})[p["size"]] = row
    return found


def _by_products(graph: DenseGraph, name: str, labels: Any) -> tuple[Any, bool]:
    return graph.harmonic(labels) if name == "harmonic" else (graph.vote(labels), True)


@lru_cache(maxsize=1)
def _order() -> tuple[Any, np.ndarray[Any, Any]]:
    from ..datasets import load

    dataset = load("cod-rna")
    # One random order for all sizes: each sample contains the smaller ones.
    return dataset, np.random.RandomState(0).permutation(dataset.y.size)


@lru_cache(maxsize=1)
def _graph(size: int, graph: str) -> tuple[Any, Any, float]:
    """Weights, true labels and the seconds that the graph took."""
    dataset, order = _order()
    rows = np.sort(order[:size])
    X = np.asarray(rescale_minmax(dataset.X[rows]), dtype=np.float64)
    start = time.process_time()
    W: Any
    if graph == "sparse":
        W = neighbor_graph(X, N_NEIGHBORS, n_jobs=1)
    else:
        W = full_graph(X) if size <= FULL_GRAPH_LIMIT else DenseGraph.of(X)
    return W, dataset.y[rows], time.process_time() - start
