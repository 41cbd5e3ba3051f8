"""Whole fits, from features to a class per point, beside those of other packages.

The points are 20 Gaussian clusters in two classes that overlap, and cod-rna. Measurements of more
than a minute run once; packages that would need minutes at a size are left out there.
"""

from __future__ import annotations

from functools import partial

from .classification import pipelines
from .peers import DEFAULT, PEERS, SINGLE_GRAPH, SPREADING
from .runner import Case, Claim, Measurement, Medians, speedup, value_of

OURS = (DEFAULT, SINGLE_GRAPH)
COLUMNS = ("seconds", "cpu_s", "error_percent", "recall", "peak_mb")


def plan_2_000(quick: bool) -> list[Measurement]:
    """A table of the usual size."""
    return pipelines(list(PEERS), n=2_000, share=0.05, limit=60.0)


def plan_100_000(quick: bool, n_features: int = 8) -> list[Measurement]:
    """A large table, with few and with many columns."""
    n = 10_000 if quick else 100_000
    rivals = {name: 1 if n_features == 50 else 2 for name in PEERS if name not in OURS}
    rivals["extra trees"] = 3
    return pipelines(list(PEERS), n=n, n_features=n_features, limit=200.0, repeats=rivals)


def plan_rna(quick: bool) -> list[Measurement]:
    """Real data with many labels: half of the rows."""
    return pipelines(
        [*OURS, SPREADING],
        data="cod-rna",
        n=20_000 if quick else None,
        share=0.5,
        limit=400.0,
        repeats={DEFAULT: 2, SINGLE_GRAPH: 2, SPREADING: 1},
    )


def plan_million(quick: bool) -> list[Measurement]:
    """The largest size that is compared: LabelSpreading takes minutes."""
    repeats = {DEFAULT: 2, SINGLE_GRAPH: 2, SPREADING: 1, "extra trees": 1}
    return pipelines(list(repeats), n=30_000 if quick else 1_000_000, limit=600.0, repeats=repeats)


def plan_ten_million(quick: bool) -> list[Measurement]:
    """The single graph alone: about ten minutes and 7.5 GB."""
    n = 60_000 if quick else 10_000_000
    return pipelines([SINGLE_GRAPH], n=n, limit=3600.0, repeats={SINGLE_GRAPH: 1})


def claims(medians: Medians) -> list[Claim]:
    """Time and error of both classifiers beside LabelSpreading."""
    found = []
    for name in OURS:
        ratio = speedup(medians, name, SPREADING)
        ours, theirs = (value_of(medians, p, "error_percent") for p in (name, SPREADING))
        excess = None if ours is None or theirs is None else ours - theirs
        found += [
            Claim(f"{name}: times as fast as LabelSpreading", ratio, 1.0),
            Claim(f"{name}: error minus LabelSpreading's, points", excess, 0.0, at_least=False),
        ]
    return found


CASES = (
    Case("two-thousand", "2,000 points, 8 features, 5 % labels", plan_2_000, columns=COLUMNS),
    Case(
        "hundred-thousand", "100,000 points, 8 features, 1 % labels", plan_100_000, claims, COLUMNS
    ),
    Case(
        "hundred-thousand-50",
        "100,000 points, 50 features, 1 % labels",
        partial(plan_100_000, n_features=50),
        claims,
        COLUMNS,
    ),
    Case("cod-rna", "cod-rna, 488,565 points, half labelled", plan_rna, claims, COLUMNS),
    Case("million", "1,000,000 points, 8 features, 1 % labels", plan_million, claims, COLUMNS),
)
TEN_MILLION = Case(
    "ten-million",
    "10,000,000 points, 8 features, 1 % labels",
    plan_ten_million,
    columns=("seconds", "graph_s", "tuning_s", "solve_s", "error_percent", "recall", "peak_mb"),
    default=False,
)
