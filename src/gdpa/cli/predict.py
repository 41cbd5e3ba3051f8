"""``gdpa predict``: labels of new rows by a model that ``gdpa fit`` kept."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from .files import OutputFiles
from .fit import DataFile, TableFormat, csv_text, show_head, yes_no
from .models import load_model, predictions
from .options import Delimiter, Json, Out, Quiet
from .output import Output
from .progress import Stages

__all__ = ["ModelFile", "register"]

ModelFile = Annotated[str, typer.Argument(help="File that fit --model wrote.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    model: ModelFile,
    data: DataFile,
    out: Out = None,
    all_classes: Annotated[
        bool, typer.Option("--all-classes", help="One more column per class: its probability.")
    ] = False,
    sure: Annotated[
        float | None,
        typer.Option("--sure", min=0.0, max=1.0, help="Below this: unsure. As in fit if unset."),
    ] = None,
    format: TableFormat = None,
    delimiter: Delimiter = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the labels of the rows of DATA by a MODEL.

    Writes CSV: row (or the column that fit's --id named), prediction, probability, unsure.
    """
    with Output("predict", json=json, quiet=quiet) as output, OutputFiles(model, data) as files:
        files.claim("--out", out)
        from ..tables import read_table
        from ..tables.target import label_texts

        with Stages(output, 4) as stages:
            stages.start("model", model)
            fitted = load_model(model)
            stages.start("reading", data)
            table = read_table(data, format=format, delimiter=delimiter)
            X, notes = fitted.features(table)
            for note in notes:
                output.warn(note)
            stages.start("predict", f"{X.shape[0]} rows")
            P = fitted.model.predict_proba(X)
            labels, top, unsure = predictions(
                fitted.model.classes_, P, fitted.sure if sure is None else sure
            )
            stages.start("writing")
            column = fitted.about.get("id_column")
            if column is not None and column in table.names:
                names: list[Any] = label_texts(table.column(column)).tolist()
            else:
                column, names = "row", list(range(1, table.n_rows + 1))
            header = [str(column), "prediction", "probability", "unsure"]
            columns: list[Any] = [names, labels, [f"{p:.4f}" for p in top], yes_no(unsure)]
            if all_classes:
                header += [f"probability of {c}" for c in fitted.model.classes_]
                columns += [[f"{p:.4f}" for p in column] for column in P.T]
            output.result = {
                "rows": table.n_rows,
                "unsure": int(unsure.sum()),
                "predicted": {str(c): int((labels == c).sum()) for c in fitted.model.classes_},
            }
            if out is not None and not (out == "-" and json):
                files.text("--out", csv_text(header, columns))
            elif json:
                output.result["predictions"] = [
                    {"row": name, "prediction": str(label), "probability": p, "unsure": u}
                    for name, label, p, u in zip(
                        names, labels, top.tolist(), unsure.tolist(), strict=True
                    )
                ]
            elif sys.stdout.isatty():
                output.at_end(lambda: show_head(output, csv_text(header, columns)))
            else:
                files.text("--out", csv_text(header, columns))
        output.note(f"{table.n_rows} rows, {int(unsure.sum())} unsure")
