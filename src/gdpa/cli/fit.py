"""``gdpa fit``: from a table with a few labels to predictions, a model and a report."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from .files import OutputFiles
from .models import FittedTable
from .options import Delimiter, Json, Method, Out, Quiet
from .output import Output
from .progress import Stages

__all__ = ["DataFile", "TableFormat", "csv_text", "register", "show_head"]

DataFile = Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPZ or LIBSVM; - is CSV.")]
TableFormat = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, parquet, npz or libsvm.")
]
RESCALE = ("minmax", "standard", "none")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit")(fit)


def fit(
    data: DataFile,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column with the labels; empty: unknown.")
    ],
    out: Out = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Keep the classifier in this file (.npz).")
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", help="Write a report (one HTML page).")
    ] = None,
    unlabeled: Annotated[
        str | None, typer.Option("--unlabeled", help="What marks an unknown label, besides empty.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows; not a feature.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to leave out; may be repeated.")
    ] = None,
    rescale: Annotated[
        str, typer.Option("--rescale", help="minmax, standard or none: scale of the columns.")
    ] = "minmax",
    neighbors: Annotated[
        int | None, typer.Option("--neighbors", min=1, help="Neighbours per row; chosen if unset.")
    ] = None,
    method: Method = "gdpa",
    class_prior: Annotated[
        bool,
        typer.Option("--class-prior", help="Match the classes' shares to those of the labels."),
    ] = False,
    sure: Annotated[
        float,
        typer.Option("--sure", min=0.0, max=1.0, help="Below this probability: unsure."),
    ] = 0.75,
    format: TableFormat = None,
    delimiter: Delimiter = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of what is random.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the empty cells of the TARGET column of a table.

    Writes CSV: row (or the --id column), prediction, probability, unsure, known. Numeric columns
    are used as they are, text is one-hot encoded, missing cells are filled, with a word about it.
    """
    with Output("fit", json=json, quiet=quiet) as output, OutputFiles(data) as files:
        if rescale not in RESCALE:
            raise ValueError(f"--rescale {rescale!r}; accepted: {', '.join(RESCALE)}")
        for name, path in (("--out", out), ("--model", model), ("--report", report)):
            files.claim(name, path)
            if name != "--out" and path == "-":
                raise ValueError(f"{name} needs a file name; only --out can be -")
        with Stages(output, 6 + (report is not None)) as stages:
            stages.start("reading", data)
            table, labels, ids, notes = _read(
                data, target, unlabeled, id_column, format, delimiter, model is not None
            )
            from ..tables import FeatureEncoder

            stages.start("encoding", f"{table.n_rows} rows, {len(table.names)} columns")
            left_out = [target, *([id_column] if id_column else []), *(drop or [])]
            for name in left_out:
                table.column(name)
            encoder = FeatureEncoder.fit(table.without(left_out))
            X, _ = encoder.transform(table)
            for note in (*notes, *encoder.notes):
                output.note(note)
            from ..classifier import GDPAClassifier

            output.one_thread_each()
            stages.start("graph", f"{X.shape[0]} rows, {X.shape[1]} features")
            classifier = GDPAClassifier(
                unlabeled=None,
                rescale=None if rescale == "none" else rescale,
                n_neighbors=neighbors or "auto",
                method=method,
                class_prior="labeled" if class_prior else None,
                random_state=seed,
                n_jobs=-1,
                callback=lambda event: _follow(stages, event),
            ).fit(X, labels)
            output.converged &= bool(classifier._fitted.run["converged"])
            stages.start("writing")
            about = {"target": target, "source": table.source, "sure": sure}
            about |= {"id_column": id_column, "ids": ids}
            fitted = FittedTable(classifier, encoder, about)
            rows = _rows(fitted, labels)
            output.result = _summary(fitted, labels, rows)
            output.result["notes"] = [*notes, *encoder.notes]
            _write(output, files, fitted, rows, out, model, other=bool(model or report))
            if report is not None:
                from ..report import gather, render

                stages.start("report")
                page = render(
                    gather(
                        classifier,
                        X,
                        title=f"gdpa: {target} of {Path(table.source).name}",
                        asked={
                            "data": table.source,
                            "target": target,
                            "unlabelled": _mark(unlabeled),
                        },
                        command=_command(data, target, unlabeled, left_out, id_column, classifier),
                        notes=output.result["notes"],
                        table=table.without([id_column] if id_column else []),
                        target=target,
                        sure=sure,
                        ids=ids,
                    )
                )
                files.text("--report", page)
        output.result["seconds"] = stages.seconds
        _tell(output, output.result, [p for p in (out, model, report) if p not in (None, "-")])


def _mark(unlabeled: str | None) -> str:
    return "empty cells" + (f" and {unlabeled!r}" if unlabeled is not None else "")


def _command(
    data: str,
    target: str,
    unlabeled: str | None,
    left_out: list[str],
    id_column: str | None,
    model: Any,
) -> str:
    """Command that makes the same predictions again."""
    words = ["gdpa", "fit", data, "--target", target]
    words += ["--unlabeled", unlabeled] if unlabeled is not None else []
    words += ["--id", id_column] if id_column else []
    for name in left_out:
        words += ["--drop", name] if name not in (target, id_column) else []
    words += ["--rescale", model.rescale or "none", "--method", model.method]
    words += ["--neighbors", str(model.n_neighbors)] if model.n_neighbors != "auto" else []
    words += ["--class-prior"] if model.class_prior else []
    words += ["--seed", str(model.random_state), "--out", "predictions.csv"]
    return shlex.join(words)


