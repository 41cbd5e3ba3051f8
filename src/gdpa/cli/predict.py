"""``gdpa predict``: predict new rows with a saved model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..evaluation import decide
from .files import TABLE_FORMATS, Column, OutputFiles, write_rows
from .models import first_columns, load_model
from .options import (
    EdgeOptions,
    EmbedOptions,
    OutputOptions,
    RunOptions,
    TableOptions,
    argument,
    option,
)
from .output import Output, Stages


@dataclass(frozen=True, kw_only=True)
class _ModelArgument:
    """The model, the argument before the table."""

    model: str = argument("Model file written by fit --model.")


@dataclass(frozen=True, kw_only=True)
class PredictOptions(
    RunOptions, OutputOptions, EdgeOptions, EmbedOptions, TableOptions, _ModelArgument
):
    """Options of ``gdpa predict``."""

    all_classes: bool = option(
        "Add a column of probabilities for each class.", "--all-classes", default=False
    )
    sure: float | None = option(
        "Mark predictions below this probability as unsure; as in fit if unset.", min=0.0, max=1.0
    )
    keep: bool = option("Copy all input columns to the output.", "--keep", default=False)


def predict(options: PredictOptions) -> None:
    """Predict the labels of the rows of DATA with a MODEL.

    Writes CSV: row (or the --id column of fit), prediction, probability, margin, unsure.

    If the model was fitted with --edges, --edges gives links from new rows to fitted rows, by name.
    The output column "links" is the total weight of the models that use the links.
    """
    with (
        Output("predict", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.model, options.data, options.edges) as files,
    ):
        files.claim("--out", options.out, formats=TABLE_FORMATS)
        with Stages(output) as stages:
            stages.start("starting", "loading modules")
            import gdpa.tables  # noqa: F401

            stages.start("model", options.model)
            fitted = load_model(options.model)
            model = fitted.model
            if fitted.encoder is not None and (options.embed or options.offline):
                fitted.encoder.set_params(**options.embedding(stages.detail))
            stages.start("reading", options.data)
            id_column = fitted.about.get("id_column")
            named = frozenset([str(id_column)] if id_column else [])
            table = options.read(output, fitted.as_text, written=options.keep or named)
            ids = table.column(id_column).cells() if id_column in table.names else None
            W = None
            if options.edges is not None:
                stages.start("links", options.edges)
                known = fitted.about.get("ids")
                if not model.ensemble_.linked:
                    raise ValueError("--edges needs a model that was fitted with --edges")
                if ids is None or known is None:
                    raise ValueError("--edges needs the column of row names given to fit as --id")
                W = options.read_edges(output, ids, [str(name) for name in known]).W
            stages.start("predict", f"{table.n_rows} rows")
            rows = fitted.rows(table)
            drift = None
            if fitted.encoder is not None:
                from ..tables.drift import find_drift

                named_columns = [str(id_column)] if id_column else []
                features = table.without([*named_columns, str(fitted.about.get("target"))])
                drift = find_drift(fitted.encoder.columns_, features, model.ensemble_.n_samples)
                output.note(*drift.notes[:8])
            P = model.predict_proba(rows, adjacency=W)
            codes = P.argmax(axis=1) if model.costs_ is None else decide(P, model.costs_)
            predicted = fitted.predictions(P, codes, options.sure)
            stages.start("writing")
            given = first_columns(table, options.keep, id_column if ids else None, ids)
            columns: list[tuple[str, Column]] = list(predicted._asdict().items())
            if W is not None:
                columns.append(("links", model.graph_share(rows, adjacency=W)))
            if options.all_classes:
                columns += [
                    (f"probability of {c}", np.ascontiguousarray(p))
                    for c, p in zip(model.classes_, P.T, strict=True)
                ]
            n_unsure = int(predicted.unsure.sum())
            output.result = {
                "rows": table.n_rows,
                "unsure": n_unsure,
                "predicted": predicted.counts(model.classes_),
                "drift": None if drift is None else list(drift.notes),
                "unlike_fit": None if drift is None else int(drift.unlike.sum()),
            }
            write_rows(output, files, given, columns, out=options.out, escape=options.escape)
        output.note(f"{table.n_rows} rows, {n_unsure} uncertain")
        if drift is not None and drift.unlike.any():
            places = np.flatnonzero(drift.unlike)[:5].tolist()
            listed = ", ".join(str(i + 1) if ids is None else ids[i] for i in places)
            output.note(
                f"{int(drift.unlike.sum())} rows are unlike those of the fit, first: {listed}; the "
                "accuracy of the fit does not hold for them"
            )
