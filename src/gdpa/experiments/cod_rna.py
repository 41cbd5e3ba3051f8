"""Running time on cod-rna from 4 samples to all 488,565 (the right half of the paper's figure).

Up to 970 samples the paper's full graph; from 48 samples on the sparse 10-nearest-neighbour graph,
on which time and memory grow with the number of edges. Two kinds of labels: *half*, every other
experiment's protocol, and *one*, the single labelled sample of the authors' runs. With one label
there is one class: every sample gets it, and no method has anything to compute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph import neighbor_graph
from ..graph.rescale import rescale_minmax
from ..problem import GraphProblem
from .config import Config
from .methods import METHODS, solve_with, warm_up
from .protocol import COD_RNA_SIZES, full_graph, split
from .runtime import timed
from .store import Row, Task
from .tables import Cell, Table

__all__ = ["METHOD_NAMES", "SIZES", "compute", "figure_data", "growth", "tables", "tasks"]

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
_SPARSE_METHODS = (
    "gdpa-published", "gdpa-as-written", "gdpa", "sdr-low-rank", "glr-box", "sns-authors",
    "harmonic", "vote", "min-cut",
)  # fmt: skip
METHOD_NAMES = tuple(name for name, spec in METHODS.items() if spec.kind == "solver")


def tasks(config: Config) -> list[Task]:
    """List the rows: one per size, graph, kind of labels and method.

    Parameters
    ----------
    config : Config
        The extent.

    Returns
    -------
    list of Task
        The rows, in order of size.
    """
    if config.datasets is not None and "cod-rna" not in config.datasets:
        return []
    limit = config.max_size or (SIZES[-1] if config.full else QUICK_LIMIT)
    found = []
    for size in SIZES:
        if size > limit:
            break
        if size <= FULL_GRAPH_LIMIT:
            for name in config.pick_methods(METHOD_NAMES, _FULL_GRAPH_METHODS):
                found.append(_task(size, "full", "half", name))
        if size > 4 * N_NEIGHBORS:
            for name in config.pick_methods(METHOD_NAMES, _SPARSE_METHODS):
                found.append(_task(size, "sparse", "half", name))
            for name in config.pick_methods(METHOD_NAMES, ("gdpa",)):
                found.append(_task(size, "sparse", "one", name))
    return found


def _task(size: int, graph: str, labels: str, method: str) -> Task:
    params = {"size": size, "graph": graph, "labels": labels, "method": method}
    return Task("cod-rna", params, serial=True, chain=("cod-rna", graph, labels, method))


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
    W = full_graph(X) if graph == "full" else neighbor_graph(X, N_NEIGHBORS, n_jobs=1)
    return W, dataset.y[rows], time.process_time() - start


def compute(params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Time one method at one size.

    Parameters
    ----------
    params : mapping
        Of the task.
    started : callable
        Called when the method starts.

    Returns
    -------
    dict
        Seconds of the method and of the graph, and the error.
    """
    size, name = params["size"], params["method"]
    W, y, graph_seconds = _graph(size, params["graph"])
    labeled, unlabeled = split(size, seed=1)
    if params["labels"] == "one":
        unlabeled = np.concatenate([unlabeled, labeled[1:]])
        labeled = labeled[:1]
    labels = np.zeros(size, dtype=np.int8)
    labels[labeled] = y[labeled]
    problem = GraphProblem(W, labels, laplacian="normalized")
    warm_up(name)
    started()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # with_labels: the same graph, nothing cached from the call before
        prediction, seconds = timed(lambda: solve_with(METHODS[name], problem.with_labels(labels)))
    wrong = int(np.count_nonzero(prediction.labels[unlabeled] != y[unlabeled]))
    return {
        "seconds": seconds,
        "graph_seconds": graph_seconds,
        "error_percent": 100.0 * wrong / unlabeled.size,
        "one_class": problem.only_class is not None,
        "converged": bool(prediction.converged),
    }


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Exponent p of ``seconds ~ size^p`` by least squares in logarithms.

    Parameters
    ----------
    sizes, seconds : sequence of float
        Measurements, all positive.

    Returns
    -------
    float or None
        The exponent; None with fewer than two sizes.

    Examples
    --------
    >>> from gdpa.experiments.cod_rna import growth
    >>> round(growth([10, 100, 1000], [2, 200, 20000]), 6)
    2.0
    """
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


_ERROR_NOTES = (
    "No sign oracle here: SNS in the authors' variant maximises what is to be minimised.",
    "GDPA as published lives on rounding below the tolerance of its linear program. Where the "
    "problem grows it does not stay a vote: compare its row with that of the vote.",
)

_Series = dict[tuple[str, str, str], dict[int, Row]]


def _series(rows: Sequence[Row]) -> _Series:
    found: _Series = {}
    for row in rows:
        p = row.params
        found.setdefault((p["graph"], p["labels"], p["method"]), {})[p["size"]] = row
    return found


def tables(rows: Sequence[Row], config: Config) -> list[Table]:
    """Times by size, and growth exponents.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.
    config : Config
        The extent.

    Returns
    -------
    list of Table
        Times and exponents; errors by size.
    """
    if not rows:
        return []
    series = _series(rows)
    sizes = sorted({row.params["size"] for row in rows})
    body: list[tuple[Cell, ...]] = []
    errors: list[tuple[Cell, ...]] = []
    for (graph, labels, method), points in sorted(series.items()):
        good = {
            n: r.values["seconds"]
            for n, r in points.items()
            if r.status == "ok" and n >= FIT_FROM[graph] and not r.values["one_class"]
        }
        line: list[Cell] = [graph, labels, METHODS[method].label]
        error_line: list[Cell] = list(line)
        for n in sizes:
            row = points.get(n)
            ok = row is not None and row.status == "ok"
            line.append(None if row is None else 1e3 * row.values["seconds"] if ok else row.status)
            error_line.append(row.values["error_percent"] if row is not None and ok else None)
        exponent = growth(list(good), list(good.values()))
        body.append((*line, exponent))
        errors.append(tuple(error_line))
    head = ("graph", "labels", "method", *(f"{n:,}" for n in sizes))
    notes = (
        f"Exponent: slope of log time over log N from N = {FIT_FROM['full']} (full graph) or "
        f"{FIT_FROM['sparse']:,} (sparse) on; none where one class only occurs.",
        "full: the paper's graph, N^2 edges, up to 970 samples. sparse: 10 nearest neighbours.",
        "one: a single labelled sample, as in the authors' runs. Only one class is then known, the "
        "answer is that class everywhere, and the time is that of noticing it.",
    )
    title = "cod-rna: processor time (ms) by number of samples, and growth exponent"
    return [
        Table("cod-rna", title, (*head, "exponent"), tuple(body), notes),
        Table("cod-rna-errors", "cod-rna: error in percent", head, tuple(errors), _ERROR_NOTES),
    ]


def figure_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Times by size, for the figure.

    Parameters
    ----------
    rows : sequence of Row
        Computed rows.

    Returns
    -------
    dict
        ``series``: (graph, label) -> (sizes, ms, exponent or None); half labelled only.
    """
    found = {}
    for (graph, labels, method), points in _series(rows).items():
        good = {
            n: 1e3 * r.values["seconds"]
            for n, r in sorted(points.items())
            if r.status == "ok" and not r.values["one_class"]
        }
        if labels != "half" or not good:
            continue
        fit = {n: t for n, t in good.items() if n >= FIT_FROM[graph]}
        exponent = growth(list(fit), list(fit.values()))
        found[graph, METHODS[method].label] = (list(good), list(good.values()), exponent)
    return {"series": found}
