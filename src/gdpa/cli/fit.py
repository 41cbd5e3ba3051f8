"""``gdpa fit``: from a table with a few labels to predictions, a model and a report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from .cells import put_rows
from .files import OutputFiles
from .models import FittedTable, kept_columns, row_names
from .options import (
    ColumnKinds,
    Delimiter,
    Drop,
    Duplicates,
    EdgesDelimiter,
    EdgesFile,
    Encoding,
    Header,
    IdColumn,
    Json,
    Keep,
    Method,
    Out,
    Quiet,
    RawCells,
    Seed,
    SkipUnknown,
    TableFile,
    TableFormat,
    Unlabeled,
    check_duplicates,
    parse_columns,
)
from .output import Output
from .progress import Stages

__all__ = ["register"]

MOST_NOTES = 25  # lines about columns on a terminal
RESCALE = ("robust", "standard", "minmax", "none")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit")(fit)


def fit(
    data: TableFile,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column with the labels; missing: unknown.")
    ],
    out: Out = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Keep the classifier in this file (.npz).")
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", help="Write a report (one HTML page).")
    ] = None,
    unlabeled: Unlabeled = None,
    id_column: IdColumn = None,
    edges: EdgesFile = None,
    skip_unknown: SkipUnknown = False,
    duplicates: Duplicates = "same",
    edges_delimiter: EdgesDelimiter = None,
    drop: Drop = None,
    column: ColumnKinds = None,
    rescale: Annotated[
        str,
        typer.Option("--rescale", help="robust, standard, minmax or none: scale of the numbers."),
    ] = "robust",
    neighbors: Annotated[
        int | None, typer.Option("--neighbors", min=1, help="Neighbours per row; chosen if unset.")
    ] = None,
    method: Method = "committee",
    class_prior: Annotated[
        bool,
        typer.Option("--class-prior", help="Match the classes' shares to those of the labels."),
    ] = False,
    sure: Annotated[
        float,
        typer.Option("--sure", min=0.0, max=1.0, help="Below this probability: unsure."),
    ] = 0.75,
    keep: Keep = False,
    raw: RawCells = False,
    format: TableFormat = None,
    delimiter: Delimiter = None,
    has_header: Header = True,
    encoding: Encoding = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the missing cells of the TARGET column of a table.

    Writes CSV: row (or the --id column), prediction, probability, margin (lead over the second
    class), unsure, known. Numbers are standardised, categories weighted, texts and dates encoded,
    gaps filled; what was done with each column is said, and --column overrides it.

    With --edges rows are linked, too: ends of edges are cells of the --id column, or row numbers
    from 1. The column "links" says how much of each answer the links carry.
    """
    inputs = [path for path in (data, edges) if path is not None]
    with Output("fit", json=json, quiet=quiet) as output, OutputFiles(*inputs) as files:
        if data == "-" and edges == "-":
            raise ValueError("DATA and --edges cannot both be read from standard input")
        check_duplicates(duplicates)
        if rescale not in RESCALE:
            raise ValueError(f"--rescale {rescale!r}; accepted: {', '.join(RESCALE)}")
        kinds = parse_columns(column)
        for name, path in (("--out", out), ("--model", model), ("--report", report)):
            files.claim(name, path)
            if name != "--out" and path == "-":
                raise ValueError(f"{name} needs a file name; only --out can be -")
        with Stages(output, 7 + (edges is not None) + (report is not None)) as stages:
            stages.start("starting", "loading modules")
            from ..estimators import CommitteeClassifier, GraphClassifier, GraphOptions
            from ..estimators.frames import adopt_encoder
            from ..tables import TableEncoder, read_links, read_table, read_target

            stages.start("reading", data)
            as_text = frozenset(n for n, kind in kinds.items() if kind in ("category", "text"))
            if edges is not None and id_column is not None:
                as_text |= {id_column}  # 007 is not 7 where edges are to find it
            table = read_table(
                data,
                format=format,
                delimiter=delimiter,
                encoding=encoding,
                as_text=as_text,
                header=has_header,
            )
            labels, notes = read_target(
                table, target, unlabeled=unlabeled, complete=model is not None
            )
            ids = None if id_column is None else table.column(id_column, "--id column").cells()
            left_out = [target, *([id_column] if id_column else []), *(drop or [])]
            for name in (*left_out, *kinds):
                table.column(name)
            for note in (*table.notes, *notes):
                output.note(note)
            links = None
            if edges is not None:
                stages.start("links", edges)
                links = read_links(
                    edges,
                    row_names(table.n_rows, ids),
                    delimiter=edges_delimiter,
                    duplicates=duplicates,
                    skip_unknown=skip_unknown,
                )
                notes += links.notes
                for note in links.notes:
                    output.note(note)
            output.one_thread_each()
            stages.start("encoding", f"{table.n_rows} rows, {len(table.names)} columns")
            encoder = TableEncoder(columns=kinds, scale=rescale, random_state=seed)
            given = table.without(left_out)
            asked: dict[str, Any] = {
                "unlabeled": None,
                "n_neighbors": neighbors or "auto",
                "class_prior": "labeled" if class_prior else None,
                "random_state": seed,
                "n_jobs": -1,
                "options": GraphOptions(callback=lambda event: _follow(stages, event)),
            }
            classifier: CommitteeClassifier | GraphClassifier
            if method == "committee":
                W = None if links is None else links.W
                classifier = CommitteeClassifier(columns=encoder, **asked).fit(given, labels, W)
            elif links is None:
                features = encoder.fit(given).transform(given)
                classifier = GraphClassifier(method=method, **asked).fit(features, labels)
                adopt_encoder(classifier, encoder)
            else:
                raise ValueError("--edges goes with the default --method committee")
            output.note(f"columns taken as {classifier.columns_.words()}")
            said = classifier.encoder_.notes_
            for note in said[:MOST_NOTES]:
                output.note(note)
            if len(said) > MOST_NOTES:
                more = len(said) - MOST_NOTES
                output.note(
                    f"... and {more} more notes about columns; --json and --report list them"
                )
            output.converged &= bool(classifier.ensemble_.run.converged)
            stages.start("checking", "baselines on left-out labels")
            about = {"target": target, "source": table.source, "sure": sure}
            about |= {"id_column": id_column, "ids": ids}
            points = _points(classifier, table)
            fitted = FittedTable(classifier, about)
            rows = _rows(fitted, labels)
            output.result = _summary(fitted, labels, rows, points)
            output.result["notes"] = [*table.notes, *notes, *classifier.encoder_.notes_]
            stages.start("writing")
            header, columns = kept_columns(table, keep, id_column, ids)
            header += ["prediction", "probability", "margin", "unsure", "known"]
            columns += rows
            if links is not None:
                header.append("links")
                columns.append(classifier.graph_share_)
            put_rows(
                *(output, files, header, columns),
                out=out,
                only=not (model or report),
                raw=raw,
            )
            if model is not None:
                fitted.save(files.path("--model"))
            if report is not None:
                from ..report import gather, render

                stages.start("report")
                page = render(
                    gather(
                        classifier,
                        None if links is None else points,
                        title=f"gdpa: {target} of {Path(table.source).name}",
                        asked={
                            "data": table.source,
                            "target": target,
                            "unlabelled": _mark(unlabeled),
                        }
                        | ({} if edges is None else {"links": edges}),
                        command=_command(data, target, unlabeled, id_column, drop, kinds, rescale)
                        + ("" if has_header else " --no-header")
                        + _links(edges, skip_unknown, duplicates, edges_delimiter)
                        + _settings(classifier),
                        notes=output.result["notes"],
                        table=table.without([id_column] if id_column else []),
                        columns=classifier.columns_,
                        target=target,
                        sure=sure,
                        ids=ids,
                    )
                )
                files.text("--report", page)
        output.result["seconds"] = stages.seconds
        _tell(output, output.result, [p for p in (out, model, report) if p not in (None, "-")])


