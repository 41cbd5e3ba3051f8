"""The self-loop, chosen by leaving out one fold of the labels (three, where labels are few)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..estimators.tuning import DEFAULT, LARGE_SELF_LOOPS, Setting, Tuning, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system.left_out import FOLD_TOL, LARGE_FOLDS, SCREENING_TOL
from .manifest import Output
from .runner import Runner, Task
from .shuffle import part_file
from .solve import solve
from .steps import Column, Spec

__all__ = ["MOST_COLUMNS", "batches", "choose_setting", "collect"]

FloatArray = NDArray[np.float64]

# Columns that are solved together: each takes 24 bytes per node of its part.
MOST_COLUMNS = 16


def batches(name: str, columns: Sequence[Column], label_weight: float) -> list[Spec]:
    """Solves of as many columns as fit in memory together."""
    return [
        Spec(f"{name}-{i // MOST_COLUMNS}", tuple(columns[i : i + MOST_COLUMNS]), label_weight)
        for i in range(0, len(columns), MOST_COLUMNS)
    ]


def collect(output: Output, *, spec: Spec, part: int, step: int) -> dict[str, int]:
    """Scores of the labelled nodes of a part."""
    folder = output.folder
    x = folder.read_array(spec.checkpoint(step, part, "x"))
    labeled = folder.read_array(part_file(part, "labeled"))
    output.array(f"left/{spec.name}.{part:05d}.npy", x[labeled])
    return {}


def _left_out(
    runner: Runner, name: str, columns: Sequence[Column], weight: float, starts: Sequence[int],
    n_labels: int, tol: float,
) -> FloatArray:  # fmt: skip
    """Scores of all labels, a column for each; they count where the column's fold is left out."""
    found = np.zeros((n_labels, len(columns)))
    first = 0
    for spec in batches(name, columns, weight):
        solved = solve(runner, spec, starts, tol)
        parts = range(len(starts) - 1)
        runner.stage(
            f"{spec.name}-left",
            [
                Task(f"{p:05d}", collect, {"spec": spec, "part": p, "step": solved.step})
                for p in parts
            ],
        )
        runner.manifest.discard(f"{spec.name}-{solved.step:05d}")
        for p in parts:
            labels = runner.folder.read_array(part_file(p, "label"))
            scores = runner.folder.read_array(f"left/{spec.name}.{p:05d}.npy")
            found[labels, first : first + len(spec.columns)] = scores
        first += len(spec.columns)
    return found


def choose_setting(
    runner: Runner,
    codes: NDArray[np.int32],
    folds: NDArray[np.int32],
    n_classes: int,
    starts: Sequence[int],
    *,
    label_weight: float | None,
    self_loop: float | None,
) -> Tuning:
    """Choose what is not given by the loss on left-out labels, as one machine does.

    Parameters
    ----------
    runner : Runner
        Runs the solves.
    codes, folds : ndarray of int of shape (n_labels,)
        Class and fold of each label, in the order of the rows.
    n_classes : int
        Number of classes.
    starts : sequence of int
        First node of each part.
    label_weight, self_loop : float or None
        Given values, or None where they are to be chosen.

    Returns
    -------
    Tuning
        The choice, and the left-out scores that probabilities rest on.
    """
    counts = np.bincount(codes, minlength=n_classes)
    judged = counts[codes] >= 2
    weight = DEFAULT.label_weight if label_weight is None else label_weight
    fallback = Setting(weight, DEFAULT.self_loop if self_loop is None else self_loop)
    if (counts >= 2).sum() < 2 or judged.sum() < DEFAULT_POLICY.fewest_labels:
        return Tuning(fallback, 1.0, "too few labels", None, 0)
    if label_weight is not None and self_loop is not None:
        return Tuning(fallback, 1.0, "given", None, 0)
    one = codes.size >= DEFAULT_POLICY.screened_labels
    used = range(1 if one else LARGE_FOLDS)
    checked = np.flatnonzero(np.isin(folds, used))
    seen = judged[checked]
    Y = np.eye(n_classes)[codes[checked]]
    loops = LARGE_SELF_LOOPS if self_loop is None else (self_loop,)
    loop = loops[0]
    if len(loops) > 1:
        targets = [-1] if n_classes == 2 else list(range(n_classes))
        columns = [Column(g, t, f) for g in loops for f in used for t in targets]
        found = _left_out(runner, "tune", columns, weight, starts, codes.size, SCREENING_TOL)
        losses = {}
        for g in loops:
            scores = _own_fold(found, columns, g, folds, len(targets))[checked]
            if n_classes == 2:
                scores = np.hstack([0.5 * scores, -0.5 * scores])
            losses[g] = left_out_loss(Y[seen], scores[seen])
        loop = min(losses, key=losses.__getitem__)
    columns = [Column(loop, c, f) for f in used for c in range(n_classes)]
    found = _left_out(runner, "fold", columns, weight, starts, codes.size, FOLD_TOL)
    scores = _own_fold(found, columns, loop, folds, n_classes)[checked]
    loss = left_out_loss(Y[seen], scores[seen])
    source = "one fold" if one else "k-fold"
    return Tuning(Setting(weight, loop), loss, source, scores, len(loops), checked=checked)


def _own_fold(
    found: FloatArray, columns: Sequence[Column], loop: float, folds: NDArray[np.int32], width: int
) -> FloatArray:
    """For each label the columns to which its fold is unknown."""
    out = np.zeros((found.shape[0], width))
    for fold in {column.fold for column in columns}:
        mine = [i for i, c in enumerate(columns) if c.self_loop == loop and c.fold == fold]
        rows = np.flatnonzero(folds == fold)
        out[rows] = found[rows][:, mine]
    return out
