"""Classifiers that the user supplies, as members of the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ...arrays import FloatArray
from .base import Candidates, Features, FitData, FittedModel, Mask, Member, Model


def check_models(models: object) -> tuple[BaseEstimator, ...]:
    """Return the classifiers in ``models=``; each must have `fit` and `predict_proba`."""
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
    """A fitted classifier that the user supplied."""

    estimator: Any
    n_classes: int

    def predict(self, X: Features, *, strict: bool = False) -> FloatArray:
        """Return probabilities; rows with non-finite ones get equal ones, or raise if `strict`."""
        p = np.zeros((X.shape[0], self.n_classes))
        with np.errstate(all="ignore"):
            p[:, self.estimator.classes_.astype(np.intp)] = self.estimator.predict_proba(X)
        wrong = ~np.isfinite(p).all(axis=1)
        if strict and wrong.any():
            raise ValueError(f"models={self.estimator!r} predicts non-finite probabilities")
        p[wrong] = 1.0 / self.n_classes
        return p


class UserMember(Member):
    """A clone of the user's classifier; unset random seeds are set, so that fits are repeatable."""

    def __init__(self, model: BaseEstimator, name: str, random_state: int) -> None:
        self.name = name
        self.model: Any = clone(model)
        for key, value in self.model.get_params(deep=True).items():
            if value is None and (key == "random_state" or key.endswith("__random_state")):
                self.model.set_params(**{key: random_state})

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold by a model fitted to the others."""
        yield None, self._fitted(data, ~held).predict(data.X[data.labeled[held]], strict=True)

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels."""
        fitted = self._fitted(data, np.ones(data.codes.size, dtype=bool))
        return FittedModel(self.name, fitted, fitted.predict(data.X))

    def _fitted(self, data: FitData, kept: Mask) -> UserModel:
        """Return a model fitted to the labels at `kept`."""
        from sklearn.dummy import DummyClassifier

        rows, codes = data.X[data.labeled[kept]], data.codes[kept]
        one_class = np.unique(codes).size == 1  # few classifiers accept this
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
