"""What a labelling session is to prove, and how many checks that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, NDArray
from .answers import Value

KINDS = ("accuracy", "precision", "recall", "confident")


@dataclass(frozen=True)
class Goal:
    """What is to be proved.

    Parameters
    ----------
    level : float or None
        The share to prove, between 0 and 1; None to prove as much as possible.
    kind : {"accuracy", "precision", "recall", "confident"}
        The share of right predictions among all unlabelled rows, the precision or recall of one
        class, or the share of right predictions among confident rows.
    value : str, int, float, bool or None
        The class, for precision and recall.
    confidence : float or None
        The least confidence of a confident row.
    risk : float, default=0.05
        Probability that a statement of the session is wrong.
    """

    level: float | None = None
    kind: str = "accuracy"
    value: Value | None = None
    confidence: float | None = None
    risk: float = 0.05

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r}; accepted: {', '.join(KINDS)}")
        if self.level is not None and not 0.0 < self.level < 1.0:
            raise ValueError(f"goal={self.level!r} must be between 0 and 1, such as 0.9")
        if not 0.0 < self.risk < 0.5:
            raise ValueError(f"risk={self.risk!r} must be between 0 and 0.5, such as 0.05")
        if (self.kind in ("precision", "recall")) != (self.value is not None):
            raise ValueError(f"a goal about {self.kind} {_needs(self.kind)}")
        if self.kind == "recall" and self.level is None:
            raise ValueError("a goal about recall needs a level, such as 0.9")
        if self.kind == "confident" and not 0.0 < (self.confidence or 0.0) < 1.0:
            raise ValueError(
                f"confidence={self.confidence!r} must be between 0 and 1 for a goal about "
                "confident rows"
            )

    @property
    def subject(self) -> str:
        """The rows or share that the goal is about, in words."""
        if self.kind == "precision":
            return f"of the unlabelled rows predicted as {self.value} are right"
        if self.kind == "recall":
            return f"of the unlabelled rows of class {self.value} are found"
        if self.kind == "confident":
            least = f"{self.confidence:g}"
            return f"of the unlabelled rows with a confidence of at least {least} are right"
        return "of the unlabelled rows are right"

    @property
    def no_rows(self) -> str:
        """That the goal is about no row, in words."""
        if self.kind == "precision":
            return f"no unlabelled row is predicted as {self.value}"
        if self.kind == "confident":
            return f"no unlabelled row has a confidence of at least {self.confidence:g}"
        return "no row is unlabelled"

    def weights(self, predicted_value: NDArray[np.bool_]) -> FloatArray:
        """Return the largest cost of each row, given whether its prediction is the class."""
        if self.kind == "recall":
            assert self.level is not None
            return np.where(predicted_value, 1.0 - self.level, self.level)
        return np.ones(predicted_value.size)


def _needs(kind: str) -> str:
    """Return what a goal of a kind needs, in words."""
    return "needs a class" if kind in ("precision", "recall") else "has no class"


def checks_needed(level: float, truth: float, risk: float = 0.05) -> float:
    """Return how many evenly drawn checks a proof takes at least, on average.

    Parameters
    ----------
    level : float
        The accuracy to prove.
    truth : float
        The true accuracy.
    risk : float, default=0.05
        Accepted risk.

    Returns
    -------
    float
        ``log(1 / risk)`` divided by the relative entropy of the two shares; infinite if the true
        accuracy is not larger.
    """
    if truth <= level:
        return math.inf
    entropy = truth * math.log(truth / level)
    if truth < 1.0:
        entropy += (1.0 - truth) * math.log((1.0 - truth) / (1.0 - level))
    return math.log(1.0 / risk) / entropy


def percent(share: float) -> str:
    """Return a share in percent, without rounding it to a larger one."""
    return f"{100.0 * share:.10g} %"


def effort(goal: Goal) -> str:
    """Return how many checks a proof takes, in words, for the time before the first answer."""
    if goal.kind == "recall":
        return ""
    level = 0.9 if goal.level is None else goal.level
    truths = [round(level + share * (1.0 - level), 6) for share in (0.9, 0.5)]
    many, more = (math.ceil(checks_needed(level, truth, goal.risk)) for truth in truths)
    return (
        f"To prove that {percent(level)} are right takes about {many:,} random checks if "
        f"{percent(truths[0])} are, and about {more:,} if {percent(truths[1])} are. It usually "
        "takes fewer, because doubtful rows are checked more often."
    )
