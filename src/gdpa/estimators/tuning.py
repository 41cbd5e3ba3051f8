"""Choose label weight, self-loop and number of neighbours of a graph by cross-validation.

The scores solve ``(L + diag(a + gamma)) F = a Y`` (:mod:`gdpa.system`). Held-out scores are
computed by leave-one-out in closed form where that is affordable, otherwise fold by fold.

The loss is scale-free: ``1 - cos^2`` of the angle between held-out scores and labels, after
subtracting row means. It is the squared error that remains after the best common factor, because
scores shrink with gamma and only their proportions matter. Results are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..notebook import card
from ..system import LabeledSystem
from ..system.closed_form import labeled_blocks, left_out_by_one
from ..system.left_out import LARGE_FOLDS, FirstFold, fold_scores
from .labels import stratified_folds
from .probabilities import judged_labels
from .probabilities import left_out_loss as left_out_loss

# Multiples of the Laplacian's mean diagonal (1 for the normalised one). Chosen on the paper's 17
# data sets and Gaussian mixtures.
SELF_LOOPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LABEL_WEIGHTS = (np.inf, 10.0, 1.0, 0.1)
LARGE_SELF_LOOPS = (0.01, 0.1, 1.0)


@storable("setting")
@dataclass(frozen=True)
class Setting:
    """Parameters of the linear system.

    Parameters
    ----------
    label_weight : float
        Weight a of the labels; an infinite weight keeps them exactly.
    self_loop : float
        Self-loop gamma.
    """

    label_weight: float
    self_loop: float

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if not (self.label_weight > 0 and 0 <= self.self_loop < np.inf):
            raise ValueError(f"{self} has a weight out of range")


@dataclass(frozen=True)
class Given:
    """User-supplied parameters of a setting; None means that the value is chosen."""

    label_weight: float | None = None
    self_loop: float | None = None

    def filled(self, system: LabeledSystem) -> Setting:
        """Return the setting with defaults for the values that are None."""
        loop = DEFAULT.self_loop * system.unit if self.self_loop is None else self.self_loop
        weight = DEFAULT.label_weight if self.label_weight is None else self.label_weight
        return Setting(float(weight), float(loop))


NOTHING = Given()
# Used if there are too few labels to choose.
DEFAULT = Setting(label_weight=np.inf, self_loop=0.01)


# Why no label was held out, by the source of a tuning.
NO_HELD_OUT = {
    "too few labels": "there are too few labels to hold any out",
    "given": "label_weight and self_loop were given, so no label was held out on this large graph",
    "signed weights": "no label is held out on a graph with negative weights",
}


@storable("tuning")
@dataclass(frozen=True)
class Tuning:
    """Record of the tuning.

    Parameters
    ----------
    setting : Setting
        The chosen setting.
    loss : float
        Its loss on held-out labels, from 0 (best) to 1; 1 if no label was held out.
    source : {"leave-one-out", "k-fold", "one fold", "sample", "too few labels", "given"}
        How the loss was measured ("sample": k-fold on a subsample), or why it was not. "given"
        means that the user gave all parameters of a large graph, and "signed weights" that there
        was nothing to choose.
    left_out : ndarray of shape (n_checked, n_classes) or None
        Held-out scores of labelled samples.
    tried : int
        Number of settings (or members) compared.
    candidate : int
        Index of the chosen graph.
    checked : ndarray of int of shape (n_checked,) or None
        Positions of the held-out labels among all labels; None for all.
    """

    setting: Setting
    loss: float
    source: str
    left_out: FloatArray | None
    tried: int
    candidate: int = 0
    checked: NDArray[np.integer] | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if self.left_out is not None:
            check_numbers("left_out", self.left_out, (None, None))
        if self.checked is not None:
            size = -1 if self.left_out is None else self.left_out.shape[0]
            check_numbers("checked", self.checked, (size,), at_least=0)
        if not (self.tried >= 0 and self.candidate >= 0 and np.isfinite(self.loss)):
            raise ValueError("the record of the tuning has numbers out of range")

    @property
    def reason(self) -> str:
        """Why the accuracy is unknown; empty if labels were held out."""
        if self.left_out is not None:
            return ""
        return NO_HELD_OUT.get(self.source, "labels have changed since they were held out")

    def _repr_html_(self) -> str:
        facts = [
            ("label weight", f"{self.setting.label_weight:g}"),
            ("self-loop", f"{self.setting.self_loop:g}"),
            ("chosen by", f"{self.source}, {self.tried} settings tried"),
        ]
        if self.left_out is not None:
            facts.append(("loss on held-out labels", f"{self.loss:.4g} (0 is best, 1 is useless)"))
        return card("Tuning", facts)


def tune(
    systems: Sequence[LabeledSystem], codes: NDArray[np.int32], given: Given = NOTHING
) -> Tuning:
    """Choose the graph and the parameters that are not given by the held-out loss.

    The first graph and the defaults are used if fewer than two classes have two labels, or if such
    classes have fewer than eight labels in total.

    Parameters
    ----------
    systems : sequence of LabeledSystem
        Candidate graphs with their labels, one column of targets per class, the preferred one
        first. Their label weights are ignored.
    codes : ndarray of int of shape (n_labeled,)
        Class numbers of the labels.
    given : Given, optional
        User-supplied parameters.
    """
    first = systems[0]
    policy = first.policy
    n = first.diagonal.size
    m = codes.size
    judged = judged_labels(codes, first.targets.shape[1])
    if np.unique(codes[judged]).size < 2 or judged.sum() < policy.fewest_labels:
        return Tuning(given.filled(first), 1.0, "too few labels", None, 0)
    known = None not in (given.label_weight, given.self_loop)
    if n > policy.large_nodes and len(systems) == 1 and known:
        # Held-out scores would be used for calibration only, and cost more than the fit.
        return Tuning(given.filled(first), 1.0, "given", None, 0)
    exact = m <= policy.most_labels and n * m <= policy.most_unknowns
    if exact or n <= policy.large_nodes or m < policy.screened_labels:
        return _best_of_graphs(systems, codes, judged, given, exact=exact)
    weight = given.filled(first).label_weight
    held = stratified_folds(codes, LARGE_FOLDS) == 0
    fold = FirstFold(replace(first, label_weight=weight), held)
    screened = 0
    if given.self_loop is None:
        given = replace(given, self_loop=_screened(fold, judged[held]))
        screened = len(LARGE_SELF_LOOPS) - 1
    if len(systems) == 1 and n > policy.huge_nodes:
        found = _of_one_fold(fold, held, judged, given.filled(first))
    else:
        found = _best_of_graphs(systems, codes, judged, given, exact=False)
    return replace(found, tried=found.tried + screened)


def _of_one_fold(
    fold: FirstFold, held: NDArray[np.bool_], judged: NDArray[np.bool_], setting: Setting
) -> Tuning:
    """Hold out one fold: with many labels it is enough for the loss and the calibration."""
    scores = fold.scores(setting.self_loop)
    loss = left_out_loss(fold.targets[judged[held]], scores[judged[held]])
    return Tuning(setting, loss, "one fold", scores, 1, checked=np.flatnonzero(held))


def _best_of_graphs(
    systems: Sequence[LabeledSystem],
    codes: NDArray[np.int32],
    judged: NDArray[np.bool_],
    given: Given,
    *,
    exact: bool,
) -> Tuning:
    """Try every setting on every graph, or on many nodes the best of the first on the others."""
    few = systems[0].diagonal.size <= systems[0].policy.small_nodes
    source = "leave-one-out" if exact else "k-fold"
    best: Tuning | None = None
    tried = 0
    for number, system in enumerate(systems):
        if best is not None and not few:
            # The best self-loop is nearly the same for all graphs of the same points.
            given = Given(best.setting.label_weight, best.setting.self_loop)
        for setting, scores in left_out(system, codes, given, exact=exact):
            tried += 1
            loss = left_out_loss(system.targets[judged], scores[judged])
            if best is None or loss < best.loss - 1e-12:
                best = Tuning(setting, loss, source, scores, tried, number)
    assert best is not None
    return replace(best, tried=tried)


def left_out(
    system: LabeledSystem, codes: NDArray[np.int32], given: Given, *, exact: bool
) -> Iterator[tuple[Setting, FloatArray]]:
    """Yield each setting on one graph with its held-out scores.

    Labels are held out one by one if `exact`, otherwise fold by fold.
    """
    unit = system.unit
    large = system.diagonal.size > system.policy.large_nodes
    several = 1 if large else 4 if exact else 2
    weights: list[float] = (unit * np.array(LABEL_WEIGHTS[:several])).tolist()
    if given.label_weight is not None:
        weights = [given.label_weight]
    loops: list[float] = (unit * np.array(LARGE_SELF_LOOPS if large else SELF_LOOPS)).tolist()
    if given.self_loop is not None:
        loops = [given.self_loop]
    blocks = labeled_blocks(system, loops) if exact else []
    folds = stratified_folds(codes, LARGE_FOLDS if large else 5)
    for number, loop in enumerate(loops):
        if exact:
            parts = left_out_by_one(blocks[number], system.targets, weights)
        else:
            parts = fold_scores(replace(system, self_loop=loop), folds, weights)
        for weight, scores in parts:
            yield Setting(float(weight), float(loop)), scores


def _screened(fold: FirstFold, judged: NDArray[np.bool_]) -> float:
    """Return the self-loop with the smallest loss on the first fold."""
    loops = [value * fold.rest.unit for value in LARGE_SELF_LOOPS]
    targets = fold.targets[judged]
    losses = {s: left_out_loss(targets, rough[judged]) for s, rough in fold.screened(loops)}
    return min(losses, key=losses.__getitem__)
