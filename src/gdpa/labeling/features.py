"""What a session is given, as features: arrays, sparse matrices, data frames with text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.features import check_features
from ..tables import TableEncoder, is_frame
from .ledger import Value, is_unicode

__all__ = ["Scaled", "given_labels", "plain_value", "to_features"]


def to_features(X: Any) -> tuple[Any, TableEncoder | None]:
    """Features as a float array or CSR array.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        Numbers; frames are encoded as ``gdpa fit`` does.

    Returns
    -------
    features : ndarray or csr_array
        The features.
    encoder : TableEncoder or None
        How a frame was encoded.

    Raises
    ------
    ValueError
        If X has no rows, no columns, or cells that are not finite.
    """
    if is_frame(X):
        encoder = TableEncoder()
        return encoder.fit(X).transform(X), encoder
    if sp.issparse(X):
        A = sp.csr_array(X)
    else:
        A = np.asarray(X)
        if A.ndim > 2:  # images: one row each
            A = A.reshape(A.shape[0], -1)
    if A.ndim != 2 or A.shape[0] == 0 or A.shape[1] == 0:
        raise ValueError(f"X has shape {A.shape}; it needs rows and columns")
    if A.dtype not in (np.float64, np.float32):
        try:
            A = A.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers ({error}); give text in a data frame") from error
    return check_features(A), None


class Scaled:
    """Rows of the features with their columns on the scale 0 to 1, scaled when they are asked for.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features. Sparse ones are divided by the largest size of each column and stay sparse.
    as_is : bool, default=False
        Whether the features have comparable scales already.
    """

    def __init__(self, X: Any, *, as_is: bool = False) -> None:
        self.X = X
        self.shape = X.shape
        self._as_is = as_is
        if as_is:
            return
        if sp.issparse(X):
            size = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
            self._low = None
            self._factor = 1.0 / np.where(size > 0, size, 1.0)
        else:
            self._low = X.min(axis=0)
            size = X.max(axis=0) - self._low
            self._factor = 1.0 / np.where(size > 0, size, 1.0)

    def __getitem__(self, rows: NDArray[np.intp]) -> Any:
        part = self.X[rows]
        if self._as_is:
            return part
        if self._low is None:
            return sp.csr_array(part @ sp.diags_array(self._factor))
        return (part - self._low) * self._factor


def plain_value(value: Any) -> Value:
    """Return a label as a plain Python value.

    Raises
    ------
    ValueError
        If it is missing, or neither text nor a finite number.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"value={value!r} is empty; a label has at least one character")
        if not is_unicode(value):
            raise ValueError(f"value={value!r} has a lone surrogate; a label is valid Unicode text")
        return value
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    raise ValueError(f"value={value!r} is not a label: text or a finite number is needed")


def given_labels(y: Any, n_rows: int) -> dict[int, Value]:
    """Labels that are there at the start.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or None
        Labels; None, NaN, -1 and empty text are unknown.
    n_rows : int
        Rows of the data.

    Returns
    -------
    dict
        Row to label.
    """
    if y is None:
        return {}
    values = list(y.tolist() if hasattr(y, "tolist") else y)
    if len(values) != n_rows:
        raise ValueError(f"y has {len(values)} entries, X has {n_rows} rows")
    known: dict[int, Value] = {}
    for row, value in enumerate(values):
        unknown = value is None or value == "" or value != value
        if unknown or (value == -1 and not isinstance(value, str)):
            continue
        known[row] = plain_value(value)
    return known
