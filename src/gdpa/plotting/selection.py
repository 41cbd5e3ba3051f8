"""Displays of what was chosen by the loss on held-out labels: model weights, and graph settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..estimators.tuning import LABEL_WEIGHTS, SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system import LabeledSystem
from ..system.closed_form import labeled_blocks, left_out_by_one
from .axes import CLASS_MARKERS, COLORS, Display, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CommitteeDisplay", "SelectionDisplay"]

FloatArray = NDArray[np.float64]


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

    def __init__(
        self,
        names: Sequence[str],
        weights: ArrayLike,
        losses: ArrayLike | None = None,
        *,
        loss: float | None = None,
    ) -> None:
        self.names = tuple(str(name) for name in names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.losses = None if losses is None else np.asarray(losses, dtype=np.float64)
        self.loss = loss
        for name, values in (("weights", self.weights), ("losses", self.losses)):
            if values is not None and values.shape != (len(self.names),):
                raise ValueError(
                    f"{name} has shape {values.shape}; one number for each of the "
                    f"{len(self.names)} names is needed"
                )

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
        return cls(committee.names, committee.weights, committee.losses, loss=committee.loss).plot(
            ax=ax
        )

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
        self.figure_, self.ax_ = get_axes(ax)
        order = np.argsort(self.weights, kind="stable")
        place = np.arange(order.size)
        self.ax_.barh(place, 100 * self.weights[order], color=COLORS[0])
        if self.losses is not None:
            for y, i in zip(place, order, strict=True):
                self.ax_.annotate(
                    f"loss {self.losses[i]:.2f}",
                    (100 * self.weights[i], y),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="small",
                )
            self.ax_.margins(x=0.2)
        self.ax_.set_yticks(place, [self.names[i] for i in order])
        words = "weight in percent"
        if self.loss is not None:
            words += f" (loss of the ensemble: {self.loss:.2f})"
        self.ax_.set(xlabel=words)
        return self


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

    def __init__(
        self,
        self_loops: ArrayLike,
        label_weights: ArrayLike,
        losses: ArrayLike,
        *,
        chosen: tuple[float, float, float] | None = None,
    ) -> None:
        self.self_loops = np.asarray(self_loops, dtype=np.float64)
        self.label_weights = np.asarray(label_weights, dtype=np.float64)
        self.losses = np.asarray(losses, dtype=np.float64)
        shape = (self.label_weights.size, self.self_loops.size)
        if self.losses.shape != shape:
            raise ValueError(
                f"losses has shape {self.losses.shape}; one row per label weight and one column "
                f"per self-loop is needed, {shape}"
            )
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        self_loops: ArrayLike | None = None,
        label_weights: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> SelectionDisplay:
        """Draw the losses on the graph and the labels of a fitted classifier.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted, with at least two labels in each of two classes.
        self_loops, label_weights : array-like of float, optional
            What to compare; by default what ``"auto"`` compares on small data, multiples of the
            mean diagonal of the Laplacian.
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
        diagonal = state.graph.diagonal
        if diagonal.size * labeled.size > DEFAULT_POLICY.most_unknowns:
            raise ValueError(
                f"estimator has {labeled.size} labels on {diagonal.size} samples; holding out one "
                f"by one is possible up to a product of {DEFAULT_POLICY.most_unknowns}"
            )
        unit = float(diagonal.mean()) or 1.0
        loops = _positive("self_loops", self_loops, unit * np.array(SELF_LOOPS))
        weights = _positive("label_weights", label_weights, unit * np.array(LABEL_WEIGHTS))
        targets = np.eye(n_classes)[codes]
        judged = counts[codes] >= 2
        weight, loop = state.setting.label_weight, state.setting.self_loop
        system = LabeledSystem(state.graph.adjacency, diagonal, labeled, targets)
        blocks = labeled_blocks(system, [*loops, loop])

        def losses_at(number: int, values: Sequence[float] | FloatArray) -> list[float]:
            return [
                left_out_loss(targets[judged], mine[judged])
                for _, mine in left_out_by_one(blocks[number], targets, values)
            ]

        losses = np.transpose([losses_at(number, weights) for number in range(loops.size)])
        chosen = (loop, weight, losses_at(loops.size, [weight])[0])
        return cls(loops, weights, losses, chosen=chosen).plot(ax=ax)

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
        self.figure_, self.ax_ = get_axes(ax)
        for number, (weight, row) in enumerate(zip(self.label_weights, self.losses, strict=True)):
            self.ax_.plot(
                self.self_loops,
                row,
                color=COLORS[number % len(COLORS)],
                marker=CLASS_MARKERS[number % len(CLASS_MARKERS)],
                markersize=4.5,
                label="kept exactly" if np.isinf(weight) else f"{weight:.3g}",
            )
        if self.chosen is not None:
            self.ax_.plot(
                self.chosen[0],
                self.chosen[2],
                marker="*",
                markersize=15,
                color="none",
                markeredgecolor=COLORS[7],
                markeredgewidth=1.3,
                linestyle="none",
                label="in use",
            )
        self.ax_.set_xscale("log")
        self.ax_.set(xlabel="self-loop", ylabel="loss on held-out labels")
        self.ax_.legend(title="label weight", frameon=False)
        return self


def _positive(name: str, given: ArrayLike | None, default: FloatArray) -> FloatArray:
    values = default if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.ndim != 1 or values.size == 0 or not (values > 0).all():
        raise ValueError(f"{name}={given!r} is not accepted; positive numbers are needed")
    return values
