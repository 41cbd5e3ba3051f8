"""Displays of what was chosen by the loss on held-out labels: model weights, and graph settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..estimators.tuning import LABEL_WEIGHTS, SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system import LabeledSystem
from ..system.closed_form import labeled_blocks, left_out_by_one
from .axes import COLORS, Display, class_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]


@dataclass
class CommitteeDisplay(Display):
    """Weights and held-out losses of the models of an ensemble.

    It is recommended to use :meth:`from_estimator` to make one.

    Parameters
    ----------
    names : sequence of str
        The models.
    weights : array-like of shape (n_models,)
        Their weights.
    losses : array-like of shape (n_models,), optional
        Their log losses on held-out labels.
    loss : float, optional
        Log loss of the ensemble.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    names: Sequence[str]
    weights: NDArray[np.float64]
    losses: NDArray[np.float64] | None = None
    loss: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None
    ) -> CommitteeDisplay:
        """Draw the model weights of a fitted classifier.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted ensemble.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        CommitteeDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the classifier has a single graph.
        """
        check_is_fitted(estimator)
        committee = estimator.committee_
        if committee is None:
            raise ValueError("estimator has a single graph; only an ensemble has model weights")
        return cls(committee.names, committee.weights, committee.losses, committee.loss).plot(ax)

    def plot(self, ax: Axes | None = None) -> CommitteeDisplay:
        """Draw a bar per model, the largest weight on top, with its loss beside it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CommitteeDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._start(ax)
        order = np.argsort(self.weights, kind="stable")
        names = [self.names[i] for i in order]
        bars = ax.barh(names, 100 * self.weights[order], color=COLORS[0])
        if self.losses is not None:
            losses = [f"loss {loss:.2f}" for loss in self.losses[order]]
            ax.bar_label(bars, losses, padding=4, size="small")
            ax.margins(x=0.2)
        words = "" if self.loss is None else f" (loss of the ensemble: {self.loss:.2f})"
        ax.set(xlabel=f"weight in percent{words}")
        return self


@dataclass
class SelectionDisplay(Display):
    """Loss on held-out labels over self-loop and label weight.

    It repeats, by :mod:`gdpa.system.closed_form`, what the classifier minimised when it chose its
    weights; the graph and the weight of the evidence are those that it chose.

    It is recommended to use :meth:`from_estimator` to make one.

    Parameters
    ----------
    self_loops : array-like of shape (n_loops,)
        Self-loops gamma.
    label_weights : array-like of shape (n_weights,)
        Label weights a; infinite keeps the labels exactly.
    losses : array-like of shape (n_weights, n_loops)
        The losses: 0 for held-out scores proportional to the labels, 1 for useless ones.
    chosen : tuple of float, optional
        (self-loop, label weight, loss) in use.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    self_loops: FloatArray
    label_weights: FloatArray
    losses: FloatArray
    chosen: tuple[float, float, float] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None
    ) -> SelectionDisplay:
        """Draw the losses on the graph and the labels of a fitted classifier.

        The settings are those that ``"auto"`` compares on small data.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted, with at least two labels in each of two classes.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        SelectionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If labels are too few to be held out, or so many that holding them out one by one is
            too expensive.
        """
        check_is_fitted(estimator)
        state = estimator.ensemble_
        labels = state.labels
        labeled, n_classes = labels.labeled, labels.classes.size
        codes = labels.codes[labeled]
        counts = np.bincount(codes, minlength=n_classes)
        if (counts >= 2).sum() < 2:
            raise ValueError("estimator has no two classes with at least two labels to hold out")
        diagonal = state.first.graph.diagonal
        if diagonal.size * labeled.size > DEFAULT_POLICY.most_unknowns:
            raise ValueError(
                f"estimator has {labeled.size} labels on {diagonal.size} samples; holding out one "
                f"by one is possible up to a product of {DEFAULT_POLICY.most_unknowns}"
            )
        unit = float(diagonal.mean()) or 1.0
        loops, weights = unit * np.array(SELF_LOOPS), unit * np.array(LABEL_WEIGHTS)
        targets = np.eye(n_classes)[codes]
        judged = counts[codes] >= 2
        setting = state.tuning.setting
        weight, loop = setting.label_weight, setting.self_loop
        system = LabeledSystem(state.first.graph.adjacency, diagonal, labeled, targets)
        blocks = labeled_blocks(system, [*loops, loop])

        def losses_at(number: int, values: Sequence[float] | FloatArray) -> list[float]:
            return [
                left_out_loss(targets[judged], mine[judged])
                for _, mine in left_out_by_one(blocks[number], targets, values)
            ]

        losses = np.transpose([losses_at(number, weights) for number in range(loops.size)])
        chosen = (loop, weight, losses_at(loops.size, [weight])[0])
        return cls(loops, weights, losses, chosen).plot(ax)

    def plot(self, ax: Axes | None = None) -> SelectionDisplay:
        """Draw one line per label weight, and a star at the chosen setting.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        SelectionDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._start(ax)
        for number, (weight, row) in enumerate(zip(self.label_weights, self.losses, strict=True)):
            name = "kept exactly" if np.isinf(weight) else f"{weight:.3g}"
            ax.plot(self.self_loops, row, markersize=4.5, label=name, **class_style(number))
        if self.chosen is not None:
            loop, _, loss = self.chosen
            ax.scatter(
                loop, loss, s=225, marker="*", color="none", edgecolors=COLORS[7], label="in use"
            )
        ax.set(xscale="log", xlabel="self-loop", ylabel="loss on held-out labels")
        ax.legend(title="label weight", frameon=False)
        return self
