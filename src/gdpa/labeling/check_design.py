"""How a random check is drawn: strata, their probabilities, the control variate and the bets.

All of it is fixed before the draw and influences only how many checks are needed, never whether the
statement holds (:mod:`gdpa.labeling.guarantee`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import FloatArray

# Strata: rows whose probability of an error is at most this, the last stratum has the others.
ERROR_EDGES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
# Shares of even probabilities that are tried for the draw.
EVEN_SHARES = (0.3, 0.6, 1.0)
# Guesses stay away from 0 and 1, so that no outcome seems impossible.
LEAST_GUESS = 0.002
# Checks that the model's confidences are worth: of all strata together, and of each.
PRIOR_CHECKS = 4.0
STRATUM_PRIOR_CHECKS = 10.0


@dataclass(frozen=True)
class Stratum:
    """Rows of similar confidence.

    Parameters
    ----------
    rows : int
        Number of rows.
    weight : float
        Cost of a wrong row.
    probability : float
        Probability that the stratum is drawn.
    guess : float
        Expected share of wrong rows, the control variate.
    model_guess : float
        The same according to the confidences alone.
    """

    rows: int
    weight: float
    probability: float
    guess: float
    model_guess: float


@dataclass(frozen=True)
class Design:
    """How a check is drawn and what is bet on it; fixed before the draw.

    Parameters
    ----------
    strata : tuple of Stratum
        The strata.
    control : float
        Factor of the guesses in the estimate: 1 with control variate, 0 without.
    bets : tuple of float
        The bets of the processes: on the goal, and on any bound.
    """

    strata: tuple[Stratum, ...]
    control: float
    bets: tuple[float, float] = (0.0, 0.0)

    @property
    def rows(self) -> int:
        """Number of rows of all strata."""
        return sum(stratum.rows for stratum in self.strata)

    def estimate(self, stratum: int, wrong: bool) -> float:
        """Return the estimate of the mean cost from one check."""
        return float(self.outcomes[int(wrong), stratum])

    @property
    def scales(self) -> FloatArray:
        """Share of the rows of each stratum divided by its probability; 0 if it is not drawn."""
        share = np.array([s.rows for s in self.strata], dtype=np.float64) / self.rows
        probability = np.array([s.probability for s in self.strata])
        found = np.divide(share, probability, out=np.zeros_like(share), where=probability > 0)
        return np.asarray(found)

    @cached_property
    def outcomes(self) -> FloatArray:
        """The estimates for a right (first row) and a wrong prediction of each stratum."""
        rows = np.array([s.rows for s in self.strata], dtype=np.float64)
        weight = np.array([s.weight for s in self.strata])
        guess = self.control * np.array([s.guess for s in self.strata])
        scale = weight * self.scales
        mean = float(rows @ (weight * guess)) / self.rows
        return np.array([mean - scale * guess, mean + scale * (1.0 - guess)])

    @property
    def largest(self) -> float:
        """The largest possible estimate."""
        drawn = np.array([s.probability > 0 for s in self.strata])
        return float(self.outcomes[:, drawn].max())

    @property
    def expected(self) -> float:
        """The mean cost according to the guesses."""
        return sum(s.rows * s.weight * s.guess for s in self.strata) / self.rows

    def chances(self) -> FloatArray:
        """Return the probabilities of the outcomes according to the guesses."""
        probability = np.array([s.probability for s in self.strata])
        guess = np.array([s.guess for s in self.strata])
        return np.array([probability * (1.0 - guess), probability * guess])

    @property
    def variance(self) -> float:
        """The variance of the estimate according to the guesses."""
        return float((self.chances() * (self.outcomes - self.expected) ** 2).sum())

    def best_bet(self, target: float) -> tuple[float, float]:
        """Return the bet with the largest expected growth, and that growth.

        Parameters
        ----------
        target : float
            The mean cost to disprove.

        Returns
        -------
        bet, growth : float
            The bet, and the expected logarithm of the factor of the capital; 0 if no bet grows.
        """
        bets, growths = _best_bets([self], target)
        return float(bets[0]), float(growths[0])


def _best_bets(designs: Sequence[Design], target: float) -> tuple[FloatArray, FloatArray]:
    """Return the best bet of each design with the same strata, and its growth."""
    chance = np.array([design.chances().ravel() for design in designs])
    outcomes = np.array([design.outcomes.ravel() for design in designs])
    gain = np.where(chance > 0, target - outcomes, 0.0)
    low = np.zeros(len(designs))
    high = (1.0 - 1e-6) / np.array([design.largest for design in designs])
    grows = (chance * gain).sum(axis=1) > 0
    for _ in range(25):  # the derivative decreases; bisection to 3e-8 of the range
        middle = 0.5 * (low + high)
        rises = (chance * gain / (1.0 + middle[:, None] * gain)).sum(axis=1) > 0
        low = np.where(rises, middle, low)
        high = np.where(rises, high, middle)
    bets = np.where(grows, low, 0.0)
    return bets, (chance * np.log1p(bets[:, None] * gain)).sum(axis=1)


def make_design(
    rows: Sequence[int],
    weights: Sequence[float],
    guesses: Sequence[float],
    model_guesses: Sequence[float],
    *,
    target: float | None,
    checks: int,
    risk: float,
    hold: bool = True,
) -> Design:
    """Choose probabilities, control variate and bets of the next check.

    Parameters
    ----------
    rows, weights, guesses, model_guesses : sequences of the same length
        The strata, see :class:`Stratum`.
    target : float or None
        The mean cost to disprove; None without a goal.
    checks : int
        Number of earlier checks.
    risk : float
        Accepted risk.
    hold : bool, default=True
        Whether to bet on the goal; useful only once the predictions no longer change.

    Returns
    -------
    Design
        The design with the largest expected growth for the goal, or, without a goal, with the
        smallest variance.
    """
    even = np.asarray(rows, dtype=np.float64) / np.sum(rows)
    guess = np.clip(guesses, LEAST_GUESS, 1.0 - LEAST_GUESS)
    spread = even * np.asarray(weights) * np.sqrt(guess * (1.0 - guess))
    neyman = spread / spread.sum()
    designs = [
        Design(
            tuple(
                Stratum(int(n), float(w), float(p), float(g), float(m))
                for n, w, p, g, m in zip(
                    rows,
                    weights,
                    share * even + (1.0 - share) * neyman,
                    guess,
                    model_guesses,
                    strict=True,
                )
            ),
            control,
        )
        for share in EVEN_SHARES
        for control in (1.0, 0.0)
    ]
    if target is None:
        best = min(designs, key=lambda design: design.variance)
    else:
        bets, growths = _best_bets(designs, target)
        place = int(np.argmax(growths))
        best = designs[place]
    n = checks + 1
    variance = max(best.variance, 1e-6)
    any_bet = math.sqrt(2.0 * math.log(1.0 / risk) / (variance * n * math.log(n + 1.0)))
    any_bet = min(any_bet, 0.5 / best.largest)
    if target is None:
        goal_bet = any_bet  # a goal that is set later continues from there
    else:
        goal_bet = float(bets[place]) if hold else 0.0
    return Design(best.strata, best.control, (goal_bet, any_bet))


def recalibrated(
    model_guesses: FloatArray,
    *,
    earlier: Sequence[tuple[int, float, bool]],
) -> FloatArray:
    """Correct the guesses of the model by the answers of earlier checks.

    Parameters
    ----------
    model_guesses : ndarray of shape (n_strata,)
        Expected shares of wrong rows according to the confidences.
    earlier : sequence of (int, float, bool)
        Stratum, guess of the model and whether it was wrong, for each answered check.

    Returns
    -------
    ndarray of shape (n_strata,)
        The guesses: those of the model, scaled by the ratio of observed and expected errors, and
        then updated by the answers of each stratum.
    """
    guess = np.asarray(model_guesses, dtype=np.float64)
    wrong = sum(bad for _, _, bad in earlier)
    expected = sum(g for _, g, _ in earlier)
    prior = PRIOR_CHECKS * float(np.clip(guess.mean(), 0.02, 0.5))
    scaled = guess * (wrong + prior) / (expected + prior)
    answers = np.zeros(guess.size)
    errors = np.zeros(guess.size)
    for stratum, _, bad in earlier:
        answers[stratum] += 1.0
        errors[stratum] += bad
    found = (STRATUM_PRIOR_CHECKS * scaled + errors) / (STRATUM_PRIOR_CHECKS + answers)
    return np.asarray(np.clip(found, LEAST_GUESS, 0.95))
