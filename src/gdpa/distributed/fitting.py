"""Fit on parts: from Parquet files with a few labels to predictions for all rows."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ..tables import TableError
from .inputs import look
from .manifest import Manifest
from .options import check_options, check_space, locked
from .predictions import check_out
from .runner import DaskRunner, Event, Runner, connect
from .stages import FitResult, run_stages
from .store import Folder, open_folder

__all__ = ["fit", "make_runner"]


def fit(
    paths: str | Sequence[str],
    target: str,
    *,
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    id_column: str | None = None,
    drop: Sequence[str] = (),
    unlabeled: str | None = None,
    scale: str = "robust",
    metric: str = "auto",
    n_neighbors: int = 10,
    recall: float | None = None,
    label_weight: float | None = None,
    self_loop: float | None = None,
    class_probabilities: bool = False,
    n_parts: int | None = None,
    tol: float = 1e-6,
    random_state: int = 0,
    scheduler: str | None = None,
    n_workers: int | None = None,
    memory_limit: str | float | None = None,
    keep: bool = False,
    callback: Callable[[Event], None] | None = None,
) -> FitResult:
    """Predict the missing cells of a column of Parquet files, on a cluster.

    Parameters
    ----------
    paths : str or sequence of str
        Parquet files, patterns or folders, also URLs that fsspec knows. All files need the same
        columns.
    target : str
        Column with the labels; empty where unknown.
    work : path-like or URL
        Folder for everything between; all workers must see it. A second run goes on where the
        first was stopped.
    out : path-like or URL
        Folder for the predictions: a Parquet file per input file with its rows in order.
    id_column : str, optional
        Column that names the rows, unique; by default rows are numbered over all files.
    drop : sequence of str
        Columns to leave out.
    unlabeled : str, optional
        What marks an unknown label, besides an empty cell.
    scale : {"robust", "standard", "minmax", "none"}, default="robust"
        Scale of number columns; see :class:`gdpa.tables.TableEncoder`.
    metric : {"auto", "plain", "importance"}, default="auto"
        Columns as they are, or weighed by the importance that a forest of the labels gives them;
        "auto" asks labels that neither has seen, on a sample.
    n_neighbors : int, default=10
        Neighbours per row.
    recall : float, optional
        Share of the neighbours to find, as in :func:`gdpa.graph.neighbor_graph`.
    label_weight : float, optional
        Weight of the labels; infinite (kept exactly) if not given.
    self_loop : float, optional
        Self-loop gamma, at least 0.01; chosen by leaving labels out if not given.
    class_probabilities : bool, default=False
        Whether to write a column per class.
    n_parts : int, optional
        Parts; by default one per 250,000 rows, with several workers 8 for each if that leaves
        50,000 rows to a part, at most 512. A run that goes on keeps the number it began with.
    tol : float, default=1e-6
        Relative residual of the solve, as in :class:`gdpa.GraphOptions`; the number of steps is
        chosen so that errors shrink by as much.
    random_state : int, default=0
        Seed of the sample and the cells.
    scheduler : str, optional
        Address of a Dask scheduler; by default a local cluster of processes is started;
        "synchronous" runs everything in this process.
    n_workers : int, optional
        Processes of the local cluster; by default one per processor.
    memory_limit : str or float, optional
        Memory of each, as Dask takes it.
    keep : bool, default=False
        Keep the graph and other files that predictions do not need.
    callback : callable, optional
        Told about each task that ends, with an :class:`~gdpa.distributed.Event`.

    Returns
    -------
    FitResult
        What was done. The same input, options and parts give the same predictions, byte by byte,
        however many workers there are and however often some of them were lost.

    Raises
    ------
    ValueError
        If an option is not accepted, the input does not fit together, or the work folder belongs
        to another run.
    """
    options = check_options(
        scale,
        metric,
        n_neighbors,
        recall,
        label_weight,
        self_loop,
        n_parts,
        tol,
        random_state,
        n_workers,
    )
    inputs = look(paths)
    target_type = inputs.column(target, "target column")
    named = [target, *([id_column] if id_column else []), *drop]
    for name in named[1:]:
        inputs.column(name, "column")
    features = [name for name, _ in inputs.schema if name not in named]
    if not features:
        raise TableError(f"{inputs.paths[0]} has no column besides {', '.join(named)}")
    parameters = {
        "inputs": [list(x) for x in zip(inputs.paths, inputs.fingerprints, strict=True)],
        "schema": [list(column) for column in inputs.schema],
        "target": target,
        "id_column": id_column,
        "drop": sorted(drop),
        "unlabeled": unlabeled,
        "class_probabilities": bool(class_probabilities),
        "out": str(out),
        **options,
    }
    folder = open_folder(os.fspath(work))
    with locked(folder):
        manifest = Manifest(folder)
        manifest.open(parameters)
        folder.remove_unfinished()
        manifest.check()
        if "run" not in manifest.data:
            check_space(folder, inputs.n_rows, len(features), n_neighbors)
            manifest.note("run", uuid.uuid4().hex)
        check_out(open_folder(os.fspath(out)), manifest.data["run"])
        with connect(scheduler, n_workers, memory_limit) as client:
            runner = make_runner(client, folder, manifest, callback)
            try:
                return run_stages(runner, inputs, features, target_type, keep)
            finally:
                runner.release()


def make_runner(
    client: Any, folder: Folder, manifest: Manifest, callback: Callable[[Event], None] | None
) -> Runner:
    """Runner on a cluster, or in this process."""
    if client is None:
        return Runner(folder, manifest, callback)
    return DaskRunner(client, folder, manifest, callback)
