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
:math:`P_s`, because probabilities and guesses are fixed before the draw [1]_ [2]_. Each draw uses
random numbers of its own, which no earlier draw of the session has used.

**All checks.** Let :math:`0 \le \lambda_s \le 1 / \max X_s` be a bet that is fixed before the draw.
Then

.. math:: K_t = \prod_{s \le t} (1 + \lambda_s (\tau_s - X_s))

is a nonnegative martingale that starts at 1, so with probability at least 1 - risk it never reaches
1 / risk (Ville's inequality; the confidence sequences of Waudby-Smith and Ramdas [3]_). An average
of several such processes with fixed weights is one, too. Three are used: one bets on the goal, one
bets on any bound, and one, the reserve, does not bet.

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
there is nothing to correct for several looks, models or levels of the goal.

**Open checks.** A check that was drawn but not answered counts as wrong. The maximum over t
contains the time before it, so the question that is currently displayed costs nothing. A check that
is never answered, or whose answer is removed, cannot improve the bound.

**Starting again.** If classes are merged, or if the goal is about something else, right and wrong
have another meaning, and a new product has to begin. It begins with the capital that the old one
has for certain, :math:`G_T(0)`, so that both together are one martingale: whoever starts again
until a proof succeeds gains nothing. The reserve keeps this capital from vanishing.

References
----------
.. [1] T. Zrnic and E. J. Candes, "Active statistical inference", ICML, 2024.
.. [2] A. N. Angelopoulos et al., "Prediction-powered inference", Science 382, 2023.
.. [3] I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting",
   Journal of the Royal Statistical Society B 86, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray

# Shares of the capital: bet on the goal, bet on any bound, and never bet. A goal bet alone would
# prove little besides the goal. The reserve delays a proof by log(1 / 0.95) / log(20), or 2 %, of
# the checks at 5 % risk.
GOAL_SHARE = 0.76
ANY_SHARE = 0.19
RESERVE = 0.05


@dataclass(frozen=True)
class Evidence:
    """The checks so far, seen from now.

    Parameters
    ----------
    rows : ndarray of shape (n_checks,)
        Number of open rows at each check.
    estimates : ndarray of shape (n_checks,)
        Estimates of the mean cost; for an open check, that of a wrong prediction.
    bets : ndarray of shape (n_checks, n_processes)
        The bets of the processes.
    changed : ndarray of shape (n_checks,)
        Largest cost of the rows that are unanswered now and had another prediction, or were not
        open, at the check.
    known : ndarray of shape (n_checks,)
        Known cost of the rows that were open at the check and are answered now.
    total : float
        Largest possible cost of the rows that are unanswered now.
    stake : float, default=1.0
        Capital before the first check.
    shares : tuple of float
        Shares of the capital of the processes; with the reserve, they add up to 1.
    """

    rows: FloatArray
    estimates: FloatArray
    bets: FloatArray
    changed: FloatArray
    known: FloatArray
    total: float
    stake: float = 1.0
    shares: tuple[float, ...] = (GOAL_SHARE, ANY_SHARE)

    def _log_capitals(self, cost: float) -> FloatArray:
        """Return the logarithm of the capital before the first and after each check."""
        least = np.maximum(cost - self.changed, 0.0) + self.known
        gain = (least / self.rows - self.estimates)[:, None]
        factors = np.maximum(1.0 + self.bets * gain, 0.0)
        with np.errstate(divide="ignore"):
            betting = np.cumsum(np.log(factors), axis=0)
        capital = np.full(self.rows.size, math.log(RESERVE))
        for process, share in enumerate(self.shares):
            capital = np.logaddexp(capital, math.log(share) + betting[:, process])
        start = math.log(self.stake) if self.stake > 0.0 else -math.inf
        return start + np.concatenate(([0.0], capital))

    def log_capital(self, cost: float) -> float:
        """Return the logarithm of the largest capital so far if the current cost were `cost`.

        Parameters
        ----------
        cost : float
            Total cost of the rows that are unanswered now.

        Returns
        -------
        float
            The logarithm of a lower bound of the martingale's largest value.
        """
        return float(self._log_capitals(cost).max())

    def left(self) -> float:
        """Return the capital that is left for certain, whatever the current cost is."""
        return math.exp(float(self._log_capitals(0.0)[-1]))

    def largest_cost(self, risk: float) -> float:
        """Return the upper bound of the current cost.

        Parameters
        ----------
        risk : float
            Probability that the bound is wrong at any time of the session.

        Returns
        -------
        float
            The smallest cost that is excluded, and with it every larger one; at most `total`.
        """
        needed = math.log(1.0 / risk)
        if self.log_capital(self.total) < needed:
            return self.total
        low = 0.0
        high = self.total
        for _ in range(40):  # to 1e-12 of the total
            middle = 0.5 * (low + high)
            if self.log_capital(middle) >= needed:
                high = middle
            else:
                low = middle
        return high
