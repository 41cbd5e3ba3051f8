"""What members look at, computed once per data set and shared by name.

A view is a graph of the samples (:class:`GraphOfSamples`) or a set of points
(:class:`PointsOfSamples`). What depends on labels (the forest, the neighbourhood of a node) is
computed without the labels of the fold that is held out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from ..graph.features import Features
from ..graph.forest import LeafEmbedding, forest_graphs, shared_leaves
from ..graph.rescale import Rescaler
from ..graph.smoothing import Smoother
from ..linalg.row_products import row_products
from ..system import ReorderedGraph, arrange
from ..threads import one_thread
from .columns import (
    FewerWords,
    Leaves,
    NeighborColumns,
    SmoothedColumns,
    Standardised,
    Whitened,
    link_shares,
    neighbor_mean,
    rescale_columns,
    standard_scaling,
)
from .data import Codes, FitData, Fold, Rows, Sample, stratified_subsample
from .forest import CrossForest, cross_forest
from .forest import Leaves as LeafNumbers
from .members import Columns
from .rbf import gamma_of_width, mean_square_distance, rbf
from .sample_graph import SampleGraph, given_graph, graph_candidates

# Neighbours per sample of few and of many samples, and of the graph along which features are
# smoothed. Chosen on real tables, the paper's data sets, digits, generated data and embeddings.
NEIGHBORS = 6
MANY_SAMPLES_NEIGHBORS = 10
SMOOTHING_NEIGHBORS = 30
# Directions whose share of the mean variance is smaller are treated as noise in whitened columns.
WHITENING_FLOOR = 0.02
MOST_WHITENED_COLUMNS = 200
# Most labels with which held-out kernel machines are fitted: the time of a solve grows with the
# cube of their number.
KERNEL_LABELS = 400
# Beside links, words are projected onto this many directions if smoothing them would fill more
# cells: its time is the number of links times that of the columns. Trees look at single columns, so
# they always get few directions.
WORD_DIRECTIONS = 128
MOST_CELLS = 20_000_000
TREE_DIRECTIONS = 64

K = TypeVar("K")
V = TypeVar("V")


class Latest(Generic[K, V]):
    """The latest result of a function, which members with several settings ask for repeatedly."""

    def __init__(self, compute: Callable[[K], V]) -> None:
        self._compute = compute
        self._found: tuple[K, V] | None = None

    def __call__(self, key: K) -> V:
        """Return the result for a key."""
        if self._found is None or self._found[0] != key:
            self._found = key, self._compute(key)
        return self._found[1]


@dataclass(frozen=True, eq=False)
class GraphOfSamples:
    """A graph of the samples that labels spread on.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
    columns : Columns or None
        How new rows become points of the graph; None if they are the features.
    arranged : ReorderedGraph or None
        The adjacency of a large graph, reordered once for all solves.
    knows_links : bool
        Whether it is the user's graph.
    """

    graph: SampleGraph
    columns: Columns | None = None
    arranged: ReorderedGraph | None = None
    knows_links: bool = False


@dataclass(frozen=True, eq=False)
class PointsOfSamples:
    """Points of the samples that a model is fitted on.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_samples, n_columns)
        Points of all samples.
    columns : Columns or None
        How new rows become points; None if they are the features.
    knows_links : bool
        Whether they depend on the user's graph.
    """

    points: Features
    columns: Columns | None = None
    knows_links: bool = False


class Views:
    """Everything that members look at in one data set; each part is computed when first asked for.

    Parameters
    ----------
    data : FitData
        The data.
    folds : ndarray of int of shape (n_labels,) or None
        Fold of each label; None if no label can be held out.
    n_trees : int, optional
        Number of trees of the forest.
    same_labels : Views, optional
        Views of other samples with the same labels, which grow the same forest.
    is_sample : bool, default=False
        Whether the data are a subsample of larger data.
    directions : int, optional
        Number of directions onto which words are projected beside links; by default as many as can
        be smoothed.
    """

    def __init__(
        self,
        data: FitData,
        folds: Codes | None,
        *,
        n_trees: int | None = None,
        same_labels: Views | None = None,
        is_sample: bool = False,
        directions: int | None = None,
    ) -> None:
        trees = data.options.policy.forest_trees
        self.data = data
        self.folds = folds
        self.is_sample = is_sample
        self.directions = directions
        self.n_trees = n_trees or (trees // 2 if data.many else trees)
        self._same_labels = same_labels
        self._spreads: dict[bool, float] = {}
        self._kernels: dict[tuple[bool, float], FloatArray] = {}
        self._leaf_kernel = Latest(self._build_leaf_kernel)
        self._forest_graph = Latest(self._build_forest_graph)
        self._neighborhood = Latest(self._build_neighborhood)

    def on_sample(self, sample: Sample) -> Views:
        """Return the views of a subsample."""
        if sample.data is self.data:
            return self
        same = sample.positions.size == self.data.codes.size
        return Views(
            sample.data,
            sample.folds,
            n_trees=self.n_trees,
            same_labels=self if same else None,
            is_sample=True,
        )

    # Columns.

    @cached_property
    def scaling(self) -> Rescaler:
        """Scaling of the columns to mean 0 and standard deviation 1."""
        return standard_scaling(self.data.X)

    @property
    def n_columns(self) -> int:
        """Number of columns that vary."""
        return int(self.scaling.scale.size)

    @cached_property
    def columns(self) -> PointsOfSamples:
        """The features as they are."""
        return PointsOfSamples(self.data.X)

    @cached_property
    def standardised(self) -> PointsOfSamples:
        """Standardised columns."""
        points = rescale_columns(self.scaling, self.data.X)
        return PointsOfSamples(points, Standardised(self.scaling))

    @cached_property
    def covariance(self) -> FloatArray:
        """Mean of the covariance of all standardised rows and its diagonal part."""
        Z = np.asarray(self.standardised.points)
        C = Z.T @ Z / Z.shape[0]
        C[np.diag_indices_from(C)] += 1e-3  # some columns may be equal
        return np.asarray(0.5 * (C + np.diag(np.diag(C))))

    # Kernels of the labelled samples.

    @cached_property
    def kernel_labels(self) -> Rows:
        """Positions of the labels with which held-out kernel machines are fitted."""
        return stratified_subsample(self.data.codes, KERNEL_LABELS)

    def gamma(self, scaled: bool, width: float) -> float:
        """Return gamma of the RBF kernel of columns as they are or standardised."""
        if scaled not in self._spreads:
            points = (self.standardised if scaled else self.columns).points
            self._spreads[scaled] = mean_square_distance(points)
        return gamma_of_width(width, self._spreads[scaled])

    def kernel(self, scaled: bool, width: float) -> FloatArray:
        """Return the RBF kernel of all labels with the labels at `kernel_labels`."""
        if (scaled, width) not in self._kernels:
            points = (self.standardised if scaled else self.columns).points[self.data.labeled]
            gamma = self.gamma(scaled, width)
            self._kernels[scaled, width] = rbf(points, points[self.kernel_labels], gamma)
        return self._kernels[scaled, width]

    def leaf_kernel(self, fold: Fold) -> FloatArray:
        """Return the same for shared leaves, in trees that have not seen a fold."""
        return self._leaf_kernel(fold)

    def _build_leaf_kernel(self, fold: Fold) -> FloatArray:
        leaves = self.leaves[self.data.labeled, self.trees_without(fold)]
        return shared_leaves(leaves, leaves[self.kernel_labels])

    # Graphs.

    @property
    def n_neighbors(self) -> int:
        """Neighbours per sample."""
        few = not self.data.many
        count = self.data.options.n_neighbors or (NEIGHBORS if few else MANY_SAMPLES_NEIGHBORS)
        return max(1, min(count, self.data.n_samples - 1))

    @cached_property
    def neighbors(self) -> GraphOfSamples:
        """The nearest neighbours in the given columns."""
        data = self.data
        asked = None if self.is_sample or data.links is not None else data.options.n_neighbors
        # A number of neighbours that is too large is reduced with a warning.
        return GraphOfSamples(
            graph_candidates(data.X, data.options, [asked or self.n_neighbors])[0]
        )

    @cached_property
    def whitened(self) -> GraphOfSamples:
        """The nearest neighbours in whitened columns."""
        Z = np.asarray(self.standardised.points)
        with one_thread():
            found = np.linalg.eigh(np.atleast_2d(np.cov(Z.T)))
        variances = np.maximum(found.eigenvalues, 0.0)
        floor = WHITENING_FLOOR * float(variances.mean()) or 1.0
        mix = np.asarray(found.eigenvectors / np.sqrt(variances + floor))
        near = graph_candidates(row_products(Z, mix), self.data.options, [self.n_neighbors])[0]
        return GraphOfSamples(near, Whitened(self.scaling, mix))

    @cached_property
    def links(self) -> GraphOfSamples:
        """The user's graph."""
        data = self.data
        assert data.links is not None
        graph = given_graph(data.links, data.options.laplacian)
        arranged = arrange(graph.adjacency, data.options.policy) if data.large else None
        return GraphOfSamples(graph, arranged=arranged, knows_links=True)

    # The forest.

    @cached_property
    def forest(self) -> CrossForest:
        """Trees in groups, each of which has not seen one fold of the labels."""
        if self._same_labels is not None:
            return self._same_labels.forest
        data = self.data
        kept = stratified_subsample(data.codes, data.options.policy.forest_labels)
        return cross_forest(
            data.X[data.labeled[kept]],
            data.codes[kept],
            None if self.folds is None else self.folds[kept],
            data.n_classes,
            data.options,
            self.n_trees,
        )

    @property
    def importances(self) -> FloatArray | None:
        """Importances of the columns in the forest; None if it has not been grown."""
        return self.forest.forest.importances if "forest" in vars(self) else None

    @cached_property
    def leaves(self) -> LeafNumbers:
        """Leaves of all samples in all trees."""
        return self.forest.leaves(self.data.X)

    def trees_without(self, fold: Fold | None) -> slice:
        """Return the positions of the trees that have not seen a fold; None: all trees."""
        return slice(None) if fold is None else self.forest.group(fold.number)

    @cached_property
    def _leaf_graphs(self) -> list[sp.csr_array]:
        """Graphs of shared leaves: one for each group of trees, the last for all trees."""
        return forest_graphs(self.leaves, self.n_neighbors, self.forest.n_groups)

    def forest_graph(self, fold: Fold | None) -> GraphOfSamples:
        """Return the samples that share most leaves, in trees that have not seen a fold."""
        return self._forest_graph(fold)

    def _build_forest_graph(self, fold: Fold | None) -> GraphOfSamples:
        options = self.data.options
        forest = self.forest.forest
        leaves = self.leaves[:, self.trees_without(fold)]
        if self.data.n_samples <= options.policy.exact_leaves:
            graph = SampleGraph(
                "forest",
                self._leaf_graphs[-1 if fold is None else fold.number],
                options.laplacian,
                leaves=leaves,
                kept=self.n_neighbors,
            )
            return GraphOfSamples(graph, Leaves(forest))
        embedding = LeafEmbedding.fit(leaves, random_state=options.random_state)
        points = embedding.transform(leaves)
        near = graph_candidates(points, options, [self.n_neighbors])[0]
        return GraphOfSamples(near, Leaves(forest, embedding))

    # Features smoothed along a graph, and neighbourhoods.

    @cached_property
    def smoothing_graph(self) -> SampleGraph:
        """The graph along which features are smoothed: the user's links or nearest neighbours."""
        if self.data.links is not None:
            return self.links.graph
        if self.is_sample or self.data.many:
            # A search with more neighbours would take most of the time of the fit.
            return self.neighbors.graph
        count = min(SMOOTHING_NEIGHBORS, self.data.n_samples - 1)
        return graph_candidates(self.data.X, self.data.options, [count])[0]

    @cached_property
    def fewer_words(self) -> FewerWords | None:
        """Directions of the words if there are too many to be smoothed; None if there are not."""
        X = self.data.X
        linked = self.data.links is not None and isinstance(X, sp.csr_array)
        if not linked or (self.directions is None and X.shape[0] * X.shape[1] <= MOST_CELLS):
            return None
        count = self.directions or WORD_DIRECTIONS
        return FewerWords.fit(X, count, self.data.options.random_state)

    @cached_property
    def smoother(self) -> Smoother:
        """The graph and the features that are smoothed."""
        X = self.data.X
        unit = self.data.links is None
        if self.fewer_words is not None:
            X = self.fewer_words.project(X)
            unit = True
        return Smoother(self.smoothing_graph.W, X, unit=unit)

    def _from_rows(self, columns: Columns) -> Columns:
        """Return columns of smoothed features as columns of the features of rows."""
        few = self.fewer_words
        return columns if few is None else replace(few, inner=columns)

    def smoothed(self, pull: float, steps: int) -> PointsOfSamples:
        """Return features smoothed in some steps, with this weight of the neighbours."""
        linked = self.data.links is not None
        nearest = None if linked else self.smoothing_graph
        columns = self._from_rows(SmoothedColumns(self.smoother, pull, steps, nearest))
        return PointsOfSamples(self.smoother.points(pull, steps), columns, knows_links=linked)

    @cached_property
    def _neighbor_mean(self) -> Features:
        """Mean features of each node's neighbours."""
        across = link_shares(self.smoother, self.smoother.W)
        return neighbor_mean(across, self.smoother.start)

    def neighborhood(self, fold: Fold | None, *, with_labels: bool) -> PointsOfSamples:
        """Return columns of each node and its neighbours, without the labels of a fold."""
        return self._neighborhood((fold, with_labels))

    def _build_neighborhood(self, key: tuple[Fold | None, bool]) -> PointsOfSamples:
        fold, with_labels = key
        data = self.data
        kept: Rows = np.arange(data.codes.size) if fold is None else fold.kept
        targets = np.zeros((data.n_samples, data.n_classes))
        targets[data.labeled[kept]] = data.targets[kept]
        columns = NeighborColumns(self.smoother, targets, with_labels)
        points = columns.all_rows(self._neighbor_mean)
        return PointsOfSamples(points, self._from_rows(columns), knows_links=True)

    @cached_property
    def for_trees(self) -> Views:
        """Views of the same data with few directions in place of many words."""
        X = self.data.X
        if not isinstance(X, sp.csr_array) or X.shape[1] <= TREE_DIRECTIONS:
            return self
        return Views(self.data, self.folds, is_sample=self.is_sample, directions=TREE_DIRECTIONS)


