"""An affine family of balanced generalised Laplacians, ``A(theta) = A0 + sum_k theta_k A_k``.

What the linearisation needs of it, taken apart once: diagonal and edge weights as affine functions
of theta, the sign of every edge, and the 2-colouring. With sign sigma_e of edge e = (i, j) the
off-diagonal entry is ``A_ij = -sigma_e b_e``, and the constraint ``b_e(theta) >= 0`` keeps the
edge's sign, hence the balance, whatever theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..graph.adjacency import check_adjacency
from ..graph.signed import balance
from ..linalg.operator import MatrixLike
from .alignment import two_coloring
from .discs import FloatArray


@dataclass(frozen=True)
class AffineFamily:
    """``A(theta)`` by its diagonal ``d0 + D theta`` and its edge weights ``b0 + B theta``.

    Parameters
    ----------
    n_nodes : int
        Order n of the matrices.
    i, j : ndarray of shape (n_edges,)
        End nodes of the edges, ``i < j``.
    signs : ndarray of shape (n_edges,)
        +1 or -1; ``A_ij = -signs * b``.
    d0, D : ndarray of shape (n_nodes,), csr_array of shape (n_nodes, n_parameters)
        The diagonal.
    b0, B : ndarray of shape (n_edges,), csr_array of shape (n_edges, n_parameters)
        The edge weights in absolute value, where they are not negative.
    R, r0 : csr_array of shape (n_rows, n_parameters), ndarray of shape (n_rows,)
        Linear constraints, ``R theta <= r0``.
    colors : ndarray of int8 of shape (n_nodes,) or None
        The 2-colouring; None where the signs are not balanced.
    """

    n_nodes: int
    i: NDArray[np.intp]
    j: NDArray[np.intp]
    signs: FloatArray
    d0: FloatArray
    D: sp.csr_array
    b0: FloatArray
    B: sp.csr_array
    R: sp.csr_array
    r0: FloatArray
    colors: NDArray[np.int8] | None

    @property
    def n_parameters(self) -> int:
        """Length of theta."""
        return int(self.D.shape[1])

    @property
    def n_edges(self) -> int:
        """Number of edges of the pattern."""
        return int(self.i.size)

    def diagonal(self, theta: FloatArray) -> FloatArray:
        """Diagonal of ``A(theta)``."""
        return np.asarray(self.d0 + self.D @ theta)

    def weights(self, theta: FloatArray) -> FloatArray:
        """Edge weights in absolute value; negative where theta breaks a sign."""
        return np.asarray(self.b0 + self.B @ theta)

    def comparison(self, theta: FloatArray) -> sp.csr_array:
        """``diag(A) - |off-diagonal|``: ``A(theta)`` with its signs switched away, if balanced.

        Where it is psd, so is ``A(theta)``, whatever its signs. Weights that rounding made negative
        are taken as zero.
        """
        off = -np.maximum(self.weights(theta), 0.0)
        n, nodes = self.n_nodes, np.arange(self.n_nodes)
        rows = np.concatenate([self.i, self.j, nodes])
        columns = np.concatenate([self.j, self.i, nodes])
        data = np.concatenate([off, off, self.diagonal(theta)])
        return sp.csr_array((data, (rows, columns)), shape=(n, n))

    def extended(self, shift: float) -> AffineFamily:
        """One more parameter t: ``A(theta) + shift t I``."""
        more = sp.csr_array(np.full((self.n_nodes, 1), shift))
        none = [sp.csr_array((rows, 1), dtype=np.float64) for rows in (self.n_edges, self.r0.size)]
        D, B, R = (
            sp.csr_array(sp.hstack([part, column], format="csr"))
            for part, column in zip((self.D, self.B, self.R), (more, *none), strict=True)
        )
        return replace(self, D=D, B=B, R=R)

    def with_rows(self, rows: Any, right: Any) -> AffineFamily:
        """Add linear constraints, ``rows theta <= right``."""
        R = sp.csr_array(sp.vstack([self.R, sp.csr_array(np.atleast_2d(rows))], format="csr"))
        return replace(self, R=R, r0=np.append(self.r0, right))

    @classmethod
    def build(
        cls,
        A0: MatrixLike,
        matrices: Any,
        *,
        bounds: FloatArray,
        theta0: FloatArray | None = None,
        signs: MatrixLike | None = None,
        inner: bool = False,
    ) -> AffineFamily:
        """Validate the matrices and find the pattern, its signs and its 2-colouring.

        Parameters
        ----------
        A0, matrices, bounds, theta0, signs, inner
            As in :func:`gdpa.gershgorin.linearize`, bounds and theta0 already validated.

        Returns
        -------
        AffineFamily
            The family.

        Raises
        ------
        ValueError
            If a matrix is not symmetric and finite or has another shape, the sign of an edge
            cannot be known, or the signs are not balanced.
        """
        constant = check_adjacency(A0, name="A0", signed=True, keep_diagonal=True)
        n = constant.shape[0]
        parts = [constant.tocoo(), *_coordinates(matrices, n)]
        m = len(parts) - 1
        row = np.concatenate([part.coords[0] for part in parts]).astype(np.int64)
        column = np.concatenate([part.coords[1] for part in parts]).astype(np.int64)
        data = np.concatenate([part.data for part in parts])
        which = np.repeat(np.arange(m + 1), [part.nnz for part in parts])
        on, upper = row == column, row < column
        diagonal = sp.csr_array((data[on], (row[on], which[on])), shape=(n, m + 1))
        keys, edge = np.unique(row[upper] * n + column[upper], return_inverse=True)
        off = sp.csr_array((data[upper], (edge, which[upper])), shape=(keys.size, m + 1))
        i, j = (keys // n).astype(np.intp), (keys % n).astype(np.intp)
        sigma = _edge_signs(off, i, j, n, bounds, theta0, signs)
        pattern = sp.csr_array((-sigma, (i, j)), shape=(n, n))
        pattern = sp.csr_array(pattern + pattern.T)
        unbalanced = inner and not balance(-pattern).balanced
        B = (sp.diags_array(-sigma) @ off).tocsr()
        return cls(
            n_nodes=n,
            i=i,
            j=j,
            signs=sigma,
            d0=diagonal[:, [0]].toarray().ravel(),
            D=diagonal[:, 1:].tocsr(),
            b0=B[:, [0]].toarray().ravel(),
            B=B[:, 1:].tocsr(),
            R=sp.csr_array((0, m), dtype=np.float64),
            r0=np.empty(0),
            colors=None if unbalanced else two_coloring(pattern),
        )


def _coordinates(matrices: Any, n: int) -> list[sp.coo_array]:
    """The A_k as coordinates; column k of a stacked operator has the entries of A_k."""
    if not sp.issparse(matrices):
        parts = []
        for k, matrix in enumerate(matrices):
            A = check_adjacency(matrix, name=f"matrices[{k}]", signed=True, keep_diagonal=True)
            if A.shape != (n, n):
                raise ValueError(f"matrices[{k}] must have the shape of A0, {(n, n)}: {A.shape}")
            parts.append(A.tocoo())
        return parts
    stacked = sp.csc_array(matrices, dtype=np.float64)
    if stacked.shape[0] != n * n:
        raise ValueError(f"stacked matrices must have {n * n} rows, got shape {stacked.shape}")
    transposed = sp.csc_array(stacked[np.arange(n * n).reshape(n, n).T.ravel()])
    if not np.isfinite(stacked.data).all() or abs(stacked - transposed).max() > 0:
        raise ValueError("every column of the stacked matrices must be a finite symmetric matrix")
    return [sp.coo_array(stacked[:, [k]].reshape((n, n))) for k in range(stacked.shape[1])]


def _edge_signs(
    off: sp.csr_array,
    i: NDArray[np.intp],
    j: NDArray[np.intp],
    n: int,
    box: FloatArray,
    theta0: FloatArray | None,
    signs: MatrixLike | None,
) -> FloatArray:
    """Sign of each edge: as stated, else from the bounds, else from theta0, else from A0."""
    if signs is not None:
        stated = check_adjacency(signs, name="signs", signed=True)
        if stated.shape != (n, n):
            raise ValueError(f"signs must have the shape of A0, {(n, n)}, got {stated.shape}")
        sigma = np.sign(np.asarray(stated[i, j]).ravel()).astype(np.float64)
        missing = "signs has no entry there"
    else:
        low, high = _ranges(off, box)
        # Weight of an edge is minus the off-diagonal entry.
        sigma = np.where(high <= 0, 1.0, np.where(low >= 0, -1.0, 0.0))
        if theta0 is not None:
            start = off @ np.concatenate([[1.0], theta0])
            sigma = np.where(sigma == 0, -np.sign(start), sigma)
        sigma = np.where(sigma == 0, -np.sign(off[:, [0]].toarray().ravel()), sigma)
        missing = "neither bounds, theta0 nor A0 tell it; give signs"
    unknown = np.flatnonzero(sigma == 0)
    if unknown.size:
        e = unknown[0]
        raise ValueError(f"the sign of edge ({i[e]}, {j[e]}) is not known: {missing}")
    return np.asarray(sigma)


def _ranges(off: sp.csr_array, box: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each off-diagonal entry over the box of theta."""
    limits = np.vstack([[1.0, 1.0], box])
    rows = np.repeat(np.arange(off.shape[0]), np.diff(off.indptr))
    ends = off.data[:, None] * limits[off.indices]
    ends[off.data == 0] = 0.0
    low = np.bincount(rows, weights=ends.min(axis=1), minlength=off.shape[0])
    high = np.bincount(rows, weights=ends.max(axis=1), minlength=off.shape[0])
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def check_bounds(bounds: Any, m: int) -> FloatArray:
    """Bring bounds of theta to an array of shape (m, 2), infinite where there is none."""
    if bounds is None:
        return np.tile([-np.inf, np.inf], (m, 1))
    try:
        pairs = list(bounds)
        if len(pairs) == 2 and all(end is None or np.ndim(end) == 0 for end in pairs):
            pairs = [pairs] * m
        low = [-np.inf if pair[0] is None else float(pair[0]) for pair in pairs]
        high = [np.inf if pair[1] is None else float(pair[1]) for pair in pairs]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"bounds must be one pair (low, high) or {m} pairs, None for no bound; got {bounds!r}"
        ) from error
    if len(pairs) != m:
        raise ValueError(f"bounds must be one pair (low, high) or {m} pairs, got {len(pairs)}")
    array = np.column_stack([low, high]).reshape(m, 2)
    bad = np.flatnonzero(
        ~(array[:, 0] <= array[:, 1]) | (array[:, 0] == np.inf) | (array[:, 1] == -np.inf)
    )
    if bad.size:
        k = bad[0]
        raise ValueError(f"bounds[{k}] = ({array[k, 0]:g}, {array[k, 1]:g}) is not an interval")
    return array


def check_constraints(constraints: Any, m: int) -> tuple[FloatArray, FloatArray]:
    """Bring linear constraints (SciPy's LinearConstraint, one or several) to ``R theta <= r0``."""
    rows, right = [np.empty((0, m))], [np.empty(0)]
    for one in [constraints] if hasattr(constraints, "A") else list(constraints):
        A = np.atleast_2d(one.A.toarray() if sp.issparse(one.A) else one.A).astype(np.float64)
        if A.shape[1] != m or not np.isfinite(A).all():
            raise ValueError(f"constraints must have one finite column per matrix ({m}): {A.shape}")
        for sign, side in ((1.0, one.ub), (-1.0, one.lb)):
            end = sign * np.broadcast_to(np.asarray(side, dtype=np.float64), A.shape[:1])
            rows.append(sign * A[end < np.inf])
            right.append(end[end < np.inf])
    return np.concatenate(rows), np.concatenate(right)


def check_theta(theta: ArrayLike, m: int, name: str) -> FloatArray:
    """Validate a vector of parameters (or of their costs)."""
    try:
        array = np.asarray(theta, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be {m} real numbers") from error
    if array.shape != (m,):
        raise ValueError(f"{name} must have one entry per matrix ({m}), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array}")
    return array
