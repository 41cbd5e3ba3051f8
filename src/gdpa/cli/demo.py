"""``gdpa demo``: a comparison and a report, on data that comes with scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from .files import OutputFiles
from .models import new_classifier
from .options import RunOptions, add_command, option
from .output import Output, Stages

__all__ = ["register"]

LABELS_PER_CLASS = 5
HEADER = ("data", "method", "accuracy", "seconds")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(RunOptions):
    """Options of ``gdpa demo``."""

    out: str = option("--out", "-o", help="HTML file of the report.", default="gdpa-report.html")


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, "demo", DemoOptions, demo)


def demo(options: DemoOptions) -> None:
    """Classify two data sets from 5 labels per class, compare, and write a report.

    Needs no download and takes less than a minute on two cores.
    """
    with Output("demo", json=options.json, quiet=options.quiet) as output:
        rows = []
        with OutputFiles() as files, Stages(output) as stages:
            files.claim("--out", options.out, stdout=False)
            output.one_thread_each()
            stages.start("compare")
            for row in _compare():
                rows.append(row)
                stages.detail(f"{row['data']}: {row['method']}")
            stages.start("report", options.out)
            files.text("--out", _report(rows))
        output.result = {
            "table": rows,
            "report": str(Path(options.out).absolute()),
            "seconds": stages.seconds,
        }
        if not options.json:
            output.table(HEADER, [_cells(row) for row in rows])
            output.write(f"\nreport: {options.out}\n")


def _few_labels(y: NDArray[Any], seed: int) -> NDArray[np.bool_]:
    """Draw the same number of labels from every class."""
    rng = np.random.default_rng(seed)
    known = np.zeros(y.size, dtype=bool)
    for c in np.unique(y):
        known[rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False)] = True
    return known


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a line of the comparison as text."""
    return [row["data"], row["method"], f"{100 * row['accuracy']:.1f} %", f"{row['seconds']:.2f}"]


def _compare() -> Iterator[dict[str, Any]]:
    """Run all methods on both data sets; yield means over the draws of the labels."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.semi_supervised import LabelSpreading

    from ..graph import rescale_minmax

    methods: dict[str, Callable[[], Any]] = {
        "gdpa": lambda: new_classifier().set_params(unlabeled=-1),
        "LabelSpreading, knn": lambda: LabelSpreading(kernel="knn"),
        "LabelSpreading, rbf": lambda: LabelSpreading(kernel="rbf"),
    }
    for name, load, draws in (
        ("breast cancer", load_breast_cancer, 10),
        ("digits", load_digits, 1),
    ):
        X, y = load(return_X_y=True)
        Z = rescale_minmax(X)
        for method, new in methods.items():
            right, seconds = [], []
            for draw in range(draws):
                known = _few_labels(y, draw)
                start = time.perf_counter()
                predicted = new().fit(Z, np.where(known, y, -1)).transduction_
                seconds.append(time.perf_counter() - start)
                right.append(float((predicted == y)[~known].mean()))
            means = {"accuracy": float(np.mean(right)), "seconds": float(np.mean(seconds))}
            yield {"data": name, "method": method, **means, "draws": draws}


def _report(rows: list[dict[str, Any]]) -> str:
    """Return the report on breast cancer, with the comparison in front."""
    from sklearn.datasets import load_breast_cancer

    from ..report import gather, render
    from ..report.page import section

    data = load_breast_cancer()
    labels = data.target_names[data.target].astype(object)
    labels[~_few_labels(labels, 0)] = None
    table = dict(zip(data.feature_names.tolist(), data.data.T, strict=True))
    model = new_classifier().fit(table, labels)
    content = gather(
        model,
        None,
        title="gdpa demo: breast cancer from 10 labels",
        asked={
            "data": "breast cancer (Wisconsin, diagnostic), as shipped with scikit-learn",
            "target": "diagnosis; 5 labels per class are given, the others hidden",
        },
        command="gdpa demo",
        table=table,
        columns=model.columns_,
    )
    comparison = section(
        "comparison",
        "Comparison",
        "<p>Accuracy on the hidden labels, given {{ n }} labels per class: mean over 10 draws of "
        "the labels for breast cancer, one draw for digits.</p>{{ html.table(header, rows, "
        "caption='Accuracy on hidden labels', numeric=(2, 3)) }}",
        n=LABELS_PER_CLASS,
        header=HEADER,
        rows=[_cells(row) for row in rows],
    )
    return render(content, first=[comparison])