# What the members of the committee look at.


def _always(data: FitData) -> bool:
    return True


@dataclass(frozen=True)
class GraphView:
    """One of the graphs of the samples.

    Parameters
    ----------
    of : callable
        Returns the graph of :class:`Views`, built without the labels of a fold.
    tried_on : {"sample", "whole", "whole if many labels"}
        Whether it is tried on a subsample. Few links join two nodes of a subsample, and no other
        view gains as much from more labels as the neighbour graph.
    applies : callable, optional
        Whether the graph can be built from such data.
    """

    of: Callable[[Views, Fold | None], GraphOfSamples]
    tried_on: str = "sample"
    applies: Callable[[FitData], bool] = _always


class PointsView:
    """One of the sets of points; its settings are chosen by held-out labels."""

    tried_on: str = "sample"

    def settings(self, views: Views) -> Sequence[Any]:
        """Return the settings to choose from; the last is the default."""
        return (None,)

    def strengths(self, views: Views) -> Sequence[float]:
        """Return inverse penalties of linear models to choose from; the last is the default."""
        return (1.0,)

    def points(self, views: Views, setting: Any, fold: Fold | None) -> PointsOfSamples:
        """Return the points, computed without the labels of a fold."""
        raise NotImplementedError


class StandardisedView(PointsView):
    """Standardised columns."""

    # With more coefficients the penalty of linear models is fixed.
    most_coefficients = 2_000

    def strengths(self, views: Views) -> Sequence[float]:
        """Return three penalties, or one if there are many coefficients."""
        many = views.n_columns * views.data.n_classes > self.most_coefficients
        return (1.0,) if many else (0.1, 10.0, 1.0)

    def points(self, views: Views, setting: None, fold: Fold | None) -> PointsOfSamples:
        """Return the points."""
        return views.standardised


