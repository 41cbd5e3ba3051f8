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
    table = _table_given(estimator, X, reset=reset)
    if reset:
        encoder = _fitted_encoder(estimator, table, y)
        adopt_encoder(estimator, encoder)
    assert encoder is not None
    features, notes = encoder.encode(table)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=4)
    callback = None if estimator.options is None else estimator.options.callback
    if reset and callback is not None:
        callback({"stage": "encoding", "features": features.shape[1]})
    return features


def _table_given(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return the input as a table; a large data frame stays one and is read in blocks."""
    if not is_frame(X):
        return _named(estimator, X)
    if isinstance(X, Table | Mapping):
        return X if isinstance(X, Table) else table_of(X)
    # scikit-learn's messages about names that are missing, new or in another order.
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X if len(X) > BLOCK_ROWS else table_of(X)


def _fitted_encoder(estimator: Any, table: Any, y: Any) -> TableEncoder:
    """Return the encoder that the estimator asks for, fitted to a table and its labels."""
    given = getattr(estimator, "columns", None)
    options = estimator.options or GraphOptions()
    encoder = TableEncoder(
        columns=given, scale=options.rescale or "robust", random_state=estimator.random_state or 0
    )
    if isinstance(given, TableEncoder):
        encoder = clone(given)
    codes = None if y is None else encode_labels(y, estimator.unlabeled).codes
    n_rows = table.n_rows if isinstance(table, Table) else len(table)
    if codes is not None and codes.size != n_rows:
        codes = None  # the caller raises the error
    return encoder.fit(table, codes)


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
