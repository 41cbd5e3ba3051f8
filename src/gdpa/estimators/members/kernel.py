"""Kernel machines: regularised least squares on class indicators.

    s(x) = sum_i k(x, x_i) c_i,   c = (K + lambda I)^-1 (Y - 1/n_classes),   shares ~ exp(4 s)

The *kernel* member uses the RBF kernel. Least squares allows holding out every fold in closed form:
with ``G = (K + lambda)^-1``, the scores of the labels f of a fold without these labels are
``Y_f - G_ff^-1 (G Y)_f``. One inverse is enough to evaluate a setting.

The *forest kernel* of two samples is the share of trees in which they share a leaf. Its score

    s(x) = 1/T sum_t v_t(leaf of x),   v_t(leaf) = sum of c_i of the i in it

is computed by a walk through the same trees with scores in their leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import softmax

from ...codec import check_numbers, storable
from ...graph.forest import shared_leaves
from ...graph.rescale import Rescaler
from ...threads import one_thread
from .base import (
    Features,
    FitData,
    FittedModel,
    FoldPredictions,
    Mask,
    Member,
    Model,
    best_candidate,
    different_units,
    rescale_columns,
    stratified_subsample,
)
from .forest import Forest, leaf_means, shared_forest

FloatArray = NDArray[np.float64]
KernelSetting = tuple[bool, float, float]  # columns scaled or not, width, ridge

# Maximum number of labels in the fit, and for choosing the setting. More are subsampled evenly over
# the classes, because the cost is cubic.
MOST_LABELS, CHOICE_LABELS = 1_000, 400
STEEPNESS = 4.0
# Kernel entries per block. Beyond SINGLE_ROWS rows they are computed in single precision.
BLOCK, SINGLE_ROWS = 1_000_000, 20_000


@storable("kernel machine")
@dataclass(frozen=True, eq=False)
class KernelMachine(Model):
    """A fitted kernel machine.

    Parameters
    ----------
    scaling : Rescaler or None
        Scales of the columns; None if they are not scaled.
    points : ndarray or csr_array of shape (n_labels, n_kept)
        Labelled samples, scaled.
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
            raise ValueError(f"gamma={self.gamma!r} of the kernel must be positive")

    def predict(self, X: Features) -> FloatArray:
        """Return the shares of rows."""
        return self.shares(X if self.scaling is None else rescale_columns(self.scaling, X))

    def shares(self, Z: Features) -> FloatArray:
        """Return the shares of scaled rows, block by block."""
        n, out = Z.shape[0], np.empty((Z.shape[0], self.coefficients.shape[1]))
        single = n > SINGLE_ROWS and not sp.issparse(Z)
        step = max(1, BLOCK // max(1, self.points.shape[0]))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            if single:
                scores = self._single_scores(Z[rows])
            else:
                scores = rbf(Z[rows], self.points, self.gamma) @ self.coefficients
            out[rows] = softmax(STEEPNESS * scores, axis=1)
        return out

    def _single_scores(self, rows: NDArray[np.floating]) -> FloatArray:
        """Return the scores of rows in single precision."""
        # After centring, squared distances are about 1 / gamma where the kernel is not 0, so their
        # rounding is harmless.
        middle = self.points.mean(axis=0, dtype=np.float64)
        gamma = np.float32(self.gamma)
        P = np.asarray(self.points - middle, dtype=np.float32)
        A = np.clip(rows - middle, -1e18, 1e18).astype(np.float32)  # the square is finite
        K = A @ (np.float32(2.0 * self.gamma) * P.T)
        with np.errstate(over="ignore", invalid="ignore"):
            K -= (gamma * (A * A).sum(axis=1))[:, None]
            K -= gamma * (P * P).sum(axis=1)
            np.exp(np.minimum(np.nan_to_num(K, copy=False, nan=-np.inf), 0.0, out=K), out=K)
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
        v; 0 if a node is not a leaf or contains no label.
    """

    forest: Forest
    scores: NDArray[np.float32]

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("scores", self.scores, (self.forest.feature.size, None))

    def predict(self, X: Features) -> FloatArray:
        """Return shares of rows."""
        leaves = self.forest.leaves(X)
        scores = leaf_means(self.forest.roots, self.scores, leaves)
        return np.asarray(softmax(STEEPNESS * scores, axis=1))


def rbf(A: Features, B: Features, gamma: float) -> FloatArray:
    """Return the RBF kernel; 0 where a distance overflows."""
    from sklearn.metrics.pairwise import rbf_kernel

    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(A):  # centring avoids cancellation in distances
            middle = B.mean(axis=0, dtype=np.float64)
            if np.isfinite(middle).all():
                A, B = np.clip(A - middle, -1e300, 1e300), np.clip(B - middle, -1e300, 1e300)
            if np.abs(B).max(initial=0.0) > 1e150:  # squares would overflow
                A, B, gamma = A * np.sqrt(gamma), B * np.sqrt(gamma), 1.0
        K = np.asarray(rbf_kernel(A, B, gamma=gamma), dtype=np.float64)
    return np.nan_to_num(K, copy=False, nan=0.0)


def ridge_coefficients(K: FloatArray, targets: FloatArray, ridge: float) -> FloatArray:
    """Return the coefficients c for a kernel matrix."""
    A = K + ridge * np.eye(K.shape[0])
    with one_thread():
        return np.asarray(linalg.solve(A, targets - 1.0 / targets.shape[1], assume_a="pos"))


class KernelMember(Member):
    """RBF kernel machine; width, ridge and scaling are chosen by cross-validation."""

    name = "kernel"
    # Widths as multiples of 1 / (columns * variance), and ridges. Chosen on real tables.
    widths: ClassVar = (0.3, 1.0, 3.0)
    ridges: ClassVar = (0.03, 0.3, 3.0)
    setting: KernelSetting = (False, 0.0, 0.3)  # width 0: not chosen yet

    def cross_fit(self, data: FitData) -> FloatArray:
        """Choose width and ridge, with unscaled and, if units differ, scaled columns."""
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
                    G = linalg.inv(K + ridge * np.eye(kept.size))
                    C = G @ Y
                    for number in np.unique(folds):
                        f = np.flatnonzero(folds == number)
                        scores[f] = Y[f] - linalg.solve(G[np.ix_(f, f)], C[f])
                found[scaling, width, ridge] = softmax(STEEPNESS * scores, axis=1)
        self.setting, held_out = best_candidate(found, data.codes[kept], folds)
        return held_out if kept.size == data.codes.size else super().cross_fit(data)

    def predict_fold(self, data: FitData, f: int, held: Mask) -> FoldPredictions:
        """Predict a fold with the chosen setting from at most MOST_LABELS other labels."""
        kept = stratified_subsample(data.codes, MOST_LABELS)
        machine = self._machine(data, kept[~held[kept]])
        rows = kernel_points(data, self.setting)[0][data.labeled[held]]
        yield self.setting, machine.shares(rows)

    def fit(self, data: FitData) -> FittedModel:
        """Fit to all labels, or a subsample of MOST_LABELS."""
        if self.setting[1] == 0:
            self.setting = (different_units(data.X), 1.0, 0.3)
        machine = self._machine(data, stratified_subsample(data.codes, MOST_LABELS))
        return FittedModel(self.name, machine, machine.shares(kernel_points(data, self.setting)[0]))

    def _machine(self, data: FitData, kept: NDArray[np.intp]) -> KernelMachine:
        """Fit to the labels at the positions `kept`."""
        points, gamma = kernel_points(data, self.setting)
        anchors = points[data.labeled[kept]]
        c = ridge_coefficients(rbf(anchors, anchors, gamma), data.targets[kept], self.setting[2])
        return KernelMachine(data.scaling if self.setting[0] else None, anchors, c, gamma)


def kernel_points(data: FitData, setting: KernelSetting) -> tuple[Features, float]:
    """Return the features of a setting, and gamma relative to the variance of all cells."""
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
    """Least squares with the forest kernel; the ridge is chosen by cross-validation."""

    name = "forest kernel"
    needs_folds = True
    ridges: ClassVar = (0.1, 0.3, 1.0, 3.0)
    setting = 1.0

    def predict_fold(self, data: FitData, f: int, held: Mask) -> FoldPredictions:
        """Predict a fold in the trees grown without it."""
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
        """Fit to all labels, or a subsample of MOST_LABELS."""
        grown, all_leaves = shared_forest(data)
        forest, kept = grown.forest, stratified_subsample(data.codes, MOST_LABELS)
        leaves = all_leaves[data.labeled[kept]]
        c = ridge_coefficients(shared_leaves(leaves, leaves), data.targets[kept], self.setting)
        scores = np.zeros((forest.feature.size, data.n_classes))
        np.add.at(scores, leaves + forest.roots[:-1], c[:, None])
        machine = LeafMachine(forest, scores.astype(np.float32))
        means = leaf_means(forest.roots, machine.scores, all_leaves)
        return FittedModel(self.name, machine, softmax(STEEPNESS * means, axis=1))
