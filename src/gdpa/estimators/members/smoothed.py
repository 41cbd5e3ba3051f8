"""Linear models on features smoothed along a graph: the user's links, or nearest neighbours.

*smoothed*: logistic regression on features in which each row is mixed with its neighbours
(:mod:`gdpa.graph.smoothing`). Held-out labels choose the number of smoothing steps and the penalty.
Without links, nearest neighbours are used if the features are embeddings or bags of words: there,
similar rows are noisy copies of each other.

Features are smoothed, labels are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray
from ...codec import storable
from ...graph.smoothing import Smoother
from .base import (
    Candidates,
    Features,
    FitData,
    FittedModel,
    Mask,
    Member,
    Rows,
    SupervisedMember,
    best_candidate,
    stratified_subsample,
)
from .graphs import NeighborMember, SampleGraph, given_graph, graph_candidates
from .linear import LinearModel, fit_logistic

# Weight of the neighbours, steps, inverse penalty, predictions added per label.
SmoothedSetting = tuple[float, int, float, int]

# Weights of the neighbours and numbers of steps, along links and along nearest neighbours; inverse
# penalties for rows of unit length and for standardised columns. The last of each is the default
# where no label can be held out. Chosen on Cora, chameleon, Wisconsin and minesweeper, generated
# networks (benchmarks/link_data.py), and MiniLM embeddings of TREC and Subj.
LINK_DEPTHS = ((0.0, 0), (1.0, 1), (1.0, 2), (0.85, 10))
NEIGHBOR_DEPTHS = ((0.0, 0), (0.75, 2), (0.5, 1))
UNIT_STRENGTHS, COLUMN_STRENGTHS = (1.0, 5.0), (0.1, 1.0)
ADDED = 2
SMOOTHING_NEIGHBORS = 30


class Columns:
    """Columns that a member computes from the features and links of rows."""

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows, which may lack either features or links."""
        raise NotImplementedError


@storable("smoothed columns")
@dataclass(frozen=True, eq=False)
class SmoothedColumns(Columns):
    """Features smoothed along a graph.

    Parameters
    ----------
    smoother : Smoother
        The graph and the features of its nodes.
    pull : float
        Weight of the neighbours.
    steps : int
        Number of steps.
    nearest : SampleGraph or None
        The neighbour graph that new rows are attached to; None if the user gave links.
    """

    smoother: Smoother
    pull: float
    steps: int
    nearest: SampleGraph | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if not (0 <= self.pull <= 1 and 0 <= self.steps <= 100):
            raise ValueError(
                f"pull={self.pull!r} must be in [0, 1], steps={self.steps!r} in [0, 100]"
            )

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return smoothed features of new rows."""
        if self.nearest is not None:
            links = self.nearest.attach(X)[0]
        return self.smoother.new_points(X, links, self.pull, self.steps)


@storable("model of columns")
@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnsModel(FittedModel):
    """A model of columns that are computed from features and links.

    Parameters
    ----------
    columns : Columns
        How the columns of a row are computed.
    knows_links : bool
        Whether they depend on the user's graph.
    """

    columns: Columns
    knows_links: bool = True

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray | None:
        """Return shares of new rows."""
        if X is None and not self.knows_links:
            return None
        return super().predict(self.columns.new(X, links))


def is_large(data: FitData) -> bool:
    """Return whether there are so many samples that every solve takes long."""
    return bool(data.X.shape[0] > data.options.policy.large_nodes)


def shared_graph(data: FitData) -> SampleGraph:
    """Return the graph along which features are smoothed: the user's links or neighbours."""
    if "smoothing graph" not in data.cache:
        if data.links is not None:
            graph = given_graph(data.links, data.options.laplacian)
        elif data.whole is None and data.X.shape[0] <= data.options.policy.judged_nodes:
            count = min(SMOOTHING_NEIGHBORS, data.X.shape[0] - 1)
            graph = graph_candidates(data.X, data.options, [count])[0]
        else:  # a search with more neighbours would dominate the time of the fit
            graph = NeighborMember().graph(data)[0]
        data.cache["smoothing graph"] = graph
    shared: SampleGraph = data.cache["smoothing graph"]
    return shared


