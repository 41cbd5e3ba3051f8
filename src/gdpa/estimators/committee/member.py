"""What a member of the committee is, and what it is fitted on.

A *trial* is a member judged: for every label it has a prediction that the label had no part in, not
in the solve, nor in the graph, the metric or the forest behind it. From a trial the member is built
on all labels and all nodes. Of many nodes a trial sees a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...folds import by_appearance
from ...graph.rescale import Rescaler
from ..labels import LabelCoding
from ..options import FitOptions
from ..probabilities import fit_sharpness, sharpen
from .trees import CrossForest, cross_forest

__all__ = [
    "MANY",
    "LinkedMember",
    "Member",
    "Task",
    "Trial",
    "judged_labels",
    "least_loss",
    "log_loss",
    "sharpened",
]

FloatArray = NDArray[np.float64]

# Shares below this are believed no further: one label predicted with certainty and wrongly must
# not decide about a member.
LEAST_SHARE = 0.01
# Columns whose deviations differ by more than this factor (between the first and the last tenth)
# may be in units of their own: they are tried standardised too.
SAME_UNITS = 10.0
FARTHEST = 1e300  # a feature in other units, kept finite
# With so many times the sample's labels a graph is judged as it is, not by the sample: no other
# member gains as much from labels everywhere.
MANY = 3


@dataclass(frozen=True)
class Task:
    """Features and labels of some nodes.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_nodes, n_features)
        Features, re-scaled as the estimator was asked to.
    coding : LabelCoding
        Labels of the nodes.
    folds : ndarray of int of shape (n_labels,) or None
        The labels that are left out together; None where there are too few to leave any out.
    options : FitOptions
        What the fit was asked for.
    nodes : ndarray of int or None
        Which nodes of the whole these are; None for all.
    """

    X: Any
    coding: LabelCoding
    folds: NDArray[np.int32] | None
    options: FitOptions = field(default_factory=FitOptions)
    nodes: NDArray[np.intp] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.coding.classes.size)

    @property
    def n_folds(self) -> int:
        """Number of folds; 0 without any."""
        return 0 if self.folds is None else int(self.folds.max()) + 1

    @cached_property
    def labeled(self) -> NDArray[np.intp]:
        """Labelled nodes."""
        return self.coding.labeled

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """Their classes."""
        return self.coding.codes[self.labeled]

    @cached_property
    def targets(self) -> FloatArray:
        """One column per class, 1 where a label belongs to it."""
        return np.eye(self.n_classes)[self.codes]

    @cached_property
    def scaling(self) -> Rescaler:
        """Columns to mean 0 and deviation 1 (of sparse features the deviation only)."""
        return column_scales(self.X)

    @cached_property
    def Z(self) -> Any:
        """The features so scaled."""
        return scaled(self.scaling, self.X)

    @cached_property
    def forest(self) -> CrossForest:
        """A forest, part of whose trees has never seen a given fold."""
        policy = self.options.policy
        kept = thinned(self.codes, policy.forest_labels)
        large = self.nodes is not None or self.X.shape[0] > policy.judged_nodes
        return cross_forest(
            self.X[self.labeled[kept]],
            self.codes[kept],
            None if self.folds is None else self.folds[kept],
            self.n_classes,
            n_trees=policy.forest_trees // 2 if large else policy.forest_trees,
            random_state=self.options.random_state,
            n_jobs=self.options.n_jobs,
        )

    @cached_property
    def leaves(self) -> NDArray[np.int32]:
        """Leaf of every node in every tree."""
        return self.forest.leaves(self.X)


class Member(Protocol):
    """One voice beside the graph of the state: shares of every node and of new rows.

    ``shares`` are non-negative rows that add up to 1, one per node. They need not be calibrated:
    the committee sharpens each member by what it said about labels left out.
    """

    @property
    def name(self) -> str:
        """Name, once in a committee."""
        ...

    @property
    def shares(self) -> FloatArray:
        """Shares of the nodes."""
        ...

    def predict(self, X: Any) -> FloatArray:
        """Shares of new rows (features re-scaled as in :class:`Task`)."""
        ...

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Member:
        """The same member after further labels: what was learned stays, scores may move."""
        ...

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Member:
        """The same member beside more classes, the old ones at the given places."""
        ...


class LinkedMember:
    """A member that answers for new rows by their features, their links, or both."""

    def predict_linked(self, X: Any, links: sp.csr_array | None) -> FloatArray:
        """Shares of new rows; features or links may be None."""
        raise NotImplementedError

    def predict(self, X: Any) -> FloatArray:
        """Shares of rows without links."""
        return self.predict_linked(X, None)


@dataclass(frozen=True)
class Trial:
    """A member judged.

    Parameters
    ----------
    name : str
        Name of the member.
    left_out : ndarray of shape (n_labels, n_classes) or None
        Shares of the labelled nodes by models that have not seen them.
    build : callable
        From a task to the member.
    """

    name: str
    left_out: FloatArray | None
    build: Callable[[Task], Member]


def thinned(codes: NDArray[Any], most: int) -> NDArray[np.intp]:
    """Positions of at most so many labels, evenly over their list and so over the classes."""
    if codes.size <= most:
        return np.arange(codes.size)
    order = np.argsort(by_appearance(codes), kind="stable")
    return np.sort(order[np.linspace(0, codes.size - 1, most).astype(np.intp)])


def column_scales(X: Any) -> Rescaler:
    """Scale of every column that varies, and its mean where X is not sparse."""
    if sp.issparse(X):
        mean = np.zeros(X.shape[1])
        with np.errstate(over="ignore"):
            squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        plain = np.asarray(X.mean(axis=0)).ravel()
        scale = np.sqrt(np.maximum(squares - plain * plain, 0.0))
        varies = scale > 1e-6 * np.sqrt(squares)
    else:
        A = np.asarray(X)
        varies = A.max(axis=0) > A.min(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = A.mean(axis=0, dtype=np.float64)
            scale = A.std(axis=0, dtype=np.float64)
    varies &= np.isfinite(scale) & np.isfinite(mean) & (scale > 0)
    columns = varies if varies.any() else np.ones(X.shape[1], dtype=bool)
    scale = np.where(varies, scale, 1.0)
    mean = np.where(varies, mean, 0.0)
    return Rescaler("standard", columns, mean[columns], scale[columns], False)


def scaled(columns: Rescaler, X: Any) -> Any:
    """Features with other columns and scales; sparse ones stay sparse."""
    if not sp.issparse(X):
        return columns.transform(X)
    with np.errstate(over="ignore"):
        Z = sp.csr_array(X[:, columns.columns] @ sp.diags_array(1.0 / columns.scale))
    Z.data = np.clip(Z.data, -FARTHEST, FARTHEST)
    return Z


def unlike_units(X: Any) -> bool:
    """Whether the columns' deviations differ so much that they may be in units of their own."""
    if sp.issparse(X):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.sort(np.asarray(X).std(axis=0, dtype=np.float64))
    deviation = deviation[(deviation > 0) & np.isfinite(deviation)]
    if deviation.size < 2:
        return False
    low, high = deviation[deviation.size // 10], deviation[-1 - deviation.size // 10]
    return bool(high > SAME_UNITS * low)


def judged_labels(codes: NDArray[Any], n_classes: int) -> NDArray[np.bool_]:
    """Labels that can be predicted without themselves: those not alone in their class."""
    return np.asarray(np.bincount(codes, minlength=n_classes)[codes] >= 2)


def sharpened(shares: FloatArray, sharpness: float) -> FloatArray:
    """Shares, none below a hundredth, to the power of the sharpness."""
    cut = np.maximum(shares, LEAST_SHARE)
    return sharpen(cut / cut.sum(axis=1, keepdims=True), sharpness)


def label_losses(
    left_out: FloatArray, codes: NDArray[Any], fewest: int = 8
) -> tuple[FloatArray, float]:
    """Log-loss of each left-out label that can be judged, after sharpening; the sharpness."""
    judged = judged_labels(codes, left_out.shape[1])
    shares = np.maximum(left_out[judged], LEAST_SHARE)
    beta = fit_sharpness(shares, codes[judged], fewest=fewest)
    p = sharpened(left_out[judged], beta)
    return np.asarray(-np.log(p[np.arange(p.shape[0]), codes[judged]])), beta


def log_loss(left_out: FloatArray, codes: NDArray[Any], fewest: int = 8) -> tuple[float, float]:
    """Mean log-loss of left-out labels after sharpening, and the sharpness."""
    losses, beta = label_losses(left_out, codes, fewest)
    return float(losses.mean()), beta


def least_loss(
    candidates: Mapping[Any, FloatArray],
    codes: NDArray[Any],
    folds: NDArray[Any] | None = None,
) -> tuple[Any, FloatArray]:
    """The candidate whose left-out shares have the least loss; the first among equals.

    A choice among many flatters the chosen: by the labels that it was made on it looks better than
    it is. With folds the shares returned are those that choosing honestly would have given: of each
    fold by the candidate that is best for the labels of all others.

    Parameters
    ----------
    candidates : mapping of any to ndarray of shape (n_labels, n_classes)
        Left-out shares of each.
    codes : ndarray of int of shape (n_labels,)
        Classes of the labels.
    folds : ndarray of int of shape (n_labels,), optional
        Fold of each label.

    Returns
    -------
    best : object
        The candidate that is best for all labels.
    left_out : ndarray of shape (n_labels, n_classes)
        Its shares; with folds, of each fold those of the best for the others.
    """
    keys = list(candidates)
    losses = np.array([label_losses(candidates[key], codes)[0] for key in keys])
    best = keys[int(losses.mean(axis=1).argmin())]
    if folds is None or len(keys) == 1:
        return best, candidates[best]
    inside = folds[judged_labels(codes, candidates[best].shape[1])]
    left_out = candidates[best].copy()
    for f in range(int(folds.max()) + 1):
        if (inside != f).any():
            own = keys[int(losses[:, inside != f].mean(axis=1).argmin())]
            left_out[folds == f] = candidates[own][folds == f]
    return best, left_out