def _mark(unlabeled: str | None) -> str:
    return "missing cells" + (f" and {unlabeled!r}" if unlabeled is not None else "")


def _command(
    data: str,
    target: str,
    unlabeled: str | None,
    id_column: str | None,
    drop: list[str] | None,
    kinds: Mapping[str, str],
    rescale: str,
) -> str:
    """Command that makes the same predictions again: what concerns the table."""
    words = ["gdpa", "fit", data, "--target", target]
    words += ["--unlabeled", unlabeled] if unlabeled is not None else []
    words += ["--id", id_column] if id_column else []
    for name in drop or []:
        words += ["--drop", name]
    for name, kind in kinds.items():
        words += ["--column", f"{name}={kind}"]
    return shlex.join([*words, "--rescale", rescale])


def _links(edges: str | None, skip: bool, duplicates: str, delimiter: str | None) -> str:
    """What concerns the links."""
    if edges is None:
        return ""
    words = ["--edges", edges, *(["--skip-unknown"] if skip else [])]
    words += ["--duplicates", duplicates] if duplicates != "same" else []
    words += ["--edges-delimiter", delimiter] if delimiter else []
    return " " + shlex.join(words)


def _settings(model: Any) -> str:
    """The rest of the command: what concerns the classifier."""
    words = ["--method", getattr(model, "method", "committee")]
    words += ["--neighbors", str(model.n_neighbors)] if model.n_neighbors != "auto" else []
    words += ["--class-prior"] if model.class_prior else []
    words += ["--seed", str(model.random_state), "--out", "predictions.csv"]
    return " " + shlex.join(words)


