"""Products in single precision with a sparse matrix, scaled from both sides, in a better order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .operand import Operand

__all__ = ["ShortProducts"]


class ShortProducts:
    """``S A S y`` (or ``y - S A S y``) in single precision, in the order given or a better one.

    Parameters
    ----------
    operand : Operand
        Sparse matrix A. If it was reordered before, its copy in that order is used.
    scale : ndarray of shape (n,) or None
        Diagonal of S; None for the identity.
    complement : bool, default=False
        Whether the product is subtracted from the vector.
    """

    def __init__(
        self, operand: Operand, scale: NDArray[np.float64] | None, *, complement: bool = False
    ) -> None:
        self.operand = operand
        self.scale = None if scale is None else scale.astype(np.float32)
        self.complement = complement
        self.order: NDArray[np.int32] | None = None
        self.counter: list[int] | None = None  # of an operator around the operand
        self.factor: np.float32 | None = None
        self.zeros: NDArray[np.intp] | None = None
        if operand.is_reordered:
            self.reorder()
        else:
            self.short = operand.single()
            self._simplify()

    @property
    def n_jobs(self) -> int:
        """Threads for one product, or for several vectors at once."""
        return self.short.n_jobs

    def _simplify(self) -> None:
        """A scale of one value and zeros needs two passes over the vectors less."""
        if self.scale is None or self.scale.size == 0:
            return
        high = self.scale.max()
        zero = self.scale == 0
        self.factor = self.zeros = None
        if bool((zero | (self.scale == high)).all()):
            self.factor, self.zeros = np.square(high), np.flatnonzero(zero)

    def __call__(self, y: NDArray[np.float32]) -> NDArray[np.float32]:
        """The product, in the present order."""
        self.count(1)
        return self._scaled(y, True)

    def quick(self, y: NDArray[np.float32], *, split: bool) -> NDArray[np.float32]:
        """The product with a `y` that is 0 where the scale is; not counted.

        `split`: over the threads, for a caller that is not one of them.
        """
        if self.factor is None:
            return self._scaled(y, split)
        out = self._plain(y, split)
        if self.complement:
            out *= -self.factor
            out += y
        else:
            out *= self.factor
        out[self.zeros] = 0.0
        return out

    def _plain(self, y: NDArray[np.float32], split: bool) -> NDArray[np.float32]:
        return np.asarray(self.short.product(y) if split else self.short.matrix @ y)

    def _scaled(self, y: NDArray[np.float32], split: bool) -> NDArray[np.float32]:
        out = self._plain(y if self.scale is None else self.scale * y, split)
        if self.scale is not None:
            out *= self.scale
        return np.subtract(y, out, out=out) if self.complement else out

    def count(self, columns: int) -> None:
        """Note so many products with one vector."""
        self.short.counter[0] += columns
        if self.counter is not None:
            self.counter[0] += columns

    def reorder(self) -> bool:
        """Go over to an order with neighbours near each other, where that pays."""
        if self.order is None and self.operand.reorder():
            self.short, self.order = self.operand.reordered()
            self.scale = None if self.scale is None else self.scale[self.order]
            self._simplify()
            return True
        return False
