"""The paper's experiments as a library, and the ones that go beyond it."""

from .protocol import (
    PaperRun,
    error_percent,
    fold_count,
    folds,
    paper_denominator,
    paper_problems,
    split,
)

__all__ = [
    "PaperRun",
    "error_percent",
    "fold_count",
    "folds",
    "paper_denominator",
    "paper_problems",
    "split",
]
