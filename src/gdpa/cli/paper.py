"""``gdpa paper``: the paper's system on a table, step by step, as one page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..threads import one_thread
from .files import OutputFiles
from .options import RunOptions, TableOptions, option
from .output import Output, Stages

EMBEDDED = "breast cancer (Wisconsin, diagnostic), from scikit-learn"


@dataclass(frozen=True, kw_only=True)
class PaperOptions(RunOptions):
    """Options of ``gdpa paper``."""

    data: str | None = field(
        default=None,
        metadata={
            "typer": typer.Argument(help="A table, as for gdpa fit; breast cancer if unset.")
        },
    )
    target: str = option("Column of labels.", "--target", "-t", metavar="COLUMN", default="label")
    positive: str | None = option(
        "Class against which all others are put; the most frequent one if unset.", metavar="CLASS"
    )
    drop: list[str] | None = option("Column to ignore; may be repeated.")  # noqa: RUF009
    rows: int = option(
        "Use at most this many rows, drawn at random: the SDP solvers need time and memory.",
        min=10,
        default=200,
    )
    graph: str = option("knn, or full for the paper's graph of all pairs.", default="knn")
    neighbors: int = option("Neighbours per row.", min=1, default=10)
    seed: int = option("Random seed.", min=0, default=0)
    out: str = option("HTML file to write.", "--out", "-o", default="gdpa-paper.html")
    context: typer.Context


@dataclass(frozen=True)
class _Task:
    """Features between 0 and 1, labels or None, the source, and remarks."""

    X: NDArray[np.float64]
    labels: NDArray[Any]
    source: str
    notes: tuple[str, ...] = ()


def paper(options: PaperOptions) -> None:
    r"""Run the paper's system on a table and show every step of it on one page.

    \b
    gdpa paper
    gdpa paper plants.csv --target species --out paper.html
    gdpa paper plants.csv --target species --graph full

    The page shows the similarity graph, the balanced graph of H_bar, the Gershgorin discs before
    and after alignment and the objective of every linear program, the labels of each recovery, the
    proved bound, and the time beside the SDP solvers that are installed. Half of the labels are
    held out; the error on them is the error that the page reports.
    """
    from ..report.paper import CHOSEN, GRAPHS, hold_out, render_paper, run_paper

    with (
        Output("paper", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.data) as files,
        one_thread(),
    ):
        if options.graph not in GRAPHS:
            raise ValueError(f"--graph {options.graph!r} must be knn or full")
        files.claim("--out", options.out, stdout=False)
        with Stages(output) as stages:
            stages.start("reading", options.data or EMBEDDED)
            task = _embedded() if options.data is None else _read(options, output)
            sample = _sample(task, options)
            positive, others, signs = _two_classes(sample.labels, options.positive)
            stages.start("solving", f"{signs.size} rows")
            result = run_paper(
                sample.X,
                signs,
                hold_out(signs, options.seed),
                graph=options.graph,
                n_neighbors=options.neighbors,
                progress=stages.detail,
            )
            stages.start("writing", options.out)
            page = render_paper(
                result,
                title=f"The paper's system: {options.target if options.data else 'diagnosis'} of "
                f"{Path(task.source).name if options.data else 'breast cancer'}",
                classes=(positive, others),
                asked={
                    "data": task.source,
                    "graph": f"{options.neighbors} nearest neighbours"
                    if options.graph == "knn"
                    else "all pairs, exp(-distance squared)",
                    "features": "each column scaled to [0, 1]",
                    "held out": "half of the labels of each class, drawn at random",
                    "seed": str(options.seed),
                },
                command=options.context.obj,
                notes=sample.notes,
            )
            files.text("--out", page)
        chosen = result.row(CHOSEN)
        held_out = int(result.hidden.sum())
        output.result = {
            "rows": int(signs.size),
            "labeled": int(result.problem.n_labeled),
            "held_out": held_out,
            "error": chosen.errors / held_out,
            "recovery": chosen.solution.info["recovery"],
            "objective": chosen.solution.objective,
            "optimum": result.optimum,
            "lower_bound": chosen.solution.lower_bound,
            "methods": [
                {
                    "name": row.name,
                    "program": row.program,
                    "error": row.errors / held_out,
                    "objective": row.solution.objective,
                    "milliseconds": row.milliseconds,
                }
                for row in result.rows
            ],
            "report": str(Path(options.out).absolute()),
        }
        if not options.json:
            header = ["method", "held-out error", "ms"]
            lines = [
                [row.name, f"{100 * row.errors / held_out:.1f} %", f"{row.milliseconds:.3g}"]
                for row in result.rows
            ]
            output.table(header, lines)
            output.write(f"\nPage (open in a browser): {options.out}\n")


def _embedded() -> _Task:
    """Return breast cancer."""
    from sklearn.datasets import load_breast_cancer

    from ..graph import rescale_minmax

    data = load_breast_cancer()
    names = data.target_names[data.target].astype(object)
    return _Task(rescale_minmax(data.data), names, EMBEDDED)


def _read(options: PaperOptions, output: Output) -> _Task:
    """Read and encode the table."""
    from ..graph import rescale_minmax
    from ..tables import TableEncoder
    from ..tables.read import drop_predictions, read_target

    assert options.data is not None
    table = TableOptions(data=options.data).read(output, (), options.target)
    labels, notes = read_target(table, options.target, complete=True)
    table = drop_predictions(table, options.target, [])
    features = table.without([options.target, *(options.drop or ())])
    encoder = TableEncoder(random_state=options.seed)
    X = np.asarray(encoder.fit(features, labels).transform(features), dtype=np.float64)
    return _Task(rescale_minmax(X), labels, table.source, notes)


def _sample(task: _Task, options: PaperOptions) -> _Task:
    """Draw rows at random, those with a label first."""
    n = task.labels.size
    if n <= options.rows:
        return task
    order = np.random.default_rng(options.seed).permutation(n)
    known = np.array([label is not None for label in task.labels])
    order = np.concatenate([order[known[order]], order[~known[order]]])
    keep = np.sort(order[: options.rows])
    note = f"{keep.size} of {n} rows were drawn at random; --rows sets the number."
    return _Task(task.X[keep], task.labels[keep], task.source, (*task.notes, note))


def _two_classes(labels: NDArray[Any], positive: str | None) -> tuple[str, str, NDArray[np.int8]]:
    """Return the names of the two classes and the labels as +1, -1 and 0."""
    counts = Counter(str(label) for label in labels if label is not None)
    first = counts.most_common(1)[0][0] if positive is None else positive
    if first not in counts:
        raise ValueError(f"--positive {first!r} is not a class; classes: {', '.join(counts)}")
    rest = [name for name in counts if name != first]
    if not rest:
        raise ValueError(f"the only class is {first!r}; two are needed")
    others = rest[0] if len(rest) == 1 else "all other classes"
    signs = [0 if label is None else 1 if str(label) == first else -1 for label in labels]
    return first, others, np.array(signs, dtype=np.int8)
