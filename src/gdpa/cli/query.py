"""``gdpa query``: which rows to label next."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from ..csv_text import csv_text
from .files import OutputFiles
from .models import load_model
from .options import Json, Out, Quiet, RawCells
from .output import Output

__all__ = ["register"]

STRATEGIES = ("auto", "margin", "representatives", "discs", "random")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query")(query)


def query(
    model: Annotated[
        str, typer.Argument(help="File that fit --model wrote, or, with --target, a table.")
    ],
    n: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 20,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help=f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}.",
            autocompletion=lambda incomplete: [s for s in STRATEGIES if s.startswith(incomplete)],
        ),
    ] = "auto",
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column of a table without labels (no model needed)."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of the table that names the rows.")
    ] = None,
    out: Out = None,
    raw: RawCells = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which rows are most worth labelling next, the best first.

    Of a fitted table it writes CSV: row (or the column that fit's --id named), prediction,
    probability, runner-up and its probability. With --target it takes a table in which no row has a
    label yet, and writes the rows to label first.
    """
    with Output("query", json=json, quiet=quiet) as output, OutputFiles(model) as files:
        files.claim("--out", out)
        if strategy not in STRATEGIES:
            raise ValueError(f"--strategy {strategy!r}; accepted: {', '.join(STRATEGIES)}")
        if target is not None:
            header, columns = _first_rows(model, target, id_column, n, strategy)
        else:
            if id_column is not None:
                raise ValueError("--id belongs to --target; a model knows its own")
            header, columns = _next_rows(model, n, strategy)
        output.result = {
            "strategy": strategy,
            "rows": [
                dict(zip(["row", *header[1:]], values, strict=True))
                for values in zip(*columns, strict=True)
            ],
        }
        if out is not None or not json:
            texts = [[f"{v:.4f}" if isinstance(v, float) else v for v in c] for c in columns]
            files.text("--out", csv_text(header, texts, raw=raw))
        if len(columns[0]) < n:
            output.note(f"only {len(columns[0])} rows have no label")


def _next_rows(path: str, n: int, strategy: str) -> tuple[list[str], list[list[Any]]]:
    """Questions of a fitted table."""
    fitted = load_model(path)
    classifier = fitted.model
    chosen = classifier.query(n, strategy)
    P = classifier.ensemble_.probabilities()[chosen]
    order = np.argsort(-P, axis=1, kind="stable")[:, :2]
    best, second = np.sort(P, axis=1)[:, ::-1][:, :2].T
    first_class, second_class = classifier.classes_[order].T
    ids = fitted.about.get("ids")
    names = [int(i) + 1 for i in chosen] if ids is None else [ids[i] for i in chosen]
    header = ["prediction", "probability", "runner_up", "runner_up_probability"]
    columns = [names, first_class, best.tolist(), second_class, second.tolist()]
    return [str(fitted.about.get("id_column") or "row"), *header], columns


def _first_rows(
    path: str, target: str, id_column: str | None, n: int, strategy: str
) -> tuple[list[str], list[list[Any]]]:
    """Questions of a table without labels."""
    from ..estimators import CommitteeClassifier
    from ..tables import TableEncoder, read_table

    table = read_table(path)
    if target in table.names:
        known = int((~table.column(target).missing).sum())
        if known:
            raise ValueError(
                f"{table.source}: {known} rows have a label in column {target!r}; fit a model "
                "(gdpa fit --model) and ask that, or label in the browser (gdpa label)"
            )
    ids = None if id_column is None else table.column(id_column, "--id column").cells()
    rest = table.without([target, *([id_column] if id_column else [])])
    X = TableEncoder().fit(rest).transform(rest)
    chosen = CommitteeClassifier().query(min(n, table.n_rows), strategy, X=X)
    names = [int(i) + 1 for i in chosen] if ids is None else [ids[i] for i in chosen]
    return [id_column or "row"], [names]
