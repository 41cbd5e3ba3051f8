"""Leave-one-out scores of labelled nodes in closed form.

With the self-loop gamma, ``K = (L + gamma)^-1`` and ``C = K_ll + 1/a``, the score of a labelled
node without its own label is

    Y_i - [C^-1 Y]_i / [C^-1]_ii,

so the labelled block of K is enough for every label weight (:func:`left_out_by_one`). Block Lanczos
from the labelled unit vectors makes L block tridiagonal, and one run gives the first block of
``(T + gamma)^-1`` for all gamma (:func:`labeled_blocks`). Reference: G. H. Golub and G. Meurant,
"Matrices, moments and quadrature" (2010).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy import linalg

from ..threads import one_thread
from .labeled import LabeledSystem

FloatArray = NDArray[np.float64]


def labeled_blocks(system: LabeledSystem, shifts: Sequence[float]) -> list[FloatArray]:
    """Return the labelled block of ``(L + s)^-1`` for every s.

    Parameters
    ----------
    system : LabeledSystem
        The graph and its labelled nodes; its label weights are not used.
    shifts : sequence of float
        The s; raised to ``1e-9 unit``, because rounding errors dominate the inverse below it.

    Returns
    -------
    list of ndarray of shape (n_labeled, n_labeled)
        One block per shift.
    """
    unit = system.unit
    m = system.labeled.size
    values = [max(float(s), 1e-9 * unit) for s in shifts]
    recursions = [_Recursion(s / unit, m) for s in values]
    largest = float(system.diagonal.max(initial=0.0))
    # Lanczos converges too slowly if rows are a million times the mean, or the shift is tiny.
    if largest < 1e6 * unit and min(values) > 1e-6 * unit:
        many = system.diagonal.size * m >= system.policy.single_block
        single = many and largest < 1e3 * unit and min(values) > 1e-3 * unit
        with one_thread():
            _lanczos(system, recursions, np.float32 if single else np.float64)
    blocks = []
    for s, r in zip(values, recursions, strict=True):
        K = r.sum / unit if r.done and not r.failed else _by_columns(system, s)
        blocks.append(0.5 * (K + K.T))
    return blocks


class _Recursion:
    """The first block of ``(T + s)^-1`` by forward elimination, one block row at a time.

    With ``T = L D L'``, ``D_j = C_j C_j'`` and ``V_j = C_j^-1 (L^-1 E_1)_j`` it is the sum of
    ``V_j' V_j``; what couples a row to the next one is ``P = C_j^-1 beta'``.
    """

    def __init__(self, shift: float, size: int) -> None:
        self.shift = shift
        self.done = False
        self.failed = 0
        self.sum = np.zeros((size, size))
        self.factor = self.V = np.zeros((0, 0))

    def add(self, alpha: FloatArray, beta: FloatArray | None) -> None:
        """Eliminate the next block row; `beta` couples it to the previous one."""
        pivot = alpha + self.shift * np.eye(alpha.shape[0])
        right = np.eye(alpha.shape[0])
        if beta is not None:
            P = linalg.blas.dtrsm(1.0, self.factor, beta.T, lower=1)
            pivot -= P.T @ P
            right = -(P.T @ self.V)
        self.factor, self.failed = linalg.lapack.dpotrf(pivot, lower=1, clean=0)
        if self.failed:
            return
        self.V = linalg.blas.dtrsm(1.0, self.factor, right, lower=1)
        gain = self.V.T @ self.V
        self.sum += gain
        # Each step adds at most a tenth of the previous one.
        self.done = bool(np.abs(gain).max() <= 1e-6 * np.abs(self.sum).max())


def _lanczos(system: LabeledSystem, recursions: list[_Recursion], dtype: DTypeLike) -> None:
    """Run block Lanczos on ``L / unit`` until every recursion is done, or the space exhausted."""
    n = system.diagonal.size
    m = system.labeled.size
    diagonal = (system.diagonal / system.unit).astype(dtype)[:, None]
    A = sp.csr_array(system.adjacency / system.unit, dtype=dtype)
    Q = np.zeros((n, m), dtype=dtype)
    Q[system.labeled, np.arange(m)] = 1.0
    before: NDArray[Any] | None = None
    beta: FloatArray | None = None
    for _ in range(300):
        Z = diagonal * Q
        Z -= A @ Q
        if before is not None and beta is not None:
            Z -= before @ beta.T.astype(dtype)
        alpha = Q.T @ Z
        alpha = 0.5 * (alpha + alpha.T)
        for recursion in recursions:
            if not recursion.done:
                recursion.add(alpha, beta)
        if all(r.done for r in recursions) or any(r.failed for r in recursions):
            return
        Z -= Q @ alpha
        before = Q
        Q, beta = _orthonormal(Z)
        if Q.shape[1] == 0:  # the Krylov space is exhausted, so the result is exact
            for recursion in recursions:
                recursion.done = True
            return


def _orthonormal(Z: NDArray[Any]) -> tuple[NDArray[Any], FloatArray]:
    """Return Q and R of ``Z = Q R`` by Cholesky, without linearly dependent columns."""
    R, failed = linalg.lapack.dpotrf(Z.T @ Z, lower=0, clean=1)
    pivots = np.diagonal(R)
    double = Z.dtype == np.float64
    if not failed and pivots.min() > (1e-4 if double else 1e-2) * max(float(pivots.max()), 1e-4):
        inverse, _ = linalg.lapack.dtrtri(R)
        return Z @ inverse.astype(Z.dtype), R
    Q, R, order = linalg.qr(Z, mode="economic", pivoting=True)
    kept = int((np.abs(np.diagonal(R)) > (1e-10 if double else 1e-5)).sum())
    beta = np.empty((kept, Z.shape[1]))
    beta[:, order] = R[:kept]
    return np.ascontiguousarray(Q[:, :kept]), beta


def _by_columns(system: LabeledSystem, shift: float) -> FloatArray:
    """Solve for the labelled block of ``(L + s)^-1``: slow, but safe for any weights."""
    nodes = system.labeled
    units = np.zeros((system.diagonal.size, nodes.size))
    units[nodes, np.arange(nodes.size)] = 1.0
    plain = replace(system, labeled=nodes[:0], targets=units[:0], self_loop=shift)
    return np.asarray(replace(plain, evidence=units, evidence_weight=0.0).solve(tol=1e-8).x[nodes])


def left_out_by_one(
    K: FloatArray, targets: FloatArray, label_weights: Iterable[float]
) -> Iterator[tuple[float, FloatArray]]:
    """Yield leave-one-out scores of labelled nodes for several label weights.

    Parameters
    ----------
    K : ndarray of shape (n_labeled, n_labeled)
        Labelled block of ``(L + s)^-1``.
    targets : ndarray of shape (n_labeled, n_columns)
        Y.
    label_weights : iterable of float
        The a.

    Yields
    ------
    label_weight : float
        a.
    scores : ndarray of shape (n_labeled, n_columns)
        Held-out scores.
    """
    with one_thread():
        values, V = linalg.eigh(K)
    VY = V.T @ targets
    squares = V * V
    for weight in label_weights:
        shifted = values + (0.0 if np.isinf(weight) else 1.0 / weight)
        inverse = 1.0 / np.maximum(shifted, 1e-14 * max(float(shifted.max()), 1e-300))
        pivots = (squares @ inverse)[:, None]
        yield weight, targets - (V @ (inverse[:, None] * VY)) / pivots
