"""Replay the step that estimates class shares, and choose its numbers with one set left out.

The estimate itself is that of the package (:mod:`gdpa.estimators.class_shares`). Here its
temperature t, the weight a of its prior and the guard g are compared on recorded predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .replay import Replay, Weights, measures

TEMPERS = (0.5, 0.75, 1.0)
PRIOR_WEIGHTS = (0.3, 1.0)
GUARDS = (0.0, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class ShareNumbers:
    """The numbers of the step.

    Parameters
    ----------
    temper : float
        t: part of the estimated shift that is applied.
    prior_weight : float
        a: weight of the labels' shares, relative to all unlabelled samples.
    guard : float
        g: the shift is shrunk by the factor ``1 - g (k - 1) / z^2``; 0 for no guard.
    """

    temper: float = 0.5
    prior_weight: float = 0.3
    guard: float = 2.0


def shift_evidence(scored: Any, held_out: Any, known: Any) -> float:
    """Return z^2: how far mean predictions differ from those of the held-out labels.

    Without label shift, the mean probabilities of the unlabelled samples equal those of the
    held-out labels, up to the noise of the few labels. z^2 is the squared difference in units of
    that noise. It is about k - 1 if there is no shift.

    Parameters
    ----------
    scored : ndarray of shape (n_scored, n_classes)
        Probabilities of unlabelled samples.
    held_out : ndarray of shape (n_labels, n_classes)
        Held-out probabilities of the labels.
    known : ndarray of int of shape (n_labels,)
        Classes of the labels.
    """
    k = scored.shape[1]
    residual = held_out.copy()
    for c in range(k):
        residual[known == c] -= held_out[known == c].mean(axis=0)
    freedom = max(known.size - k, 1)
    noise = residual.T @ residual / (freedom * known.size)
    difference = scored.mean(axis=0) - held_out.mean(axis=0)
    # Probabilities add up to 1, so one class follows from the others.
    noise, difference = noise[1:, 1:], difference[1:]
    ridge = 1e-4 * np.trace(noise) / max(k - 1, 1) + 1e-12
    noise = noise + ridge * np.eye(k - 1)
    return float(difference @ np.linalg.solve(noise, difference))


def estimated(p: Any, labelled: Any, numbers: ShareNumbers, max_iter: int = 50) -> Any:
    """Estimate class shares by expectation-maximisation."""
    shares = labelled
    for _ in range(max_iter):
        q = p * (shares / labelled) ** numbers.temper
        mean = (q / q.sum(axis=1, keepdims=True)).mean(axis=0)
        before = shares
        shares = (mean + numbers.prior_weight * labelled) / (1.0 + numbers.prior_weight)
        if np.abs(shares - before).max() < 1e-9:
            break
    return shares


def offset(task: Replay, p: Any, held_out: Any, numbers: ShareNumbers) -> Any:
    """Return the shift of each class's log-probability; zeros where the step does not apply."""
    k = p.shape[1]
    known = task.record.known
    counts = np.bincount(known, minlength=k)
    if held_out is None or counts.min() < 2 or np.ptp(counts) > 1:
        return np.zeros(k)
    labelled = counts / known.size
    factor = 1.0
    if numbers.guard > 0:
        evidence = shift_evidence(p, held_out, known)
        factor = max(0.0, 1.0 - numbers.guard * (k - 1) / max(evidence, 1e-12))
    shift = np.log(estimated(p, labelled, numbers) / labelled)
    return factor * numbers.temper * shift


def shifted(p: Any, by: Any) -> Any:
    """Return probabilities with shifted logarithms."""
    q = p * np.exp(by - by.max())
    return q / q.sum(axis=1, keepdims=True)


def with_shares(task: Replay, rule: Weights, numbers: ShareNumbers | None) -> Any:
    """Return combined probabilities of the scored rows after the step."""
    p, held_out = task.combine(rule)
    return p if numbers is None else shifted(p, offset(task, p, held_out, numbers))


def candidates() -> list[ShareNumbers]:
    """Return the numbers that are compared."""
    return [ShareNumbers(*each) for each in product(TEMPERS, PRIOR_WEIGHTS, GUARDS)]


def both_errors(
    tasks: Sequence[Replay], rules: dict[tuple[str, str], Weights]
) -> dict[str, dict[ShareNumbers | None, float]]:
    """Return the mean of error and balanced error of each set; the candidate None is no step."""
    found: dict[str, dict[ShareNumbers | None, list[float]]] = {}
    for task in tasks:
        r = task.record
        p, held_out = task.combine(rules[r.kind, r.name])
        cells = found.setdefault(r.name, {})
        for numbers in (None, *candidates()):
            q = p if numbers is None else shifted(p, offset(task, p, held_out, numbers))
            found_here = measures(q, r.truth)
            both = 0.5 * (found_here["error"] + found_here["balanced error"])
            cells.setdefault(numbers, []).append(both)
    return {
        name: {numbers: float(np.mean(values)) for numbers, values in cells.items()}
        for name, cells in found.items()
    }


def chosen(
    losses: dict[str, dict[ShareNumbers | None, float]], without: str | None = None
) -> ShareNumbers | None:
    """Return the numbers with the least mean over the sets, one of them left out."""
    names = [name for name in losses if name != without]
    options: list[ShareNumbers | None] = [None, *candidates()]
    means = [np.mean([losses[name][numbers] for name in names]) for numbers in options]
    return options[int(np.argmin(means))]
