"""The user's own models as members: fitted fold by fold to be judged, on all labels to vote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evidence import fitted_model, model_probabilities, seeded
from .member import Task, Trial
from .supervised import Supervised

__all__ = ["UserModel", "evidence_trials"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class UserModel:
    """A fitted classifier of the user.

    Parameters
    ----------
    estimator : estimator
        With `predict_proba`.
    n_classes : int
        Number of classes.
    """

    estimator: Any
    n_classes: int

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows."""
        return model_probabilities(self.estimator, X, self.n_classes, of_new_rows=True)


def evidence_trials(models: Sequence[Any], taken: Sequence[str]) -> list[Callable[[Task], Trial]]:
    """Trials of the user's models, named after their classes.

    Parameters
    ----------
    models : sequence of estimators
        Checked classifiers; they are cloned.
    taken : sequence of str
        Names that are in use.

    Returns
    -------
    list of callable
        From a task to a trial.
    """
    names: list[str] = []
    for model in models:
        name = plain = type(model).__name__
        number = 2
        while name in names or name in taken:
            name, number = f"{plain} {number}", number + 1
        names.append(name)
    return [_trial(model, name) for model, name in zip(models, names, strict=True)]


def _trial(model: Any, name: str) -> Callable[[Task], Trial]:
    def attempt(task: Task) -> Trial:
        own = seeded(model, task.options.random_state)
        left_out = None
        if task.folds is not None:
            left_out = np.empty((task.codes.size, task.n_classes))
            for f in range(task.n_folds):
                out = task.folds == f
                part = fitted_model(own, task.X[task.labeled[~out]], task.codes[~out])
                left_out[out] = model_probabilities(part, task.X[task.labeled[out]], task.n_classes)

        def build(full: Task) -> Supervised:
            fitted = UserModel(fitted_model(own, full.X[full.labeled], full.codes), full.n_classes)
            return Supervised(name, fitted, fitted.predict(full.X))

        return Trial(name, left_out, build)

    return attempt
