"""Predictions of new Parquet parts by a finished work folder.

A new row is one more row of the labelled system, the fitted scores held: it is linked to its
nearest fitted rows, which are found in the cells that it visits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.probabilities import to_shares
from ..graph.neighbor_graph import SCALE_NEIGHBOR, kernel_weights, local_scales
from ..system import attached_scores
from ..tables import TableError
from .fitting import make_runner
from .inputs import Inputs, look
from .manifest import Manifest, Output
from .predictions import check_out, model_file, write_answers, write_file
from .runner import Event, Task, connect
from .sample import load_plan
from .search import nearest_points
from .shuffle import assign, runs_of
from .store import Folder, open_folder

__all__ = ["PredictResult", "finished_model", "predict"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PredictResult:
    """Predictions of new rows.

    Parameters
    ----------
    rows : int
        Rows.
    predicted : dict
        Rows of each class.
    seconds : dict
        Time of each stage.
    files : tuple of str
        The predictions.
    """

    rows: int
    predicted: dict[str, int]
    seconds: dict[str, float]
    files: tuple[str, ...]


def finished_model(folder: Folder) -> tuple[Manifest, dict[str, Any]]:
    """What a finished fit left in its work folder."""
    manifest = Manifest(folder)
    if not manifest.load() or "model" not in manifest.data:
        raise ValueError(f"work folder {folder.url} holds no finished fit")
    manifest.check()
    return manifest, manifest.data["model"]


def predict(
    paths: str | Sequence[str],
    *,
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    id_column: str | None = None,
    class_probabilities: bool = False,
    scheduler: str | None = None,
    n_workers: int | None = None,
    memory_limit: str | float | None = None,
    callback: Callable[[Event], None] | None = None,
) -> PredictResult:
    """Predict new Parquet parts with the work folder of a finished fit.

    Parameters
    ----------
    paths : str or sequence of str
        Parquet files, patterns or folders with the feature columns of the fit; others are ignored.
    work : path-like or URL
        Work folder of the fit; it is only read.
    out : path-like or URL
        Folder for the predictions, a file per input file.
    id_column : str, optional
        Column that names the rows; by default they are numbered over all files.
    class_probabilities : bool, default=False
        Whether to write a column per class.
    scheduler, n_workers, memory_limit, callback
        As in :func:`gdpa.distributed.fit`.

    Returns
    -------
    PredictResult
        What was done. A row equal to a fitted one gets that row's label.
    """
    folder = open_folder(os.fspath(work))
    fitted, model = finished_model(folder)
    inputs = look(paths)
    types = dict(fitted.parameters["schema"])
    for name in model["features"]:
        here = inputs.column(name, "column")
        if here != types[name]:
            raise TableError(
                f"column {name!r} is {here} in {inputs.paths[0]}, it was {types[name]} in the fit"
            )
    if id_column is not None:
        inputs.column(id_column, "column")
    parameters = {
        "inputs": [list(x) for x in zip(inputs.paths, inputs.fingerprints, strict=True)],
        "run": fitted.data["run"],
        "id_column": id_column,
        "class_probabilities": bool(class_probabilities),
    }
    target = open_folder(os.fspath(out))
    scratch = open_folder(f"{target.url}/_work")
    check_out(target, fitted.data["run"])
    manifest = Manifest(scratch)
    manifest.open(parameters)
    scratch.remove_unfinished()
    with connect(scheduler, n_workers, memory_limit) as client:
        runner = make_runner(client, scratch, manifest, callback)
        common = {"features": model["features"], "plan_url": folder.url, "base": "assign"}
        assigned = runner.stage(
            "assign",
            [
                Task(f"{i:06d}", assign, {"piece": piece, "number": i, **common})
                for i, piece in enumerate(inputs.pieces)
            ],
        )
        ends = [record.result["ends"] for record in assigned.values()]
        files = [0, *np.cumsum(inputs.rows).tolist()]
        about: dict[str, Any] = {"ends": ends, "url": folder.url, "model": model, "files": files}
        about["classes"] = bool(class_probabilities)
        parts = range(len(model["starts"]) - 1)
        asked = runner.stage(
            "query", [Task(f"{p:05d}", query_part, {"part": p, **about}) for p in parts]
        )
        answers = [record.result["ends"] for record in asked.values()]
        names = _write(runner, inputs, answers, parameters, model, target.url, folder.url)
    counts = np.sum([record.result["predicted"] for record in asked.values()], axis=0)
    scratch.remove_tree("")
    return PredictResult(
        inputs.n_rows,
        dict(zip(model["classes"], counts.tolist(), strict=True)),
        dict(runner.seconds),
        tuple(f"{os.fspath(out)}/{name}" for name in names),
    )


def _write(
    runner: Any, inputs: Inputs, ends: list[list[int]], asked: dict[str, Any],
    model: dict[str, Any], out: str, url: str,
) -> list[str]:  # fmt: skip
    firsts = np.concatenate([[0], np.cumsum(inputs.rows)]).tolist()
    about = {
        "ends": ends, "base": "answers", "out": out, "id_column": asked["id_column"],
        "target_type": model["target_type"], "classes": asked["class_probabilities"],
        "plan_url": url,
    }  # fmt: skip
    names = inputs.names()
    tasks = [
        Task(
            f"{i:05d}", write_file,
            {"number": i, "first": firsts[i], "pieces": inputs.pieces_of(i), "name": names[i],
             **about},
        )
        for i in range(len(names))
    ]  # fmt: skip
    runner.stage("files", tasks)
    return names


def query_part(
    output: Output,
    *,
    part: int,
    ends: list[list[int]],
    url: str,
    model: dict[str, Any],
    files: list[int],
    classes: bool,
) -> dict[str, Any]:
    """Predict the new rows whose cells belong to a part."""
    folder, plan = open_folder(url), load_plan(url)
    base = f"answers/{part:05d}"
    home = runs_of(output.folder, "assign", "home", ends, part)
    row = runs_of(output.folder, "assign", "row", ends, part)
    prior = np.asarray(model["prior"])
    if not home:
        best, shares = np.empty(0, dtype=np.intp), np.empty((0, prior.size))
        rows = np.empty(0, dtype=np.int64)
    else:
        cell = np.concatenate(home)
        order = np.argsort(cell, kind="stable")
        rows = np.concatenate(row)[order]
        Q = np.concatenate(runs_of(output.folder, "assign", "X", ends, part))[order]
        k = min(model["n_neighbors"], model["starts"][-1])
        asked = min(model["starts"][-1], max(k, SCALE_NEIGHBOR))
        starts = np.asarray(model["starts"])
        node, distance = nearest_points(
            folder, plan.space, plan.bounds, starts, Q, cell[order], asked, model["probes"], None
        )
        shares = row_shares(folder, node, distance, k, model)
        best = shares.argmax(axis=1)
    sharpness = model["sharpness"]
    written = write_answers(output, base, rows, best, shares, sharpness, files, classes)
    return {"ends": written, "predicted": np.bincount(best, minlength=prior.size).tolist()}


def row_shares(
    folder: Folder,
    node: NDArray[np.int64],
    distance: FloatArray,
    k: int,
    model: dict[str, Any],
) -> FloatArray:
    """Shares of the classes of new rows with given neighbours."""
    scale = local_scales(distance, model["scale"])
    node, distance = node[:, :k], distance[:, :k]
    nodes, place = np.unique(node, return_inverse=True)
    place = place.reshape(node.shape)
    starts = np.asarray(model["starts"])
    scales, degrees, scores, codes = (
        values_of(folder, what, nodes, starts) for what in ("scale", "degree", "scores", "code")
    )
    weights = kernel_weights(distance, scale[:, None], scales[place])
    ends = np.arange(0, node.size + 1, k)
    shape = (node.shape[0], nodes.size)
    W = sp.csr_array((weights.ravel(), place.ravel(), ends), shape=shape)
    row, column = np.nonzero(distance == 0)
    same = sp.csr_array((np.ones(row.size), (row, place[row, column])), shape=shape)
    prior = np.asarray(model["prior"])
    found = attached_scores(
        W, same, scores, to_shares(scores, prior), codes, 100.0 * model["tol"],
        degrees=degrees, laplacian="normalized", self_loop=model["self_loop"],
    )  # fmt: skip
    return to_shares(found, prior)


def values_of(
    folder: Folder, what: str, nodes: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[Any]:
    """Values of some nodes, ascending, of any part."""
    part = np.searchsorted(starts, nodes, side="right") - 1
    return np.concatenate(
        [
            folder.read_array(model_file(p, what))[nodes[part == p] - starts[p]]
            for p in np.unique(part).tolist()
        ]
    )
