"""The labelled system ``(L + diag(a + gamma + e)) F = a Y + e T``: solve, leave out, update."""

from .labeled import LabeledSystem, ReorderedGraph, arrange
from .rows import attached_scores, new_row_scores

__all__ = ["LabeledSystem", "ReorderedGraph", "arrange", "attached_scores", "new_row_scores"]
