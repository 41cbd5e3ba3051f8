"""Logistic regression on points, plain or self-trained.

Self-training fits the model three more times with its own confident predictions as labels. If the
classes are clusters with a gap between them, the boundary moves into the gap; if they are not, the
held-out loss shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.features import Features
from ...linalg.row_products import row_products
from ...threads import one_thread
from ..data import Fold, Rows, stratified_subsample
from ..members import FittedModel, Model
from ..trials import Trial
from ..views import PointsView, Views
from .base import Head

# A stratified subsample is taken from more labels.
MOST_LABELS = 20_000
# Rows with a larger entry are scaled down, so that products with them stay finite.
FAR = 1e100
# Tolerance of logistic regression relative to scikit-learn's 1e-4: a rough fit is good enough.
ROUGH_TOL = 1e-3
MOST_ITERATIONS = 300
# Log-odds of a class without labels.
NEVER = -1e3


@storable("linear model")
@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A fitted linear model.

    Parameters
    ----------
    coefficients : ndarray of shape (n_columns, n_classes)
        Coefficients.
    intercepts : ndarray of shape (n_classes,)
        Intercepts.
    """

    coefficients: FloatArray
    intercepts: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("coefficients", self.coefficients, (None, None))
        check_numbers("intercepts", self.intercepts, (self.coefficients.shape[1],))

    def predict(self, points: Features) -> FloatArray:
        """Return shares of points."""
        Z = points
        if sp.issparse(Z):
            size = abs(Z).max(axis=1).toarray().ravel()
        else:
            size = np.maximum(Z.max(axis=1), -Z.min(axis=1))
        if float(size.max(initial=0.0)) > FAR:
            factor = FAR / np.maximum(size, FAR)
            Z = sp.csr_array(sp.diags_array(factor) @ Z) if sp.issparse(Z) else Z * factor[:, None]
        return np.asarray(softmax(row_products(Z, self.coefficients) + self.intercepts, axis=1))


@one_thread()
def fit_logistic(
    Z: Features, codes: NDArray[np.integer], n_classes: int, C: float = 1.0
) -> LinearModel:
    """Fit scikit-learn's LogisticRegression; a class without a label gets probability 0.

    With fewer rows than columns it is fitted to fewer columns (:func:`fewer_columns`).
    """
    from sklearn import config_context
    from sklearn.linear_model import LogisticRegression

    coefficients = np.zeros((Z.shape[1], n_classes))
    intercepts = np.full(n_classes, NEVER)
    seen = np.unique(codes)
    intercepts[seen] = 0.0
    if seen.size == 1:
        return LinearModel(coefficients, intercepts)
    rows, back = fewer_columns(Z)
    model = LogisticRegression(C=C, tol=ROUGH_TOL, max_iter=MOST_ITERATIONS)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        model.fit(rows, codes)
    slopes = model.coef_.T if rows is Z else Z.T @ (back @ model.coef_.T)
    fitted = seen[-1:] if seen.size == 2 else seen  # of two classes the first has no coefficients
    coefficients[:, fitted] = slopes
    intercepts[fitted] = model.intercept_
    return LinearModel(coefficients, intercepts)


def fewer_columns(Z: Features) -> tuple[Features, FloatArray]:
    """Return features R with at most as many columns as rows and ``R R^T = Z Z^T``, and B.

    The coefficients w of a penalised model lie in the span of the rows: ``w = Z^T B v``, where v
    are the coefficients of the model on ``R = Z Z^T B``.
    """
    if Z.shape[0] >= Z.shape[1]:
        return Z, np.empty((0, 0))
    products = Z @ Z.T
    dense = products if isinstance(products, np.ndarray) else products.toarray()
    K = np.asarray(dense, dtype=np.float64)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    if not (np.isfinite(values).all() and kept.any()):
        return Z, np.empty((0, 0))
    B = vectors[:, kept] / np.sqrt(values[kept])
    return K @ B, B


def add_confident(
    model: LinearModel, points: Features, rows: Rows, codes: NDArray[np.integer], per_label: int
) -> tuple[Rows, NDArray[np.integer]]:
    """Return labelled rows and the most confident predictions, `per_label` for each label."""
    shares = model.predict(points)
    guess = shares.argmax(axis=1)
    confidence = shares.max(axis=1)
    guess[rows] = -1
    chosen = [rows]
    for c, count in enumerate(np.bincount(codes, minlength=shares.shape[1]).tolist()):
        found = np.flatnonzero(guess == c)
        chosen.append(found[np.argsort(-confidence[found], kind="stable")[: per_label * count]])
    guess[rows] = codes
    together = np.concatenate(chosen)
    return together, guess[together]


