"""Scores of labelled nodes without their own label, by folds: all folds, or with many labels one.

A fold's labels are unknown to its solve. With thousands of labels in it one fold measures a loss to
a few thousandths and fixes the sharpness of the probabilities; the others would only repeat it.
(With few labels each is left out on its own, :mod:`gdpa.system.closed_form`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .labeled import LabeledSystem

FloatArray = NDArray[np.float64]

# Residuals that are enough to tell settings apart, and for the scores that probabilities rest on.
SCREENING_TOL, FOLD_TOL = 1e-2, 1e-3
LARGE_FOLDS = 3


def fold_scores(
    system: LabeledSystem, fold: NDArray[np.int32], label_weights: Iterable[float]
) -> Iterator[tuple[float, FloatArray]]:
    """Held-out scores of all labels, fold by fold.

    Parameters
    ----------
    system : LabeledSystem
        The graph, its labels and its self-loop.
    fold : ndarray of int of shape (n_labeled,)
        Fold of each label.
    label_weights : iterable of float
        The a.

    Yields
    ------
    label_weight : float
        a.
    scores : ndarray of shape (n_labeled, n_columns)
        Held-out scores.
    """
    Y = system.targets
    for weight in label_weights:
        out = np.zeros_like(Y)
        for number in range(int(fold.max()) + 1):
            held = fold == number
            nodes, targets = system.labeled[~held], Y[~held]
            rest = replace(system, labeled=nodes, targets=targets, label_weight=weight)
            out[held] = rest.solve(tol=FOLD_TOL).x[system.labeled[held]]
        yield weight, out


class FirstFold:
    """One fold: scores of its labels from all other labels.

    Parameters
    ----------
    system : LabeledSystem
        The graph, its labels and their weight.
    held : ndarray of bool of shape (n_labeled,)
        The labels of the fold.

    Attributes
    ----------
    nodes : ndarray of int
        Their nodes.
    targets : ndarray of shape (n_held, n_columns)
        What they say.
    """

    def __init__(self, system: LabeledSystem, held: NDArray[np.bool_]) -> None:
        self.nodes, self.targets = system.labeled[held], system.targets[held]
        self.rest = replace(system, labeled=system.labeled[~held], targets=system.targets[~held])
        self._started: dict[float, FloatArray] = {}

    def screened(self, loops: Iterable[float]) -> Iterator[tuple[float, FloatArray]]:
        """Self-loops with rough scores of the fold, each up to a constant per node.

        Of two classes only the difference is solved for, one column: it is all that a loss that is
        free of row means looks at. It is kept as a start.
        """
        Y = self.rest.targets
        two = Y.shape[1] == 2
        for loop in loops:
            rough = replace(self.rest, self_loop=loop, targets=Y[:, :1] - Y[:, 1:] if two else Y)
            values = rough.solve(tol=SCREENING_TOL).x
            if two:
                self._started[loop] = values
                values = values * [[0.5, -0.5]]
            yield loop, values[self.nodes]

    def scores(self, loop: float) -> FloatArray:
        """Scores of the fold's labels."""
        system = replace(self.rest, self_loop=loop)
        start = self._started.get(loop)
        if start is None:
            return np.asarray(system.solve(tol=FOLD_TOL).x[self.nodes])
        self._started.clear()
        # Sum and difference of the two columns, of which the second is half done.
        turn = np.array([[1.0, 1.0], [1.0, -1.0]])
        begun = np.zeros((start.shape[0], 2), order="F")
        begun[:, 1] = start[:, 0]
        turned = replace(system, targets=system.targets @ turn).solve(tol=FOLD_TOL, x0=begun)
        return np.asarray(0.5 * (turned.x[self.nodes] @ turn))
