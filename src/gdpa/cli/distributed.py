"""``gdpa distributed``: fits beyond one machine, on Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from .options import Json, Quiet
from .output import Output, Stages

__all__ = ["register"]

Parts = Annotated[
    list[str], typer.Argument(help="Parquet files, patterns in quotes, folders, or URLs.")
]
Work = Annotated[
    str, typer.Option("--work", help="Folder that all workers see; a second run goes on there.")
]
OutFolder = Annotated[
    str, typer.Option("--out", "-o", help="Folder for the predictions, a file per input file.")
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows, unique; not a feature.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", help="Address of a Dask scheduler; a local cluster of processes if unset."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Processes of the local cluster; one per processor."),
]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", help="Memory per local process, such as 3GB.")
]
AllClasses = Annotated[
    bool, typer.Option("--all-classes", help="One more column per class: its probability.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        name="distributed",
        help="Fits beyond one machine: Parquet parts, a work folder, Dask workers.",
        no_args_is_help=True,
    )
    group.command("fit")(fit)
    group.command("predict")(predict)
    group.command("export")(export)
    app.add_typer(group)


def _progress(stages: Stages) -> Callable[[Any], None]:
    """Show the stage, the parts done, and an estimate."""
    seen: list[str] = []

    def show(event: Any) -> None:
        if event.stage not in seen:
            seen.append(event.stage)
            stages.start(event.stage)
        left = "" if not event.left else f", about {event.left:.0f} s left"
        share = event.done / max(event.total, 1)
        stages.detail(f"{event.done} of {event.total}{left}", share)

    return show


def fit(
    parts: Parts,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column with the labels; empty: unknown.")
    ],
    work: Work,
    out: OutFolder,
    id_column: Id = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to leave out; may be repeated.")
    ] = None,
    unlabeled: Annotated[
        str | None, typer.Option("--unlabeled", help="What marks an unknown label, besides empty.")
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="robust, standard, minmax or none: scale of numbers.")
    ] = "robust",
    metric: Annotated[
        str, typer.Option("--metric", help="auto, plain or importance: weight of the columns.")
    ] = "auto",
    neighbors: Annotated[int, typer.Option("--neighbors", min=1, help="Neighbours per row.")] = 10,
    self_loop: Annotated[
        float | None, typer.Option("--self-loop", help="At least 0.01; chosen if unset.")
    ] = None,
    n_parts: Annotated[
        int | None, typer.Option("--parts", min=1, help="Parts; by rows and workers if unset.")
    ] = None,
    all_classes: AllClasses = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the graph and other files between.")
    ] = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of what is random.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the empty cells of the TARGET column of Parquet PARTS.

    Writes a Parquet file per input file: the --id column (or row), prediction, probability. The
    same command goes on where it was stopped.
    """
    with Output("distributed fit", json=json, quiet=quiet) as output:
        with Stages(output, 20) as stages:
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
        for note in result.notes:
            output.note(note)
        share = ", ".join(f"{c} {n}" for c, n in list(result.predicted.items())[:8])
        output.note(f"{result.labeled} of {result.rows} rows had a label; predicted: {share}")
        output.note(
            f"{result.parts} parts, recall {result.recall:.3f}, self-loop {result.self_loop:g} "
            f"({result.tuning}), {result.steps} steps"
        )
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
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the choice.")] = 0,
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
