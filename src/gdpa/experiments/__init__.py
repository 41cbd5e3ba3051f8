"""The paper's experiments as a library, and the ones that go beyond it.

:func:`reproduce` runs them into a folder and writes the report; the parts are
:mod:`~gdpa.experiments.catalogue` (what there is), :mod:`~gdpa.experiments.runner` (how rows are
computed), :mod:`~gdpa.experiments.store` (how they are kept) and
:mod:`~gdpa.experiments.report` (how they are shown).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .config import Config
    from .protocol import PaperRun, error_percent, paper_denominator, paper_problems
    from .reproduction import Reproduction, reproduce
    from .runner import ProgressEvent
    from .splits import fold_count, folds, split
    from .store import ResultsFolderError

__all__ = [
    "Config",
    "PaperRun",
    "ProgressEvent",
    "Reproduction",
    "ResultsFolderError",
    "error_percent",
    "fold_count",
    "folds",
    "paper_denominator",
    "paper_problems",
    "reproduce",
    "split",
]

# Loaded on first use: every worker process imports this package, and few need all of it.
__getattr__ = load_on_use(
    __name__,
    {
        "Config": "config",
        "PaperRun": "protocol",
        "ProgressEvent": "runner",
        "Reproduction": "reproduction",
        "ResultsFolderError": "store",
        "error_percent": "protocol",
        "fold_count": "splits",
        "folds": "splits",
        "paper_denominator": "protocol",
        "paper_problems": "protocol",
        "reproduce": "reproduction",
        "split": "splits",
    },
)
