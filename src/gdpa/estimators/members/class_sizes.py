"""Class sizes as a member: labels on the neighbour graph decided jointly, for very few labels.

Threshold dynamics (:mod:`gdpa.solvers.class_sizes`) on the graph of the neighbours. Class shares
come from the user's `class_prior`, else from the labels. Labels drawn at random tell shares up to
``1 / sqrt(count)``. Equal counts tell nothing: labels were drawn class by class, and equal shares
are a guess, which held-out labels or the cut must support (:func:`supports_class_sizes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to
from ...solvers.class_sizes import ClassSizes, cut_share
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import to_shares
from .base import Features, FitData, FittedMember, Member
from .graphs import NeighborMember, SampleGraph

FloatArray = NDArray[np.float64]

# Slack of shares that are given, or guessed to be equal: chosen on MNIST, see ClassSizes.
SLACK = 1.2
# Class sizes are chosen without held-out labels where their cut is at most this part of the
# neighbours' and their agreement with other members at least this part of theirs.
LARGEST_CUT, LEAST_AGREEMENT = 0.85, 0.85


@storable("class sizes")
@dataclass(frozen=True, eq=False)
class FittedClassSizes(FittedMember):
    """Labels decided with class sizes.

    Parameters
    ----------
    graph : SampleGraph
        The neighbour graph.
    labels : LabelCoding
        Labels that the shares come from.
    shares : ndarray of shape (n_samples, n_classes)
        Scores of the last random walk, rows divided by their sums.
    prior : ndarray of shape (n_classes,)
        Expected shares of the classes.
    abstaining : ndarray of int
        Samples without a path to a label.
    class_shares : ndarray of shape (n_classes,) or None
        Class shares that the user gave.
    """

    graph: SampleGraph
    labels: LabelCoding
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    class_shares: FloatArray | None = None
    name: str = "class sizes"

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, k = self.graph.n_nodes, self.labels.classes.size
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows, by their neighbours."""
        return None if X is None else self.by_weights(self.graph.attach(X)[0])

    def by_weights(self, weights: sp.csr_array) -> FloatArray:
        """Return shares of new rows, given their weights to the samples."""
        return to_shares(weights @ self.shares, self.prior)

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> FittedClassSizes:
        """Return the same graph with other labels: all are decided again."""
        labels = self.labels.with_labels(rows, codes)
        return decide(self.graph, labels, options, self.class_shares)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> FittedClassSizes:
        """Return this member beside more classes, which nothing speaks for yet."""
        k = labels.classes.size
        return replace(
            self,
            labels=labels,
            shares=expand_class_columns(self.shares, place, k),
            prior=expand_class_columns(self.prior, place, k),
        )


def decide(
    graph: SampleGraph, labels: LabelCoding, options: FitOptions, class_shares: FloatArray | None
) -> FittedClassSizes:
    """Decide all labels on a graph."""
    prior, slack = expected_shares(labels, class_shares)
    solver = ClassSizes(shares=prior, slack=slack, policy=options.policy, n_jobs=options.n_jobs)
    scores = solver.solve(graph.problem(labels)).scores
    unreached = np.flatnonzero(~connected_to(graph.W, labels.codes >= 0))
    shares = to_shares(scores, prior)
    return FittedClassSizes(graph, labels, shares, prior, unreached, class_shares)


def expected_shares(
    labels: LabelCoding, class_shares: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the expected share of each class, and the factor by which it may be off."""
    counts = np.bincount(labels.codes[labels.labeled], minlength=labels.classes.size)
    slack = np.full(counts.size, SLACK)
    if class_shares is not None and class_shares.size == counts.size:
        return class_shares, slack
    if counts.max() - counts.min() <= 1:
        return np.full(counts.size, 1.0 / counts.size), slack
    slack = np.maximum(SLACK, 1.0 + 1.0 / np.sqrt(np.maximum(counts, 1)))
    expected = np.maximum(counts, 0.5)
    return expected / expected.sum(), slack


def supports_class_sizes(
    W: sp.csr_array,
    neighbours: NDArray[np.integer],
    class_sizes: NDArray[np.integer],
    others: Sequence[NDArray[np.integer]],
    rows: slice | NDArray[np.integer] = slice(None),
) -> bool:
    """Return whether the labelling with class sizes is the better one, without any label.

    Its cut must be much smaller than that of the neighbours' labelling, and other members must
    agree with it about as often.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        The neighbour graph.
    neighbours, class_sizes : ndarray of int of shape (n_samples,)
        The two labellings.
    others : sequence of ndarray of int
        Labellings of the other members, of the samples `rows`.
    rows : slice or ndarray of int, default=slice(None)
        Samples that the others labelled.
    """
    if cut_share(W, class_sizes) >= LARGEST_CUT * cut_share(W, neighbours):
        return False
    agree = [0.0, 0.0]
    for labels in others:
        agree[0] += float((neighbours[rows] == labels).mean())
        agree[1] += float((class_sizes[rows] == labels).mean())
    return agree[1] >= LEAST_AGREEMENT * agree[0]


class ClassSizesMember(Member):
    """Labels on the neighbour graph, decided jointly so that class sizes are plausible."""

    name = "class sizes"

    def suits(self, data: FitData) -> bool:
        """Return whether the neighbour graph is the only one."""
        return data.links is None

    def cross_fit(self, data: FitData) -> FloatArray:
        """Predict each fold by the labels of the others."""
        graph, held_out = NeighborMember().graph(data)[0], np.empty_like(data.targets)
        for f in range(data.n_folds):
            held = data.labeled[data.folds == f]
            left = data.labels.with_labels(held, np.full(held.size, -1, dtype=np.int32))
            held_out[data.folds == f] = decide(
                graph, left, data.options, data.class_shares
            ).shares[held]
        return held_out

    def fit(self, data: FitData) -> FittedClassSizes:
        """Decide with all labels."""
        graph = NeighborMember().graph(data)[0]
        return decide(graph, data.labels, data.options, data.class_shares)
