"""Graph members: labels spread over the neighbours of a graph of the samples.

    (L + diag(a + gamma)) F = a Y

Labels Y have weight a (infinite: kept exactly), and a self-loop gamma keeps their influence local.
The ensemble has three graphs: the nearest neighbours in the given columns, the nearest neighbours
in whitened columns, and the samples that share most leaves of the forest. When a fold is held out,
the forest graph is built from trees that have not seen that fold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray, unmasked
from ...codec import check_numbers, storable
from ...graph import full_graph
from ...graph.adjacency import check_adjacency, connected_to, degrees, laplacian_parts
from ...graph.features import BoundingBox, check_features
from ...graph.forest import LeafEmbedding, forest_graphs, leaf_weights
from ...graph.kernels import distances, node_scales
from ...graph.neighbor_graph import (
    SCALE_NEIGHBOR,
    NeighborGraph,
    check_bandwidth,
    kernel_weights,
    local_scales,
    neighbor_graphs,
)
from ...graph.rescale import Rescaler
from ...linalg.row_products import row_products
from ...memory import check_memory
from ...problem import ClassProblem
from ...solution import Solution
from ...solvers.registry import choose_method
from ...system import LabeledSystem, ReorderedGraph, attached_scores
from ...system.rows import with_far_nodes
from ...system.update import update_scores
from ...threads import one_thread
from ..binary_methods import binary_scores
from ..labels import LabelCoding, expand_class_columns
from ..options import FitOptions, Laplacian, report
from ..probabilities import to_shares
from ..tuning import Setting
from .base import Candidates, Features, FitData, FittedMember, Mask, Member, rescale_columns
from .forest import Forest, shared_forest

# Candidates for n_neighbors="auto" in a single graph, the preferred one first.
AUTO_NEIGHBORS = (10, 15, 20)
HELD_OUT_TOL = 1e-4  # tolerance of held-out scores, which are only compared
# The whole system is solved again when updates may have left this multiple of their tolerance.
MOST_DRIFT = 5.0
MOST_COPIES = 0.5  # duplicates are joined if they have more than this share of the edges


@storable("graph")
@dataclass(frozen=True, eq=False)
class SampleGraph:
    """A graph of the samples, its Laplacian, and the data needed to attach new rows.

    Parameters
    ----------
    kind : {"knn", "full", "precomputed", "forest"}
        How the graph was built.
    W : csr_array of shape (n_samples, n_samples)
        Weights.
    laplacian : {"normalized", "combinatorial"}
        Kind of the Laplacian ``diag(diagonal) - adjacency``.
    neighbors : NeighborGraph or None
        Neighbour search of a k-nearest-neighbour graph.
    points, scales, bandwidth
        Features and bandwidths of a full graph.
    leaves, kept
        Leaves of the samples, and edges kept per sample, of a forest graph.
    """

    kind: Literal["knn", "full", "precomputed", "forest"]
    W: sp.csr_array
    laplacian: Laplacian
    neighbors: NeighborGraph | None = field(default=None, repr=False)
    points: NDArray[np.floating] | sp.csr_array | None = field(default=None, repr=False)
    scales: FloatArray | None = field(default=None, repr=False)
    bandwidth: str | float | None = None
    leaves: NDArray[np.integer] | None = field(default=None, repr=False)
    kept: int | None = None
    adjacency: sp.csr_array = field(init=False, repr=False)
    diagonal: FloatArray = field(init=False, repr=False)
    signed: bool = field(init=False, repr=False)  # whether a weight is negative
    unit: float = field(init=False, repr=False)  # mean diagonal, the unit of self-loops
    n_nodes: int = field(init=False)
    n_neighbors: int | None = field(init=False)

    def __post_init__(self) -> None:
        signed = bool(self.W.data.min(initial=0.0) < 0)
        adjacency, diagonal = laplacian_parts(self.W, self.laplacian, signed=signed)
        # Divided by the largest entry first, because the sum may overflow.
        top = float(diagonal.max(initial=0.0))
        unit = top * float((diagonal / top).mean()) if top > 0 else 1.0
        count = self.kept if self.neighbors is None else self.neighbors.n_neighbors
        self.__dict__.update(adjacency=adjacency, diagonal=diagonal, unit=unit, signed=signed)
        self.__dict__.update(n_nodes=int(self.W.shape[0]), n_neighbors=count)

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.W.shape[0]
        check_adjacency(self.W, name="W", signed=self.kind == "precomputed")
        parts = {"knn": self.neighbors, "full": self.points, "forest": self.leaves}
        if any((part is not None) != (kind == self.kind) for kind, part in parts.items()):
            raise ValueError(f"a {self.kind} graph lacks a part or has one too many")
        if self.neighbors is not None and self.neighbors.W.shape != self.W.shape:
            raise ValueError("the neighbours are not those of the graph")
        if self.points is not None and (self.scales is None or self.bandwidth is None):
            raise ValueError("a full graph needs scales and a bandwidth")
        if self.scales is not None and self.points is not None:
            check_features(self.points, name="points")
            check_numbers("scales", self.scales, (n,), at_least=np.finfo(float).tiny)
            check_bandwidth(self.bandwidth)
            if self.points.shape[0] != n:
                raise ValueError("the points are not those of the graph")
        if self.leaves is not None:
            check_numbers("leaves", self.leaves, (n, None), at_least=0)
            if self.kept is None or self.kept < 1:
                raise ValueError(f"kept={self.kept!r} must be at least 1")

    @property
    def features(self) -> Features | None:
        """Features in which neighbours are searched."""
        return self.points if self.neighbors is None else self.neighbors.index.X

    @cached_property
    def degrees(self) -> FloatArray:
        """Row sums of the absolute weights."""
        return degrees(abs(self.W) if self.signed else self.W)

    def problem(self, labels: LabelCoding) -> ClassProblem:
        """Return the labelled problem on this graph for the solvers."""
        known = labels.labeled
        targets = np.eye(labels.classes.size)[labels.codes[known]]
        parts = (self.W, self.laplacian, self.adjacency, self.diagonal)
        return ClassProblem(*parts, known, targets)

    def system(
        self,
        labeled: NDArray[np.intp],
        targets: FloatArray,
        setting: Setting,
        options: FitOptions,
        arranged: ReorderedGraph | None = None,
        *,
        evidence: FloatArray | None = None,
        evidence_weight: float = 0.0,
    ) -> LabeledSystem:
        """Return the labelled system; optional evidence pulls every sample to probabilities."""
        loop = setting.self_loop
        if loop == 0 and evidence is None:
            # Without a label the system of a component is singular. This makes its scores 0.
            loop = 1e-12 * self.unit
        return LabeledSystem(
            self.adjacency,
            self.diagonal,
            labeled,
            targets,
            label_weight=setting.label_weight,
            self_loop=loop,
            evidence=None if evidence is None else evidence_weight * evidence,
            evidence_weight=evidence_weight,
            arranged=arranged,
            policy=options.policy,
            n_jobs=options.n_jobs,
        )

    def attach(self, X: Features) -> tuple[sp.csr_array, sp.csr_array | None]:
        """Return the weights between new rows and samples, and which of them coincide.

        The second result is None for a precomputed graph, whose rows are weights, and for a forest
        graph, whose rows are leaves.
        """
        if self.kind == "precomputed":
            return check_link_rows(X), None
        if self.leaves is not None:
            return leaf_weights(X, self.leaves, self.kept or 1), None
        near = self.neighbors
        weights = self._attach_full(X) if near is None else near.attach(X)
        return weights, _coincident(weights, X, self.features)

    def _attach_full(self, X: Features) -> sp.csr_array:
        assert self.scales is not None
        check_memory(
            40.0 * X.shape[0] * self.n_nodes,
            f"the weights of {X.shape[0]} new rows in a full graph of {self.n_nodes} nodes",
            "predict in parts or use graph='knn'",
        )
        d, unit = distances(BoundingBox.of(self.points).project(X), self.points)
        if self.bandwidth == "self-tuning":
            k = min(SCALE_NEIGHBOR, d.shape[1])
            nearest = np.sort(np.partition(d, k - 1, axis=1)[:, :k], axis=1)
            scales = local_scales(nearest, fallback=float(np.median(self.scales)) / unit)
        else:
            scales = np.full(d.shape[0], self.scales[0] / unit)
        weights = kernel_weights(d, scales[:, None], self.scales[None, :] / unit, floor=False)
        return sp.csr_array(weights)


def graph_candidates(X: Features, options: FitOptions, counts: Sequence[int]) -> list[SampleGraph]:
    """Build the graph of the features, or one graph for each number of neighbours."""
    laplacian = options.laplacian
    if options.graph == "precomputed":
        return [given_graph(X, laplacian)]
    if options.graph == "full":
        n, width = X.shape[0], options.bandwidth
        check_memory(
            28.0 * n * n, f"the full graph of {n} nodes", "use graph='knn', which is sparse"
        )
        W = check_adjacency(full_graph(X, bandwidth=width, n_jobs=options.n_jobs))
        scales = node_scales(X, width, n_jobs=options.n_jobs)
        return [SampleGraph("full", W, laplacian, None, X, scales, width)]
    built = neighbor_graphs(
        X,
        counts,
        bandwidth=options.bandwidth,
        algorithm=options.algorithm,
        n_jobs=options.n_jobs,
        random_state=options.random_state,
        policy=options.policy,
    )
    return [SampleGraph("knn", near.W, laplacian, near) for near in built]


def join_duplicates(graph: SampleGraph, points: Features, data: FitData) -> SampleGraph:
    """Connect duplicated rows to other rows, not only to their own copies.

    In a table with few distinct rows the nearest neighbours of a row are its copies, and labels
    never leave them. If most edges join copies, each row is joined to the first of its copies, and
    the first copies are joined to their neighbours among the distinct rows. This needs at least two
    labels per distinct row. Both rules were chosen on the passengers of the Titanic.
    """
    W, n = graph.W, graph.n_nodes
    near = W.data > 1.0 - 1e-6
    if graph.neighbors is None or sp.issparse(data.X) or near.mean() <= MOST_COPIES:
        return graph
    _, first, copy_of = np.unique(data.X, axis=0, return_index=True, return_inverse=True)
    if not 2 < first.size <= data.labeled.size // 2:
        return graph
    count = max(1, min(graph.neighbors.n_neighbors, first.size - 1))
    distinct = sp.coo_array(graph_candidates(points[first], data.options, [count])[0].W)
    copies = np.setdiff1d(np.arange(n), first)
    original = first[copy_of.ravel()[copies]]
    rows = np.concatenate([first[distinct.row], copies, original])
    columns = np.concatenate([first[distinct.col], original, copies])
    weights = np.concatenate([distinct.data, np.ones(2 * copies.size)])
    return replace(graph, W=sp.csr_array((weights, (rows, columns)), shape=(n, n)))


def given_graph(W: sp.csr_array, laplacian: Laplacian) -> SampleGraph:
    """Return the graph of checked weights given by the user."""
    return SampleGraph("precomputed", W, laplacian)


def check_link_rows(X: Any, name: str = "X") -> sp.csr_array:
    """Validate the weights of new rows to the fitted samples."""
    # Converted to float64 first: sums of duplicates could overflow small integers.
    given = X.astype(np.float64) if isinstance(X, sp.sparray | sp.spmatrix) else unmasked(X)
    rows = sp.csr_array(given, dtype=np.float64)
    rows.sum_duplicates()
    if rows.nnz and (not np.isfinite(rows.data).all() or rows.data.min() < 0):
        raise ValueError(f"{name} holds weights to the fitted nodes: they must be finite and >= 0")
    rows.eliminate_zeros()
    return rows


def _coincident(weights: sp.csr_array, X: Features, points: Features | None) -> sp.csr_array:
    """Return which stored weights belong to a sample with exactly the same features."""
    # A weight of 1 does not imply equal features, so features of near pairs are compared.
    near = weights.data > 1.0 - 1e-6
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))[near]
    columns = weights.indices[near]
    if rows.size == 0:
        equal = np.zeros(0, dtype=bool)
    elif sp.issparse(X) or sp.issparse(points):
        difference = sp.csr_array(X)[rows] - sp.csr_array(points)[columns]
        equal = np.asarray(abs(difference).max(axis=1).toarray()).ravel() == 0
    else:
        equal = (np.asarray(X)[rows] == np.asarray(points)[columns]).all(axis=1)
    return sp.csr_array(
        (np.ones(int(equal.sum())), (rows[equal], columns[equal])), shape=weights.shape
    )


@storable("view")
@dataclass(frozen=True, eq=False)
class View:
    """Transformation of the features before the neighbour search.

    Parameters
    ----------
    columns : Rescaler or None
        Shift and scale of the columns.
    mix : ndarray of shape (n_kept, n_mixed) or None
        Linear map of the scaled columns.
    forest : Forest or None
        Forest whose leaves replace the features.
    embedding : LeafEmbedding or None
        Embedding that replaces the leaves.
    """

    columns: Rescaler | None = None
    mix: FloatArray | None = None
    forest: Forest | None = None
    embedding: LeafEmbedding | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if self.mix is not None:
            width = None if self.columns is None else int(self.columns.scale.size)
            check_numbers("mix", self.mix, (width, None))
        if self.embedding is not None:
            first, vectors = self.embedding.first, self.embedding.vectors
            n_trees = -1 if self.forest is None else self.forest.roots.size - 1
            check_numbers("first", first, (n_trees + 1,))
            check_numbers("vectors", vectors, (int(first[-1]), None))
            if first[0] != 0 or (np.diff(first) <= 0).any():
                raise ValueError("the leaves' points do not fit the forest")

    def transform(self, X: Features) -> Features:
        """Return the transformed features."""
        if self.forest is not None:
            leaves = self.forest.leaves(X)
            return leaves if self.embedding is None else self.embedding.transform(leaves)
        points = X if self.columns is None else rescale_columns(self.columns, X)
        if self.mix is None:
            return points
        return row_products(np.clip(points, -1e150, 1e150), self.mix)


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
@dataclass(frozen=True, eq=False)
class FittedGraph(FittedMember):
    """A graph with its scores.

    Parameters
    ----------
    name : str
        Name.
    graph : SampleGraph
        The graph.
    view : View
        Transformation of the features of new rows.
    setting : Setting
        Label weight and self-loop.
    labels : LabelCoding
        Labels used for the scores.
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

    name: str
    graph: SampleGraph
    view: View
    setting: Setting
    labels: LabelCoding
    scores: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    prior: FloatArray
    abstaining: NDArray[np.integer] = field(repr=False)
    run: SolveRun
    knows_links: bool = False
    records: tuple[Solution, ...] = field(default=(), repr=False, metadata={"stored": False})

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, k = self.graph.n_nodes, self.labels.classes.size
        if self.labels.codes.size != n:
            raise ValueError(f"{self.labels.codes.size} labels for a graph of {n} samples")
        check_numbers("scores", self.scores, (n, k))
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("abstaining", self.abstaining, (None,), at_least=0, at_most=n - 1)

    def __getstate__(self) -> dict[str, object]:
        # Records of binary problems are large and read-only, so they are not pickled.
        return self.__dict__ | {"records": ()}

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return the shares of new rows from their neighbours or links."""
        rows = links if self.knows_links else X
        return None if rows is None else self.predict_rows(rows)[0]

    def predict_rows(self, X: Features) -> tuple[FloatArray, sp.csr_array | None, sp.csr_array]:
        """Return the shares of new rows, the samples they coincide with, and their weights."""
        graph = self.graph
        weights, same = graph.attach(self.view.transform(X))
        scores = attached_scores(
            weights,
            same,
            self.scores,
            self.shares,
            self.labels.codes,
            100.0 * self.run.tol,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=self.setting.self_loop,
        )
        return to_shares(scores, self.prior), same, weights

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> FittedGraph:
        """Return the same graph with added, corrected or removed labels and updated scores."""
        labels = self.labels.with_labels(rows, codes)
        drift = self.run.drift + tol
        shared = options.method == "harmonic" and labels.classes.size > 1 and not self.graph.signed
        if not shared or drift > MOST_DRIFT * tol:
            x0 = self.scores if shared else None
            solved = solve_graph(self.graph, labels, self.setting, options, x0=x0)
        else:
            systems = []
            for coding in (self.labels, labels):
                targets = np.eye(coding.classes.size)[coding.codes[coding.labeled]]
                systems.append(self.graph.system(coding.labeled, targets, self.setting, options))
            update = update_scores(systems[0], systems[1], self.scores, tol=tol)
            nodes, rounds = f"{update.active} of {self.graph.n_nodes} nodes", update.rounds
            run = SolveRun(
                tol=options.tol,
                iterations=update.iterations,
                edge_visits=update.edge_visits,
                residual=update.residual,
                converged=update.converged,
                exact=self.run.exact,
                message=f"{nodes} updated in {rounds} rounds",
                drift=drift,
                active=update.active,
            )
            solved = with_scores(self.graph, labels, self.setting, options, update.values, run)
        return replace(solved, name=self.name, view=self.view, knows_links=self.knows_links)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> FittedGraph:
        """Return the same graph with more classes, whose scores are 0 so far."""
        k = labels.classes.size
        # With one class nothing was solved. An infinite drift makes the next label solve it.
        drift = np.inf if self.labels.classes.size == 1 else self.run.drift
        return replace(
            self,
            labels=labels,
            scores=expand_class_columns(self.scores, place, k),
            shares=expand_class_columns(self.shares, place, k),
            prior=expand_class_columns(self.prior, place, k),
            run=replace(self.run, drift=drift),
            records=(),
        )


def solve_graph(
    graph: SampleGraph,
    labels: LabelCoding,
    setting: Setting,
    options: FitOptions,
    *,
    x0: FloatArray | None = None,
    arranged: ReorderedGraph | None = None,
    name: str = "graph",
    view: View | None = None,
    knows_links: bool = False,
) -> FittedGraph:
    """Solve for the scores of all classes on a graph by the chosen method."""
    known, k, start = labels.labeled, labels.classes.size, time.perf_counter()
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
        targets = np.eye(k)[labels.codes[known]]
        solved = graph.system(known, targets, setting, options, arranged).solve(
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
    return replace(fitted, name=name, view=view or View(), knows_links=knows_links, records=records)


def _signed_options(graph: SampleGraph, labels: LabelCoding, options: FitOptions) -> FitOptions:
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
    options: FitOptions,
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
        system = (graph.adjacency, graph.diagonal, known, scores, unreached, threshold)
        trusted = with_far_nodes(*system, options.n_jobs)
    shares = to_shares(trusted, prior)
    parts = ("graph", graph, View(), setting, labels, scores, shares, prior, unreached, run)
    return FittedGraph(*parts)


class GraphMember(Member):
    """A graph of the samples on which labels spread."""

    def graph(self, data: FitData, fold: int | None = None) -> tuple[SampleGraph, View]:
        """Return the graph built without the labels of a fold, and its feature transformation."""
        raise NotImplementedError

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold from the labels of the others."""
        graph, targets = self.graph(data, f)[0], data.targets[~held]
        setting = Setting(np.inf, data.self_loop * graph.unit)
        system = graph.system(data.labeled[~held], targets, setting, data.options)
        scores = system.solve(tol=HELD_OUT_TOL).x
        yield None, to_shares(scores[data.labeled[held]], targets.mean(axis=0))

    def fit(self, data: FitData) -> FittedGraph:
        """Solve with all labels."""
        graph, view = self.graph(data)
        setting = Setting(np.inf, data.self_loop * graph.unit)
        return solve_graph(graph, data.labels, setting, data.options, name=self.name, view=view)


