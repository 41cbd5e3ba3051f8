"""The distributed fit: from Parquet files with a few labels to predictions for all rows.

    sample -> plan -> encode -> sort into parts -> search -> graph -> tuning -> solve -> predictions

The tasks of each stage read the files of earlier stages and write their own. A run that starts
again skips finished stages; see :mod:`gdpa.distributed.manifest`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..checks import check_positive
from ..errors import check_choice
from ..estimators.probabilities import labeled_prior
from ..tables import TableError
from ..tables.encoder import SCALES
from .cluster import Event, Runner, Workers
from .conjugate_gradients import Solve, batches
from .estimator import SelfLoopChoice, choose_self_loop
from .inputs import Inputs, open_inputs
from .neighbor_rows import build_rows
from .neighbors import choose_probes, exact_neighbors, max_duplicates, search_part
from .parts import encode, gather
from .plan import METRICS, check_ids, make_plan, take_sample
from .predictions import predict_part, write_predictions
from .run import open_run
from .solve import PartSolver

# One machine fits the whole ensemble in minutes up to this many rows.
ONE_MACHINE_ROWS = 1_000_000
# Scores with a smaller self-loop reach so far that the table is better fitted on one machine.
MIN_SELF_LOOP = 0.01
# Relative residual of the solve, and the sum of scores that its error may exceed.
TOL = 1e-6
THRESHOLD = 1e-4


@dataclass(frozen=True)
class FitResult:
    """Result of a distributed fit.

    Parameters
    ----------
    rows, labeled : int
        Number of rows, and of labelled rows.
    classes : dict
        Number of labels of each class.
    predicted : dict
        Number of unlabelled rows that were assigned to each class.
    accuracy : float or None
        Held-out accuracy; None if there are too few labels to hold any out.
    n_held_out : int
        Number of held-out labels.
    parts : int
        Number of parts.
    features : int
        Number of features after encoding.
    recall : float
        Share of true neighbours found, measured on a sample.
    cut : float
        Share of the edges between different parts.
    self_loop : float
        The self-loop in use.
    tuning : str
        How the self-loop was chosen.
    steps : int
        Number of steps of the solve.
    converged : bool
        Whether the solve reached its tolerance.
    unreached : int
        Number of rows without a path to a label; they get the most frequent class.
    seconds : dict
        Time of each stage that ran; stages finished by an earlier run are not included.
    notes : tuple of str
        Remarks for the user.
    files : tuple of str
        Files with the predictions.
    """

    rows: int
    labeled: int
    classes: dict[str, int]
    predicted: dict[str, int]
    accuracy: float | None
    n_held_out: int
    parts: int
    features: int
    recall: float
    cut: float
    self_loop: float
    tuning: str
    steps: int
    converged: bool
    unreached: int
    seconds: dict[str, float]
    notes: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TableFitOptions:
    """Options of :func:`fit`.

    Parameters
    ----------
    id_column : str, optional
        Column with unique row identifiers; by default rows are numbered across all files.
    drop : tuple of str
        Columns to ignore.
    unlabeled : str, optional
        Value that marks an unknown label, in addition to an empty cell.
    scale : {"robust", "standard", "minmax", "none"}, default="robust"
        How numeric columns are scaled; see :class:`gdpa.tables.TableEncoder`.
    metric : {"importance", "plain"}, default="importance"
        Whether to weight features by their importance in a random forest, or equally.
    n_neighbors : int, default=10
        Number of neighbours per row.
    recall : float, optional
        Share of the neighbours to find, as in :func:`gdpa.graph.neighbor_graph`.
    self_loop : float, optional
        Self-loop gamma, at least 0.01; chosen by held-out loss if not given.
    class_probabilities : bool, default=False
        Whether to write the probability of every class.
    n_parts : int, optional
        Number of parts. By default one per 250,000 rows; with several workers 8 per worker, as
        long as a part has at least 50,000 rows; at most 512. Does not change if a run is continued.
    random_state : int, default=0
        Random seed.
    """

    id_column: str | None = None
    drop: tuple[str, ...] = ()
    unlabeled: str | None = None
    scale: str = "robust"
    metric: str = "importance"
    n_neighbors: int = 10
    recall: float | None = None
    self_loop: float | None = None
    class_probabilities: bool = False
    n_parts: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("scale", self.scale, SCALES)
        check_choice("metric", self.metric, METRICS)
        check_positive(self.n_neighbors, "n_neighbors", 1)
        check_positive(self.random_state, "random_state", 0)
        if self.n_parts is not None:
            check_positive(self.n_parts, "n_parts", 1)
        recall = self.recall
        self_loop = self.self_loop
        if recall is not None and not (isinstance(recall, int | float) and 0 < recall <= 1):
            raise ValueError(f"recall={recall!r} must be in (0, 1]")
        if self_loop is not None and not (
            isinstance(self_loop, int | float) and MIN_SELF_LOOP <= self_loop < np.inf
        ):
            raise ValueError(
                f"self_loop={self_loop!r} must be a number, at least {MIN_SELF_LOOP}; smaller "
                "values need too many steps: omit it to choose it automatically, or fit on one "
                "machine"
            )


def fit(
    paths: str | Sequence[str],
    target: str,
    *,
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: TableFitOptions | None = None,
    workers: Workers | None = None,
    keep: bool = False,
    callback: Callable[[Event], None] | None = None,
) -> FitResult:
    """Predict the missing labels in a column of Parquet files, on a Dask cluster.

    The model is a single neighbour graph. :class:`gdpa.CommitteeClassifier` is usually more
    accurate on data that fit on one machine.

    Parameters
    ----------
    paths : str or sequence of str
        Parquet files, patterns or folders; paths, or URLs supported by fsspec. All files need the
        same columns.
    target : str
        Column with the labels; empty where unknown.
    work : path-like or URL
        Folder for intermediate files that all workers can access. A second run continues where the
        first was stopped.
    out : path-like or URL
        Folder for the predictions, one Parquet file per input file, with its rows in order.
    options : TableFitOptions, optional
        How to read the table and what to fit.
    workers : Workers, optional
        Where to compute it.
    keep : bool, default=False
        Whether to keep the graph and other files that predictions do not need.
    callback : callable, optional
        Called with an :class:`~gdpa.distributed.Event` whenever a task ends.

    Returns
    -------
    FitResult
        The result. The same input, options and number of parts give the same predictions, byte for
        byte, whatever the number of workers and even if some of them are lost.

    Raises
    ------
    ValueError
        If an option is invalid, columns of the input differ, the work folder belongs to another
        run, or one of its files is damaged.
    """
    options = options or TableFitOptions()
    inputs = open_inputs(paths)
    inputs.column_type(target, "target column")
    special = [target, *([options.id_column] if options.id_column else []), *options.drop]
    for name in special[1:]:
        inputs.column_type(name)
    features = [name for name, _ in inputs.schema if name not in special]
    if not features:
        raise TableError(f"{inputs.paths[0]} has no column besides {', '.join(special)}")
    if inputs.n_rows < 3:
        raise TableError(f"{inputs.paths[0]} has {inputs.n_rows} rows; at least 3 are needed")
    parameters = {
        "inputs": inputs.identities,
        "schema": inputs.schema,
        "target": target,
        "out": str(out),
        **asdict(options),
        "drop": sorted(options.drop),
    }
    need = disk_bytes(inputs.n_rows, len(features), options.n_neighbors)
    with open_run(
        work, out, parameters, need_bytes=need, workers=workers, callback=callback
    ) as runner:
        return _run(runner, inputs, features, keep)


def default_parts(
    n_rows: int, n_workers: int, largest: int = 250_000, smallest: int = 50_000, most: int = 512
) -> int:
    """Return the number of parts: small enough for memory, and 8 per worker of several."""
    parts = -(-n_rows // largest)
    if n_workers > 1:
        parts = max(parts, min(8 * n_workers, max(n_workers, n_rows // smallest)))
    return max(1, min(most, parts))


def _run(runner: Runner, inputs: Inputs, features: list[str], keep: bool) -> FitResult:
    """Run the unfinished stages of a fit."""
    manifest = runner.manifest
    folder = runner.folder
    asked = manifest.parameters
    n = inputs.n_rows
    seed = asked["random_state"]
    k = asked["n_neighbors"]
    plan, starts = _sort_into_parts(runner, inputs, features)
    parts = [{"part": part} for part in range(len(starts) - 1)]
    runner.stage("measure recall", exact_neighbors, parts, seed=seed, n_rows=n)
    search = runner.stage(
        "set search width", choose_probes, n_rows=n, n_neighbors=k, recall=asked["recall"]
    )[0]
    found = runner.stage(
        "search neighbours",
        search_part,
        parts,
        starts=starts,
        n_neighbors=k,
        probes=search["probes"],
        scale=search["scale"],
    )
    ends = [result["ends"] for result in found]
    rows = runner.stage("build graph", build_rows, parts, starts=starts, ends=ends)
    codes, folds = folder.load("plan/plan", "codes", "folds")
    classes = list(plan["classes"])
    halo = [result["halo"] for result in rows]
    nodes = [result["nodes"] for result in rows]
    solver = PartSolver(runner, halo, nodes, memory=runner.worker_memory)
    tuning = choose_self_loop(solver, codes, folds, len(classes), asked["self_loop"])
    columns = tuple((code, -1) for code in range(len(classes)))
    solves = batches(Solve("final scores", tuning.self_loop, columns))
    solved = [solver.scores(solve, TOL) for solve in solves]
    names = [solve.name for solve in solves]
    filled = "rows far from labels"
    any_far = solver.fill(filled, names, THRESHOLD)
    del solver  # releases its futures, so that workers free the graph
    prior = labeled_prior(codes, len(classes)).tolist()
    answers = runner.stage(
        "predict",
        predict_part,
        parts,
        solves=names,
        threshold=THRESHOLD,
        prior=prior,
        sharpness=tuning.sharpness,
        files=np.cumsum([0, *inputs.rows]).tolist(),
        classes=asked["class_probabilities"],
        filled=filled if any_far else None,
    )
    target_type = inputs.column_type(asked["target"])
    files = write_predictions(
        runner,
        inputs,
        [result["ends"] for result in answers],
        asked["out"],
        id_column=asked["id_column"],
        target_type=target_type,
        classes=asked["class_probabilities"],
        plan_url=folder.url,
    )
    model = {
        "classes": classes,
        "starts": starts,
        "features": features,
        "prior": prior,
        "target_type": target_type,
        "sharpness": tuning.sharpness,
        "n_neighbors": k,
        "self_loop": tuning.self_loop,
        "probes": search["probes"],
        "scale": search["scale"],
        "threshold": THRESHOLD,
        "source": inputs.paths[0],
    }
    manifest.note("model", model)
    if not keep:
        unused = ("search neighbours", "build graph", "measure recall", "sample rows", filled)
        for stage in (*unused, *names):
            manifest.discard(stage)
    predicted = np.sum([result["predicted"] for result in answers], axis=0).tolist()
    return FitResult(
        rows=n,
        labeled=int(codes.size),
        classes=plan["classes"],
        predicted=dict(zip(classes, predicted, strict=True)),
        accuracy=tuning.accuracy,
        n_held_out=tuning.n_held_out,
        parts=len(parts),
        features=plan["n_features"],
        recall=search["recall"],
        cut=sum(r["cut"] for r in rows) / max(sum(r["nonzeros"] for r in rows), 1),
        self_loop=tuning.self_loop,
        tuning=tuning.source,
        steps=max(result.steps for result in solved),
        converged=all(result.converged for result in solved),
        unreached=sum(result["unreached"] for result in answers),
        seconds=dict(runner.seconds),
        notes=(*plan["notes"], *_notes(n, np.diff(starts).max(), len(parts), tuning)),
        files=tuple(files),
    )


def _sort_into_parts(
    runner: Runner, inputs: Inputs, features: list[str], ids_per_task: int = 20_000_000
) -> tuple[dict[str, Any], list[int]]:
    """Run the stages up to "sort into parts"; return the plan and each part's first node."""
    manifest = runner.manifest
    n = inputs.n_rows
    options = manifest.parameters
    id_column = options["id_column"]
    if "n_parts" not in manifest.data:  # must not change if the run continues with other workers
        manifest.note("n_parts", options["n_parts"] or default_parts(n, runner.n_workers))
    n_buckets = -(-n // ids_per_task)
    pieces = [{"piece": piece, "number": i} for i, piece in enumerate(inputs.pieces)]
    sampled = runner.stage(
        "sample rows",
        take_sample,
        pieces,
        features=features,
        options=options,
        n_rows=n,
        n_buckets=n_buckets,
    )
    if id_column is not None:
        runner.stage(
            "check identifiers",
            check_ids,
            [{"bucket": bucket} for bucket in range(n_buckets)],
            pieces=inputs.pieces,
            ends=[r["ends"] for r in sampled],
            id_column=id_column,
        )
    # Runs in this process, so that workers need not load scikit-learn.
    plan = runner.stage(
        "plan",
        make_plan,
        here=True,
        n_pieces=len(pieces),
        n_rows=n,
        options=options,
        labels=[r["labels"] for r in sampled],
        source=inputs.paths[0],
        n_parts=manifest.data["n_parts"],
    )[0]
    encoded = runner.stage(
        "encode rows", encode, pieces, features=features, plan_url=runner.folder.url
    )
    gathered = runner.stage(
        "sort into parts",
        gather,
        [{"part": part} for part in range(plan["n_parts"])],
        ends=[r["ends"] for r in encoded],
        max_duplicates=max_duplicates(options["n_neighbors"]),
    )
    manifest.discard("encode rows")
    return plan, [0, *np.cumsum([r["points"] for r in gathered]).tolist()]


def _notes(n_rows: int, largest: int, n_parts: int, tuning: SelfLoopChoice) -> Iterator[str]:
    """Yield remarks about the result."""
    if largest > max(4 * n_rows / n_parts, 250_000):
        yield (
            f"one part has {largest} of {n_rows} rows, because many rows are identical; it needs "
            "more memory than the others"
        )
    yield (
        "the model is a single neighbour graph with one weight per feature, not the ensemble of "
        "`gdpa fit`"
    )
    if n_rows <= ONE_MACHINE_ROWS:
        yield (
            f"{n_rows} rows fit on one machine, where `gdpa fit` is usually more accurate; use "
            f"this command for more than {ONE_MACHINE_ROWS} rows, or if memory is short"
        )
    if tuning.accuracy is None:
        yield "held-out accuracy: not measured, because there are too few labels"
    else:
        yield (
            f"held-out accuracy: {100 * tuning.accuracy:.1f} % of {tuning.n_held_out} held-out "
            "labels (cross-validation)"
        )


def disk_bytes(n_rows: int, n_columns: int, n_neighbors: int) -> float:
    """Return the estimated size of the work folder at its largest."""
    return n_rows * (20.0 * n_columns + 45.0 * n_neighbors + 200.0)
