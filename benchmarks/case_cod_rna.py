"""cod-rna, all 488,565 points, half of them labelled (standardised columns)."""

from __future__ import annotations

from .classification import pipelines
from .runner import Case, Claim, Measurement, Medians, speedup

OURS, THEIRS = "gdpa", "scikit-learn LabelSpreading"


def plan(quick: bool) -> list[Measurement]:
    """Both, beside each other."""
    return pipelines(
        [OURS, THEIRS],
        data="cod-rna",
        n=20_000 if quick else None,
        share=0.5,
        limit=400.0,
        repeats={OURS: 2, THEIRS: 1},
    )


def claims(medians: Medians) -> list[Claim]:
    """The ratio of the times."""
    return [Claim("times faster than LabelSpreading", speedup(medians, OURS, THEIRS), 1.0)]


CASE = Case(
    "cod-rna",
    "cod-rna, 488,565 points, half labelled",
    plan,
    claims,
    ("seconds", "graph_s", "tuning_s", "solve_s", "error_percent", "recall", "peak_mb"),
)
