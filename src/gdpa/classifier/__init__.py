"""The scikit-learn estimator and what only it needs."""

from .estimator import GDPAClassifier, classify
from .model_selection import SemiSupervisedKFold

__all__ = ["GDPAClassifier", "SemiSupervisedKFold", "classify"]