class ColumnsView(PointsView):
    """The columns as they are."""

    def points(self, views: Views, setting: None, fold: Fold | None) -> PointsOfSamples:
        """Return the points."""
        return views.columns


class SmoothedView(PointsView):
    """Features smoothed along the links or, without links, along nearest neighbours.

    Settings are weights of the neighbours and numbers of steps. Held-out labels choose, so the
    choices cover no smoothing, one or two steps, and personalised PageRank.
    """

    tried_on = "whole"
    along_links = ((0.0, 0), (1.0, 1), (1.0, 2), (0.85, 10))
    along_neighbors = ((0.0, 0), (0.75, 2), (0.5, 1))
    most_steps_if_large = 4

    def settings(self, views: Views) -> Sequence[tuple[float, int]]:
        """Return weights and steps; fewer steps if smoothed words would fill the memory."""
        depths = self.along_neighbors if views.data.links is None else self.along_links
        most = views.smoother.most_steps(max(steps for _, steps in depths))
        if views.data.large:
            most = min(most, self.most_steps_if_large)
        kept = depths if most else depths[:1]
        return [(pull, min(steps, most)) for pull, steps in kept]

    def strengths(self, views: Views) -> Sequence[float]:
        """Return penalties for rows of unit length or for standardised columns."""
        strengths = (1.0, 5.0) if views.smoother.unit_rows else (0.1, 1.0)
        return strengths[-1:] if views.data.large else strengths

    def points(
        self, views: Views, setting: tuple[float, int], fold: Fold | None
    ) -> PointsOfSamples:
        """Return the points."""
        return views.smoothed(*setting)


