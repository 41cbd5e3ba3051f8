"""Fit and predict on Dask, for data that do not fit on one machine.

Needs the extra ``distributed``. Tasks apply :mod:`gdpa.graph` and :mod:`gdpa.system` to blocks of
rows; files pass the results from stage to stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .cluster import Event, TaskError, Workers
    from .estimator import export
    from .folder import DamagedFileError
    from .forecast import SpreadForecast, forecast_spread
    from .label_spreading import SpreadOptions, SpreadResult, spread
    from .new_rows import PredictResult, predict
    from .pipeline import FitResult, TableFitOptions, fit

__all__ = [
    "DamagedFileError",
    "Event",
    "FitResult",
    "PredictResult",
    "SpreadForecast",
    "SpreadOptions",
    "SpreadResult",
    "TableFitOptions",
    "TaskError",
    "Workers",
    "export",
    "fit",
    "forecast_spread",
    "predict",
    "spread",
]

# Loaded on first use, because workers do not need most of what the client imports.
__getattr__ = load_on_use(
    __name__,
    cluster="Event TaskError Workers",
    estimator="export",
    folder="DamagedFileError",
    forecast="SpreadForecast forecast_spread",
    new_rows="PredictResult predict",
    pipeline="TableFitOptions FitResult fit",
    label_spreading="SpreadOptions SpreadResult spread",
)
