"""The claims of the paper's text in one table: what it says, what we find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..authors import author_errors, author_times
from ..methods import METHODS
from ..protocol import PAPER_DATASETS, RESCALINGS
from ..published import (
    LEMMA1_MEAN,
    LP_COUNT,
    SPEEDUP_MADELON,
    SPEEDUP_MEAN,
    TABLE1,
    TABLE2_MEANS,
)
from ..store import Row
from ..tables import Cell, Table, difference, make_table
from .base import finished_rows
from .runtime import ratios
from .table1 import mean_errors
from .table2_results import UNDETERMINED, Results

_Line = tuple[Cell, ...]


def claims_table(rows: Mapping[str, Sequence[Row]]) -> Table | None:
    """Return the claims beside what was computed.

    Parameters
    ----------
    rows : mapping of str to sequence of Row
        Rows by experiment.

    Returns
    -------
    Table or None
        None where the rows say nothing about any claim.
    """
    lines = [
        *_restoration(rows.get("table1", ())),
        *_classification(Results.of(rows.get("table2", ()))),
        *_times(rows.get("runtime", ())),
    ]
    lemma1, warm_start = (finished_rows(rows.get(k, ())) for k in ("lemma1", "warm-start"))
    gaps = [r.values["gap"] for r in lemma1 if r.params["method"] == "gdpa-published"]
    if gaps:
        lines.append(_line("mean of λmin(H) − λmin(H̄)", LEMMA1_MEAN, float(np.mean(gaps))))
    if warm_start:
        cold, warm = (np.mean([r.values[k] for r in warm_start]) for k in ("cold", "warm"))
        claim = "a warm start saves iterations of the first eigenvector"
        lines.append((claim, "significantly", f"{warm:.1f} instead of {cold:.1f}", None))
    return make_table("claims", lines) if lines else None


def _line(claim: str, paper: float, ours: float | None) -> _Line:
    return claim, paper, ours, difference(ours, paper)


def _restoration(rows: Sequence[Row]) -> list[_Line]:
    ours = mean_errors(rows)
    cells = {cell for label, cell in ours if label == "SPEC"}
    if not cells or any((label, cell) not in ours for label in TABLE1 for cell in cells):
        return []
    others = [label for label in TABLE1 if label != "SPEC"]
    worst = sum(ours["SPEC", c] > max(ours[label, c] for label in others) for c in cells)
    text = f"{worst} of {len(cells)} cells"
    lines: list[_Line] = [("Table 1: SPEC is the worst in", "12 of 12 cells", text, None)]
    for other in ("SDR", "SNS"):
        paper = float(np.mean(np.subtract(TABLE1["GDPA"], TABLE1[other])))
        found = float(np.mean([ours["GDPA", cell] - ours[other, cell] for cell in cells]))
        claim = f"Table 1: GDPA is like {other}; mean difference in points"
        lines.append(_line(claim, paper, found))
    return lines


def _classification(results: Results) -> list[_Line]:
    lines: list[_Line] = []
    pairs = (
        ("the modified dual is like the relaxation (CDCS)", "modified-dual-admm", "sdr-admm"),
        ("GDPA closely approximates the modified dual", "gdpa-published", "modified-dual-admm"),
        ("BCR is slightly better than GDPA", "bcr-authors", "gdpa-published"),
    )
    for words, first, second in pairs:
        common = frozenset(results.runs.get(first, {})) & frozenset(results.runs.get(second, {}))
        papers = [TABLE2_MEANS[str(METHODS[m].paper)] for m in (first, second)]
        for index, rescaling in enumerate(RESCALINGS if common else ()):
            ours = difference(*(results.mean(m, rescaling, common) for m in (first, second)))
            claim = f"Table 2, {rescaling}: {words}; difference in points"
            lines.append(_line(claim, papers[0][index] - papers[1][index], ours))
    for rescaling in RESCALINGS:
        colon = results.cell("bcr-authors", rescaling, UNDETERMINED)
        if colon is not None:
            claim = f"BCR is poor on colon-cancer, {rescaling} (error in percent)"
            lines.append(_line(claim, author_errors(rescaling, "BCR")[UNDETERMINED], colon))
    counts = [v["iterations"] for v in results.runs.get("gdpa-as-written", {}).values()]
    if counts:
        text = f"{np.mean(counts):.1f} on average, at most {max(counts)}"
        lines.append(("linear programs until convergence", f"fewer than {LP_COUNT}", text, None))
    cuts = [v["converged"] for v in results.runs.get("min-cut", {}).values()]
    if cuts:
        text = f"no: a minimum cut, solved exactly in {sum(cuts)} of {len(cuts)} runs"
        lines.append(("the binary problem is NP-hard", "yes", text, None))
    return lines


def _times(rows: Sequence[Row]) -> list[_Line]:
    lines: list[_Line] = []
    sns, bcr = (ratios(rows, slow, "gdpa-published") for slow in ("sns-authors", "bcr-authors"))
    if len(sns) == len(PAPER_DATASETS):
        mean = float(np.mean(list(sns.values())))
        lines.append(_line("GDPA's mean speed-up over SNS", SPEEDUP_MEAN, mean))
    if "madelon" in sns:
        lines.append(_line("... on madelon", SPEEDUP_MADELON, sns["madelon"]))
    for name, words in (("liver-disorders", "smallest"), ("madelon", "largest")):
        if name in bcr:
            times = [author_times("min-max", c)[name] for c in ("BCR", "GDPA")]
            claim = f"time of BCR over GDPA's on the {words} set ({name}); paper: stored times"
            lines.append(_line(claim, times[0] / times[1], bcr[name]))
    return lines
