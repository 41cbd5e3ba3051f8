"""Checks of arguments: each returns the value in its final type, or raises ValueError."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray


def check_positive(value: Any, name: str, least: int | None = None) -> Any:
    """Return `value` if it is a positive finite number, or an integer of at least `least`."""
    kind = Real if least is None else Integral
    good = isinstance(value, kind) and not isinstance(value, bool)
    if least is not None and not (good and value >= least):
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    if not (good and 0 <= float(value) < np.inf and (value > 0 or least == 0)):
        raise ValueError(f"{name}={value!r} must be a positive number")
    return float(value) if least is None else int(value)


def check_vector(x: ArrayLike, n: int, name: str) -> FloatArray:
    """Return x as an array of `n` finite numbers, or raise ValueError."""
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {type(x).__name__}") from error
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name} must be finite; {name}[{bad[0]}] is {array[bad[0]]}")
    return array
