"""Graphs as members: labels spread over neighbours, in the columns as they are or as learned.

Three graphs, one system ``(L + gamma) F = 0`` with the labels held: the neighbours of the given
columns; the same after each column was multiplied by the root of its importance in the forest; and
the samples that share most leaves of the forest. The last two have learned from labels: when a fold
is left out they are built again from the trees that have not seen it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...graph import forest_graph
from ...graph.forest import LeafEmbedding, importance_scales, leaf_weights
from ...graph.rescale import Rescaler
from ...system import LabeledSystem
from ..fitting import more_labels, solve_state
from ..graphs import ClassifierGraph, assemble_graph, candidate_graphs
from ..options import FitOptions
from ..probabilities import to_shares
from ..state import FittedState
from ..tuning import Setting, Tuning
from .member import Task, Trial, least_loss, scaled, unlike_units
from .trees import Forest

__all__ = [
    "GRAPHS",
    "GraphMember",
    "LeafGraph",
    "View",
    "try_forest_graph",
    "try_importance",
    "try_neighbors",
]

FloatArray = NDArray[np.float64]

# Chosen on real tables (5 and 20 labels a class), the paper's sets, digits and generated sets. In
# the committee 6 and 10 neighbours are equally good on tables, 6 a point better on digits; between
# 0.01 and 0.1 the self-loop matters nowhere by more than 0.2 points, so it is not chosen each time.
NEIGHBORS = 6
# Of many nodes (more than members are judged on) 10 err 0.2 points less, on Gaussian mixtures.
LARGE_NEIGHBORS = 10
SELF_LOOP = 0.03
# With too few labels to judge anything: as far as a label can reach.
FEW_LABELS_LOOP = 0.01
# Scaled columns beyond this are as far as can be; sums of them still fit.
FARTHEST = 1e150
# Left-out scores are compared, not kept.
TOL = 1e-4
GRAPHS = ("neighbours", "importance", "forest graph")


@dataclass(frozen=True)
class LeafGraph(ClassifierGraph):
    """A forest graph: new rows, given as leaves, are attached by those that they share."""

    leaves: NDArray[Any] | None = None
    kept: int = NEIGHBORS

    @property
    def n_neighbors(self) -> int | None:
        """Similarities kept per node."""
        return self.kept

    def attach(self, X: Any) -> tuple[sp.csr_array, sp.csr_array | None]:
        """Weights between new rows and the nodes; whether rows are nodes, leaves cannot say."""
        return leaf_weights(X, self.leaves, self.kept), None


@dataclass(frozen=True)
class View:
    """What becomes of features before neighbours are looked for.

    Parameters
    ----------
    columns : Rescaler or None
        Shift and factor of the columns.
    forest : Forest or None
        Trees whose leaves take the features' place.
    embedding : LeafEmbedding or None
        Points that take the leaves' place.
    mix : ndarray of shape (n_kept, n_mixed) or None
        Linear map of the columns so scaled.
    """

    columns: Rescaler | None = None
    forest: Forest | None = None
    embedding: LeafEmbedding | None = None
    mix: FloatArray | None = None

    def transform(self, X: Any) -> Any:
        """Features as the graph sees them."""
        if self.forest is not None:
            leaves = self.forest.leaves(X)
            return leaves if self.embedding is None else self.embedding.transform(leaves)
        points = X if self.columns is None else scaled(self.columns, X)
        return points if self.mix is None else np.clip(points, -FARTHEST, FARTHEST) @ self.mix


@dataclass(frozen=True)
class GraphMember:
    """A learned graph with its scores.

    Parameters
    ----------
    name : str
        "importance", "forest graph" or "whitened".
    view : View
        What becomes of features before they are attached.
    state : FittedState
        Graph, labels and scores.
    """

    name: str
    view: View
    state: FittedState

    @property
    def shares(self) -> FloatArray:
        """Shares of the nodes."""
        return self.state.shares

    def predict(self, X: Any) -> FloatArray:
        """Shares of new rows."""
        return self.state.row_shares(self.view.transform(X))

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> GraphMember:
        """The same graph with further labels: the scores move."""
        return replace(self, state=more_labels(self.state, nodes, codes, plain(options), tol))

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> GraphMember:
        """The same graph beside more classes."""
        return replace(self, state=self.state.with_classes(classes))


def plain(options: FitOptions) -> FitOptions:
    """Options of one graph among several: neither masses nor probabilities are its concern."""
    return replace(options, graph="knn", rescale=None, class_prior=None, evidence_weight=None)


def usual_neighbors(n: int, options: FitOptions) -> int:
    """Neighbours of a graph of n nodes where no number is given."""
    usual = NEIGHBORS if n <= options.policy.judged_nodes else LARGE_NEIGHBORS
    return max(1, min(usual, n - 1))


def member_options(options: FitOptions, n: int) -> FitOptions:
    """Options under which a neighbour graph of the committee is built."""
    k = usual_neighbors(n, options) if options.n_neighbors is None else options.n_neighbors
    return replace(plain(options), n_neighbors=max(1, min(k, n - 1)))


def member_tuning(graph: ClassifierGraph, task: Task) -> Tuning:
    """The committee's setting, or what the user gave."""
    unit = float(graph.diagonal.mean()) or 1.0
    usual = FEW_LABELS_LOOP if task.folds is None else SELF_LOOP
    loop = usual * unit if task.options.self_loop is None else task.options.self_loop
    weight = np.inf if task.options.label_weight is None else task.options.label_weight
    return Tuning(Setting(weight, loop), 1.0, "given", None, 0)


