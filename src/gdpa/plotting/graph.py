"""GraphDisplay: a graph in the plane, coloured by class or by uncertainty.

Positions are the two features, where there are two; else the two main directions of the features,
or the second and third eigenvector of the normalised Laplacian where there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..errors import nearest_name, require
from ..graph.adjacency import check_adjacency
from ..tables.table import is_frame
from .axes import FAINT, Display, class_style, get_axes
from .layout import positions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

    from ..problem import GraphProblem
    from ..solution import Solution

__all__ = ["GraphDisplay"]


class GraphDisplay(Display):
    """A graph with classes on its nodes.

    It is recommended to use :meth:`from_estimator` or :meth:`from_solution` to make one.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights.
    positions : array-like of shape (n_nodes, 2)
        Where the nodes are.
    labels : array-like of shape (n_nodes,)
        Class of each node.
    labeled : array-like of int, optional
        Nodes whose label was given; drawn larger, with a rim.
    uncertainty : array-like of shape (n_nodes,), optional
        From 0 (sure) to 1.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    def __init__(
        self,
        W: ArrayLike,
        positions: ArrayLike,
        labels: ArrayLike,
        *,
        labeled: ArrayLike = (),
        uncertainty: ArrayLike | None = None,
    ) -> None:
        self.W = check_adjacency(W)
        n = self.W.shape[0]
        self.positions = np.asarray(positions, dtype=np.float64)
        if self.positions.shape != (n, 2) or not np.isfinite(self.positions).all():
            raise ValueError(
                f"positions must be finite, of shape ({n}, 2), got {self.positions.shape}"
            )
        self.labels = np.asarray(labels)
        if self.labels.shape != (n,):
            raise ValueError(f"labels must have shape ({n},), got {self.labels.shape}")
        self.labeled = np.asarray(labeled, dtype=np.intp)
        self.uncertainty = (
            None if uncertainty is None else np.asarray(uncertainty, dtype=np.float64)
        )
        if self.uncertainty is not None and self.uncertainty.shape != (n,):
            raise ValueError(f"uncertainty must have shape ({n},), got {self.uncertainty.shape}")

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | None = None,
        *,
        layout: str = "auto",
        ax: Axes | None = None,
        **options: Any,
    ) -> GraphDisplay:
        """Draw the graph of a fitted classifier.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            The features that it was fitted on, for the positions. Without them (a precomputed
            graph has none) the positions come from the graph.
        layout : {"auto", "features", "pca", "spectral"}, default="auto"
            The two features themselves, their main directions, or the graph's eigenvectors.
            "auto" takes the first that is possible.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GraphDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        state = estimator.ensemble_
        top = np.sort(state.probabilities(), axis=1)
        # 1 where the two most probable classes tie, 0 where one is certain.
        margin = top[:, -1] - top[:, -2] if top.shape[1] > 1 else np.ones(top.shape[0])
        uncertainty = 1.0 - margin
        uncertainty[state.labels.labeled] = 0.0
        display = cls(
            estimator.graph_,
            positions_of(estimator.graph_, _features(estimator, X), layout),
            estimator.transduction_,
            labeled=state.labels.labeled,
            uncertainty=np.clip(uncertainty, 0.0, 1.0),
        )
        return display.plot(ax=ax, **options)

    @classmethod
    def from_solution(
        cls,
        problem: GraphProblem,
        solution: Solution,
        X: ArrayLike | None = None,
        *,
        layout: str = "auto",
        ax: Axes | None = None,
        **options: Any,
    ) -> GraphDisplay:
        """Draw the solution of a graph problem.

        Parameters
        ----------
        problem : GraphProblem
            The problem.
        solution : Solution
            Its solution.
        X : array-like of shape (n_nodes, n_features), optional
            Features, for the positions.
        layout : {"auto", "features", "pca", "spectral"}, default="auto"
            As in :meth:`from_estimator`.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GraphDisplay
            The display, drawn.
        """
        if solution.labels.shape != (problem.n_nodes,):
            raise ValueError(
                f"solution has {solution.labels.size} nodes, problem has {problem.n_nodes}"
            )
        display = cls(
            problem.W,
            positions_of(problem.W, X, layout),
            solution.labels,
            labeled=problem.labeled,
        )
        return display.plot(ax=ax, **options)

    def plot(
        self, ax: Axes | None = None, *, color: str = "class", max_edges: int = 5_000
    ) -> GraphDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        color : {"class", "uncertainty"}, default="class"
            What the colour of the nodes shows.
        max_edges : int, default=5000
            Draw only so many edges, the heaviest.

        Returns
        -------
        GraphDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        colorings = ["class", "uncertainty"]
        if color not in colorings:
            raise ValueError(f"color={color!r} is not known; {nearest_name(color, colorings)}")
        if color == "uncertainty" and self.uncertainty is None:
            raise ValueError("color='uncertainty' needs the display to have an uncertainty")
        if max_edges < 0:
            raise ValueError(f"max_edges={max_edges!r} must not be negative")
        self.figure_, self.ax_ = get_axes(ax, figsize=(6.0, 4.6))
        self._edges(max_edges)
        size = float(np.clip(8_000.0 / max(self.labels.size, 1), 9.0, 45.0))
        if color == "class":
            self._classes(size)
        else:
            self._uncertain(size)
        self.ax_.set(xticks=[], yticks=[])
        self.ax_.margins(0.04)
        for spine in self.ax_.spines.values():
            spine.set_visible(False)
        return self

    def _edges(self, max_edges: int) -> None:
        upper = sp.triu(self.W, 1).tocoo()
        order = np.argsort(-upper.data, kind="stable")[:max_edges]
        collections = require("matplotlib.collections", "plot")
        ends: NDArray[np.float64] = self.positions[
            np.column_stack([upper.row[order], upper.col[order]])
        ]
        self.ax_.add_collection(
            collections.LineCollection(
                ends,
                colors=FAINT,
                linewidths=0.5,
                # Many edges are a background, not a blot.
                alpha=float(np.clip(800.0 / max(order.size, 1), 0.15, 0.5)),
                zorder=0,
            )
        )

    def _scatter(self, nodes: NDArray[np.intp], **style: Any) -> PathCollection:
        x, y = self.positions[nodes].T
        return self.ax_.scatter(x, y, **style)

    def _nodes(self, size: float) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Return which nodes have a given label, and their style."""
        given = np.zeros(self.labels.size, dtype=bool)
        given[self.labeled] = True
        # Given labels stand out where they are few; where they are many the rim is enough.
        size *= 3.5 if 10 * self.labeled.size < self.labels.size else 1.2
        return given, {"s": size, "edgecolors": "black", "linewidths": 1.4, "zorder": 3}

    def _classes(self, size: float) -> None:
        given, given_style = self._nodes(size)
        classes = np.unique(self.labels)
        for number, value in enumerate(classes):
            here = self.labels == value
            style = class_style(number)
            free, known = np.flatnonzero(here & ~given), np.flatnonzero(here & given)
            self._scatter(free, s=size, linewidths=0, label=str(value), **style)
            self._scatter(known, **given_style, **style)
        if classes.size <= 12:
            self.ax_.legend(
                title="class",
                frameon=False,
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
                markerscale=float(np.sqrt(45.0 / size)),
            )

    def _uncertain(self, size: float) -> None:
        given, given_style = self._nodes(size)
        assert self.uncertainty is not None
        # The uncertain ones last, so that they are not hidden.
        free = np.flatnonzero(~given)
        free = free[np.argsort(self.uncertainty[free], kind="stable")]
        style = {"s": size, "cmap": "cividis", "vmin": 0.0, "vmax": 1.0, "linewidths": 0}
        points = self._scatter(free, c=self.uncertainty[free], **style)
        self._scatter(np.flatnonzero(given), marker="o", facecolors="none", **given_style)
        self.figure_.colorbar(
            points, ax=self.ax_, label="uncertainty (1: two classes tie)", shrink=0.8
        )


def _features(estimator: BaseEstimator, X: ArrayLike | None) -> ArrayLike | None:
    """Features of a data frame, as the estimator makes them; anything else as it is."""
    encoder = getattr(estimator, "encoder_", None)
    return encoder.encode(X)[0] if encoder is not None and is_frame(X) else X
