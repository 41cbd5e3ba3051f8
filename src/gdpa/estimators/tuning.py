"""Choose label weight, self-loop, evidence weight and graph by leaving labels out.

The scores solve ``(L + diag(a + gamma + e)) F = a Y + e T`` (:mod:`gdpa.system`); what labelled
nodes score without their own label comes from there, too: one by one in closed form, where that is
affordable, else fold by fold.

The loss is scale-free: ``1 - cos^2`` of the angle between left-out scores and labels, each freed of
its row mean. It is the squared error that remains after the best common factor; scores shrink with
gamma, and only their proportions decide. Only labelled nodes enter: no other label is ever seen.
Nothing is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..folds import stratified_folds
from ..notebook import card
from ..system import LabeledSystem
from ..system.closed_form import labeled_blocks, left_out_by_one
from ..system.left_out import LARGE_FOLDS, FirstFold, fold_scores

__all__ = [
    "DEFAULT",
    "LARGE_SELF_LOOPS",
    "Given",
    "Setting",
    "Tuning",
    "left_out_loss",
    "tune",
    "tune_beside",
]

FloatArray = NDArray[np.float64]

# Multiples of the Laplacian's mean diagonal (1 for the normalised one). Chosen on the
# paper's 17 sets and Gaussian mixtures.
SELF_LOOPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LABEL_WEIGHTS = (np.inf, 10.0, 1.0, 0.1)
EVIDENCE_TOTALS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
EVIDENCE_SHARES = (0.0, 0.1, 0.3, 0.6, 1.0)
LARGE_SELF_LOOPS = (0.01, 0.1, 1.0)
LARGE_EVIDENCE_TOTALS = (0.1, 3.0, 30.0)
SMALL_FOLDS = 5


@dataclass(frozen=True)
class Setting:
    """The free parameters of the system.

    Parameters
    ----------
    label_weight : float
        Weight a of the labels; infinite keeps them exactly.
    self_loop : float
        Self-loop gamma.
    evidence_weight : float
        Weight e of the evidence.
    """

    label_weight: float
    self_loop: float
    evidence_weight: float = 0.0


@dataclass(frozen=True)
class Given:
    """What is fixed of a setting; None is to be chosen."""

    label_weight: float | None = None
    self_loop: float | None = None
    evidence_weight: float | None = None

    def filled(self, system: LabeledSystem, evidence: FloatArray | None) -> Setting:
        """Defaults in the place of what would be chosen."""
        loop = DEFAULT.self_loop * system.unit if self.self_loop is None else self.self_loop
        e = 0.1 * system.unit if self.evidence_weight is None else self.evidence_weight
        weight = DEFAULT.label_weight if self.label_weight is None else self.label_weight
        return Setting(float(weight), loop, 0.0 if evidence is None else e)


NOTHING = Given()
# What a plain prototype does best with on benchmarks; used where labels are too few to choose.
DEFAULT = Setting(label_weight=np.inf, self_loop=0.01)


@dataclass(frozen=True)
class Tuning:
    """What was chosen and why.

    Parameters
    ----------
    setting : Setting
        The choice.
    loss : float
        Its loss on left-out labels; NaN-free: 1 where nothing was left out.
    source : {"leave-one-out", "k-fold", "one fold", "sample", "too few labels", "given"}
        How the loss was measured ("sample": k-fold on a sample of the nodes), or why it was not.
    left_out : ndarray of shape (n_checked, n_classes) or None
        Scores of labelled nodes without their own label.
    tried : int
        How many settings were compared.
    candidate : int
        Which of the graphs was chosen.
    checked : ndarray of int of shape (n_checked,) or None
        Which of the labels were left out, as positions among them; None for all.
    """

    setting: Setting
    loss: float
    source: str
    left_out: FloatArray | None
    tried: int
    candidate: int = 0
    checked: NDArray[np.intp] | None = None

    def _repr_html_(self) -> str:
        facts = [
            ("label weight", f"{self.setting.label_weight:g}"),
            ("self-loop", f"{self.setting.self_loop:g}"),
            ("evidence weight", f"{self.setting.evidence_weight:g}"),
            ("chosen by", f"{self.source}, {self.tried} settings tried"),
        ]
        if self.left_out is not None:
            facts.append(("loss on left-out labels", f"{self.loss:.4g} (0 is best, 1 is useless)"))
        return card("Tuning", facts)


def left_out_loss(targets: FloatArray, scores: FloatArray) -> float:
    """Scale-free squared error ``1 - cos^2`` of left-out scores.

    Parameters
    ----------
    targets : ndarray of shape (n_labeled, n_classes)
        1 in the column of the node's class, else 0.
    scores : ndarray of shape (n_labeled, n_classes)
        Scores found without the node's own label.

    Returns
    -------
    float
        0 for scores proportional to the labels, 1 for useless ones.
    """
    y = targets - targets.mean(axis=1, keepdims=True)
    f = scores - scores.mean(axis=1, keepdims=True)
    size = float((f * f).sum()) * float((y * y).sum())
    inner = max(float((f * y).sum()), 0.0)
    return 1.0 - inner * inner / size if size > 0 else 1.0


def tune(
    systems: Sequence[LabeledSystem],
    codes: NDArray[np.int32],
    evidence: FloatArray | None = None,
    given: Given = NOTHING,
) -> Tuning:
    """Choose what is not given by the loss on left-out labels.

    Parameters
    ----------
    systems : sequence of LabeledSystem
        Candidate graphs with their labels, one column of targets per class; the preferred one
        first. Their weights are not looked at.
    codes : ndarray of int of shape (n_labeled,)
        Class numbers of the labels.
    evidence : ndarray of shape (n_nodes, n_classes), optional
        T.
    given : Given, optional
        What is fixed.

    Returns
    -------
    Tuning
        The choice. Nothing can be learnt by leaving labels out if fewer than two classes have two
        labels, or such classes have fewer than eight in total: the first graph and the default
        are taken then.
    """
    first = systems[0]
    policy, n, m = first.policy, first.diagonal.size, codes.size
    counts = np.bincount(codes, minlength=first.targets.shape[1])
    judged = counts[codes] >= 2  # the only label of its class cannot be predicted
    if (counts >= 2).sum() < 2 or judged.sum() < policy.fewest_labels:
        return Tuning(given.filled(first, evidence), 1.0, "too few labels", None, 0)
    e = 0.0 if evidence is None else given.evidence_weight
    known = None not in (given.label_weight, given.self_loop, e)
    if n > policy.large_nodes and len(systems) == 1 and known:
        # Left-out scores would serve calibration alone, and cost more than the fit.
        return Tuning(given.filled(first, evidence), 1.0, "given", None, 0)
    exact = m <= policy.most_labels and n * m <= policy.most_unknowns
    tried = 0
    if evidence is None and not exact and n > policy.large_nodes and m >= policy.screened_labels:
        weight, loop = given.filled(first, None).label_weight, given.self_loop
        held = stratified_folds(codes, LARGE_FOLDS) == 0
        fold = FirstFold(replace(first, label_weight=weight), held)
        if loop is None:
            loop, tried = _screened(fold, judged[held]), len(LARGE_SELF_LOOPS) - 1
        if len(systems) == 1 and n > policy.huge_nodes:
            # One fold tells enough: the choice, its loss, and the scores left out.
            scores, checked = fold.scores(loop), np.flatnonzero(held)
            loss = left_out_loss(fold.targets[judged[held]], scores[judged[held]])
            return Tuning(
                Setting(weight, loop), loss, "one fold", scores, tried + 1, checked=checked
            )
        given = replace(given, self_loop=loop)
    best: Tuning | None = None
    for number, system in enumerate(systems):
        if best is not None and n > policy.small_nodes:
            # Graphs of the same points want nearly the same self-loop: compare at that one.
            near = best.setting
            given = Given(near.label_weight, near.self_loop, near.evidence_weight)
        for setting, scores in left_out(system, codes, evidence, given, exact=exact):
            tried += 1
            loss = left_out_loss(system.targets[judged], scores[judged])
            if best is None or loss < best.loss - 1e-12:
                source = "leave-one-out" if exact else "k-fold"
                best = Tuning(setting, loss, source, scores, tried, number)
    assert best is not None
    return replace(best, tried=tried)


def tune_beside(
    systems: Sequence[LabeledSystem], codes: NDArray[np.int32], evidence: FloatArray, given: Given
) -> Tuning:
    """As :func:`tune`; evidence is never believed against the left-out labels.

    Parameters
    ----------
    systems, codes, evidence, given
        As in :func:`tune`.

    Returns
    -------
    Tuning
        The choice, without evidence where that has no larger loss and no weight was given. Beside
        evidence the graph matters less, and choosing it too would only fit noise: it is the first.
    """
    beside = tune(systems[:1], codes, evidence, given)
    if given.evidence_weight is not None or beside.left_out is None:
        return beside
    alone = tune(systems, codes, None, given)
    return beside if beside.loss < alone.loss else replace(alone, tried=alone.tried + beside.tried)


def left_out(
    system: LabeledSystem,
    codes: NDArray[np.int32],
    evidence: FloatArray | None,
    given: Given,
    *,
    exact: bool,
) -> Iterator[tuple[Setting, FloatArray]]:
    """All settings on one graph, with the left-out scores of each.

    Parameters
    ----------
    system : LabeledSystem
        The graph and its labels.
    codes, evidence
        As in :func:`tune`.
    given : Given
        What is fixed.
    exact : bool
        Whether labels are left out one by one.

    Yields
    ------
    setting : Setting
        The setting.
    scores : ndarray of shape (n_labeled, n_classes)
        What labelled nodes score without their own label.
    """
    unit, large = system.unit, system.diagonal.size > system.policy.large_nodes
    several = (4 if exact else 2) if not large and evidence is None else 1
    weights: list[float] = (unit * np.array(LABEL_WEIGHTS[:several])).tolist()
    if given.label_weight is not None:
        weights = [given.label_weight]
    totals = _totals(unit, large, evidence is not None, given)
    blocks = labeled_blocks(system, list(totals)) if exact else []
    for number, (total, pairs) in enumerate(totals.items()):
        parts: Iterable[tuple[float, FloatArray]] = []
        if exact:
            parts = left_out_by_one(blocks[number], system.targets, weights)
        else:
            folds = stratified_folds(codes, LARGE_FOLDS if large else SMALL_FOLDS)
            parts = fold_scores(replace(system, self_loop=total), folds, weights)
        for weight, scores in parts:
            for loop, e in pairs:
                yield Setting(weight, loop, e), scores


def _totals(
    unit: float, large: bool, evidence: bool, given: Given
) -> dict[float, list[tuple[float, float]]]:
    """Totals s = gamma + e, each with the pairs (gamma, e) that it splits into."""
    g, e = given.self_loop, given.evidence_weight
    tried = (unit * np.array(LARGE_SELF_LOOPS if large else SELF_LOOPS)).tolist()
    if not evidence or e is not None:
        e = e if evidence and e is not None else 0.0
        plain = {}
        for loop in tried if g is None else [g]:
            plain[loop + e] = [(loop, e)]
        return plain
    totals = (unit * np.array(LARGE_EVIDENCE_TOTALS if large else EVIDENCE_TOTALS)).tolist()
    if g is not None:
        return {g + value: [(g, value)] for value in [0.0, *totals]}
    return {s: [((1.0 - q) * s, q * s) for q in EVIDENCE_SHARES] for s in totals}


def _screened(fold: FirstFold, judged: NDArray[np.bool_]) -> float:
    """Self-loop that predicts the first fold best: with many labels one fold tells them apart."""
    loops, targets = [value * fold.rest.unit for value in LARGE_SELF_LOOPS], fold.targets[judged]
    losses = {s: left_out_loss(targets, rough[judged]) for s, rough in fold.screened(loops)}
    return min(losses, key=losses.__getitem__)
