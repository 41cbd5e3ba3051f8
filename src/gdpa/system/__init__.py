"""The labelled system ``(L + diag(a + gamma + e)) F = a Y + e T``: solve, leave out, update."""

from .labeled import LabeledSystem, Scores, right_hand_side, system_diagonal
from .products import Arranged, ScaledProducts, arrange
from .rows import new_row_scores

__all__ = [
    "Arranged",
    "LabeledSystem",
    "ScaledProducts",
    "Scores",
    "arrange",
    "new_row_scores",
    "right_hand_side",
    "system_diagonal",
]
