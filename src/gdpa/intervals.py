"""Confidence intervals of proportions."""

from __future__ import annotations

from scipy.special import betainc


def share_interval(right: int, n: int, level: float = 0.9) -> tuple[float, float]:
    r"""Return the mid-P interval of a proportion: exact binomial tails, the observed count halved.

    At its ends ``P(X > k) + P(X = k) / 2`` and ``P(X < k) + P(X = k) / 2`` are ``(1 - level) / 2``.
    Wilson's interval has too little coverage near 1, where accuracies of labelling sessions are.

    Parameters
    ----------
    right, n : int
        Successes and trials.
    level : float, default=0.9
        Confidence level.

    Returns
    -------
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> from gdpa.intervals import share_interval
    >>> low, high = share_interval(9, 10)
    >>> f"{low:.2f} {high:.2f}"
    '0.65 0.99'
    """
    if not 0 <= right <= n or n < 1:
        raise ValueError(f"right={right!r} of n={n!r}: needs 0 <= right <= n and n >= 1")
    tail = (1.0 - level) / 2.0
    low = 0.0 if right == 0 else _share_at(right, n, tail)
    high = 1.0 if right == n else _share_at(right, n, 1.0 - tail)
    return low, high


def _share_at(right: int, n: int, value: float) -> float:
    """Return the share at which ``P(X > right) + P(X = right) / 2`` has the given value."""
    low = 0.0
    high = 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        more = betainc(right + 1, n - right, middle) if right < n else 0.0
        as_many = betainc(right, n - right + 1, middle) if right else 1.0
        low, high = (middle, high) if 0.5 * (more + as_many) < value else (low, middle)
    return 0.5 * (low + high)
