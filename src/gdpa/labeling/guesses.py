"""How good a column of guesses is, proved from the random checks of a session.

The guesses of a column never change, so this is the proof of :mod:`gdpa.labeling.guarantee` for
predictions that never change. The bets are fixed fractions of the largest one, which depend on no
answer. The statement has the risk of the goal for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..estimators.guesses import GuessColumn
from .answers import Answer, Value
from .goal import percent
from .guarantee import RESERVE, Evidence
from .proof import Proof

# Bets, as fractions of the largest one.
FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True)
class GuessReport:
    """How good the guesses of a column turned out to be.

    Parameters
    ----------
    name : str
        Name of the column.
    rows : int
        Number of unlabelled rows with a guess.
    checks, right : int
        Number of answered random checks with a guess, and of those whose guess was right.
    proved : float
        At least this share of the guesses for unlabelled rows is right.
    risk : float
        Probability that this statement is wrong at any time.
    weight : float
        Weight of the guesses in the predictions; 0 if they do not help.
    """

    name: str
    rows: int
    checks: int
    right: int
    proved: float
    risk: float
    weight: float

    @property
    def text(self) -> str:
        """The report in words."""
        if not self.checks:
            return "No random check has been answered yet."
        said = f"{self.right} of {self.checks} random checks were guessed right."
        if self.proved > 0.0:
            share = math.floor(1000.0 * self.proved + 1e-9) / 10.0
            said += (
                f" Proved: at least {share:g} % of the guesses for unlabelled rows are right, with "
                f"at most {percent(self.risk)} risk of being wrong about that."
            )
        if self.weight == 0.0:
            return f"{said} The predictions do not use these guesses so far."
        return f"{said} The predictions use them."


def guess_report(
    column: GuessColumn,
    proof: Proof,
    answers: Mapping[int, Answer],
    *,
    name_now: Callable[[Value], Value],
    weight: float,
) -> GuessReport:
    """Return how good the guesses of a column turned out to be.

    Parameters
    ----------
    column : GuessColumn
        The guesses.
    proof : Proof
        The random checks; its goal is about all rows.
    answers : mapping
        The answers so far.
    name_now : callable
        Returns the current name of a class, in case that it was renamed.
    weight : float
        Weight of the guesses in the predictions.

    Returns
    -------
    GuessReport
        The report.
    """
    has_guess = np.array([value is not None for value in column.values])
    unanswered = proof.open_mask(answers, ())
    open_guesses = unanswered & has_guess

    def is_wrong(row: int) -> bool:
        """Return whether a guess is wrong or its answer is missing; False without a guess."""
        guess = column.values[row]
        if guess is None:
            return False
        answer = answers.get(row)
        return answer is None or answer.value is None or answer.value != name_now(guess)

    answered = np.array(list(answers), dtype=np.intp)
    answered_wrong = np.array([is_wrong(row) for row in answered.tolist()], dtype=bool)
    outcomes = [is_wrong(r) for r in proof.rows if r in answers and has_guess[r]]
    checks = proof.checks
    scales = [check.design.scales for check in checks]
    bets = [[fraction / scale.max() for fraction in FRACTIONS] for scale in scales]
    closed = np.flatnonzero(open_guesses)
    evidence = Evidence(
        rows=np.array([check.design.rows for check in checks], dtype=np.float64),
        estimates=np.array(
            [s[c.stratum] * is_wrong(c.row) for c, s in zip(checks, scales, strict=True)]
        ),
        bets=np.array(bets).reshape(-1, len(FRACTIONS)),
        changed=np.array([float((~c.was_open(closed)).sum()) for c in checks]),
        known=np.array([float(answered_wrong[c.was_open(answered)].sum()) for c in checks]),
        total=float(open_guesses.sum()),
        stake=RESERVE**proof.starts,
        shares=((1.0 - RESERVE) / len(FRACTIONS),) * len(FRACTIONS),
    )
    proved = 0.0
    if proof.is_about_all_rows and evidence.total:
        proved = 1.0 - evidence.largest_cost(proof.goal.risk) / evidence.total
    return GuessReport(
        name=column.name,
        rows=int(open_guesses.sum()),
        checks=len(outcomes),
        right=len(outcomes) - sum(outcomes),
        proved=max(0.0, proved),
        risk=proof.goal.risk,
        weight=weight,
    )
