"""CommitteeDisplay: who votes with which weight, and how well each did on labels left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .axes import COLORS, get_axes

__all__ = ["CommitteeDisplay"]


class CommitteeDisplay:
    """Weights and losses of the members of a committee.

    It is recommended to use :meth:`from_estimator` to make one.

    Parameters
    ----------
    names : sequence of str
        The members.
    weights : array-like of shape (n_members,)
        Their shares of the vote.
    losses : array-like of shape (n_members,), optional
        Their log-losses on labels left out.
    loss : float, optional
        That of all together.

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
        self, names: Any, weights: Any, losses: Any = None, *, loss: float | None = None
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
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> CommitteeDisplay:
        """Draw the committee of a fitted classifier.

        Parameters
        ----------
        estimator : CommitteeClassifier
            Fitted with ``graph="auto"``.
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
        found = estimator.committee_
        if found is None:
            raise ValueError("estimator has a single graph; a committee votes with graph='auto'")
        return cls(found.names, found.weights, found.losses, loss=found.loss).plot(ax=ax)

    def plot(self, ax: Any = None) -> CommitteeDisplay:
        """Draw a bar per member, the heaviest on top, with its loss beside it.

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
        words = "share of the vote in percent"
        if self.loss is not None:
            words += f" (loss of all together: {self.loss:.2f})"
        self.ax_.set(xlabel=words)
        return self
