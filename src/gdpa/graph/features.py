"""Checks of feature matrices and search options, blocks of rows, duplicates, and far rows.

Features may be a NumPy array of any real type and layout, memory-mapped or not, or a SciPy sparse
matrix. Nothing here copies a floating-point array as a whole: large files stay on disk and are read
block by block.

Thousands of identical rows defeat every search structure: no tree can split them, so each query
scans them all. But of a group of m identical rows no more than k + 2 can ever be needed in anyone's
list of k neighbours, and each member of a group that large has its neighbours at distance 0 within
the group. So only that many of each group are searched, and the members of the group are linked to
those that follow them in a ring (:func:`thin_duplicates`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import ScaleWarning
from .adjacency import MatrixLike, csr_from_parts

# Told apart by isinstance(X, np.ndarray).
Features: TypeAlias = NDArray[Any] | sp.csr_array

# From this many columns on rows may be bags of words or embeddings. Bags of words have a tenth of
# the cells filled at most; coded categories of tables have more.
MANY_COLUMNS = 100
# Most bytes of a block of work.
BLOCK_BYTES = 32 * 2**20


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int | None = None) -> Iterator[slice]:
    """Slices of rows, each of about `block_bytes` bytes.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    row_bytes : int
        Bytes that the work needs per row.
    block_bytes : int, optional
        Bytes that the work may need per block. By default 1 MB, more for many or long rows, up to
        32 MB.

    Yields
    ------
    slice
        Consecutive, non-empty, together all rows.
    """
    if block_bytes is None:
        # Small beside the graph of the rows, larger where a row is long (a product of few rows is
        # slow).
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
        How the argument is called in error messages.
    n_features : int, optional
        How many columns there must be.

    Returns
    -------
    ndarray or csr_array
        float32 and float64 arrays as they are (no copy, also when memory-mapped); other real types
        as float64; sparse input as a CSR array of float64. The input is never changed.

    Raises
    ------
    ValueError
        If the matrix is not two-dimensional, empty, not real or not finite; the message names the
        first bad row and column.
    """
    if sp.issparse(X):
        A = _check_sparse(X, name)
    else:
        try:
            A = np.asarray(X)
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
        raise ValueError(f"{name} has {A.shape[1]} features, {n_features} are expected")
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
    """Return features as a CSR array if they are many columns of mostly zeros, else dense.

    So the same numbers get the same treatment, however they were stored.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Checked features.
    sparse : bool, optional
        Whether they are to be sparse; by default it is decided.

    Returns
    -------
    ndarray or csr_array
        The same numbers.
    """
    n, d = X.shape
    if sparse is None:
        filled = np.count_nonzero(X if isinstance(X, np.ndarray) else X.data)
        sparse = d >= MANY_COLUMNS and filled < 0.1 * n * d
    if isinstance(X, np.ndarray):
        return check_features(sp.csr_array(X)) if sparse else X
    return X if sparse else X.toarray()


