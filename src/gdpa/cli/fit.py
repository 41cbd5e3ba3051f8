"""``gdpa fit``: predict the missing labels of a table; write predictions, model and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..errors import nearest_name
from ..evaluation import METRICS
from ..threads import one_thread
from .files import TABLE_FORMATS, Column, OutputFiles, write_rows, write_table
from .models import FittedTable, Predictions, card_path, first_columns, new_classifier
from .options import (
    ColumnOptions,
    EdgeOptions,
    EmbedOptions,
    OutputOptions,
    RunOptions,
    TableOptions,
    list_methods,
    option,
)
from .output import Output, Stages

if TYPE_CHECKING:
    from ..evaluation import Accuracy
    from ..graph_files import RowLinks
    from ..report.evaluation import Baselines
    from ..tables import Table


@dataclass(frozen=True, kw_only=True)
class FitOptions(RunOptions, OutputOptions, EdgeOptions, EmbedOptions, ColumnOptions, TableOptions):
    """Options of ``gdpa fit``."""

    target: str = option(
        "Column of labels; empty where unknown.",
        "--target",
        "-t",
        metavar="COLUMN",
        default="label",
    )
    coerce: bool = option(
        "Read words among numbers as missing cells.",
        "--coerce",
        default=False,
    )
    model: str | None = option("File to save the classifier to (.npz).", metavar="FILE")
    report: str | None = option("HTML file to write a report to.", metavar="FILE")
    doubts: str | None = option("File to list given labels in that look wrong.", metavar="FILE")
    keep: bool = option("Copy all input columns to the output.", "--keep", default=False)
    neighbors: int | None = option(
        "Neighbours per row; chosen automatically if unset.", metavar="N", min=1
    )
    method: str = option(
        "committee (an ensemble), or a solver from gdpa methods.",
        "--method",
        "-m",
        default="committee",
        autocompletion=list_methods,
    )
    compare: bool = option(
        "Compare with other classifiers.",
        "--compare",
        default=False,
    )
    metric: str = option(
        "What to decide for and report: accuracy, balanced, f1 or auc.", default="accuracy"
    )
    class_prior: bool = option(
        "Make predicted class proportions match the labels.", "--class-prior", default=False
    )
    sure: float = option(
        "Mark predictions below this probability as unsure.", min=0.0, max=1.0, default=0.75
    )
    seed: int = option("Random seed.", min=0, default=0)
    context: typer.Context


@dataclass(frozen=True)
class _Task:
    """Input of the fit; unknown labels are None."""

    table: Table
    labels: NDArray[Any]
    ids: list[str] | None
    links: RowLinks | None
    notes: list[str]


def fit(options: FitOptions) -> None:
    r"""Predict the missing cells of the TARGET column of a table.

    \b
    gdpa fit plants.csv --target species --out predictions.csv --report report.html
    gdpa fit plants.csv --target species --id name --model plants.npz
    gdpa fit papers.csv --target author --id paper --edges continues.txt --out a.csv
    cat plants.csv | gdpa fit - --target species > predictions.csv

    Writes CSV: row (or the --id column), prediction, probability, margin (lead over the second
    class), unsure, known. Numbers, categories, texts and dates are encoded automatically. The log
    lists how each column was encoded; --column overrides it.

    --edges adds links between rows, which are named by the --id column or numbered from 1. The
    output column "links" is the total weight of the models that use the links.
    """
    with (
        Output("fit", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.data, options.edges) as files,
        one_thread(),
    ):
        options.kinds()
        if options.metric not in METRICS:
            raise ValueError(f"--metric {nearest_name(options.metric, list(METRICS))}")
        if options.edges is not None and options.method != "committee":
            raise ValueError(f"--edges requires --method committee, got {options.method!r}")
        files.claim("--out", options.out, formats=TABLE_FORMATS)
        files.claim("--model", options.model, stdout=False)
        files.claim("--report", options.report, stdout=False)
        files.claim("--doubts", options.doubts, stdout=False, formats=TABLE_FORMATS)
        card = None if options.model is None else card_path(options.model)
        files.claim("model card", card, stdout=False)
        with Stages(output) as stages:
            stages.start("starting", "loading modules")
            task = _read(options, output, stages)
            classifier = _fit(options, task, output, stages)
            stages.start("checking", "accuracy on held-out labels")
            about = {"target": options.target, "source": task.table.source, "sure": options.sure}
            named = options.id_column or ("file" if task.ids else None)
            fitted = FittedTable(classifier, about | {"id_column": named, "ids": task.ids})
            predicted = fitted.fitted_rows()
            compared = None
            if options.compare or options.report is not None:
                from ..report.evaluation import baselines

                compared = baselines(classifier, fitted.points(task.table))
            output.result = _summary(fitted, task, predicted, compared)
            stages.start("writing")
            given = first_columns(task.table, options.keep, named, task.ids)
            columns: list[tuple[str, Column]] = list(predicted._asdict().items())
            columns.append(("known", classifier.ensemble_.labels.codes >= 0))
            if task.links is not None:
                columns.append(("links", classifier.graph_share_))
            only = options.model is None and options.report is None
            write_rows(
                output, files, given, columns, out=options.out, only=only, escape=options.escape
            )
            if options.model is not None:
                fitted.save(files.path("--model"))
                title = f"Model card of {Path(options.model).name}"
                files.text("model card", fitted.card(task.table, title))
            if options.doubts is not None:
                _write_doubts(files, options.doubts, fitted, named, task.ids, escape=options.escape)
            if options.report is not None:
                stages.start("report")
                files.text("--report", _report(options, task, fitted, compared))
        output.result["seconds"] = stages.seconds
        _print_summary(options, output, classifier.accuracy_)


def _read(options: FitOptions, output: Output, stages: Stages) -> _Task:
    """Read the table, its target column and the links."""
    from ..tables.read import drop_predictions, notes_on_rows, read_target

    stages.start("reading", options.data)
    kinds = options.kinds()
    named = [] if options.id_column is None else [options.id_column]
    as_text = list(named)  # 007 is not 7
    for name, kind in kinds.items():
        if kind in ("category", "text"):
            as_text.append(name)
    table = options.read(output, as_text, options.target, options.keep or frozenset(named))
    labels, notes = read_target(
        table,
        options.target,
        unlabeled=options.unlabeled,
        complete=options.model is not None,
        numbers_are_classes=kinds.get(options.target) == "category",
    )
    ignored = filter(None, [options.target, options.id_column, *(options.drop or ())])
    notes = (*notes, *notes_on_rows(table.without(list(ignored)), labels.tolist()))
    output.note(*notes)
    ids = None
    if options.id_column is not None:
        ids = table.column(options.id_column, "--id column").cells()
    elif table.names[0] == "file" and Path(options.data).is_dir():
        ids = table.column("file").cells()
    for name in (*(options.drop or ()), *kinds):
        table.column(name)
    n_notes = len(table.notes)
    table = drop_predictions(table, options.target, [*kinds, options.id_column or ""])
    output.note(*table.notes[n_notes:])
    links = None
    if options.edges is not None:
        stages.start("links", options.edges)
        names = ids or [str(i) for i in range(1, table.n_rows + 1)]
        links = options.read_edges(output, names)
        notes += links.notes
    return _Task(table, labels, ids, links, [*table.notes, *notes])


def _fit(options: FitOptions, task: _Task, output: Output, stages: Stages) -> Any:
    """Encode the table and fit the classifier."""
    from ..estimators.frames import adopt_encoder
    from ..tables import TableEncoder

    stages.start("encoding", f"{task.table.n_rows} rows, {len(task.table.names)} columns")
    kinds = options.kinds()
    kinds.pop(options.target, None)  # labels are always text
    embedding = options.embedding(stages.detail) if options.embed else {}
    encoder = TableEncoder(
        columns=kinds, random_state=options.seed, coerce=options.coerce, **embedding
    )
    ignored = filter(None, [options.target, options.id_column, *(options.drop or ())])
    features = task.table.without(list(ignored))
    classifier = new_classifier(
        columns=encoder,
        n_neighbors=options.neighbors,
        method=options.method,
        class_prior=options.class_prior,
        random_state=options.seed,
        callback=partial(_show_progress, stages),
    )
    if options.method == "committee":
        links = () if task.links is None else (task.links.W,)
        classifier.fit(features, task.labels, *links)
    else:
        classifier.fit(encoder.fit(features, task.labels).transform(features), task.labels)
        adopt_encoder(classifier, encoder)
    if options.metric != "accuracy":
        classifier.decide_by(options.metric)
    output.note(f"columns encoded as {classifier.columns_.words()}")
    notes = classifier.encoder_.notes_
    if len(notes) > 8:  # a wide table
        left_out = Counter(p.reason for p in classifier.columns_ if p.encoding is None)
        output.note(*(f"{n} columns ignored: {why}" for why, n in left_out.most_common(3)))
        gaps = sum(p.missing > 0 for p in classifier.columns_)
        output.note(f"{gaps} columns have missing cells; --json and --report list every column")
    else:
        output.note(*notes)
    task.notes.extend(notes)
    output.converged &= bool(classifier.ensemble_.first.run.converged)
    return classifier


def _show_progress(stages: Stages, event: Mapping[str, Any]) -> None:
    """Start the next stage when the classifier finishes one."""
    stage = event.get("stage")
    if stage == "encoding":
        stages.start("graph", f"{event['features']} features")
    elif stage == "graph":
        stages.start("tuning", f"{event['edges']} edges")
    elif stage == "member":
        stages.detail(f"{event['member']} {event['action']}")
    elif stage == "fold":
        stages.detail(f"fold {event['fold']} of {event['of']} predicted")
    elif stage == "tuning":
        stages.start("solve", f"{event['source']}, {event['tried']} settings tried")
    elif stage == "solve" and "iteration" in event:
        stages.detail(f"iteration {event['iteration']}")


def _write_doubts(
    files: OutputFiles,
    out: str,
    fitted: FittedTable,
    id_column: str | None,
    ids: list[str] | None,
    *,
    escape: bool,
) -> None:
    """Write the given labels that the model doubts."""
    found = [] if fitted.model.accuracy_ is None else fitted.model.evaluate().doubts()
    names = [each.row + 1 if ids is None else ids[each.row] for each in found]
    columns: list[tuple[str, Column]] = [
        ("label", [str(each.label) for each in found]),
        ("prediction", [str(each.prediction) for each in found]),
        ("probability of label", np.array([each.label_probability for each in found])),
        ("probability of prediction", np.array([each.prediction_probability for each in found])),
    ]
    given: list[tuple[str, Column]] = [(id_column or "row", names)]
    write_table(files, out, given, columns, escape=escape, option="--doubts")


def _summary(
    fitted: FittedTable, task: _Task, predicted: Predictions, compared: Baselines | None
) -> dict[str, Any]:
    """Return the result for JSON, with the accuracy on held-out labels."""
    model = fitted.model
    labels = task.labels
    codes = model.ensemble_.labels.codes
    known = codes >= 0
    accuracy = model.accuracy_
    counts = np.bincount(codes[known], minlength=model.classes_.size).tolist()
    committee = model.committee_
    linked = model.ensemble_.linked and not known.all()
    return {
        "rows": int(labels.size),
        "labeled": int(known.sum()),
        "classes": dict(zip(map(str, model.classes_), counts, strict=True)),
        "predicted": predicted.counts(model.classes_, ~known),
        "unsure": int(predicted.unsure.sum()),
        "unreached": int(model.unreached_.size),
        "held_out": 0 if accuracy is None else accuracy.n_labels,
        "held_out_accuracy": None if accuracy is None else accuracy.estimate,
        "metric": model.metric_,
        "evaluation": None if accuracy is None else model.evaluate().plain(),
        "accuracy_unknown": model.tuning_.reason or None,
        "doubted_labels": None if accuracy is None else len(model.evaluate().doubts()),
        "baseline": None if compared is None else compared.plain(),
        "columns": [
            {"name": p.name, "kind": p.kind, "done": p.done(), "missing": p.missing}
            for p in model.columns_
        ],
        "features": int(model.columns_.n_features),
        "n_neighbors": model.n_neighbors_,
        "edges": int(model.graph_.nnz // 2),
        "members": None
        if committee is None
        else dict(zip(committee.names, committee.weights.tolist(), strict=True)),
        "graph_share": float(model.graph_share_[~known].mean()) if linked else None,
        "method": getattr(model, "method", "committee"),
        "label_weight": model.label_weight_,
        "self_loop": model.self_loop_,
        "tuning": model.tuning_.source,
        "converged": model.ensemble_.first.run.converged,
        "notes": task.notes,
    }


def _report(
    options: FitOptions, task: _Task, fitted: FittedTable, compared: Baselines | None
) -> str:
    """Return the report as HTML."""
    from ..report import gather, render

    marker = "" if options.unlabeled is None else f" and {options.unlabeled!r}"
    asked = {
        "data": task.table.source,
        "target": options.target,
        "unknown labels": f"missing cells{marker}",
    }
    if options.edges is not None:
        asked["links"] = options.edges
    data = gather(
        fitted.model,
        None if task.links is None else fitted.points(task.table),
        title=f"gdpa: {options.target} of {Path(task.table.source).name}",
        asked=asked,
        command=options.context.obj,
        notes=task.notes,
        table=task.table.without([options.id_column] if options.id_column else []),
        columns=fitted.model.columns_,
        target=options.target,
        sure=options.sure,
        ids=task.ids,
        compared=compared,
    )
    return render(data)


def _print_summary(options: FitOptions, output: Output, accuracy: Accuracy | None) -> None:
    """Print a short summary."""
    result = output.result
    classes = ", ".join(map("{} {}".format, *zip(*result["predicted"].items(), strict=True)))
    output.note(f"{result['labeled']} of {result['rows']} rows had a label; predicted: {classes}")
    output.note(f"accuracy: {accuracy or 'unknown, ' + result['accuracy_unknown']}")
    if options.metric != "accuracy":
        names = {"balanced": "balanced_accuracy", "f1": "macro_f1", "auc": "auc"}
        value = result["evaluation"][names[options.metric]]
        stated = names[options.metric].replace("_", " ").replace("f1", "F1").replace("auc", "AUC")
        output.note(f"{stated}: {'unknown' if value is None else f'{100 * value:.1f} %'}")
    if result["baseline"] is not None:
        output.note(result["baseline"]["words"])
    if result["graph_share"] is not None:
        output.note(f"links account for {100 * result['graph_share']:.0f} % of the predictions")
    output.note(f"uncertain: {result['unsure']} rows")
    if result["doubted_labels"]:
        more = "" if options.doubts else "; --doubts FILE lists them"
        output.note(f"{result['doubted_labels']} given labels look wrong to the model{more}")
    for path in (options.out, options.model, options.report, options.doubts):
        if path not in (None, "-"):
            output.note(f"wrote {path}")
