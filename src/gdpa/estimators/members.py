"""Interfaces of fitted members, of the columns they look at, and of models of columns.

The labels are stored once, in the fitted classifier. Members hold only what follows from them and
get the labels as an argument where they need them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..graph.features import Features
from .data import Rows
from .labels import LabelCoding, expand_class_columns
from .options import CheckedOptions


class FittedMember:
    """A fitted member: a frozen dataclass of arrays.

    ``shares`` has one row per sample of the fit. The entries are non-negative, and each row adds up
    to 1. They need not be calibrated: the committee sharpens each member by its held-out
    probabilities.
    """

    shares: FloatArray
    knows_links: bool = False  # whether it uses the user's graph
    # Samples of the fit that this member cannot predict.
    abstaining: NDArray[np.integer] = np.empty(0, dtype=np.intp)

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return shares of new rows from their features, links or both; None if it cannot."""
        raise NotImplementedError

    def abstains(self, links: sp.csr_array | None) -> Rows:
        """Return the new rows with these links about which this member knows nothing."""
        return np.empty(0, dtype=np.intp)

    def with_labels(
        self, before: LabelCoding, labels: LabelCoding, options: CheckedOptions, tol: float
    ) -> Self:
        """Return this member for changed labels; only members on graphs change."""
        return self

    def with_classes(self, place: Rows, n_classes: int) -> Self:
        """Return this member for more classes, with the old ones at `place`."""
        raise NotImplementedError


class Columns:
    """How the points that a model or a graph looks at are computed from rows."""

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the points of new rows, which may lack either features or links."""
        raise NotImplementedError


class Model:
    """A fitted model of points."""

    def predict(self, points: Features) -> FloatArray:
        """Return shares of points, in the classes that the model was fitted on."""
        raise NotImplementedError


@storable("model member")
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(FittedMember):
    """A member that is a supervised model, fitted once to the labelled samples.

    Parameters
    ----------
    model : Model
        The model.
    columns : Columns or None
        How its points are computed from rows; None if they are the features.
    shares : ndarray of shape (n_samples, n_classes)
        Predictions for the samples.
    place : ndarray of int or None
        Positions of the model's classes among all classes; None if the model has all of them.
    knows_links : bool
        Whether the columns depend on the user's graph.
    """

    model: Model
    columns: Columns | None = None
    shares: FloatArray = field(repr=False)
    place: NDArray[np.integer] | None = None
    knows_links: bool = False

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("shares", self.shares, (None, None), at_least=0)
        if self.place is not None:
            most = self.shares.shape[1] - 1
            check_numbers("place", self.place, (None,), at_least=0, at_most=most)

    def predict(
        self, X: Features | None, links: sp.csr_array | None, labels: LabelCoding
    ) -> FloatArray | None:
        """Return shares of new rows."""
        if X is None and not self.knows_links:
            return None
        points = X if self.columns is None else self.columns.new(X, links)
        assert points is not None
        shares = self.model.predict(points)
        if self.place is None:
            return shares
        return expand_class_columns(shares, self.place, self.shares.shape[1])

    def with_classes(self, place: Rows, n_classes: int) -> Self:
        """Return the same model with more classes."""
        shares = expand_class_columns(self.shares, place, n_classes)
        known = place if self.place is None else place[self.place]
        return replace(self, shares=shares, place=known)
