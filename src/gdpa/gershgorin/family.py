"""An affine family of balanced generalised Laplacians, ``A(theta) = A0 + sum_k theta_k A_k``.

The family stores the diagonal and the edge weights as affine functions of theta, the sign of every
edge, and the 2-colouring. If edge e = (i, j) has sign sigma_e, the off-diagonal entry is
``A_ij = -sigma_e b_e``. The constraint ``b_e(theta) >= 0`` preserves the signs, and therefore the
balance, for every theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..graph.adjacency import check_adjacency
from ..graph.signed import balance
from ..linalg.operator import MatrixLike
from .alignment import two_coloring


@dataclass(frozen=True)
class AffineFamily:
    """``A(theta)`` with diagonal ``d0 + D theta`` and edge weights ``b0 + B theta``.

    Parameters
    ----------
    i, j : ndarray of shape (n_edges,)
        End nodes of the edges, ``i < j``.
    signs : ndarray of shape (n_edges,)
        Signs of the edges, +1 or -1: ``A_ij = -signs * b``.
    d0, D : ndarray of shape (n_nodes,), csr_array of shape (n_nodes, n_parameters)
        Coefficients of the diagonal.
    b0, B : ndarray of shape (n_edges,), csr_array of shape (n_edges, n_parameters)
        Coefficients of the absolute edge weights.
    R, r0 : csr_array of shape (n_rows, n_parameters), ndarray of shape (n_rows,)
        Linear constraints ``R theta <= r0``.
    colors : ndarray of int8 of shape (n_nodes,) or None
        2-colouring; None if the signs are not balanced.
    """

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
    def n_nodes(self) -> int:
        """Number of rows of the matrices."""
        return int(self.d0.size)

    @property
    def n_parameters(self) -> int:
        """Length of theta."""
        return int(self.D.shape[1])

    @property
    def n_edges(self) -> int:
        """Number of edges in the pattern."""
        return int(self.i.size)

    def diagonal(self, theta: FloatArray) -> FloatArray:
        """Return the diagonal of ``A(theta)``."""
        return np.asarray(self.d0 + self.D @ theta)

    def weights(self, theta: FloatArray) -> FloatArray:
        """Return the absolute edge weights; negative values mean that theta violates a sign."""
        return np.asarray(self.b0 + self.B @ theta)

    def comparison(self, theta: FloatArray) -> sp.csr_array:
        """Return ``diag(A) - |off-diagonal|``, which is ``A(theta)`` after sign switching.

        If this matrix is psd, so is ``A(theta)``, whether balanced or not. Weights that are
        negative due to rounding are set to zero.
        """
        off = -np.maximum(self.weights(theta), 0.0)
        n = self.n_nodes
        nodes = np.arange(self.n_nodes)
        rows = np.concatenate([self.i, self.j, nodes])
        columns = np.concatenate([self.j, self.i, nodes])
        data = np.concatenate([off, off, self.diagonal(theta)])
        return sp.csr_array((data, (rows, columns)), shape=(n, n))

    def extended(self, shift: float) -> AffineFamily:
        """Return the family ``A(theta) + shift t I`` with the additional parameter t."""
        column = sp.csr_array(np.full((self.n_nodes, 1), shift))
        D = sp.csr_array(sp.hstack([self.D, column], format="csr"))
        B = self.B.copy()
        R = self.R.copy()
        for part in (B, R):
            part.resize((part.shape[0], self.n_parameters + 1))
        return replace(self, D=D, B=B, R=R)

    def with_rows(self, rows: Any, right: Any) -> AffineFamily:
        """Return the family with the additional constraints ``rows theta <= right``."""
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
        """Validate the matrices and determine the pattern, its signs and its 2-colouring.

        The arguments are those of :func:`gdpa.gershgorin.linearize`, with `bounds` and `theta0`
        already validated.
        """
        constant = check_adjacency(A0, name="A0", signed=True, keep_diagonal=True)
        n = constant.shape[0]
        parts = [constant.tocoo(), *_coordinates(matrices, n)]
        m = len(parts) - 1
        row = np.concatenate([part.coords[0] for part in parts]).astype(np.int64)
        column = np.concatenate([part.coords[1] for part in parts]).astype(np.int64)
        data = np.concatenate([part.data for part in parts])
        which = np.repeat(np.arange(m + 1), [part.nnz for part in parts])
        on = row == column
        upper = row < column
        diagonal = sp.csr_array((data[on], (row[on], which[on])), shape=(n, m + 1))
        keys, edge = np.unique(row[upper] * n + column[upper], return_inverse=True)
        off = sp.csr_array((data[upper], (edge, which[upper])), shape=(keys.size, m + 1))
        i = (keys // n).astype(np.intp)
        j = (keys % n).astype(np.intp)
        sigma = _edge_signs(off, i, j, n, bounds, theta0, signs)
        pattern = sp.csr_array((-sigma, (i, j)), shape=(n, n))
        pattern = sp.csr_array(pattern + pattern.T)
        colors = None if inner and not balance(-pattern).balanced else two_coloring(pattern)
        B = (sp.diags_array(-sigma) @ off).tocsr()
        return cls(
            i=i,
            j=j,
            signs=sigma,
            d0=diagonal[:, [0]].toarray().ravel(),
            D=diagonal[:, 1:].tocsr(),
            b0=B[:, [0]].toarray().ravel(),
            B=B[:, 1:].tocsr(),
            R=sp.csr_array((0, m), dtype=np.float64),
            r0=np.empty(0),
            colors=colors,
        )


def _coordinates(matrices: Any, n: int) -> list[sp.coo_array]:
    """Return the A_k as COO arrays; column k of a stacked operator has the entries of A_k."""
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
    """Return the sign of each edge from `signs`, or else from the bounds, theta0 or A0."""
    if signs is not None:
        stated = check_adjacency(signs, name="signs", signed=True)
        if stated.shape != (n, n):
            raise ValueError(f"signs must have the shape of A0, {(n, n)}, got {stated.shape}")
        sigma = np.sign(np.asarray(stated[i, j]).ravel()).astype(np.float64)
        missing = "signs has no entry there"
    else:
        # Smallest and largest value of each off-diagonal entry; an edge weight has opposite sign.
        limits = np.vstack([[1.0, 1.0], box])
        positive = off.maximum(0)
        negative = off.minimum(0)
        low = positive @ limits[:, 0] + negative @ limits[:, 1]
        high = positive @ limits[:, 1] + negative @ limits[:, 0]
        sigma = np.where(high <= 0, 1.0, np.where(low >= 0, -1.0, 0.0))
        if theta0 is not None:
            start = off @ np.concatenate([[1.0], theta0])
            sigma = np.where(sigma == 0, -np.sign(start), sigma)
        sigma = np.where(sigma == 0, -np.sign(off[:, [0]].toarray().ravel()), sigma)
        missing = "bounds, theta0 and A0 do not determine it; pass signs"
    unknown = np.flatnonzero(sigma == 0)
    if unknown.size:
        e = unknown[0]
        raise ValueError(f"the sign of edge ({i[e]}, {j[e]}) is not known: {missing}")
    return np.asarray(sigma)


def check_bounds(bounds: Any, m: int) -> FloatArray:
    """Return the bounds of theta as an array of shape (m, 2), infinite where there is none."""
    try:
        pairs = np.array((None, None) if bounds is None else list(bounds), dtype=object)
        if pairs.shape not in ((2,), (m, 2)):
            raise ValueError("wrong shape")
        array = np.where(pairs == np.array(None), [-np.inf, np.inf], pairs).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must be one pair (low, high) or {m} pairs, None for no bound; got {bounds!r}"
        ) from error
    array = np.broadcast_to(array, (m, 2))
    low, high = array.T
    bad = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
    if bad.size:
        k = bad[0]
        raise ValueError(f"bounds[{k}] = ({low[k]:g}, {high[k]:g}) is not an interval")
    return array


def check_constraints(constraints: Any, m: int) -> tuple[FloatArray, FloatArray]:
    """Return one or several SciPy LinearConstraint objects as R and r0 in ``R theta <= r0``."""
    rows = [np.empty((0, m))]
    right = [np.empty(0)]
    for one in [constraints] if hasattr(constraints, "A") else list(constraints):
        A = np.atleast_2d(one.A.toarray() if sp.issparse(one.A) else one.A).astype(np.float64)
        if A.shape[1] != m or not np.isfinite(A).all():
            raise ValueError(f"constraints must have one finite column per matrix ({m}): {A.shape}")
        for sign, side in ((1.0, one.ub), (-1.0, one.lb)):
            end = sign * np.broadcast_to(np.asarray(side, dtype=np.float64), A.shape[:1])
            rows.append(sign * A[end < np.inf])
            right.append(end[end < np.inf])
    return np.concatenate(rows), np.concatenate(right)
