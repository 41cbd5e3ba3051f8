"""Beyond one machine: the same fit on parts, arranged on Dask.

Needs the extra ``distributed``. Nothing here searches, weighs or solves by itself: tasks call the
functions of :mod:`gdpa.graph` and of the labelled system on blocks of rows, and files carry the
results from stage to stage.
"""

from .export import export
from .fit import fit
from .new_rows import PredictResult, predict
from .runner import Event, TaskError
from .stages import FitResult

__all__ = ["Event", "FitResult", "PredictResult", "TaskError", "export", "fit", "predict"]
