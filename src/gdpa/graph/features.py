"""Validation of features and search options, blocks of rows, duplicates, and distant rows.

Features may be a NumPy array of any real type and layout, memory-mapped or not, or a SciPy sparse
matrix. Floating-point arrays are never copied as a whole, so large files can stay on disk.

Thousands of identical rows slow every search down, because no tree can split them. But a list of k
neighbours never needs more than k + 2 members of a group of identical rows, and the neighbours of
every member of such a group are other members, at distance 0. So :func:`thin_duplicates` keeps that
many of each group for the search, and links the members of a group in a ring.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import unmasked
from ..errors import ScaleWarning
from .adjacency import MatrixLike, csr_from_parts

# Distinguished by isinstance(X, np.ndarray).
Features: TypeAlias = NDArray[Any] | sp.csr_array

# Features with fewer columns are never stored as a sparse matrix, nor those with a larger share of
# non-zeros. PubMed's words (a tenth) are sparse, images of digits (a fifth) are not.
MANY_COLUMNS = 100
FEW_NONZEROS = 0.15
# Maximum size of a block of rows.
BLOCK_BYTES = 32 * 2**20


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int | None = None) -> Iterator[slice]:
    """Yield slices of rows, each of about `block_bytes` bytes.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_bytes : int
        Memory needed per row.
    block_bytes : int, optional
        Memory needed per block. By default 1 MB, more for many or long rows, up to 32 MB.

    Yields
    ------
    slice
        Consecutive non-empty ranges that cover all rows.
    """
    if block_bytes is None:
        # Small compared with the graph, but larger for long rows: products of few rows are slow.
        block_bytes = min(BLOCK_BYTES, max(2**20, 64 * n_rows, 6 * row_bytes))
    step = max(1, block_bytes // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def check_features(X: MatrixLike, *, name: str = "X", n_features: int | None = None) -> Features:
    """Validate a feature matrix.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Real, finite features.
    name : str, default="X"
        Name of the argument in error messages.
    n_features : int, optional
        Required number of columns.

    Returns
    -------
    ndarray or csr_array
        float32 and float64 arrays without a copy; other real types as float64; sparse input as a
        CSR array of float64. The input is never changed.

    Raises
    ------
    ValueError
        If the matrix is not two-dimensional, is empty, or is not real and finite; the message names
        the first bad row and column.
    """
    if sp.issparse(X):
        A = _check_sparse(X, name)
    else:
        try:
            A = unmasked(X)
            if np.iscomplexobj(A):
                raise ValueError("complex")
            if A.dtype not in (np.float32, np.float64):
                A = A.astype(np.float64)
        except (TypeError, ValueError) as error:
            kind = type(X).__name__
            raise ValueError(
                f"{name} must be a real matrix (NumPy array or SciPy sparse), got {kind}"
            ) from error
    if A.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (samples, features), got an array of shape {A.shape}"
        )
    if A.shape[0] == 0 or A.shape[1] == 0:
        raise ValueError(f"{name} has shape {A.shape}; at least one sample and one feature needed")
    if n_features is not None and A.shape[1] != n_features:
        raise ValueError(f"{name} has {A.shape[1]} features, but {n_features} are expected")
    if not isinstance(A, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(A.data))
        if bad.size:
            row = int(np.searchsorted(A.indptr, bad[0], side="right") - 1)
            _refuse(name, row, int(A.indices[bad[0]]), A.data[bad[0]])
        return A
    for rows in row_blocks(A.shape[0], A.shape[1]):
        good = np.isfinite(A[rows])
        if not good.all():
            row, column = np.argwhere(~good)[0].tolist()
            _refuse(name, rows.start + row, column, A[rows.start + row, column])
    return A


def stored_by_density(X: Features, sparse: bool | None = None) -> Features:
    """Return features as a CSR array if they have many columns of mostly zeros, else dense.

    Results therefore do not depend on how the same numbers are stored.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    sparse : bool, optional
        Whether the result is sparse; by default it depends on the share of non-zeros.

    Returns
    -------
    ndarray or csr_array
        The same numbers.
    """
    n, d = X.shape
    if sparse is None:
        filled = np.count_nonzero(X if isinstance(X, np.ndarray) else X.data)
        sparse = d >= MANY_COLUMNS and filled < FEW_NONZEROS * n * d
    if isinstance(X, np.ndarray):
        return check_features(sp.csr_array(X)) if sparse else X
    return X if sparse else X.toarray()


def _check_sparse(X: sp.sparray, name: str) -> sp.csr_array:
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (samples, features), got {X.shape}")
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"{name} is complex; real features are needed")
    # Converted to float64 first: sums of duplicates could overflow small integers.
    A = sp.csr_array(X.astype(np.float64, copy=False))
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    narrow = max(A.nnz, *A.shape) <= np.iinfo(np.int32).max
    if narrow and (A.indices.dtype != np.int32 or A.indptr.dtype != np.int32):
        # scikit-learn's trees require 32-bit indices.
        parts = A.indices.astype(np.int32), A.indptr.astype(np.int32)
        A = csr_from_parts(A.data, *parts, A.shape)
    return A


def _refuse(name: str, row: int, column: int, value: float) -> None:
    shown = "NaN" if np.isnan(value) else value
    raise ValueError(
        f"{name} has {shown} in row {row}, column {column}; all features must be finite (impute or "
        "drop missing values first)"
    )


def check_n_neighbors(n_neighbors: object, most: int, what: str) -> int:
    """Validate a number of neighbours; reduce it to the maximum with a warning.

    Parameters
    ----------
    n_neighbors : int
        Requested number, at least 1.
    most : int
        Maximum number.
    what : str
        What is counted, for the warning.

    Returns
    -------
    int
        At most `most`.
    """
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, int | np.integer):
        raise ValueError(f"n_neighbors must be an integer, got {n_neighbors!r}")
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}")
    if n_neighbors > most:
        warnings.warn(
            f"n_neighbors={n_neighbors} is more than the {most} {what}; {most} are used",
            UserWarning,
            stacklevel=3,
        )
    return int(min(n_neighbors, most))


def check_seed(random_state: object) -> int:
    """Return the seed for a `random_state`: a non-negative integer, a generator, or None for 0."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        raw = random_state.bytes(4)
        return int.from_bytes(raw, "little") % 2**31
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ValueError(f"random_state must be an integer, got {random_state!r}")
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    return int(random_state)


