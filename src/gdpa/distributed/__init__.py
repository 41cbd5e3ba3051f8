"""Fit and predict on Dask, for data that do not fit on one machine.

Needs the extra ``distributed``. Tasks apply :mod:`gdpa.graph` and :mod:`gdpa.system` to blocks of
rows; files pass the results from stage to stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .cluster import Event, TaskError
    from .estimator import export
    from .folder import DamagedFileError
    from .new_rows import PredictResult, predict
    from .pipeline import FitResult, fit

__all__ = [
    "DamagedFileError", "Event", "FitResult", "PredictResult", "TaskError", "export", "fit",
    "predict",
]  # fmt: skip

# Loaded on first use, because workers do not need most of what the client imports.
__getattr__ = load_on_use(
    __name__,
    cluster="Event TaskError",
    estimator="export",
    folder="DamagedFileError",
    new_rows="PredictResult predict",
    pipeline="FitResult fit",
)
