"""Members that know a given graph: they answer by features, links, or both.

See :mod:`gdpa.estimators.committee.links` for how they are judged and built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...graph.rescale import Rescaler
from ...graph.smoothing import Smoother, no_links
from ...system import new_row_scores
from ...system.rows import HEAVIEST
from ..fitting import more_labels
from ..graphs import RESCALE_KINDS, ClassifierGraph, assemble_graph
from ..labels import wider
from ..options import FitOptions
from ..probabilities import sharpen, to_shares
from ..state import FittedState
from .graph import plain
from .linear import softmax
from .member import LinkedMember
from .supervised import Supervised

__all__ = ["Recovered", "Smoothed", "SmoothedForest", "StepModels", "Union", "linked_graph"]

FloatArray = NDArray[np.float64]


def linked_graph(
    adjacency: sp.csr_array, X: Any, options: FitOptions
) -> tuple[ClassifierGraph, Any]:
    """The given graph and the features beside it, re-scaled as asked for.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Checked weights.
    X : ndarray or csr_array of shape (n_nodes, n_features)
        Checked features.
    options : FitOptions
        What is asked for.

    Returns
    -------
    graph : ClassifierGraph
        The graph; it knows the re-scaling.
    features : ndarray or csr_array
        The features.
    """
    rescaler = None
    if options.rescale is not None:
        rescaler = Rescaler.fit(X, RESCALE_KINDS[options.rescale])
        X = rescaler.transform(X)
    return assemble_graph("precomputed", adjacency, options.laplacian, rescaler), X


@dataclass(frozen=True)
class StepModels:
    """Linear models on features smoothed by several numbers of steps; their mean is the answer.

    Parameters
    ----------
    steps : tuple of int
        Steps of smoothing.
    slopes : ndarray of shape (n_steps, n_features, n_classes)
        Slopes.
    constants : ndarray of shape (n_steps, n_classes)
        Constants.
    sharpness : float
        Exponent of the mean shares: a strong penalty leaves them flat, however right they are.
    """

    steps: tuple[int, ...]
    slopes: FloatArray
    constants: FloatArray
    sharpness: float = 1.0

    def shares_by(self, product: Callable[[int, FloatArray], FloatArray]) -> FloatArray:
        """Mean shares of rows; `product` of a number of steps and slopes gives their scores."""
        total: Any = 0.0
        for t, slopes, constants in zip(self.steps, self.slopes, self.constants, strict=True):
            total = total + softmax(product(t, slopes) + constants)
        return sharpen(total / len(self.steps), self.sharpness)


@dataclass(frozen=True)
class Smoothed(LinkedMember):
    """Linear models on smoothed features.

    Parameters
    ----------
    smoother : Smoother
        Graph and features.
    models : StepModels
        The models.
    shares : ndarray of shape (n_nodes, n_classes)
        What they say about the nodes.
    place : ndarray of int or None
        Places of the models' classes among all; None where they are all.
    """

    smoother: Smoother
    models: StepModels
    shares: FloatArray = field(repr=False)
    place: NDArray[np.intp] | None = None
    name: str = "smoothed"

    def predict_linked(self, X: Any, links: sp.csr_array | None) -> FloatArray:
        """Shares of new rows."""
        shares = self.models.shares_by(
            lambda t, slopes: self.smoother.new_points(X, links, t) @ slopes
        )
        return shares if self.place is None else wider(shares, self.place, self.shares.shape[1])

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Smoothed:
        """What was learned stays."""
        return self

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Smoothed:
        """The same model beside more classes."""
        known = place if self.place is None else place[self.place]
        return replace(self, shares=wider(self.shares, place, classes.size), place=known)


@dataclass(frozen=True)
class SmoothedForest(LinkedMember):
    """Trees on smoothed features.

    Parameters
    ----------
    smoother : Smoother
        Graph and features.
    steps : int
        Steps of smoothing.
    forest : Supervised
        The trees, as a member on smoothed features.
    """

    smoother: Smoother
    steps: int
    forest: Supervised
    name: str = "smoothed forest"

    @property
    def shares(self) -> FloatArray:
        """Shares of the nodes."""
        return self.forest.shares

    def predict_linked(self, X: Any, links: sp.csr_array | None) -> FloatArray:
        """Shares of new rows."""
        return self.forest.predict(self.smoother.new_points(X, links, self.steps))

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> SmoothedForest:
        """What was learned stays."""
        return self

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> SmoothedForest:
        """The same trees beside more classes."""
        return replace(self, forest=self.forest.with_classes(classes, place))


@dataclass(frozen=True)
class Recovered(LinkedMember):
    """The given graph with a smoothed model as evidence.

    Parameters
    ----------
    model : Smoothed
        The model.
    state : FittedState
        The scores.
    """

    model: Smoothed
    state: FittedState
    name: str = "links and features"

    @property
    def shares(self) -> FloatArray:
        """Shares of the nodes."""
        return self.state.shares

    def predict_linked(self, X: Any, links: sp.csr_array | None) -> FloatArray:
        """Shares of new rows: one more row of the system each."""
        said = self.model.predict_linked(X, links)
        state, graph = self.state, self.state.graph
        scores = new_row_scores(
            no_links(said.shape[0], graph.n_nodes) if links is None else links,
            state.scores,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=state.setting.self_loop,
            evidence=said,
            evidence_weight=state.setting.evidence_weight,
        )
        return to_shares(scores, state.prior)

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Recovered:
        """The same evidence with further labels: the scores move."""
        return replace(self, state=more_labels(self.state, nodes, codes, plain(options), tol))

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Recovered:
        """The same member beside more classes."""
        return replace(
            self,
            model=self.model.with_classes(classes, place),
            state=self.state.with_classes(classes),
        )


@dataclass(frozen=True)
class Union(LinkedMember):
    """Links and nearest neighbours in one graph.

    Parameters
    ----------
    nearest : ClassifierGraph
        The neighbour graph of the features.
    factors : tuple of float
        What links and neighbours were multiplied by.
    state : FittedState
        The scores.
    """

    nearest: ClassifierGraph
    factors: tuple[float, float]
    state: FittedState
    name: str = "union"

    @property
    def shares(self) -> FloatArray:
        """Shares of the nodes."""
        return self.state.shares

    def predict_linked(self, X: Any, links: sp.csr_array | None) -> FloatArray:
        """Shares of new rows, attached by what they have."""
        parts = []
        if links is not None:
            with np.errstate(over="ignore"):  # no link is heavier than a sum can bear
                data = np.minimum(self.factors[0] * links.data, HEAVIEST)
            parts.append(sp.csr_array((data, links.indices, links.indptr), links.shape))
        if X is not None:
            parts.append(self.factors[1] * self.nearest.attach(X)[0])
        weights = parts[0] if len(parts) == 1 else sp.csr_array(parts[0] + parts[1])
        return self.state.row_shares(weights)

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Union:
        """The same graph with further labels: the scores move."""
        return replace(self, state=more_labels(self.state, nodes, codes, plain(options), tol))

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Union:
        """The same graph beside more classes."""
        return replace(self, state=self.state.with_classes(classes))
