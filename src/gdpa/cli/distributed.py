"""``gdpa distributed``: fit tables larger than one machine, on Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, Quiet
from .output import Output, Stages

if TYPE_CHECKING:
    from ..distributed import Event

__all__ = ["register"]

Parts = Annotated[
    list[str], typer.Argument(help="Parquet files, patterns in quotes, folders, or URLs.")
]
Work = Annotated[
    str, typer.Option("--work", help="Folder for intermediate files that all workers see.")
]
OutFolder = Annotated[
    str, typer.Option("--out", "-o", help="Folder for the predictions, a file per input file.")
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows, unique; not a feature.")
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address of a Dask scheduler; local processes by default."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Local processes; by default one per processor."),
]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", help="Memory per local process, such as 3GB.")
]
AllClasses = Annotated[
    bool, typer.Option("--all-classes", help="Add a column with the probability of each class.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        name="distributed",
        help="Fit tables that are larger than one machine: Parquet files on Dask workers.",
        no_args_is_help=True,
    )
    group.command("fit")(fit)
    group.command("predict")(predict)
    group.command("export")(export)
    app.add_typer(group)


def _progress(stages: Stages) -> Callable[[Event], None]:
    """Return a function that shows the stage, the tasks done, and an estimate."""
    seen: list[str] = []

    def show(event: Event) -> None:
        stage = event.stage.partition(", batch")[0]
        if stage not in seen:
            seen.append(stage)
            stages.start(stage)
        left = "" if not event.left else f", about {event.left:.0f} s left"
        share = event.done / max(event.total, 1)
        stages.detail(f"{event.done} of {event.total}{left}", share)

    return show


def fit(
    parts: Parts,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column with the labels; empty where unknown.")
    ],
    work: Work,
    out: OutFolder,
    id_column: Id = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to ignore; may be repeated.")
    ] = None,
    unlabeled: Annotated[
        str | None,
        typer.Option("--unlabeled", help="Text that marks an unknown label."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="Scale of numbers: robust, standard, minmax or none.")
    ] = "robust",
    metric: Annotated[
        str, typer.Option("--metric", help="Weights of features: importance or plain.")
    ] = "importance",
    neighbors: Annotated[int, typer.Option("--neighbors", min=1, help="Neighbours per row.")] = 10,
    self_loop: Annotated[
        float | None, typer.Option("--self-loop", help="At least 0.01; chosen by default.")
    ] = None,
    n_parts: Annotated[
        int | None,
        typer.Option("--parts", min=1, help="Parts; by default by rows and workers."),
    ] = None,
    all_classes: AllClasses = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep intermediate files, such as the graph.")
    ] = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the empty cells of the TARGET column of Parquet PARTS.

    Writes a Parquet file per input file: the --id column (or row), prediction, probability. If the
    run is stopped, the same command continues it. The model is a single neighbour graph; up to a
    million rows `gdpa fit` is usually more accurate.
    """
    with Output("distributed fit", json=json, quiet=quiet) as output:
        with Stages(output, 18) as stages:
            stages.start("starting", "cluster")
            from ..distributed import fit as fit_parts

            result = fit_parts(
                parts, target, work=work, out=out, id_column=id_column, drop=drop or (),
                unlabeled=unlabeled, scale=scale, metric=metric, n_neighbors=neighbors,
                self_loop=self_loop, class_probabilities=all_classes, n_parts=n_parts,
                random_state=seed, scheduler=scheduler, n_workers=workers,
                memory_limit=memory_limit, keep=keep, callback=_progress(stages),
            )  # fmt: skip
        output.result = asdict(result)
        output.converged &= result.converged
        share = ", ".join(f"{c} {n}" for c, n in list(result.predicted.items())[:8])
        output.note(f"{result.labeled} of {result.rows} rows had a label; predicted: {share}")
        output.note(
            f"{result.parts} parts, recall {result.recall:.3f}, self-loop {result.self_loop:g} "
            f"({result.tuning}), {result.steps} steps"
        )
        for note in result.notes:
            output.note(note)
        output.note(f"wrote {len(result.files)} files to {out}")


def predict(
    parts: Parts,
    work: Work,
    out: OutFolder,
    id_column: Id = None,
    all_classes: AllClasses = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict new Parquet PARTS with the --work folder of a finished fit."""
    with Output("distributed predict", json=json, quiet=quiet) as output:
        with Stages(output, 4) as stages:
            stages.start("starting", "cluster")
            from ..distributed import predict as predict_parts

            result = predict_parts(
                parts, work=work, out=out, id_column=id_column, class_probabilities=all_classes,
                scheduler=scheduler, n_workers=workers, memory_limit=memory_limit,
                callback=_progress(stages),
            )  # fmt: skip
        output.result = asdict(result)
        output.note(f"{result.rows} rows; wrote {len(result.files)} files to {out}")


def export(
    work: Work,
    model: Annotated[str, typer.Option("--model", help="File for the classifier (.npz).")],
    rows: Annotated[int, typer.Option("--rows", min=2, help="Rows of the fit to keep.")] = 50_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a subset of a finished fit as a model file for ``gdpa predict``."""
    with Output("distributed export", json=json, quiet=quiet) as output:
        from ..distributed import export as export_rows

        classifier = export_rows(work, model, n_rows=rows, random_state=seed)
        kept = int(classifier.label_scores_.shape[0])
        output.result = {"model": model, "rows": kept}
        output.note(f"wrote {model}: {kept} rows")
