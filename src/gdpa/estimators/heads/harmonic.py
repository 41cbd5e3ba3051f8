"""Harmonic functions: labels spread over a graph of the samples.

    (L + diag(a + gamma)) F = a Y

Labels Y have weight a (infinite: kept exactly), and a self-loop gamma keeps their influence local.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.adjacency import connected_to
from ...graph.features import Features
from ...solution import Solution
from ...solvers.registry import choose_method
from ...system import ReorderedGraph, attached_scores
from ...system.rows import with_far_nodes
from ...system.update import update_scores
from ..binary_methods import binary_scores
from ..data import Fold, Rows
from ..labels import LabelCoding, expand_class_columns
from ..members import Columns, FittedMember
from ..options import CheckedOptions, report
from ..probabilities import to_shares
from ..sample_graph import SampleGraph
from ..trials import Trial
from ..tuning import Setting
from ..views import GraphOfSamples, GraphView, Views
from .base import Head

HELD_OUT_TOL = 1e-4  # tolerance of held-out scores, which are only compared
LARGE_HELD_OUT_TOL = 1e-2  # the same on large graphs
# The whole system is solved again when updates may have left this multiple of their tolerance.
MOST_DRIFT = 5.0
# Self-loops as multiples of the Laplacian's mean diagonal. Chosen on real tables with 5 and 20
# labels per class, the paper's data sets, digits and generated data; the second is used where no
# label can be held out.
SELF_LOOP = 0.03
FEW_LABELS_LOOP = 0.01


@storable("solve")
@dataclass(frozen=True, kw_only=True, eq=False)
class SolveRun:
    """Record of the solve for the scores of a graph.

    Parameters
    ----------
    tol : float
        Requested relative residual.
    iterations, matvecs, edge_visits : int
        Number of iterations, matrix-vector products, and stored entries read in them.
    residual : float
        Largest relative residual.
    converged, exact : bool
        Whether the tolerance was met, and whether a factorisation was used.
    method, message : str
        Method, and why it stopped.
    drift : float
        Bound on the residual left by updates since the last full solve.
    active : int
        Number of samples that the last update changed; 0 for a full solve.
    seconds : float
        Time of the solve.
    """

    tol: float = 1e-6
    iterations: int = 0
    matvecs: int = 0
    edge_visits: int = 0
    residual: float = 0.0
    converged: bool = True
    exact: bool = False
    method: str = "harmonic"
    message: str = ""
    drift: float = 0.0
    active: int = 0
    seconds: float = 0.0

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        counts = (self.iterations, self.matvecs, self.edge_visits, self.active)
        if min(counts) < 0 or not (0 < self.tol < 1 and self.residual >= 0 and self.drift >= 0):
            raise ValueError("the record of the solve has numbers out of range")


@storable("graph member")
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedGraph(FittedMember):
    """A graph with its scores.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
    columns : Columns or None
        How new rows become points of the graph; None if they are the features.
    setting : Setting
        Label weight and self-loop.
    scores : ndarray of shape (n_samples, n_classes)
        Solution of the system, one column per class; non-negative up to rounding.
    shares : ndarray of shape (n_samples, n_classes)
        Scores divided by their row sums; the prior where no label reaches.
    prior : ndarray of shape (n_classes,)
        Shares of unreached samples.
    abstaining : ndarray of int
        Samples without a path to a label.
    run : SolveRun
        Record of the solve.
    knows_links : bool
        Whether the user gave the graph in addition to features.
    records : tuple of Solution
        Solutions of the binary problems, for methods other than "harmonic".
    """

    graph: SampleGraph
    columns: Columns | None = None
    setting: Setting
    scores: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    run: SolveRun
    knows_links: bool = False
    records: tuple[Solution, ...] = field(default=(), repr=False, metadata={"stored": False})

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.graph.n_nodes
        k = self.prior.size
        check_numbers("scores", self.scores, (n, k))
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    def __getstate__(self) -> dict[str, object]:
        # Records of binary problems are large and read-only, so they are not pickled.
        return self.__dict__ | {"records": ()}

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return the shares of new rows from their neighbours or links."""
        rows = links if self.knows_links else X
        return None if rows is None else self.predict_rows(rows, labels)[0]

    def abstains(self, links: sp.csr_array | None) -> Rows:
        """Return the new rows without links, if this is the user's graph."""
        if links is None or not self.knows_links:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.diff(links.indptr) == 0)

    def predict_rows(
        self, X: Features, labels: LabelCoding
    ) -> tuple[FloatArray, sp.csr_array | None, sp.csr_array]:
        """Return the shares of new rows, the samples they coincide with, and their weights."""
        graph = self.graph
        weights, same = graph.attach(X if self.columns is None else self.columns.new(X, None))
        scores = attached_scores(
            weights,
            same,
            self.scores,
            self.shares,
            labels.codes,
            100.0 * self.run.tol,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=self.setting.self_loop,
        )
        return to_shares(scores, self.prior), same, weights

    def with_labels(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> FittedGraph:
        """Return the same graph with added, corrected or removed labels and updated scores."""
        drift = self.run.drift + tol
        shared = options.method == "harmonic" and labels.classes.size > 1 and not self.graph.signed
        if not shared or drift > MOST_DRIFT * tol:
            x0 = self.scores if shared else None
            solved = solve_graph(self.graph, labels, self.setting, options, x0=x0)
        else:
            solved = self._updated(before, labels, options, tol)
        return replace(solved, columns=self.columns, knows_links=self.knows_links)

    def _updated(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> FittedGraph:
        """Update the scores near the labels that changed."""
        systems = [
            self.graph.system(coding.labeled, targets_of(coding), self.setting, options)
            for coding in (before, labels)
        ]
        update = update_scores(systems[0], systems[1], self.scores, tol=tol)
        nodes = f"{update.active} of {self.graph.n_nodes} nodes"
        run = SolveRun(
            tol=options.tol,
            iterations=update.iterations,
            edge_visits=update.edge_visits,
            residual=update.residual,
            converged=update.converged,
            exact=self.run.exact,
            message=f"{nodes} updated in {update.rounds} rounds",
            drift=self.run.drift + tol,
            active=update.active,
        )
        return with_scores(self.graph, labels, self.setting, options, update.values, run)

    def with_classes(self, place: Rows, n_classes: int) -> FittedGraph:
        """Return the same graph with more classes, whose scores are 0 so far."""
        # With one class nothing was solved. An infinite drift makes the next label solve it.
        drift = np.inf if self.prior.size == 1 else self.run.drift
        return replace(
            self,
            scores=expand_class_columns(self.scores, place, n_classes),
            shares=expand_class_columns(self.shares, place, n_classes),
            prior=expand_class_columns(self.prior, place, n_classes),
            run=replace(self.run, drift=drift),
            records=(),
        )


def targets_of(labels: LabelCoding) -> FloatArray:
    """Return 1 in the column of each label's class, else 0."""
    return np.eye(labels.classes.size)[labels.codes[labels.labeled]]


def solve_graph(
    graph: SampleGraph,
    labels: LabelCoding,
    setting: Setting,
    options: CheckedOptions,
    *,
    x0: FloatArray | None = None,
    arranged: ReorderedGraph | None = None,
    columns: Columns | None = None,
    knows_links: bool = False,
) -> FittedGraph:
    """Solve for the scores of all classes on a graph by the chosen method."""
    known = labels.labeled
    k = labels.classes.size
    start = time.perf_counter()
    records: tuple[Solution, ...] = ()
    if graph.signed:
        options = _signed_options(graph, labels, options)
    if k == 1:
        scores = np.ones((graph.n_nodes, 1))
        run = SolveRun(tol=options.tol, exact=True, message="one class")
    elif options.method != "harmonic":
        scores, records = binary_scores(graph.problem(labels), setting, options)
        run = SolveRun(
            tol=options.tol,
            iterations=max(s.iterations for s in records),
            matvecs=sum(int(s.info.get("matvecs", 0)) for s in records),
            converged=all(s.converged for s in records),
            exact=True,
            method=options.method,
            message="; ".join(dict.fromkeys(s.message for s in records)),
        )
    else:
        listening = options.callback is not None or options.verbose > 1
        system = graph.system(known, targets_of(labels), setting, options, arranged)
        solved = system.solve(
            tol=options.tol,
            max_iter=options.max_iter,
            x0=x0,
            callback=partial(report, options) if listening else None,
        )
        scores = solved.x
        run = SolveRun(
            tol=options.tol,
            iterations=solved.iterations,
            matvecs=solved.matvecs,
            edge_visits=solved.matvecs * int(graph.adjacency.nnz),
            residual=solved.residual,
            converged=solved.converged,
            exact=solved.method != "cg",
            message=solved.message,
            seconds=time.perf_counter() - start,
        )
    fitted = with_scores(graph, labels, setting, options, scores, run)
    return replace(fitted, columns=columns, knows_links=knows_links, records=records)


def _signed_options(
    graph: SampleGraph, labels: LabelCoding, options: CheckedOptions
) -> CheckedOptions:
    """Choose the method for weights of both signs, which need exactly two classes."""
    if labels.classes.size != 2:
        raise ValueError(
            f"X has negative weights and y has {labels.classes.size} classes; weights of both "
            "signs need labels of exactly two classes"
        )
    chosen = choose_method(graph.problem(labels).against_rest(0))
    return replace(options, method=chosen) if options.method == "harmonic" else options


def with_scores(
    graph: SampleGraph,
    labels: LabelCoding,
    setting: Setting,
    options: CheckedOptions,
    scores: FloatArray,
    run: SolveRun,
) -> FittedGraph:
    """Return the fitted graph of solved scores; samples that no label reaches get the prior."""
    known = labels.labeled
    codes = labels.codes[known]
    prior = np.bincount(codes, minlength=labels.classes.size) / codes.size
    if isinstance(options.class_prior, np.ndarray):
        prior = options.class_prior
    unreached = np.flatnonzero(~connected_to(graph.W, labels.codes >= 0))
    # Below this threshold the error of an iterative solve is as large as a score.
    threshold = 1e-250 if run.exact else 100.0 * options.tol
    trusted = scores
    if not graph.signed and (unreached.size or scores.sum(axis=1).min() < threshold):
        trusted = with_far_nodes(
            graph.adjacency, graph.diagonal, known, scores, unreached, threshold, options.n_jobs
        )
    return FittedGraph(
        graph=graph,
        setting=setting,
        scores=scores,
        shares=to_shares(trusted, prior),
        prior=prior,
        abstaining=unreached,
        run=run,
    )


def spread(
    looked_at: GraphOfSamples,
    views: Views,
    fold: Fold | None,
    setting: Setting,
    evidence: FloatArray | None = None,
    evidence_weight: float = 0.0,
) -> FloatArray:
    """Return shares of all samples from the labels outside a fold and optional evidence.

    The solve is rough, because the result is only compared.
    """
    data = views.data
    kept = np.arange(data.codes.size) if fold is None else fold.kept
    system = looked_at.graph.system(
        data.labeled[kept],
        data.targets[kept],
        setting,
        data.options,
        looked_at.arranged,
        evidence=evidence,
        evidence_weight=evidence_weight,
    )
    scores = system.solve(tol=LARGE_HELD_OUT_TOL if data.large else HELD_OUT_TOL).x
    return to_shares(scores, data.targets[kept].mean(axis=0))


@dataclass(frozen=True)
class Harmonic(Head):
    """The harmonic function on a graph; held-out labels choose the self-loop.

    Parameters
    ----------
    view : GraphView
        The graph.
    self_loops : tuple of float
        Self-loops to choose from, as multiples of the Laplacian's mean diagonal.
    """

    view: GraphView
    self_loops: tuple[float, ...] = (SELF_LOOP,)

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head if the graph can be built."""
        return self if self.view.applies(views.data) else None

    def settings(self, views: Views) -> Sequence[float]:
        """Return the self-loops; one for very few labels if none can be held out."""
        return (FEW_LABELS_LOOP,) if views.folds is None else self.self_loops

    def held_out(self, views: Views, setting: float, fold: Fold) -> FloatArray:
        """Predict a fold from the labels of the others."""
        looked_at = self.view.of(views, fold)
        exact = Setting(np.inf, setting * looked_at.graph.unit)
        shares = spread(looked_at, views, fold, exact)
        return shares[views.data.labeled[fold.held]]

    def fit(self, views: Views, setting: float) -> FittedGraph:
        """Solve with all labels."""
        looked_at = self.view.of(views, None)
        return solve_graph(
            looked_at.graph,
            views.data.labels,
            Setting(np.inf, setting * looked_at.graph.unit),
            views.data.options,
            arranged=looked_at.arranged,
            columns=looked_at.columns,
            knows_links=looked_at.knows_links,
        )
