"""Kernel machines: regularised least squares on class indicators.

    s(x) = sum_i k(x, x_i) c_i,   c = (K + lambda I)^-1 (Y - 1/n_classes),   shares ~ exp(4 s)

*kernel*: the RBF kernel. Least squares has a closed form for cross-validation: with
``G = (K + lambda I)^-1`` and the labels f of a fold, their held-out scores are
``Y_f - G_ff^-1 (G Y)_f``. So one inverse evaluates a setting.

*forest kernel*: the share of trees in which two samples share a leaf. To compute its score

    s(x) = 1/T sum_t v_t(leaf of x),   v_t(leaf) = sum of c_i over the labels i in it

a row is sent down the same trees, whose leaves hold other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.forest import shared_leaves
from ...graph.rescale import Rescaler
from ...linalg.row_products import row_products, row_squares
from ...threads import one_thread
from .base import (
    Candidates,
    Features,
    FitData,
    FittedModel,
    Mask,
    Member,
    Model,
    Rows,
    ScaledModel,
    SupervisedMember,
    best_candidate,
    different_units,
    rescale_columns,
    stratified_subsample,
)
from .forest import Forest, shared_forest

KernelSetting = tuple[bool, float, float]  # whether columns are standardised, width, ridge

# Most labels that a kernel machine and the choice of its setting use, in a stratified subsample:
# the time of an inverse grows with the cube of their number.
MOST_LABELS, CHOICE_LABELS = 1_000, 400
STEEPNESS = 4.0
# Kernel entries per block; with more rows than SINGLE_ROWS, they have single precision.
BLOCK, SINGLE_ROWS = 1_000_000, 20_000


@storable("kernel machine")
@dataclass(frozen=True, eq=False)
class KernelMachine(ScaledModel):
    """A fitted kernel machine.

    Parameters
    ----------
    scaling : Rescaler or None
        Scaling of the columns; None leaves them as they are.
    points : ndarray or csr_array of shape (n_labels, n_kept)
        Rescaled features of the labelled samples.
    coefficients : ndarray of shape (n_labels, n_classes)
        c.
    gamma : float
        Width of the kernel ``exp(-gamma d^2)``.
    """

    scaling: Rescaler | None
    points: NDArray[np.floating] | sp.csr_array
    coefficients: FloatArray
    gamma: float

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if not sp.issparse(self.points):
            check_numbers("points", self.points, (None, None))
        check_numbers("coefficients", self.coefficients, (self.points.shape[0], None))
        if not 0 < self.gamma < np.inf:
            raise ValueError(f"gamma={self.gamma!r} of the kernel must be positive and finite")

    def predict(self, X: Features) -> FloatArray:
        """Return shares of new rows, in double precision however many there are."""
        Z = X if self.scaling is None else rescale_columns(self.scaling, X)
        return self._shares(Z, single=False)

    def shares(self, Z: Features) -> FloatArray:
        """Return shares of rescaled rows; those of many samples in single precision."""
        return self._shares(Z, single=Z.shape[0] > SINGLE_ROWS and not sp.issparse(Z))

    def _shares(self, Z: Features, *, single: bool) -> FloatArray:
        """Return shares of rescaled rows, computed block by block."""
        n, out = Z.shape[0], np.empty((Z.shape[0], self.coefficients.shape[1]))
        step = max(1, BLOCK // max(1, self.points.shape[0]))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            if single:
                scores = self._single_scores(Z[rows])
            else:
                K = rbf(Z[rows], self.points, self.gamma)
                scores = row_products(K, self.coefficients)
            out[rows] = softmax(STEEPNESS * scores, axis=1)
        return out

    def _single_scores(self, rows: NDArray[np.floating]) -> FloatArray:
        """Return scores of rows, computed in single precision about the points' mean."""
        middle, unit = self.points.mean(axis=0, dtype=np.float64), np.sqrt(self.gamma)
        # Squares of clipped entries stay finite. One product gives -|a - p|^2.
        A, P = (np.clip(unit * (B - middle), -1e15, 1e15) for B in (rows, self.points))
        left = np.column_stack([2.0 * A, -(A * A).sum(axis=1), np.full(A.shape[0], -1.0)])
        right = np.column_stack([P, np.ones(P.shape[0]), (P * P).sum(axis=1)])
        K = left.astype(np.float32) @ right.astype(np.float32).T
        np.exp(np.minimum(K, 0.0, out=K), out=K)
        return np.asarray(K @ self.coefficients.astype(np.float32), dtype=np.float64)


