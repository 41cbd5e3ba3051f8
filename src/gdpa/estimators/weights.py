"""How much each member counts: one rule.

The weight of a member follows from its cross-validated log-loss,

    w ~ exp(prior - b m^c (loss - least loss)),   m held-out labels.

Each member is first sharpened by its own held-out labels; the committee predicts the weighted mean
of the members' probabilities. The prior of each member, b and c are stored for each kind of data in
``weights.json``, which says where they come from: those of embeddings, words and links were learned
from many data sets; those of other kinds were set by hand, because learning did not gain. With too
few labels to hold any out, the prior alone answers.

To learn other numbers, cache the held-out probabilities of the members (``Trial.held_out``) and
replay the rule on them:

>>> import numpy as np
>>> from gdpa.estimators.weights import WeightRule, weigh
>>> codes = np.array([0, 1, 0, 1])
>>> good = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
>>> held_out = {"forest": good, "linear": 1.0 - good}
>>> rule = WeightRule(prior={"forest": 0.5}, b=1.0, c=0.5)
>>> found = weigh(held_out, codes, rule)
>>> found.names
('forest', 'linear')
>>> bool(found.of("forest") > found.of("linear"))
True
>>> bool(found.combine(held_out)[0, 0] > 0.5)  # what the committee predicts for the first label
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..notebook import card
from .data import Kind
from .probabilities import LEAST_SHARE, judged_labels, sharpen
from .trials import cross_validated_loss

FILE = Path(__file__).with_name("weights.json")
NOBODY: Mapping[str, NDArray[np.integer]] = MappingProxyType({})
# Smaller weights are set to 0. The second is for weights from a subsample: a member with weight
# must be fitted to all samples, so it has to count.
LEAST_WEIGHT = 0.01
LEAST_SAMPLE_WEIGHT = 0.05
# A smaller gain in held-out log-loss does not justify fitting a member to many samples.
LEAST_GAIN = 0.01
# Parts of the weight of the user's models that are tried; see `weigh`.
MODEL_PARTS = (1.0, 0.5, 0.25, 0.125, 0.0)


@dataclass(frozen=True)
class WeightRule:
    """The numbers of the rule for one kind of data.

    Parameters
    ----------
    prior : mapping of str to float
        Log-weight of each member before any label is held out; 0 for members that are not named.
    b, c : float
        Factor and power of the number of held-out labels m in ``b m^c``.
    """

    prior: Mapping[str, float] = field(default_factory=dict)
    b: float = 1.0
    c: float = 0.5

    def log_priors(self, names: Iterable[str]) -> FloatArray:
        """Return the log-weights of members before any label is held out."""
        return np.array([float(self.prior.get(name, 0.0)) for name in names])

    def weights(
        self,
        names: Iterable[str],
        losses: FloatArray | None,
        n_labels: int,
        least: float = LEAST_WEIGHT,
    ) -> FloatArray:
        """Return weights that add up to 1; those below `least` are 0.

        Parameters
        ----------
        names : iterable of str
            The members.
        losses : ndarray of shape (n_members,) or None
            Their held-out losses; None if no label could be held out.
        n_labels : int
            Number of held-out labels, m.
        least : float, default=0.01
            Smaller weights are set to 0.
        """
        logs = self.log_priors(names)
        if losses is not None:
            logs = logs - self.b * float(n_labels) ** self.c * (losses - losses.min())
        w = np.exp(logs - logs.max())
        w /= w.sum()
        w[w < min(least, float(w.max()))] = 0.0
        return np.asarray(w / w.sum())


def read_rules(path: Path = FILE) -> tuple[dict[str, WeightRule], dict[str, Any]]:
    """Return the rule of each kind of data, and where the numbers come from."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {kind: WeightRule(**numbers) for kind, numbers in stored["kinds"].items()}, stored[
        "provenance"
    ]


@cache
def _stored_rules() -> dict[str, WeightRule]:
    return read_rules()[0]


