"""Replay rules for weights and class shares on recorded predictions, without a fit.

The rule for weights is

    w ~ exp(prior - b m^c (loss - least loss)),

with the mean held-out log-loss of each member over the m labels that can be held out. The committee
predicts the weighted mean of the sharpened members. With too few labels to hold any out, w ~
exp(prior).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .members import Sharpened, final_sharpness, sharpened
from .record import Record

LEAST = 1e-6


@dataclass(frozen=True)
class Weights:
    """The numbers of the rule.

    Parameters
    ----------
    prior : mapping of str to float
        Prior of each member; 0 where it is missing.
    b, c : float
        Strength of the held-out loss, and its exponent.
    default : float, default=0
        Prior of members that are not in `prior`; minus infinity leaves them out.
    """

    prior: Mapping[str, float] = field(default_factory=dict)
    b: float = 1.0
    c: float = 0.5
    default: float = 0.0

    def of(self, names: list[str], losses: Any, m: int) -> Any:
        """Return the weights of members, which add up to 1."""
        logits = np.array([self.prior.get(name, self.default) for name in names], dtype=float)
        if losses is not None:
            logits = logits - self.b * m**self.c * (losses - losses.min())
        w = np.exp(logits - logits.max())
        return w / w.sum()


@dataclass(frozen=True)
class Replay:
    """A recorded task with sharpened members."""

    record: Record
    leave_out: tuple[str, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        """The members."""
        return [name for name in self.record.models if name not in self.leave_out]

    @cached_property
    def _members(self) -> Sharpened:
        return sharpened(self.record.models, self.names, self.record.known)

    @property
    def held_out(self) -> Any:
        """Sharpened held-out probabilities, (n_members, n_labels, n_classes), or None."""
        return self._members.held_out

    @property
    def scored(self) -> Any:
        """Sharpened probabilities of the scored rows, (n_members, n_scored, n_classes)."""
        return self._members.scored

    @property
    def losses(self) -> Any:
        """Held-out losses of the members, or None."""
        return self._members.losses

    @property
    def judged(self) -> int:
        """Number of labels that can be held out."""
        return self._members.judged

    def combine(self, rule: Weights) -> tuple[Any, Any]:
        """Return calibrated probabilities of the scored rows, and of the held-out labels."""
        w = rule.of(self.names, self.losses, self.judged)
        scored = np.tensordot(w, self.scored, axes=1)
        if self.held_out is None:
            return scored, None
        held_out = np.tensordot(w, self.held_out, axes=1)
        return final_sharpness(held_out, scored, self.record.known)


def measures(p: Any, truth: Any) -> dict[str, float]:
    """Return error, balanced error, log-loss and AUC of predictions; all but log-loss in percent.

    AUC is the mean over classes of one class against the rest.
    """
    from scipy.stats import rankdata

    k = p.shape[1]
    wrong = p.argmax(axis=1) != truth
    present = np.flatnonzero(np.bincount(truth, minlength=k))
    areas = []
    for c in present.tolist():
        positive = truth == c
        n = int(positive.sum())
        if 0 < n < truth.size:
            rank = rankdata(p[:, c])[positive].sum() - n * (n + 1) / 2
            areas.append(rank / (n * (truth.size - n)))
    at_truth = np.maximum(p[np.arange(truth.size), truth], LEAST)
    return {
        "error": 100.0 * float(wrong.mean()),
        "balanced error": 100.0 * float(np.mean([wrong[truth == c].mean() for c in present])),
        "log-loss": float(-np.log(at_truth).mean()),
        "AUC": 100.0 * float(np.mean(areas)),
    }
