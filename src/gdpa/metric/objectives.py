"""Objectives of metric learning, as convex functions of the pairwise distances.

All five objectives depend on the metric M only through ``D_ij = (x_i - x_j)' M (x_i - x_j)``. Each
is a function that takes the class indices y and the Euclidean distances D0 and returns a loss. The
loss maps D to its value and to the derivatives ``A_ij = d value / d D_ij``. With
``c_ij = x_i - x_j``, the gradient with respect to M is ``sum_ij A_ij c_ij c_ij'``. A rank-one
change of M costs one inner product per sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray

Matrix: TypeAlias = NDArray[np.float64] | sp.csr_array
Loss = Callable[[FloatArray], tuple[float, FloatArray]]
MatrixFunction = Callable[[FloatArray, FloatArray, NDArray[np.intp]], tuple[float, FloatArray]]


def _glr(y: NDArray[np.intp], D0: FloatArray) -> Loss:
    """Graph Laplacian regulariser: total similarity between samples of different classes."""
    differ = 2.0 * (y[:, None] != y)

    def loss(D: FloatArray) -> tuple[float, FloatArray]:
        similar = differ * np.exp(-D)
        return float(similar.sum()), -similar

    return loss


def _mcml(y: NDArray[np.intp], D0: FloatArray) -> Loss:
    """Maximally collapsing metric learning (Globerson, Roweis 2005)."""
    target = (y[:, None] == y).astype(np.float64)
    np.fill_diagonal(target, 0.0)
    count = target.sum(axis=1, keepdims=True)
    target /= np.maximum(count, 1.0)
    has_target = count > 0
    entropy = -float(np.log(count[has_target]).sum())

    def loss(D: FloatArray) -> tuple[float, FloatArray]:
        logits = -D
        np.fill_diagonal(logits, -np.inf)
        top = logits.max(axis=1, keepdims=True)
        share = np.exp(logits - top)
        total = share.sum(axis=1, keepdims=True)
        value = entropy + (target * D).sum() + ((top + np.log(total)) * has_target).sum()
        return float(value), target - share / total * has_target

    return loss


def _lmnn(y: NDArray[np.intp], D0: FloatArray) -> Loss:
    """Large margin nearest neighbours (Weinberger, Saul 2009), three targets, equal weights."""
    n = y.size
    same = y[:, None] == y
    np.fill_diagonal(same, False)
    distance = np.where(same, D0, np.inf)
    targets = np.argsort(distance, axis=1, kind="stable")[:, :3]
    valid = np.isfinite(np.take_along_axis(distance, targets, axis=1))
    rows = np.arange(n)
    differ = y[:, None] != y

    def loss(D: FloatArray) -> tuple[float, FloatArray]:
        value = 0.0
        A = np.zeros((n, n))
        for k in range(targets.shape[1]):
            i = rows[valid[:, k]]
            t = targets[valid[:, k], k]
            slack = differ[i] * np.maximum(1.0 + D[i, t][:, None] - D[i], 0.0)
            value += 0.5 * float(D[i, t].sum() + slack.sum())
            A[i] -= 0.5 * (slack > 0)
            A[i, t] += 0.5 + 0.5 * (slack > 0).sum(axis=1)
        return value, A

    return loss


def _lsml(y: NDArray[np.intp], D0: FloatArray) -> Loss:
    """Least squared-residual metric learning (Liu, Guo, Zhou, Chen 2012), on all pairs of pairs.

    Every pair within a class should be closer than every pair of different classes. Sorting makes
    the sum over pairs of pairs cheap.
    """
    i, j = np.triu_indices(y.size, 1)
    equal = y[i] == y[j]
    si = i[equal]
    sj = j[equal]
    di = i[~equal]
    dj = j[~equal]

    def loss(D: FloatArray) -> tuple[float, FloatArray]:
        near = _root(D[si, sj])
        far = _root(D[di, dj])
        by_near = np.sort(near)
        by_far = np.sort(far)
        below = np.searchsorted(by_far, near)
        first = _sums(by_far)
        second = _sums(by_far**2)
        value = float((below * near**2 - 2 * near * first[below] + second[below]).sum())
        above = near.size - np.searchsorted(by_near, far, side="right")
        total = _sums(by_near)
        A = np.zeros_like(D)
        A[si, sj] = _over(below * near - first[below], near)
        A[di, dj] = _over(above * far - (total[-1] - total[near.size - above]), far)
        return max(value, 0.0), A

    return loss


def _deml(y: NDArray[np.intp], D0: FloatArray) -> Loss:
    """Negative sum of the distances between classes (Xing, Ng, Jordan, Russell 2003)."""
    differ = 0.5 * (y[:, None] != y)

    def loss(D: FloatArray) -> tuple[float, FloatArray]:
        root = _root(D)
        return -float((differ * root).sum()), -0.5 * _over(differ, root)

    return loss


def _sums(x: FloatArray) -> FloatArray:
    """Return the cumulative sums of x, starting with 0."""
    return np.concatenate([[0.0], np.cumsum(x)])


def _root(D: FloatArray) -> FloatArray:
    """Return the square root of D; entries may be negative due to rounding."""
    return np.sqrt(np.maximum(D, 0.0))


def _over(x: FloatArray, distance: FloatArray) -> FloatArray:
    """Return ``x / distance``, or 0 if two samples coincide, as no metric separates them."""
    return np.divide(x, distance, out=np.zeros_like(distance), where=distance > 1e-150)


OBJECTIVES: dict[str, Callable[[NDArray[np.intp], FloatArray], Loss]] = {
    "glr": _glr,
    "mcml": _mcml,
    "lmnn": _lmnn,
    "lsml": _lsml,
    "deml": _deml,
}


class DistanceObjective:
    """An objective of the pairwise distances: one of `OBJECTIVES`.

    Like `MatrixObjective`, it is a function of a linear image of M, so a line search needs no
    products with M. `image` is the image of M, and `atom` that of ``x x'`` for x with few non-zero
    entries. `loss` returns the value and its derivatives with respect to the image. `gradient`
    returns the diagonal and the leading k x k block of the gradient with respect to M.
    """

    def __init__(self, name: str, X: FloatArray, y: NDArray[np.intp]) -> None:
        self.X = X
        self.loss = OBJECTIVES[name](y, _distances((X * X).sum(axis=1), X @ X.T))

    def image(self, M: Matrix) -> FloatArray:
        """Return the distances under M."""
        XM = np.asarray(self.X @ M)
        return _distances((XM * self.X).sum(axis=1), XM @ self.X.T)

    def atom(self, features: NDArray[np.intp], x: FloatArray) -> FloatArray:
        """Return the distances under ``x x'``."""
        z = self.X[:, features] @ x
        D = z[:, None] - z
        D *= D
        return D

    def gradient(self, derivatives: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the diagonal and the leading block of ``sum_ij A_ij c_ij c_ij'``."""
        A = derivatives + derivatives.T
        X = self.X
        Y = A.sum(axis=1)[:, None] * X - A @ X
        G = X[:, :k].T @ Y[:, :k]
        return np.einsum("ij,ij->j", X, Y), 0.5 * (G + G.T)  # exactly symmetric despite rounding


@dataclass(frozen=True)
class MatrixObjective:
    """A user-supplied function of M."""

    function: MatrixFunction
    X: FloatArray
    y: NDArray[np.intp]

    def image(self, M: Matrix) -> FloatArray:
        """Return M."""
        return np.asarray(sp.csr_array(M).toarray())

    def atom(self, features: NDArray[np.intp], x: FloatArray) -> FloatArray:
        """Return ``x x'``."""
        M = np.zeros((self.X.shape[1],) * 2)
        np.add.at(M, np.ix_(features, features), np.outer(x, x))  # a repeated feature has y = 0
        return M

    def loss(self, image: FloatArray) -> tuple[float, FloatArray]:
        """Call the function and check its return values."""
        value, gradient = self.function(image, self.X, self.y)
        G = np.asarray(gradient, dtype=np.float64)
        if G.shape != image.shape or not (np.isfinite(value) and np.isfinite(G).all()):
            raise ValueError(
                "objective must return a finite value and a finite gradient with the shape of M, "
                f"{image.shape}; got {value!r} and shape {G.shape}"
            )
        return float(value), 0.5 * (G + G.T)

    def gradient(self, derivatives: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the diagonal and the leading block of the gradient."""
        return derivatives.diagonal().copy(), derivatives[:k, :k]


def _distances(norms: FloatArray, products: FloatArray) -> FloatArray:
    """Return squared distances from squared norms and inner products."""
    D = np.maximum(norms[:, None] + norms - 2.0 * products, 0.0)
    np.fill_diagonal(D, 0.0)
    return D


Objective: TypeAlias = DistanceObjective | MatrixObjective
