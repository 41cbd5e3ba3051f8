"""A forest of extremely randomised trees, grown by scikit-learn and stored as plain arrays.

The nodes of all trees are stored in one sequence. A node tests ``x[feature] <= threshold`` and
sends the sample to `left` or `right`. A leaf has feature -1 and stores class shares. Every child
comes after its parent within the same tree, so a walk always ends.

The forest is grown in groups of trees, each without one fold of the labels. The trees of a group
give the held-out probabilities of that fold. All trees together predict new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...codec import check_numbers, storable
from ...threads import effective_jobs, in_threads
from ..labels import by_appearance
from .base import (
    Features,
    FitData,
    FittedModel,
    FoldPredictions,
    Mask,
    Member,
    Model,
    stratified_subsample,
)

if TYPE_CHECKING:
    from sklearn.tree import ExtraTreeClassifier


FloatArray = NDArray[np.float64]
Leaves = NDArray[np.int32]

# Cells per block of rows in a walk. Up to FEW rows threads cost more than they save, because the
# interpreter does most of the work for a small tree.
BLOCK, FEW = 2**21, 2_000
# Exponents of two between which columns are not rescaled. Larger values overflow single precision,
# and scikit-learn's trees treat values within 1e-7 of each other as equal.
ORDINARY, SMALL = 60, -10
FLOAT32 = float(np.finfo(np.float32).max) / 4.0  # keeps the range of a column finite


@storable("forest")
@dataclass(frozen=True, eq=False)
class Forest(Model):
    """Trees stored as arrays.

    Parameters
    ----------
    roots : ndarray of int of shape (n_trees + 1,)
        Index of each tree's first node; the last entry is the number of nodes.
    feature : ndarray of int of shape (n_nodes,)
        Column that a node tests, -1 in a leaf.
    threshold : ndarray of shape (n_nodes,)
        Threshold of the test.
    left, right : ndarray of int of shape (n_nodes,)
        Children; the node itself in a leaf.
    value : ndarray of shape (n_nodes, n_classes)
        Class shares.
    importances : ndarray of shape (n_features,)
        Feature importances, which add up to 1 or are all 0.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: FloatArray
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    importances: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, roots = self.feature.size, self.roots
        check_numbers("forest: roots", roots, (None,))
        for name in ("feature", "left", "right"):
            check_numbers(f"forest: {name}", getattr(self, name), (n,))
        check_numbers("forest: value", self.value, (n, None), at_least=0)
        check_numbers("forest: importances", self.importances, (None,), at_least=0)
        if self.threshold.shape != (n,) or np.isnan(self.threshold).any():
            raise ValueError("forest: one threshold per node is needed")
        whole = roots.size >= 2 and roots[0] == 0 and roots[-1] == n and (np.diff(roots) >= 1).all()
        if not whole:
            raise ValueError("forest: roots must ascend from 0 to the number of nodes")
        number, end = np.arange(n), np.repeat(roots[1:], np.diff(roots))
        leaf = (self.feature == -1) & (self.left == number) & (self.right == number)
        inner = (self.feature >= 0) & (self.feature < self.importances.size)
        for child in (self.left, self.right):
            inner &= (child > number) & (child < end)
        if not (leaf | inner).all():
            raise ValueError("forest: a node leads out of its tree or tests no column")

    def predict(self, X: Features) -> FloatArray:
        """Return the mean class shares of the leaves that rows fall into."""
        return leaf_means(self.roots, self.value, self.leaves(X))

    def leaves(self, X: Features) -> Leaves:
        """Return the leaf of each sample in each tree, numbered within the tree."""
        asked = np.flatnonzero(np.bincount(self.feature[self.feature >= 0], minlength=1))
        place = np.zeros(int(asked.max(initial=0)) + 1, dtype=np.int32)
        place[asked] = np.arange(asked.size, dtype=np.int32)
        column = place[np.maximum(self.feature, 0)]
        size = np.abs(self.threshold[self.threshold != 0])
        wide = size.size and (size.max() > 2.0**ORDINARY or size.min() < 2.0**-ORDINARY)
        out = np.empty((X.shape[0], (self.roots.size - 1)), dtype=np.int32)
        step = max(1, BLOCK // max(1, asked.size))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step][:, asked]
            # Trees were grown in single precision, so rows are compared in single precision.
            dense = rows.toarray() if isinstance(rows, sp.csr_array) else rows
            cells = _single_digits(dense) if wide else as_single(dense)
            for t in range(self.roots.size - 1):
                out[start : start + step, t] = self._walk(cells, column, t)
        return out

    def _walk(self, cells: NDArray[np.floating], column: NDArray[np.int32], t: int) -> Leaves:
        """Return the leaves of some rows in tree t."""
        root = int(self.roots[t])
        node = np.full(cells.shape[0], root, dtype=np.int32)
        moving = np.arange(cells.shape[0])
        for _ in range(int(self.roots[t + 1]) - root):  # children come after parents
            at = node[moving]
            inside = self.feature[at] >= 0
            if not inside.all():
                moving, at = moving[inside], at[inside]
            if moving.size == 0:
                break
            yes = cells[moving, column[at]] <= self.threshold[at]
            node[moving] = np.where(yes, self.left[at], self.right[at])
        return np.asarray(node - root)


def leaf_means(
    roots: NDArray[np.int64],
    value: NDArray[np.float32],
    leaves: Leaves,
    trees: slice = slice(None),
) -> FloatArray:
    """Return the mean over trees of the values in the leaves of samples."""
    out = np.zeros((leaves.shape[0], value.shape[1]))
    asked = range(roots.size - 1)[trees]
    for t in asked:
        out += value[roots[t] + leaves[:, t]]
    return out / max(len(asked), 1)


def column_units(X: Features) -> NDArray[np.int32]:
    """Return the exponent of each column's largest value; 0 if trees can use it unscaled."""
    if sp.issparse(X):
        size = abs(X).max(axis=0).toarray().ravel()
    else:
        size = np.maximum(X.max(axis=0), -X.min(axis=0))
    exponent = np.frexp(size)[1]
    ordinary = (size == 0) | ((exponent >= SMALL) & (exponent <= ORDINARY))
    return np.where(ordinary, 0, exponent).astype(np.int32)


def as_single(X: Features, units: NDArray[np.int32] | None = None) -> Features:
    """Convert X to single precision; values that are too large are clipped."""
    units = None if units is None or not units.any() else units
    if sp.issparse(X):
        X = sp.csr_array(X)
        data = X.data if units is None else np.ldexp(X.data, -units[X.indices])
        data = np.clip(data, -FLOAT32, FLOAT32).astype(np.float32)
        return sp.csr_array((data, X.indices, X.indptr), X.shape)
    with np.errstate(over="ignore"):
        cells = X if units is None else np.ldexp(X, -units)
    return np.clip(cells, -FLOAT32, FLOAT32).astype(np.float32)


def _single_digits(X: NDArray[np.floating]) -> FloatArray:
    """Round numbers of any magnitude to the precision of single precision."""
    mantissa, exponent = np.frexp(X)
    return np.asarray(np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent))


