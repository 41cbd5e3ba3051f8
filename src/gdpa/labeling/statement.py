"""What a session has proved, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .answers import Value
from .goal import Goal, percent


@dataclass(frozen=True)
class Statement:
    """What is proved about the current predictions of the unlabelled rows.

    Parameters
    ----------
    goal : Goal
        What is to be proved.
    proved : float
        The share that is proved: at least this share is right (0 if nothing is proved yet).
    reached : bool
        Whether the goal is proved.
    rows : int
        Number of unlabelled rows that the goal is about.
    checks : int
        Number of answered random checks.
    wrong : int
        Number of them that were predicted wrongly.
    answers_needed : int or None
        About how many more answers the goal may take; 0 if it is reached, None if it is out of
        reach, or if there is no goal.
    hardest : tuple of (value, float)
        Predicted classes with the most expected errors, and their share of these errors.
    holds : bool
        Whether the predictions are held fixed while they are checked.
    """

    goal: Goal
    proved: float
    reached: bool
    rows: int
    checks: int
    wrong: int
    answers_needed: int | None
    hardest: tuple[tuple[Value, float], ...] = ()
    holds: bool = False

    @property
    def proved_percent(self) -> float:
        """The proved share in percent, rounded down to one decimal."""
        return math.floor(1000.0 * self.proved + 1e-9) / 10.0

    @property
    def text(self) -> str:
        """The statement in one sentence."""
        risk = f"with at most {percent(self.goal.risk)} risk of being wrong about that"
        if self.reached and self.goal.level is not None:
            level = percent(self.goal.level)
            return f"Goal reached: at least {level} {self.goal.subject}, {risk}."
        if not self.rows and not self.reached:
            return f"Nothing to prove: {self.goal.no_rows}."
        if self.proved <= 0.0:
            checks = (
                "1 random check was" if self.checks == 1 else f"{self.checks} random checks were"
            )
            return f"Nothing is proved yet: {checks} answered."
        return f"Proved so far: at least {self.proved_percent:g} % {self.goal.subject}, {risk}."

    @property
    def forecast(self) -> str:
        """How many more answers the goal may take, in one sentence; empty without a goal."""
        if self.goal.level is None or self.reached:
            return ""
        if self.answers_needed is not None:
            return f"About {self.answers_needed:,} more answers may be needed."
        why = " and ".join(
            f"{value} ({share:.0%})".replace("%)", " %)") for value, share in self.hardest
        )
        where = f" Most expected errors are among the rows predicted as {why}." if why else ""
        return f"The goal seems out of reach with these predictions.{where}"
