"""What a fitted classifier knows: graph, labels, setting, scores, and how they become labels.

One frozen record, so that fitting, adding labels, saving and loading all end in the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import component_labels
from ..solution import Solution
from ..solvers.recovery import Recovery, linear_recovery
from .calibration import fit_sharpness, sharpen, to_shares
from .evidence import Evidence
from .graphs import ClassifierGraph
from .labels import LabelCoding
from .priors import labeled_prior, match_masses
from .tuning import Setting, Tuning

__all__ = ["FittedState", "assemble_state", "extend_to_far_nodes", "unreached_nodes"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FittedState:
    """A fitted classifier.

    Parameters
    ----------
    graph : ClassifierGraph
        The graph.
    coding : LabelCoding
        Class numbers of the nodes and the classes.
    tuning : Tuning
        The setting in use, and how it was chosen.
    scores : ndarray of shape (n_nodes, n_classes)
        Solution of the system, column by column; non-negative up to rounding.
    shares : ndarray of shape (n_nodes, n_classes)
        The scores, rows divided by their sums; the prior where nothing is known.
    prior : ndarray of shape (n_classes,)
        What unreached nodes get.
    sharpness : float
        Exponent that makes the shares probabilities.
    offset : ndarray of shape (n_classes,)
        Shift of the thresholds that matches the class prior; zeros without one.
    unreached : ndarray of int
        Nodes without a path to a label.
    evidence : Evidence or None
        Fitted models.
    run : mapping
        iterations, matvecs, edge_visits, residual, converged, message of the solve.
    """

    graph: ClassifierGraph
    coding: LabelCoding
    tuning: Tuning
    scores: FloatArray
    shares: FloatArray
    prior: FloatArray
    sharpness: float
    offset: FloatArray
    unreached: NDArray[np.intp]
    evidence: Evidence | None = None
    run: Mapping[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        # Records of single binary problems are large and read-only; they are not carried along.
        run = {k: v for k, v in self.run.items() if k != "solutions"}
        return self.__dict__ | {"run": run}

    @property
    def setting(self) -> Setting:
        """The setting in use."""
        return self.tuning.setting

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.coding.classes.size)

    def probabilities(self, shares: FloatArray | None = None) -> FloatArray:
        """Calibrated probabilities of the nodes, or of the given shares."""
        return sharpen(self.shares if shares is None else shares, self.sharpness, self.offset)

    def transduction(self) -> NDArray[np.intp]:
        """Class number of every node; known labels are kept."""
        best = winners(self.shares, self.sharpness, self.offset)
        known = self.coding.labeled
        best[known] = self.coding.codes[known]
        return best

    def solutions(self, method: str) -> tuple[Solution, ...]:
        """One record per class against the rest (two classes: one, for the second class)."""
        kept: tuple[Solution, ...] = tuple(self.run.get("solutions", ()))
        if kept:
            return kept
        labels = self.transduction()
        A, d = self.graph.adjacency, self.graph.diagonal
        records = []
        for c in range(self.n_classes) if self.n_classes != 2 else [1]:
            x = np.where(labels == c, 1, -1).astype(np.int8)
            others = self.scores.sum(axis=1) - self.scores[:, c]
            signs = x.astype(np.float64)
            records.append(
                Solution(
                    method=method,
                    labels=x,
                    scores=self.scores[:, c] - others,
                    objective=float(d.sum() - signs @ (A @ signs)),
                    iterations=int(self.run["iterations"]),
                    converged=bool(self.run["converged"]),
                    message=str(self.run["message"]),
                    unreached=self.unreached,
                    info={k: v for k, v in self.run.items() if k != "solutions"},
                )
            )
        return tuple(records)

    def objective(self) -> float:
        """Smoothness ``x' L x`` of the labels; with more classes half the sum over classes.

        For each class x is +1 on its nodes and -1 on all others; with two classes both terms are
        equal, and the result is the objective of the binary problem.
        """
        labels = self.transduction()
        A, d = self.graph.adjacency, self.graph.diagonal
        total = 0.0
        for c in range(self.n_classes):
            x = np.where(labels == c, 1.0, -1.0)
            total += float(d.sum() - x @ (A @ x))
        return 0.5 * total if self.n_classes > 1 else total


def winners(shares: FloatArray, sharpness: float, offset: FloatArray) -> NDArray[np.intp]:
    """Class of the largest probability; where shares are equal up to rounding, the first.

    Without an offset the shares themselves are compared: sharpening caps them, and would make a
    tie of two large ones.
    """
    if not offset.any():
        return np.asarray(np.argmax(shares, axis=1))
    return np.asarray(np.argmax(sharpen(shares, sharpness, offset), axis=1))


def unreached_nodes(
    graph: ClassifierGraph, labeled: NDArray[np.intp], evidence: bool
) -> NDArray[np.intp]:
    """Nodes in components without a label (none, where evidence reaches every node)."""
    if evidence:
        return np.empty(0, dtype=np.intp)
    count, component = component_labels(graph.W)
    anchored = np.zeros(count, dtype=bool)
    anchored[component[labeled]] = True
    return np.flatnonzero(~anchored[component])


def extend_to_far_nodes(
    graph: ClassifierGraph,
    scores: FloatArray,
    labeled: NDArray[np.intp],
    unreached: NDArray[np.intp],
    threshold: float,
) -> FloatArray:
    """Give nodes so far from any label that their scores drown in rounding a harmonic score.

    A self-loop makes scores decay with distance. Below `threshold` the iteration's error is as
    large as the score. Such nodes take the harmonic extension of the shares around them.

    Parameters
    ----------
    graph : ClassifierGraph
        The graph.
    scores : ndarray of shape (n_nodes, n_classes)
        Scores.
    labeled, unreached : ndarray of int
        Labelled nodes, and those that no label reaches.
    threshold : float
        Sum of scores below which they are not believed.

    Returns
    -------
    ndarray of shape (n_nodes, n_classes)
        Scores, replaced at far nodes; zero at unreached ones.
    """
    total = scores.sum(axis=1)
    far = total < threshold
    far[labeled] = False
    far[unreached] = False
    out = scores
    if unreached.size:
        out = scores.copy()
        out[unreached] = 0.0
    if not far.any():
        return out
    near = np.flatnonzero(~far & (total >= threshold))
    if near.size == 0:
        return out
    near = np.union1d(near, labeled)
    positive = np.maximum(scores[near], 0.0)
    shares = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)
    keep = np.union1d(np.flatnonzero(far), near)
    place = np.searchsorted(keep, near)
    A = graph.adjacency[keep][:, keep] if keep.size < graph.n_nodes else graph.adjacency
    harmonic = linear_recovery(A, graph.diagonal[keep], place, shares, tol=1e-6)
    out = out.copy()
    out[far] = threshold * harmonic.scores[np.searchsorted(keep, np.flatnonzero(far))]
    return out


def assemble_state(
    graph: ClassifierGraph,
    coding: LabelCoding,
    tuning: Tuning,
    recovery: Recovery,
    *,
    class_prior: Any,
    evidence: Evidence | None = None,
    tol: float = 1e-6,
    sharpness: float | None = None,
    run: dict[str, Any] | None = None,
) -> FittedState:
    """Turn solved scores into a fitted state.

    Parameters
    ----------
    graph, coding, tuning, evidence
        As in :class:`FittedState`.
    recovery : Recovery
        The solved system.
    class_prior : None, "labeled" or ndarray
        The prior whose masses are matched.
    tol : float, default=1e-6
        Tolerance of the solve.
    sharpness : float, optional
        Exponent of the probabilities; fitted on left-out scores if not given.
    run : dict, optional
        More about the run than `recovery` says.

    Returns
    -------
    FittedState
        The state.
    """
    labeled = coding.labeled
    codes = coding.codes[labeled]
    known = labeled_prior(codes, coding.classes.size)
    prior = known if class_prior is None or isinstance(class_prior, str) else class_prior
    weight = tuning.setting.evidence_weight
    unreached = unreached_nodes(graph, labeled, evidence is not None and weight > 0)
    exact = recovery.method.startswith("dense")
    threshold = 1e-250 if exact else 100.0 * tol
    settled = extend_to_far_nodes(graph, recovery.scores, labeled, unreached, threshold)
    shares = to_shares(settled, prior)
    if sharpness is None:
        own = codes if tuning.checked is None else codes[tuning.checked]
        sharpness = fit_sharpness(tuning.left_out, own)
    offset = np.zeros(coding.classes.size)
    if class_prior is not None and coding.classes.size > 1:
        free = coding.codes < 0
        free[unreached] = False
        offset = match_masses(sharpen(shares[free], sharpness), prior)
    details = {
        "iterations": recovery.iterations,
        "matvecs": recovery.matvecs,
        "edge_visits": recovery.matvecs * int(graph.adjacency.nnz),
        "residual": recovery.residual,
        "converged": recovery.converged,
        "method": recovery.method,
        "message": recovery.message,
        **(run or {}),
    }
    return FittedState(
        graph=graph,
        coding=coding,
        tuning=tuning,
        scores=recovery.scores,
        shares=shares,
        prior=prior,
        sharpness=float(sharpness),
        offset=offset,
        unreached=unreached,
        evidence=evidence,
        run=details,
    )
