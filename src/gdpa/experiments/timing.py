"""Processor time of a call, and the exponent of its growth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["REPEATS", "growth", "timed"]

REPEATS, _ENOUGH_SECONDS = 3, 2.0


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Call three times, or until two seconds are over.

    Parameters
    ----------
    call : callable
        What to time.

    Returns
    -------
    tuple
        The first answer and the median of the processor seconds. With one thread that is what a
        clock shows on a machine that does nothing else.
    """
    seconds: list[float] = []
    answer = None
    while len(seconds) < REPEATS and sum(seconds) < _ENOUGH_SECONDS:
        start = time.process_time()
        latest = call()
        seconds.append(time.process_time() - start)
        answer = latest if len(seconds) == 1 else answer
    return answer, float(np.median(seconds))


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Exponent p of ``seconds ~ size^p`` by least squares in logarithms.

    Parameters
    ----------
    sizes, seconds : sequence of float
        Measurements, all positive.

    Returns
    -------
    float or None
        The exponent; None with fewer than two sizes.

    Examples
    --------
    >>> from gdpa.experiments.timing import growth
    >>> round(growth([10, 100, 1000], [2, 200, 20000]), 6)
    2.0
    """
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