@dataclass(frozen=True)
class Logistic(Head):
    """Logistic regression; held-out labels choose the penalty and the setting of the view.

    A setting is the view's, the inverse penalty, and how many confident predictions are added for
    each label.

    Parameters
    ----------
    view : PointsView
        The points.
    added : int, default=0
        Confident predictions per label; 0 and this number are tried. They are not added to many
        samples, where labels are not scarce.
    """

    view: PointsView
    added: int = 0

    def settings(self, views: Views) -> Sequence[tuple[Any, float, int]]:
        """Return the settings; those with added predictions have the default of the view."""
        strengths = self.view.strengths(views)
        of_view = self.view.settings(views)
        settings = [(s, C, 0) for s, C in product(of_view, strengths)]
        policy = views.data.options.policy
        most = policy.judged_nodes if views.data.links is None else policy.huge_nodes
        if self.added and views.folds is not None and views.data.n_samples <= most:
            extra = [(of_view[-1], C, self.added) for C in strengths]
            return [*extra, *settings]
        return settings

    def model(
        self, views: Views, setting: tuple[Any, float, int], fold: Fold | None
    ) -> tuple[LinearModel, Features]:
        """Return a model that has not seen a fold, and the points of all samples."""
        of_view, C, added = setting
        data = views.data
        points = self.view.points(views, of_view, fold).points
        kept = np.arange(data.codes.size) if fold is None else fold.kept
        kept = kept[stratified_subsample(data.codes[kept], MOST_LABELS)]
        rows = data.labeled[kept]
        codes = data.codes[kept]
        model = fit_logistic(points[rows], codes, data.n_classes, C)
        if added:
            more, guess = add_confident(model, points, rows, codes, added)
            model = fit_logistic(points[more], guess, data.n_classes, C)
        return model, points

    def held_out(self, views: Views, setting: tuple[Any, float, int], fold: Fold) -> FloatArray:
        """Predict a fold by a model that has not seen its labels."""
        model, points = self.model(views, setting, fold)
        return model.predict(points[views.data.labeled[fold.held]])

    def shares(self, views: Views, setting: tuple[Any, float, int], fold: Fold) -> FloatArray:
        """Predict all samples by a model that has not seen the labels of a fold."""
        model, points = self.model(views, setting, fold)
        return model.predict(points)

    def fit(self, views: Views, setting: tuple[Any, float, int]) -> FittedModel:
        """Fit to all labels."""
        model, points = self.model(views, setting, None)
        looked_at = self.view.points(views, setting[0], None)
        return FittedModel(
            model=model,
            columns=looked_at.columns,
            shares=model.predict(points),
            knows_links=looked_at.knows_links,
        )


@dataclass(frozen=True)
class SelfTrained(Head):
    """Logistic regression that learns from its own confident predictions.

    Parameters
    ----------
    view : PointsView
        The points.
    rounds : int, default=3
        How often the model is fitted again.
    confident : float, default=0.75
        Probability of a confident prediction, as in scikit-learn.
    most_rows, most_added : int
        Limits on the rows predicted and the predictions added. Higher limits changed nothing on
        real tables.
    most_coefficients : int
        Not fitted to more coefficients, because it takes several fits.
    """

    view: PointsView
    rounds: int = 3
    confident: float = 0.75
    most_rows: int = 5_000
    most_added: int = 1_000
    most_coefficients: int = 2_000

    def prepared(self, views: Views, trials: Mapping[str, Trial]) -> Self | None:
        """Return this head if there are few columns."""
        few = views.data.X.shape[1] * views.data.n_classes <= self.most_coefficients
        return self if few else None

    def _model(self, views: Views, fold: Fold | None) -> tuple[LinearModel, Features]:
        """Return a model that has not seen a fold, and the points of all samples."""
        data = views.data
        points = self.view.points(views, None, fold).points
        kept = np.arange(data.codes.size) if fold is None else fold.kept
        kept = kept[stratified_subsample(data.codes[kept], MOST_LABELS)]
        rows = data.labeled[kept]
        codes = data.codes[kept]
        evenly = np.linspace(0, data.n_samples - 1, min(data.n_samples, self.most_rows))
        others = points[np.setdiff1d(evenly.astype(np.intp), rows)]
        stack = sp.vstack if sp.issparse(points) else np.vstack
        model = fit_logistic(points[rows], codes, data.n_classes)
        for _ in range(self.rounds):
            shares = model.predict(others)
            sure = np.flatnonzero(shares.max(axis=1) > self.confident)
            guess = shares[sure].argmax(axis=1).astype(codes.dtype)
            few = stratified_subsample(guess, self.most_added)
            Z = stack([points[rows], others[sure[few]]])
            model = fit_logistic(Z, np.concatenate([codes, guess[few]]), data.n_classes)
        return model, points

    def held_out(self, views: Views, setting: None, fold: Fold) -> FloatArray:
        """Predict a fold by a model that has not seen its labels."""
        model, points = self._model(views, fold)
        return model.predict(points[views.data.labeled[fold.held]])

    def fit(self, views: Views, setting: None) -> FittedModel:
        """Fit to all labels."""
        model, points = self._model(views, None)
        columns = self.view.points(views, None, None).columns
        return FittedModel(model=model, columns=columns, shares=model.predict(points))