@dataclass(frozen=True)
class NeighborhoodView(PointsView):
    """A node's own features, and what is known about its neighbours.

    Parameters
    ----------
    few_columns : bool, default=False
        Whether words are projected onto few directions, for trees.
    label_columns : tuple of bool, default=(False, True)
        Whether the classes of the neighbours are used, to choose from.
    """

    few_columns: bool = False
    label_columns: tuple[bool, ...] = (False, True)
    tried_on: str = "whole"

    def settings(self, views: Views) -> Sequence[bool]:
        """Return whether the classes of the neighbours are used."""
        return self.label_columns

    def strengths(self, views: Views) -> Sequence[float]:
        """Return two penalties."""
        return (1.0, 10.0)

    def points(self, views: Views, setting: bool, fold: Fold | None) -> PointsOfSamples:
        """Return the points."""
        looked_at = views.for_trees if self.few_columns else views
        return looked_at.neighborhood(fold, with_labels=setting)


def _neighbors(views: Views, fold: Fold | None) -> GraphOfSamples:
    return views.neighbors


def _whitened(views: Views, fold: Fold | None) -> GraphOfSamples:
    return views.whitened


def _can_be_whitened(data: FitData) -> bool:
    """Return whether the covariance is cheap to compute and can be estimated well."""
    d = data.X.shape[1]
    return 2 <= d <= min(MOST_WHITENED_COLUMNS, data.n_samples // 3) and not sp.issparse(data.X)


def _links(views: Views, fold: Fold | None) -> GraphOfSamples:
    return views.links


NEIGHBOR_GRAPH = GraphView(_neighbors, tried_on="whole if many labels")
WHITENED_GRAPH = GraphView(_whitened, applies=_can_be_whitened)
FOREST_GRAPH = GraphView(Views.forest_graph)
LINK_GRAPH = GraphView(_links, tried_on="whole")
COLUMNS = ColumnsView()
STANDARDISED = StandardisedView()
SMOOTHED = SmoothedView()
NEIGHBORHOOD = NeighborhoodView()
FEW_NEIGHBORHOOD_COLUMNS = NeighborhoodView(few_columns=True, label_columns=(True,))
