"""How many more answers a goal may take, and whether to learn or to check next.

Nothing here influences whether a statement holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .accuracy import Predictions
from .answers import Answer, Value
from .check_design import make_design
from .guarantee import GOAL_SHARE
from .proof import Proof
from .statement import Statement

# Errors fall with the square root of the number of labels: a rule of thumb that decides only
# whether more learning or more checks are expected to reach the goal first.
LEARNING_EXPONENT = 0.5
LEARNING_STEPS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# Labels per label at the start of the checks after which a new fit is considered.
RECONSIDER = 1.25


@dataclass(frozen=True)
class Plan:
    """How the goal is expected to be reached soonest.

    Parameters
    ----------
    answers : int
        Expected number of answers.
    learn : bool
        Whether to learn from chosen rows first; otherwise to check the current predictions.
    """

    answers: int
    learn: bool


def make_plan(proof: Proof, predictions: Predictions, answers: Mapping[int, Answer]) -> Plan | None:
    """Return how the goal is expected to be reached soonest: by learning or by checking.

    Parameters
    ----------
    proof : Proof
        The proof so far.
    predictions : Predictions
        The current predictions.
    answers : mapping
        The answers so far.

    Returns
    -------
    Plan or None
        The plan; None without a goal, or if the goal is out of reach.
    """
    current = proof.current(predictions)
    allowed = proof.allowed(answers, current)
    strata = proof.strata(current, proof.open_mask(answers, ()))
    if not strata.places or allowed is None:
        return None
    guesses = proof.guesses(current, answers)[list(strata.places)]
    target = allowed / strata.total
    risk = proof.goal.risk

    def checks(scale: float, missing: float) -> float:
        """Return the expected number of checks if errors are `scale` times as frequent."""
        design = make_design(
            strata.rows,
            strata.weights,
            (guesses * scale).tolist(),
            strata.model_guesses,
            target=target,
            checks=len(proof.rows),
            risk=risk,
        )
        growth = design.best_bet(target)[1]
        return missing / growth if growth > 0.0 else math.inf

    capital = proof.evidence(answers, current).log_capital(allowed)
    now = checks(1.0, max(0.0, math.log(1.0 / risk) - capital))
    # Earlier checks are of little use for other predictions.
    afresh = math.log(1.0 / (risk * proof.stake * GOAL_SHARE))
    labels = max(1, sum(answer.value is not None for answer in answers.values()))
    fitted = min(labels, max(1, proof.held_labels)) if proof.holds else labels
    soonest = math.inf
    for step in LEARNING_STEPS:
        if step == 0.0 and labels < RECONSIDER * fitted:
            continue  # a new fit would hardly differ
        more = step * labels
        scale = (fitted / (labels + more)) ** LEARNING_EXPONENT
        soonest = min(soonest, more + checks(scale, afresh))
    best = min(now, soonest)
    if best > strata.total:
        return None
    return Plan(answers=math.ceil(best), learn=soonest < 0.95 * now)


def with_forecast(
    statement: Statement, proof: Proof, predictions: Predictions, answers: Mapping[int, Answer]
) -> Statement:
    """Complete a statement: how many answers its goal may take, and which classes are hardest.

    Parameters
    ----------
    statement : Statement
        What is proved.
    proof, predictions, answers
        See :func:`make_plan`.

    Returns
    -------
    Statement
        The completed statement.
    """
    plan = None if statement.reached else make_plan(proof, predictions, answers)
    needed = 0 if statement.reached else None if plan is None else plan.answers
    hardest = hardest_classes(proof, predictions, answers)
    return replace(statement, answers_needed=needed, hardest=hardest)


def hardest_classes(
    proof: Proof, predictions: Predictions, answers: Mapping[int, Answer]
) -> tuple[tuple[Value, float], ...]:
    """Return the two predicted classes with the most expected errors, and their share of these."""
    current = proof.current(predictions)
    inside = proof.open_mask(answers, ()) & (current.codes >= 0)
    if not inside.any():
        return ()
    expected = np.bincount(
        predictions.codes[inside],
        weights=proof.guesses(current, answers)[current.strata[inside]],
        minlength=predictions.classes.size,
    )
    order = np.argsort(-expected, kind="stable")[:2]
    values = predictions.classes.tolist()
    total = expected.sum()
    return tuple((values[i], float(expected[i] / total)) for i in order.tolist())
