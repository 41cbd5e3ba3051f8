"""Several classes by nested binary problems, for any method of the registry.

The paper's suggestion: the classes are split in two halves, each half again, and every split is one
binary problem; only the labels below a split take part in it. A node descends to the side that each
split gives it; the score of a class is the product of the shares along its path, with the class
that the node arrives at put first. (The default needs none of this: all classes are columns of one
labelled system.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ..errors import UnreachedWarning
from ..problem import ClassProblem, GraphProblem
from ..solution import ClassSolution, Solution
from ..solvers.registry import get_solver, solve
from .options import FitOptions
from .tuning import Setting

__all__ = ["class_splits", "tree_scores"]

FloatArray = NDArray[np.float64]


def class_splits(
    counts: Sequence[int], order: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Nested splits of the classes into halves with about equally many labels.

    Parameters
    ----------
    counts : sequence of int
        Labels per class.
    order : sequence of int
        The classes, heaviest first.

    Yields
    ------
    left, right : list of int
        Class numbers on the two sides of a split; every split comes before those below it.
    """
    waiting = [list(order)]
    while waiting:
        classes = waiting.pop(0)
        if len(classes) < 2:
            continue
        sides: tuple[list[int], list[int]] = ([], [])
        mass = [0, 0]
        for c in classes:  # heaviest first, always to the lighter side
            side = 0 if mass[0] <= mass[1] else 1
            sides[side].append(c)
            mass[side] += counts[c]
        yield sides
        waiting += sides


def _heaviest_first(problem: ClassProblem, counts: NDArray[np.intp]) -> list[int]:
    """Classes by number of labels; equal ones by the nodes that carry them, never by their names.

    By the degrees of these nodes, which does not depend on the order of the rows either; where that
    is equal, too, by the first of them.
    """
    rows, codes = problem.W[problem.labeled], problem.targets.argmax(axis=1)
    degrees = np.bincount(codes, weights=np.diff(rows.indptr), minlength=counts.size)
    # Of the weights themselves: the diagonal of a normalised Laplacian is 1 everywhere.
    weights = np.bincount(codes, weights=rows.sum(axis=1), minlength=counts.size)
    first = problem.labeled[problem.targets.argmax(axis=0)]
    order: list[int] = np.lexsort((first, -weights, -degrees, -counts)).tolist()
    return order


def tree_scores(
    problem: ClassProblem, setting: Setting, options: FitOptions
) -> tuple[ClassSolution, tuple[Solution, ...]]:
    """Scores of all classes by nested binary problems.

    Parameters
    ----------
    problem : ClassProblem
        Graph, labels and evidence.
    setting : Setting
        Weights; given to methods that have these options.
    options : FitOptions
        `method` and `method_options`.

    Returns
    -------
    solution : ClassSolution
        Scores: products of shares along the paths.
    splits : tuple of Solution
        One per split.
    """
    n, k = problem.diagonal.size, problem.targets.shape[1]
    method = "harmonic" if options.method == "gdpa" else options.method
    accepted = {f.name for f in fields(get_solver(method))}
    given = {"label_weight": setting.label_weight, "self_loop": setting.self_loop}
    arguments = {name: v for name, v in given.items() if name in accepted}
    arguments |= dict(options.method_options)
    counts = problem.targets.sum(axis=0).astype(np.intp)
    scores = np.ones((n, k))
    here = np.ones((n, k), dtype=bool)  # classes a node can still arrive at
    splits = []
    for left, right in class_splits(counts.tolist(), _heaviest_first(problem, counts)):
        side = np.zeros(k)
        side[left], side[right] = 1.0, -1.0
        labels = np.zeros(n, dtype=np.int8)
        labels[problem.labeled] = (problem.targets @ side).astype(np.int8)
        binary = GraphProblem(problem.W, labels, laplacian=problem.laplacian)
        with warnings.catch_warnings():
            # The classifier names unreached nodes itself, once.
            warnings.simplefilter("ignore", UnreachedWarning)
            solution = solve(binary, method, **arguments)
        share = _left_share(solution)
        scores[:, left] *= share[:, None]
        scores[:, right] *= 1.0 - share[:, None]
        here[:, left] &= (solution.labels > 0)[:, None]
        here[:, right] &= (solution.labels < 0)[:, None]
        splits.append(solution)
    if k > 2:
        # Shares near 1/2 on a long path multiply to less than one of them on a short path: the
        # product alone would favour classes near the root.
        scores = 0.5 * scores + 0.5 * here
    whole = ClassSolution(
        method=options.method,
        scores=scores,
        iterations=max(s.iterations for s in splits),
        matvecs=sum(int(s.info.get("matvecs", 0)) for s in splits),
        converged=all(s.converged for s in splits),
        exact=True,
        message="; ".join(dict.fromkeys(s.message for s in splits)),
    )
    return whole, tuple(splits)


def _left_share(solution: Solution) -> FloatArray:
    """Share of the positive side: the scores, cut to [-1, 1] and never against the labels."""
    size = float(np.abs(solution.scores).max(initial=0.0))
    scaled = solution.scores / size if size > 1.0 else solution.scores
    magnitude = np.maximum(np.abs(scaled), 1e-3)
    agree = np.sign(scaled) == solution.labels
    signed = np.where(agree, magnitude, 1e-3) * solution.labels
    return np.asarray(0.5 * (1.0 + np.clip(signed, -1.0, 1.0)))
