"""Types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "NDArray"]

FloatArray = NDArray[np.float64]
