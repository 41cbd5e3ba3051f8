"""The interface of heads.

A head is created with the view that it looks at. It holds no state of a fit: ``held_out`` and
``fit`` get the setting as an argument, and :meth:`Head.prepared` returns another head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ...arrays import FloatArray
from ..data import Fold
from ..members import FittedMember
from ..trials import Trial
from ..views import GraphView, PointsView, Views


class Head:
    """What is done with a view."""

    view: GraphView | PointsView

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head ready for some data; None if it cannot be applied to them.

        Parameters
        ----------
        views : Views
            Views of all samples.
        trials : mapping of str to Trial
            Trials of the members before this one, for a head that uses the result of another.
        """
        return self

    def settings(self, views: Views) -> Sequence[Any]:
        """Return the settings to choose from; the last is used if no label can be held out."""
        return (None,)

    def held_out(self, views: Views, setting: Any, fold: Fold) -> FloatArray:
        """Return probabilities of the labels of a fold, from a fit that has not seen them."""
        raise NotImplementedError

    def fit(self, views: Views, setting: Any) -> FittedMember:
        """Fit to all samples and labels."""
        raise NotImplementedError
