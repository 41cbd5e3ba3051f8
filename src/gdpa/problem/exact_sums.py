"""Sums of floating-point numbers that are not rounded."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray


def exact_sums(*numbers: FloatArray) -> bool:
    """Return whether sums of these numbers and of their negatives are exact in any order.

    They are if all numbers are multiples of one power of two, and the sum of their absolute values
    is less than 2^50 times that power. Quarters and doubles are covered.
    """
    lowest = 2000
    total = 0.0
    with np.errstate(over="ignore"):
        for part in numbers:
            values = np.asarray(part, dtype=np.float64)
            values = values[values != 0]
            if values.size == 0:
                continue
            mantissa, exponent = np.frexp(values)
            digits = np.ldexp(mantissa, 53).astype(np.int64)
            trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
            lowest = min(lowest, int((exponent - 53 + trailing).min()))
            total += float(np.abs(values).sum())
        return bool(total < np.ldexp(1.0, lowest + 50))