def _follow(stages: Stages, event: Mapping[str, Any]) -> None:
    """Move on to the next stage when the classifier says that it has ended one."""
    stage = event.get("stage")
    if stage == "encoding":
        stages.start("graph", f"{event['features']} features")
    elif stage == "graph":
        stages.start("tuning", f"{event['edges']} edges")
    elif stage == "member":
        stages.detail(f"{event['member']} {event['action']}")
    elif stage == "tuning":
        stages.start("solve", f"{event['source']}, {event['tried']} settings tried")
    elif stage == "solve" and "iteration" in event:
        stages.detail(f"iteration {event['iteration']}")


Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]


def _rows(fitted: FittedTable, labels: NDArray[Any]) -> Rows:
    """Prediction, its probability, its lead, unsure, known: for every row."""
    model = fitted.model
    known = np.array([label is not None for label in labels])
    P = model.ensemble_.probabilities()
    codes = np.searchsorted(model.classes_, model.transduction_)
    row = np.arange(codes.size)
    top = P[row, codes]
    others = P.copy()
    others[row, codes] = -np.inf
    unsure = (top < fitted.sure) & ~known
    unsure[model.unreached_] = True
    return model.transduction_, top, top - others.max(axis=1), unsure, known


def _points(model: Any, table: Any) -> Any:
    """The features: a graph of neighbours keeps them, a given one does not."""
    from ..report.data import fitted_points

    found = fitted_points(model.ensemble_.graph)
    return model.encoder_.encode(table)[0] if found is None else found


def _summary(fitted: FittedTable, labels: NDArray[Any], rows: Rows, points: Any) -> dict[str, Any]:
    from ..report.evaluation import baselines

    model = fitted.model
    predicted, _, _, unsure, known = rows
    checked = baselines(model, points)
    return {
        "rows": int(labels.size),
        "labeled": int(known.sum()),
        "classes": {str(c): int((labels == c).sum()) for c in model.classes_},
        "predicted": {str(c): int((predicted[~known] == c).sum()) for c in model.classes_},
        "unsure": int(unsure.sum()),
        "unreached": int(model.unreached_.size),
        "left_out_accuracy": None if checked is None else checked.ours,
        "baseline": None if checked is None else checked.plain(),
        "columns": [
            {"name": p.name, "kind": p.kind, "done": p.done(), "missing": p.missing}
            for p in model.columns_
        ],
        "features": int(model.columns_.n_features),
        "n_neighbors": model.n_neighbors_,
        "edges": int(model.graph_.nnz // 2),
        "members": _members(model),
        "graph_share": _graph_share(model, known),
        "method": getattr(model, "method", "committee"),
        "label_weight": model.label_weight_,
        "self_loop": model.self_loop_,
        "tuning": model.tuning_.source,
        "converged": model.ensemble_.run.converged,
    }


def _members(model: Any) -> dict[str, float] | None:
    """Weights of those who vote."""
    found = model.committee_
    if found is None:
        return None
    return dict(zip(found.names, found.weights.tolist(), strict=True))


def _graph_share(model: Any, known: NDArray[np.bool_]) -> float | None:
    """How much of the answers given links carry; None without any."""
    if not model.ensemble_.linked or known.all():
        return None
    return float(model.graph_share_[~known].mean())


def _tell(output: Output, result: dict[str, Any], written: list[str | None]) -> None:
    """The result in a few lines on stderr."""
    classes = ", ".join(f"{c} {n}" for c, n in result["predicted"].items())
    output.note(f"{result['labeled']} of {result['rows']} rows had a label; predicted: {classes}")
    if result["baseline"] is not None:
        output.note(result["baseline"]["words"])
    if result["graph_share"] is not None:
        output.note(f"the links carry {100 * result['graph_share']:.0f} % of the answers")
    output.note(f"unsure: {result['unsure']} rows")
    for path in written:
        output.note(f"wrote {path}")
