"""All packages on 100,000 points with 8 and with 50 features, and on 2,000 points."""

from __future__ import annotations

from .classification import committee_claims, pipelines
from .peers import PEERS
from .runner import Case, Claim, Measurement, Medians, speedup, value_of

EVERYONE = [name for name in PEERS if name != "networkx harmonic"]
SPREADING = "scikit-learn LabelSpreading"
RIVALS = ["scikit-learn LabelSpreading", "graphlearning Laplace", "graphlearning Poisson"]
COLUMNS = ("seconds", "error_percent", "recall", "peak_mb")


def plan_8(quick: bool) -> list[Measurement]:
    """The data of the million, a tenth of it."""
    # LabelPropagation needs hundreds of rounds: once is enough.
    return pipelines(
        EVERYONE,
        n=10_000 if quick else 100_000,
        limit=120.0,
        repeats={"scikit-learn LabelPropagation": 1},
    )


def plan_50(quick: bool) -> list[Measurement]:
    """More features: trees do not help any more."""
    return pipelines(
        ["gdpa", "gdpa, committee", *RIVALS],
        n=10_000 if quick else 100_000,
        n_features=50,
        limit=200.0,
        repeats=dict.fromkeys(RIVALS, 2),
    )


def plan_small(quick: bool) -> list[Measurement]:
    """Small enough for a graph of Python objects."""
    return pipelines(list(PEERS), n=2_000, share=0.05, limit=60.0)


def claims_8(medians: Medians) -> list[Claim]:
    """Ratios to the whole pipelines of the others."""
    return [
        Claim(f"times faster than {peer}", speedup(medians, "gdpa", peer), 1.0)
        for peer in EVERYONE[2:]
        if peer != "extra trees"
    ] + [
        *committee_claims(medians),
        Claim(
            f"committee: times faster than {SPREADING}",
            speedup(medians, "gdpa, committee", SPREADING),
            5.0,
        ),
    ]


def claims_50(medians: Medians) -> list[Claim]:
    """Three times faster than each, at no higher error."""
    found = []
    for peer in RIVALS:
        ours, theirs = (value_of(medians, p, "error_percent") for p in ("gdpa", peer))
        excess = None if ours is None or theirs is None else ours - theirs
        found += [
            Claim(f"times faster than {peer}", speedup(medians, "gdpa", peer), 3.0),
            Claim(f"error above that of {peer}, in points", excess, 0.0, at_least=False),
        ]
    return found + committee_claims(medians)


CASES = (
    Case("hundred-thousand", "100,000 points, 8 features, 1 % labels", plan_8, claims_8, COLUMNS),
    Case(
        "hundred-thousand-50",
        "100,000 points, 50 features, 1 % labels",
        plan_50,
        claims_50,
        COLUMNS,
    ),
    Case("two-thousand", "2,000 points, 8 features, 5 % labels", plan_small, columns=COLUMNS),
)
