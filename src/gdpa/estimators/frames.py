"""Encode data frames for the estimators; arrays are used as they are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from ..tables.encoder import TableEncoder
from ..tables.frames import BLOCK_ROWS, table_of
from ..tables.table import Column, Table, is_frame
from .labels import encode_labels
from .options import GraphOptions


def encoded_rows(estimator: Any, X: Any, y: Any = None, *, reset: bool) -> Any:
    """Return the encoded features of a data frame, or None if X is an array.

    Parameters
    ----------
    estimator : estimator
        Gets ``encoder_``, ``n_features_in_`` and ``feature_names_in_`` if `reset`.
    X : object
        Input of `fit` or `predict`.
    y : array-like, optional
        Labels of `fit`; those that are known decide how some columns are encoded.
    reset : bool
        Whether this is `fit`.
    """
    encoder: TableEncoder | None = getattr(estimator, "encoder_", None)
    if encoder is None and not (reset and is_frame(X)):
        return None
    if not is_frame(X):
        table = _named(estimator, X)
    elif isinstance(X, Table | Mapping):
        table = X if isinstance(X, Table) else table_of(X)
    else:
        # scikit-learn's messages about names that are missing, new or in another order.
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        table = X if len(X) > BLOCK_ROWS else table_of(X)  # large frames are read in blocks
    if reset:
        given, options = getattr(estimator, "columns", None), estimator.options or GraphOptions()
        scale, seed = options.rescale or "robust", estimator.random_state or 0
        encoder = TableEncoder(columns=given, scale=scale, random_state=seed)
        if isinstance(given, TableEncoder):
            encoder = clone(given)
        codes = None if y is None else encode_labels(y, estimator.unlabeled).codes
        n_rows = table.n_rows if isinstance(table, Table) else len(table)
        if codes is not None and codes.size != n_rows:
            codes = None  # the caller raises the error
        adopt_encoder(estimator, encoder.fit(table, codes))
    assert encoder is not None
    features, notes = encoder.encode(table)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=4)
    if reset and options.callback is not None:
        options.callback({"stage": "encoding", "features": features.shape[1]})
    return features


def adopt_encoder(estimator: Any, encoder: TableEncoder) -> None:
    """Let an estimator that was fitted on encoded features accept rows of the table itself."""
    estimator.encoder_ = encoder
    estimator.n_features_in_ = encoder.n_features_in_
    estimator.feature_names_in_ = encoder.feature_names_in_


def _named(estimator: Any, X: Any) -> Table:
    """Return an array as a table with the column names of the fitted frame."""
    A = validate_data(
        estimator, X, reset=False, accept_sparse=False, dtype=None, ensure_all_finite=False
    )
    names = estimator.encoder_.feature_names_in_
    if A.dtype.kind in "iufb":
        columns = tuple(Column(A[:, j].astype(np.float64)) for j in range(A.shape[1]))
        return Table(tuple(names), columns, "X")
    return table_of({name: A[:, j] for j, name in enumerate(names)})
