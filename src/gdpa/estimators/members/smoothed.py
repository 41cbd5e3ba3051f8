"""Linear models on features smoothed along a graph: given links, or nearest neighbours.

*smoothed*: logistic regression on each row mixed with its neighbours (:mod:`gdpa.graph.smoothing`).
How far the features are smoothed, and the penalty, are chosen by held-out labels. The graph is the
given one; without one it is that of the nearest neighbours, for rows of many columns that are alike
(embeddings of texts or pictures, bags of words), where similar rows are noisy copies of each other.

Smoothing moves features, never labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...codec import check_numbers, storable
from ...graph.smoothing import Smoother
from ..labels import LabelCoding, expand_class_columns
from .base import (
    WHOLE_GRAPH_LABELS,
    Features,
    FitData,
    FittedMember,
    Member,
    Model,
    best_candidate,
    stratified_subsample,
)
from .graphs import NeighborMember, SampleGraph, given_graph, graph_candidates
from .linear import MOST_LABELS, LinearModel, fit_logistic

FloatArray = NDArray[np.float64]
# Pull of the neighbours, steps, inverse penalty, predictions added for each label.
SmoothedSetting = tuple[float, int, float, int]

# Depths (pull, steps) along links and along nearest neighbours; inverse strengths of the penalty
# for rows of unit length and for columns of deviation 1. Where labels cannot choose, the last of
# each is taken. Chosen on Cora, chameleon, Wisconsin and minesweeper, the generated networks
# of benchmarks/link_data.py, and MiniLM embeddings of TREC and Subj.
LINK_DEPTHS = ((0.0, 0), (1.0, 1), (1.0, 2), (0.85, 10))
NEIGHBOR_DEPTHS = ((0.0, 0), (0.75, 2), (0.5, 1))
UNIT_STRENGTHS, COLUMN_STRENGTHS = (1.0, 5.0), (0.1, 1.0)
ADDED = 2
SMOOTHING_NEIGHBORS = 30


class Columns:
    """What members make of the features and links of rows."""

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows, of which either features or links may be missing."""
        raise NotImplementedError


@storable("smoothed columns")
@dataclass(frozen=True, eq=False)
class SmoothedColumns(Columns):
    """Features smoothed along a graph.

    Parameters
    ----------
    smoother : Smoother
        Graph and features.
    pull : float
        Weight of the neighbours.
    steps : int
        Number of steps.
    nearest : SampleGraph or None
        The neighbour graph that new rows are attached to; None for given links.
    """

    smoother: Smoother
    pull: float
    steps: int
    nearest: SampleGraph | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if not (0 <= self.pull <= 1 and 0 <= self.steps <= 100):
            raise ValueError(f"pull={self.pull!r} or steps={self.steps!r} are out of range")

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return smoothed features of new rows."""
        if self.nearest is not None:
            links = self.nearest.attach(X)[0]
        return self.smoother.new_points(X, links, self.pull, self.steps)


@storable("model of columns")
@dataclass(frozen=True, eq=False)
class ColumnsModel(FittedMember):
    """A model of what features and links make together.

    Parameters
    ----------
    name : str
        Name.
    columns : Columns
        What the model sees of a row.
    model : Model
        The model.
    shares : ndarray of shape (n_samples, n_classes)
        Its predictions for the samples.
    knows_links : bool
        Whether a given graph has a part in the columns.
    place : ndarray of int or None
        Places of the model's classes among all; None where they are all.
    """

    name: str
    columns: Columns
    model: Model
    shares: FloatArray = field(repr=False)
    knows_links: bool = True
    place: NDArray[np.integer] | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("shares", self.shares, (None, None), at_least=0)
        if self.place is not None:
            most = self.shares.shape[1] - 1
            check_numbers("place", self.place, (None,), at_least=0, at_most=most)

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows."""
        if X is None and not self.knows_links:
            return None
        shares, k = self.model.predict(self.columns.new(X, links)), self.shares.shape[1]
        return shares if self.place is None else expand_class_columns(shares, self.place, k)

    def with_classes(self, labels: LabelCoding, place: NDArray[np.intp]) -> ColumnsModel:
        """Return the same model beside more classes."""
        shares = expand_class_columns(self.shares, place, labels.classes.size)
        known = place if self.place is None else place[self.place]
        return replace(self, shares=shares, place=known)


def on_all_links(data: FitData) -> FitData:
    """Return all samples with the folds of a subsample: a subsample has hardly any links."""
    whole = data.whole
    if data.links is None or whole is None or whole.folds is None or data.folds is None:
        return data
    folds, of_part = whole.folds.copy(), data.folds
    if whole.X.shape[0] > data.options.policy.huge_nodes:
        # With very many labels the subsample's are all held out at once, else two halves.
        of_part = of_part % (1 if folds.size >= WHOLE_GRAPH_LABELS * of_part.size else 2)
    folds[folds >= 0] = of_part
    return replace(whole, folds=folds)


def is_large(data: FitData) -> bool:
    """Return whether there are so many samples that every solve counts."""
    return bool(data.X.shape[0] > data.options.policy.large_nodes)


