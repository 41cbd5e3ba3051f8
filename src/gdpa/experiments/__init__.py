"""The paper's experiments as a library, and the ones that go beyond it.

:func:`reproduce` runs them into a folder and writes the report; the parts are
:mod:`~gdpa.experiments.catalogue` (what there is), :mod:`~gdpa.experiments.runner` (how rows are
computed), :mod:`~gdpa.experiments.store` (how they are kept) and
:mod:`~gdpa.experiments.report` (how they are shown).
"""

from .config import Config
from .protocol import (
    PaperRun,
    error_percent,
    fold_count,
    folds,
    paper_denominator,
    paper_problems,
    split,
)
from .reproduction import Reproduction, reproduce
from .runner import ProgressEvent
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
