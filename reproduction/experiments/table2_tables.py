"""Tables of the classification errors; none is wider than a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..authors import COLUMNS, author_errors
from ..methods import METHODS
from ..protocol import PAPER_DATASETS, RESCALINGS
from ..published import LP_COUNT, TABLE2_MEANS
from ..store import Row
from ..tables import WORDS, Cell, Table, difference, make_table
from .table2_results import UNDETERMINED, Results


def tables(results: Results, rows: Sequence[Row]) -> list[Table]:
    """Return all tables: means, agreement, linear programs, errors per data set.

    Parameters
    ----------
    results : Results
        What was computed.
    rows : sequence of Row
        All rows, including those without a result.

    Returns
    -------
    list of Table
        The tables that have rows.
    """
    asked = [m for m in METHODS if any(row.params["method"] == m for row in rows)]
    found = [
        _means(results, rows, asked),
        _common(results, asked),
        _agreement(results, asked),
        _programs(results),
    ]
    for rescaling in RESCALINGS:
        found += [_cells(results, asked, rescaling, group) for group in WORDS["groups"]]
        found.append(_authors(results, rescaling))
    return [table for table in found if table.rows]


def _means(results: Results, rows: Sequence[Row], asked: list[str]) -> Table:
    body: list[tuple[Cell, ...]] = []
    # A mean over other sets than the paper's 17 must not stand beside the paper's.
    whole = {row.params["dataset"] for row in rows} == set(PAPER_DATASETS)
    for method, spec in METHODS.items():
        # MOSEK needs a paid licence: without one our interior point stands for it.
        known = "sdr-interior-point" if spec.name == "sdr-mosek" and method not in asked else method
        if known not in asked or (known != method and not whole):
            continue
        # The label is that of the program that ran.
        line: list[Cell] = [METHODS[known].label, spec.paper or ("GLR" if spec.column else None)]
        for index, rescaling in enumerate(RESCALINGS):
            ours = results.mean(known, rescaling)
            theirs = results.authors_mean(known, rescaling, spec.column)
            paper = TABLE2_MEANS[spec.paper][index] if spec.paper and whole else None
            line += [paper, theirs, ours, difference(ours, theirs)]
        lost = sum(row.params["method"] == known and row.status != "ok" for row in rows)
        body.append((*line, results.n_runs(known), lost))
    n_sets = len({row.params["dataset"] for row in rows})
    return make_table("table2-means", body, n=n_sets)


def _common(results: Results, asked: list[str]) -> Table:
    """Means over the runs that all methods have: the only fair comparison if some have fewer."""
    cells = len(RESCALINGS) * len(PAPER_DATASETS)
    complete = [m for m in asked if sum(results.n_sets(m, r) for r in RESCALINGS) == cells]
    common = frozenset.intersection(*(frozenset(results.runs.get(m, {})) for m in complete or [""]))
    body: list[tuple[Cell, ...]] = []
    # Where all have the same runs, the table of means says it already.
    if len({results.n_runs(m) for m in complete}) > 1 and len({k[:2] for k in common}) == cells:
        body = [
            (METHODS[m].label, *(results.mean(m, r, common) for r in RESCALINGS)) for m in complete
        ]
    return make_table("table2-common", body, n=len(common))


def _agreement(results: Results, asked: list[str]) -> Table:
    pairs = [(m, METHODS[m].column) for m in asked]
    if "sdr-interior-point" in asked:
        pairs.append(("sdr-interior-point", "MOSEK"))
    if "vote" in asked:
        pairs += [("vote", column) for column in ("GDPA", "SDcut", "CDCS-20")]
    body: list[tuple[Cell, ...]] = []
    for method, column in pairs:
        if column is not None and results.n_runs(method):
            counts = [results.same_count(method, column, w) for w in (None, UNDETERMINED)]
            points = [
                results.points(method, column, r, w) or 0.0
                for r in RESCALINGS
                for w in (None, UNDETERMINED)
            ]
            texts = [f"{equal} of {n}" for equal, n in counts]
            body.append((METHODS[method].label, column, *texts, *points))
    return make_table("table2-authors", body)


def _programs(results: Results) -> Table:
    body: list[tuple[Cell, ...]] = []
    for method in ("gdpa-as-written", "gdpa-published"):
        counts = [v["iterations"] for v in results.runs.get(method, {}).values()]
        if counts:
            body.append((
                METHODS[method].label, len(counts), f"fewer than {LP_COUNT}",
                float(np.mean(counts)), min(counts), max(counts),
                f"{sum(c < LP_COUNT for c in counts)} of {len(counts)}",
            ))  # fmt: skip
    return make_table("table2-programs", body)


def _cells(results: Results, asked: list[str], rescaling: str, group: str) -> Table:
    methods = [m for m in asked if METHODS[m].group == group and results.n_runs(m)]
    body: list[tuple[Cell, ...]] = []
    for name in PAPER_DATASETS:
        cells = [results.cell(m, rescaling, name) for m in methods]
        if any(cell is not None for cell in cells):
            body.append((name, *cells))
    words = {"rescaling": rescaling, "group": WORDS["groups"][group]}
    file = f"table2-{rescaling}-{group.lower()}"
    return make_table(
        "table2-by-set", body, [METHODS[m].label for m in methods], name=file, **words
    )


def _authors(results: Results, rescaling: str) -> Table:
    """The authors' columns per data set, all runs."""
    names = {key[0] for runs in results.runs.values() for key in runs}
    errors = [author_errors(rescaling, column) for column in COLUMNS]
    body: list[tuple[Cell, ...]] = [
        (name, *(e[name] for e in errors)) for name in PAPER_DATASETS if name in names
    ]
    words = {"rescaling": rescaling, "group": "the authors' stored results"}
    return make_table("table2-by-set", body, COLUMNS, name=f"table2-{rescaling}-authors", **words)
