"""SelectionDisplay: how the loss on left-out labels depends on label weight and self-loop.

It repeats, by :mod:`gdpa.system.closed_form`, what the classifier minimised when it chose its
weights; the graph and the weight of the evidence are those that it chose.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..estimators.tuning import LABEL_WEIGHTS, SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system.closed_form import labeled_blocks, left_out_by_one
from .axes import CLASS_MARKERS, COLORS, get_axes

__all__ = ["SelectionDisplay"]

FloatArray = NDArray[np.float64]


class SelectionDisplay:
    """Loss on left-out labels over self-loop and label weight.

    It is recommended to use :meth:`from_estimator` to make one.

    Parameters
    ----------
    self_loops : array-like of shape (n_loops,)
        Self-loops gamma.
    label_weights : array-like of shape (n_weights,)
        Label weights a; infinite keeps the labels exactly.
    losses : array-like of shape (n_weights, n_loops)
        The losses: 0 for left-out scores proportional to the labels, 1 for useless ones.
    chosen : tuple of float, optional
        (self-loop, label weight, loss) in use.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        self_loops: Any,
        label_weights: Any,
        losses: Any,
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
        estimator: Any,
        *,
        self_loops: Any = None,
        label_weights: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> SelectionDisplay:
        """Draw the losses on the graph and the labels of a fitted classifier.

        Parameters
        ----------
        estimator : GDPAClassifier
            Fitted, with at least two labels in each of two classes.
        self_loops, label_weights : array-like of float, optional
            What to compare; by default what ``"auto"`` compares on small data, multiples of the
            mean diagonal of the Laplacian.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        SelectionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If labels are too few to be left out, or so many that leaving them out one by one is
            too expensive.
        """
        check_is_fitted(estimator)
        state = estimator.state_
        labeled = state.coding.labeled
        codes = state.coding.codes[labeled]
        counts = np.bincount(codes, minlength=state.n_classes)
        if (counts >= 2).sum() < 2:
            raise ValueError("estimator has no two classes with at least two labels to leave out")
        diagonal = state.graph.diagonal
        if diagonal.size * labeled.size > DEFAULT_POLICY.most_unknowns:
            raise ValueError(
                f"estimator has {labeled.size} labels on {diagonal.size} samples; leaving out one "
                f"by one is drawn up to a product of {DEFAULT_POLICY.most_unknowns}"
            )
        unit = float(diagonal.mean()) or 1.0
        loops = _positive("self_loops", self_loops, unit * np.array(SELF_LOOPS))
        weights = _positive("label_weights", label_weights, unit * np.array(LABEL_WEIGHTS))
        targets = np.eye(state.n_classes)[codes]
        judged = counts[codes] >= 2
        weight, loop = state.setting.label_weight, state.setting.self_loop
        blocks = labeled_blocks(state.system(), [*loops, loop])

        def losses_at(number: int, values: Any) -> list[float]:
            return [
                left_out_loss(targets[judged], scores[judged])
                for _, scores in left_out_by_one(blocks[number], targets, values)
            ]

        losses = np.transpose([losses_at(number, weights) for number in range(loops.size)])
        chosen = (loop, weight, losses_at(loops.size, [weight])[0])
        return cls(loops, weights, losses, chosen=chosen).plot(ax=ax, **options)

    def plot(self, ax: Any = None) -> SelectionDisplay:
        """Draw one line per label weight, and a star at the choice.

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
        self.ax_.set(xlabel="self-loop", ylabel="loss on left-out labels")
        self.ax_.legend(title="label weight", frameon=False)
        return self


def _positive(name: str, given: Any, default: FloatArray) -> FloatArray:
    values = default if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.ndim != 1 or values.size == 0 or not (values > 0).all():
        raise ValueError(f"{name}={given!r} is not accepted; positive numbers are needed")
    return values
