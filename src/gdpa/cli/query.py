"""``gdpa query``: which rows to label next."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from .cells import csv_text
from .files import OutputFiles
from .models import load_model
from .options import Json, ModelFile, Out, Quiet, RawCells
from .output import Output

__all__ = ["register"]

STRATEGIES = ("margin", "entropy", "expected-change")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query")(query)


def query(
    model: ModelFile,
    n: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 20,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="margin, entropy or expected-change.",
            autocompletion=lambda incomplete: [s for s in STRATEGIES if s.startswith(incomplete)],
        ),
    ] = "margin",
    out: Out = None,
    raw: RawCells = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which rows of the fitted table are most worth labelling next, the best first.

    Writes CSV: row (or the column that fit's --id named), prediction, probability, runner-up and
    its probability.
    """
    with Output("query", json=json, quiet=quiet) as output, OutputFiles(model) as files:
        files.claim("--out", out)
        fitted = load_model(model)
        classifier = fitted.model
        chosen = classifier.query(n, strategy)
        P = classifier.state_.probabilities()[chosen]
        order = np.argsort(-P, axis=1, kind="stable")[:, :2]
        best, second = np.sort(P, axis=1)[:, ::-1][:, :2].T
        first_class, second_class = classifier.classes_[order].T
        ids = fitted.about.get("ids")
        names = [int(i) + 1 for i in chosen] if ids is None else [ids[i] for i in chosen]
        header = [
            str(fitted.about.get("id_column") or "row"),
            "prediction",
            "probability",
            "runner_up",
            "runner_up_probability",
        ]
        output.result = {
            "strategy": strategy,
            "rows": [
                dict(zip(["row", *header[1:]], values, strict=True))
                for values in zip(
                    names, first_class, best.tolist(), second_class, second.tolist(), strict=True
                )
            ],
        }
        if out is not None or not json:
            texts = [[f"{p:.4f}" for p in values] for values in (best, second)]
            columns = [names, first_class, texts[0], second_class, texts[1]]
            files.text("--out", csv_text(header, columns, raw=raw))
        if chosen.size < n:
            output.note(f"only {chosen.size} rows have no label")
