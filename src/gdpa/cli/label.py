"""``gdpa label``: label the rows of a table in the browser, a few clicks for all of them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..files import write_text
from .models import FittedTable, load_model
from .options import (
    ColumnKinds,
    Delimiter,
    Drop,
    Encoding,
    Header,
    IdColumn,
    Quiet,
    Seed,
    TableFile,
    TableFormat,
    Unlabeled,
    parse_columns,
)
from .output import Output

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("label")(label)


def label(
    data: TableFile,
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="Column to fill; made where the table has none."),
    ],
    text: Annotated[
        str | None, typer.Option("--text", help="Column with the text to read, shown large.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", help="Column with the picture's file, in the folder of DATA."),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", help="HEIGHTxWIDTH: show rows of numbers as pictures."),
    ] = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    column: ColumnKinds = None,
    class_name: Annotated[
        list[str] | None,
        typer.Option("--class", help="A class with a button from the start; may be repeated."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Go on from the labels and columns of this model file."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Table written at the end; DATA-labelled.csv if unset."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", help="Where every answer is kept at once; OUT.log if unset."),
    ] = None,
    unlabeled: Unlabeled = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    format: TableFormat = None,
    delimiter: Delimiter = None,
    has_header: Header = True,
    encoding: Encoding = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Label the rows of DATA in the browser; the classifier fills in the rest.

    Starts a server that only this machine's browser can reach, and ends with Ctrl-C. Every answer
    is on disk at once; the same command continues where the last one ended.
    """
    with Output("label", quiet=quiet) as output:
        from ..labeling.table_desk import TableSource, open_desk

        source = TableSource(
            data=data,
            target=target,
            text=text,
            image=image,
            shape=_shape(shape),
            id_column=id_column,
            drop=tuple(drop or ()),
            columns=parse_columns(column),
            classes=tuple(class_name or ()),
            unlabeled=unlabeled,
            format=format,
            delimiter=delimiter,
            header=has_header,
            encoding=encoding,
        )
        fitted = None if model is None else load_model(model)
        result = Path(out) if out is not None else _beside(data)
        if result.is_dir() or (data != "-" and result.resolve() == Path(data).resolve()):
            raise ValueError(f"--out {result} is a folder or the input; another name is needed")
        kept = Path(log) if log is not None else result.with_name(result.name + ".log")
        output.one_thread_each()
        desk, exporter, notes = open_desk(
            source,
            log=kept,
            seed=seed,
            encoder=None if fitted is None else fitted.encoder,
            labels=None if fitted is None else _labels(fitted),
            save=_save,
            command=shlex.join(["gdpa", *sys.argv[1:]]) if sys.argv else "",
        )
        for note in notes:
            output.note(note)
        from ..labeling.server import LabelServer

        server = LabelServer(desk, exporter, port=port)
        answered = len(desk.session.labels)
        if answered:
            output.note(f"{answered} rows have a label")
        output.write(f"{server.url}\n")
        sys.stdout.flush()
        output.note(f"answers are kept in {kept}; Ctrl-C ends and writes {result}")
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        server.run()
        if desk.session.labels:
            content, _, _ = exporter.make("table")
            write_text(result, content.decode())
            counts = f"{len(desk.session.labels)} labels, {desk.session.n_rows} predictions"
            output.note(f"{counts}: {result}")


def _beside(data: str) -> Path:
    path = Path("table.csv" if data == "-" else data)
    return path.with_name(f"{path.name.partition('.')[0]}-labelled.csv")


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, cross, width = text.lower().partition("x")
    if not cross or not height.isdigit() or not width.isdigit() or 0 in (int(height), int(width)):
        raise ValueError(f"--shape {text!r} must be HEIGHTxWIDTH, such as 8x8")
    return int(height), int(width)


def _save(classifier: Any, encoder: Any, about: dict[str, Any], path: Path) -> None:
    """Write a model file that takes the rows of the table."""
    if encoder is not None:
        from ..estimators.frames import adopt_encoder

        adopt_encoder(classifier, encoder)
    FittedTable(classifier, about).save(path)


def _labels(fitted: FittedTable) -> Any:
    """Labels that a saved model was fitted on, None where there was none."""
    coding = fitted.model.ensemble_.labels
    labels = np.full(coding.codes.size, None, dtype=object)
    known = coding.codes >= 0
    labels[known] = [str(c) for c in coding.classes[coding.codes[known]].tolist()]
    return labels
