"""Left-out scores fold by fold: all folds, or with very many labels one.

A fold's labels are unknown to its solve. With thousands of labels in it one fold measures a loss to
a few thousandths and fixes the sharpness of the probabilities; the others would only repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.recovery import linear_recovery
from .model_selection import stratified_folds

if TYPE_CHECKING:
    from .tuning import LabeledGraph

__all__ = ["FirstFold", "by_fold"]

FloatArray = NDArray[np.float64]

# Residuals that are enough to tell settings apart, and for the scores that probabilities rest on.
SCREENING_TOL, FOLD_TOL = 1e-2, 1e-3
LARGE_FOLDS = 3


class FirstFold:
    """The first of three folds: scores of its labels from all other labels.

    Parameters
    ----------
    graph : LabeledGraph
        The graph, without evidence.
    label_weight : float
        Weight of the labels.

    Attributes
    ----------
    out : ndarray of bool of shape (n_labeled,)
        The labels of the fold.
    """

    def __init__(self, graph: LabeledGraph, label_weight: float) -> None:
        self.graph, self.label_weight = graph, label_weight
        self.out = stratified_folds(graph.codes, LARGE_FOLDS) == 0
        self.Y = graph.targets()
        self._started: dict[float, FloatArray] = {}

    @property
    def targets(self) -> FloatArray:
        """What the fold's labels say."""
        return np.asarray(self.Y[self.out])

    def _solve(self, targets: FloatArray, loop: float, tol: float, start: Any) -> FloatArray:
        graph = self.graph
        found = linear_recovery(
            graph.adjacency,
            graph.diagonal,
            graph.labeled[~self.out],
            targets[~self.out],
            tol=tol,
            x0=start,
            label_weight=self.label_weight,
            self_loop=loop,
            operand=graph.operand,
        )
        return found.scores

    def screened(self, loops: Iterable[float]) -> Iterator[tuple[float, FloatArray]]:
        """Self-loops with rough scores of the fold, each up to a constant per node."""
        for loop in loops:
            yield loop, self._solve(self.Y, loop, SCREENING_TOL, None)[self.graph.labeled[self.out]]

    def differences(self, loops: Sequence[float]) -> Iterator[tuple[float, FloatArray]]:
        """The same for two classes, by one column: the difference of their scores.

        It is all that a loss that is free of row means looks at. It is kept as a start.
        """
        signs = self.Y[:, :1] - self.Y[:, 1:]
        for loop in loops:
            found = self._solve(signs, loop, SCREENING_TOL, None)
            self._started[loop] = found
            half = 0.5 * found[self.graph.labeled[self.out]]
            yield loop, np.hstack([half, -half])

    def scores(self, loop: float) -> FloatArray:
        """Scores of the fold's labels."""
        nodes = self.graph.labeled[self.out]
        start = self._started.get(loop)
        if start is None:
            return np.asarray(self._solve(self.Y, loop, FOLD_TOL, None)[nodes])
        self._started.clear()
        # Sum and difference of the two columns, of which the second is half done.
        turn = np.array([[1.0, 1.0], [1.0, -1.0]])
        begun = np.zeros((start.shape[0], 2), order="F")
        begun[:, 1] = start[:, 0]
        turned = self._solve(self.Y @ turn, loop, FOLD_TOL, begun)[nodes]
        return np.asarray(0.5 * (turned @ turn))


def by_fold(
    graph: LabeledGraph, total: float, weights: Iterable[float], n_folds: int
) -> Iterator[tuple[float, FloatArray, FloatArray | None]]:
    """Left-out scores of all labels, fold by fold; labels and evidence are columns of one block.

    Parameters
    ----------
    graph : LabeledGraph
        The graph.
    total : float
        Self-loop and weight of the evidence.
    weights : iterable of float
        Label weights.
    n_folds : int
        Number of folds.

    Yields
    ------
    weight : float
        Label weight.
    from_labels, from_evidence : ndarray of shape (n_labeled, n_classes) or None
        Left-out scores, and what evidence of weight one adds to them.
    """
    fold = stratified_folds(graph.codes, n_folds)
    Y = graph.targets()
    k = graph.n_classes
    for weight in weights:
        out = np.zeros((graph.labeled.size, k * (1 if graph.evidence is None else 2)))
        for number in range(n_folds):
            inside = fold != number
            nodes, bias = graph.labeled[inside], None
            targets = Y[inside]
            if graph.evidence is not None:
                targets = np.hstack([targets, np.zeros_like(targets)])
                bias = np.hstack([np.zeros_like(graph.evidence), graph.evidence])
            result = linear_recovery(
                graph.adjacency,
                graph.diagonal,
                nodes,
                targets,
                tol=FOLD_TOL,
                label_weight=weight,
                self_loop=total,
                bias=bias,
                bias_weight=None if bias is None else np.zeros(graph.diagonal.size),
                operand=graph.operand,
            )
            out[~inside] = result.scores[graph.labeled[~inside]]
        yield weight, out[:, :k], out[:, k:] if graph.evidence is not None else None
