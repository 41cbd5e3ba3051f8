"""Learn the prior of each member and kind of data, and the numbers b and c of the weights.

They minimise the log-loss of the scored rows, averaged over sets within a kind and over kinds, plus
a penalty that pulls priors towards 0. Half of the weight of a task is spread over its rows, half
over its classes, so that rare classes count. Leaving a set out costs one more minimisation, which
starts from the solution for all sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .replay import Replay, Weights

LEARNED_ROWS = 200  # of a task
START = (0.0, 0.5)  # log b and c
# Ranges of priors, log b and c. With a larger c, one member would get all the weight if there are
# many more labels than in the recorded tasks.
PRIOR_RANGE = (-6.0, 6.0)
LOG_B_RANGE = (-3.0, 3.0)
C_RANGE = (0.0, 0.5)


@dataclass(frozen=True)
class Lesson:
    """Recorded tasks, as arrays of one shape.

    Parameters
    ----------
    members : tuple of (kind, member)
        What the columns of the arrays stand for.
    sets : ndarray of str of shape (n_tasks,)
        The set of each task.
    kinds : ndarray of str of shape (n_tasks,)
        Its kind.
    used : ndarray of bool of shape (n_tasks, n_slots)
        Which slots hold a member.
    place : ndarray of int of shape (n_tasks, n_slots)
        Position of the slot's member in `members`.
    excess : ndarray of shape (n_tasks, n_slots)
        Held-out loss minus the least held-out loss; 0 with too few labels.
    judged : ndarray of shape (n_tasks,)
        Labels that can be held out.
    at_truth : ndarray of shape (n_tasks, n_slots, n_rows)
        Probability of the true class.
    row_weights : ndarray of shape (n_tasks, n_rows)
        Weights of the rows, which add up to 1.
    """

    members: tuple[tuple[str, str], ...]
    sets: Any
    kinds: Any
    used: Any
    place: Any
    excess: Any
    judged: Any
    at_truth: Any
    row_weights: Any


def lesson_of(tasks: Sequence[Replay], rows: int = LEARNED_ROWS) -> Lesson:
    """Stack recorded tasks."""
    members = sorted({(t.record.kind, name) for t in tasks for name in t.names})
    position = {member: i for i, member in enumerate(members)}
    slots = max(len(t.names) for t in tasks)
    n = len(tasks)
    used = np.zeros((n, slots), dtype=bool)
    place = np.zeros((n, slots), dtype=int)
    excess = np.zeros((n, slots))
    judged = np.ones(n)
    at_truth = np.ones((n, slots, rows), dtype=np.float32)
    row_weights = np.zeros((n, rows), dtype=np.float32)
    rng = np.random.default_rng(0)
    for i, task in enumerate(tasks):
        truth = task.record.truth
        kept = rng.permutation(truth.size)[:rows]
        k = len(task.names)
        used[i, :k] = True
        place[i, :k] = [position[task.record.kind, name] for name in task.names]
        if task.losses is not None:
            excess[i, :k] = task.losses - task.losses.min()
            judged[i] = task.judged
        at_truth[i, :k, : kept.size] = task.scored[:, kept, truth[kept]]
        counts = np.bincount(truth[kept])
        balanced = 1.0 / (counts[truth[kept]] * np.count_nonzero(counts))
        row_weights[i, : kept.size] = 0.5 / kept.size + 0.5 * balanced
    return Lesson(
        members=tuple(members),
        sets=np.array([task.record.name for task in tasks]),
        kinds=np.array([task.record.kind for task in tasks]),
        used=used,
        place=place,
        excess=excess,
        judged=judged,
        at_truth=at_truth,
        row_weights=row_weights,
    )


def task_weights(lesson: Lesson, without: str | None = None) -> Any:
    """Return the weight of each task: sets count alike within a kind, kinds by their sets' root."""
    weights = np.zeros(lesson.sets.size)
    for kind in np.unique(lesson.kinds).tolist():
        names = [s for s in np.unique(lesson.sets[lesson.kinds == kind]).tolist() if s != without]
        for name in names:
            mine = (lesson.sets == name) & (lesson.kinds == kind)
            weights[mine] = 1.0 / np.count_nonzero(mine)
    return weights


def objective(x: Any, lesson: Lesson, weights: Any, penalty: float) -> tuple[float, Any]:
    """Return the penalised loss and its gradient."""
    n_members = len(lesson.members)
    prior, log_b, c = x[:n_members], x[n_members], x[n_members + 1]
    strength = np.exp(log_b) * lesson.judged**c
    slope = -strength[:, None] * lesson.excess
    z = np.where(lesson.used, prior[lesson.place] + slope, -np.inf)
    w = np.exp(z - z.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mixed = np.einsum("ts,tsr->tr", w.astype(np.float32), lesson.at_truth)
    mixed = np.maximum(mixed, 1e-6)
    loss = -(lesson.row_weights * np.log(mixed)).sum(axis=1)
    share = np.einsum("tsr,tr->ts", lesson.at_truth, lesson.row_weights / mixed)
    by_logit = weights[:, None] * (w - w * share)
    gradient = np.zeros_like(x)
    np.add.at(gradient, lesson.place[lesson.used], by_logit[lesson.used])
    gradient[n_members] = (by_logit * slope).sum()
    gradient[n_members + 1] = (by_logit * slope * np.log(lesson.judged)[:, None]).sum()
    gradient[:n_members] += 2.0 * penalty * prior
    value = float(weights @ loss + penalty * (prior @ prior))
    return value, gradient


def learn(
    lesson: Lesson, *, without: str | None = None, penalty: float = 0.1, start: Any = None
) -> Any:
    """Return the priors, log b and c as one array."""
    from scipy.optimize import minimize

    n_members = len(lesson.members)
    x0 = np.concatenate([np.zeros(n_members), START]) if start is None else start
    bounds = [PRIOR_RANGE] * n_members + [LOG_B_RANGE, C_RANGE]
    weights = task_weights(lesson, without)
    arguments = (lesson, weights, penalty)
    found = minimize(objective, x0, arguments, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x


def weights_of(lesson: Lesson, x: Any, kind: str) -> Weights:
    """Return the rule for one kind of data."""
    n_members = len(lesson.members)
    prior = {name: float(x[i]) for i, (of, name) in enumerate(lesson.members) if of == kind}
    return Weights(prior, b=float(np.exp(x[n_members])), c=float(x[n_members + 1]))
