"""What stored members share: checked numbers, and forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .trees import Forest

__all__ = ["Arrays", "get_forest", "numbers", "put_forest"]

Arrays = dict[str, Any]


def numbers(
    arrays: Arrays, name: str, shape: tuple[int, ...], least: float | None = None
) -> NDArray[np.float64]:
    """An array of finite numbers of the expected shape."""
    a = np.asarray(arrays[name])
    if a.dtype.kind not in "fiu" or a.shape != shape or not np.isfinite(a).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}")
    if least is not None and a.size and a.min() < least:
        raise ValueError(f"{name} has {a.min():g}, which is below {least:g}")
    return a.astype(np.float64)


def put_forest(forest: Forest, arrays: Arrays, prefix: str = "forest_") -> None:
    """Store trees."""
    arrays |= {prefix + name: a for name, a in forest.arrays().items()}


def get_forest(arrays: Arrays, n_classes: int, prefix: str = "forest_") -> Forest:
    """Read trees, checked."""
    size = len(prefix)
    own = {name[size:]: a for name, a in arrays.items() if name.startswith(prefix)}
    if "importances" not in own:
        raise ValueError("the forest is missing")
    return Forest.from_arrays(own, int(own["importances"].size), n_classes)
