"""Products whose rows do not depend on the other rows of the batch.

The BLAS adds up the terms of a product in an order that depends on the shape of the matrices and on
the position in them, so ``(X @ B)[i]`` and ``X[i : i + 1] @ B`` may differ in the last bit.
Predictions must not depend on the batch. Therefore :func:`row_products` calls the BLAS for every
row of its own: all calls have the same shape, so equal rows have equal products with every BLAS.

With a large factor B this would read B from memory for every row. Then blocks of exactly
:data:`BLOCK_ROWS` rows are multiplied, the last one filled up with zeros. The BLAS gets the same
shape each time, and the result is the same if it treats these few rows alike, as OpenBLAS does;
``tests/linalg/test_row_products.py`` checks it for the library in use.

:func:`row_squares` adds up along the rows of a C-ordered array, which NumPy does in an order that
depends on their length only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import NDArray

# Rows of a block. OpenBLAS treats all rows of a block of 4 or 8 alike in single and in double
# precision, but not those of 16 and more in single precision.
BLOCK_ROWS = 8
# Largest number of entries of B (1 MB) for which every row is a product of its own.
SMALL_FACTOR = 2**17


def row_products(X: Any, B: NDArray[Any]) -> NDArray[Any]:
    """Return ``X @ B``; each row of the result depends on the same row of X only.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_inner)
        The rows. SciPy multiplies sparse rows one by one, in the order of their entries.
    B : ndarray of shape (n_inner, n_columns)
        The other factor.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The product.
    """
    if sp.issparse(X):
        return np.asarray(X @ np.ascontiguousarray(B))
    rows = np.ascontiguousarray(X)
    factor = np.ascontiguousarray(B)
    n, d = rows.shape
    step = 1 if factor.size <= SMALL_FACTOR else BLOCK_ROWS
    whole = n - n % step
    out = np.empty((n, factor.shape[1]), dtype=np.result_type(rows, factor))
    blocks = rows[:whole].reshape(-1, step, d)
    np.matmul(blocks, factor, out=out[:whole].reshape(-1, step, factor.shape[1]))
    if whole < n:
        last = np.zeros((1, step, d), dtype=rows.dtype)
        last[0, : n - whole] = rows[whole:]
        out[whole:] = np.matmul(last, factor)[0, : n - whole]
    return out


def row_squares(X: NDArray[Any]) -> NDArray[Any]:
    """Return the squared length of each row, which depends on this row only.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        The rows.

    Returns
    -------
    ndarray of shape (n_rows,)
        The squared lengths.
    """
    return np.asarray(np.add.reduce(np.multiply(X, X, order="C"), axis=1))