def shared_smoother(data: FitData) -> tuple[Smoother, SampleGraph]:
    """Return the smoother and its graph."""
    if "smoother" not in data.cache:
        graph = shared_graph(data)
        data.cache["smoother"] = Smoother(graph.W, data.X, unit=data.links is None), graph
    pair: tuple[Smoother, SampleGraph] = data.cache["smoother"]
    return pair


def fit_linear(
    points: Features, data: FitData, kept: Rows, C: float, added: int = 0
) -> LinearModel:
    """Fit logistic regression on `points` to the labels at the positions `kept`.

    If `added` is positive, the model is fitted again with its own most confident predictions as
    labels: `added` of them for each label of a class.
    """
    kept = kept[stratified_subsample(data.codes[kept], SupervisedMember.most_labels)]
    rows, codes = data.labeled[kept], data.codes[kept]
    model = fit_logistic(points[rows], codes, data.n_classes, C)
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
        model = fit_logistic(points[rows], guess[rows], data.n_classes, C)
    return model


class SmoothedMember(Member):
    """Logistic regression on smoothed features; held-out labels choose steps and penalty."""

    name = "smoothed"
    on_links = True
    setting: SmoothedSetting | None = None

    def __init__(self) -> None:
        self.by_fold: list[dict[SmoothedSetting, FloatArray]] = []  # held-out shares

    def settings(self, data: FitData) -> list[SmoothedSetting]:
        """Return the settings to choose from; the last is the default."""
        smoother = shared_smoother(data)[0]
        depths = NEIGHBOR_DEPTHS if data.links is None else LINK_DEPTHS
        most = smoother.most_steps(max(steps for _, steps in depths))
        strengths: tuple[float, ...] = UNIT_STRENGTHS if smoother.unit_rows else COLUMN_STRENGTHS
        if is_large(data):
            strengths, most = strengths[-1:], min(most, 4)
        kept = depths if most else depths[:1]
        settings = [(pull, min(steps, most), C, 0) for pull, steps in kept for C in strengths]
        policy = data.options.policy
        most_rows = policy.judged_nodes if data.links is None else policy.huge_nodes
        if data.whole is None and data.X.shape[0] <= most_rows:
            settings += [(*setting[:3], ADDED) for setting in settings[-len(strengths) :]]
        return settings

    def train(
        self, data: FitData, kept: Rows, setting: SmoothedSetting
    ) -> tuple[LinearModel, Features]:
        """Return a model fitted to the labels at `kept`, and the smoothed features."""
        points = shared_smoother(data)[0].points(*setting[:2])
        return fit_linear(points, data, kept, *setting[2:]), points

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold by models that have not seen its labels."""
        data.cache["smoothed"] = self  # its held-out shares are evidence for another member
        self.by_fold.append({})
        for setting in self.settings(data):
            model, points = self.train(data, np.flatnonzero(~held), setting)
            self.by_fold[-1][setting] = model.predict(points[data.labeled[held]])
        yield from self.by_fold[-1].items()

    def without_fold(self, data: FitData, f: int) -> FloatArray:
        """Return shares of all samples without fold f, by the setting best on the other folds."""
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
        model, points = self.train(data, np.flatnonzero(data.folds != f), setting)
        return model.predict(points)

    def fit(self, data: FitData) -> ColumnsModel:
        """Fit to all labels, once for all members that use the model."""
        if "fitted smoothed" not in data.cache:
            smoother, graph = shared_smoother(data)
            linked, setting = data.links is not None, self.setting or self.settings(data)[-1]
            model, points = self.train(data, np.arange(data.codes.size), setting)
            columns = SmoothedColumns(smoother, *setting[:2], None if linked else graph)
            parts = (self.name, model, model.predict(points))
            data.cache["fitted smoothed"] = ColumnsModel(
                *parts, columns=columns, knows_links=linked
            )
        fitted: ColumnsModel = data.cache["fitted smoothed"]
        return fitted
