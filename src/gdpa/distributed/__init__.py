"""Beyond one machine: the same steps on Dask.

Needs the extra ``distributed``. Nothing here searches, weighs or solves by itself: tasks call the
functions of :mod:`gdpa.graph` and of the labelled system on blocks of rows, and files carry the
results from stage to stage.
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

# Loaded on first use: workers run tasks, and what only the client needs is most of what there is to
# load.
__getattr__ = load_on_use(
    __name__,
    {
        "DamagedFileError": "folder", "Event": "cluster", "FitResult": "pipeline",
        "PredictResult": "new_rows", "TaskError": "cluster", "export": "estimator",
        "fit": "pipeline", "predict": "new_rows",
    },
)  # fmt: skip
