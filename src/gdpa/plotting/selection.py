"""Displays of choices made by held-out loss: model weights and graph settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays import FloatArray, NDArray
from ..estimators.tuning import LABEL_WEIGHTS, SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system import LabeledSystem
from ..system.closed_form import labeled_blocks, left_out_by_one
from .axes import COLORS, Display, class_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class CommitteeDisplay(Display):
    """Weights and held-out losses of the models of an ensemble.

    Create one with :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str
        Names of the models.
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
            Axes to draw on; a new figure by default.

        Returns
        -------
        CommitteeDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the classifier is not an ensemble.
        """
        check_is_fitted(estimator)
        committee = estimator.committee_
        if committee is None:
            raise ValueError("estimator is a single graph; only an ensemble has model weights")
        return cls(committee.names, committee.weights, committee.losses, committee.loss).plot(ax)

    def plot(self, ax: Axes | None = None) -> CommitteeDisplay:
        """Draw one bar per model, the largest weight on top, with the loss beside it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

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
    """Held-out loss as a function of self-loop and label weight.

    This is the loss that the classifier minimises to choose both, recomputed on its graph
    (:mod:`gdpa.system.closed_form`).

    Create one with :meth:`from_estimator`.

    Parameters
    ----------
    self_loops : array-like of shape (n_loops,)
        Self-loops gamma.
    label_weights : array-like of shape (n_weights,)
        Label weights a; an infinite weight fixes the labels.
    losses : array-like of shape (n_weights, n_loops)
        The losses: 0 if held-out scores are proportional to the labels, 1 if they are useless.
    chosen : tuple of float, optional
        Chosen self-loop, label weight and loss.

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
        """Draw the losses of a fitted classifier for the settings that ``"auto"`` compares.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted classifier, with at least two labels in each of two classes.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        SelectionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there are too few labels to hold any out, or too many for leave-one-out.
        """
        check_is_fitted(estimator)
        state = estimator.ensemble_
        labels = state.labels
        labeled = labels.labeled
        n_classes = labels.classes.size
        codes = labels.codes[labeled]
        counts = np.bincount(codes, minlength=n_classes)
        if (counts >= 2).sum() < 2:
            raise ValueError("estimator needs at least two labels in each of two classes")
        diagonal = state.first.graph.diagonal
        if diagonal.size * labeled.size > DEFAULT_POLICY.most_unknowns:
            raise ValueError(
                f"estimator has {labeled.size} labels on {diagonal.size} samples; leave-one-out "
                f"is limited to a product of {DEFAULT_POLICY.most_unknowns}"
            )
        unit = float(diagonal.mean()) or 1.0
        loops = unit * np.array(SELF_LOOPS)
        weights = unit * np.array(LABEL_WEIGHTS)
        targets = np.eye(n_classes)[codes]
        held_out = counts[codes] >= 2
        setting = state.tuning.setting
        weight = setting.label_weight
        loop = setting.self_loop
        system = LabeledSystem(state.first.graph.adjacency, diagonal, labeled, targets)
        blocks = labeled_blocks(system, [*loops, loop])

        def losses_at(number: int, values: Sequence[float] | FloatArray) -> list[float]:
            return [
                left_out_loss(targets[held_out], scores[held_out])
                for _, scores in left_out_by_one(blocks[number], targets, values)
            ]

        losses = np.transpose([losses_at(number, weights) for number in range(loops.size)])
        chosen = (loop, weight, losses_at(loops.size, [weight])[0])
        return cls(loops, weights, losses, chosen).plot(ax)

    def plot(self, ax: Axes | None = None) -> SelectionDisplay:
        """Draw one line per label weight, and a star at the chosen setting.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        SelectionDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._start(ax)
        for number, (weight, row) in enumerate(zip(self.label_weights, self.losses, strict=True)):
            name = "infinite" if np.isinf(weight) else f"{weight:.3g}"
            ax.plot(self.self_loops, row, markersize=4.5, label=name, **class_style(number))
        if self.chosen is not None:
            loop, _, loss = self.chosen
            ax.scatter(
                loop, loss, s=225, marker="*", color="none", edgecolors=COLORS[7], label="chosen"
            )
        ax.set(xscale="log", xlabel="self-loop", ylabel="held-out loss")
        ax.legend(title="label weight", frameon=False)
        return self
