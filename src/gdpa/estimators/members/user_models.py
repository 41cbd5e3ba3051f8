"""The user's own classifiers as members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier

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
            p[:, self.estimator.classes_.astype(np.intp)] = self.estimator.predict_proba(X)
        wrong = ~np.isfinite(p).all(axis=1)
        if wrong.any():
            if fallback is None:
                raise ValueError(f"models={self.estimator!r} predicts values that are not finite")
            p[wrong] = fallback
        return p


class UserMember(Member):
    """A classifier of the user, cloned; unset seeds are set, so that fits repeat."""

    def __init__(self, model: BaseEstimator, name: str, random_state: int) -> None:
        self.name = name
        self.model: Any = clone(model)
        for key, value in self.model.get_params(deep=True).items():
            if value is None and (key == "random_state" or key.endswith("__random_state")):
                self.model.set_params(**{key: random_state})

    def predict_fold(
        self, data: FitData, f: int, held: NDArray[np.bool_]
    ) -> Iterator[tuple[None, FloatArray]]:
        """Predict a fold by a model fitted on the others."""
        fitted = self._fitted(data, ~held)
        yield None, fitted.probabilities(data.X[data.labeled[held]])

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        fitted = self._fitted(data, np.ones(data.codes.size, dtype=bool))
        return FittedModel(self.name, fitted, fitted.predict(data.X))

    def _fitted(self, data: FitData, kept: NDArray[np.bool_]) -> UserModel:
        rows, codes = data.X[data.labeled[kept]], data.codes[kept]
        one_class = np.unique(codes).size == 1  # few classifiers take it
        model: Any = DummyClassifier() if one_class else clone(self.model)
        return UserModel(model.fit(rows, codes), data.n_classes)


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