@storable("leaf machine")
@dataclass(frozen=True, eq=False)
class LeafMachine(Model):
    """A forest with the scores of a kernel machine in its leaves.

    Parameters
    ----------
    forest : Forest
        The trees.
    scores : ndarray of shape (n_nodes, n_classes)
        v; 0 for inner nodes and for leaves without a label.
    """

    forest: Forest
    scores: NDArray[np.float32]

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("scores", self.scores, (self.forest.feature.size, None))

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows."""
        scores = self.forest.leaf_means(self.forest.leaves(X), value=self.scores)
        return np.asarray(softmax(STEEPNESS * scores, axis=1))


def rbf(A: Features, B: Features, gamma: float) -> FloatArray:
    """Return the RBF kernel; it is 0 where the distance overflows."""
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(A):  # a shift to the mean keeps the digits of distances
            middle = B.mean(axis=0)
            if np.isfinite(middle).all():
                A, B = np.clip(A - middle, -1e300, 1e300), np.clip(B - middle, -1e300, 1e300)
            if np.abs(B).max(initial=0.0) > 1e150:  # squares would overflow
                A, B, gamma = A * np.sqrt(gamma), B * np.sqrt(gamma), 1.0
        if isinstance(A, np.ndarray):
            squares = -2.0 * row_products(A, B.T)
            squares += row_squares(A)[:, None]
        else:
            squares = -2.0 * (A @ B.T).toarray()
            squares += (A * A).sum(axis=1)[:, None]
        squares += (B * B).sum(axis=1)
        K = np.exp(-gamma * np.maximum(squares, 0.0))
    return np.asarray(np.nan_to_num(K, copy=False, nan=0.0))


def ridge_coefficients(K: FloatArray, targets: FloatArray, ridge: float) -> FloatArray:
    """Return the coefficients c for a kernel matrix."""
    A = K + ridge * np.eye(K.shape[0])
    with one_thread():  # NumPy, because SciPy's solvers stop all other threads of the process
        return np.asarray(np.linalg.solve(A, targets - 1.0 / targets.shape[1]))


class KernelMember(SupervisedMember):
    """RBF kernel machine; held-out labels choose its width, ridge and scaling."""

    name = "kernel"
    most_labels = MOST_LABELS
    # Multiples of 1 / (columns * variance) for the width, and ridges. Chosen on real tables.
    widths: ClassVar = (0.3, 1.0, 3.0)
    ridges: ClassVar = (0.03, 0.3, 3.0)
    setting: KernelSetting | None = None

    def cross_fit(self, data: FitData) -> FloatArray:
        """Choose width and ridge; if units differ, also whether columns are standardised."""
        assert data.folds is not None
        kept = stratified_subsample(data.codes, CHOICE_LABELS)
        Y, folds = data.targets[kept] - 1.0 / data.n_classes, data.folds[kept]
        found: dict[KernelSetting, FloatArray] = {}
        scalings = (False, True) if different_units(data.X) else (False,)
        for scaling, width in product(scalings, self.widths):
            points, gamma = kernel_points(data, (scaling, width, 0.0))
            anchors = points[data.labeled[kept]]
            K = rbf(anchors, anchors, gamma)
            for ridge in self.ridges:
                scores = np.empty_like(Y)
                with one_thread():
                    G = np.linalg.inv(K + ridge * np.eye(kept.size))
                    C = G @ Y
                    for number in np.unique(folds):
                        f = np.flatnonzero(folds == number)
                        scores[f] = Y[f] - np.linalg.solve(G[np.ix_(f, f)], C[f])
                found[scaling, width, ridge] = softmax(STEEPNESS * scores, axis=1)
        best, held_out = best_candidate(found, data.codes[kept], folds)
        self.setting, self.settings = best, (best,)
        return held_out if kept.size == data.codes.size else super().cross_fit(data)

    def train(self, data: FitData, kept: Rows, setting: KernelSetting | None) -> KernelMachine:
        """Fit to the labels at the positions `kept`."""
        setting = setting or (different_units(data.X), 1.0, 0.3)
        points, gamma = kernel_points(data, setting)
        anchors = points[data.labeled[kept]]
        c = ridge_coefficients(rbf(anchors, anchors, gamma), data.targets[kept], setting[2])
        return KernelMachine(data.scaling if setting[0] else None, anchors, c, gamma)


def kernel_points(data: FitData, setting: KernelSetting) -> tuple[Features, float]:
    """Return the features and gamma of a setting; its width is relative to the variance."""
    points = data.Z if setting[0] else data.X
    if isinstance(points, sp.csr_array):
        variance = float(points.multiply(points).mean() - points.mean() ** 2)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(np.var(points, dtype=np.float64))
    spread = points.shape[1] * variance
    if not spread < np.inf:
        return points, 1e-300
    return points, setting[1] / spread if spread > 1e-300 else 1.0


class ForestKernelMember(Member):
    """Least squares with the forest kernel; held-out labels choose the ridge."""

    name = "forest kernel"
    needs_folds = True
    ridges: ClassVar = (0.1, 0.3, 1.0, 3.0)
    setting = 1.0

    def predict_fold(self, data: FitData, f: int, held: Mask) -> Candidates:
        """Predict a fold with the trees that have not seen it."""
        grown, all_leaves = shared_forest(data)
        leaves = all_leaves[data.labeled, grown.group(f)]
        kept = stratified_subsample(data.codes, CHOICE_LABELS)
        inside = kept[~held[kept]]
        K = shared_leaves(leaves[inside], leaves[inside])
        asked = shared_leaves(leaves[held], leaves[inside])
        for ridge in self.ridges:
            c = ridge_coefficients(K, data.targets[inside], ridge)
            yield ridge, softmax(STEEPNESS * (asked @ c), axis=1)

    def fit(self, data: FitData) -> FittedModel:
        """Fit to at most MOST_LABELS labels."""
        grown, all_leaves = shared_forest(data)
        forest, kept = grown.forest, stratified_subsample(data.codes, MOST_LABELS)
        leaves = all_leaves[data.labeled[kept]]
        c = ridge_coefficients(shared_leaves(leaves, leaves), data.targets[kept], self.setting)
        scores = np.zeros((forest.feature.size, data.n_classes))
        np.add.at(scores, leaves + forest.roots[:-1], c[:, None])
        machine = LeafMachine(forest, scores.astype(np.float32))
        means = forest.leaf_means(all_leaves, value=machine.scores)
        return FittedModel(self.name, machine, softmax(STEEPNESS * means, axis=1))