def _read(
    data: str,
    target: str,
    unlabeled: str | None,
    id_column: str | None,
    format: str | None,
    delimiter: str | None,
    complete: bool,
) -> tuple[Any, NDArray[Any], list[str] | None, tuple[str, ...]]:
    from ..tables import read_table, read_target
    from ..tables.target import label_texts

    table = read_table(data, format=format, delimiter=delimiter)
    labels, notes = read_target(table, target, unlabeled=unlabeled, complete=complete)
    ids = None
    if id_column is not None:
        ids = label_texts(table.column(id_column, "--id column")).tolist()
    return table, labels, ids, notes


def _follow(stages: Stages, event: Mapping[str, Any]) -> None:
    """Move on to the next stage when the classifier says that it has ended one."""
    stage = event.get("stage")
    if stage == "graph":
        stages.start("tuning", f"{event['edges']} edges")
    elif stage == "tuning":
        stages.start("solve", f"{event['source']}, {event['tried']} settings tried")
    elif stage == "solve" and "iteration" in event:
        stages.detail(f"iteration {event['iteration']}")


Rows = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]


def _rows(fitted: FittedTable, labels: NDArray[Any]) -> Rows:
    """Prediction, its probability, unsure, known: for every row."""
    model = fitted.model
    known = np.array([label is not None for label in labels])
    P = model._fitted.probabilities()
    codes = np.searchsorted(model.classes_, model.transduction_)
    top = P[np.arange(codes.size), codes]
    unsure = (top < fitted.sure) & ~known
    unsure[model.unreached_] = True
    return model.transduction_, top, unsure, known


def csv_text(header: list[str], columns: list[Any]) -> str:
    """Columns as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue()


def yes_no(flags: NDArray[np.bool_]) -> list[str]:
    """Flags as words."""
    return ["yes" if flag else "no" for flag in flags]


def show_head(output: Output, text: str, rows: int = 10) -> None:
    """Show the first rows of a CSV text as a table."""
    lines = list(csv.reader(io.StringIO(text)))
    output.table(lines[0], lines[1 : rows + 1])
    if len(lines) > rows + 1:
        output.note(f"... {len(lines) - rows - 1} more rows; --out FILE keeps them all")


def _write(
    output: Output,
    files: OutputFiles,
    fitted: FittedTable,
    rows: Rows,
    out: str | None,
    model: str | None,
    *,
    other: bool,
) -> None:
    labels, top, unsure, known = rows
    ids = fitted.about["ids"]
    names = list(range(1, labels.size + 1)) if ids is None else ids
    header = [fitted.about["id_column"] or "row", "prediction", "probability", "unsure", "known"]
    columns = [names, labels, [f"{p:.4f}" for p in top], yes_no(unsure), yes_no(known)]
    if out is not None and not (out == "-" and output.json):
        files.text("--out", csv_text(header, columns))
    elif output.json:
        if not other or out == "-":
            output.result["predictions"] = [
                dict(zip(["row", *header[1:]], values, strict=True))
                for values in zip(
                    names, labels, top.tolist(), unsure.tolist(), known.tolist(), strict=True
                )
            ]
    elif sys.stdout.isatty():
        output.at_end(lambda: show_head(output, csv_text(header, columns)))
    elif not other:
        files.text("--out", csv_text(header, columns))
    if model is not None:
        fitted.save(files.path("--model"))


def _summary(fitted: FittedTable, labels: NDArray[Any], rows: Rows) -> dict[str, Any]:
    from ..report.evaluation import left_out_labels

    model = fitted.model
    predicted, _, unsure, known = rows
    checked = left_out_labels(model)
    accuracy = None if checked is None else float((checked.predicted == checked.truth).mean())
    return {
        "rows": int(labels.size),
        "labeled": int(known.sum()),
        "classes": {str(c): int((labels == c).sum()) for c in model.classes_},
        "predicted": {str(c): int((predicted[~known] == c).sum()) for c in model.classes_},
        "unsure": int(unsure.sum()),
        "unreached": int(model.unreached_.size),
        "left_out_accuracy": accuracy,
        "features": int(model.n_features_in_),
        "n_neighbors": model.n_neighbors_,
        "edges": int(model.graph_.nnz // 2),
        "method": model.method,
        "label_weight": model.label_weight_,
        "self_loop": model.self_loop_,
        "tuning": model.tuning_.source,
        "converged": bool(model._fitted.run["converged"]),
    }


def _tell(output: Output, result: dict[str, Any], written: list[str | None]) -> None:
    """The result in a few lines on stderr."""
    classes = ", ".join(f"{c} {n}" for c, n in list(result["predicted"].items())[:8])
    output.note(f"{result['labeled']} of {result['rows']} rows had a label; predicted: {classes}")
    if result["left_out_accuracy"] is not None:
        output.note(
            f"accuracy on labels left out ({result['tuning']}): "
            f"{100 * result['left_out_accuracy']:.1f} %"
        )
    output.note(f"unsure: {result['unsure']} rows")
    for path in written:
        output.note(f"wrote {path}")
