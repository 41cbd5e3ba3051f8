r"""Prove how many predictions are right, from random checks with known probabilities.

The mathematics of the guarantee, without files and without HTTP.

**What is proved.** At any time, the session has unanswered rows :math:`U` and one prediction for
each of them. A row costs 1 if its prediction is wrong, and 0 otherwise. A row that an annotator
cannot label counts as wrong. The statement is an upper bound of the total cost
:math:`W = \sum_{i \in U} c(i)` of the *current* predictions of the rows that are unanswered *now*.
It holds for all times of a session at once, with probability at least 1 - risk, whatever the data,
the model, the chosen questions and the moment at which the annotator stops. The probability is that
of the random draws of the checks; nothing is assumed about the model. The answers are taken to be
right.

**One check.** Before check s, the open rows :math:`P_s` (unanswered, not shown to others) have
predictions :math:`f_s` and are divided into strata by the confidence of the model. Stratum h has
:math:`N_h` rows and is drawn with probability :math:`\pi_h`; then one of its rows is drawn evenly.
With a guess :math:`g_h` of the mean cost in the stratum, the control variate,

.. math:: X_s = \frac{1}{N_s} \Big( \sum_h N_h g_h + \frac{N_h}{\pi_h} (c(i) - g_h) \Big)

has the expectation :math:`\tau_s = W_s / N_s`, the mean cost of the predictions :math:`f_s` on
:math:`P_s`, because probabilities and guesses are fixed before the draw [1]_ [2]_.

**All checks.** Let :math:`0 \le \lambda_s \le 1 / \max X_s` be a bet that is fixed before the draw.
Then

.. math:: K_t = \prod_{s \le t} (1 + \lambda_s (\tau_s - X_s))

is a nonnegative martingale that starts at 1, so with probability at least 1 - risk it never reaches
1 / risk (Ville's inequality; the confidence sequences of Waudby-Smith and Ramdas [3]_). An average
of several such processes with fixed weights is one, too.

**Models that change, rows that leave.** The means :math:`\tau_s` are unknown and belong to earlier
predictions on earlier rows, but they cannot be arbitrary. If the current cost is W, then

.. math:: W_s \ge W - d_s + k_s,

where :math:`d_s` is the cost of the rows of U that were not in :math:`P_s` or have another
prediction now, at worst, and :math:`k_s` is the known cost :math:`\sum c_s(i)` of the rows of
:math:`P_s` that were answered since. Both are known now, after any number of changes. As
:math:`K_t` increases with each :math:`\tau_s`, replacing :math:`\tau_s` by
:math:`(W - d_s + k_s) / N_s` gives a lower bound :math:`G_t(W) \le K_t`. Where :math:`K_t` never
reaches 1 / risk, neither does :math:`G_t(W)` for the true W. So every W with
:math:`\max_t G_t(W) \ge` 1 / risk is excluded, at all times at once. There is one martingale, so
there is nothing to correct for several looks, models or goals.

**Open checks.** A check that was drawn but not answered counts as wrong. The maximum over t
contains the time before it, so the question that is currently displayed costs nothing. A check that
is never answered, or whose answer is removed, cannot improve the bound.

**Bets and probabilities** influence only how many checks are needed. The bet maximises the expected
logarithm of the capital for the goal, under the current guesses of the cost. A second process, with
a fifth of the capital, uses bets that are useful for any bound. Strata are drawn by Neyman
allocation, mixed with even probabilities so that :math:`\max X_s` remains small.

References
----------
.. [1] T. Zrnic and E. J. Candes, "Active statistical inference", ICML, 2024.
.. [2] A. N. Angelopoulos et al., "Prediction-powered inference", Science 382, 2023.
.. [3] I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting",
   Journal of the Royal Statistical Society B 86, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, NDArray
from .answers import Value

KINDS = ("accuracy", "precision", "recall", "confident")
# Share of the capital that is bet on the goal; the rest is bet on any bound.
GOAL_SHARE = 0.8
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

    def weights(self, predicted_value: NDArray[np.bool_]) -> FloatArray:
        """Return the largest cost of each row, given whether its prediction is the class."""
        if self.kind == "recall":
            assert self.level is not None
            return np.where(predicted_value, 1.0 - self.level, self.level)
        return np.ones(predicted_value.size)


def _needs(kind: str) -> str:
    """Return what a goal of a kind needs, in words."""
    return "needs a class" if kind in ("precision", "recall") else "has no class"


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
        return float(self._outcomes()[int(wrong), stratum])

    def _outcomes(self) -> FloatArray:
        """Return the estimates for a right (first row) and a wrong prediction of each stratum."""
        rows = np.array([s.rows for s in self.strata], dtype=np.float64)
        weight = np.array([s.weight for s in self.strata])
        probability = np.array([s.probability for s in self.strata])
        guess = self.control * np.array([s.guess for s in self.strata])
        share = rows / rows.sum()
        scale = weight * np.divide(
            share, probability, out=np.zeros_like(share), where=probability > 0
        )
        mean = float(share @ (weight * guess))
        return np.array([mean - scale * guess, mean + scale * (1.0 - guess)])

    @property
    def largest(self) -> float:
        """The largest possible estimate."""
        drawn = np.array([s.probability > 0 for s in self.strata])
        return float(self._outcomes()[:, drawn].max())

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
        return float((self.chances() * (self._outcomes() - self.expected) ** 2).sum())

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
    outcomes = np.array([design._outcomes().ravel() for design in designs])
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
        goal_bet = 0.0
    else:
        bets, growths = _best_bets(designs, target)
        place = int(np.argmax(growths))
        best = designs[place]
        goal_bet = float(bets[place]) if hold else 0.0
    n = checks + 1
    variance = max(best.variance, 1e-6)
    any_bet = math.sqrt(2.0 * math.log(1.0 / risk) / (variance * n * math.log(n + 1.0)))
    return Design(best.strata, best.control, (goal_bet, min(any_bet, 0.5 / best.largest)))


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


@dataclass(frozen=True)
class Evidence:
    """The checks so far, seen from now.

    Parameters
    ----------
    rows : ndarray of shape (n_checks,)
        Number of open rows at each check.
    estimates : ndarray of shape (n_checks,)
        Estimates of the mean cost; for an open check, that of a wrong prediction.
    bets : ndarray of shape (n_checks, 2)
        The bets of the two processes.
    changed : ndarray of shape (n_checks,)
        Largest cost of the rows that are unanswered now and had another prediction, or were not
        open, at the check.
    known : ndarray of shape (n_checks,)
        Known cost of the rows that were open at the check and are answered now.
    total : float
        Largest possible cost of the rows that are unanswered now.
    """

    rows: FloatArray
    estimates: FloatArray
    bets: FloatArray
    changed: FloatArray
    known: FloatArray
    total: float

    def log_capital(self, cost: float, *, goal_share: float = GOAL_SHARE) -> float:
        """Return the logarithm of the largest capital so far if the current cost were `cost`.

        Parameters
        ----------
        cost : float
            Total cost of the rows that are unanswered now.
        goal_share : float
            Share of the capital that is bet on the goal.

        Returns
        -------
        float
            The logarithm of a lower bound of the martingale's largest value; at least 0.
        """
        if not self.rows.size:
            return 0.0
        least = np.maximum(cost - self.changed, 0.0) + self.known
        gain = (least / self.rows - self.estimates)[:, None]
        factors = np.maximum(1.0 + self.bets * gain, 0.0)
        with np.errstate(divide="ignore"):
            capital = np.cumsum(np.log(factors), axis=0)
            shares = np.log([goal_share, 1.0 - goal_share])
        return max(0.0, float(np.logaddexp(*(capital + shares).T).max()))

    def largest_cost(self, risk: float, *, goal_share: float = GOAL_SHARE) -> float:
        """Return the upper bound of the current cost.

        Parameters
        ----------
        risk : float
            Probability that the bound is wrong at any time of the session.
        goal_share : float
            Share of the capital that is bet on the goal.

        Returns
        -------
        float
            The smallest cost that is excluded, and with it every larger one; at most `total`.
        """
        needed = math.log(1.0 / risk)
        if self.log_capital(self.total, goal_share=goal_share) < needed:
            return self.total
        low, high = 0.0, self.total
        for _ in range(60):
            middle = 0.5 * (low + high)
            if self.log_capital(middle, goal_share=goal_share) >= needed:
                high = middle
            else:
                low = middle
        return high


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