def shared_smoother(data: FitData) -> tuple[Smoother, SampleGraph]:
    """Return the features along the graph, and the graph: given links or nearest neighbours."""
    if "smoother" not in data.cache:
        if data.links is not None:
            graph = given_graph(data.links, data.options.laplacian)
        elif data.whole is None and data.X.shape[0] <= data.options.policy.judged_nodes:
            count = min(SMOOTHING_NEIGHBORS, data.X.shape[0] - 1)
            graph = graph_candidates(data.X, data.options, [count])[0]
        else:  # another search would take longer than all the rest
            graph = NeighborMember().graph(data)[0]
        data.cache["smoother"] = Smoother(graph.W, data.X, unit=data.links is None), graph
    pair: tuple[Smoother, SampleGraph] = data.cache["smoother"]
    return pair


def fit_linear(
    points: Features, data: FitData, kept: NDArray[np.intp], C: float, added: int = 0
) -> LinearModel:
    """Fit logistic regression on `points` to the labels at the positions `kept`.

    With `added` it is fitted again with its own predictions as labels: of each class the most
    confident ones, so many for each label that the class has.
    """
    kept = kept[stratified_subsample(data.codes[kept], MOST_LABELS)]
    rows, codes = data.labeled[kept], data.codes[kept]
    model = LinearModel(None, *fit_logistic(points[rows], codes, data.n_classes, C))
    if added:
        shares = model.predict(points)
        guess, confidence = shares.argmax(axis=1), shares.max(axis=1)
        guess[rows] = -1
        new = [rows]
        for c, count in enumerate(np.bincount(codes, minlength=data.n_classes).tolist()):
            found = np.flatnonzero(guess == c)
            new.append(found[np.argsort(-confidence[found], kind="stable")[: added * count]])
        guess[rows] = codes
        rows = np.concatenate(new)
        parts = (points[rows], guess[rows], data.n_classes, C)
        model = LinearModel(None, *fit_logistic(*parts))
    return model


class SmoothedMember(Member):
    """Logistic regression on smoothed features; depth and penalty are chosen by held-out labels."""

    name = "smoothed"
    setting: SmoothedSetting | None = None

    def __init__(self) -> None:
        self.by_fold: list[dict[SmoothedSetting, FloatArray]] = []  # held-out shares

    def settings(self, data: FitData) -> list[SmoothedSetting]:
        """Return depths and strengths to choose from; the last where there is no choice."""
        smoother = shared_smoother(data)[0]
        depths = NEIGHBOR_DEPTHS if data.links is None else LINK_DEPTHS
        most = smoother.most_steps(max(steps for _, steps in depths))
        unit_rows = smoother.sparse or smoother.unit
        strengths: tuple[float, ...] = UNIT_STRENGTHS if unit_rows else COLUMN_STRENGTHS
        if is_large(data):
            strengths, most = strengths[-1:], min(most, 4)
        kept = depths if most else depths[:1]
        settings = [(pull, min(steps, most), C, 0) for pull, steps in kept for C in strengths]
        if data.whole is None and data.X.shape[0] <= data.options.policy.judged_nodes:
            settings += [(*setting[:3], ADDED) for setting in settings[-len(strengths) :]]
        return settings

    def cross_fit(self, data: FitData) -> FloatArray:
        """Return held-out probabilities; those of all settings stay for other members."""
        data = on_all_links(data)
        data.cache["smoothed"] = self
        return super().cross_fit(data)

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[SmoothedSetting, FloatArray]]:
        """Predict a fold by models that have not seen its labels."""
        inside, tried = np.flatnonzero(~held), {}
        for setting in self.settings(data):
            points = shared_smoother(data)[0].points(*setting[:2])
            model = fit_linear(points, data, inside, *setting[2:])
            tried[setting] = model.predict(points[data.labeled[held]])
            yield setting, tried[setting]
        self.by_fold.append(tried)

    def without_fold(self, data: FitData, f: int) -> FloatArray:
        """Return shares of all samples without fold f, by the best setting for the others."""
        assert data.folds is not None
        others = [g for g in range(data.n_folds) if g != f]
        setting = self.setting
        if others:
            candidates = {}
            for key in self.by_fold[f]:
                candidates[key] = np.vstack([self.by_fold[g][key] for g in others])
            codes = np.concatenate([data.codes[data.folds == g] for g in others])
            setting = best_candidate(candidates, codes)[0]
        assert setting is not None
        points = shared_smoother(data)[0].points(*setting[:2])
        model = fit_linear(points, data, np.flatnonzero(data.folds != f), *setting[2:])
        return model.predict(points)

    def fit(self, data: FitData) -> ColumnsModel:
        """Fit to all labels."""
        if "fitted smoothed" not in data.cache:
            smoother, graph = shared_smoother(data)
            pull, steps, C, added = self.setting or self.settings(data)[-1]
            points = smoother.points(pull, steps)
            model = fit_linear(points, data, np.arange(data.codes.size), C, added)
            columns = SmoothedColumns(smoother, pull, steps, graph if data.links is None else None)
            parts = (self.name, columns, model, model.predict(points), data.links is not None)
            data.cache["fitted smoothed"] = ColumnsModel(*parts)
        fitted: ColumnsModel = data.cache["fitted smoothed"]
        return fitted