@dataclass(frozen=True, eq=False)
class CrossForest:
    """A forest grown in groups of trees, each without one fold of the labels.

    Parameters
    ----------
    trees : list of ExtraTreeClassifier
        scikit-learn's trees, group by group.
    forest : Forest
        The same trees, in the units of the data.
    units : ndarray of int of shape (n_features,)
        Exponents of the powers of two by which columns were divided.
    n_groups : int
        One group per fold; a single group without folds.
    n_jobs : int
        Threads.
    """

    trees: list[ExtraTreeClassifier]
    forest: Forest
    units: NDArray[np.int32]
    n_groups: int
    n_jobs: int

    def leaves(self, X: Features) -> Leaves:
        """Return the same leaves as :meth:`Forest.leaves`, by scikit-learn's compiled code."""
        A, jobs = as_single(X, self.units), self.n_jobs if X.shape[0] > FEW else 1
        trees = map(attrgetter("tree_"), self.trees)
        found = in_threads(methodcaller("apply", A), trees, jobs)
        return np.array(found, dtype=np.int32).T  # contiguous per tree, as it is read

    def group(self, f: int) -> slice:
        """Return the positions of the trees grown without fold f."""
        size = len(self.trees) // self.n_groups
        return slice(f * size, (f + 1) * size)


