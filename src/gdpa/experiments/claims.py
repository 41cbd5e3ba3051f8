"""The claims of the paper's text in one table: what it says, what we find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .authors import author_errors, author_times
from .base import finished_rows
from .protocol import RESCALINGS
from .published import (
    LEMMA1_MEAN,
    LP_COUNT,
    SPEEDUP_MADELON,
    SPEEDUP_MEAN,
    TABLE1,
    TABLE2_MEANS,
)
from .runtime import mean_ratio, ratio_on
from .store import Row
from .table1 import mean_errors
from .table2_results import UNDETERMINED, Results
from .tables import Cell, Table, difference

__all__ = ["claims_table"]

_Line = tuple[Cell, ...]


def claims_table(rows: Mapping[str, Sequence[Row]]) -> Table | None:
    """Set the claims beside what was computed.

    Parameters
    ----------
    rows : mapping of str to sequence of Row
        Rows by experiment.

    Returns
    -------
    Table or None
        None where no claim can be looked at.
    """
    lines: list[_Line] = []
    lines += _restoration(rows.get("table1", ()))
    lines += _classification(Results.of(rows.get("table2", ())))
    lines += _times(rows.get("runtime", ()))
    gaps = [
        row.values["gap"]
        for row in finished_rows(rows.get("lemma1", ()))
        if row.params["method"] == "gdpa-published"
    ]
    if gaps:
        lines.append((
            "mean of λmin(H) − λmin(H̄)", f"{LEMMA1_MEAN:.4e}", f"{np.mean(gaps):.4e}",
            f"{np.mean(gaps) - LEMMA1_MEAN:.1e}",
        ))  # fmt: skip
    counts = [
        (row.values["cold"], row.values["warm"])
        for row in finished_rows(rows.get("warm-start", ()))
    ]
    if counts:
        cold, warm = np.mean(counts, axis=0)
        lines.append((
            "a warm start saves iterations of the first eigenvector", "significantly",
            f"{warm:.1f} instead of {cold:.1f}", None,
        ))  # fmt: skip
    if not lines:
        return None
    columns = ("claim", "paper", "ours", "difference")
    return Table("claims", "Claims of the text", columns, tuple(lines))


def _restoration(rows: Sequence[Row]) -> list[_Line]:
    ours = mean_errors(rows)
    cells = {cell for label, cell in ours if label == "SPEC"}
    if not cells or any((label, cell) not in ours for label in TABLE1 for cell in cells):
        return []
    worst = sum(
        ours["SPEC", cell] > max(ours[label, cell] for label in TABLE1 if label != "SPEC")
        for cell in cells
    )
    lines: list[_Line] = [
        ("Table 1: SPEC is the worst in", "12 of 12 cells", f"{worst} of {len(cells)} cells", None)
    ]
    for other in ("SDR", "SNS"):
        paper = float(np.mean(np.subtract(TABLE1["GDPA"], TABLE1[other])))
        found = float(np.mean([ours["GDPA", cell] - ours[other, cell] for cell in cells]))
        lines.append((
            f"Table 1: GDPA is like {other}; mean difference in points", f"{paper:+.2f}",
            f"{found:+.2f}", f"{found - paper:+.2f}",
        ))  # fmt: skip
    return lines


def _classification(results: Results) -> list[_Line]:
    lines: list[_Line] = []
    pairs = (
        ("the modified dual is like the relaxation (CDCS)", "modified-dual-admm", "sdr-admm",
         "CDCS (modified dual)", "CDCS"),
        ("GDPA closely approximates the modified dual", "gdpa-published", "modified-dual-admm",
         "GDPA", "CDCS (modified dual)"),
        ("BCR is slightly better than GDPA", "bcr-authors", "gdpa-published", "BCR", "GDPA"),
    )  # fmt: skip
    for words, first, second, paper_first, paper_second in pairs:
        common = frozenset(results.runs.get(first, {})) & frozenset(results.runs.get(second, {}))
        if not common:
            continue
        paper = [a - b for a, b in zip(TABLE2_MEANS[paper_first], TABLE2_MEANS[paper_second],
                                       strict=True)]  # fmt: skip
        found = [
            difference(*(results.mean(m, rescaling, common) for m in (first, second)))
            for rescaling in RESCALINGS
        ]
        off = [difference(f, p) for f, p in zip(found, paper, strict=True)]
        lines.append((
            f"Table 2: {words}; difference in points (min-max / standardization)",
            *(" / ".join("–" if v is None else f"{v:+.2f}" for v in part)
              for part in (paper, found, off)),
        ))  # fmt: skip
    colon = [results.cell("bcr-authors", r, UNDETERMINED) for r in RESCALINGS]
    if all(c is not None for c in colon):
        stored = [author_errors(r, "BCR")[UNDETERMINED] for r in RESCALINGS]
        lines.append((
            "BCR is poor on colon-cancer (error in percent)",
            " / ".join(f"{s:.1f}" for s in stored), " / ".join(f"{c:.1f}" for c in colon),
            " / ".join(f"{(c or 0.0) - s:+.1f}" for c, s in zip(colon, stored, strict=True)),
        ))  # fmt: skip
    counts = [v["iterations"] for v in results.runs.get("gdpa-as-written", {}).values()]
    if counts:
        lines.append((
            "linear programs until convergence", f"fewer than {LP_COUNT}",
            f"{np.mean(counts):.1f} on average, at most {max(counts)}", None,
        ))  # fmt: skip
    cuts = [v["converged"] for v in results.runs.get("min-cut", {}).values()]
    if cuts:
        lines.append((
            "the binary problem is NP-hard", "yes",
            f"no: a minimum cut, solved exactly in {sum(cuts)} of {len(cuts)} runs", None,
        ))  # fmt: skip
    return lines


def _times(rows: Sequence[Row]) -> list[_Line]:
    lines: list[_Line] = []
    mean = mean_ratio(rows, "sns-authors", "gdpa-published")
    if mean is not None:
        lines.append((
            "GDPA's mean speed-up over SNS", f"{SPEEDUP_MEAN:.0f}", f"{mean:.1f}",
            f"{mean - SPEEDUP_MEAN:+.1f}",
        ))  # fmt: skip
    last = ratio_on(rows, "sns-authors", "gdpa-published", "madelon")
    if last is not None:
        lines.append((
            "... on madelon", f"{SPEEDUP_MADELON:.0f}", f"{last:.1f}",
            f"{last - SPEEDUP_MADELON:+.1f}",
        ))  # fmt: skip
    for name, words in (("liver-disorders", "smallest"), ("madelon", "largest")):
        found = ratio_on(rows, "bcr-authors", "gdpa-published", name)
        if found is not None:
            times = [author_times("min-max", c)[name] for c in ("BCR", "GDPA")]
            stored = times[0] / times[1]
            lines.append((
                f"time of BCR over GDPA's on the {words} set ({name}); paper: stored times",
                f"{stored:.2f}", f"{found:.2f}", f"{found - stored:+.2f}",
            ))  # fmt: skip
    return lines
