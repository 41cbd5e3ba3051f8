"""Linear models: multinomial logistic regression on standardised columns, alone or self-trained.

Self-trained: rows whose class the model is sure of are given to it as labels, and it is fitted
again, a few times over. Where classes are clouds with a gap between them the boundary so moves into
the gap; where they are not, the left-out labels say so.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...graph.rescale import Rescaler
from .member import Task, Trial, least_loss, scaled, thinned
from .supervised import Supervised

__all__ = ["LinearModel", "try_linear", "try_self_trained"]

FloatArray = NDArray[np.float64]

# Inverse strengths of the penalty, chosen by left-out labels; with more unknowns the middle one.
STRENGTHS = (0.1, 1.0, 10.0)
MOST_UNKNOWNS = 2_000
MAX_ITER = 300
# Labels that it is fitted on at most; more are thinned, evenly over the classes.
MOST_LABELS = 20_000
# Self-training: probability of a row that is sure (as in scikit-learn), rounds, rows that are asked
# and guesses that are believed at most. More of either changed nothing on real tables.
SURE = 0.75
ROUNDS = 3
ASKED_ROWS = 5_000
MOST_GUESSES = 1_000
# Deviations from the mean beyond which a row is shortened, and the most that a number can hold.
FAR, FARTHEST = 1e100, 1e300


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear model.

    Parameters
    ----------
    scaling : Rescaler
        Scales of the columns.
    coefficients : ndarray of shape (n_kept, n_classes)
        Slopes.
    intercepts : ndarray of shape (n_classes,)
        Constants.
    """

    scaling: Rescaler
    coefficients: FloatArray
    intercepts: FloatArray

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows."""
        return softmax(within(scaled(self.scaling, X)) @ self.coefficients + self.intercepts)


def within(Z: Any) -> Any:
    """Rows as they are; those too long for a product with slopes shortened, in their direction."""
    if sp.issparse(Z):
        Z.data = np.clip(Z.data, -FARTHEST, FARTHEST)
    length = abs(Z).max(axis=1)
    length = length.toarray().ravel() if sp.issparse(Z) else np.asarray(length)
    far = length > FAR
    if not far.any():
        return Z
    factor = np.where(far, FAR / np.where(far, length, 1.0), 1.0)
    return sp.csr_array(sp.diags_array(factor) @ Z) if sp.issparse(Z) else Z * factor[:, None]


def softmax(scores: Any) -> FloatArray:
    """Shares proportional to ``exp(scores)``."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def fitted_slopes(
    Z: Any, codes: NDArray[Any], n_classes: int, C: float
) -> tuple[FloatArray, FloatArray]:
    """Slopes and constants; a class without a label gets no score above any other."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    slopes = np.zeros((Z.shape[1], n_classes))
    constants = np.full(n_classes, -1e3)
    seen = np.unique(codes)
    if seen.size == 1:
        constants[seen] = 0.0
        return slopes, constants
    with warnings.catch_warnings():
        # Rough is good enough for a vote; the bound on the iterations is part of the member.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, max_iter=MAX_ITER, tol=1e-3).fit(Z, codes)
    if seen.size == 2:
        slopes[:, seen[1]] = model.coef_[0]
        constants[seen] = 0.0, float(model.intercept_[0])
    else:
        slopes[:, seen] = model.coef_.T
        constants[seen] = model.intercept_
    return slopes, constants


def try_linear(task: Task) -> Trial:
    """Judge the strengths of the penalty.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial
        The best of them.
    """
    strength = 1.0
    left_out = None
    if task.folds is not None:
        Z = task.Z[task.labeled]
        many = Z.shape[1] * task.n_classes > MOST_UNKNOWNS
        found: dict[float, FloatArray] = {}
        for C in (1.0,) if many else STRENGTHS:
            found[C] = np.empty((task.codes.size, task.n_classes))
            for f in range(task.n_folds):
                out = task.folds == f
                slopes, constants = fitted_slopes(Z[~out], task.codes[~out], task.n_classes, C)
                found[C][out] = softmax(Z[out] @ slopes + constants)
        strength, left_out = least_loss(found, task.codes, task.folds)

    def build(full: Task) -> Supervised:
        Z = full.Z
        kept = thinned(full.codes, MOST_LABELS)
        fit = fitted_slopes(Z[full.labeled[kept]], full.codes[kept], full.n_classes, strength)
        model = LinearModel(full.scaling, *fit)
        return Supervised("linear", model, softmax(Z @ fit[0] + fit[1]))

    return Trial("linear", left_out, build)


def try_self_trained(task: Task) -> Trial | None:
    """Judge self-training: each fold by a model that has seen its rows, but not their labels.

    Parameters
    ----------
    task : Task
        Features and labels.

    Returns
    -------
    Trial or None
        The model; None of too many columns, or where no label can be left out.
    """
    if task.folds is None or task.Z.shape[1] * task.n_classes > MOST_UNKNOWNS:
        return None
    left_out = np.empty((task.codes.size, task.n_classes))
    for f in range(task.n_folds):
        out = task.folds == f
        fit = self_trained(task, np.flatnonzero(~out))
        left_out[out] = softmax(task.Z[task.labeled[out]] @ fit[0] + fit[1])

    def build(full: Task) -> Supervised:
        fit = self_trained(full, thinned(full.codes, MOST_LABELS))
        model = LinearModel(full.scaling, *fit)
        return Supervised("self-trained", model, softmax(full.Z @ fit[0] + fit[1]))

    return Trial("self-trained", left_out, build)


def self_trained(task: Task, kept: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Slopes and constants from some of the labels and what they say about the other rows.

    Parameters
    ----------
    task : Task
        Features and labels.
    kept : ndarray of int
        Positions of the labels that may be seen.

    Returns
    -------
    slopes, constants : ndarray
        The model.
    """
    rows, codes = task.labeled[kept], task.codes[kept]
    n = task.X.shape[0]
    asked = np.setdiff1d(np.linspace(0, n - 1, min(n, ASKED_ROWS)).astype(np.intp), rows)
    labeled, others = task.Z[rows], task.Z[asked]
    fit = fitted_slopes(labeled, codes, task.n_classes, 1.0)
    for _ in range(ROUNDS):
        shares = softmax(others @ fit[0] + fit[1])
        sure = np.flatnonzero(shares.max(axis=1) > SURE)
        guess = shares[sure].argmax(axis=1).astype(codes.dtype)
        few = thinned(guess, MOST_GUESSES)
        stack = sp.vstack if sp.issparse(labeled) else np.vstack
        Z = stack([labeled, others[sure[few]]])
        fit = fitted_slopes(Z, np.concatenate([codes, guess[few]]), task.n_classes, 1.0)
    return fit
