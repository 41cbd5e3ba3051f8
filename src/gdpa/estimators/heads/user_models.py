"""Classifiers that the user supplies, as members of the committee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ...arrays import FloatArray
from ...graph.features import Features
from ..data import Fold, Rows
from ..members import FittedModel, Model
from ..views import COLUMNS, PointsView, Views
from .base import Head


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

    def predict(self, points: Features, *, strict: bool = False) -> FloatArray:
        """Return probabilities; rows with non-finite ones get equal ones, or raise if `strict`."""
        p = np.zeros((points.shape[0], self.n_classes))
        with np.errstate(all="ignore"):
            p[:, self.estimator.classes_.astype(np.intp)] = self.estimator.predict_proba(points)
        wrong = ~np.isfinite(p).all(axis=1)
        if strict and wrong.any():
            raise ValueError(f"models={self.estimator!r} predicts non-finite probabilities")
        p[wrong] = 1.0 / self.n_classes
        return p


@dataclass(frozen=True, eq=False)
class UserHead(Head):
    """A clone of the user's classifier.

    Parameters
    ----------
    estimator : estimator
        The clone.
    view : PointsView
        The columns.
    """

    estimator: Any
    view: PointsView = COLUMNS

    def held_out(self, views: Views, setting: None, fold: Fold) -> FloatArray:
        """Predict a fold by a model fitted to the others."""
        rows = views.data.X[views.data.labeled[fold.held]]
        return self._fitted(views, fold.kept).predict(rows, strict=True)

    def fit(self, views: Views, setting: None) -> FittedModel:
        """Fit to all labels."""
        fitted = self._fitted(views, np.arange(views.data.codes.size))
        return FittedModel(model=fitted, shares=fitted.predict(views.data.X))

    def _fitted(self, views: Views, kept: Rows) -> UserModel:
        """Return a model fitted to the labels at the positions `kept`."""
        from sklearn.dummy import DummyClassifier

        data = views.data
        codes = data.codes[kept]
        one_class = np.unique(codes).size == 1  # few classifiers accept this
        model: Any = DummyClassifier() if one_class else clone(self.estimator)
        return UserModel(model.fit(data.X[data.labeled[kept]], codes), data.n_classes)


def seeded(model: BaseEstimator, random_state: int) -> Any:
    """Return a clone whose unset random seeds are set, so that fits are repeatable."""
    own: Any = clone(model)
    for key, value in own.get_params(deep=True).items():
        if value is None and (key == "random_state" or key.endswith("__random_state")):
            own.set_params(**{key: random_state})
    return own


def user_heads(
    models: Sequence[BaseEstimator], taken: Sequence[str], random_state: int
) -> dict[str, UserHead]:
    """Return heads for the user's models, named after their classes."""
    heads: dict[str, UserHead] = {}
    for model in models:
        name = kind = type(model).__name__
        number = 2
        while name in heads or name in taken:
            name = f"{kind} {number}"
            number += 1
        heads[name] = UserHead(seeded(model, random_state))
    return heads
