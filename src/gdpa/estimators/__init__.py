"""The scikit-learn estimator and what only it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .estimator import GDPAClassifier, classify
    from .model_selection import SemiSupervisedKFold

__all__ = ["GDPAClassifier", "SemiSupervisedKFold", "classify"]

# Loaded on first use: workers of a cluster take shares of scores and need no scikit-learn.
__getattr__ = load_on_use(
    __name__,
    {
        "GDPAClassifier": "estimator",
        "SemiSupervisedKFold": "model_selection",
        "classify": "estimator",
    },
)