class NeighborMember(GraphMember):
    """The nearest neighbours in the given columns; the graph does not depend on labels."""

    name = "neighbours"
    label_free = True

    def graph(self, data: FitData, fold: int | None = None) -> tuple[SampleGraph, View]:
        """Return the neighbour graph, which is built once."""
        if "neighbours" not in data.cache:
            alone = data.whole is None and data.links is None
            # An n_neighbors that is too large is reduced with a warning.
            count = (data.options.n_neighbors if alone else None) or data.n_neighbors
            near = graph_candidates(data.X, data.options, [count])[0]
            data.cache["neighbours"] = join_duplicates(near, data.X, data)
        return data.cache["neighbours"], View()


class WhitenedMember(GraphMember):
    """The nearest neighbours in whitened columns: uncorrelated, with the same variance.

        Z -> (Z - mean) V (D + floor)^-1/2,   cov(Z) = V D V^T

    Without whitening, several correlated columns outweigh a single one. After whitening all
    directions count equally, including those of small variance, in which classes often differ.
    """

    name = "whitened"
    needs_folds = True

    def suits(self, data: FitData) -> bool:
        """Return whether the covariance is cheap to compute and can be estimated well."""
        d = int(data.scaling.scale.size)
        return 2 <= d <= min(200, data.X.shape[0] // 3) and not sp.issparse(data.X)

    def graph(self, data: FitData, fold: int | None = None) -> tuple[SampleGraph, View]:
        """Return the neighbour graph in whitened columns, which is built once."""
        if "whitened" not in data.cache:
            with one_thread():
                found = np.linalg.eigh(np.atleast_2d(np.cov(data.Z.T)))
            variances = np.maximum(found.eigenvalues, 0.0)
            # Directions of smaller variance are treated as noise. Chosen on real tables.
            floor = 0.02 * float(variances.mean()) or 1.0
            mix = np.asarray(found.eigenvectors / np.sqrt(variances + floor))
            view = View(columns=data.scaling, mix=mix)
            points = row_products(data.Z, mix)
            near = graph_candidates(points, data.options, [data.n_neighbors])[0]
            data.cache["whitened"] = join_duplicates(near, points, data), view
        pair: tuple[SampleGraph, View] = data.cache["whitened"]
        return pair


class ForestGraphMember(GraphMember):
    """The samples that share most leaves of the forest."""

    name = "forest graph"
    needs_search = True

    def graph(self, data: FitData, fold: int | None = None) -> tuple[SampleGraph, View]:
        """Return the forest graph; for a fold, from the trees that have not seen it."""
        grown, leaves = shared_forest(data)
        options, k, exact = data.options, data.n_neighbors, data.options.policy.exact_leaves
        if data.X.shape[0] <= exact and "forest graphs" not in data.cache:
            data.cache["forest graphs"] = forest_graphs(leaves, k, grown.n_groups)
        if fold is not None:
            leaves = leaves[:, grown.group(fold)]
        if data.X.shape[0] <= exact:
            W = data.cache["forest graphs"][-1 if fold is None else fold]
            graph = SampleGraph("forest", W, options.laplacian, leaves=leaves, kept=k)
            return graph, View(forest=grown.forest)
        embedding = LeafEmbedding.fit(leaves, random_state=options.random_state)
        view = View(forest=grown.forest, embedding=embedding)
        return graph_candidates(embedding.transform(leaves), options, [k])[0], view
