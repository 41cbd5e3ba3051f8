"""The forest on its own: the mean of its trees' leaves, as they are or weighed anew.

The share of trees in which two samples share a leaf is a kernel, and regularised least squares with
it (:mod:`~gdpa.estimators.committee.kernel`) gives every labelled sample a coefficient. The score

    s(x) = sum_i k(x, x_i) c_i = 1/T sum_t v_t(leaf of x),   v_t(leaf) = sum of c_i of the i in it

is the same walk through the same trees with other numbers in their leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ...graph.forest import shared_leaves
from ...threads import one_thread
from .kernel import CHOICE_LABELS, MOST_LABELS, to_probabilities
from .member import Task, Trial, least_loss, thinned
from .supervised import Supervised
from .trees import Forest

__all__ = ["ForestModel", "LeafMachine", "try_forest", "try_forest_kernel"]

FloatArray = NDArray[np.float64]

# Chosen by left-out labels; on real tables and the paper's sets each of them is, somewhere.
RIDGES = (0.1, 0.3, 1.0, 3.0)


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


@dataclass(frozen=True)
class LeafMachine:
    """A forest with the scores of a kernel machine in its leaves.

    Parameters
    ----------
    forest : Forest
        The trees.
    scores : ndarray of shape (n_nodes, n_classes)
        v; 0 where a node is no leaf or holds no label.
    """

    forest: Forest
    scores: NDArray[np.float32]

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows."""
        return self.shares(self.forest.leaves(X))

    def shares(self, leaves: NDArray[Any]) -> FloatArray:
        """Shares of rows that are given by their leaves."""
        return to_probabilities(replace(self.forest, value=self.scores).probabilities(leaves))


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


def try_forest_kernel(task: Task) -> Trial | None:
    """Judge least squares on shared leaves: each fold in the trees that have not seen it.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial or None
        The best ridge; None where no label can be left out.
    """
    if task.folds is None:
        return None
    kept = thinned(task.codes, CHOICE_LABELS)
    found = {ridge: np.empty((task.codes.size, task.n_classes)) for ridge in RIDGES}
    leaves = task.leaves[task.labeled]
    for f in range(task.n_folds):
        part = leaves[:, task.forest.group(f)]
        inside, out = kept[task.folds[kept] != f], task.folds == f
        own = shared_leaves(part[inside], part[inside])
        asked = shared_leaves(part[out], part[inside])
        for ridge in RIDGES:
            found[ridge][out] = to_probabilities(asked @ _coefficients(own, task, inside, ridge))
    ridge, left_out = least_loss(found, task.codes, task.folds)

    def build(full: Task) -> Supervised:
        forest, labeled = full.forest.forest, thinned(full.codes, MOST_LABELS)
        own = full.leaves[full.labeled[labeled]]
        c = _coefficients(shared_leaves(own, own), full, labeled, ridge)
        scores = np.zeros((forest.feature.size, full.n_classes))
        np.add.at(scores, own + forest.roots[:-1], c[:, None])
        machine = LeafMachine(forest, scores.astype(np.float32))
        return Supervised("forest kernel", machine, machine.shares(full.leaves))

    return Trial("forest kernel", left_out, build)


def _coefficients(K: FloatArray, task: Task, kept: NDArray[Any], ridge: float) -> FloatArray:
    """Coefficients of some of the labels."""
    A = K.copy()
    A[np.diag_indices_from(A)] += ridge
    with one_thread():
        found = linalg.solve(A, task.targets[kept] - 1.0 / task.n_classes, assume_a="pos")
    return np.asarray(found)
