"""``gdpa query``: list the rows to label next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .files import TABLE_FORMATS, Column, OutputFiles, rows_as_records, write_table
from .models import load_model, new_classifier
from .options import OutputOptions, RunOptions, argument, option
from .output import Output


@dataclass(frozen=True, kw_only=True)
class QueryOptions(RunOptions, OutputOptions):
    """Options of ``gdpa query``."""

    model: str = argument(
        "Model file written by fit --model; with --target, a table without labels."
    )
    n: int = option("Number of rows.", "-n", min=1, default=20)
    target: str | None = option("Column that will hold the labels of the table.", "--target", "-t")
    id_column: str | None = option("Column of row names of the table.", "--id")


def query(options: QueryOptions) -> None:
    """List the rows to label next, best first.

    Writes CSV for a model: row (or the --id column of fit), prediction, probability, the second
    class and its probability. With --target it reads a table without labels and lists the rows to
    label first.
    """
    with (
        Output("query", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.model) as files,
    ):
        files.claim("--out", options.out, formats=TABLE_FORMATS)
        if options.target is not None:
            columns = _rows_of_table(options, options.target)
        else:
            if options.id_column is not None:
                raise ValueError("--id requires --target; a model stores its own row names")
            columns = _rows_of_model(options)
        output.result = {"rows": rows_as_records(columns)}
        if options.out is not None or not options.json:
            write_table(files, options.out, columns[:1], columns[1:], escape=options.escape)
        n_rows = len(columns[0][1])
        if n_rows < options.n:
            output.note(f"only {n_rows} rows have no label")


def _row_names(rows: NDArray[np.intp], ids: list[str] | None) -> list[object]:
    return [int(i) + 1 if ids is None else ids[i] for i in rows]


def _rows_of_model(options: QueryOptions) -> list[tuple[str, Column]]:
    """Return the rows of the fitted table to label next."""
    fitted = load_model(options.model)
    classifier = fitted.model
    chosen = classifier.query(options.n)
    P = classifier.ensemble_.probabilities()[chosen]
    first, second = np.argsort(-P, axis=1, kind="stable")[:, :2].T
    rows = np.arange(chosen.size)
    return [
        (fitted.about.get("id_column") or "row", _row_names(chosen, fitted.about.get("ids"))),
        ("prediction", classifier.classes_[first]),
        ("probability", P[rows, first]),
        ("runner_up", classifier.classes_[second]),
        ("runner_up_probability", P[rows, second]),
    ]


def _rows_of_table(options: QueryOptions, target: str) -> list[tuple[str, Column]]:
    """Return the rows of a table without labels to label first."""
    from ..tables import TableEncoder, read_table

    table = read_table(options.model, target=target)
    known = int((~table.column(target).missing).sum()) if target in table.names else 0
    if known:
        raise ValueError(
            f"{table.source}: {known} rows have a label in column {target!r}; fit a model "
            "(gdpa fit --model) and query the model, or label in the browser (gdpa label)"
        )
    id_column = options.id_column
    ids = None if id_column is None else table.column(id_column, "--id column").cells()
    rest = table.without([target, *([id_column] if id_column else [])])
    X = TableEncoder().fit(rest).transform(rest)
    chosen = new_classifier().query(min(options.n, table.n_rows), X=X)
    return [(id_column or "row", _row_names(chosen, ids))]
