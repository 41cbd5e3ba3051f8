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
    Duplicates,
    EdgesDelimiter,
    EdgesFile,
    Encoding,
    Header,
    Json,
    Keep,
    ModelFile,
    Out,
    Quiet,
    RawCells,
    SkipUnknown,
    TableFile,
    TableFormat,
    check_duplicates,
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
    edges: EdgesFile = None,
    skip_unknown: SkipUnknown = False,
    duplicates: Duplicates = "same",
    edges_delimiter: EdgesDelimiter = None,
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
    has_header: Header = True,
    encoding: Encoding = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the labels of the rows of DATA by a MODEL.

    Writes CSV: row (or the column that fit's --id named), prediction, probability, margin, unsure.

    A model that was fitted with --edges takes --edges of the new rows, too: links between their
    names and those of fitted rows. The column "links" says how much of each answer they carry.
    """
    inputs = [path for path in (model, data, edges) if path is not None]
    with Output("predict", json=json, quiet=quiet) as output, OutputFiles(*inputs) as files:
        if data == "-" and edges == "-":
            raise ValueError("DATA and --edges cannot both be read from standard input")
        check_duplicates(duplicates)
        files.claim("--out", out)
        with Stages(output, 5 + (edges is not None)) as stages:
            stages.start("starting", "loading modules")
            from ..tables import read_links, read_table

            stages.start("model", model)
            fitted = load_model(model)
            stages.start("reading", data)
            table = read_table(
                data,
                format=format,
                delimiter=delimiter,
                encoding=encoding,
                as_text=fitted.as_text,
                header=has_header,
            )
            for note in table.notes:
                output.note(note)
            column = fitted.about.get("id_column")
            ids = table.column(column).cells() if column in table.names else None
            links = None
            if edges is not None:
                stages.start("links", edges)
                known = fitted.nodes(edges)
                if ids is None:
                    raise ValueError(f"--edges needs the column {column!r}, which names the rows")
                found = read_links(
                    edges,
                    ids,
                    known,
                    delimiter=edges_delimiter,
                    duplicates=duplicates,
                    skip_unknown=skip_unknown,
                )
                links = found.W
                for note in found.notes:
                    output.note(note)
            stages.start("predict", f"{table.n_rows} rows")
            rows = fitted.rows(table)
            P = fitted.model.predict_proba(rows, adjacency=links)
            labels, top, margin, unsure = predictions(
                fitted.model.classes_, P, fitted.sure if sure is None else sure
            )
            stages.start("writing")
            header, columns = kept_columns(table, keep, column if ids else None, ids)
            header += ["prediction", "probability", "margin", "unsure"]
            columns += [labels, top, margin, unsure]
            if links is not None:
                header.append("links")
                columns.append(fitted.model.graph_share(rows, adjacency=links))
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
