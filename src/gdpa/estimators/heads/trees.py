"""Trees: the forest that several members share, and a forest on the neighbourhoods of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import FloatArray
from ..data import Fold, stratified_subsample
from ..forest import cross_forest
from ..members import FittedModel
from ..views import COLUMNS, PointsView, Views
from .base import Head


@dataclass(frozen=True)
class Trees(Head):
    """The mean of the trees of the shared forest.

    Parameters
    ----------
    view : PointsView
        The columns that the trees look at.
    """

    view: PointsView = COLUMNS

    def held_out(self, views: Views, setting: None, fold: Fold) -> FloatArray:
        """Predict a fold by the trees that have not seen it."""
        leaves = views.leaves[views.data.labeled[fold.held]]
        return views.forest.forest.leaf_means(leaves, views.trees_without(fold))

    def fit(self, views: Views, setting: None) -> FittedModel:
        """Use all trees."""
        forest = views.forest.forest
        return FittedModel(model=forest, shares=forest.leaf_means(views.leaves))


@dataclass(frozen=True)
class OwnTrees(Head):
    """A forest of its own, because the points depend on the labels that are held out.

    Parameters
    ----------
    view : PointsView
        The points.
    fold_trees : int, default=60
        Number of trees that predict a fold.
    """

    view: PointsView
    fold_trees: int = 60

    def settings(self, views: Views) -> Sequence[Any]:
        """Return the settings of the view."""
        return self.view.settings(views)

    def _grow(self, views: Views, setting: Any, fold: Fold | None, n_trees: int) -> FittedModel:
        """Grow trees on the labels outside a fold."""
        data = views.data
        looked_at = self.view.points(views, setting, fold)
        kept = np.arange(data.codes.size) if fold is None else fold.kept
        kept = kept[stratified_subsample(data.codes[kept], data.options.policy.forest_labels)]
        grown = cross_forest(
            looked_at.points[data.labeled[kept]],
            data.codes[kept],
            None,
            data.n_classes,
            data.options,
            n_trees,
        )
        asked = slice(None) if fold is None else data.labeled[fold.held]
        leaves = grown.leaves(looked_at.points[asked])
        return FittedModel(
            model=grown.forest,
            columns=looked_at.columns,
            shares=grown.forest.leaf_means(leaves),
            knows_links=looked_at.knows_links,
        )

    def held_out(self, views: Views, setting: Any, fold: Fold) -> FloatArray:
        """Predict a fold by trees that have not seen its labels."""
        return self._grow(views, setting, fold, self.fold_trees).shares

    def fit(self, views: Views, setting: Any) -> FittedModel:
        """Grow trees on all labels."""
        return self._grow(views, setting, None, views.data.options.policy.forest_trees)