def rule_for(kind: Kind) -> WeightRule:
    """Return the rule for a kind of data."""
    return _stored_rules()[kind]


@storable("weights")
@dataclass(frozen=True, eq=False)
class MemberWeights:
    """Weights of the members, and their held-out losses.

    Parameters
    ----------
    names : tuple of str
        The members.
    weights : ndarray of shape (n_members,)
        Their weights, which add up to 1.
    losses : ndarray of shape (n_members,) or None
        Cross-validated log-losses; None if no label could be held out.
    sharpness : ndarray of shape (n_members,)
        Exponent of each member's shares.
    loss : float or None
        Cross-validated log-loss of the ensemble.
    loss_without_models : float or None
        The same without the user-supplied models, if there are any.
    rule : str
        How the weights were chosen: "held-out loss", or "prior" with too few labels.
    trust : float
        Weight of the combined probabilities in a mixture with equal probabilities; below 1 if no
        label could be held out.
    """

    names: tuple[str, ...]
    weights: FloatArray
    losses: FloatArray | None
    sharpness: FloatArray
    loss: float | None = None
    loss_without_models: float | None = None
    rule: str = "held-out loss"
    trust: float = 1.0

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        m = len(self.names)
        check_numbers("weights", self.weights, (m,), at_least=0, at_most=1.0 + 1e-9)
        check_numbers("sharpness", self.sharpness, (m,), at_least=0)
        if not 0 <= self.trust <= 1:
            raise ValueError(f"trust={self.trust!r} must be between 0 and 1")
        if self.losses is not None:
            check_numbers("losses", self.losses, (m,))
        if len(set(self.names)) < m or abs(self.weights.sum() - 1.0) > 1e-6:
            raise ValueError("names must differ, and weights must add up to 1")

    def _lines(self) -> list[tuple[str, str]]:
        """Return the name and the numbers of each member and of the ensemble."""
        lines = [("member", "weight" + ("" if self.losses is None else "  held-out log-loss"))]
        for i in np.argsort(-self.weights, kind="stable").tolist():
            loss = "" if self.losses is None else f"  {self.losses[i]:.3f}"
            lines.append((self.names[i], f"{self.weights[i]:6.3f}{loss}"))
        if self.loss is not None:
            lines.append(("ensemble", f"{1:6.3f}  {self.loss:.3f}"))
        return lines

    def __repr__(self) -> str:
        lines = [f"{name:20s} {numbers}" for name, numbers in self._lines()]
        return "\n".join([*lines, f"weights chosen by: {self.rule}"])

    def _repr_html_(self) -> str:
        return card("Ensemble", self._lines(), f"Weights chosen by: {self.rule}.")

    def of(self, name: str) -> float:
        """Return the weight of a member; 0 if there is no member of that name."""
        return float(self.weights[self.names.index(name)]) if name in self.names else 0.0

    def combine(
        self,
        member_probabilities: Mapping[str, FloatArray | None],
        abstaining: Mapping[str, NDArray[np.integer]] = NOBODY,
    ) -> FloatArray:
        """Return the weighted mean of the members' sharpened probabilities.

        Parameters
        ----------
        member_probabilities : mapping of str to ndarray of shape (n_rows, n_classes) or None
            Probabilities of the members; those that are None or missing are not used, and the
            weights of the others are scaled to add up to 1.
        abstaining : mapping of str to ndarray of int, optional
            Rows about which a member knows nothing. The others answer for them. If all abstain,
            their prior shares are used.
        """
        total = available = fallback = np.zeros((1, 1))
        for name, weight, beta in zip(self.names, self.weights, self.sharpness, strict=True):
            shares = member_probabilities.get(name)
            if weight > 0 and shares is not None:
                w = np.full((shares.shape[0], 1), weight)
                p = w * sharpen(shares, float(beta), least=LEAST_SHARE)
                fallback = fallback + p
                silent = abstaining.get(name)
                if silent is not None:
                    w[silent] = 0.0
                    p[silent] = 0.0
                total = total + p
                available = available + w
        none = available == 0
        total = np.where(none, fallback, total)
        p = total / np.where(none, total.sum(axis=1, keepdims=True), available)
        return np.asarray(self.trust * p + (1.0 - self.trust) / p.shape[1])


