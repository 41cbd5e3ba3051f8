"""The labelled system ``(L + diag(a + gamma + e)) F = a Y + e T``: solve, leave out, update."""

from .labeled import Arranged, LabeledSystem, arrange, system_diagonal
from .rows import attached_scores, new_row_scores

__all__ = [
    "Arranged",
    "LabeledSystem",
    "arrange",
    "attached_scores",
    "new_row_scores",
    "system_diagonal",
]
