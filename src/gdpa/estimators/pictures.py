"""Rows that are pictures: features learned from them, unless held-out labels prefer the pixels.

On six sets of pictures the learned features lower the error by about nine points with 5 and 20
labels per class (``benchmarks/DECISIONS.md``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..arrays import FloatArray, NDArray
from ..graph.features import Features
from ..graph.picture_features import PictureFeatures, picture_shape
from .data import N_FOLDS, FitData, folds_of
from .heads.linear import Logistic
from .labels import LabelCoding, stratified_folds
from .options import CheckedOptions
from .trials import cross_validated_loss, try_settings
from .views import STANDARDISED, Views


def learn_pictures(
    X: Features, labels: LabelCoding, options: CheckedOptions
) -> PictureFeatures | None:
    """Return features learned from the rows; None if rows are not pictures, or pixels are better.

    Pixels are better if their held-out loss is smaller by more than one standard error.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_columns)
        Rows of numbers.
    labels : LabelCoding
        The labels.
    options : CheckedOptions
        Options of the fit.
    """
    shape = picture_shape(X) if isinstance(X, np.ndarray) else None
    if shape is None:
        return None
    learned = PictureFeatures.fit(X, shape, options.random_state)
    known = X[labels.labeled]
    codes = labels.codes[labels.labeled]
    by_pixels = held_out_losses(known, codes, labels.classes, options)
    by_features = held_out_losses(learned.transform(known), codes, labels.classes, options)
    excess = by_features - by_pixels
    noise = excess.std() / np.sqrt(excess.size)
    return learned if excess.mean() <= noise else None


def held_out_losses(
    rows: NDArray[np.floating],
    codes: NDArray[np.int32],
    classes: NDArray[np.generic],
    options: CheckedOptions,
) -> FloatArray:
    """Return the held-out losses of logistic regression on labelled rows; 0 with too few labels."""
    data = FitData(rows, LabelCoding(codes, classes), options)
    if not data.enough_labels:
        return np.zeros(1)
    folds = stratified_folds(codes, N_FOLDS)
    views = Views(data, folds)
    head = Logistic(STANDARDISED)
    trial = try_settings(
        partial(head.held_out, views),
        head.settings(views),
        folds_of(folds),
        codes,
        data.n_classes,
    )
    return cross_validated_loss(trial.held_out, codes)[0]
