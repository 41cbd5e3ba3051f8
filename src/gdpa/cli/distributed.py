"""``gdpa distributed``: tables and graphs that do not fit on one machine, with Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import typer

from .options import RunOptions, add_command, argument, option
from .output import Output, Stages

if TYPE_CHECKING:
    from ..distributed import Event


@dataclass(frozen=True, kw_only=True)
class ClusterCommand(RunOptions):
    """Options of all commands that need workers, named as in :class:`gdpa.distributed.Workers`."""

    scheduler: str | None = option("Address of a Dask scheduler; local processes if unset.")
    n_workers: int | None = option(
        "Local processes; one per processor if unset.", "--workers", min=1
    )
    memory_limit: str | None = option("Memory per local process, such as 3GB.")
    dashboard: bool = option("Show the address of the Dask dashboard.", default=False)

    def only(self, kind: type) -> dict[str, Any]:
        """Return the options that were set and belong to another options class."""
        names = [f.name for f in fields(kind)]
        return {name: value for name in names if (value := getattr(self, name, None)) is not None}


@dataclass(frozen=True, kw_only=True)
class PredictCommand(ClusterCommand):
    """Options of ``gdpa distributed predict``, named as in :func:`gdpa.distributed.predict`."""

    paths: list[str] = argument("Parquet files, quoted patterns, folders or URLs.")  # noqa: RUF009
    work: str = option("Folder for intermediate files; all workers need access.", default=MISSING)
    out: str = option(
        "Folder for the predictions; one file per input file.", "--out", "-o", default=MISSING
    )
    id_column: str | None = option("Column of unique row names; not used as a feature.", "--id")
    class_probabilities: bool = option(
        "Add a column with the probability of each class.", "--all-classes", default=False
    )


@dataclass(frozen=True, kw_only=True)
class FitCommand(PredictCommand):
    """Options of ``gdpa distributed fit``.

    They are named as in :class:`gdpa.distributed.TableFitOptions`.
    """

    target: str = option(
        "Column with the labels; empty where unknown.", "--target", "-t", default=MISSING
    )
    drop: list[str] | None = option("Column to ignore; may be repeated.")  # noqa: RUF009
    unlabeled: str | None = option("Text that marks an unknown label.")
    self_loop: float | None = option("At least 0.01; chosen on held-out labels if unset.")
    n_parts: int | None = option(
        "Number of parts; from the numbers of rows and workers if unset.", "--parts", min=1
    )
    random_state: int = option("Random seed.", "--seed", min=0, default=0)


@dataclass(frozen=True, kw_only=True)
class PlanCommand(ClusterCommand):
    """Options of ``gdpa distributed plan``, named as in :class:`gdpa.distributed.SpreadOptions`.

    Options that are not set have the defaults of that class.
    """

    edges: list[str] = argument("Parquet files, quoted patterns, folders or URLs.")  # noqa: RUF009
    labels: str = option("Parquet file with the labels of some nodes.", default=MISSING)
    source: str | None = option("Column with one end of each edge; default: source.")
    target: str | None = option("Column with the other end; default: target.")
    weight: str | None = option("Column with the weights; default: weight, or 1 if there is none.")
    node: str | None = option("Column of the labels with the node; default: node.")
    label: str | None = option("Column of the labels with the class; default: label.")
    unlabeled: str | None = option("Text that marks an unknown label.")
    method: str | None = option("harmonic, or poisson for a few labels per class.")
    label_weight: float | None = option("Weight of the labels; by default they are kept.")
    self_loop: float | None = option("Keeps the influence of labels local; default: 0.")
    laplacian: str | None = option("combinatorial (default) or normalized.")
    class_probabilities: bool | None = option(
        "Add a column with the probability of each class.", "--all-classes"
    )
    scores: bool | None = option("Add a column with the score of each class.", "--scores")
    tol: float | None = option("Relative residual of the solve; default: 1e-10.")
    n_parts: int | None = option(
        "Number of parts; from the numbers of edges and workers if unset.", "--parts", min=1
    )
    hash_seed: int | None = option("Seed of the hashes of text identifiers.", min=0)


@dataclass(frozen=True, kw_only=True)
class SpreadCommand(PlanCommand):
    """Options of ``gdpa distributed spread``, named as in :class:`gdpa.distributed.SpreadOptions`.

    Options that are not set have the defaults of that class.
    """

    out: str = option("Folder for the predictions, a row per node.", "--out", "-o", default=MISSING)
    work: str | None = option("Folder for intermediate files; in the output folder if unset.")
    keep: bool = option("Keep the intermediate files.", default=False)


@dataclass(frozen=True, kw_only=True)
class ExportCommand(RunOptions):
    """Options of ``gdpa distributed export``."""

    work: str = option("Folder of the finished fit.", default=MISSING)
    model: str = option("File for the classifier (.npz).", default=MISSING)
    rows: int = option("Rows of the fit to keep.", min=2, default=50_000)
    seed: int = option("Random seed.", min=0, default=0)


def _progress(stages: Stages) -> Callable[[Event], None]:
    """Return a callback that shows the stage, the finished tasks and the time left."""
    seen: list[str] = []

    def show(event: Event) -> None:
        if event.dashboard and event.dashboard not in seen:
            seen.append(event.dashboard)
            stages.start("dashboard", event.dashboard)
        stage = event.stage.partition(", batch")[0]
        if stage not in seen:
            seen.append(stage)
            stages.start(stage)
        left = "" if not event.left else f", about {event.left:.0f} s left"
        share = event.done / max(event.total, 1)
        stages.detail(f"{event.done} of {event.total}{left}", share)

    return show


def fit(options: FitCommand) -> None:
    """Predict the empty cells of the TARGET column of Parquet files.

    Writes one Parquet file per input file: the --id column (or row), prediction, probability. To
    resume an interrupted run, repeat the command. The model is a single neighbour graph; up to a
    million rows `gdpa fit` is usually more accurate.
    """
    with Output("distributed fit", json=options.json, quiet=options.quiet) as output:
        with Stages(output) as stages:
            stages.start("starting", "cluster")
            from ..distributed import TableFitOptions, Workers
            from ..distributed import fit as fit_parts

            settings = options.only(TableFitOptions)
            result = fit_parts(
                options.paths,
                options.target,
                work=options.work,
                out=options.out,
                options=TableFitOptions(**{**settings, "drop": tuple(options.drop or ())}),
                workers=Workers(**options.only(Workers)),
                callback=_progress(stages),
            )
        output.result = asdict(result)
        output.converged &= result.converged
        share = ", ".join(f"{c} {n}" for c, n in list(result.predicted.items())[:8])
        output.note(
            f"{result.labeled} of {result.rows} rows had a label; predicted: {share}",
            f"{result.parts} parts, recall {result.recall:.3f}, self-loop {result.self_loop:g} "
            f"({result.tuning}), {result.steps} steps",
            *result.notes,
            f"wrote {len(result.files)} files to {options.out}",
        )


def predict(options: PredictCommand) -> None:
    """Predict new Parquet files from the --work folder of a finished fit."""
    with Output("distributed predict", json=options.json, quiet=options.quiet) as output:
        with Stages(output) as stages:
            stages.start("starting", "cluster")
            from ..distributed import Workers
            from ..distributed import predict as predict_parts

            result = predict_parts(
                options.paths,
                work=options.work,
                out=options.out,
                id_column=options.id_column,
                class_probabilities=options.class_probabilities,
                workers=Workers(**options.only(Workers)),
                callback=_progress(stages),
            )
        output.result = asdict(result)
        output.note(f"{result.rows} rows; wrote {len(result.files)} files to {options.out}")


def plan(options: PlanCommand) -> None:
    """Estimate time, memory and disk space of a spread, without starting it.

    Takes the options of `gdpa distributed spread`. Reads all edges once, and solves a piece of the
    graph in this process.
    """
    with Output("distributed plan", json=options.json, quiet=options.quiet) as output:
        with Stages(output) as stages:
            stages.start("reading", "edges")
            from ..distributed import SpreadOptions, Workers, forecast_spread

            found = forecast_spread(
                options.edges,
                options.labels,
                options=SpreadOptions(**options.only(SpreadOptions)),
                workers=Workers(**options.only(Workers)),
            )
        output.result = asdict(found) | {"total_seconds": found.total_seconds}
        stages_text = ", ".join(f"{name} {s:.3g} s" for name, s in found.seconds.items())
        output.note(
            f"{found.edges} edges, about {found.nodes} nodes; {found.parts} parts on "
            f"{found.workers} workers",
            f"time: about {found.total_seconds:.3g} s ({stages_text})",
            f"solve: about {found.steps} steps, {found.moved_bytes / 1e9:.3g} GB between workers",
            f"memory: about {found.worker_bytes / 1e9:.2g} GB per worker",
            f"disk: about {found.disk_bytes / 1e9:.3g} GB in the work folder, and the predictions",
        )


def spread(options: SpreadCommand) -> None:
    """Spread a few labels over the nodes of a graph given as weighted EDGES.

    Edges have the columns source, target and, optionally, weight; labels have the columns node and
    label. Identifiers are text or integers. Repeated edges are added up, in either direction. To
    resume an interrupted run, repeat the command.
    """
    with Output("distributed spread", json=options.json, quiet=options.quiet) as output:
        with Stages(output) as stages:
            stages.start("starting", "workers")
            from ..distributed import SpreadOptions, Workers
            from ..distributed import spread as spread_labels

            result = spread_labels(
                options.edges,
                options.labels,
                out=options.out,
                work=options.work,
                options=SpreadOptions(**options.only(SpreadOptions)),
                workers=Workers(**options.only(Workers)),
                keep=options.keep,
                callback=_progress(stages),
            )
        output.result = asdict(result)
        output.converged &= result.converged
        share = ", ".join(f"{c} {n}" for c, n in list(result.predicted.items())[:8])
        output.note(
            f"{result.nodes} nodes, {result.edges} edges, {result.labeled} labels; predicted: "
            f"{share}",
            f"{result.parts} parts, {result.steps} steps, relative residual {result.residual:.1e}",
            *result.notes,
            f"wrote {len(result.files)} files to {options.out}",
        )


def export(options: ExportCommand) -> None:
    """Write a subset of a finished fit as a model file for ``gdpa predict``."""
    with Output("distributed export", json=options.json, quiet=options.quiet) as output:
        from ..distributed import export as export_rows

        classifier = export_rows(
            options.work, options.model, n_rows=options.rows, random_state=options.seed
        )
        kept = int(classifier.label_scores_.shape[0])
        output.result = {"model": options.model, "rows": kept}
        output.note(f"wrote {options.model}: {kept} rows")


distributed = typer.Typer(
    name="distributed",
    help="Parquet tables and graphs that do not fit on one machine, on Dask workers.",
    no_args_is_help=True,
)
for command in (plan, spread, fit, predict, export):
    add_command(distributed, command)
