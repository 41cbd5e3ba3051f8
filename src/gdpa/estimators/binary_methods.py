"""Classify several classes by binary methods: one-vs-rest, or a tree of binary splits.

One-vs-rest solves one binary problem per class, and the largest score wins. The tree is the paper's
suggestion. It splits the classes into two halves recursively, and every split is a binary problem
with the labels below it only. A sample descends to the side that each split assigns. The score of a
class is the product of the shares along its path, and the class at which the sample arrives comes
first. The method "harmonic" needs neither: all classes are columns of one linear system.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..errors import UnreachedWarning
from ..problem import ClassProblem, GraphProblem
from ..solution import Solution
from ..solvers.registry import get_solver, solve
from .options import CheckedOptions
from .tuning import Setting


def class_splits(
    counts: Sequence[int], order: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield nested splits of the classes with about the same number of labels on each side."""
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
    """Sort classes by number of labels, then by properties of their nodes but never by name."""
    # Degrees break ties because they do not depend on the order of the rows. The first labelled
    # node breaks the remaining ties.
    rows = problem.W[problem.labeled]
    codes = problem.targets.argmax(axis=1)
    degrees = np.bincount(codes, weights=np.diff(rows.indptr), minlength=counts.size)
    # Sums of weights, because the diagonal of a normalised Laplacian is 1 everywhere.
    weights = np.bincount(codes, weights=rows.sum(axis=1), minlength=counts.size)
    first = problem.labeled[problem.targets.argmax(axis=0)]
    order: list[int] = np.lexsort((first, -weights, -degrees, -counts)).tolist()
    return order


def binary_scores(
    problem: ClassProblem, setting: Setting, options: CheckedOptions
) -> tuple[FloatArray, tuple[Solution, ...]]:
    """Return the scores of all classes, and the solution of each binary problem.

    The weights in `setting` go to methods that have these options.
    """
    accepted = {f.name for f in fields(get_solver(options.method))}
    given = {"label_weight": setting.label_weight, "self_loop": setting.self_loop}
    # An infinite label weight is the default of the only method that has this option.
    arguments: dict[str, Any] = {
        name: v for name, v in given.items() if name in accepted and np.isfinite(v)
    }
    arguments |= dict(options.method_options or {})
    several = problem.targets.shape[1] > 2
    by_rest = several and options.multiclass == "one-vs-rest"
    scores, records = (_one_vs_rest if by_rest else _tree)(problem, options.method, arguments)
    return scores, tuple(records)


def _solve(
    problem: ClassProblem, side: FloatArray, method: str, arguments: dict[str, Any]
) -> Solution:
    """Solve one binary problem: classes on side 1 against those on side -1, others unlabelled."""
    labels = np.zeros(problem.diagonal.size, dtype=np.int8)
    labels[problem.labeled] = (problem.targets @ side).astype(np.int8)
    binary = GraphProblem(problem.W, labels, laplacian=problem.laplacian)
    with warnings.catch_warnings():
        # The classifier warns about unreached samples itself, once.
        warnings.simplefilter("ignore", UnreachedWarning)
        return solve(binary, method, **arguments)


def _one_vs_rest(
    problem: ClassProblem, method: str, arguments: dict[str, Any]
) -> tuple[FloatArray, list[Solution]]:
    """Return scores between 0 and 1, on one scale for all classes."""
    k = problem.targets.shape[1]
    records = [_solve(problem, 2.0 * np.eye(k)[c] - 1.0, method, arguments) for c in range(k)]
    scores = np.column_stack([record.scores for record in records])
    size = max(1.0, float(np.abs(scores).max(initial=0.0)))
    return 0.5 * (1.0 + scores / size), records


def _tree(
    problem: ClassProblem, method: str, arguments: dict[str, Any]
) -> tuple[FloatArray, list[Solution]]:
    """Return the products of the shares along the paths of a tree of splits."""
    n = problem.diagonal.size
    k = problem.targets.shape[1]
    counts = problem.targets.sum(axis=0).astype(np.intp)
    scores = np.ones((n, k))
    here = np.ones((n, k), dtype=bool)  # classes that a sample can still reach
    records = []
    for left, right in class_splits(counts.tolist(), _heaviest_first(problem, counts)):
        side = np.zeros(k)
        side[left], side[right] = 1.0, -1.0
        solution = _solve(problem, side, method, arguments)
        # Share of the positive side. Scores are clipped to [-1, 1] and never contradict labels.
        size = max(1.0, float(np.abs(solution.scores).max(initial=0.0)))
        scaled = solution.scores / size
        agree = np.sign(scaled) == solution.labels
        magnitude = np.where(agree, np.maximum(np.abs(scaled), 1e-3), 1e-3)
        share = 0.5 * (1.0 + magnitude * solution.labels)
        scores[:, left] *= share[:, None]
        scores[:, right] *= 1.0 - share[:, None]
        here[:, left] &= (solution.labels > 0)[:, None]
        here[:, right] &= (solution.labels < 0)[:, None]
        records.append(solution)
    if k > 2:
        # The product alone would favour classes near the root, because every further split
        # multiplies by a share below 1.
        scores = 0.5 * scores + 0.5 * here
    return scores, records
