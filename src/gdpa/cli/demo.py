"""``gdpa demo``: compare classifiers on scikit-learn's data sets, and write a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..threads import one_thread
from .files import OutputFiles
from .models import new_classifier
from .options import RunOptions, option
from .output import Output, Stages

LABELS_PER_CLASS = 5
DRAWS = 3
CAPTION = f"Accuracy with {LABELS_PER_CLASS} labels per class, mean over {DRAWS} random draws"


@dataclass(frozen=True, kw_only=True)
class DemoOptions(RunOptions):
    """Options of ``gdpa demo``."""

    out: str = option(
        "HTML file to write the report to.", "--out", "-o", default="gdpa-report.html"
    )


def demo(options: DemoOptions) -> None:
    """Classify three data sets from 5 labels per class, compare classifiers, and write a report.

    Needs no download and takes less than 20 seconds on two cores.
    """
    with Output("demo", json=options.json, quiet=options.quiet) as output:
        with OutputFiles() as files, Stages(output) as stages, one_thread():
            files.claim("--out", options.out, stdout=False)
            rows = []
            models = []
            stages.start("compare")
            for row, model in _compare():
                rows.append(row)
                models.append(model)
                stages.detail(f"{row['data']}: {row['method']}")
            stages.start("report", options.out)
            headline, page = _report(rows, models[0])
            files.text("--out", page)
        path = str(Path(options.out).absolute())
        output.result = {"headline": headline, "table": rows, "report": path}
        output.result["seconds"] = stages.seconds
        if not options.json:
            output.write(f"{headline}.\n\n{CAPTION}:\n\n")
            output.table(*_as_table(rows))
            output.write(
                f"\nReport (open in a browser):   {options.out}\n"
                "Your own table, some labels:  gdpa fit yourfile.csv --target COLUMN\n"
                "Your own table, no labels:    gdpa label yourfile.csv --target COLUMN\n"
            )


def _few_labels(y: NDArray[Any], seed: int) -> NDArray[np.bool_]:
    """Draw the same number of labels from every class."""
    rng = np.random.default_rng(seed)
    known = np.zeros(y.size, dtype=bool)
    for c in np.unique(y):
        known[rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False)] = True
    return known


def _as_table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the comparison with a row per data set and a column per method."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(row["data"], [row["data"]]).append(f"{100 * row['accuracy']:.1f} %")
    return ["data", *methods], list(lines.values())


def _compare() -> Iterator[tuple[dict[str, Any], Any]]:
    """Run each method on each data set; yield the mean over the draws, and the first model."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.semi_supervised import LabelSpreading

    from ..estimators import GDPAClassifier
    from ..graph import rescale_minmax

    methods: dict[str, Callable[[], Any]] = {
        "committee": new_classifier,
        "GDPAClassifier": GDPAClassifier,
        "LabelSpreading": lambda: LabelSpreading(kernel="knn"),
        "logistic regression": lambda: LogisticRegression(max_iter=1000),
        "random forest": lambda: RandomForestClassifier(random_state=0),
    }
    sets = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
    for name, load in sets.items():
        data = load()
        y = data.target
        Z = rescale_minmax(data.data)
        named = data.target_names[y].astype(object)
        # Tables are given with column names, pictures as an array of pixels.
        table = dict(zip(data.feature_names, data.data.T, strict=True)) if name != "digits" else Z
        for method, new in methods.items():
            accuracies = []
            seconds = []
            models = []
            for draw in range(DRAWS):
                known = _few_labels(y, draw)
                start = time.perf_counter()
                model = new()
                if method == "committee":
                    labels = np.where(known, named, None)
                    right = (model.fit(table, labels).transduction_ == named)[~known]
                elif method in ("GDPAClassifier", "LabelSpreading"):
                    right = (model.fit(Z, np.where(known, y, -1)).transduction_ == y)[~known]
                else:
                    right = model.fit(Z[known], y[known]).predict(Z[~known]) == y[~known]
                seconds.append(time.perf_counter() - start)
                accuracies.append(float(right.mean()))
                models.append(model)
            means = {"accuracy": float(np.mean(accuracies)), "seconds": float(np.mean(seconds))}
            yield {"data": name, "method": method, **means, "draws": DRAWS}, models[0]


def _report(rows: list[dict[str, Any]], model: Any) -> tuple[str, str]:
    """Return a headline about the first row of the comparison, and the report on its first draw."""
    from sklearn.datasets import load_breast_cancer

    from ..report import gather, render
    from ..report.page import section

    data = load_breast_cancer()
    table = dict(zip(data.feature_names.tolist(), data.data.T, strict=True))
    known = int((model.ensemble_.labels.codes >= 0).sum())
    right = 100 * rows[0]["accuracy"]
    headline = (
        f"Breast cancer: {known} labels, {data.target.size - known} rows, {right:.1f} % correct "
        f"(mean over {DRAWS} draws of the labels)"
    )
    content = gather(
        model,
        None,
        title=headline,
        asked={
            "data": "breast cancer (Wisconsin, diagnostic), from scikit-learn",
            "target": "diagnosis; 5 labels per class are given, the rest are hidden",
            "labels": f"the first of the {DRAWS} draws",
        },
        command="gdpa demo",
        table=table,
        columns=model.columns_,
    )
    header, lines = _as_table(rows)
    comparison = section(
        "comparison",
        "Comparison",
        "{{ html.table(header, rows, caption=caption, numeric=numeric, row_headers=true) }}",
        numeric=tuple(range(1, len(header))),
        caption=CAPTION,
        header=header,
        rows=lines,
    )
    return headline, render(content, first=[comparison])
