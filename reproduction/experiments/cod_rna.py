"""Running time on cod-rna from 4 samples to all 488,565 (Fig. 3, right).

On the paper's full graph up to its largest size, 24,432: GDPA, SNS, the closed form and the vote
by products with all N^2 weights in single precision
(:mod:`~reproduction.experiments.dense_graph`), the other solvers up to 970 samples, as in the
paper. Two kinds of labels: *half*, every other experiment's
protocol, and *one*, the single labelled sample of the authors' runs. With one label there is one
class: a solver that notices has nothing to compute, so only what runs by products is timed there.
From 48 samples on also the sparse 10-nearest-neighbour graph, on which time and memory grow with
the number of edges.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gdpa.graph import neighbor_graph
from gdpa.graph.rescale import rescale_minmax
from gdpa.memory import check_memory
from gdpa.problem import GraphProblem

from ..config import Config
from ..methods import METHODS, RUNTIME_METHODS, solve_with, warm_up
from ..protocol import full_graph, split
from ..published import COD_RNA_MS, COD_RNA_SIZES
from ..store import Row, Task
from ..tables import WORDS, Cell, Table, make_table
from .base import Experiment, Params, Started, growth, load_cached, timed
from .dense_graph import DenseGraph

SIZES = (*COD_RNA_SIZES, 48_856, 97_713, 244_282, 488_565)
N_NEIGHBORS = 10
FULL_GRAPH_LIMIT = 970
FIT_FROM = 4891  # growth exponents are fitted from here on: below, fixed costs dominate
# By products with all N^2 weights, at every size.
_DENSE_METHODS = ("gdpa-closed-form", "harmonic", "vote", "sns-authors")
_SPARSE_METHODS = (
    "gdpa-published", "gdpa-as-written", "gdpa", "sdr-low-rank", "glr-box", "sns-authors",
    "harmonic", "vote", "min-cut",
)  # fmt: skip


class CodRna(Experiment):
    """Running time on cod-rna."""

    name = "cod-rna"
    summary = "running time on cod-rna from 4 to 488,565 samples, growth exponents (Fig. 3, right)"
    methods = tuple(name for name, spec in METHODS.items() if spec.solver)

    def tasks(self, config: Config) -> list[Task]:
        """One row per size, graph, kind of labels and method, in order of size."""
        if config.datasets is not None and "cod-rna" not in config.datasets:
            return []
        found = []
        for size in SIZES:
            if size > (config.max_size or (SIZES[-1] if config.full else 97_713)):
                break
            kinds = []
            if size <= COD_RNA_SIZES[-1]:
                default = RUNTIME_METHODS if size <= FULL_GRAPH_LIMIT else _DENSE_METHODS
                allowed = (*RUNTIME_METHODS, *_DENSE_METHODS)
                if size <= FULL_GRAPH_LIMIT:
                    default = tuple(dict.fromkeys((*default, "gdpa-closed-form")))
                    kinds.append(("full", "half", tuple(dict.fromkeys(allowed)), default))
                else:
                    kinds.append(("full", "half", default, default))
                kinds.append(("full", "one", _DENSE_METHODS, _DENSE_METHODS))
            if size > 4 * N_NEIGHBORS:
                kinds.append(("sparse", "half", self.methods, _SPARSE_METHODS))
            for graph, labels, allowed, default in kinds:
                for method in config.pick_methods(allowed, default):
                    params = {"size": size, "graph": graph, "labels": labels, "method": method}
                    chain = (self.name, graph, labels, method)
                    found.append(Task(self.name, params, serial=True, chain=chain))
        return found

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Time one method at one size."""
        size, name = params["size"], params["method"]
        products = params["graph"] == "full" and name in _DENSE_METHODS
        graph, y, graph_seconds = _graph(size, "products" if products else params["graph"])
        labeled, _ = split(size, seed=1)
        if params["labels"] == "one":
            labeled = labeled[:1]
        labels = np.zeros(size, dtype=np.int8)
        labels[labeled] = y[labeled]
        hidden = labels == 0
        warm_up(name)
        if isinstance(graph, DenseGraph):
            started()
            (scores, converged), seconds = timed(lambda: graph.scores(name, labels))
            predicted = np.where(scores >= 0, 1, -1)
        else:
            problem = GraphProblem(graph, labels, laplacian="normalized")
            started()
            # with_labels: the same graph, nothing cached from the call before
            found, seconds = timed(lambda: solve_with(METHODS[name], problem.with_labels(labels)))
            predicted, converged = found.labels[hidden], found.converged
        wrong = int(np.count_nonzero(predicted != y[hidden]))
        return {
            "program": METHODS[name].program,
            "seconds": seconds,
            "graph_seconds": graph_seconds,
            "error_percent": 100.0 * wrong / int(hidden.sum()),
            "converged": converged,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Times and exponents, errors by size; one of each per graph."""
        found = []
        for graph, words in WORDS["graphs"].items():
            series = {key: points for key, points in _series(rows).items() if key[0] == graph}
            sizes = sorted({n for points in series.values() for n in points})
            times: list[tuple[Cell, ...]] = []
            errors: list[tuple[Cell, ...]] = []
            for (_, labels, method), points in sorted(series.items()):
                head = (METHODS[method].label, labels)
                cells = [_cells(points.get(n)) for n in sizes]
                times.append((*head, *(t for t, _ in cells), _exponent(_seconds(points))))
                errors.append((*head, *(e for _, e in cells)))
            if graph == "full" and set(COD_RNA_SIZES) <= set(sizes):
                for label, ms in COD_RNA_MS.items():
                    stored = dict(zip(COD_RNA_SIZES, ms, strict=True))
                    times.append((f"authors' {label}", "one", *ms, _exponent(stored)))
            if times:
                heads, name = [f"{n:,}" for n in sizes], f"cod-rna-{graph}"
                found += [
                    make_table("cod-rna", times, [*heads, "exponent"], name=name, graph=words),
                    make_table("cod-rna-errors", errors, heads, name=f"{name}-errors", graph=words),
                ]
        return found

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """``series``: (graph, label) -> (sizes, ms)."""
        found: dict[tuple[str, str], tuple[list[int], list[float]]] = {}
        for (graph, labels, method), points in _series(rows).items():
            seconds = _seconds(points)
            if seconds and (graph == "sparse" or method in _DENSE_METHODS):
                ms = [1e3 * s for s in seconds.values()]
                label = METHODS[method].label + (", one label" if labels == "one" else "")
                found[graph, label] = (list(seconds), ms)
        if found:
            for label, stored in COD_RNA_MS.items():
                found["full", f"authors' {label}"] = (list(COD_RNA_SIZES), list(stored))
        return {"series": found} if found else None


def _cells(row: Row | None) -> tuple[Cell, Cell]:
    """Time and error of a row."""
    if row is None:
        return None, None
    if row.status != "ok":
        return row.status, None
    return 1e3 * float(row.values["seconds"]), row.values["error_percent"]


def _seconds(points: Mapping[int, Row]) -> dict[int, float]:
    """Size -> seconds."""
    return {n: r.values["seconds"] for n, r in sorted(points.items()) if r.status == "ok"}


def _exponent(times: Mapping[int, float]) -> float | None:
    good = {n: s for n, s in times.items() if n >= FIT_FROM}
    return growth(list(good), list(good.values()))


def _series(rows: Sequence[Row]) -> dict[tuple[str, str, str], dict[int, Row]]:
    found: dict[tuple[str, str, str], dict[int, Row]] = {}
    for row in rows:
        p = row.params
        found.setdefault((p["graph"], p["labels"], p["method"]), {})[p["size"]] = row
    return found


@lru_cache(maxsize=1)
def _graph(size: int, graph: str) -> tuple[Any, Any, float]:
    """Weights, true labels and the seconds that the graph took."""
    dataset = load_cached("cod-rna")
    # One random order for all sizes: each sample contains the smaller ones.
    rows = np.sort(np.random.RandomState(0).permutation(dataset.y.size)[:size])
    X = np.asarray(rescale_minmax(dataset.X[rows]), dtype=np.float64)
    start = time.process_time()
    W: Any
    if graph == "sparse":
        W = neighbor_graph(X, N_NEIGHBORS, n_jobs=1)
    elif graph == "products":
        W = DenseGraph.of(X)
    else:
        # Dense weights, the same as a sparse array, its checked copy and the Laplacian's part.
        check_memory(50.0 * size**2, f"the full graph of {size} samples", "take a smaller size")
        W = full_graph(X)
    return W, dataset.y[rows], time.process_time() - start
