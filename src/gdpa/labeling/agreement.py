"""Agreement of annotators on rows with two answers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Agreement", "measure_agreement"]


@dataclass(frozen=True)
class Agreement:
    """Agreement beyond chance.

    Parameters
    ----------
    kappa : float
        Fleiss' kappa: 1 is perfect agreement, 0 is agreement by chance.
    low, high : float
        90 % bootstrap interval.
    rows : int
        Number of rows with two answers.
    agreed : int
        Number of rows with equal answers.
    """

    kappa: float
    low: float
    high: float
    rows: int
    agreed: int


def measure_agreement(
    pairs: Sequence[tuple[Hashable, Hashable]], *, resamples: int = 1000, seed: int = 0
) -> Agreement | None:
    """Compute Fleiss' kappa with a bootstrap interval.

    Parameters
    ----------
    pairs : sequence of (value, value)
        The two answers of each row; different rows may have different annotators.
    resamples : int, default=1000
        Bootstrap samples of the rows.
    seed : int, default=0
        Random seed.

    Returns
    -------
    Agreement or None
        None with fewer than two rows.
    """
    m = len(pairs)
    if m < 2:
        return None
    number: dict[Hashable, int] = {}
    codes = np.array([[number.setdefault(value, len(number)) for value in pair] for pair in pairs])
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(m, counts / m, resamples)
    shares = np.vstack([counts, drawn]) / m
    agreed = shares[:, cells[:, 0] == cells[:, 1]].sum(axis=1)
    ratings = 0.5 * (np.eye(len(number))[cells[:, 0]] + np.eye(len(number))[cells[:, 1]])
    chance = ((shares @ ratings) ** 2).sum(axis=1)
    # With a single class, kappa is undefined; perfect agreement counts as 1.
    kappa = np.where(chance < 1.0 - 1e-12, (agreed - chance) / np.maximum(1.0 - chance, 1e-12), 1.0)
    low, high = np.quantile(kappa[1:], [0.05, 0.95])
    return Agreement(float(kappa[0]), float(low), float(high), m, round(m * agreed[0]))
