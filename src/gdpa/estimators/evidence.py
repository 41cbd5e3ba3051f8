"""Other classifiers as evidence: their probabilities enter the graph as node biases.

Evidence T with weight e adds ``e (F_i - T_i)^2`` at every node: each node is tied to what the
models say about it. On unlabelled nodes that is their prediction after fitting on all labels. On
labelled nodes, whose scores choose e, it must not come from a model that has seen the label: there
it is the prediction of a model fitted on the other folds. Several models are averaged, each
weighted by how well its out-of-fold probabilities fit the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..folds import stratified_folds
from .labels import wider

__all__ = [
    "Evidence",
    "check_models",
    "fitted_model",
    "gather_evidence",
    "mixture_weights",
    "model_probabilities",
    "seeded",
]

FloatArray = NDArray[np.float64]

N_FOLDS = 5
SMALLEST = 1e-3


@dataclass(frozen=True)
class Evidence:
    """Fitted models and what they say about every node.

    Parameters
    ----------
    models : tuple
        The models, fitted on all labels.
    weights : ndarray of shape (n_models,)
        Their shares in the average.
    probabilities : ndarray of shape (n_nodes, n_classes)
        The average; out-of-fold on labelled nodes.
    places : ndarray of int, optional
        Columns of the classes that the models know, where there are more.
    """

    models: tuple[Any, ...]
    weights: FloatArray
    probabilities: FloatArray
    places: NDArray[np.intp] | None = None

    def predict(self, X: Any) -> FloatArray:
        """Average probabilities of new samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that add up to 1.
        """
        k = self.probabilities.shape[1]
        known = k if self.places is None else self.places.size
        parts = [model_probabilities(model, X, known, of_new_rows=True) for model in self.models]
        average = np.asarray(np.tensordot(self.weights, np.stack(parts), axes=1))
        return average if self.places is None else wider(average, self.places, k)

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Evidence:
        """The same models beside more classes, the old ones at the given places."""
        return replace(
            self,
            probabilities=wider(self.probabilities, place, classes.size),
            places=place if self.places is None else place[self.places],
        )


def check_models(evidence: Any) -> tuple[Any, ...]:
    """Validate ``evidence=``: one classifier or several.

    Parameters
    ----------
    evidence : None, estimator or sequence of estimators
        Classifiers with `fit` and `predict_proba`.

    Returns
    -------
    tuple
        The classifiers; empty for None.
    """
    if evidence is None:
        return ()
    models = tuple(evidence) if isinstance(evidence, list | tuple) else (evidence,)
    for model in models:
        if isinstance(model, type) or not hasattr(model, "fit"):
            raise ValueError(f"evidence={model!r} must be a classifier instance with fit")
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"evidence={model!r} has no predict_proba; use a classifier that has it, or wrap "
                "it in sklearn.calibration.CalibratedClassifierCV"
            )
    return models


def gather_evidence(
    models: Sequence[Any],
    X: Any,
    labeled: NDArray[np.intp],
    codes: NDArray[np.int32],
    n_classes: int,
    *,
    random_state: int = 0,
    report: Callable[..., None] | None = None,
) -> Evidence:
    """Fit models on the labels and collect what they say about every node.

    Parameters
    ----------
    models : sequence of estimators
        Classifiers; they are cloned. A `random_state` left at None is set, so that fits repeat.
    X : ndarray or csr_array of shape (n_nodes, n_features)
        Features of all nodes.
    labeled : ndarray of int
        Labelled nodes.
    codes : ndarray of int
        Their classes.
    n_classes : int
        Number of classes.
    random_state : int, default=0
        Seed for models that have none.
    report : callable, optional
        Told after each model.

    Returns
    -------
    Evidence
        Fitted models and probabilities.
    """
    n_folds = min(N_FOLDS, labeled.size)
    fold = stratified_folds(codes, n_folds)
    fitted, everywhere, left_out = [], [], []
    for number, model in enumerate(models):
        unfitted = seeded(model, random_state)
        out = np.empty((labeled.size, n_classes))
        for held in range(n_folds):
            inside = fold != held
            if not inside.any():  # one label: no model has seen another one
                out[:] = 1.0 / n_classes
                break
            part = fitted_model(unfitted, X[labeled[inside]], codes[inside])
            out[~inside] = model_probabilities(part, X[labeled[~inside]], n_classes)
        final = fitted_model(unfitted, X[labeled], codes)
        p = np.empty((X.shape[0], n_classes))
        rest = np.setdiff1d(np.arange(X.shape[0]), labeled, assume_unique=True)
        if rest.size:
            p[rest] = model_probabilities(final, X[rest], n_classes)
        p[labeled] = out
        fitted.append(final)
        everywhere.append(p)
        left_out.append(out)
        if report is not None:
            report(stage="evidence", model=number + 1, models=len(models))
    weights = mixture_weights(np.stack(left_out), codes)
    return Evidence(
        tuple(fitted), weights, np.asarray(np.tensordot(weights, np.stack(everywhere), axes=1))
    )


def mixture_weights(
    probabilities: FloatArray, codes: NDArray[np.int32], *, rounds: int = 100
) -> FloatArray:
    """Shares of the models that fit left-out labels best, held near equal shares.

    The expectation-maximisation steps of a mixture, with one pseudo-label per five labels and
    model: with few labels the average stays nearly plain.

    Parameters
    ----------
    probabilities : ndarray of shape (n_models, n_labels, n_classes)
        Out-of-fold probabilities.
    codes : ndarray of int of shape (n_labels,)
        The labels.
    rounds : int, default=100
        Number of steps.

    Returns
    -------
    ndarray of shape (n_models,)
        Shares that add up to 1.
    """
    n_models, m, _ = probabilities.shape
    likelihood = np.maximum(probabilities[:, np.arange(m), codes], SMALLEST)
    weights = np.full(n_models, 1.0 / n_models)
    pseudo = max(m / 5.0, 1.0)
    for _ in range(rounds):
        joint = weights[:, None] * likelihood
        joint /= joint.sum(axis=0)
        weights = joint.sum(axis=1) + pseudo
        weights /= weights.sum()
    return weights


def seeded(model: Any, random_state: int) -> Any:
    """A copy whose unset seeds are set, so that fits repeat."""
    model = clone(model)
    unset = {
        name: random_state
        for name, value in model.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return model.set_params(**unset)


class _Constant:
    """Stands in for a model where its training labels have one class."""

    def __init__(self, code: int) -> None:
        self.classes_ = np.array([code])

    def predict_proba(self, X: Any) -> FloatArray:
        return np.ones((X.shape[0], 1))


def fitted_model(model: Any, X: Any, codes: NDArray[np.int32]) -> Any:
    """A fitted copy; a constant where there is one class only."""
    if np.unique(codes).size < 2:
        return _Constant(int(codes[0]))
    return clone(model).fit(X, codes)


def model_probabilities(
    model: Any, X: Any, n_classes: int, *, of_new_rows: bool = False
) -> FloatArray:
    """Predictions of a model; of a new row beyond its arithmetic it knows nothing."""
    p = np.zeros((X.shape[0], n_classes))
    with np.errstate(all="ignore"):
        p[:, np.asarray(model.classes_, dtype=np.intp)] = model.predict_proba(X)
    wrong = ~np.isfinite(p).all(axis=1)
    if wrong.any():
        if not of_new_rows:
            raise ValueError(f"evidence={model!r} predicts probabilities that are not finite")
        p[wrong] = 1.0 / n_classes
    return p
