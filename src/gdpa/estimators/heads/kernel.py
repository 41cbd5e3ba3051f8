"""Kernel machines: regularised least squares on class indicators.

    s(x) = sum_i k(x, x_i) c_i,   c = (K + lambda I)^-1 (Y - 1/n_classes),   shares ~ exp(4 s)

:class:`Kernel` has the RBF kernel. :class:`LeafKernel` has the share of trees in which two samples
share a leaf. Its score is

    s(x) = 1/T sum_t v_t(leaf of x),   v_t(leaf) = sum of c_i over the labels i in it

so the same trees are used with different leaf values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ...arrays import FloatArray, NDArray
from ...codec import check_numbers, storable
from ...graph.features import Features
from ...graph.forest import shared_leaves
from ...linalg.row_products import row_products
from ...threads import one_thread
from ..data import Fold, different_units, stratified_subsample
from ..forest import Forest
from ..members import FittedModel, Model
from ..rbf import rbf
from ..views import COLUMNS, PointsView, Views
from .base import Head

KernelSetting = tuple[bool, float, float]  # whether columns are standardised, width, ridge

# Most labels of a kernel machine, in a stratified subsample: the time of a solve grows with the
# cube of their number. Held-out predictions use fewer (views.KERNEL_LABELS).
MOST_LABELS = 1_000
STEEPNESS = 4.0
BLOCK = 1_000_000  # kernel entries per block
SINGLE_ROWS = 20_000  # more samples of a fit are predicted in single precision


@storable("kernel machine")
@dataclass(frozen=True, eq=False)
class KernelMachine(Model):
    """A fitted kernel machine.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_labels, n_kept)
        Points of the labelled samples.
    coefficients : ndarray of shape (n_labels, n_classes)
        c.
    gamma : float
        Width of the kernel ``exp(-gamma d^2)``.
    """

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

    def predict(self, points: Features) -> FloatArray:
        """Return shares of points, in double precision however many there are."""
        return self._shares(points, single=False)

    def sample_shares(self, points: Features) -> FloatArray:
        """Return shares of the samples of a fit; those of many in single precision."""
        many = points.shape[0] > SINGLE_ROWS and not sp.issparse(points)
        return self._shares(points, single=many)

    def _shares(self, Z: Features, *, single: bool) -> FloatArray:
        """Return shares of points, computed block by block."""
        n = Z.shape[0]
        out = np.empty((n, self.coefficients.shape[1]))
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
        middle = self.points.mean(axis=0, dtype=np.float64)
        unit = np.sqrt(self.gamma)
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


def ridge_coefficients(K: FloatArray, targets: FloatArray, ridge: float) -> FloatArray:
    """Return the coefficients c for a kernel matrix."""
    A = K + ridge * np.eye(K.shape[0])
    with one_thread():  # NumPy, because SciPy's solvers stop all other threads of the process
        return np.asarray(np.linalg.solve(A, targets - 1.0 / targets.shape[1]))


@dataclass(frozen=True)
class Kernel(Head):
    """RBF kernel machine; held-out labels choose its width, ridge and scaling.

    Parameters
    ----------
    view : PointsView
        The columns; if their units differ, standardised columns are tried too.
    widths : tuple of float
        Multiples of 1 / (columns * variance), the last is the default. Chosen on real tables.
    ridges : tuple of float
        Ridges, the last is the default.
    """

    view: PointsView = COLUMNS
    widths: tuple[float, ...] = (0.3, 3.0, 1.0)
    ridges: tuple[float, ...] = (0.03, 3.0, 0.3)

    def settings(self, views: Views) -> Sequence[KernelSetting]:
        """Return scalings, widths and ridges."""
        scalings = (False, True) if different_units(views.data.X) else (False,)
        return list(product(scalings, self.widths, self.ridges))

    def held_out(self, views: Views, setting: KernelSetting, fold: Fold) -> FloatArray:
        """Predict a fold from labels of the others."""
        scaled, width, ridge = setting
        inside = views.kernel_labels[~fold.held[views.kernel_labels]]
        K = views.kernel(scaled, width)
        at = np.searchsorted(views.kernel_labels, inside)
        c = ridge_coefficients(K[np.ix_(inside, at)], views.data.targets[inside], ridge)
        return np.asarray(softmax(STEEPNESS * (K[np.ix_(fold.held, at)] @ c), axis=1))

    def fit(self, views: Views, setting: KernelSetting) -> FittedModel:
        """Fit to all labels, or to many of them."""
        scaled, width, ridge = setting
        data = views.data
        looked_at = views.standardised if scaled else views.columns
        kept = stratified_subsample(data.codes, MOST_LABELS)
        anchors = looked_at.points[data.labeled[kept]]
        gamma = views.gamma(scaled, width)
        with one_thread():
            c = ridge_coefficients(rbf(anchors, anchors, gamma), data.targets[kept], ridge)
        machine = KernelMachine(anchors, c, gamma)
        shares = machine.sample_shares(looked_at.points)
        return FittedModel(model=machine, columns=looked_at.columns, shares=shares)


@dataclass(frozen=True)
class LeafKernel(Head):
    """Least squares with the kernel of shared leaves; held-out labels choose the ridge.

    Parameters
    ----------
    view : PointsView
        The columns that the trees look at.
    ridges : tuple of float
        Ridges, the last is the default.
    """

    view: PointsView = COLUMNS
    ridges: tuple[float, ...] = (0.1, 0.3, 3.0, 1.0)

    def settings(self, views: Views) -> Sequence[float]:
        """Return the ridges."""
        return self.ridges

    def held_out(self, views: Views, setting: float, fold: Fold) -> FloatArray:
        """Predict a fold with the trees that have not seen it."""
        inside = views.kernel_labels[~fold.held[views.kernel_labels]]
        K = views.leaf_kernel(fold)
        at = np.searchsorted(views.kernel_labels, inside)
        c = ridge_coefficients(K[np.ix_(inside, at)], views.data.targets[inside], setting)
        return np.asarray(softmax(STEEPNESS * (K[np.ix_(fold.held, at)] @ c), axis=1))

    def fit(self, views: Views, setting: float) -> FittedModel:
        """Fit to all labels, or to many of them."""
        data = views.data
        forest = views.forest.forest
        kept = stratified_subsample(data.codes, MOST_LABELS)
        leaves = views.leaves[data.labeled[kept]]
        c = ridge_coefficients(shared_leaves(leaves, leaves), data.targets[kept], setting)
        scores = np.zeros((forest.feature.size, data.n_classes))
        np.add.at(scores, leaves + forest.roots[:-1], c[:, None])
        machine = LeafMachine(forest, scores.astype(np.float32))
        means = forest.leaf_means(views.leaves, value=machine.scores)
        return FittedModel(model=machine, shares=np.asarray(softmax(STEEPNESS * means, axis=1)))
