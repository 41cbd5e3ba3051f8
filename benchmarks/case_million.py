"""A million points from features to labels: whole pipelines, one run.

1,000,000 points, 8 features, 20 Gaussian clusters in two classes, 1 % labels. On request ten
millions, ours alone: about ten minutes and 7.5 GB.
"""

from __future__ import annotations

from .classification import committee_claims, pipelines
from .runner import Case, Claim, Measurement, Medians, speedup, value_of

OURS, THEIRS = "gdpa", "scikit-learn LabelSpreading"
COMMITTEE = "gdpa, committee"


def plan(quick: bool) -> list[Measurement]:
    """Ours twice around theirs once: theirs takes minutes."""
    n = 30_000 if quick else 1_000_000
    once = {OURS: 2, COMMITTEE: 2, THEIRS: 1, "extra trees": 1}
    return pipelines([OURS, COMMITTEE, THEIRS, "extra trees"], n=n, limit=600.0, repeats=once)


def claims(medians: Medians) -> list[Claim]:
    """What must hold at a million points."""
    ours, theirs = (value_of(medians, peer, "error_percent") for peer in (OURS, THEIRS))
    excess = None if ours is None or theirs is None else ours - theirs
    peak = value_of(medians, OURS, "peak_mb")
    return [
        Claim("whole fit, times faster than LabelSpreading", speedup(medians, OURS, THEIRS), 6.0),
        Claim("error above LabelSpreading's, in points", excess, 0.0, at_least=False),
        Claim("neighbour recall", value_of(medians, OURS, "recall"), 0.97),
        Claim("peak memory, GB", None if peak is None else peak / 1e3, 4.0, at_least=False),
        *committee_claims(medians),
    ]


def plan_ten(quick: bool) -> list[Measurement]:
    """Ours alone: the others would take hours."""
    return pipelines([OURS], n=60_000 if quick else 10_000_000, limit=3600.0, repeats={OURS: 1})


COLUMNS = ("seconds", "graph_s", "tuning_s", "solve_s", "error_percent", "recall", "peak_mb")

CASE = Case("million", "1,000,000 points, 8 features, 1 % labels", plan, claims, COLUMNS)
TEN = Case(
    "ten-million",
    "10,000,000 points, 8 features, 1 % labels",
    plan_ten,
    columns=COLUMNS,
    default=False,
)