def cross_forest(
    X: Features,
    codes: NDArray[np.integer],
    folds: NDArray[np.integer] | None,
    n_classes: int,
    *,
    n_trees: int,
    random_state: int,
    n_jobs: int | None = None,
) -> CrossForest:
    """Grow extremely randomised trees on labelled samples, one group per fold."""
    from sklearn.tree import ExtraTreeClassifier

    units = column_units(X)
    A = as_single(X, units)
    # Between splits of equal gain, rounding decides and depends on the order of the classes. This
    # order does not depend on their names.
    place = by_appearance(codes)
    names = np.empty(n_classes, dtype=np.intp)
    names[place] = codes
    n_groups = 1 if folds is None else int(folds.max()) + 1
    trees: list[ExtraTreeClassifier] = []
    nodes, roots, jobs = [], [0], effective_jobs(n_jobs)
    for f in range(n_groups):
        seen = slice(None) if folds is None else np.flatnonzero(folds != f)
        rows, classes = A[seen], place[seen][:, None]
        draw, found = np.random.RandomState(random_state + f), []
        for _ in range(max(1, n_trees // n_groups)):
            seed = draw.randint(np.iinfo(np.int32).max)
            found.append(ExtraTreeClassifier(max_features="sqrt", random_state=seed))
        in_threads(partial(_grow, rows, classes), found, jobs if codes.size > FEW else 1)
        trees += found
    importances = np.zeros((n_groups, A.shape[1]))
    for number, estimator in enumerate(trees):
        tree, start = estimator.tree_, roots[-1]
        importances[number * n_groups // len(trees)] += tree.compute_feature_importances()
        n = tree.node_count
        leaf = tree.children_left < 0
        itself = np.arange(start, start + n)
        value = np.zeros((n, n_classes), dtype=np.float32)
        value[:, names[estimator.classes_.astype(np.intp)]] = tree.value[:, 0, :]
        value /= value.sum(axis=1, keepdims=True)
        exponent = units[np.maximum(tree.feature, 0)]
        with np.errstate(over="ignore"):  # an infinite threshold becomes the largest number
            threshold = np.nan_to_num(np.ldexp(tree.threshold, exponent))
        nodes.append(
            (
                np.where(leaf, -1, tree.feature).astype(np.int32),
                np.where(leaf, 0.0, threshold),
                np.where(leaf, itself, tree.children_left + start).astype(np.int32),
                np.where(leaf, itself, tree.children_right + start).astype(np.int32),
                value,
            )
        )
        roots.append(start + n)
    feature, threshold, left, right, values = map(np.concatenate, zip(*nodes, strict=True))
    totals = importances.sum(axis=1, keepdims=True)  # 0 if no split separates classes
    mean = np.mean(importances / np.where(totals > 0, totals, 1.0), axis=0)
    first = np.array(roots, dtype=np.int64)
    forest = Forest(first, feature, threshold, left, right, values, mean)
    return CrossForest(trees, forest, units, n_groups, jobs)


def _grow(X: Features, classes: NDArray[np.integer], tree: ExtraTreeClassifier) -> None:
    """Grow a tree without scikit-learn's validation, which takes longer than a small tree."""
    from sklearn import config_context

    with config_context(skip_parameter_validation=True):
        tree.fit(X, classes, check_input=False)


def shared_forest(data: FitData) -> tuple[CrossForest, Leaves]:
    """Return the forest that several members share, and the leaves of all samples."""
    cache, policy = data.cache, data.options.policy
    if "forest" not in cache:
        kept = stratified_subsample(data.codes, policy.forest_labels)
        large = data.whole is not None or data.X.shape[0] > policy.judged_nodes
        cache["forest"] = cross_forest(
            data.X[data.labeled[kept]],
            data.codes[kept],
            None if data.folds is None else data.folds[kept],
            data.n_classes,
            n_trees=policy.forest_trees // 2 if large else policy.forest_trees,
            random_state=data.options.random_state,
            n_jobs=data.options.n_jobs,
        )
    if "leaves" not in cache:
        cache["leaves"] = cache["forest"].leaves(data.X)
    return cache["forest"], cache["leaves"]


class ForestMember(Member):
    """The forest: the mean prediction of its trees."""

    name = "forest"

    def predict_fold(self, data: FitData, f: int, held: Mask) -> FoldPredictions:
        """Predict a fold by the trees grown without it."""
        grown, leaves = shared_forest(data)
        rows = leaves[data.labeled[held]]
        yield None, leaf_means(grown.forest.roots, grown.forest.value, rows, grown.group(f))

    def fit(self, data: FitData) -> FittedModel:
        """Return the mean prediction of all trees."""
        grown, leaves = shared_forest(data)
        forest = grown.forest
        return FittedModel(self.name, forest, leaf_means(forest.roots, forest.value, leaves))
