"""The user's own classifiers as members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from .base import Features, FitData, FittedModel, Member, Model

FloatArray = NDArray[np.float64]


def check_models(models: object) -> tuple[BaseEstimator, ...]:
    """Check ``models=``: None, one classifier or several, with `fit` and `predict_proba`."""
    if models is None:
        return ()
    several = tuple(models) if isinstance(models, list | tuple) else (models,)
    for model in several:
        if isinstance(model, type) or not hasattr(model, "fit"):
            raise ValueError(f"models={model!r} must be a classifier instance with fit")
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"models={model!r} has no predict_proba; use a classifier that has it, or wrap it "
                "in sklearn.calibration.CalibratedClassifierCV"
            )
    return several


@dataclass(frozen=True, eq=False)
class UserModel(Model):
    """A fitted classifier of the user."""

    estimator: Any
    n_classes: int

    def predict(self, X: Features) -> FloatArray:
        """Return probabilities of rows, equal ones where the model gives none."""
        return self.probabilities(X, np.full(self.n_classes, 1.0 / self.n_classes))

    def probabilities(self, X: Features, fallback: FloatArray | None = None) -> FloatArray:
        """Return probabilities of rows, `fallback` where they are not finite."""
        p = np.zeros((X.shape[0], self.n_classes))
        with np.errstate(all="ignore"):
            p[:, np.asarray(self.estimator.classes_, dtype=np.intp)] = self.estimator.predict_proba(
                X
            )
        wrong = ~np.isfinite(p).all(axis=1)
        if wrong.any():
            if fallback is None:
                raise ValueError(f"models={self.estimator!r} predicts values that are not finite")
            p[wrong] = fallback
        return p


class _Constant:
    """Stands in for a model where its training labels have one class."""

    def __init__(self, code: int) -> None:
        self.classes_ = np.array([code])

    def predict_proba(self, X: Features) -> FloatArray:
        return np.ones((X.shape[0], 1))


class UserMember(Member):
    """A classifier of the user, cloned; unset seeds are set, so that fits repeat."""

    def __init__(self, model: BaseEstimator, name: str, random_state: int) -> None:
        self.name = name
        self.model: Any = clone(model)
        unset = {
            key: random_state
            for key, value in self.model.get_params(deep=True).items()
            if value is None and (key == "random_state" or key.endswith("__random_state"))
        }
        self.model.set_params(**unset)

    def cross_fit(self, data: FitData) -> FloatArray:
        """Predict each fold by a model fitted on the others."""
        held_out = np.empty((data.codes.size, data.n_classes))
        for f in range(data.n_folds):
            out = np.asarray(data.folds == f)
            fitted = self._fitted(data, np.flatnonzero(~out))
            held_out[out] = fitted.probabilities(data.X[data.labeled[out]])
        return held_out

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        fitted = self._fitted(data, np.arange(data.codes.size))
        return FittedModel(self.name, fitted, fitted.predict(data.X))

    def _fitted(self, data: FitData, kept: NDArray[np.intp]) -> UserModel:
        codes = data.codes[kept]
        model: Any = _Constant(int(codes[0]))
        if np.unique(codes).size > 1:
            model = clone(self.model).fit(data.X[data.labeled[kept]], codes)
        return UserModel(model, data.n_classes)


def user_members(
    models: Sequence[BaseEstimator], taken: Sequence[str], random_state: int
) -> list[Member]:
    """Return members for the user's models, named after their classes."""
    names = list(taken)
    members: list[Member] = []
    for model in models:
        name, number = type(model).__name__, 2
        while name in names:
            name, number = f"{type(model).__name__} {number}", number + 1
        names.append(name)
        members.append(UserMember(model, name, random_state))
    return members
