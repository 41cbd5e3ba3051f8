"""Several classes by methods for two: one class against the rest, or a tree of binary splits.

One against rest: one binary problem per class; the largest score wins. The tree is the paper's
suggestion: the classes are split in two halves, each half again, and every split is one binary
problem in which only the labels below it take part. A sample descends to the side that each split
gives it; the score of a class is the product of the shares along its path, with the class that the
sample arrives at put first. ("harmonic" needs neither: all classes are columns of one system.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnreachedWarning
from ..problem import ClassProblem, GraphProblem
from ..solution import ClassSolution, Solution
from ..solvers.registry import get_solver, solve
from .options import FitOptions
from .tuning import Setting

FloatArray = NDArray[np.float64]


def class_splits(
    counts: Sequence[int], order: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield nested splits of the classes (heaviest first) with about equally many labels a side."""
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
    """Sort classes by number of labels; equal ones by the nodes that carry them, not by name.

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


def binary_scores(
    problem: ClassProblem, setting: Setting, options: FitOptions
) -> tuple[ClassSolution, tuple[Solution, ...]]:
    """Return the scores of all classes, and the record of each binary problem.

    Parameters
    ----------
    problem : ClassProblem
        Graph and labels.
    setting : Setting
        Weights; given to methods that have these options.
    options : FitOptions
        `method`, `method_options` and `multiclass`.
    """
    accepted = {f.name for f in fields(get_solver(options.method))}
    given = {"label_weight": setting.label_weight, "self_loop": setting.self_loop}
    # An infinite label weight is the default of the one method that takes it.
    arguments: dict[str, Any] = {
        name: v for name, v in given.items() if name in accepted and np.isfinite(v)
    }
    arguments |= dict(options.method_options or {})
    several = problem.targets.shape[1] > 2
    by_rest = several and options.multiclass == "one-vs-rest"
    scores, records = (_one_vs_rest if by_rest else _tree)(problem, options.method, arguments)
    whole = ClassSolution(
        method=options.method,
        scores=scores,
        iterations=max(s.iterations for s in records),
        matvecs=sum(int(s.info.get("matvecs", 0)) for s in records),
        converged=all(s.converged for s in records),
        exact=True,
        message="; ".join(dict.fromkeys(s.message for s in records)),
    )
    return whole, tuple(records)


def _solve(
    problem: ClassProblem, side: FloatArray, method: str, arguments: dict[str, Any]
) -> Solution:
    """Solve one binary problem: classes with side 1 against those with -1, others unlabelled."""
    labels = np.zeros(problem.diagonal.size, dtype=np.int8)
    labels[problem.labeled] = (problem.targets @ side).astype(np.int8)
    binary = GraphProblem(problem.W, labels, laplacian=problem.laplacian)
    with warnings.catch_warnings():
        # The classifier names unreached samples itself, once.
        warnings.simplefilter("ignore", UnreachedWarning)
        return solve(binary, method, **arguments)


def _one_vs_rest(
    problem: ClassProblem, method: str, arguments: dict[str, Any]
) -> tuple[FloatArray, list[Solution]]:
    """Return scores between 0 and 1: those of all classes on one scale."""
    k = problem.targets.shape[1]
    records = [_solve(problem, 2.0 * np.eye(k)[c] - 1.0, method, arguments) for c in range(k)]
    scores = np.column_stack([record.scores for record in records])
    size = max(1.0, float(np.abs(scores).max(initial=0.0)))
    return 0.5 * (1.0 + scores / size), records


def _tree(
    problem: ClassProblem, method: str, arguments: dict[str, Any]
) -> tuple[FloatArray, list[Solution]]:
    """Return products of the shares along the paths of a tree of splits."""
    n, k = problem.diagonal.size, problem.targets.shape[1]
    counts = problem.targets.sum(axis=0).astype(np.intp)
    scores = np.ones((n, k))
    here = np.ones((n, k), dtype=bool)  # classes a sample can still arrive at
    records = []
    for left, right in class_splits(counts.tolist(), _heaviest_first(problem, counts)):
        side = np.zeros(k)
        side[left], side[right] = 1.0, -1.0
        solution = _solve(problem, side, method, arguments)
        share = _left_share(solution)
        scores[:, left] *= share[:, None]
        scores[:, right] *= 1.0 - share[:, None]
        here[:, left] &= (solution.labels > 0)[:, None]
        here[:, right] &= (solution.labels < 0)[:, None]
        records.append(solution)
    if k > 2:
        # Shares near 1/2 on a long path multiply to less than one of them on a short path: the
        # product alone would favour classes near the root.
        scores = 0.5 * scores + 0.5 * here
    return scores, records


def _left_share(solution: Solution) -> FloatArray:
    """Return the share of the positive side: scores cut to [-1, 1], never against the labels."""
    size = float(np.abs(solution.scores).max(initial=0.0))
    scaled = solution.scores / size if size > 1.0 else solution.scores
    magnitude = np.maximum(np.abs(scaled), 1e-3)
    agree = np.sign(scaled) == solution.labels
    signed = np.where(agree, magnitude, 1e-3) * solution.labels
    return np.asarray(0.5 * (1.0 + np.clip(signed, -1.0, 1.0)))
