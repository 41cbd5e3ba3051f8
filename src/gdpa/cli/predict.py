"""``gdpa predict``: labels of new rows by a model that ``gdpa fit`` kept."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from .cells import put_rows
from .files import OutputFiles
from .models import kept_columns, load_model, predictions
from .options import (
    Delimiter,
    Encoding,
    Json,
    Keep,
    ModelFile,
    Out,
    Quiet,
    RawCells,
    TableFile,
    TableFormat,
)
from .output import Output
from .progress import Stages

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    model: ModelFile,
    data: TableFile,
    out: Out = None,
    all_classes: Annotated[
        bool, typer.Option("--all-classes", help="One more column per class: its probability.")
    ] = False,
    sure: Annotated[
        float | None,
        typer.Option("--sure", min=0.0, max=1.0, help="Below this: unsure. As in fit if unset."),
    ] = None,
    keep: Keep = False,
    raw: RawCells = False,
    format: TableFormat = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the labels of the rows of DATA by a MODEL.

    Writes CSV: row (or the column that fit's --id named), prediction, probability, margin, unsure.
    """
    with Output("predict", json=json, quiet=quiet) as output, OutputFiles(model, data) as files:
        files.claim("--out", out)
        with Stages(output, 5) as stages:
            stages.start("starting", "loading modules")
            from ..tables import read_table

            stages.start("model", model)
            fitted = load_model(model)
            stages.start("reading", data)
            table = read_table(
                data,
                format=format,
                delimiter=delimiter,
                encoding=encoding,
                as_text=fitted.as_text,
            )
            for note in table.notes:
                output.note(note)
            stages.start("predict", f"{table.n_rows} rows")
            P = fitted.model.predict_proba(fitted.rows(table))
            labels, top, margin, unsure = predictions(
                fitted.model.classes_, P, fitted.sure if sure is None else sure
            )
            stages.start("writing")
            column = fitted.about.get("id_column")
            ids = table.column(column).cells() if column in table.names else None
            header, columns = kept_columns(table, keep, column if ids else None, ids)
            header += ["prediction", "probability", "margin", "unsure"]
            columns += [labels, top, margin, unsure]
            if all_classes:
                header += [f"probability of {c}" for c in fitted.model.classes_]
                columns += [np.ascontiguousarray(p) for p in P.T]
            output.result = {
                "rows": table.n_rows,
                "unsure": int(unsure.sum()),
                "predicted": {str(c): int((labels == c).sum()) for c in fitted.model.classes_},
            }
            put_rows(output, files, header, columns, out=out, only=True, raw=raw)
        output.note(f"{table.n_rows} rows, {int(unsure.sum())} unsure")
