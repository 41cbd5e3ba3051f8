"""GraphDisplay: a graph in the plane, coloured by class or by uncertainty.

With two features, these are the positions of the nodes. With more, the positions are the first two
principal components. Without features, they are the second and third eigenvector of the normalised
Laplacian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..errors import check_choice, require
from ..estimators.strategies import lead
from ..tables.table import is_frame
from .axes import FAINT, Display, class_style
from .layout import positions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

    from ..problem import GraphProblem
    from ..solution import Solution


@dataclass
class GraphDisplay(Display):
    """A graph with a class for each node.

    Create one with :meth:`from_estimator` or :meth:`from_solution`.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights.
    positions : array-like of shape (n_nodes, 2)
        Positions of the nodes.
    labels : array-like of shape (n_nodes,)
        Class of each node.
    labeled : array-like of int, optional
        Nodes with a given label, drawn larger and with an outline.
    uncertainty : array-like of shape (n_nodes,), optional
        From 0 (certain) to 1 (two classes tie).

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    W: sp.csr_array
    positions: NDArray[np.float64]
    labels: NDArray[Any]
    labeled: ArrayLike = ()
    uncertainty: NDArray[np.float64] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> GraphDisplay:
        """Draw the graph of a fitted classifier.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted classifier.
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            The features that it was fitted on, for the positions. Without features, as for a
            precomputed graph, the positions come from the graph.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GraphDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        state = estimator.ensemble_
        P = state.probabilities()
        uncertainty = 1.0 - lead(P) if P.shape[1] > 1 else np.zeros(P.shape[0])
        uncertainty[state.labels.labeled] = 0.0
        if is_frame(X):
            X = estimator.encoder_.encode(X)[0]
        return cls(
            estimator.graph_,
            positions_of(estimator.graph_, X),
            estimator.transduction_,
            labeled=state.labels.labeled,
            uncertainty=uncertainty,
        ).plot(ax, **options)

    @classmethod
    def from_solution(
        cls,
        problem: GraphProblem,
        solution: Solution,
        X: ArrayLike | None = None,
        *,
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
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
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
        positions = positions_of(problem.W, X)
        return cls(problem.W, positions, solution.labels, problem.labeled).plot(ax, **options)

    def plot(
        self, ax: Axes | None = None, *, color: str = "class", max_edges: int = 5_000
    ) -> GraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        color : {"class", "uncertainty"}, default="class"
            Meaning of the node colours.
        max_edges : int, default=5000
            Maximum number of edges to draw, the heaviest first.

        Returns
        -------
        GraphDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        check_choice("color", color, ("class", "uncertainty"))
        if color == "uncertainty" and self.uncertainty is None:
            raise ValueError("color='uncertainty' needs a display with an uncertainty")
        if max_edges < 0:
            raise ValueError(f"max_edges={max_edges!r} must not be negative")
        ax = self._start(ax, figsize=(6.0, 4.6))
        self._edges(ax, max_edges)
        n = self.labels.size
        labeled = np.asarray(self.labeled, dtype=np.intp)
        size = float(np.clip(8_000.0 / max(n, 1), 9.0, 45.0))
        # Emphasise given labels by size only if they are few.
        given_size = size * (3.5 if 10 * labeled.size < n else 1.2)
        given = {"s": given_size, "edgecolors": "black", "linewidths": 1.4, "zorder": 3}
        if color == "class":
            self._classes(ax, labeled, size, given)
        else:
            self._uncertain(ax, labeled, size, given)
        ax.set(xticks=[], yticks=[])
        ax.margins(0.04)
        ax.spines[:].set_visible(False)
        return self

    def _edges(self, ax: Axes, max_edges: int) -> None:
        upper = sp.triu(self.W, 1).tocoo()
        heaviest = np.argsort(-upper.data, kind="stable")[:max_edges]
        ends = self.positions[np.column_stack([upper.row[heaviest], upper.col[heaviest]])]
        alpha = float(np.clip(800.0 / max(heaviest.size, 1), 0.15, 0.5))
        lines = require("matplotlib.collections", "plot").LineCollection
        ax.add_collection(lines(ends, colors=FAINT, linewidths=0.5, alpha=alpha, zorder=0))

    def _scatter(self, nodes: NDArray[np.intp], **style: Any) -> PathCollection:
        x, y = self.positions[nodes].T
        return self.ax_.scatter(x, y, **style)

    def _classes(
        self, ax: Axes, labeled: NDArray[np.intp], size: float, given: dict[str, Any]
    ) -> None:
        classes = np.unique(self.labels)
        for number, value in enumerate(classes):
            here = np.flatnonzero(self.labels == value)
            style = class_style(number)
            free = np.setdiff1d(here, labeled)
            known = np.intersect1d(here, labeled)
            self._scatter(free, s=size, linewidths=0, label=str(value), **style)
            self._scatter(known, **given, **style)
        if classes.size <= 12:
            beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
            ax.legend(title="class", frameon=False, markerscale=np.sqrt(45.0 / size), **beside)

    def _uncertain(
        self, ax: Axes, labeled: NDArray[np.intp], size: float, given: dict[str, Any]
    ) -> None:
        assert self.uncertainty is not None
        # Draw uncertain nodes last, on top.
        order = np.argsort(self.uncertainty, kind="stable")
        free = order[~np.isin(order, labeled)]
        colors = {"c": self.uncertainty[free], "cmap": "cividis", "vmin": 0.0, "vmax": 1.0}
        points = self._scatter(free, s=size, linewidths=0, **colors)
        self._scatter(labeled, marker="o", facecolors="none", **given)
        self.figure_.colorbar(points, ax=ax, label="uncertainty (1: two classes tie)", shrink=0.8)