def weigh(
    held_out: Mapping[str, FloatArray] | Iterable[str],
    codes: NDArray[np.integer],
    rule: WeightRule,
    *,
    models: Iterable[str] = (),
    least: float = LEAST_WEIGHT,
) -> MemberWeights:
    """Compute the weights and sharpness of the members from their held-out probabilities.

    Parameters
    ----------
    held_out : mapping of str to ndarray of shape (n_labels, n_classes), or iterable of str
        Held-out probabilities of the members; only their names if no label could be held out.
    codes : ndarray of int of shape (n_labels,)
        Classes of the held-out labels.
    rule : WeightRule
        The numbers of the rule.
    models : iterable of str, optional
        Members that are user-supplied models. Their total weight is limited so that the held-out
        loss is no worse than without them.
    least : float, default=0.01
        Smaller weights are set to 0.
    """
    names = tuple(held_out)
    if not isinstance(held_out, Mapping):
        weights = rule.weights(names, None, 0, least)
        return MemberWeights(names, weights, None, np.ones(len(names)), rule="prior")
    each = [cross_validated_loss(p, codes) for p in held_out.values()]
    losses = np.array([loss.mean() for loss, _ in each])
    sharpness = np.array([beta for _, beta in each])
    m = int(judged_labels(codes, next(iter(held_out.values())).shape[1]).sum())
    given = np.isin(names, list(models))

    def with_loss(weights: FloatArray) -> MemberWeights:
        found = MemberWeights(names, weights, losses, sharpness)
        loss = cross_validated_loss(found.combine(held_out), codes)[0].mean()
        return replace(found, loss=float(loss))

    plain = rule.weights(names, losses, m, least)
    if not given.any() or given.all():
        return with_loss(plain)
    apart = [np.zeros(len(names)), np.zeros(len(names))]
    for part, members in zip(apart, (~given, given), strict=True):
        among = [name for name, inside in zip(names, members, strict=True) if inside]
        part[members] = rule.weights(among, losses[members], m, least)
    total = float(plain[given].sum())
    tried = [
        with_loss((1.0 - share * total) * apart[0] + share * total * apart[1])
        for share in MODEL_PARTS
    ]
    best = min(tried, key=lambda found: found.loss if found.loss is not None else np.inf)
    return replace(best, loss_without_models=tried[-1].loss)


def only_needed(
    weights: MemberWeights, held_out: Mapping[str, FloatArray], codes: NDArray[np.integer]
) -> MemberWeights:
    """Leave out members without which the committee does as well, those of small weight first.

    A committee does as well if its mean held-out loss is higher by less than a gain that is too
    small to matter, even if one standard error of the difference is added: few labels do not show
    what averaging over members gains. The rule is for many samples, where every member with weight
    takes long to fit.

    Parameters
    ----------
    weights : MemberWeights
        Weights from held-out labels.
    held_out : mapping of str to ndarray of shape (n_labels, n_classes)
        Held-out probabilities of the members.
    codes : ndarray of int of shape (n_labels,)
        Classes of the held-out labels.
    """

    def losses(found: MemberWeights) -> FloatArray:
        return cross_validated_loss(found.combine(held_out), codes)[0]

    kept = weights
    of_all = losses(weights)
    for i in np.argsort(weights.weights, kind="stable").tolist():
        rest = kept.weights.copy()
        rest[i] = 0.0
        if rest.sum() == 0:
            break
        fewer = replace(kept, weights=rest / rest.sum())
        worse = losses(fewer) - of_all
        noise = float(worse.std()) / np.sqrt(max(worse.size, 1))
        if worse.mean() + noise <= LEAST_GAIN:
            kept = fewer
    if kept is weights:
        return weights
    return replace(kept, loss=float(losses(kept).mean()))
