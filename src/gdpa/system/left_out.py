"""Held-out scores of labelled nodes: of all folds, or of one fold with many labels.

The scores of a fold are computed without its labels. With thousands of labels, one fold is enough
to estimate the loss and to calibrate the probabilities. With few labels,
:mod:`gdpa.system.closed_form` computes leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray, NDArray
from .labeled import LabeledSystem

# Residuals to compare settings with, and to calibrate probabilities with.
SCREENING_TOL = 1e-2
FOLD_TOL = 1e-3
LARGE_FOLDS = 3


def fold_scores(
    system: LabeledSystem, fold: NDArray[np.int32], label_weights: Iterable[float]
) -> Iterator[tuple[float, FloatArray]]:
    """Yield the held-out scores of all labels for several label weights.

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
            nodes = system.labeled[~held]
            targets = Y[~held]
            rest = replace(system, labeled=nodes, targets=targets, label_weight=weight)
            out[held] = rest.solve(tol=FOLD_TOL).x[system.labeled[held]]
        yield weight, out


class FirstFold:
    """One fold: the scores of its labels, computed from all other labels.

    Parameters
    ----------
    system : LabeledSystem
        The graph, its labels and their weight.
    held : ndarray of bool of shape (n_labeled,)
        Mask of the labels of the fold.

    Attributes
    ----------
    nodes : ndarray of int
        Nodes of the fold.
    targets : ndarray of shape (n_held, n_columns)
        Their targets.
    """

    def __init__(self, system: LabeledSystem, held: NDArray[np.bool_]) -> None:
        self.nodes = system.labeled[held]
        self.targets = system.targets[held]
        self.rest = replace(system, labeled=system.labeled[~held], targets=system.targets[~held])
        self._started: dict[float, FloatArray] = {}

    def screened(self, loops: Iterable[float]) -> Iterator[tuple[float, FloatArray]]:
        """Yield self-loops with approximate scores of the fold, up to a constant per node.

        For two classes only their difference is solved for, since the loss ignores row means. It is
        kept as an initial solution for :meth:`scores`.
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
        """Return the scores of the fold's labels."""
        system = replace(self.rest, self_loop=loop)
        start = self._started.get(loop)
        if start is None:
            return np.asarray(system.solve(tol=FOLD_TOL).x[self.nodes])
        self._started.clear()
        # Solve for the sum and the difference of the columns; the latter has an initial solution.
        turn = np.array([[1.0, 1.0], [1.0, -1.0]])
        begun = np.zeros((start.shape[0], 2), order="F")
        begun[:, 1] = start[:, 0]
        turned = replace(system, targets=system.targets @ turn).solve(tol=FOLD_TOL, x0=begun)
        return np.asarray(0.5 * (turned.x[self.nodes] @ turn))