def _check_sparse(X: sp.sparray, name: str) -> sp.csr_array:
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (samples, features), got {X.shape}")
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"{name} is complex; real features are needed")
    A = sp.csr_array(X, dtype=np.float64)
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    narrow = max(A.nnz, *A.shape) <= np.iinfo(np.int32).max
    if narrow and (A.indices.dtype != np.int32 or A.indptr.dtype != np.int32):
        # scikit-learn's trees take no others.
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
    """Validate a number of neighbours and cut it to what there is, with a warning.

    Parameters
    ----------
    n_neighbors : int
        What the caller asked for, at least 1.
    most : int
        How many there are.
    what : str
        What there are, for the warning.

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
    """Validate a seed.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A non-negative integer; None stands for 0; a generator is asked for one.

    Returns
    -------
    int
        The seed.
    """
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
    """Warn where one column of an array is far wider than another.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features that nobody asked to re-scale.
    """
    if X.shape[1] < 2 or not isinstance(X, np.ndarray):
        return
    part = X[:: max(1, X.shape[0] // 10_000)].astype(np.float64)
    with np.errstate(over="ignore"):
        width = np.minimum(part.max(axis=0) - part.min(axis=0), np.finfo(np.float64).max)
    varying = np.flatnonzero(width > 0)
    if varying.size < 2:
        return
    widest, narrowest = varying[width[varying].argmax()], varying[width[varying].argmin()]
    if width[widest] / 1000.0 > width[narrowest]:
        warnings.warn(
            f"column {widest} of X is {width[widest] / width[narrowest]:,.0f} times wider than "
            f"column {narrowest}, and decides all distances; pass rescale='minmax' or 'standard', "
            "or a data frame (its columns are put on one scale)",
            ScaleWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class Thinned:
    """Which rows are searched, and which come in large groups of duplicates.

    Parameters
    ----------
    kept : ndarray or None
        Rows that are searched, ascending; None stands for all.
    groups : tuple of ndarray or None
        Members of all large groups, group after group, and where each group starts and ends.
    """

    kept: NDArray[np.intp] | None
    groups: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    def fill(self, indices: NDArray[Any], distances: NDArray[np.float64]) -> None:
        """Write the neighbours of the members of large groups: the next ones around the ring."""
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
        Features. Sparse rows are left alone: their search is exhaustive anyway.
    limit : int
        Rows that are kept of each group.

    Returns
    -------
    Thinned
        Rows to search and the groups.
    """
    nothing = Thinned(None, None)
    if not isinstance(X, np.ndarray) or X.shape[0] <= limit:
        return nothing
    # One number per row, the same for identical rows. Summed column by column: a matrix product may
    # round identical rows differently.
    n, d = X.shape
    keys, factors = np.zeros(n), np.random.default_rng(0).uniform(1, 2, d) / (2 * d)
    for block in row_blocks(n, 8 * d):
        for factor, column in zip(factors, np.asarray(X[block], np.float64).T, strict=True):
            keys[block] += factor * column
    ordered = np.sort(keys)
    if not (ordered[limit:] == ordered[:-limit]).any():
        return nothing
    # Equal keys may be different rows: compare, of the few that matter, the rows themselves.
    suspects = _in_large_groups(keys, limit)[0]
    rows = np.ascontiguousarray(X[suspects]) + X.dtype.type(0)  # -0.0 is 0.0
    raw = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    places, group = _in_large_groups(raw, limit)
    if not places.size:
        return nothing
    # Group by group, members in ascending order: what is kept does not depend on the keys.
    order = np.lexsort((places, group))
    members, sizes = suspects[places[order]], np.unique(group, return_counts=True)[1]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    place = np.arange(members.size) - np.repeat(ends[:-1], sizes)
    dropped = np.zeros(X.shape[0], dtype=bool)
    dropped[members[place >= limit]] = True
    return Thinned(np.flatnonzero(~dropped), (members, ends))


def _in_large_groups(values: NDArray[Any], limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of values that occur more than `limit` times, and the group of each."""
    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    places = np.flatnonzero(count[group] > limit)
    return places, group[places]


@dataclass(frozen=True)
class BoundingBox:
    """Where the fitted points lie, and rows far from them, moved nearer.

    From far away only the direction of a row decides which points are nearest, and no weight is
    left of its distance. So a row beyond 10,000 times the extent of the fitted points is moved
    towards them along its ray: squares stay in range, the order of the points stays that of its
    direction, and any finite row has neighbours.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Middle of their box; for sparse rows it is not used, and taken to be 0.
    reach : float
        Largest coordinate of a row, seen from the centre, that is left as it is.
    """

    center: NDArray[np.float64]
    reach: float

    @classmethod
    def of(cls, X: Features) -> BoundingBox:
        """Measure the fitted points."""
        if not isinstance(X, np.ndarray):
            return cls(np.zeros(0), _reach(float(np.abs(X.data).max(initial=0.0))))
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
            np.minimum(low, X[rows].min(axis=0), out=low)
            np.maximum(high, X[rows].max(axis=0), out=high)
        center = 0.5 * low + 0.5 * high
        radius = float((0.5 * high - 0.5 * low).max())
        return cls(center, _reach(radius or float(np.abs(center).max())))

    def project(self, Q: Features) -> Features:
        """Return Q with its far rows moved; Q itself if there are none.

        Parameters
        ----------
        Q : ndarray or csr_array of shape (n_rows, n_features)
            Finite rows.

        Returns
        -------
        ndarray or csr_array
            The rows, in float64 if one was moved.
        """
        if not isinstance(Q, np.ndarray):
            sizes = abs(Q).max(axis=1).toarray().ravel() if Q.nnz else np.zeros(Q.shape[0])
            if not (sizes > self.reach).any():
                return Q
            factor = np.minimum(1.0, self.reach / np.maximum(sizes, self.reach))
            return sp.csr_array(sp.diags_array(factor) @ Q)
        # Quarters: the difference of two numbers of any size is one again.
        quarter = 0.25 * np.asarray(Q, dtype=np.float64) - 0.25 * self.center
        sizes = np.abs(quarter).max(axis=1)
        far = np.flatnonzero(sizes > 0.25 * self.reach)
        if not far.size:
            return Q
        near = np.array(Q, dtype=np.float64)
        near[far] = self.center + quarter[far] * (self.reach / sizes[far])[:, None]
        return near


def _reach(radius: float) -> float:
    # Single precision still tells the points apart from 1e4 times their extent. With all points in
    # one place, at 0, any distance is as good as another.
    return max(radius, min(1e4 * (radius or 1.0), 1e307)) if radius < 1e303 else max(radius, 1e307)
