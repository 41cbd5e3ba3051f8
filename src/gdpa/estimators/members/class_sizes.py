"""Class sizes as a member: joint labelling of the neighbour graph, for very few labels.

The solver is threshold dynamics (:mod:`gdpa.solvers.class_sizes`) on the neighbour graph. With many
samples, edges between nodes with common neighbours get larger weights
(:func:`shared_neighbor_weights`). The expected class shares are the user's `class_prior` or come
from the labels: the share of randomly drawn labels has a relative error of ``1 / sqrt(count)``.
Equal counts tell nothing about the shares, because they suggest that labels were drawn class by
class. Equal shares are then a guess, which must be supported by held-out labels or by the cut
(:func:`supports_class_sizes`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to, laplacian_parts
from ...problem import ClassProblem
from ...solvers.base import Run
from ...solvers.class_sizes import ClassSizes, cut_share
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions
from ..probabilities import to_shares
from .base import Candidates, Codes, Features, FitData, FittedMember, Mask, Member, Rows
from .graphs import FittedGraph, NeighborMember, SampleGraph

# Slack of shares that are given or guessed to be equal. Chosen on MNIST, see ClassSizes.
SLACK = 1.2
MANY_SAMPLES = 3, ClassSizes.sweeps  # trial and sweeps of ClassSizes
# Class sizes are used if their cut is less than this fraction of the neighbours' cut, and if this
# share of the samples, corrected for chance, keeps its label for every start and slack. Chosen on
# 16 tables and digits with 1 to 3 labels per class, generated classes with shares of 90/9/1, and
# MNIST with one label per class.
LARGEST_CUT, LEAST_STABILITY = 0.88, 0.8
# Nodes with more neighbours do not count as common neighbours; rows per block.
MOST_NEIGHBORS, BLOCK = 200, 10_000


@storable("class sizes")
@dataclass(frozen=True, eq=False)
class FittedClassSizes(FittedMember):
    """A joint labelling with expected class sizes.

    Parameters
    ----------
    graph : SampleGraph
        The neighbour graph.
    labels : LabelCoding
        Labels that the shares come from.
    shares : ndarray of shape (n_samples, n_classes)
        Scores of the last random walk; each row is divided by its sum.
    prior : ndarray of shape (n_classes,)
        Expected shares of the classes.
    abstaining : ndarray of int
        Samples without a path to a label.
    class_shares : ndarray of shape (n_classes,) or None
        The user's class shares.
    stability : float
        Share of the samples whose label is the same for every start and slack.
    """

    graph: SampleGraph
    labels: LabelCoding
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    class_shares: FloatArray | None = None
    stability: float = 0.0
    name: str = "class sizes"

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, k = self.graph.n_nodes, self.labels.classes.size
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows from their neighbours."""
        return None if X is None else self.by_weights(*self.graph.attach(X))

    def by_weights(self, weights: sp.csr_array, same: sp.csr_array | None) -> FloatArray:
        """Return shares of new rows from their weights and the samples they coincide with."""
        shares = to_shares(weights @ self.shares, self.prior)
        if same is not None:
            hit = np.flatnonzero(np.diff(same.indptr))
            shares[hit] = (same[hit] @ self.shares) / np.diff(same.indptr)[hit, None]
        return shares

    def with_labels(
        self, rows: Rows, codes: Codes, options: FitOptions, tol: float
    ) -> FittedClassSizes:
        """Return a new labelling of the same graph with other labels."""
        labels = self.labels.with_labels(rows, codes)
        return decide(self.graph, labels, options, self.class_shares)

    def with_classes(self, labels: LabelCoding, place: Rows) -> Self:
        """Return this member with more classes, whose shares are 0."""
        k = labels.classes.size
        return replace(
            self,
            labels=labels,
            shares=expand_class_columns(self.shares, place, k),
            prior=expand_class_columns(self.prior, place, k),
        )


