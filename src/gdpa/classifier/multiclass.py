"""Scores of all classes: one block solve for all of them, or a tree of binary problems.

*shared*: ``(L + diag(a + gamma + e)) F = a Y + e T`` with one column per class, one matrix and one
block of right-hand sides. No class mean is subtracted: columns of 0 and 1 keep the scores
non-negative, and a pull towards 0 then favours no class.

*tree* (the paper's suggestion): the classes are split in two halves, each half again, and every
split is one binary problem for any method of the registry; only the labels below a split take part
in it. A node descends to the side that each split gives it; the score of a class is the product of
the shares along its path, with the class that the node arrives at put first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnreachedWarning
from ..problem import GraphProblem
from ..solution import Solution
from ..solvers.implicit_system import SharedAdjacency
from ..solvers.recovery import Recovery, linear_recovery
from ..solvers.registry import get_solver, solve
from .graphs import ClassifierGraph
from .tuning import Setting

__all__ = ["class_splits", "shared_scores", "tree_scores"]

FloatArray = NDArray[np.float64]


def shared_scores(
    graph: ClassifierGraph,
    labeled: NDArray[np.intp],
    targets: FloatArray,
    setting: Setting,
    evidence: FloatArray | None,
    *,
    tol: float,
    max_iter: int | None,
    x0: FloatArray | None = None,
    callback: Any = None,
    operand: SharedAdjacency | None = None,
) -> Recovery:
    """Scores of all classes by one block solve.

    Parameters
    ----------
    graph : ClassifierGraph
        The graph.
    labeled : ndarray of int
        Labelled nodes.
    targets : ndarray of shape (n_labeled, n_classes)
        1 in the column of each label's class.
    setting : Setting
        Weights.
    evidence : ndarray of shape (n_nodes, n_classes) or None
        Probabilities of the evidence.
    tol, max_iter, x0, callback, operand
        Of the linear solver.

    Returns
    -------
    Recovery
        The scores.
    """
    if labeled.size == graph.n_nodes and np.isinf(setting.label_weight):
        return Recovery(targets.copy(), 0.0, 0, 0, True, "dense", "all nodes are labelled")
    e = setting.evidence_weight if evidence is not None else 0.0
    loop = setting.self_loop + e
    if loop == 0.0:
        # Components without a label have no equation; the tiny pull makes their scores 0.
        loop = 1e-12 * max(float(graph.diagonal.mean()), 1e-300)
    return linear_recovery(
        graph.adjacency,
        graph.diagonal,
        labeled,
        targets,
        x0=x0,
        tol=tol,
        max_iter=max_iter,
        label_weight=setting.label_weight,
        self_loop=loop,
        bias=None if not e or evidence is None else e * evidence,
        bias_weight=None if not e else np.zeros(graph.n_nodes),
        callback=callback,
        operand=operand,
    )


def class_splits(counts: NDArray[Any]) -> Iterator[tuple[list[int], list[int]]]:
    """Nested splits of the classes into halves with about equally many labels.

    Parameters
    ----------
    counts : ndarray of int of shape (n_classes,)
        Labels per class.

    Yields
    ------
    left, right : list of int
        Class numbers on the two sides of a split; every split comes before those below it.
    """
    waiting = [list(np.argsort(-np.asarray(counts), kind="stable"))]
    while waiting:
        classes = waiting.pop(0)
        if len(classes) < 2:
            continue
        left: list[int] = []
        right: list[int] = []
        mass = [0, 0]
        for c in classes:  # heaviest first, always to the lighter side
            side = 0 if mass[0] <= mass[1] else 1
            (left if side == 0 else right).append(int(c))
            mass[side] += int(counts[c])
        yield left, right
        waiting += [left, right]


def tree_scores(
    graph: ClassifierGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.int32],
    n_classes: int,
    setting: Setting,
    evidence: FloatArray | None,
    *,
    method: str,
    options: Mapping[str, Any],
) -> tuple[FloatArray, tuple[Solution, ...]]:
    """Scores of all classes by nested binary problems.

    Parameters
    ----------
    graph : ClassifierGraph
        The graph.
    labeled : ndarray of int
        Labelled nodes.
    codes : ndarray of int
        Their classes.
    n_classes : int
        Number of classes.
    setting : Setting
        Weights; given to methods that have these options.
    evidence : ndarray of shape (n_nodes, n_classes) or None
        Probabilities of the evidence.
    method : str
        Name of the method.
    options : mapping
        Further options of the method.

    Returns
    -------
    scores : ndarray of shape (n_nodes, n_classes)
        Products of shares along the paths.
    solutions : tuple of Solution
        One per split.
    """
    accepted = {f.name for f in fields(get_solver(method))}
    given = {"label_weight": setting.label_weight, "self_loop": setting.self_loop}
    options = {k: v for k, v in given.items() if k in accepted} | dict(options)
    scores = np.ones((graph.n_nodes, n_classes))
    here = np.ones((graph.n_nodes, n_classes), dtype=bool)  # classes a node can still arrive at
    solutions = []
    for left, right in class_splits(np.bincount(codes, minlength=n_classes)):
        side = np.zeros(n_classes)
        side[left], side[right] = 1.0, -1.0
        labels = np.zeros(graph.n_nodes, dtype=np.int8)
        labels[labeled] = side[codes].astype(np.int8)
        bias = None
        if evidence is not None and setting.evidence_weight:
            bias = setting.evidence_weight * (evidence @ side)
        problem = GraphProblem(graph.W, labels, bias=bias, laplacian=graph.laplacian)
        with warnings.catch_warnings():
            # The classifier names unreached nodes itself, once.
            warnings.simplefilter("ignore", UnreachedWarning)
            solution = solve(problem, method, **options)
        share = _left_share(solution)
        scores[:, left] *= share[:, None]
        scores[:, right] *= 1.0 - share[:, None]
        here[:, left] &= (solution.labels > 0)[:, None]
        here[:, right] &= (solution.labels < 0)[:, None]
        solutions.append(solution)
    if n_classes > 2:
        # Shares near 1/2 on a long path multiply to less than one of them on a short path: the
        # product alone would favour classes near the root.
        scores = 0.5 * scores + 0.5 * here
    return scores, tuple(solutions)


def _left_share(solution: Solution) -> FloatArray:
    """Share of the positive side: the scores, cut to [-1, 1] and never against the labels."""
    size = float(np.abs(solution.scores).max(initial=0.0))
    scaled = solution.scores / size if size > 1.0 else solution.scores
    magnitude = np.maximum(np.abs(scaled), 1e-3)
    agree = np.sign(scaled) == solution.labels
    signed = np.where(agree, magnitude, 1e-3) * solution.labels
    return np.asarray(0.5 * (1.0 + np.clip(signed, -1.0, 1.0)))
