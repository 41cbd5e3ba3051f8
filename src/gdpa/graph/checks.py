"""Options that several graph functions share, checked in one place."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

__all__ = ["check_n_neighbors", "check_recall", "check_seed", "effective_jobs"]


def effective_jobs(n_jobs: int | None) -> int:
    """Number of threads: None means 1, negative counts down from all cores (-1 is all).

    Parameters
    ----------
    n_jobs : int or None
        What the caller asked for.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a non-zero integer or None, got {n_jobs!r}")
    cores = os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def check_n_neighbors(n_neighbors: Any, most: int, what: str) -> int:
    """Validate a number of neighbours and cut it to what there is, with a warning.

    Parameters
    ----------
    n_neighbors : int
        What the caller asked for, at least 1.
    most : int
        How many there are.
    what : str
        What there are, for the warning.

    Returns
    -------
    int
        At most `most`.
    """
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, int | np.integer):
        raise ValueError(f"n_neighbors must be an integer, got {n_neighbors!r}")
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}")
    if n_neighbors > most:
        warnings.warn(
            f"n_neighbors={n_neighbors} is more than the {most} {what}; {most} are used",
            UserWarning,
            stacklevel=3,
        )
    return int(min(n_neighbors, most))


def check_seed(random_state: Any) -> int:
    """Validate a seed.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A non-negative integer; None stands for 0; a generator is asked for one.

    Returns
    -------
    int
        The seed.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        raw = random_state.bytes(4)
        return int.from_bytes(raw, "little") % 2**31
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ValueError(f"random_state must be an integer, got {random_state!r}")
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    return int(random_state)


def check_recall(recall: float | None) -> float | None:
    """Check the share of neighbours asked for."""
    if recall is None:
        return None
    if not isinstance(recall, int | float) or not 0 < recall <= 1:
        raise ValueError(f"recall must be a number in (0, 1] or None, got {recall!r}")
    return float(recall)