def warn_about_scales(X: Features) -> None:
    """Warn if one column of an array has a much larger range than another.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features that are not re-scaled.
    """
    if X.shape[1] < 2 or not isinstance(X, np.ndarray):
        return
    part = X[:: max(1, X.shape[0] // 10_000)].astype(np.float64)
    with np.errstate(over="ignore"):
        width = np.minimum(part.max(axis=0) - part.min(axis=0), np.finfo(np.float64).max)
    varying = np.flatnonzero(width > 0)
    if varying.size < 2:
        return
    widest = varying[width[varying].argmax()]
    narrowest = varying[width[varying].argmin()]
    if width[widest] / 1000.0 > width[narrowest]:
        warnings.warn(
            f"the range of column {widest} of X is {width[widest] / width[narrowest]:,.0f} times "
            f"that of column {narrowest} and dominates all distances; pass rescale='minmax' or "
            "'standard', or a data frame, whose columns are scaled automatically",
            ScaleWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class Thinned:
    """The rows to search, and the members of large groups of duplicates.

    Parameters
    ----------
    kept : ndarray or None
        Rows to search, in ascending order; None for all.
    groups : tuple of ndarray or None
        Members of all large groups, sorted by group, and where each group starts and ends.
    """

    kept: NDArray[np.intp] | None
    groups: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    def fill(self, indices: NDArray[Any], distances: NDArray[np.float64]) -> None:
        """Fill in the neighbours of members of large groups: the next members around the ring."""
        if self.groups is None:
            return
        members, ends = self.groups
        k = indices.shape[1]
        sizes = np.diff(ends)
        start = np.repeat(ends[:-1], sizes)
        size = np.repeat(sizes, sizes)
        place = np.arange(members.size) - start
        for step in range(k):
            indices[members, step] = members[start + (place + step + 1) % size]
        distances[members] = 0.0


def thin_duplicates(X: Features, limit: int) -> Thinned:
    """Find groups of more than `limit` identical rows and keep `limit` of each.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features. Sparse rows are not thinned, because their search is exhaustive anyway.
    limit : int
        Number of rows to keep of each group.

    Returns
    -------
    Thinned
        Rows to search and the groups.
    """
    nothing = Thinned(None, None)
    if not isinstance(X, np.ndarray) or X.shape[0] <= limit:
        return nothing
    # One key per row, equal for identical rows. It is summed column by column, because a matrix
    # product may round identical rows differently.
    n, d = X.shape
    keys = np.zeros(n)
    factors = np.random.default_rng(0).uniform(1, 2, d) / (2 * d)
    for block in row_blocks(n, 8 * d):
        for factor, column in zip(factors, np.asarray(X[block], np.float64).T, strict=True):
            keys[block] += factor * column
    ordered = np.sort(keys)
    if not (ordered[limit:] == ordered[:-limit]).any():
        return nothing
    # Different rows may have equal keys, so compare the rows themselves where it matters.
    suspects = _in_large_groups(keys, limit)[0]
    rows = np.ascontiguousarray(X[suspects]) + X.dtype.type(0)  # -0.0 is 0.0
    raw = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    places, group = _in_large_groups(raw, limit)
    if not places.size:
        return nothing
    # Sort members within each group, so that the kept rows do not depend on the keys.
    order = np.lexsort((places, group))
    members = suspects[places[order]]
    sizes = np.unique(group, return_counts=True)[1]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    place = np.arange(members.size) - np.repeat(ends[:-1], sizes)
    dropped = np.zeros(X.shape[0], dtype=bool)
    dropped[members[place >= limit]] = True
    return Thinned(np.flatnonzero(~dropped), (members, ends))


def _in_large_groups(values: NDArray[Any], limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of values that occur more than `limit` times, and their groups."""
    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    places = np.flatnonzero(count[group] > limit)
    return places, group[places]


@dataclass(frozen=True)
class BoundingBox:
    """The extent of the fitted points; moves very distant rows towards them.

    For very distant rows only the direction decides which points are nearest. So a row beyond
    10,000 times the extent of the fitted points is moved towards them along its ray. Squares then
    do not overflow, the order of the points does not change, and any finite row has neighbours.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Centre of the box; not used for sparse rows, whose centre is 0.
    reach : float
        Largest coordinate, relative to the centre, of a row that is not moved.
    """

    center: NDArray[np.float64]
    reach: float

    @classmethod
    def of(cls, X: Features) -> BoundingBox:
        """Measure the extent of the fitted points."""
        if not isinstance(X, np.ndarray):
            return cls(np.zeros(0), _reach(float(np.abs(X.data).max(initial=0.0))))
        low = np.full(X.shape[1], np.inf)
        high = np.full(X.shape[1], -np.inf)
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            np.minimum(low, X[rows].min(axis=0), out=low)
            np.maximum(high, X[rows].max(axis=0), out=high)
        center = 0.5 * low + 0.5 * high
        radius = float((0.5 * high - 0.5 * low).max())
        return cls(center, _reach(radius or float(np.abs(center).max())))

    def project(self, Q: Features) -> Features:
        """Return Q with distant rows moved towards the fitted points; Q itself if there are none.

        Parameters
        ----------
        Q : ndarray or csr_array of shape (n_rows, n_features)
            Finite rows.

        Returns
        -------
        ndarray or csr_array
            The rows, in float64 if any row was moved.
        """
        if not isinstance(Q, np.ndarray):
            sizes = abs(Q).max(axis=1).toarray().ravel() if Q.nnz else np.zeros(Q.shape[0])
            if not (sizes > self.reach).any():
                return Q
            factor = np.minimum(1.0, self.reach / np.maximum(sizes, self.reach))
            return sp.csr_array(sp.diags_array(factor) @ Q)
        # Quarters, so that the difference of any two numbers does not overflow.
        quarter = 0.25 * np.asarray(Q, dtype=np.float64) - 0.25 * self.center
        sizes = np.abs(quarter).max(axis=1)
        far = np.flatnonzero(sizes > 0.25 * self.reach)
        if not far.size:
            return Q
        near = np.array(Q, dtype=np.float64)
        near[far] = self.center + quarter[far] * (self.reach / sizes[far])[:, None]
        return near


def _reach(radius: float) -> float:
    # At 1e4 times their extent, single precision still distinguishes the points.
    return max(radius, min(1e4 * (radius or 1.0), 1e307)) if radius < 1e303 else max(radius, 1e307)
