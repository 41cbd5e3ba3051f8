"""The scikit-learn estimator and what only it needs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import GDPAClassifier, classify
    from .model_selection import SemiSupervisedKFold

__all__ = ["GDPAClassifier", "SemiSupervisedKFold", "classify"]

# Loaded on first use: workers of a cluster take shares of scores and need no scikit-learn.
_LAZY = {
    "GDPAClassifier": "estimator",
    "SemiSupervisedKFold": "model_selection",
    "classify": "estimator",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gdpa.classifier' has no attribute {name!r}")
    loaded = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    value = globals()[name] = getattr(loaded, name)
    return value
