r"""How sure are we: accuracy on the rows without a label, from rows that were asked at random.

A share of the questions is drawn evenly from all rows that are open at that moment. Neither the
model that they judge nor the choice of the other questions knows their answers, so each is an
honest trial of the present model; the interval is Wilson's for a share. The model that is used has
seen these labels as well, so it is rather better than the estimate says.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Estimate", "wilson"]

LEVEL = 0.9


@dataclass(frozen=True)
class Estimate:
    """Accuracy on the unlabelled rest.

    Parameters
    ----------
    accuracy : float
        Share of random checks that the model, without them, got right.
    low, high : float
        90 % interval.
    checks : int
        Random checks so far.
    right : int
        How many of them the model got right.
    changed : float or None
        Share of the rows whose prediction the latest labels changed; None before it can be told.
    settled : bool
        Whether more labels no longer help: the predictions have come to rest.
    """

    accuracy: float
    low: float
    high: float
    checks: int
    right: int
    changed: float | None = None
    settled: bool = False


def wilson(right: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval for a share.

    Parameters
    ----------
    right, n : int
        Successes and trials.
    level : float, default=0.9
        Level of confidence.

    Returns
    -------
    low, high : float
        The ends.

    Examples
    --------
    >>> low, high = wilson(9, 10)
    >>> f"{low:.2f} {high:.2f}"
    '0.65 0.98'
    """
    if not 0 <= right <= n or n < 1:
        raise ValueError(f"right={right!r} of n={n!r}: needs 0 <= right <= n and n >= 1")
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    # The share itself is inside, also where rounding says otherwise.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
