"""The forest on its own: the mean of its trees' leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .member import Task, Trial
from .supervised import Supervised
from .trees import Forest

__all__ = ["ForestModel", "try_forest"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ForestModel:
    """A forest that answers for rows.

    Parameters
    ----------
    forest : Forest
        The trees.
    """

    forest: Forest

    def predict(self, X: Any) -> FloatArray:
        """Mean shares of the leaves that rows fall into."""
        return self.forest.probabilities(self.forest.leaves(X))


def try_forest(task: Task) -> Trial:
    """Judge the forest: each label by the trees that have not seen its fold.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The forest.
    """
    left_out = None
    if task.folds is not None:
        grown = task.forest
        leaves = task.leaves[task.labeled]
        left_out = np.empty((task.codes.size, task.n_classes))
        for f in range(task.n_folds):
            out = task.folds == f
            left_out[out] = grown.forest.probabilities(leaves[out], grown.group(f))

    def build(full: Task) -> Supervised:
        forest = full.forest.forest
        return Supervised("forest", ForestModel(forest), forest.probabilities(full.leaves))

    return Trial("forest", left_out, build)
