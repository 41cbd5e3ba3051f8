"""Members that were fitted once on labelled rows: they answer for any row, and stay as they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..labels import wider
from ..options import FitOptions

__all__ = ["Model", "Supervised"]

FloatArray = NDArray[np.float64]


class Model(Protocol):
    """A fitted model."""

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows, in the classes that it was fitted on."""
        ...


@dataclass(frozen=True)
class Supervised:
    """A fitted model as a member.

    Parameters
    ----------
    name : str
        Name.
    model : Model
        The model.
    shares : ndarray of shape (n_nodes, n_classes)
        What it says about the nodes.
    place : ndarray of int or None
        Places of the model's classes among all; None where they are all.
    """

    name: str
    model: Model
    shares: FloatArray = field(repr=False)
    place: NDArray[np.intp] | None = None

    def predict(self, X: Any) -> FloatArray:
        """Shares of new rows."""
        found = self.model.predict(X)
        return found if self.place is None else wider(found, self.place, self.shares.shape[1])

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Supervised:
        """Itself: it stays as it was fitted."""
        return self

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Supervised:
        """The same model beside more classes."""
        at = place if self.place is None else place[self.place]
        return replace(self, shares=wider(self.shares, place, classes.size), place=at)
