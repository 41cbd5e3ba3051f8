"""Predict new Parquet files with the work folder of a finished fit.

Each new row is linked to its nearest fitted rows. Its scores solve its own row of the labelled
system; the scores of the fitted rows do not change.
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
from .cluster import Event, Runner, Workers
from .estimator import finished_model
from .folder import Folder
from .inputs import Inputs, open_inputs
from .manifest import Output
from .neighbors import nearest_points
from .parts import encode, points_of, sorted_rows
from .predictions import WORK, write_answers, write_predictions
from .run import misfits_as_value_error, open_run


@dataclass(frozen=True)
class PredictResult:
    """Predictions of new rows.

    Parameters
    ----------
    rows : int
        Number of rows.
    predicted : dict
        Number of rows of each predicted class.
    seconds : dict
        Time of each stage.
    files : tuple of str
        Files with the predictions.
    """

    rows: int
    predicted: dict[str, int]
    seconds: dict[str, float]
    files: tuple[str, ...]


def predict(
    paths: str | Sequence[str],
    *,
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    id_column: str | None = None,
    class_probabilities: bool = False,
    workers: Workers | None = None,
    callback: Callable[[Event], None] | None = None,
) -> PredictResult:
    """Predict new Parquet files with the work folder of a finished fit.

    Parameters
    ----------
    paths : str or sequence of str
        Parquet files, patterns or folders with the feature columns of the fit; other columns are
        ignored.
    work : path-like or URL
        Work folder of the fit; it is not changed.
    out : path-like or URL
        Folder for the predictions, one file per input file.
    id_column : str, optional
        Column with row identifiers; by default rows are numbered across all files.
    class_probabilities : bool, default=False
        Whether to write the probability of every class.
    workers, callback
        As in :func:`gdpa.distributed.fit`.

    Returns
    -------
    PredictResult
        Counts, times and files. A row that equals a labelled row of the fit gets its label.

    Raises
    ------
    ValueError
        If the work folder has no finished fit, or one of its files is damaged.
    """
    folder = Folder(os.fspath(work))
    with misfits_as_value_error(folder, resumed=True):
        fitted, model = finished_model(folder)
        inputs = open_inputs(paths)
        types = dict(fitted.parameters["schema"])
        for name in model["features"]:
            here = inputs.column_type(name)
            if here != types[name]:
                raise TableError(
                    f"column {name!r} is {here} in {inputs.paths[0]}, but was {types[name]} in "
                    "the fit"
                )
        if id_column is not None:
            inputs.column_type(id_column)
        parameters = {
            "inputs": inputs.identities,
            "run": fitted.data["run"],
            "id_column": id_column,
            "class_probabilities": bool(class_probabilities),
        }
        with open_run(
            f"{os.fspath(out)}/{WORK}",
            out,
            parameters,
            need_bytes=0.0,
            workers=workers,
            callback=callback,
            run=fitted.data["run"],
        ) as runner:
            files, predicted = _run(runner, inputs, folder, model, parameters, os.fspath(out))
            runner.folder.remove_all()
    return PredictResult(inputs.n_rows, predicted, dict(runner.seconds), tuple(files))


def _run(
    runner: Runner,
    inputs: Inputs,
    folder: Folder,
    model: dict[str, Any],
    parameters: dict[str, Any],
    out: str,
) -> tuple[list[str], dict[str, int]]:
    """Run the stages; return the written files and the number of rows of each class."""
    classes = parameters["class_probabilities"]
    encoded = runner.stage(
        "encode rows",
        encode,
        [{"piece": piece, "number": i} for i, piece in enumerate(inputs.pieces)],
        features=model["features"],
        plan_url=folder.url,
    )
    answers = runner.stage(
        "predict",
        _predict_rows,
        [{"part": part} for part in range(len(model["starts"]) - 1)],
        ends=[result["ends"] for result in encoded],
        url=folder.url,
        model=model,
        files=np.cumsum([0, *inputs.rows]).tolist(),
        classes=classes,
    )
    files = write_predictions(
        runner,
        inputs,
        [result["ends"] for result in answers],
        out,
        id_column=parameters["id_column"],
        target_type=model["target_type"],
        classes=classes,
        plan_url=folder.url,
    )
    counts = np.sum([result["predicted"] for result in answers], axis=0).tolist()
    return files, dict(zip(model["classes"], counts, strict=True))


def _predict_rows(
    output: Output,
    *,
    part: int,
    ends: list[list[int]],
    url: str,
    model: dict[str, Any],
    files: list[int],
    classes: bool,
) -> dict[str, Any]:
    """Predict the new rows in the cells of a part."""
    folder = Folder(url)
    Q, home, row = sorted_rows(output.folder, ends, part)
    shares = np.empty((0, len(model["classes"])))
    if row.size:
        starts = np.asarray(model["starts"])
        wanted = min(model["starts"][-1], max(model["n_neighbors"], SCALE_NEIGHBOR))
        node, distance = nearest_points(folder, starts, Q, home, wanted, model["probes"])
        shares = _shares(folder, node, distance, starts, model)
    best = shares.argmax(axis=1)
    return {
        "ends": write_answers(output, part, row, best, shares, model["sharpness"], files, classes),
        "predicted": np.bincount(best, minlength=shares.shape[1]).tolist(),
    }


def _shares(
    folder: Folder,
    node: NDArray[np.int64],
    distance: NDArray[np.float64],
    starts: NDArray[np.int64],
    model: dict[str, Any],
) -> NDArray[np.float64]:
    """Return the class shares of new rows, given their neighbours."""
    k = min(model["n_neighbors"], node.shape[1])
    scale = local_scales(distance, model["scale"])
    node = node[:, :k]
    distance = distance[:, :k]
    nodes, place = np.unique(node, return_inverse=True)
    place = place.reshape(node.shape)
    scales, degrees, scores, codes = (
        points_of(folder, nodes, starts, f"model/{{:05d}}.{what}.npy")
        for what in ("scale", "degree", "scores", "code")
    )
    weights = kernel_weights(distance, scale[:, None], scales[place])
    shape = (node.shape[0], nodes.size)
    ends = np.arange(0, node.size + 1, k)
    W = sp.csr_array((weights.ravel(), place.ravel(), ends), shape=shape)
    row, column = np.nonzero(distance == 0)
    same = sp.csr_array((np.ones(row.size), (row, place[row, column])), shape=shape)
    prior = np.asarray(model["prior"])
    scores = attached_scores(
        W,
        same,
        scores,
        to_shares(scores, prior),
        codes,
        model["threshold"],
        degrees=degrees,
        laplacian="normalized",
        self_loop=model["self_loop"],
    )
    return to_shares(scores, prior)
