"""Class sizes: joint labelling of a graph with plausible class sizes, for few labels.

The solver is threshold dynamics (:mod:`gdpa.solvers.class_sizes`). With many samples, edges between
nodes with common neighbours get larger weights (:func:`shared_neighbor_weights`). The expected
class shares are the user's `class_prior` or come from the labels: the share of randomly drawn
labels has a relative error of ``1 / sqrt(count)``. Equal counts tell nothing about the shares,
because they suggest that labels were drawn class by class. Equal shares are then a guess.

The problem has many local minima. A labelling says something about the data only if it does not
depend on where the solver starts, and if it cuts fewer edges than the harmonic function, which
ignores class sizes (:func:`is_supported`). Otherwise the head does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to, laplacian_parts
from ...graph.features import Features
from ...problem import ClassProblem
from ...solvers.base import Run
from ...solvers.class_sizes import ClassSizes, cut_share
from ..data import Fold, Rows
from ..labels import LabelCoding, expand_class_columns
from ..members import FittedMember
from ..options import CheckedOptions
from ..probabilities import to_shares
from ..sample_graph import SampleGraph
from ..trials import Trial
from ..tuning import Setting
from ..views import GraphView, Views
from .base import Head
from .harmonic import SELF_LOOP, spread

# Factor by which shares that are given or guessed to be equal may differ.
SLACK = 1.2
MANY_SAMPLES_TRIAL = 3  # rounds of each start with many samples
# The head applies if its cut is less than this fraction of the harmonic function's, and if this
# share of the samples, corrected for chance, keeps its label for every start and slack. Chosen on
# 16 tables and digits with 1 to 3 labels per class, generated classes with shares of 90/9/1, and
# MNIST with one label per class.
LARGEST_CUT = 0.88
LEAST_STABILITY = 0.8
# With more labels per class on average the sizes add nothing to the labels themselves.
MOST_LABELS_PER_CLASS = 8
MOST_NEIGHBORS = 200  # nodes with more neighbours do not count as common neighbours
BLOCK = 10_000  # rows per block


@storable("class sizes")
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedClassSizes(FittedMember):
    """A joint labelling with expected class sizes.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
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
    knows_links : bool
        Whether the graph is the user's.
    """

    graph: SampleGraph
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    class_shares: FloatArray | None = None
    stability: float = 0.0
    knows_links: bool = False

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.graph.n_nodes
        check_numbers("shares", self.shares, (n, self.prior.size), at_least=0)
        check_numbers("prior", self.prior, (None,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return shares of new rows from their neighbours."""
        if self.knows_links:
            return None if links is None else self.by_weights(links, None)
        return None if X is None else self.by_weights(*self.graph.attach(X))

    def by_weights(self, weights: sp.csr_array, same: sp.csr_array | None) -> FloatArray:
        """Return shares of new rows from their weights and the samples they coincide with."""
        shares = to_shares(weights @ self.shares, self.prior)
        if same is not None:
            hit = np.flatnonzero(np.diff(same.indptr))
            shares[hit] = (same[hit] @ self.shares) / np.diff(same.indptr)[hit, None]
        return shares

    def with_labels(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> FittedClassSizes:
        """Return a new labelling of the same graph with other labels."""
        found = decide(self.graph, labels, options, self.class_shares)
        return replace(found, knows_links=self.knows_links)

    def with_classes(self, place: Rows, n_classes: int) -> Self:
        """Return this member with more classes, whose shares are 0."""
        return replace(
            self,
            shares=expand_class_columns(self.shares, place, n_classes),
            prior=expand_class_columns(self.prior, place, n_classes),
        )


def decide(
    graph: SampleGraph,
    labels: LabelCoding,
    options: CheckedOptions,
    class_shares: FloatArray | None,
    *,
    stability: bool = False,
) -> FittedClassSizes:
    """Label all nodes of a graph; if asked, measure how stable the labelling is."""
    prior, slack = expected_shares(labels, class_shares)
    policy = options.policy
    problem = graph.problem(labels)
    many = graph.n_nodes > policy.judged_nodes
    if many:
        W = shared_neighbor_weights(graph.W)
        adjacency, diagonal = laplacian_parts(W, graph.laplacian)
        problem = ClassProblem(
            W, graph.laplacian, adjacency, diagonal, problem.labeled, problem.targets
        )
    solver = ClassSizes(
        shares=prior,
        slack=slack,
        trial=MANY_SAMPLES_TRIAL if many else ClassSizes.trial,
        sweeps=ClassSizes.sweeps if many else 0,
        policy=policy,
        n_jobs=options.n_jobs,
    )
    found = solver.rounds(problem, problem.targets, Run(), stability=stability)
    return FittedClassSizes(
        graph=graph,
        shares=to_shares(found.scores, prior),
        prior=prior,
        abstaining=np.flatnonzero(~connected_to(graph.W, labels.codes >= 0)),
        class_shares=class_shares,
        stability=found.stability if stability else 0.0,
    )


def shared_neighbor_weights(W: sp.csr_array) -> sp.csr_array:
    """Return weights times the squared Jaccard index of the two nodes' closed neighbourhoods.

    Nodes in different clusters have few common neighbours, so edges between clusters lose weight.
    With six neighbours the index has few values, so small graphs keep their weights. Nodes with
    more than :data:`MOST_NEIGHBORS` neighbours do not count as common ones, which bounds the
    memory.
    """
    n = W.shape[0]
    A = sp.csr_array((np.ones(W.nnz, dtype=np.float32), W.indices, W.indptr), shape=W.shape)
    A = sp.csr_array(A + sp.eye_array(n, dtype=np.float32, format="csr"))
    counts = np.diff(A.indptr)
    few = np.asarray(counts <= MOST_NEIGHBORS, dtype=np.float32)
    B = sp.csc_array((A @ sp.diags_array(few)).T)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    common = np.empty(W.nnz)
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


def is_supported(sized: FittedClassSizes, harmonic: FloatArray) -> bool:
    """Return whether a labelling is stable and cuts much fewer edges than harmonic scores do."""
    chance = 1.0 / sized.prior.size
    if sized.stability < chance + LEAST_STABILITY * (1.0 - chance):
        return False
    W = sized.graph.W
    cut = cut_share(W, sized.shares.argmax(axis=1))
    return bool(cut < LARGEST_CUT * cut_share(W, harmonic.argmax(axis=1)))


@dataclass(frozen=True)
class Sizes(Head):
    """Joint labelling of a graph with plausible class sizes.

    Parameters
    ----------
    view : GraphView
        The graph.
    found : FittedClassSizes, optional
        The labelling of all samples, which :meth:`prepared` computes.
    """

    view: GraphView
    found: FittedClassSizes | None = None

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head with its labelling of all samples, if that is supported."""
        data = views.data
        if data.codes.size > MOST_LABELS_PER_CLASS * data.n_classes:
            return None
        looked_at = self.view.of(views, None)
        labelling = decide(
            looked_at.graph, data.labels, data.options, data.class_shares, stability=True
        )
        loop = Setting(np.inf, SELF_LOOP * looked_at.graph.unit)
        if not is_supported(labelling, spread(looked_at, views, None, loop)):
            return None
        return replace(self, found=replace(labelling, knows_links=looked_at.knows_links))

    def held_out(self, views: Views, setting: None, fold: Fold) -> FloatArray:
        """Predict a fold from the labels of the others."""
        data = views.data
        rows = data.labeled[fold.held]
        others = data.labels.with_labels(rows, np.full(rows.size, -1, dtype=np.int32))
        graph = self.view.of(views, fold).graph
        return decide(graph, others, data.options, data.class_shares).shares[rows]

    def fit(self, views: Views, setting: None) -> FittedClassSizes:
        """Return the labelling of all samples from all labels."""
        assert self.found is not None
        return self.found
