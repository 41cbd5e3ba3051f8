"""Convert arrays, sparse matrices and data frames into the features of a session."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..graph.features import check_features
from ..graph.rescale import Rescaler
from ..tables import TableEncoder, is_frame
from .answers import Value, plain_value

Features: TypeAlias = Any  # ndarray or csr_array of shape (n_rows, n_features); scipy has no types


def to_features(X: Any) -> tuple[Features, TableEncoder | None]:
    """Return features as a float array or CSR array.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        Numbers, or a data frame, which is encoded as by ``gdpa fit``.

    Returns
    -------
    features : ndarray or csr_array
        The features.
    encoder : TableEncoder or None
        Encoder of a data frame.

    Raises
    ------
    ValueError
        If X has no rows, no columns, or values that are not finite.
    """
    if is_frame(X):
        encoder = TableEncoder()
        return encoder.fit(X).transform(X), encoder
    if sp.issparse(X):
        A = sp.csr_array(X)
    else:
        A = np.asarray(X)
        if A.ndim > 2:  # one image per row
            A = A.reshape(A.shape[0], -1)
    if A.ndim != 2 or A.shape[0] == 0 or A.shape[1] == 0:
        raise ValueError(f"X has shape {A.shape}; it must have rows and columns")
    if A.dtype not in (np.float64, np.float32):
        try:
            A = A.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers ({error}); use a data frame for text") from error
    return check_features(A), None


def fingerprint(X: Features) -> str:
    """Return a digest of the shape and the values."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for part in (X.data, X.indices) if sp.issparse(X) else (np.ascontiguousarray(X),):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()[:16]


class ScaledRows:
    """Features whose columns are scaled to [0, 1] on access.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features. Sparse columns are only divided by their largest absolute value.
    as_is : bool, default=False
        Whether the features already have comparable scales.
    """

    def __init__(self, X: Features, *, as_is: bool = False) -> None:
        self.X = X
        self.shape = X.shape
        self._low: Any = None
        self._factor: Any = None
        if as_is:
            return
        if sp.issparse(X):
            size = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
        else:
            # Raises an error if the range of a column overflows, as every fit would.
            Rescaler.fit(X)
            self._low = X.min(axis=0)
            size = X.max(axis=0) - self._low
        self._factor = 1.0 / np.where(size > 0, size, 1.0)

    def __getitem__(self, rows: NDArray[np.intp]) -> Features:
        part = self.X[rows]
        if self._factor is None:
            return part
        if self._low is None:
            return sp.csr_array(part @ sp.diags_array(self._factor))
        return (part - self._low) * self._factor


def given_labels(y: ArrayLike | None, n_rows: int) -> dict[int, Value]:
    """Return the initial labels by row; None, NaN, -1 and empty text are unknown."""
    if y is None:
        return {}
    values = list(y.tolist() if hasattr(y, "tolist") else y)  # type: ignore[arg-type]
    if len(values) != n_rows:
        raise ValueError(f"y has {len(values)} entries, X has {n_rows} rows")
    return {
        row: plain_value(value)
        for row, value in enumerate(values)
        if value is not None
        and value == value  # not NaN
        and value != ""
        and (isinstance(value, str) or value != -1)
    }