def cross_shares(task: Task, graph_without: Callable[[int], ClassifierGraph]) -> FloatArray:
    """Shares of labels by graphs that have not seen their fold, with labels that are not in it."""
    assert task.folds is not None
    out = np.empty((task.codes.size, task.n_classes))
    for f in range(task.n_folds):
        held = task.folds == f
        out[held] = shares_without(task, graph_without(f), held)
    return out


def shares_without(task: Task, graph: ClassifierGraph, held: NDArray[np.bool_]) -> FloatArray:
    """Shares of some labelled nodes by the labels of the others.

    Parameters
    ----------
    task : Task
        The labels.
    graph : ClassifierGraph
        A graph that has not seen those held back.
    held : ndarray of bool of shape (n_labels,)
        Labels held back.

    Returns
    -------
    ndarray of shape (n_held, n_classes)
        Their shares.
    """
    setting = member_tuning(graph, task).setting
    known = task.targets[~held]
    system = LabeledSystem(
        graph.adjacency,
        graph.diagonal,
        task.labeled[~held],
        known,
        label_weight=setting.label_weight,
        # Components without a label have no equation of their own.
        self_loop=max(setting.self_loop, 1e-12),
        policy=task.options.policy,
        n_jobs=task.options.n_jobs,
    )
    scores = system.solve(tol=TOL).x
    return to_shares(scores[task.labeled[held]], known.mean(axis=0))


def build_state(graph: ClassifierGraph, task: Task) -> FittedState:
    """Solve the system of a graph with all labels."""
    return solve_state(
        graph, task.coding, member_tuning(graph, task), None, plain(task.options), sharpness=1.0
    )


def neighbors_of(points: Any, task: Task) -> ClassifierGraph:
    """Neighbour graph of points."""
    graphs, _ = candidate_graphs(points, member_options(task.options, points.shape[0]))
    return graphs[0]


def try_neighbors(task: Task) -> Trial:
    """Judge the neighbours in the columns as they are, beside a given graph.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The graph.
    """
    left_out = None
    if task.folds is not None:
        graph = neighbors_of(task.X, task)
        left_out = cross_shares(task, lambda f: graph)

    def build(full: Task) -> GraphMember:
        return GraphMember(GRAPHS[0], View(), build_state(neighbors_of(full.X, full), full))

    return Trial(GRAPHS[0], left_out, build)


def weighted_columns(task: Task, importances: FloatArray, standardised: bool) -> Rescaler:
    """Columns times the root of their importance."""
    factors = importance_scales(importances)
    if standardised:
        scaling = task.scaling
        return replace(scaling, scale=scaling.scale / factors[scaling.columns])
    d = factors.size
    return Rescaler("standard", np.ones(d, dtype=bool), np.zeros(d), 1.0 / factors, False)


def try_importance(task: Task) -> Trial:
    """Judge the neighbours in columns weighted by what the forest finds important.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The graph.
    """
    standardised = unlike_units(task.X)
    left_out = None
    if task.folds is not None:

        def judged(way: bool) -> FloatArray:
            def without(f: int) -> ClassifierGraph:
                columns = weighted_columns(task, task.forest.importances(f), way)
                return neighbors_of(scaled(columns, task.X), task)

            return cross_shares(task, without)

        ways = (False, True) if standardised else (False,)
        found = {way: judged(way) for way in ways}
        standardised, left_out = least_loss(found, task.codes, task.folds)

    def build(full: Task) -> GraphMember:
        columns = weighted_columns(full, full.forest.forest.importances, standardised)
        graph = neighbors_of(scaled(columns, full.X), full)
        return GraphMember("importance", View(columns=columns), build_state(graph, full))

    return Trial("importance", left_out, build)


def _leaf_graph(leaves: NDArray[Any], task: Task) -> tuple[ClassifierGraph, LeafEmbedding | None]:
    n = leaves.shape[0]
    if n > task.options.policy.exact_leaves:
        embedding = LeafEmbedding.fit(leaves, random_state=task.options.random_state)
        return neighbors_of(embedding.transform(leaves), task), embedding
    k = member_options(task.options, n).n_neighbors
    assert k is not None
    return leaf_graph(forest_graph(leaves, k), leaves, k, task.options.laplacian), None


def leaf_graph(W: sp.csr_array, leaves: NDArray[Any], k: int, laplacian: str) -> LeafGraph:
    """A forest graph from its weights and its nodes' leaves."""
    graph = assemble_graph("forest", W, laplacian, None)
    parts = {name: getattr(graph, name) for name in ClassifierGraph.__dataclass_fields__}
    return LeafGraph(**parts, leaves=leaves, kept=k)


def try_forest_graph(task: Task) -> Trial:
    """Judge the graph of samples that share leaves.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The graph.
    """
    left_out = None
    if task.folds is not None:
        groups = task.forest.group
        left_out = cross_shares(task, lambda f: _leaf_graph(task.leaves[:, groups(f)], task)[0])

    def build(full: Task) -> GraphMember:
        graph, embedding = _leaf_graph(full.leaves, full)
        view = View(forest=full.forest.forest, embedding=embedding)
        return GraphMember("forest graph", view, build_state(graph, full))

    return Trial("forest graph", left_out, build)
