"""Types of arrays for annotations, and conversions that every package needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "NDArray", "SingleArray", "unmasked"]

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]  # single precision


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array; masked entries become NaN, because a mask means missing values."""
    if not np.ma.isMaskedArray(values):
        return np.asarray(values)
    kind = np.result_type(values.dtype, np.float32) if values.dtype.kind in "biuf" else object
    return np.asarray(np.ma.filled(values.astype(kind), np.nan))