def decide(
    graph: SampleGraph,
    labels: LabelCoding,
    options: FitOptions,
    class_shares: FloatArray | None,
    *,
    stability: bool = False,
) -> FittedClassSizes:
    """Label all nodes of a graph; if asked, measure how stable the labelling is."""
    prior, slack = expected_shares(labels, class_shares)
    policy, problem = options.policy, graph.problem(labels)
    many = graph.n_nodes > policy.judged_nodes
    if many:
        W = shared_neighbor_weights(graph.W)
        parts = laplacian_parts(W, graph.laplacian)
        problem = ClassProblem(W, graph.laplacian, *parts, problem.labeled, problem.targets)
    trial, sweeps = MANY_SAMPLES if many else (ClassSizes.trial, 0)
    solver = ClassSizes(
        shares=prior, slack=slack, trial=trial, sweeps=sweeps, policy=policy, n_jobs=options.n_jobs
    )
    found = solver.rounds(problem, problem.targets, Run(), stability=stability)
    unreached = np.flatnonzero(~connected_to(graph.W, labels.codes >= 0))
    shares = to_shares(found.scores, prior)
    stable = found.stability if stability else 0.0
    return FittedClassSizes(graph, labels, shares, prior, unreached, class_shares, stable)


def shared_neighbor_weights(W: sp.csr_array) -> sp.csr_array:
    """Return weights times the squared Jaccard index of the two nodes' closed neighbourhoods.

    Nodes in different clusters have few common neighbours, so edges between clusters lose weight.
    The square was chosen on MNIST with one label per class. With six neighbours the index is too
    coarse and raises the error on digits, so small graphs keep their weights. Nodes with more than
    :data:`MOST_NEIGHBORS` neighbours do not count as common ones, which bounds the memory.
    """
    n = W.shape[0]
    A = sp.csr_array((np.ones(W.nnz, dtype=np.float32), W.indices, W.indptr), shape=W.shape)
    A = sp.csr_array(A + sp.eye_array(n, dtype=np.float32, format="csr"))
    counts = np.diff(A.indptr)
    few = np.asarray(counts <= MOST_NEIGHBORS, dtype=np.float32)
    B = sp.csc_array((A @ sp.diags_array(few)).T)
    rows, common = np.repeat(np.arange(n), np.diff(W.indptr)), np.empty(W.nnz)
    for start in range(0, n, BLOCK):
        edges = slice(W.indptr[start], W.indptr[min(start + BLOCK, n)])
        found = sp.csr_array(A[start : start + BLOCK] @ B)
        common[edges] = found[rows[edges] - start, W.indices[edges]]
    jaccard = common / (counts[rows] + counts[W.indices] - common)
    return sp.csr_array((W.data * np.maximum(jaccard, 1e-3) ** 2, W.indices, W.indptr), W.shape)


def expected_shares(
    labels: LabelCoding, class_shares: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the expected share of each class, and the factor by which it may differ."""
    counts = np.bincount(labels.codes[labels.labeled], minlength=labels.classes.size)
    slack = np.full(counts.size, SLACK)
    if class_shares is not None and class_shares.size == counts.size:
        return class_shares, slack
    if counts.max() - counts.min() <= 1:
        return np.full(counts.size, 1.0 / counts.size), slack
    slack = np.maximum(SLACK, 1.0 + 1.0 / np.sqrt(np.maximum(counts, 1)))
    expected = np.maximum(counts, 0.5)
    return expected / expected.sum(), slack


def supports_class_sizes(graph: FittedGraph, sized: FittedClassSizes) -> bool:
    """Return whether class sizes label the neighbour graph better, without held-out labels.

    The labelling must be stable, and its cut much smaller than that of the harmonic function.
    """
    chance = 1.0 / sized.prior.size
    if sized.stability < chance + LEAST_STABILITY * (1.0 - chance):
        return False
    cuts = [cut_share(sized.graph.W, m.shares.argmax(axis=1)) for m in (graph, sized)]
    return cuts[1] < LARGEST_CUT * cuts[0]


class ClassSizesMember(Member):
    """Joint labelling of the neighbour graph with plausible class sizes."""

    name = "class sizes"
    labels_per_class = 8.0  # chosen on 16 tables with 5 and 20 labels per class

    def suits(self, data: FitData) -> bool:
        """Return whether the user gave no graph."""
        return data.links is None

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others."""
        graph, rows = NeighborMember().graph(data)[0], data.labeled[held]
        others = data.labels.with_labels(rows, np.full(rows.size, -1, dtype=np.int32))
        yield None, decide(graph, others, data.options, data.class_shares).shares[rows]

    def fit(self, data: FitData) -> FittedClassSizes:
        """Label all samples from all labels."""
        graph = NeighborMember().graph(data)[0]
        return decide(graph, data.labels, data.options, data.class_shares, stability=True)
