"""Choose label weight, self-loop, evidence weight and graph by leaving labels out.

The scores solve ``(L + diag(a + gamma + e)) F = a Y + e T`` (labels Y with weight a, evidence T
with weight e). They are linear in Y and T, and with ``s = gamma + e``, ``K = (L + s)^-1`` and
``C = K_ll + 1/a`` the score of a labelled node without its own label is

    Y_i - [C^-1 (Y - e K T)]_i / [C^-1]_ii,

so one block solve per s gives every label weight and every share of evidence in s. Where that block
is too large (a right-hand side per label), the labels are left out fold by fold instead.

The loss is scale-free: ``1 - cos^2`` of the angle between left-out scores and labels, each freed of
its row mean. It is the squared error that remains after the best common factor; scores shrink with
gamma, and only their proportions decide. Only labelled nodes enter: no other label is ever seen.
Nothing is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from ..linalg import solve_spd
from ..linalg.threads import one_thread
from ..solvers.implicit_system import SharedAdjacency
from .folds import LARGE_FOLDS, FirstFold, by_fold

__all__ = ["DEFAULT", "Setting", "Tuning", "left_out_loss", "tune"]

FloatArray = NDArray[np.float64]

# Multiples of the Laplacian's mean diagonal (1 for the normalised one).
SELF_LOOPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LABEL_WEIGHTS = (np.inf, 10.0, 1.0, 0.1)
EVIDENCE_TOTALS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
EVIDENCE_SHARES = (0.0, 0.1, 0.3, 0.6, 1.0)
# Models judged on labels that they have not seen were fitted on fewer labels than those that are
# used in the end: the left-out loss undervalues evidence. Leaving it therefore has a price, per
# factor of ten in s below the largest and for the share of s that is not evidence.
PRICE_PER_DECADE = 0.02
PRICE_OF_SHARE = 0.05
LARGE_SELF_LOOPS = (0.01, 0.1, 1.0)
LARGE_EVIDENCE_TOTALS = (0.1, 3.0, 30.0)

# Leave-one-out up to so many labels, and up to so many unknowns in its block solve.
MOST_LABELS = 500
MOST_UNKNOWNS = 250_000
# Up to so many nodes everything is tried on every candidate graph.
SMALL_NODES = 1_000
# Above so many nodes folds are fewer and so is what is tried.
LARGE_NODES = 10_000
FEWEST_LABELS = 8
# From so many labels on a third of them chooses the self-loop; all folds are solved for it alone.
SCREENED_LABELS = 1_000
# Above so many nodes that third is all that is left out.
HUGE_NODES = 50_000


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
    source : {"leave-one-out", "k-fold", "one fold", "too few labels", "given"}
        How the loss was measured, or why it was not.
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


@dataclass(frozen=True)
class LabeledGraph:
    """A Laplacian with its labelled nodes, targets and evidence."""

    adjacency: sp.csr_array
    diagonal: FloatArray
    labeled: NDArray[np.intp]
    codes: NDArray[np.int32]
    n_classes: int
    evidence: FloatArray | None = None
    operand: SharedAdjacency | None = None  # the adjacency, prepared for several solves

    @property
    def unit(self) -> float:
        """Mean diagonal of the Laplacian: what self-loops and weights are measured against."""
        mean = float(self.diagonal.mean())
        return mean if mean > 0 else 1.0

    def targets(self) -> FloatArray:
        """One column per class, 1 where a labelled node belongs to it."""
        return np.eye(self.n_classes)[self.codes]


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
    graphs: Sequence[LabeledGraph],
    *,
    label_weight: float | None,
    self_loop: float | None,
    evidence_weight: float | None,
) -> Tuning:
    """Choose what is not given (None) by the loss on left-out labels.

    Parameters
    ----------
    graphs : sequence of LabeledGraph
        Candidates, the preferred one first. Same nodes and labels.
    label_weight, self_loop, evidence_weight : float or None
        Fixed values, or None where they are to be chosen.

    Returns
    -------
    Tuning
        The choice. Nothing can be learnt by leaving labels out if fewer than two classes have two
        labels, or such classes have fewer than eight in total: the first graph and the default
        are taken then.
    """
    first = graphs[0]
    counts = np.bincount(first.codes, minlength=first.n_classes)
    judged = counts[first.codes] >= 2  # the only label of its class cannot be predicted
    fixed = (label_weight, self_loop, evidence_weight)
    if (counts >= 2).sum() < 2 or judged.sum() < FEWEST_LABELS:
        return Tuning(_fallback(first, *fixed), 1.0, "too few labels", None, 0)
    n, m = first.diagonal.size, first.labeled.size
    nothing_to_choose = len(graphs) == 1 and label_weight is not None and self_loop is not None
    if first.evidence is not None:
        nothing_to_choose = nothing_to_choose and evidence_weight is not None
    if nothing_to_choose and n > LARGE_NODES:
        # Left-out scores would serve calibration alone, and cost more than the fit.
        return Tuning(_fallback(first, *fixed), 1.0, "given", None, 0)
    exact = m <= MOST_LABELS and n * m <= MOST_UNKNOWNS
    targets = first.targets()
    best: Tuning | None = None
    least = np.inf
    tried = 0
    plain = first.evidence is None and not exact and n > LARGE_NODES
    if plain and len(graphs) == 1 and n > HUGE_NODES and m >= SCREENED_LABELS:
        return _one_fold(first, label_weight, self_loop, judged)
    if plain and self_loop is None and m >= SCREENED_LABELS:
        fixed = (label_weight, _screened(first, label_weight), evidence_weight)
        tried += len(LARGE_SELF_LOOPS) - 1
    for number, graph in enumerate(graphs):
        if best is not None and n > SMALL_NODES:
            # Graphs of the same points want nearly the same self-loop: compare at that one.
            near = best.setting
            fixed = (near.label_weight, near.self_loop, near.evidence_weight)
        for setting, scores in _left_out(graph, exact, *fixed):
            tried += 1
            loss = left_out_loss(targets[judged], scores[judged])
            cost = loss + _price(graph, setting)
            if best is None or cost < least - 1e-12:
                source = "leave-one-out" if exact else "k-fold"
                best, least = Tuning(setting, loss, source, scores, tried, number), cost
    assert best is not None
    return replace(best, tried=tried)


def _fallback(graph: LabeledGraph, a: float | None, g: float | None, e: float | None) -> Setting:
    weight = DEFAULT.label_weight if a is None else a
    loop = DEFAULT.self_loop * graph.unit if g is None else g
    if graph.evidence is None:
        return Setting(weight, loop)
    return Setting(weight, loop, 0.1 * graph.unit if e is None else e)


def _price(graph: LabeledGraph, setting: Setting) -> float:
    if graph.evidence is None:
        return 0.0
    total = setting.self_loop + setting.evidence_weight
    if total <= 0:
        return 3.0 * PRICE_PER_DECADE + PRICE_OF_SHARE
    decades = np.log10(max(EVIDENCE_TOTALS[-1] * graph.unit / total, 1.0))
    rest = 1.0 - setting.evidence_weight / total
    return float(PRICE_PER_DECADE * decades + PRICE_OF_SHARE * rest)


def _left_out(
    graph: LabeledGraph, exact: bool, a: float | None, g: float | None, e: float | None
) -> Iterator[tuple[Setting, FloatArray]]:
    """All settings with the left-out scores of each."""
    large = graph.diagonal.size > LARGE_NODES
    unit = graph.unit
    if a is not None:
        weights: tuple[float, ...] = (a,)
    elif large or graph.evidence is not None:
        weights = LABEL_WEIGHTS[:1]
    else:
        weights = tuple(w * unit for w in LABEL_WEIGHTS[: None if exact else 2])
    for total, pairs in _totals(graph, large, g, e):
        if exact:
            parts = _by_one(graph, total, weights)
        else:
            parts = by_fold(graph, total, weights, LARGE_FOLDS if large else 5)
        for weight, from_labels, from_evidence in parts:
            for loop, evidence in pairs:
                scores = from_labels
                if evidence and from_evidence is not None:
                    scores = from_labels + evidence * from_evidence
                yield Setting(weight, loop, evidence), scores


def _totals(
    graph: LabeledGraph, large: bool, g: float | None, e: float | None
) -> Iterator[tuple[float, list[tuple[float, float]]]]:
    """Totals s = gamma + e, each with the pairs (gamma, e) that it splits into."""
    unit = graph.unit
    if graph.evidence is None:
        loops = (LARGE_SELF_LOOPS if large else SELF_LOOPS) if g is None else None
        values = [loop * unit for loop in loops] if loops else [float(g or 0.0)]
        for value in values:
            yield value, [(value, 0.0)]
        return
    totals = [t * unit for t in (LARGE_EVIDENCE_TOTALS if large else EVIDENCE_TOTALS)]
    if g is None and e is None:
        for total in totals:
            yield total, [((1.0 - share) * total, share * total) for share in EVIDENCE_SHARES]
    elif g is None:
        assert e is not None
        for loop in LARGE_SELF_LOOPS if large else SELF_LOOPS:
            yield loop * unit + e, [(loop * unit, e)]
    else:
        for value in [0.0, *totals] if e is None else [e]:
            yield g + value, [(g, value)]


def _by_one(
    graph: LabeledGraph, total: float, weights: Iterable[float]
) -> Iterator[tuple[float, FloatArray, FloatArray | None]]:
    """Closed form for all label weights at once (see the top of this file)."""
    labeled, m = graph.labeled, graph.labeled.size
    floor = 1e-9 * graph.unit  # K exists for a positive total only
    system = (sp.diags_array(graph.diagonal + max(total, floor)) - graph.adjacency).tocsr()
    n = graph.diagonal.size
    K = np.empty((m, m))
    # As many columns at a time as fit in the memory that the graph itself takes.
    step = max(4, int(max(system.data.nbytes, 2**21) // (48 * n)))
    for start in range(0, m, step):
        part = labeled[start : start + step]
        units = np.zeros((n, part.size))
        units[part, np.arange(part.size)] = 1.0
        K[:, start : start + step] = _solve(system, units)[labeled]
    with one_thread():
        values, V = linalg.eigh(0.5 * (K + K.T))
    Y = graph.targets()
    VY = V.T @ Y
    VT = None
    if graph.evidence is not None:
        VT = V.T @ _solve(system, graph.evidence)[labeled]
    squares = V * V
    for weight in weights:
        shifted = values + (0.0 if np.isinf(weight) else 1.0 / weight)
        inverse = 1.0 / np.maximum(shifted, 1e-14 * max(float(shifted.max()), 1e-300))
        pivots = (squares @ inverse)[:, None]
        from_labels = Y - (V @ (inverse[:, None] * VY)) / pivots
        from_evidence = None if VT is None else (V @ (inverse[:, None] * VT)) / pivots
        yield weight, from_labels, from_evidence


def _screened(graph: LabeledGraph, weight: float | None) -> float:
    """Self-loop that predicts the first fold best: with many labels one fold tells them apart."""
    fold = FirstFold(graph, LABEL_WEIGHTS[0] if weight is None else weight)
    rough = fold.screened(loop * graph.unit for loop in LARGE_SELF_LOOPS)
    losses = {loop: left_out_loss(fold.targets, scores) for loop, scores in rough}
    return min(losses, key=losses.__getitem__)


def _one_fold(
    graph: LabeledGraph, weight: float | None, loop: float | None, judged: NDArray[np.bool_]
) -> Tuning:
    """Everything from the first fold: the choice, its loss, and the scores left out."""
    fold = FirstFold(graph, LABEL_WEIGHTS[0] if weight is None else weight)
    seen = judged[fold.out]
    loops = [value * graph.unit for value in LARGE_SELF_LOOPS] if loop is None else [loop]
    if len(loops) > 1:
        rough = (fold.differences if graph.n_classes == 2 else fold.screened)(loops)
        losses = {value: left_out_loss(fold.targets[seen], found[seen]) for value, found in rough}
        loop = min(losses, key=losses.__getitem__)
    assert loop is not None
    scores = fold.scores(loop)
    loss = left_out_loss(fold.targets[seen], scores[seen])
    setting = Setting(fold.label_weight, loop)
    checked = np.flatnonzero(fold.out)
    return Tuning(setting, loss, "one fold", scores, len(loops), checked=checked)


def _solve(system: Any, rhs: FloatArray) -> FloatArray:
    # Jacobi: a better preconditioner would be set up again for every part of the block.
    x: FloatArray = solve_spd(
        system, rhs, tol=1e-5, dense_below=SMALL_NODES, preconditioner="jacobi"
    ).x
    return x
