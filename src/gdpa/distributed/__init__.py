"""Beyond one machine: the same fit on parts, arranged on Dask.

Needs the extra ``distributed``. Nothing here searches, weighs or solves by itself: tasks call the
functions of :mod:`gdpa.graph` and of the labelled system on blocks of rows, and files carry the
results from stage to stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .exporting import export
    from .fitting import fit
    from .new_rows import PredictResult, predict
    from .runner import Event, TaskError
    from .stages import FitResult

__all__ = ["Event", "FitResult", "PredictResult", "TaskError", "export", "fit", "predict"]

# Loaded on first use: workers run tasks, and what only the client needs is most of what there is to
# load.
__getattr__ = load_on_use(
    __name__,
    {
        "Event": "runner",
        "FitResult": "stages",
        "PredictResult": "new_rows",
        "TaskError": "runner",
        "export": "exporting",
        "fit": "fitting",
        "predict": "new_rows",
    },
)
